//! Statements: which rows they are about, the operations on them in command and in log order, and
//! what they are refused for. A statement has its whole effect, or none.

use std::collections::HashSet;

use cdc_core::Lsn;

use crate::{
    database::DatabaseState,
    key::SortKey,
    log::{LogChange, RowChange, TableId},
    sql_error::{SqlError, SqlResult, number},
    table::{RowEdit, RowView},
    transaction::{TransactionId, no_transaction},
    value::{Row, Value},
};

/// One row operation of a statement. Operations stand in the order of their commands; `rank` is
/// their order in the log, where equal ranks share a record.
pub(crate) struct Step {
    pub(crate) key: SortKey,
    pub(crate) change: RowChange,
    pub(crate) rank: usize,
}

/// What a statement does: the rows it is about, and its operations on them.
pub(crate) struct Plan {
    pub(crate) rows: usize,
    pub(crate) steps: Vec<Step>,
}

/// How an update that leaves keys alone is logged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As an update.
    InPlace,
    /// As a delete and an insert, as MERGE and updates of unique columns may be.
    Pairs,
}

pub(crate) fn deletes(rows: Vec<(SortKey, Row)>) -> Plan {
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

    pub(crate) fn row_by_key(
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
    pub(crate) fn rows_where(
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

    pub(crate) fn plan_update(
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
    pub(crate) fn apply(
        &mut self,
        id: TransactionId,
        table: TableId,
        steps: Vec<Step>,
    ) -> SqlResult<()> {
        self.check_steps(id, table, &steps)?;
        // The archive keeps what no instance captures too.
        let logged = self.archive.is_some() || self.instances_of(table).next().is_some();
        let seqvals = if logged { self.seqvals(&steps) } else { Vec::new() };
        let open = self.open.get_mut(&id).ok_or_else(no_transaction)?;
        let rows = open.overlay.entry(table).or_default();
        for step in steps {
            let row = match &step.change {
                RowChange::Delete(_) => None,
                RowChange::Insert(row) | RowChange::Update(_, row) => Some(row.clone()),
            };
            rows.insert(step.key, row);
            if let Some(seqval) = seqvals.get(step.rank) {
                open.changes.push(LogChange { table, seqval: *seqval, change: step.change });
            }
        }
        Ok(())
    }

    /// A log record's LSN for each rank.
    fn seqvals(&mut self, steps: &[Step]) -> Vec<Lsn> {
        let ranks = steps.iter().map(|step| step.rank + 1).max().unwrap_or(0);
        (0..ranks).map(|_| self.log.sequence.next()).collect()
    }

    fn check_lock(&self, id: TransactionId, table: TableId, key: &SortKey) -> SqlResult<()> {
        let held = self.open.iter().any(|(other, open)| *other != id && open.holds(table, key));
        if held {
            return Err(SqlError::lock_timeout());
        }
        Ok(())
    }

    fn check_steps(&self, id: TransactionId, table: TableId, steps: &[Step]) -> SqlResult<()> {
        // In ascending order no key is there twice.
        let distinct =
            steps.iter().zip(steps.iter().skip(1)).all(|(step, next)| step.key < next.key);
        let mut removed = HashSet::new();
        let mut added = HashSet::new();
        for step in steps {
            self.check_lock(id, table, &step.key)?;
            match step.change {
                RowChange::Delete(_) if distinct => {}
                RowChange::Delete(_) => {
                    removed.insert(&step.key);
                }
                RowChange::Insert(_) => {
                    let taken = self.seen(id, table, &step.key).is_some();
                    let again = !distinct && !added.insert(&step.key);
                    if again || (taken && !removed.contains(&step.key)) {
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
