//! Transactions: statements that see their own effects, hold their rows, and leave nothing behind
//! when rolled back.

use std::collections::{BTreeMap, BTreeSet};

use cdc_core::{Lsn, TableName, Timestamp};

use crate::{
    database::{DatabaseState, FakeDatabase, StateGuard},
    isolation::{Isolation, Waiting},
    key::SortKey,
    locks::{TableLock, Tried},
    log::{LogChange, LogEvent, LogRecord, TableId},
    sql_error::{SqlError, SqlResult, number},
    statement::{Plan, Shape, deletes},
    table::{RowEdit, RowView},
    value::{Row, Value},
};

mod request;
mod savepoint;
mod schema;

pub use request::{InsertRequest, Inserted, RowId, UpdateRequest};
pub use savepoint::Savepoint;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TransactionId(pub(crate) u32);

/// What an open transaction has done: invisible to others until it commits.
#[derive(Clone, Debug)]
pub(crate) struct OpenTransaction {
    pub(crate) changes: Vec<LogChange>,
    // The rows it wrote; None for a row it removed.
    pub(crate) overlay: BTreeMap<TableId, BTreeMap<SortKey, Option<Row>>>,
    // The keys of unique indexes, by table and index id, and the row each now names; None for a
    // key that it removed.
    pub(crate) unique: BTreeMap<(TableId, i32), BTreeMap<SortKey, Option<SortKey>>>,
    // Rows that it read to keep.
    pub(crate) shared: BTreeMap<TableId, BTreeSet<SortKey>>,
    pub(crate) table_locks: BTreeMap<TableId, TableLock>,
    pub(crate) isolation: Isolation,
    // The commit that its reads stand at, once a snapshot transaction has read.
    pub(crate) snapshot: Option<u64>,
    // The newest LSN that capture had processed then.
    pub(crate) captured: Option<Lsn>,
    pub(crate) began: Timestamp,
    // True when it has to give way to another in a deadlock.
    pub(crate) victim: bool,
    pub(crate) undo: savepoint::UndoLog,
    pub(crate) schema: Vec<schema::SchemaStep>,
}

impl OpenTransaction {
    const fn new(isolation: Isolation, began: Timestamp) -> Self {
        Self {
            changes: Vec::new(),
            overlay: BTreeMap::new(),
            unique: BTreeMap::new(),
            shared: BTreeMap::new(),
            table_locks: BTreeMap::new(),
            isolation,
            snapshot: None,
            captured: None,
            began,
            victim: false,
            undo: savepoint::UndoLog::new(),
            schema: Vec::new(),
        }
    }

    pub(crate) fn wrote(&self, table: TableId) -> bool {
        self.overlay.get(&table).is_some_and(|rows| !rows.is_empty())
    }

    pub(crate) fn holds(&self, table: TableId, key: &SortKey) -> bool {
        self.overlay.get(&table).is_some_and(|rows| rows.contains_key(key))
    }

    /// True when a commit would change something.
    pub(crate) fn has_written(&self) -> bool {
        !self.schema.is_empty() || self.overlay.values().any(|rows| !rows.is_empty())
    }
}

/// Where and when a transaction committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitInfo {
    /// The commit's LSN: `__$start_lsn` of its changes.
    pub lsn: Lsn,
    /// When, in UTC.
    pub time: Timestamp,
}

/// An open transaction. Dropped without a commit, it is rolled back.
#[derive(Debug)]
pub struct Transaction {
    database: FakeDatabase,
    id: TransactionId,
    open: bool,
    waiting: Waiting,
}

/// Names an open transaction, for reads in it.
#[derive(Clone, Debug)]
pub struct TransactionHandle {
    pub(crate) database: FakeDatabase,
    pub(crate) id: TransactionId,
}

impl TransactionHandle {
    /// The database it changes.
    #[must_use]
    pub const fn database(&self) -> &FakeDatabase {
        &self.database
    }

    /// The server's number of it, as `sys.dm_tran_current_transaction` tells.
    #[must_use]
    pub fn number(&self) -> i64 {
        i64::from(self.id.0)
    }

    /// True until it is committed, rolled back, or ended by the server.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.database.look().open.contains_key(&self.id)
    }

    /// Rolls it back, whoever has it. What it did is gone, and its locks are free.
    pub fn end(&self) {
        let mut state = self.database.look();
        let wrote = state.open.get(&self.id).is_some_and(OpenTransaction::has_written);
        if wrote {
            state.close(self.id);
        } else {
            state.quiet().close(self.id);
        }
        drop(state);
        self.database.shared.changed.notify_all();
    }
}

impl FakeDatabase {
    /// Begins a transaction at read committed that waits for nobody. Several may be open at once.
    #[must_use]
    pub fn begin(&self) -> Transaction {
        self.begin_at(Isolation::ReadCommitted, Waiting::refuse())
    }

    /// Begins a transaction at an isolation level, whose statements wait for what others hold.
    #[must_use]
    pub fn begin_at(&self, isolation: Isolation, waiting: Waiting) -> Transaction {
        let now = self.now();
        let mut state = self.look();
        let state = state.quiet();
        let id = TransactionId(state.new_id());
        state.open.insert(id, OpenTransaction::new(isolation, now));
        Transaction { database: self.clone(), id, open: true, waiting }
    }

    /// Runs statements in one transaction: committed when `work` succeeds, else rolled back.
    ///
    /// # Errors
    /// What `work` returns.
    pub fn transact(
        &self,
        work: impl FnOnce(&mut Transaction) -> SqlResult<()>,
    ) -> SqlResult<CommitInfo> {
        let mut transaction = self.begin();
        work(&mut transaction)?;
        transaction.commit()
    }
}

impl Transaction {
    /// Inserts one row: the values of the columns that the server does not generate, in
    /// `column_id` order.
    ///
    /// # Errors
    /// What a statement is refused for: 2627, 515, 213, 1222 and the like. The transaction stays
    /// open and the statement has left nothing.
    pub fn insert(&mut self, table: &TableName, values: Vec<Value>) -> SqlResult<()> {
        self.insert_many(table, vec![values]).map(|_| ())
    }

    /// Inserts rows in one statement. Returns how many.
    ///
    /// # Errors
    /// As for [`Transaction::insert`].
    pub fn insert_many(&mut self, table: &TableName, rows: Vec<Vec<Value>>) -> SqlResult<usize> {
        let id = self.id;
        let mut rows = Some(rows);
        let mut steps = Vec::new();
        self.database.attempt(Some(id), &self.waiting, |state| {
            if !state.open.contains_key(&id) {
                return Err(no_transaction().into());
            }
            let table = state.table_id(table)?;
            // Rows get their place once, however often the statement has to wait.
            if let Some(rows) = rows.take() {
                steps = state.new_steps(table, rows)?;
            }
            state.check_steps(id, table, &steps)?;
            let count = steps.len();
            state.record(id, table, std::mem::take(&mut steps))?;
            Ok(count)
        })
    }

    /// Updates the row with this key. Returns 1, or 0 when there is none.
    ///
    /// # Errors
    /// As for [`Transaction::insert`].
    pub fn update(
        &mut self,
        table: &TableName,
        key: &[Value],
        set: &[(&str, Value)],
    ) -> SqlResult<usize> {
        let change = |edit: &mut RowEdit<'_>| {
            set.iter().try_for_each(|(column, value)| edit.set(column, value.clone()))
        };
        self.run(table, |state, id, table| {
            let found = state.row_by_key(id, table, key)?;
            state.plan_update(table, found.into_iter().collect(), &change, Shape::InPlace)
        })
    }

    /// Updates the rows that `filter` picks. A change of key columns is logged as a delete and
    /// an insert: of one row in one log record, of several with the inserts ahead of the deletes
    /// in the log, while commands stand in their right order. Returns how many rows it picked.
    ///
    /// # Errors
    /// As for [`Transaction::insert`].
    pub fn update_where(
        &mut self,
        table: &TableName,
        filter: impl Fn(&RowView<'_>) -> bool,
        change: impl Fn(&mut RowEdit<'_>) -> SqlResult<()>,
    ) -> SqlResult<usize> {
        self.run(table, |state, id, table| {
            let found = state.rows_where(id, table, &filter)?;
            state.plan_update(table, found, &change, Shape::InPlace)
        })
    }

    /// Updates as [`Transaction::update_where`] does, but each row is logged as a delete and an
    /// insert even where its key stays, as MERGE and updates of unique columns may be.
    ///
    /// # Errors
    /// As for [`Transaction::insert`].
    pub fn merge_where(
        &mut self,
        table: &TableName,
        filter: impl Fn(&RowView<'_>) -> bool,
        change: impl Fn(&mut RowEdit<'_>) -> SqlResult<()>,
    ) -> SqlResult<usize> {
        self.run(table, |state, id, table| {
            let found = state.rows_where(id, table, &filter)?;
            state.plan_update(table, found, &change, Shape::Pairs)
        })
    }

    /// Deletes the row with this key. Returns 1, or 0 when there is none.
    ///
    /// # Errors
    /// As for [`Transaction::insert`].
    pub fn delete(&mut self, table: &TableName, key: &[Value]) -> SqlResult<usize> {
        self.run(table, |state, id, table| {
            let found = state.row_by_key(id, table, key)?;
            Ok(deletes(found.into_iter().collect()))
        })
    }

    /// Deletes the rows that `filter` picks. Returns how many.
    ///
    /// # Errors
    /// As for [`Transaction::insert`].
    pub fn delete_where(
        &mut self,
        table: &TableName,
        filter: impl Fn(&RowView<'_>) -> bool,
    ) -> SqlResult<usize> {
        self.run(table, |state, id, table| Ok(deletes(state.rows_where(id, table, &filter)?)))
    }

    /// Makes everything durable and visible in one step.
    ///
    /// # Errors
    /// 3902 when a restore, or a deadlock, has ended the transaction.
    pub fn commit(mut self) -> SqlResult<CommitInfo> {
        self.open = false;
        let now = self.database.now();
        let mut state = self.database.look();
        let wrote = state.open.get(&self.id).is_some_and(OpenTransaction::has_written);
        let done =
            if wrote { state.commit(self.id, now) } else { state.quiet().commit(self.id, now) };
        drop(state);
        self.database.shared.changed.notify_all();
        done
    }

    /// Leaves nothing of it.
    pub fn rollback(self) {}

    /// A name of the transaction, for reads in it.
    #[must_use]
    pub fn handle(&self) -> TransactionHandle {
        TransactionHandle { database: self.database.clone(), id: self.id }
    }

    /// The database it changes.
    #[must_use]
    pub const fn database(&self) -> &FakeDatabase {
        &self.database
    }

    /// True until the server has ended it: as a deadlock's victim, after an update conflict, or
    /// with a restore.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.database.look().open.contains_key(&self.id)
    }

    /// True when it has changed something.
    #[must_use]
    pub fn has_written(&self) -> bool {
        self.database.look().open.get(&self.id).is_some_and(OpenTransaction::has_written)
    }

    /// Sets the level of the reads and writes from now on.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        if let Some(open) = self.database.look().quiet().open.get_mut(&self.id) {
            open.isolation = isolation;
        }
    }

    /// Sets how its statements wait from now on.
    pub fn set_waiting(&mut self, waiting: Waiting) {
        self.waiting = waiting;
    }

    /// Locks a whole table to the end of the transaction.
    ///
    /// # Errors
    /// 208, 1222, 1205.
    pub fn lock_table(&mut self, table: &TableName, lock: TableLock) -> SqlResult<()> {
        let id = self.id;
        self.database.attempt(Some(id), &self.waiting, |state| {
            let table = state.table_id(table)?;
            state.quiet().lock_table(id, table, lock)
        })
    }

    /// Runs one statement. Returns how many rows it was about.
    fn run(
        &mut self,
        table: &TableName,
        mut plan: impl FnMut(&mut DatabaseState, TransactionId, TableId) -> Tried<Plan>,
    ) -> SqlResult<usize> {
        let id = self.id;
        self.database.attempt(Some(id), &self.waiting, |state| {
            let (plan, table) = planned(state, id, table, &mut plan)?;
            state.apply(id, table, plan.steps)?;
            Ok(plan.rows)
        })
    }
}

/// The plan of a statement on a table, in a transaction that is open.
fn planned(
    state: &mut StateGuard<'_>,
    id: TransactionId,
    table: &TableName,
    plan: &mut impl FnMut(&mut DatabaseState, TransactionId, TableId) -> Tried<Plan>,
) -> Tried<(Plan, TableId)> {
    if !state.open.contains_key(&id) {
        return Err(no_transaction().into());
    }
    let table = state.table_id(table)?;
    Ok((plan(state, id, table)?, table))
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.open {
            self.handle().end();
        }
    }
}

pub(crate) fn no_transaction() -> SqlError {
    SqlError::new(
        number::NO_TRANSACTION,
        "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
    )
}

impl DatabaseState {
    /// Ends a transaction without its effects.
    pub(crate) fn close(&mut self, id: TransactionId) {
        if let Some(open) = self.open.remove(&id) {
            self.undo_schema(open.schema);
            self.release_snapshot(open.snapshot);
        }
        self.waits.remove(&id);
    }

    fn commit(&mut self, id: TransactionId, now: Timestamp) -> SqlResult<CommitInfo> {
        let mut open = self.open.remove(&id).ok_or_else(no_transaction)?;
        self.waits.remove(&id);
        self.release_snapshot(open.snapshot);
        if open.has_written() {
            self.commits += 1;
        }
        let keep = self.keeps_versions().then_some(self.commits);
        for (id, rows) in open.overlay {
            self.table_mut(id)?.publish(rows, keep);
        }
        for ((table, index), keys) in open.unique {
            if let Some(index) = self.table_mut(table)?.index_mut(index) {
                index.publish(keys);
            }
        }
        let schema = std::mem::take(&mut open.schema);
        self.log_schema(schema, now);
        let lsn = self.log.commit_lsn();
        if !open.changes.is_empty() {
            self.keep(lsn, now, &open.changes);
            self.append(LogRecord {
                lsn,
                time: now,
                local: self.zone.reading(now),
                event: LogEvent::Commit {
                    changes: open.changes,
                    began: self.zone.reading(open.began),
                    transaction: id.0,
                },
            });
        }
        Ok(CommitInfo { lsn, time: now })
    }
}
