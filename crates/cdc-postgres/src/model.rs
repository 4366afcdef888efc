//! A database in memory behind the seam: what the server promises, without the server. The suite of
//! every sink runs on it, and histories of several runners with faults, from a seed.

mod conformance;
mod decode;
mod simulation;

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard},
    task::Poll,
};

use async_trait::async_trait;
use cdc_core::{Epoch, Error, ErrorKind, Result};

use crate::{
    layout::{Layout, TargetColumn},
    piece::Piece,
    record::Record,
    row::{Fields, canonical, value},
    store::{Session, Store},
};

/// How often a lock is looked at before it was waited for too long.
const LOCK_PAUSES_MAX: usize = 60;

/// A row of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelRow {
    pub(crate) guard: (u32, Vec<u8>),
    pub(crate) deleted: bool,
    pub(crate) cells: Vec<Option<Vec<u8>>>,
}

/// A target: its columns and its rows by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) columns: Vec<TargetColumn>,
    pub(crate) rows: BTreeMap<Vec<u8>, ModelRow>,
}

/// What is durable, and who holds which lock.
#[derive(Debug, Default)]
pub(crate) struct Database {
    pub(crate) targets: BTreeMap<String, Target>,
    pub(crate) records: BTreeMap<String, Record>,
    locks: BTreeMap<String, u64>,
    sessions: u64,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails, and nothing of it happened.
    Before,
    /// It happened, and the reply is lost.
    After,
}

/// Draws the fault of the next call.
pub(crate) type Faults = Arc<dyn Fn() -> Option<Fault> + Send + Sync>;

/// The database of one test.
#[derive(Clone)]
pub(crate) struct ModelStore {
    pub(crate) database: Arc<Mutex<Database>>,
    pub(crate) faults: Faults,
}

impl ModelStore {
    pub(crate) fn new(faults: Faults) -> Self {
        Self { database: Arc::default(), faults }
    }

    pub(crate) fn open(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap()
    }

    /// A call to the server: others may run before it and behind it.
    async fn call<T>(&self, effect: impl FnOnce(&mut Database) -> Result<T>) -> Result<T> {
        pause().await;
        let lost = || Error::new(ErrorKind::Unavailable, "the connection was lost");
        match (self.faults)() {
            Some(Fault::Before) => return Err(lost()),
            Some(Fault::After) => {
                effect(&mut self.open())?;
                pause().await;
                return Err(lost());
            }
            None => {}
        }
        let done = effect(&mut self.open());
        pause().await;
        done
    }
}

/// Lets others run.
async fn pause() {
    let mut paused = false;
    poll_fn(|context| {
        if std::mem::replace(&mut paused, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[async_trait]
impl Store for ModelStore {
    async fn session(&self) -> Result<Box<dyn Session>> {
        let id = self
            .call(|database| {
                database.sessions += 1;
                Ok(database.sessions)
            })
            .await?;
        Ok(Box::new(ModelSession {
            store: self.clone(),
            id,
            open: None,
            merged: 0,
            pieces: Vec::new(),
        }))
    }
}

/// An open transaction: the table's rows and record as it will leave them.
#[derive(Clone)]
struct Transaction {
    table: String,
    target: Option<Target>,
    record: Option<Record>,
}

struct StagedPiece {
    layout: Layout,
    rows: Vec<Vec<u8>>,
}

struct ModelSession {
    store: ModelStore,
    id: u64,
    open: Option<Transaction>,
    merged: usize,
    pieces: Vec<StagedPiece>,
}

impl Drop for ModelSession {
    fn drop(&mut self) {
        // The server rolls back when the connection is gone.
        let id = self.id;
        if let Ok(mut database) = self.store.database.lock() {
            database.locks.retain(|_, holder| *holder != id);
        }
    }
}

impl ModelSession {
    fn transaction(&mut self) -> &mut Transaction {
        self.open.as_mut().expect("a transaction is open")
    }
}

#[async_trait]
impl Session for ModelSession {
    async fn prepare(&mut self) -> Result<()> {
        self.store.call(|_| Ok(())).await
    }

    async fn look(&mut self, table: &str) -> Result<Option<Record>> {
        self.store.call(|database| Ok(database.records.get(table).cloned())).await
    }

    async fn begin(&mut self, table: &str, _creating: bool) -> Result<Option<Record>> {
        assert!(self.open.is_none(), "one transaction at a time");
        let id = self.id;
        for _ in 0..LOCK_PAUSES_MAX {
            if self.store.open().locks.get(table).is_none_or(|holder| *holder == id) {
                break;
            }
            pause().await;
        }
        let opened = self
            .store
            .call(|database| {
                let holder = *database.locks.entry(table.to_owned()).or_insert(id);
                if holder != id {
                    // What the server says when a lock is waited for too long.
                    return Err(Error::new(ErrorKind::Unavailable, "another session locks it"));
                }
                Ok(Transaction {
                    table: table.to_owned(),
                    target: database.targets.get(table).cloned(),
                    record: database.records.get(table).cloned(),
                })
            })
            .await?;
        let record = opened.record.clone();
        self.open = Some(opened);
        Ok(record)
    }

    async fn columns(&mut self, _table: &str) -> Result<Vec<TargetColumn>> {
        self.store.call(|_| Ok(())).await?;
        Ok(self.transaction().target.clone().unwrap_or_default().columns)
    }

    async fn create(&mut self, _table: &str, layout: &Layout) -> Result<()> {
        self.store.call(|_| Ok(())).await?;
        let target = Target { columns: layout.columns.clone(), rows: BTreeMap::new() };
        self.transaction().target = Some(target);
        Ok(())
    }

    async fn add(&mut self, _table: &str, layout: &Layout, added: usize) -> Result<()> {
        self.store.call(|_| Ok(())).await?;
        let target = self.transaction().target.as_mut().expect("a target");
        target.columns = layout.columns.clone();
        for row in target.rows.values_mut() {
            row.cells.extend(std::iter::repeat_n(None, added));
        }
        Ok(())
    }

    async fn stage(&mut self, _table: &str, layout: &Layout, piece: &Piece) -> Result<()> {
        assert!(self.open.is_none(), "rows are staged outside of a transaction");
        self.store.call(|_| Ok(())).await?;
        let rows = piece.rows().map(<[u8]>::to_vec).collect();
        self.pieces.push(StagedPiece { layout: layout.clone(), rows });
        Ok(())
    }

    async fn merge(&mut self, table: &str, epoch: Epoch) -> Result<()> {
        self.store.call(|_| Ok(())).await?;
        let transaction = self.open.as_mut().expect("a transaction is open");
        assert_eq!(transaction.table, table, "the record that is locked is the table's");
        let target = transaction.target.as_mut().expect("a target");
        for piece in &self.pieces {
            for row in &piece.rows {
                apply(target, &piece.layout, row, epoch);
            }
        }
        self.merged = self.pieces.len();
        Ok(())
    }

    async fn save(&mut self, table: &str, record: &Record) -> Result<()> {
        self.store.call(|_| Ok(())).await?;
        let transaction = self.transaction();
        assert_eq!(transaction.table, table, "the record that is locked is the table's");
        transaction.record = Some(record.clone());
        Ok(())
    }

    async fn commit(&mut self) -> Result<()> {
        let Transaction { table, target, record } = self.transaction().clone();
        let id = self.id;
        self.store
            .call(move |database| {
                assert_eq!(database.locks.get(&table), Some(&id), "the lock is held");
                database.locks.remove(&table);
                database.targets.extend(target.map(|target| (table.clone(), target)));
                database.records.extend(record.map(|record| (table, record)));
                Ok(())
            })
            .await?;
        self.open = None;
        self.pieces.drain(..self.merged);
        self.merged = 0;
        Ok(())
    }

    async fn roll_back(&mut self) -> Result<()> {
        let id = self.id;
        self.store
            .call(|database| {
                database.locks.retain(|_, holder| *holder != id);
                Ok(())
            })
            .await?;
        self.open = None;
        self.merged = 0;
        Ok(())
    }

    async fn clear(&mut self) -> Result<()> {
        self.store.call(|_| Ok(())).await?;
        self.pieces.clear();
        Ok(())
    }
}

/// What the statement of a merge does with one row.
fn apply(target: &mut Target, layout: &Layout, row: &[u8], epoch: Epoch) {
    let fields: Vec<&[u8]> = Fields::from(row, 0).map(|field| &row[field]).collect();
    let mut key = Vec::new();
    for place in &layout.key {
        let start = key.len();
        key.extend(fields[*place]);
        canonical(&layout.columns[*place].column_type, &mut key[start..]);
    }
    let count = layout.columns.len();
    let position = value(fields[count + 1]).expect("a position").to_vec();
    let silent = value(fields[count + 2]).unwrap_or_default();
    let guard = (epoch.0, position);
    let old = target.rows.get(&key);
    if old.is_some_and(|old| old.guard >= guard) {
        return;
    }
    let mut cells: Vec<Option<Vec<u8>>> = Vec::new();
    for (place, column) in target.columns.iter().enumerate() {
        let given = layout.place(&column.name);
        let says = |place: usize| silent.get(place / 8).is_none_or(|b| b & (1 << (place % 8)) == 0);
        let kept = || old.and_then(|old| old.cells[place].clone());
        cells.push(match given {
            // A piece of before the column was added.
            None => kept(),
            Some(given) if says(given) => value(fields[given]).map(<[u8]>::to_vec),
            Some(_) if old.is_some_and(|old| old.deleted) => None,
            Some(_) => kept(),
        });
    }
    let deleted = value(fields[count]) == Some(&[1]);
    target.rows.insert(key, ModelRow { guard, deleted, cells });
}
