//! Statements as a session hands them over: rows to insert with their defaults, and rows to
//! change or remove by their location.

use std::{collections::BTreeMap, fmt};

use cdc_core::TableName;

use crate::{
    database::DatabaseState,
    key::SortKey,
    locks::{Refusal, Tried},
    log::{RowChange, TableId},
    sql_error::{SqlError, SqlResult, number},
    statement::{Plan, Shape, Step, deletes},
    table::RowEdit,
    transaction::{Transaction, TransactionId},
    value::{Row, Value},
};

/// Where a row of a table is. Two rows of a table never have the same; a change of the row's key
/// moves it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub(crate) SortKey);

impl fmt::Debug for RowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowId")
    }
}

impl RowId {
    /// The location as a value of a hidden column.
    #[must_use]
    pub fn to_value(&self) -> Value {
        Value::Bytes(self.0.clone())
    }

    /// The location that such a value names.
    #[must_use]
    pub fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(Self(bytes.clone())),
            _ => None,
        }
    }
}

/// Rows to insert.
#[derive(Clone, Debug, Default)]
pub struct InsertRequest {
    /// The columns that have values; none for every column that statements may write.
    pub columns: Option<Vec<String>>,
    /// The rows: one value a column; none is the column's default.
    pub rows: Vec<Vec<Option<Value>>>,
    /// True when the identity column is given (`SET IDENTITY_INSERT ON`).
    pub identity_insert: bool,
}

/// What an insert did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inserted {
    /// The new rows: the columns that exist, in `column_id` order.
    pub rows: Vec<Row>,
    /// The last identity value, for `SCOPE_IDENTITY()`.
    pub identity: Option<i64>,
}

/// Rows to update.
#[derive(Clone, Debug, Default)]
pub struct UpdateRequest {
    /// The columns to set.
    pub columns: Vec<String>,
    /// The rows, and the new values of those columns; none is the column's default.
    pub rows: Vec<(RowId, Vec<Option<Value>>)>,
    /// True to log each row as a delete and an insert even where its key stays.
    pub as_pairs: bool,
}

impl Transaction {
    /// Inserts rows in one statement.
    ///
    /// # Errors
    /// 544 and 545 for an identity column, 271, 273, 515, 547, 2601, 2627, 213, 207, 208, 1222,
    /// 1205, and what the columns' types refuse. The statement has left nothing.
    pub fn insert_rows(
        &mut self,
        table: &TableName,
        request: &InsertRequest,
    ) -> SqlResult<Inserted> {
        let id = self.id;
        let now = self.database.now();
        let mut made: Option<(Vec<Step>, Option<i64>)> = None;
        self.database.attempt(Some(id), &self.waiting, |state| {
            state.require_open(id)?;
            let table = state.table_id(table)?;
            if made.is_none() {
                made = Some(state.requested_rows(table, request, now)?);
            }
            let planned = made.as_ref().map_or(&[][..], |(steps, _)| steps);
            state.check_steps(id, table, planned)?;
            let (steps, identity) = made.take().unwrap_or_default();
            let rows = state.images(table, &steps, |change| match change {
                RowChange::Insert(row) => Some(row),
                _ => None,
            })?;
            state.record(id, table, steps)?;
            Ok(Inserted { rows, identity })
        })
    }

    /// Updates rows in one statement. Returns each row before and after, in the request's order.
    ///
    /// # Errors
    /// As for [`Transaction::insert_rows`]; 8102 for an identity column; 3960 under snapshot
    /// isolation for a row that was changed since, which ends the transaction.
    pub fn update_rows(
        &mut self,
        table: &TableName,
        request: &UpdateRequest,
    ) -> SqlResult<Vec<(Row, Row)>> {
        let id = self.id;
        let now = self.database.now();
        let shape = if request.as_pairs { Shape::Pairs } else { Shape::InPlace };
        self.database.attempt(Some(id), &self.waiting, |state| {
            state.require_open(id)?;
            let table = state.table_id(table)?;
            let keys = request.rows.iter().map(|(row, _)| &row.0);
            let found = state.rows_at(id, table, keys)?;
            let slots = state.table(table)?.slots(&request.columns)?;
            let mut sets = Vec::with_capacity(found.len());
            let mut images = Vec::with_capacity(found.len());
            for ((key, row), (_, values)) in found.into_iter().zip(&request.rows) {
                let definition = state.table(table)?;
                let mut edit = RowEdit { table: definition, values: row.to_vec() };
                for (slot, value) in slots.iter().zip(values) {
                    edit.set_slot(*slot, value.clone(), now)?;
                }
                definition.check(&edit.values)?;
                images.push((definition.project(&row), key.clone()));
                sets.push((key, row, edit.values));
            }
            let Plan { steps, .. } = state.plan_changes(table, sets, shape)?;
            let after = state.after_images(table, images, &steps)?;
            state.apply(id, table, steps)?;
            Ok(after)
        })
    }

    /// Removes rows in one statement. Returns them, in the request's order.
    ///
    /// # Errors
    /// As for [`Transaction::update_rows`].
    pub fn delete_rows(&mut self, table: &TableName, rows: &[RowId]) -> SqlResult<Vec<Row>> {
        let id = self.id;
        self.database.attempt(Some(id), &self.waiting, |state| {
            state.require_open(id)?;
            let table = state.table_id(table)?;
            let found = state.rows_at(id, table, rows.iter().map(|row| &row.0))?;
            let definition = state.table(table)?;
            let images = found.iter().map(|(_, row)| definition.project(row)).collect();
            let plan = deletes(found);
            state.apply(id, table, plan.steps)?;
            Ok(images)
        })
    }

    /// Removes every row without logging rows, and starts identity values again. The table is
    /// locked to the end of the transaction.
    ///
    /// # Errors
    /// 4711 for a captured table, 208, 1222, 1205.
    pub fn truncate(&mut self, table: &TableName) -> SqlResult<()> {
        let who = self.id;
        self.database.attempt(Some(who), &self.waiting, |state| {
            state.require_open(who)?;
            let id = state.table_id(table)?;
            state.refuse_truncate(id)?;
            state.lock_table(who, id, crate::locks::TableLock::Exclusive)?;
            let found = state.rows_where(who, id, &|_| true)?;
            let steps = deletes(found).steps;
            state.check_steps(who, id, &steps)?;
            state.record_unlogged(who, id, steps)?;
            state.table_mut(id)?.restart_identity();
            Ok(())
        })
    }
}

impl DatabaseState {
    pub(crate) fn require_open(&self, id: TransactionId) -> Tried<()> {
        if self.open.contains_key(&id) {
            return Ok(());
        }
        Err(super::no_transaction().into())
    }

    /// The rows that a transaction may change, by their places. A row that is gone was removed
    /// since the statement found it, which under snapshot isolation is a conflict.
    fn rows_at<'a>(
        &mut self,
        id: TransactionId,
        table: TableId,
        keys: impl Iterator<Item = &'a SortKey>,
    ) -> Tried<Vec<(SortKey, Row)>> {
        let mut found = Vec::new();
        for key in keys {
            self.check_write(id, table, key)?;
            self.check_conflict(id, table, key)?;
            match self.seen(id, table, key) {
                Some(row) => found.push((key.clone(), row.clone())),
                None => {
                    return Err(Refusal::Failed(SqlError::new(
                        number::ROW_MOVED,
                        "Could not continue scan because a row was moved or removed meanwhile.",
                    )));
                }
            }
        }
        Ok(found)
    }

    fn images(
        &self,
        table: TableId,
        steps: &[Step],
        pick: impl Fn(&RowChange) -> Option<&Row>,
    ) -> SqlResult<Vec<Row>> {
        let definition = self.table(table)?;
        Ok(steps
            .iter()
            .filter_map(|step| pick(&step.change))
            .map(|row| definition.project(row))
            .collect())
    }

    /// Each row before and after. Rows that an update leaves as they were have no step.
    fn after_images(
        &self,
        table: TableId,
        before: Vec<(Row, SortKey)>,
        steps: &[Step],
    ) -> SqlResult<Vec<(Row, Row)>> {
        let definition = self.table(table)?;
        let mut updated = BTreeMap::new();
        for step in steps {
            if let (Some(from), Some(row)) = (&step.from, step.change.after()) {
                updated.insert(from, row);
            }
        }
        let pair = |(before, key): (Row, SortKey)| {
            let after = updated.get(&key).map(|row| definition.project(row));
            let after = after.unwrap_or_else(|| before.clone());
            (before, after)
        };
        Ok(before.into_iter().map(pair).collect())
    }
}
