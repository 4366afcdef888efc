//! Typed tables: their columns by `column_id`, their key, and their committed rows in key order.

use std::{collections::BTreeMap, sync::Arc};

use cdc_core::{Column, ServerTime, SqlType, TableName, Timestamp};

use crate::{
    collation::{Collation, named},
    index::Index,
    key::{SortKey, heap_key, sort_key_of},
    row_history::RowHistory,
    sql_error::{SqlError, SqlResult, number},
    text_order::TextOrder,
    value::{Row, Value},
};

mod constraint;
mod definition;

pub(crate) use constraint::Identity;
pub use definition::{
    CheckDefinition, CheckRule, ColumnDefinition, DefaultDefinition, DefaultRule, Expression,
    TableDefinition,
};

static NULL: Value = Value::Null;

#[derive(Clone)]
pub(crate) struct TableColumn {
    pub(crate) column: Column,
    pub(crate) computed: Option<Expression>,
    pub(crate) dropped: bool,
    /// True when the server fills it: a computed column, a row's version, an identity.
    generated: bool,
    pub(crate) identity: Option<Identity>,
    pub(crate) default: Option<DefaultConstraint>,
    /// The text of a computed column's expression, when there is one.
    pub(crate) expression: Option<String>,
    pub(crate) persisted: bool,
    /// The columns that a computed column reads.
    pub(crate) reads: Vec<String>,
    collates: Collation,
}

impl TableColumn {
    /// The name of its collation, of a text.
    pub(crate) fn collation(&self) -> Option<&'static str> {
        use SqlType as T;
        let is_text = matches!(
            self.column.sql_type,
            T::Char(_) | T::VarChar(_) | T::NChar(_) | T::NVarChar(_) | T::Text | T::NText | T::Xml
        );
        is_text.then_some(self.collates.name)
    }

    /// A value as the column stores it.
    pub(crate) fn stored(&self, value: Value) -> SqlResult<Value> {
        value.stored_in(&self.column.sql_type, self.collates.code_page)
    }

    /// A value of the column as one of another type that it may get.
    pub(crate) fn converted(&self, value: &Value, to: &SqlType) -> SqlResult<Value> {
        value.converted_in(&self.column.sql_type, to, self.collates.code_page)
    }
}

/// The default of a column, with the number that its object id comes from.
#[derive(Clone, Debug)]
pub(crate) struct DefaultConstraint {
    pub(crate) object: u32,
    pub(crate) name: String,
    pub(crate) definition: DefaultDefinition,
}

/// A `CHECK` constraint, with the number that its object id comes from.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) object: u32,
    pub(crate) name: String,
    pub(crate) definition: CheckDefinition,
}

/// A table's state. The slot of a column in a row is its `column_id` less one, for ever: dropped
/// columns keep their slot and read NULL.
#[derive(Clone)]
pub(crate) struct Table {
    pub(crate) name: TableName,
    pub(crate) columns: Vec<TableColumn>,
    pub(crate) key: Vec<usize>,
    pub(crate) rows: BTreeMap<SortKey, Row>,
    pub(crate) collation: Collation,
    pub(crate) indexes: Vec<Index>,
    pub(crate) checks: Vec<Check>,
    pub(crate) history: RowHistory,
    pub(crate) created: ServerTime,
    pub(crate) modified: ServerTime,
    next_row: u64,
    /// True while every slot is a column that exists and that statements write.
    plain: bool,
}

/// One row, by column names.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    pub(crate) table: &'a Table,
    pub(crate) row: &'a [Value],
}

impl<'a> RowView<'a> {
    /// The value of a column; NULL for a column that does not exist.
    #[must_use]
    pub fn get(&self, column: &str) -> &'a Value {
        let slot = self.table.slot(column).ok();
        slot.and_then(|slot| self.row.get(slot)).unwrap_or(&NULL)
    }

    /// The number in an integer column; 0 for NULL.
    #[must_use]
    pub fn int(&self, column: &str) -> i64 {
        self.get(column).as_int().unwrap_or_default()
    }
}

/// The new image of a row that an update changes.
pub struct RowEdit<'a> {
    pub(crate) table: &'a Table,
    pub(crate) values: Vec<Value>,
}

impl RowEdit<'_> {
    /// The row as it stands.
    #[must_use]
    pub fn view(&self) -> RowView<'_> {
        RowView { table: self.table, row: &self.values }
    }

    /// Sets a column.
    ///
    /// # Errors
    /// 207 for an unknown column, 271 for a computed one, 8102 for an identity, and what its type
    /// refuses.
    pub fn set(&mut self, column: &str, value: impl Into<Value>) -> SqlResult<()> {
        let slot = self.table.slot(column)?;
        self.put(slot, value.into())
    }

    /// Sets a slot; none is the column's default.
    pub(crate) fn set_slot(
        &mut self,
        slot: usize,
        value: Option<Value>,
        now: Timestamp,
    ) -> SqlResult<()> {
        let value = match value {
            Some(value) => value,
            None => self.table.definition(slot)?.default_value(now)?,
        };
        self.put(slot, value)
    }

    fn put(&mut self, slot: usize, value: Value) -> SqlResult<()> {
        let definition = self.table.definition(slot)?;
        if definition.generated {
            return Err(definition.cannot_write());
        }
        let value = definition.stored(value)?;
        if value.is_null() && !definition.column.nullable {
            return Err(self.table.not_null(&definition.column, "UPDATE"));
        }
        put(&mut self.values, slot, value);
        Ok(())
    }
}

impl Table {
    /// A table without rows. `new_id` numbers the constraints that are objects of their own.
    pub(crate) fn new(
        definition: TableDefinition,
        collation: Collation,
        created: ServerTime,
        mut new_id: impl FnMut() -> u32,
    ) -> SqlResult<Self> {
        let mut table = Self {
            name: definition.name,
            columns: Vec::new(),
            key: Vec::new(),
            rows: BTreeMap::new(),
            collation,
            indexes: Vec::new(),
            checks: Vec::new(),
            history: RowHistory::default(),
            created,
            modified: created,
            next_row: 0,
            plain: true,
        };
        for column in definition.columns {
            table.add_column(column, &mut new_id)?;
        }
        if !definition.key.is_empty() {
            let columns: Vec<_> = definition.key.iter().map(String::as_str).collect();
            let mut index = crate::IndexDefinition::new(crate::IndexKind::PrimaryKey, &columns);
            index.name = definition.key_name;
            index.clustered = definition.key_clustered;
            table.add_index(index, &mut new_id)?;
        }
        for index in definition.indexes {
            table.add_index(index, &mut new_id)?;
        }
        for check in definition.checks {
            table.add_check(check, &mut new_id)?;
        }
        Ok(table)
    }

    /// Adds a column behind the others. A column that was dropped before gets a new id.
    pub(crate) fn add_column(
        &mut self,
        definition: ColumnDefinition,
        new_id: &mut impl FnMut() -> u32,
    ) -> SqlResult<&Column> {
        if self.slot(&definition.name).is_ok() {
            return Err(SqlError::new(
                number::DUPLICATE_COLUMN,
                format!(
                    "Column names in each table must be unique. Column name '{}' in table '{}' \
                     is specified more than once.",
                    definition.name, self.name
                ),
            ));
        }
        let id = i32::try_from(self.columns.len() + 1).unwrap_or(i32::MAX);
        let default = definition.default.map(|default| {
            let object = new_id();
            let made_up = || constraint::name_for("DF", &self.name, Some(&definition.name), object);
            let name = default.name.clone().unwrap_or_else(made_up);
            DefaultConstraint { object, name, definition: default }
        });
        let mut column = Column::new(definition.name, id, definition.sql_type, definition.nullable);
        column.computed = definition.computed.is_some();
        let identity = definition.identity.map(|(seed, step)| Identity::new(seed, step));
        let generated =
            column.computed || column.sql_type == SqlType::RowVersion || identity.is_some();
        self.plain &= !generated;
        let collates = match &definition.collation {
            Some(name) => named(name).ok_or_else(|| {
                SqlError::new(number::INVALID_COLLATION, format!("Invalid collation '{name}'."))
            })?,
            None => self.collation,
        };
        self.columns.push(TableColumn {
            column,
            computed: definition.computed,
            dropped: false,
            generated,
            identity,
            default,
            expression: definition.expression,
            persisted: definition.persisted,
            reads: definition.reads,
            collates,
        });
        let last = self.columns.len() - 1;
        self.definition(last).map(|column| &column.column)
    }

    /// Drops a column; its slot stays and its values must be gone.
    pub(crate) fn drop_slot(&mut self, slot: usize) {
        if let Some(column) = self.columns.get_mut(slot) {
            column.dropped = true;
            self.plain = false;
            let name = column.column.name.clone();
            self.checks.retain(|check| check.definition.of.as_deref() != Some(&*name));
        }
    }

    /// The slot of a column that exists.
    pub(crate) fn slot(&self, name: &str) -> SqlResult<usize> {
        self.columns
            .iter()
            .position(|column| !column.dropped && column.column.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| SqlError::invalid_column(name))
    }

    /// The slots of columns by their names.
    pub(crate) fn slots(&self, names: &[String]) -> SqlResult<Vec<usize>> {
        names.iter().map(|name| self.slot(name)).collect()
    }

    /// How the texts of a column compare.
    pub(crate) fn order_of(&self, slot: usize) -> TextOrder {
        let default = TextOrder { collation: self.collation, narrow: false };
        self.columns
            .get(slot)
            .map_or(default, |column| TextOrder::of(column.collates, &column.column.sql_type))
    }

    /// The values of the columns that exist, in `column_id` order.
    pub(crate) fn project(&self, row: &Row) -> Row {
        if row.len() == self.columns.len() && self.columns.iter().all(|column| !column.dropped) {
            return Arc::clone(row);
        }
        self.columns
            .iter()
            .enumerate()
            .filter(|(_, column)| !column.dropped)
            .map(|(slot, _)| row.get(slot).cloned().unwrap_or(Value::Null))
            .collect()
    }

    pub(crate) fn definition(&self, slot: usize) -> SqlResult<&TableColumn> {
        self.columns.get(slot).ok_or_else(|| SqlError::invalid_column("?"))
    }

    /// The columns that exist, in `column_id` order.
    pub(crate) fn live_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.dropped).map(|column| &column.column)
    }

    /// A new row from the values of the columns that are not generated, in `column_id` order.
    pub(crate) fn new_row(&mut self, values: Vec<Value>, version: &mut u64) -> SqlResult<Row> {
        if self.plain {
            return self.plain_row(values);
        }
        let mut values = values.into_iter();
        let mut row = Vec::with_capacity(self.columns.len());
        for slot in 0..self.columns.len() {
            if let Some(number) = self.next_identity(slot)? {
                row.push(number);
                continue;
            }
            let definition = self.definition(slot)?;
            if definition.dropped || definition.generated {
                row.push(Value::Null);
                continue;
            }
            let column = &definition.column;
            let value = values.next().ok_or_else(column_count)?;
            let value = definition.stored(value)?;
            if value.is_null() && !column.nullable {
                return Err(self.not_null(column, "INSERT"));
            }
            row.push(value);
        }
        if values.next().is_some() {
            return Err(column_count());
        }
        Ok(self.finished(row, version))
    }

    /// A new row of a table where every slot is written: most rows of most tables.
    fn plain_row(&self, mut values: Vec<Value>) -> SqlResult<Row> {
        if values.len() != self.columns.len() {
            return Err(column_count());
        }
        for (value, definition) in values.iter_mut().zip(&self.columns) {
            let column = &definition.column;
            if !value.is_stored_as(&column.sql_type) {
                *value = definition.stored(std::mem::replace(value, Value::Null))?;
            }
            if value.is_null() && !column.nullable {
                return Err(self.not_null(column, "INSERT"));
            }
        }
        Ok(values.into())
    }

    /// Fills what the server generates: computed columns and the row's version.
    pub(crate) fn finished(&self, mut row: Vec<Value>, version: &mut u64) -> Row {
        if self.plain {
            return row.into();
        }
        for (slot, definition) in self.columns.iter().enumerate() {
            let versioned = definition.column.sql_type == SqlType::RowVersion;
            if versioned && !definition.dropped && definition.computed.is_none() {
                *version += 1;
                put(&mut row, slot, Value::bytes(&version.to_be_bytes()));
            }
        }
        self.computed(row)
    }

    /// True when an update from `before` to `after` changes something that was written.
    pub(crate) fn differ(&self, before: &[Value], after: &[Value]) -> bool {
        self.columns.iter().enumerate().any(|(slot, definition)| {
            (!definition.generated || definition.identity.is_some())
                && before.get(slot).unwrap_or(&NULL) != after.get(slot).unwrap_or(&NULL)
        })
    }

    pub(crate) fn key_of(&self, row: &[Value]) -> SortKey {
        sort_key_of(
            self.key.iter().map(|slot| (row.get(*slot).unwrap_or(&NULL), self.order_of(*slot))),
        )
    }

    /// The sort key of key values as a statement gives them.
    pub(crate) fn key_from(&self, values: &[Value]) -> SqlResult<SortKey> {
        if values.len() != self.key.len() || values.is_empty() {
            return Err(column_count());
        }
        self.prefix_from(values)
    }

    /// The first bytes of the sort keys of rows whose leading key columns have these values.
    pub(crate) fn prefix_from(&self, values: &[Value]) -> SqlResult<SortKey> {
        let mut stored = Vec::with_capacity(values.len());
        for (value, slot) in values.iter().zip(&self.key) {
            stored.push(self.definition(*slot)?.stored(value.clone())?);
        }
        let collations = self.key.iter().map(|slot| self.order_of(*slot));
        Ok(sort_key_of(stored.iter().zip(collations)))
    }

    /// The sort key of a new row: its key's, or the next row number of a heap.
    pub(crate) fn place(&mut self, row: &[Value]) -> SortKey {
        if self.key.is_empty() {
            self.next_row += 1;
            return heap_key(self.next_row);
        }
        self.key_of(row)
    }

    /// Fills computed columns of every row again.
    pub(crate) fn recompute(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        let filled = rows.into_iter().map(|(key, row)| (key, self.computed(row.to_vec())));
        let filled = filled.collect();
        self.rows = filled;
    }

    fn computed(&self, mut row: Vec<Value>) -> Row {
        for (slot, definition) in self.columns.iter().enumerate() {
            let Some(expression) = definition.computed.as_ref().filter(|_| !definition.dropped)
            else {
                continue;
            };
            let value = expression(&RowView { table: self, row: &row });
            put(&mut row, slot, value);
        }
        row.into()
    }

    /// Rewrites one slot of every row.
    pub(crate) fn rewrite(
        &mut self,
        slot: usize,
        change: impl Fn(&Value) -> SqlResult<Value>,
    ) -> SqlResult<()> {
        let mut rewritten = Vec::with_capacity(self.rows.len());
        for row in self.rows.values() {
            rewritten.push(with_slot(row, slot, &change)?);
        }
        for (place, row) in self.rows.values_mut().zip(rewritten) {
            *place = row;
        }
        Ok(())
    }
}

/// `row` with one slot changed.
pub(crate) fn with_slot(
    row: &[Value],
    slot: usize,
    change: impl Fn(&Value) -> SqlResult<Value>,
) -> SqlResult<Row> {
    let value = change(row.get(slot).unwrap_or(&NULL))?;
    let mut values = row.to_vec();
    put(&mut values, slot, value);
    Ok(values.into())
}

/// Sets a slot of a row that may be shorter, having been written before the column was added.
fn put(row: &mut Vec<Value>, slot: usize, value: Value) {
    if row.len() <= slot {
        row.resize(slot + 1, Value::Null);
    }
    if let Some(cell) = row.get_mut(slot) {
        *cell = value;
    }
}

fn column_count() -> SqlError {
    SqlError::new(
        number::COLUMN_COUNT,
        "Column name or number of supplied values does not match table definition.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collation::DEFAULT_COLLATION;

    fn made(definition: TableDefinition) -> SqlResult<Table> {
        let mut ids = 0;
        Table::new(definition, DEFAULT_COLLATION, ServerTime::from_ticks(0), || {
            ids += 1;
            ids
        })
    }

    fn table() -> Table {
        let definition = TableDefinition::new("t")
            .column("id", SqlType::Int)
            .nullable("v", SqlType::Int)
            .with(ColumnDefinition::computed("twice", SqlType::Int, |row| {
                Value::Int(row.int("v") * 2)
            }))
            .nullable("version", SqlType::RowVersion)
            .primary_key(&["id"]);
        made(definition).expect("valid")
    }

    #[test]
    fn the_server_fills_generated_columns_itself() {
        let (mut table, mut version) = (table(), 6);
        let row = table.new_row(vec![1.into(), 21.into()], &mut version).expect("fits");
        let view = RowView { table: &table, row: &row };
        assert_eq!(view.get("TWICE"), &Value::Int(42));
        assert_eq!(view.get("version"), &Value::bytes(&7_u64.to_be_bytes()));
    }

    #[test]
    fn a_row_that_does_not_fit_is_refused() {
        let (mut table, mut version) = (table(), 0);
        for (values, number) in [
            (vec![Value::Int(1)], number::COLUMN_COUNT),
            (vec![1.into(), 2.into(), 3.into()], number::COLUMN_COUNT),
            (vec![Value::Null, 2.into()], number::NOT_NULL),
            (vec![1.into(), "x".into()], number::OPERAND_CLASH),
        ] {
            let error = table.new_row(values, &mut version).expect_err("refused");
            assert_eq!(error.number, number);
        }
    }

    #[test]
    fn a_key_column_takes_no_null() {
        let definition =
            TableDefinition::new("t").nullable("id", SqlType::Int).primary_key(&["id"]);
        assert!(made(definition).is_err());
    }
}
