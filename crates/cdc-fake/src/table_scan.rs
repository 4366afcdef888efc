//! Reading a table as a session does: at its isolation level, in chunks, by key where it can.

use std::{collections::BTreeMap, collections::VecDeque, ops::Bound};

use cdc_core::TableName;

use crate::{
    database::{DatabaseState, FakeDatabase},
    isolation::{Isolation, Waiting},
    key::{SortKey, behind},
    locks::{Refusal, TableLock, Tried},
    log::TableId,
    sql_error::SqlResult,
    transaction::{OpenTransaction, RowId, TransactionHandle, TransactionId},
    value::{Row, Value},
};

/// Rows that one look under the lock takes. It bounds how long a scan keeps others waiting.
const CHUNK_ROWS: usize = 1024;

/// How a session reads.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The isolation level.
    pub isolation: Isolation,
    /// How it waits for rows that others hold.
    pub waiting: Waiting,
    /// The open transaction that it reads in.
    pub transaction: Option<TransactionHandle>,
    /// True to leave out rows that others hold (`READPAST`).
    pub skip_held: bool,
    /// True to wait even where the database has read committed snapshot
    /// (`READCOMMITTEDLOCK`).
    pub locking: bool,
}

/// Bounds of a read on the leading columns of the table's key: the values, and whether rows that
/// have them are within.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyBounds {
    /// The least key.
    pub from: Option<(Vec<Value>, bool)>,
    /// The greatest key.
    pub to: Option<(Vec<Value>, bool)>,
}

/// Which version of a row a read wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    /// The last one, committed or not.
    Uncommitted,
    /// The last committed one, which waits for who writes.
    Committed,
    /// The one that was committed at this commit.
    At(u64),
}

/// A read on its way: rows with their places, in key order.
#[derive(Debug)]
pub struct TableRows {
    database: FakeDatabase,
    table: TableId,
    options: ReadOptions,
    view: View,
    /// The snapshot that the read itself keeps, not its transaction.
    snapshot: Option<u64>,
    keep: bool,
    next: Bound<SortKey>,
    to: Bound<SortKey>,
    found: VecDeque<(RowId, Row)>,
    done: bool,
}

impl FakeDatabase {
    /// Begins to read a table. Rows are the slots of the table: a dropped column has one, and a
    /// row may be shorter than the table has columns.
    ///
    /// # Errors
    /// 208 for an unknown table, 3952 where snapshot isolation is not allowed, 1222 and 1205 when
    /// another has the table to itself, and 206 for a bound of another type.
    pub fn read_table(
        &self,
        table: &TableName,
        bounds: &KeyBounds,
        options: ReadOptions,
    ) -> SqlResult<TableRows> {
        let who = options.own(self);
        let waiting = options.waiting.clone();
        self.attempt(who, &waiting, |state| {
            let id = state.table_id(table)?;
            let (view, snapshot) = state.quiet().view(&options, who)?;
            if matches!(view, View::Committed) {
                state.check_read(who, id)?;
            }
            let keep = options.isolation >= Isolation::RepeatableRead && view == View::Committed;
            if let (Some(who), Isolation::Serializable) = (who, options.isolation) {
                state.quiet().lock_table(who, id, TableLock::Shared)?;
            }
            let definition = state.table(id)?;
            let key = |values: &[Value]| definition.prefix_from(values);
            let next = match &bounds.from {
                None => Bound::Unbounded,
                Some((values, true)) => Bound::Included(key(values)?),
                Some((values, false)) => match behind(&key(values)?) {
                    Some(key) => Bound::Included(key),
                    None => Bound::Unbounded,
                },
            };
            let to = match &bounds.to {
                None => Bound::Unbounded,
                Some((values, true)) => {
                    behind(&key(values)?).map_or(Bound::Unbounded, Bound::Excluded)
                }
                Some((values, false)) => Bound::Excluded(key(values)?),
            };
            Ok(TableRows {
                database: self.clone(),
                table: id,
                options: options.clone(),
                view,
                snapshot,
                keep,
                done: is_empty(&next, &to),
                next,
                to,
                found: VecDeque::new(),
            })
        })
    }
}

/// True for a range that no key is in, and that a map would refuse.
fn is_empty(from: &Bound<SortKey>, to: &Bound<SortKey>) -> bool {
    match (from, to) {
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to)) => from >= to,
        _ => false,
    }
}

impl ReadOptions {
    /// The transaction that it reads in, when that is one of this database.
    fn own(&self, database: &FakeDatabase) -> Option<TransactionId> {
        let handle = self.transaction.as_ref()?;
        handle.database.is_same(database).then_some(handle.id)
    }
}

impl Iterator for TableRows {
    type Item = SqlResult<(RowId, Row)>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.is_empty() && !self.done {
            if let Err(error) = self.fill() {
                self.done = true;
                return Some(Err(error));
            }
        }
        self.found.pop_front().map(Ok)
    }
}

impl TableRows {
    fn fill(&mut self) -> SqlResult<()> {
        let who = self.options.own(&self.database);
        let database = self.database.clone();
        let waiting = self.options.waiting.clone();
        let chunk = database.attempt(who, &waiting, |state| {
            let range = (self.next.clone(), self.to.clone());
            let chunk = state.chunk(self.table, who, self.view, self.options.skip_held, range)?;
            if let (true, Some(who)) = (self.keep, who) {
                let keys = chunk.rows.iter().map(|(key, _)| key.clone());
                if let Some(open) = state.quiet().open.get_mut(&who) {
                    open.shared.entry(self.table).or_default().extend(keys);
                }
            }
            Ok(chunk)
        })?;
        match chunk.last {
            Some(last) => self.next = Bound::Excluded(last),
            None => self.done = true,
        }
        self.found.extend(chunk.rows.into_iter().map(|(key, row)| (RowId(key), row)));
        Ok(())
    }
}

impl Drop for TableRows {
    fn drop(&mut self) {
        if self.snapshot.is_some() {
            self.database.look().quiet().release_snapshot(self.snapshot);
        }
    }
}

/// Some rows of a scan, and the last key that was looked at; none at the end of the range.
struct Chunk {
    rows: Vec<(SortKey, Row)>,
    last: Option<SortKey>,
}

impl DatabaseState {
    /// Which versions a read sees, and the snapshot that it keeps for itself.
    fn view(
        &mut self,
        options: &ReadOptions,
        who: Option<TransactionId>,
    ) -> SqlResult<(View, Option<u64>)> {
        Ok(match options.isolation {
            Isolation::ReadUncommitted => (View::Uncommitted, None),
            Isolation::Snapshot => match who {
                Some(who) => (View::At(self.snapshot_of(who)?), None),
                None if self.options.allow_snapshot_isolation => {
                    let snapshot = self.take_snapshot();
                    (View::At(snapshot), Some(snapshot))
                }
                None => return Err(self.snapshot_refused()),
            },
            Isolation::ReadCommitted
                if self.options.read_committed_snapshot && !options.locking =>
            {
                let snapshot = self.take_snapshot();
                (View::At(snapshot), Some(snapshot))
            }
            _ => (View::Committed, None),
        })
    }

    fn chunk(
        &self,
        table: TableId,
        who: Option<TransactionId>,
        view: View,
        skip_held: bool,
        range: (Bound<SortKey>, Bound<SortKey>),
    ) -> Tried<Chunk> {
        let definition = self.table(table)?;
        let own = who.and_then(|who| self.open.get(&who));
        let others: Vec<(TransactionId, &OpenTransaction)> = self
            .open
            .iter()
            .filter(|(id, open)| Some(**id) != who && open.wrote(table))
            .map(|(id, open)| (*id, open))
            .collect();
        // Keys that are not among the committed rows, or not as they were.
        let mut more: BTreeMap<&SortKey, ()> = BTreeMap::new();
        let overlays = own.into_iter().chain(others.iter().map(|(_, open)| *open));
        for open in overlays {
            if let Some(rows) = open.overlay.get(&table) {
                let keys = rows.range(range.clone()).take(CHUNK_ROWS);
                more.extend(keys.map(|(key, _)| (key, ())));
            }
        }
        if matches!(view, View::At(_)) && !definition.history.is_empty() {
            let keys = definition.history.keys_from(range.clone()).take(CHUNK_ROWS);
            more.extend(keys.map(|key| (key, ())));
        }
        let mut more = more.into_keys().peekable();
        let mut committed = definition.rows.range(range).peekable();
        let mut chunk = Chunk { rows: Vec::new(), last: None };
        for _ in 0..CHUNK_ROWS {
            let (key, row) = match (committed.peek(), more.peek()) {
                (None, None) => {
                    chunk.last = None;
                    return Ok(chunk);
                }
                (Some((key, _)), Some(other)) if *other < *key => (*other, None),
                (None, Some(other)) => (*other, None),
                (Some((key, row)), _) => (*key, Some(*row)),
            };
            match Self::visible(own, &others, (table, definition), view, key, row) {
                Ok(Some(row)) => chunk.rows.push((key.clone(), row.clone())),
                Ok(None) => {}
                Err(_) if skip_held => {}
                Err(holder) if chunk.last.is_none() => return Err(Refusal::Held(holder)),
                Err(_) => return Ok(chunk),
            }
            chunk.last = Some(key.clone());
            more.next_if(|other| *other == key);
            committed.next_if(|(other, _)| *other == key);
        }
        Ok(chunk)
    }

    /// The row that a read sees under a key, or the transaction that it has to wait for.
    fn visible<'a>(
        own: Option<&'a OpenTransaction>,
        others: &[(TransactionId, &'a OpenTransaction)],
        (table, definition): (TableId, &'a crate::table::Table),
        view: View,
        key: &SortKey,
        committed: Option<&'a Row>,
    ) -> Result<Option<&'a Row>, TransactionId> {
        let mine = own.and_then(|own| own.overlay.get(&table)).and_then(|rows| rows.get(key));
        if let Some(row) = mine {
            return Ok(row.as_ref());
        }
        let theirs = || {
            others.iter().find_map(|(id, open)| {
                let row = open.overlay.get(&table)?.get(key)?;
                Some((*id, row.as_ref()))
            })
        };
        match view {
            View::At(commit) => Ok(definition.history.at(key, commit).unwrap_or(committed)),
            View::Uncommitted => Ok(theirs().map_or(committed, |(_, row)| row)),
            View::Committed => match theirs() {
                Some((holder, _)) => Err(holder),
                None => Ok(committed),
            },
        }
    }
}

#[cfg(test)]
mod tests;
