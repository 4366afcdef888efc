//! Transactions: statements that see their own effects, hold their rows, and leave nothing behind
//! when rolled back.

use std::collections::BTreeMap;

use cdc_core::{Lsn, TableName, Timestamp};

use crate::{
    database::{DatabaseState, FakeDatabase},
    key::SortKey,
    log::{LogChange, LogEvent, LogRecord, RowChange, TableId},
    sql_error::{SqlError, SqlResult, number},
    statement::{Plan, Shape, Step, deletes},
    table::{RowEdit, RowView, Table},
    value::{Row, Value},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TransactionId(u32);

/// What an open transaction has done: invisible to others until it commits.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenTransaction {
    pub(crate) changes: Vec<LogChange>,
    // The rows it wrote; None for a row it removed.
    pub(crate) overlay: BTreeMap<TableId, BTreeMap<SortKey, Option<Row>>>,
}

impl OpenTransaction {
    pub(crate) fn wrote(&self, table: TableId) -> bool {
        self.overlay.get(&table).is_some_and(|rows| !rows.is_empty())
    }

    pub(crate) fn holds(&self, table: TableId, key: &SortKey) -> bool {
        self.overlay.get(&table).is_some_and(|rows| rows.contains_key(key))
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
}

impl FakeDatabase {
    /// Begins a transaction. Several may be open at once.
    #[must_use]
    pub fn begin(&self) -> Transaction {
        let mut state = self.state();
        let id = TransactionId(state.new_id());
        state.open.insert(id, OpenTransaction::default());
        drop(state);
        Transaction { database: self.clone(), id, open: true }
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
        self.run(table, |state, _, table| {
            let mut version = state.row_version;
            let definition = state.table_mut(table)?;
            let mut steps = Vec::with_capacity(rows.len());
            for (rank, values) in rows.into_iter().enumerate() {
                let row = definition.new_row(values, &mut version)?;
                let key = definition.place(&row);
                let change = RowChange::Insert(row);
                steps.push(Step { key, change, rank });
            }
            state.row_version = version;
            Ok(Plan { rows: steps.len(), steps })
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
            state.plan_update(table, found.into_iter().collect(), change, Shape::InPlace)
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
            let found = state.rows_where(id, table, filter)?;
            state.plan_update(table, found, change, Shape::InPlace)
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
            let found = state.rows_where(id, table, filter)?;
            state.plan_update(table, found, change, Shape::Pairs)
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
        self.run(table, |state, id, table| Ok(deletes(state.rows_where(id, table, filter)?)))
    }

    /// Makes everything durable and visible in one step.
    ///
    /// # Errors
    /// 3902 when a restore has ended the transaction.
    pub fn commit(mut self) -> SqlResult<CommitInfo> {
        self.open = false;
        let now = self.database.now();
        self.database.state().commit(self.id, now)
    }

    /// Leaves nothing of it.
    pub fn rollback(self) {}

    /// Runs one statement. Returns how many rows it was about.
    fn run(
        &mut self,
        table: &TableName,
        plan: impl FnOnce(&mut DatabaseState, TransactionId, TableId) -> SqlResult<Plan>,
    ) -> SqlResult<usize> {
        let mut state = self.database.state();
        if !state.open.contains_key(&self.id) {
            return Err(no_transaction());
        }
        let table = state.table_id(table)?;
        let plan = plan(&mut state, self.id, table)?;
        state.apply(self.id, table, plan.steps)?;
        Ok(plan.rows)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.open {
            self.database.state().open.remove(&self.id);
        }
    }
}

pub(crate) fn no_transaction() -> SqlError {
    SqlError::new(number::NO_TRANSACTION, "the request has no corresponding begin transaction")
}

impl DatabaseState {
    fn commit(&mut self, id: TransactionId, now: Timestamp) -> SqlResult<CommitInfo> {
        let open = self.open.remove(&id).ok_or_else(no_transaction)?;
        for (id, rows) in open.overlay {
            let table: &mut Table = self.table_mut(id)?;
            for (key, row) in rows {
                match row {
                    Some(row) => table.rows.insert(key, row),
                    None => table.rows.remove(&key),
                };
            }
        }
        let lsn = self.log.commit_lsn();
        if !open.changes.is_empty() {
            self.keep(lsn, now, &open.changes);
            self.append(LogRecord {
                lsn,
                time: now,
                local: self.zone.reading(now),
                event: LogEvent::Commit(open.changes),
            });
        }
        Ok(CommitInfo { lsn, time: now })
    }
}
