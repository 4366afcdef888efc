//! Transactions: statements that see their own effects, hold their rows, and leave nothing behind
//! when rolled back.

use std::collections::{BTreeMap, HashSet};

use cdc_core::{Lsn, TableName, Timestamp};

use crate::{
    database::{DatabaseState, FakeDatabase},
    key::SortKey,
    log::{LogChange, LogEvent, LogRecord, RowChange, TableId},
    sql_error::{SqlError, SqlResult, number},
    table::{RowEdit, RowView, Table},
    value::{Row, Value},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TransactionId(u32);

/// What an open transaction has done: invisible to others until it commits.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenTransaction {
    changes: Vec<LogChange>,
    // The rows it wrote; None for a row it removed.
    overlay: BTreeMap<TableId, BTreeMap<SortKey, Option<Row>>>,
}

impl OpenTransaction {
    pub(crate) fn wrote(&self, table: TableId) -> bool {
        self.overlay.get(&table).is_some_and(|rows| !rows.is_empty())
    }

    fn holds(&self, table: TableId, key: &SortKey) -> bool {
        self.overlay.get(&table).is_some_and(|rows| rows.contains_key(key))
    }
}

/// One row operation of a statement. Operations stand in the order of their commands; `rank` is
/// their order in the log, where equal ranks share a record.
struct Step {
    key: SortKey,
    change: RowChange,
    rank: usize,
}

/// What a statement does: the rows it is about, and its operations on them.
struct Plan {
    rows: usize,
    steps: Vec<Step>,
}

/// How an update that leaves keys alone is logged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// As an update.
    InPlace,
    /// As a delete and an insert, as MERGE and updates of unique columns may be.
    Pairs,
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

fn no_transaction() -> SqlError {
    SqlError::new(number::NO_TRANSACTION, "the request has no corresponding begin transaction")
}

fn deletes(rows: Vec<(SortKey, Row)>) -> Plan {
    let step = |(rank, (key, row))| Step { key, change: RowChange::Delete(row), rank };
    Plan { rows: rows.len(), steps: rows.into_iter().enumerate().map(step).collect() }
}

impl DatabaseState {
    /// The row that a transaction sees under a key.
    fn seen(&self, id: TransactionId, table: TableId, key: &SortKey) -> Option<&Row> {
        let own = self
            .open
            .get(&id)
            .and_then(|open| open.overlay.get(&table))
            .and_then(|rows| rows.get(key));
        match own {
            Some(row) => row.as_ref(),
            None => self.tables.get(&table)?.rows.get(key),
        }
    }

    fn row_by_key(
        &self,
        id: TransactionId,
        table: TableId,
        key: &[Value],
    ) -> SqlResult<Option<(SortKey, Row)>> {
        let key = self.table(table)?.key_from(key)?;
        self.check_lock(id, table, &key)?;
        let row = self.seen(id, table, &key).cloned();
        Ok(row.map(|row| (key, row)))
    }

    /// The rows that a transaction sees and `filter` picks, in key order.
    fn rows_where(
        &self,
        id: TransactionId,
        table: TableId,
        filter: impl Fn(&RowView<'_>) -> bool,
    ) -> SqlResult<Vec<(SortKey, Row)>> {
        let definition = self.table(table)?;
        let picks = |row: &Row| filter(&RowView { table: definition, row });
        let own = self.open.get(&id).and_then(|open| open.overlay.get(&table));
        let mut found: Vec<_> = definition
            .rows
            .iter()
            .filter(|(key, row)| own.is_none_or(|own| !own.contains_key(*key)) && picks(row))
            .map(|(key, row)| (key.clone(), row.clone()))
            .collect();
        let committed = found.len();
        for (key, row) in own.into_iter().flatten() {
            if let Some(row) = row.as_ref().filter(|row| picks(row)) {
                found.push((key.clone(), row.clone()));
            }
        }
        if found.len() > committed {
            found.sort_by(|a, b| a.0.cmp(&b.0));
        }
        Ok(found)
    }

    fn plan_update(
        &mut self,
        table: TableId,
        rows: Vec<(SortKey, Row)>,
        change: impl Fn(&mut RowEdit<'_>) -> SqlResult<()>,
        shape: Shape,
    ) -> SqlResult<Plan> {
        let picked = rows.len();
        let mut version = self.row_version;
        let definition = self.table(table)?;
        let mut steps = Vec::with_capacity(rows.len());
        let mut moved = Vec::new();
        for (key, before) in rows {
            let mut edit = RowEdit { table: definition, values: before.to_vec() };
            change(&mut edit)?;
            let values = edit.values;
            if !definition.differ(&before, &values) {
                continue;
            }
            let new_key =
                if definition.key.is_empty() { key.clone() } else { definition.key_of(&values) };
            let after = definition.finished(values, &mut version);
            let rank = steps.len();
            if new_key != key {
                moved.push((key, before, new_key, after));
            } else if shape == Shape::Pairs {
                let change = RowChange::Delete(before);
                steps.push(Step { key: key.clone(), change, rank });
                let change = RowChange::Insert(after);
                let rank = rank + 1;
                steps.push(Step { key, change, rank });
            } else {
                let change = RowChange::Update(before, after);
                steps.push(Step { key, change, rank });
            }
        }
        self.row_version = version;
        steps.extend(deferred(steps.len(), moved));
        Ok(Plan { rows: picked, steps })
    }

    /// Applies a statement to its transaction: all of it, or nothing.
    fn apply(&mut self, id: TransactionId, table: TableId, steps: Vec<Step>) -> SqlResult<()> {
        self.check_steps(id, table, &steps)?;
        let captured = self.instances_of(table).next().is_some();
        let seqvals = if captured { self.seqvals(&steps) } else { BTreeMap::new() };
        let open = self.open.get_mut(&id).ok_or_else(no_transaction)?;
        let rows = open.overlay.entry(table).or_default();
        for step in steps {
            let row = match &step.change {
                RowChange::Delete(_) => None,
                RowChange::Insert(row) | RowChange::Update(_, row) => Some(row.clone()),
            };
            rows.insert(step.key, row);
            if let Some(seqval) = seqvals.get(&step.rank) {
                open.changes.push(LogChange { table, seqval: *seqval, change: step.change });
            }
        }
        Ok(())
    }

    /// A log record's LSN for each rank.
    fn seqvals(&mut self, steps: &[Step]) -> BTreeMap<usize, Lsn> {
        let mut ranks: BTreeMap<_, _> = steps.iter().map(|step| (step.rank, Lsn::ZERO)).collect();
        for lsn in ranks.values_mut() {
            *lsn = self.log.sequence.next();
        }
        ranks
    }

    fn check_lock(&self, id: TransactionId, table: TableId, key: &SortKey) -> SqlResult<()> {
        let held = self.open.iter().any(|(other, open)| *other != id && open.holds(table, key));
        if held {
            return Err(SqlError::lock_timeout());
        }
        Ok(())
    }

    fn check_steps(&self, id: TransactionId, table: TableId, steps: &[Step]) -> SqlResult<()> {
        let mut removed = HashSet::new();
        let mut added = HashSet::new();
        for step in steps {
            self.check_lock(id, table, &step.key)?;
            match step.change {
                RowChange::Delete(_) => {
                    removed.insert(&step.key);
                }
                RowChange::Insert(_) => {
                    let taken = self.seen(id, table, &step.key).is_some();
                    if !added.insert(&step.key) || (taken && !removed.contains(&step.key)) {
                        return Err(SqlError::new(
                            number::DUPLICATE_KEY,
                            format!(
                                "violation of primary key constraint of {}",
                                self.table(table)?.name
                            ),
                        ));
                    }
                }
                RowChange::Update(..) => {}
            }
        }
        Ok(())
    }

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

/// The steps of rows whose keys change: all deletes, then all inserts. One row's two images share
/// a log record; of several rows the log holds the inserts first.
fn deferred(first: usize, moved: Vec<(SortKey, Row, SortKey, Row)>) -> Vec<Step> {
    let count = moved.len();
    let mut deletes = Vec::with_capacity(2 * count);
    let mut inserts = Vec::with_capacity(count);
    for (at, (old_key, before, new_key, after)) in moved.into_iter().enumerate() {
        let delete_rank = if count == 1 { first } else { first + count + at };
        deletes.push(Step { key: old_key, change: RowChange::Delete(before), rank: delete_rank });
        inserts.push(Step { key: new_key, change: RowChange::Insert(after), rank: first + at });
    }
    deletes.extend(inserts);
    deletes
}
