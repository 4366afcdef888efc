//! Statements: which rows they are about, the operations on them in command and in log order, and
//! what they are refused for. A statement has its whole effect, or none.

use std::collections::{BTreeMap, HashSet};

use cdc_core::{Lsn, Timestamp};

use crate::{
    database::DatabaseState,
    index::Index,
    key::SortKey,
    locks::{Refusal, Tried},
    log::{LogChange, RowChange, TableId},
    sql_error::SqlResult,
    table::{RowEdit, RowView},
    transaction::{InsertRequest, TransactionId, no_transaction},
    value::{Row, Value},
};

/// One row operation of a statement. Operations stand in the order of their commands; `rank` is
/// their order in the log, where equal ranks share a record.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) key: SortKey,
    /// Where the row was before, of the new image of an update.
    pub(crate) from: Option<SortKey>,
    pub(crate) change: RowChange,
    pub(crate) rank: usize,
}

/// What a statement does: the rows it is about, and its operations on them.
pub(crate) struct Plan {
    pub(crate) rows: usize,
    pub(crate) steps: Vec<Step>,
}

/// Keys of a unique index, and the row that each names now; none for one that is gone.
type KeyChanges = BTreeMap<SortKey, Option<SortKey>>;

/// How an update that leaves keys alone is logged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As an update.
    InPlace,
    /// As a delete and an insert, as MERGE and updates of unique columns may be.
    Pairs,
}

pub(crate) fn deletes(rows: Vec<(SortKey, Row)>) -> Plan {
    let step = |(rank, (key, row))| Step { key, from: None, change: RowChange::Delete(row), rank };
    Plan { rows: rows.len(), steps: rows.into_iter().enumerate().map(step).collect() }
}

impl DatabaseState {
    /// The row that a transaction sees under a key.
    pub(crate) fn seen(&self, id: TransactionId, table: TableId, key: &SortKey) -> Option<&Row> {
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

    pub(crate) fn row_by_key(
        &self,
        id: TransactionId,
        table: TableId,
        key: &[Value],
    ) -> Tried<Option<(SortKey, Row)>> {
        let key = self.table(table)?.key_from(key)?;
        self.check_write(id, table, &key)?;
        let row = self.seen(id, table, &key).cloned();
        Ok(row.map(|row| (key, row)))
    }

    /// The rows that a transaction sees and `filter` picks, in key order.
    pub(crate) fn rows_where(
        &self,
        id: TransactionId,
        table: TableId,
        filter: &impl Fn(&RowView<'_>) -> bool,
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

    /// The steps of an insert of rows as they stand.
    pub(crate) fn new_steps(
        &mut self,
        table: TableId,
        rows: Vec<Vec<Value>>,
    ) -> SqlResult<Vec<Step>> {
        let mut version = self.row_version;
        let definition = self.table_mut(table)?;
        let mut steps = Vec::with_capacity(rows.len());
        for (rank, values) in rows.into_iter().enumerate() {
            let row = definition.new_row(values, &mut version)?;
            definition.check(&row)?;
            let key = definition.place(&row);
            steps.push(Step { key, from: None, change: RowChange::Insert(row), rank });
        }
        self.row_version = version;
        Ok(steps)
    }

    /// The steps of an insert of rows with defaults, and the last identity value.
    pub(crate) fn requested_rows(
        &mut self,
        table: TableId,
        request: &InsertRequest,
        now: Timestamp,
    ) -> SqlResult<(Vec<Step>, Option<i64>)> {
        let mut version = self.row_version;
        let definition = self.table_mut(table)?;
        let slots = definition.insert_slots(request)?;
        let mut steps = Vec::with_capacity(request.rows.len());
        let mut identity = None;
        for (rank, values) in request.rows.iter().enumerate() {
            let (row, number) = definition.requested_row(&slots, values, &mut version, now)?;
            identity = number.or(identity);
            definition.check(&row)?;
            let key = definition.place(&row);
            steps.push(Step { key, from: None, change: RowChange::Insert(row), rank });
        }
        self.row_version = version;
        Ok((steps, identity))
    }

    pub(crate) fn plan_update(
        &mut self,
        table: TableId,
        rows: Vec<(SortKey, Row)>,
        change: &impl Fn(&mut RowEdit<'_>) -> SqlResult<()>,
        shape: Shape,
    ) -> Tried<Plan> {
        let definition = self.table(table)?;
        let mut sets = Vec::with_capacity(rows.len());
        for (key, before) in rows {
            let mut edit = RowEdit { table: definition, values: before.to_vec() };
            change(&mut edit)?;
            definition.check(&edit.values)?;
            sets.push((key, before, edit.values));
        }
        Ok(self.plan_changes(table, sets, shape)?)
    }

    /// The steps of an update: each row with its place and its new values.
    pub(crate) fn plan_changes(
        &mut self,
        table: TableId,
        rows: Vec<(SortKey, Row, Vec<Value>)>,
        shape: Shape,
    ) -> SqlResult<Plan> {
        let picked = rows.len();
        let mut version = self.row_version;
        let definition = self.table(table)?;
        let mut steps = Vec::with_capacity(rows.len());
        let mut moved = Vec::new();
        for (key, before, values) in rows {
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
                steps.push(Step { key: key.clone(), from: None, change, rank });
                let change = RowChange::Insert(after);
                let rank = rank + 1;
                steps.push(Step { from: Some(key.clone()), key, change, rank });
            } else {
                let change = RowChange::Update(before, after);
                steps.push(Step { from: Some(key.clone()), key, change, rank });
            }
        }
        self.row_version = version;
        steps.extend(deferred(steps.len(), moved));
        Ok(Plan { rows: picked, steps })
    }

    /// Applies a statement to its transaction: all of it, or nothing.
    pub(crate) fn apply(
        &mut self,
        id: TransactionId,
        table: TableId,
        steps: Vec<Step>,
    ) -> Tried<()> {
        self.check_steps(id, table, &steps)?;
        Ok(self.record(id, table, steps)?)
    }

    /// Records a statement that was checked.
    pub(crate) fn record(
        &mut self,
        id: TransactionId,
        table: TableId,
        steps: Vec<Step>,
    ) -> SqlResult<()> {
        // The archive keeps what no instance captures too.
        let logged = self.archive.is_some() || self.instances_of(table).next().is_some();
        let seqvals = if logged { self.seqvals(&steps) } else { Vec::new() };
        self.enter(id, table, steps, &seqvals)
    }

    /// Records a statement that leaves nothing in the log for capture.
    pub(crate) fn record_unlogged(
        &mut self,
        id: TransactionId,
        table: TableId,
        steps: Vec<Step>,
    ) -> SqlResult<()> {
        self.enter(id, table, steps, &[])
    }

    fn enter(
        &mut self,
        id: TransactionId,
        table: TableId,
        steps: Vec<Step>,
        seqvals: &[Lsn],
    ) -> SqlResult<()> {
        let keys = self.unique_changes(table, &steps)?;
        let open = self.open.get_mut(&id).ok_or_else(no_transaction)?;
        for (index, changes) in keys {
            let seen = open.unique.entry((table, index)).or_default();
            seen.extend(changes);
        }
        let rows = open.overlay.entry(table).or_default();
        for step in steps {
            let row = match &step.change {
                RowChange::Delete(_) => None,
                RowChange::Insert(row) | RowChange::Update(_, row) => Some(row.clone()),
            };
            if open.undo.is_kept() {
                let place = step.key.clone();
                let before = rows.insert(step.key, row);
                open.undo.push(table, place, before);
            } else {
                rows.insert(step.key, row);
            }
            if let Some(seqval) = seqvals.get(step.rank) {
                open.changes.push(LogChange { table, seqval: *seqval, change: step.change });
            }
        }
        Ok(())
    }

    /// What steps do to the keys of unique indexes, by index id.
    fn unique_changes(&self, table: TableId, steps: &[Step]) -> SqlResult<Vec<(i32, KeyChanges)>> {
        let definition = self.table(table)?;
        let changes = |index: &Index| {
            let mut keys = BTreeMap::new();
            for step in steps {
                if let Some(before) = step.change.before() {
                    keys.insert(index.key_of(before, definition), None);
                }
            }
            for step in steps {
                if let Some(after) = step.change.after() {
                    keys.insert(index.key_of(after, definition), Some(step.key.clone()));
                }
            }
            (index.id, keys)
        };
        Ok(definition.unique_indexes().map(changes).collect())
    }

    /// A log record's LSN for each rank.
    fn seqvals(&mut self, steps: &[Step]) -> Vec<Lsn> {
        let ranks = steps.iter().map(|step| step.rank + 1).max().unwrap_or(0);
        (0..ranks).map(|_| self.log.sequence.next()).collect()
    }

    /// Refuses steps over rows that others hold, and a key that would be there twice.
    pub(crate) fn check_steps(
        &self,
        id: TransactionId,
        table: TableId,
        steps: &[Step],
    ) -> Tried<()> {
        // In ascending order no key is there twice.
        let distinct =
            steps.iter().zip(steps.iter().skip(1)).all(|(step, next)| step.key < next.key);
        let mut removed = HashSet::new();
        let mut added = HashSet::new();
        for step in steps {
            self.check_write(id, table, &step.key)?;
            match step.change {
                RowChange::Delete(_) if distinct => {}
                RowChange::Delete(_) => {
                    removed.insert(&step.key);
                }
                RowChange::Insert(_) => {
                    let taken = self.seen(id, table, &step.key).is_some();
                    let again = !distinct && !added.insert(&step.key);
                    if again || (taken && !removed.contains(&step.key)) {
                        return Err(self.table(table)?.duplicate(None).into());
                    }
                }
                RowChange::Update(..) => {}
            }
        }
        self.check_unique(id, table, steps)
    }

    fn check_unique(&self, id: TransactionId, table: TableId, steps: &[Step]) -> Tried<()> {
        let definition = self.table(table)?;
        for index in definition.unique_indexes() {
            let mut removed = HashSet::new();
            let mut added = HashSet::new();
            for step in steps {
                if let Some(before) = step.change.before() {
                    removed.insert(index.key_of(before, definition));
                }
            }
            for step in steps {
                let Some(after) = step.change.after() else { continue };
                let key = index.key_of(after, definition);
                self.check_key_held(id, (table, index.id), &key)?;
                let taken = !removed.contains(&key) && self.key_taken(id, table, index, &key);
                if taken || !added.insert(key) {
                    return Err(definition.duplicate(Some(index)).into());
                }
            }
        }
        Ok(())
    }

    fn check_key_held(&self, id: TransactionId, index: (TableId, i32), key: &SortKey) -> Tried<()> {
        let holder = self.open.iter().find(|(other, open)| {
            **other != id && open.unique.get(&index).is_some_and(|keys| keys.contains_key(key))
        });
        match holder {
            Some((other, _)) => Err(Refusal::Held(*other)),
            None => Ok(()),
        }
    }

    fn key_taken(&self, id: TransactionId, table: TableId, index: &Index, key: &SortKey) -> bool {
        let own = self
            .open
            .get(&id)
            .and_then(|open| open.unique.get(&(table, index.id)))
            .and_then(|keys| keys.get(key));
        match own {
            Some(row) => row.is_some(),
            None => index.keys.contains_key(key),
        }
    }
}

/// The steps of rows whose keys change: all deletes, then all inserts. One row's two images share
/// a log record; of several rows the log holds the inserts first.
fn deferred(first: usize, moved: Vec<(SortKey, Row, SortKey, Row)>) -> Vec<Step> {
    let count = moved.len();
    let mut deletes = Vec::with_capacity(2 * count);
    let mut inserts = Vec::with_capacity(count);
    for (at, (old_key, before, new_key, after)) in moved.into_iter().enumerate() {
        let rank = if count == 1 { first } else { first + count + at };
        let from = Some(old_key.clone());
        deletes.push(Step { key: old_key, from: None, change: RowChange::Delete(before), rank });
        let change = RowChange::Insert(after);
        inserts.push(Step { key: new_key, from, change, rank: first + at });
    }
    deletes.extend(inserts);
    deletes
}
