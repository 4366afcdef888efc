//! Typed tables: their columns by `column_id`, their key, and their committed rows in key order.

use std::{collections::BTreeMap, fmt, sync::Arc};

use cdc_core::{Column, SqlType, TableName};

use crate::{
    key::{Collation, SortKey, heap_key, sort_key},
    sql_error::{SqlError, SqlResult, number},
    value::{Row, Value},
};

/// The expression of a computed column.
pub type Expression = Arc<dyn Fn(&RowView<'_>) -> Value + Send + Sync>;

static NULL: Value = Value::Null;

/// A column as `CREATE TABLE` or `ALTER TABLE ADD` declares it.
#[derive(Clone)]
pub struct ColumnDefinition {
    /// The name.
    pub name: String,
    /// The type.
    pub sql_type: SqlType,
    /// True when it takes NULL.
    pub nullable: bool,
    /// The expression of a computed column.
    pub computed: Option<Expression>,
}

impl ColumnDefinition {
    /// A stored column that takes no NULL.
    #[must_use]
    pub fn new(name: &str, sql_type: SqlType) -> Self {
        Self { name: name.into(), sql_type, nullable: false, computed: None }
    }

    /// A stored column that takes NULL.
    #[must_use]
    pub fn nullable(name: &str, sql_type: SqlType) -> Self {
        Self { nullable: true, ..Self::new(name, sql_type) }
    }

    /// A computed column.
    #[must_use]
    pub fn computed(
        name: &str,
        sql_type: SqlType,
        expression: impl Fn(&RowView<'_>) -> Value + Send + Sync + 'static,
    ) -> Self {
        Self { computed: Some(Arc::new(expression)), ..Self::nullable(name, sql_type) }
    }
}

impl fmt::Debug for ColumnDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnDefinition")
            .field("name", &self.name)
            .field("sql_type", &self.sql_type)
            .field("nullable", &self.nullable)
            .field("computed", &self.computed.is_some())
            .finish()
    }
}

/// A table as `CREATE TABLE` declares it.
#[derive(Clone, Debug)]
pub struct TableDefinition {
    /// The name.
    pub name: TableName,
    /// The columns; their `column_id`s count from 1.
    pub columns: Vec<ColumnDefinition>,
    /// The primary key's columns; empty for a heap.
    pub key: Vec<String>,
}

impl TableDefinition {
    /// A table without columns yet, in schema `dbo`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self::named(TableName::new("dbo", name))
    }

    /// A table without columns yet.
    #[must_use]
    pub const fn named(name: TableName) -> Self {
        Self { name, columns: Vec::new(), key: Vec::new() }
    }

    /// Adds a column.
    #[must_use]
    pub fn with(mut self, column: ColumnDefinition) -> Self {
        self.columns.push(column);
        self
    }

    /// Adds a stored column that takes no NULL.
    #[must_use]
    pub fn column(self, name: &str, sql_type: SqlType) -> Self {
        self.with(ColumnDefinition::new(name, sql_type))
    }

    /// Adds a stored column that takes NULL.
    #[must_use]
    pub fn nullable(self, name: &str, sql_type: SqlType) -> Self {
        self.with(ColumnDefinition::nullable(name, sql_type))
    }

    /// Sets the primary key.
    #[must_use]
    pub fn primary_key(mut self, columns: &[&str]) -> Self {
        self.key = columns.iter().map(|name| (*name).into()).collect();
        self
    }
}

#[derive(Clone)]
pub(crate) struct TableColumn {
    pub(crate) column: Column,
    pub(crate) computed: Option<Expression>,
    pub(crate) dropped: bool,
    /// True when the server fills it: a computed column or a row's version.
    generated: bool,
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
    /// 207 for an unknown column, 271 for a computed one, and what its type refuses.
    pub fn set(&mut self, column: &str, value: impl Into<Value>) -> SqlResult<()> {
        let slot = self.table.slot(column)?;
        let definition = self.table.definition(slot)?;
        if definition.generated {
            return Err(SqlError::new(
                number::COMPUTED_COLUMN,
                format!("column {column} cannot be modified because it is computed"),
            ));
        }
        let value = value.into().stored(&definition.column.sql_type)?;
        if value.is_null() && !definition.column.nullable {
            return Err(not_null(&definition.column));
        }
        put(&mut self.values, slot, value);
        Ok(())
    }
}

impl Table {
    pub(crate) fn new(definition: TableDefinition, collation: Collation) -> SqlResult<Self> {
        let mut table = Self {
            name: definition.name,
            columns: Vec::new(),
            key: Vec::new(),
            rows: BTreeMap::new(),
            collation,
            next_row: 0,
            plain: true,
        };
        for column in definition.columns {
            table.add_column(column)?;
        }
        for name in &definition.key {
            let slot = table.slot(name)?;
            if table.definition(slot)?.column.nullable {
                return Err(not_null(&table.definition(slot)?.column));
            }
            table.key.push(slot);
        }
        Ok(table)
    }

    /// Adds a column behind the others. A column that was dropped before gets a new id.
    pub(crate) fn add_column(&mut self, definition: ColumnDefinition) -> SqlResult<&Column> {
        if self.slot(&definition.name).is_ok() {
            return Err(SqlError::new(
                number::DUPLICATE_COLUMN,
                format!("column {} exists already", definition.name),
            ));
        }
        let id = i32::try_from(self.columns.len() + 1).unwrap_or(i32::MAX);
        let mut column = Column::new(definition.name, id, definition.sql_type, definition.nullable);
        column.computed = definition.computed.is_some();
        let generated = column.computed || column.sql_type == SqlType::RowVersion;
        self.plain &= !generated;
        self.columns.push(TableColumn {
            column,
            computed: definition.computed,
            dropped: false,
            generated,
        });
        let last = self.columns.len() - 1;
        self.definition(last).map(|column| &column.column)
    }

    /// Drops a column; its slot stays and its values must be gone.
    pub(crate) fn drop_slot(&mut self, slot: usize) {
        if let Some(column) = self.columns.get_mut(slot) {
            column.dropped = true;
            self.plain = false;
        }
    }

    /// The slot of a column that exists.
    pub(crate) fn slot(&self, name: &str) -> SqlResult<usize> {
        self.columns
            .iter()
            .position(|column| !column.dropped && column.column.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| SqlError::invalid_column(name))
    }

    pub(crate) fn definition(&self, slot: usize) -> SqlResult<&TableColumn> {
        self.columns.get(slot).ok_or_else(|| SqlError::invalid_column("?"))
    }

    /// The columns that exist, in `column_id` order.
    pub(crate) fn live_columns(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.dropped).map(|column| &column.column)
    }

    /// A new row from the values of the columns that are not generated, in `column_id` order.
    pub(crate) fn new_row(&self, values: Vec<Value>, version: &mut u64) -> SqlResult<Row> {
        if self.plain {
            return self.plain_row(values);
        }
        let mut values = values.into_iter();
        let mut row = Vec::with_capacity(self.columns.len());
        for definition in &self.columns {
            if definition.dropped || definition.generated {
                row.push(Value::Null);
                continue;
            }
            let column = &definition.column;
            let value = values.next().ok_or_else(column_count)?;
            let value = value.stored(&column.sql_type)?;
            if value.is_null() && !column.nullable {
                return Err(not_null(column));
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
                *value = std::mem::replace(value, Value::Null).stored(&column.sql_type)?;
            }
            if value.is_null() && !column.nullable {
                return Err(not_null(column));
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
            if definition.generated && !definition.dropped && definition.computed.is_none() {
                *version += 1;
                put(&mut row, slot, Value::bytes(&version.to_be_bytes()));
            }
        }
        self.computed(row)
    }

    /// True when an update from `before` to `after` changes something that was written.
    pub(crate) fn differ(&self, before: &[Value], after: &[Value]) -> bool {
        self.columns.iter().enumerate().any(|(slot, definition)| {
            !definition.generated
                && before.get(slot).unwrap_or(&NULL) != after.get(slot).unwrap_or(&NULL)
        })
    }

    pub(crate) fn key_of(&self, row: &[Value]) -> SortKey {
        sort_key(self.key.iter().map(|slot| row.get(*slot).unwrap_or(&NULL)), self.collation)
    }

    /// The sort key of key values as a statement gives them.
    pub(crate) fn key_from(&self, values: &[Value]) -> SqlResult<SortKey> {
        if values.len() != self.key.len() || values.is_empty() {
            return Err(column_count());
        }
        let mut stored = Vec::with_capacity(values.len());
        for (value, slot) in values.iter().zip(&self.key) {
            let sql_type = &self.definition(*slot)?.column.sql_type;
            stored.push(value.clone().stored(sql_type)?);
        }
        Ok(sort_key(&stored, self.collation))
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
        "number of supplied values does not match the table definition",
    )
}

fn not_null(column: &Column) -> SqlError {
    SqlError::new(number::NOT_NULL, format!("column {} does not allow nulls", column.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let definition = TableDefinition::new("t")
            .column("id", SqlType::Int)
            .nullable("v", SqlType::Int)
            .with(ColumnDefinition::computed("twice", SqlType::Int, |row| {
                Value::Int(row.int("v") * 2)
            }))
            .nullable("version", SqlType::RowVersion)
            .primary_key(&["id"]);
        Table::new(definition, Collation::default()).expect("valid")
    }

    #[test]
    fn the_server_fills_generated_columns_itself() {
        let (table, mut version) = (table(), 6);
        let row = table.new_row(vec![1.into(), 21.into()], &mut version).expect("fits");
        let view = RowView { table: &table, row: &row };
        assert_eq!(view.get("TWICE"), &Value::Int(42));
        assert_eq!(view.get("version"), &Value::bytes(&7_u64.to_be_bytes()));
    }

    #[test]
    fn a_row_that_does_not_fit_is_refused() {
        let (table, mut version) = (table(), 0);
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
        assert!(Table::new(definition, Collation::default()).is_err());
    }
}
