//! The captured columns of a target, as the server has them.

use cdc_core::{Column, Error, ErrorKind, Result, TableSpec};

use crate::{column_type::ColumnType, name};

/// A captured column of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TargetColumn {
    /// The name, as the target spells it.
    pub(crate) name: String,
    /// The type, as the catalogue has it.
    pub(crate) column_type: ColumnType,
    /// True when the target takes no NULL there: a column of the key.
    pub(crate) required: bool,
}

/// The captured columns of a target, and which of them are its key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The columns, in the target's order.
    pub(crate) columns: Vec<TargetColumn>,
    /// The key's columns, as places in `columns`.
    pub(crate) key: Vec<usize>,
}

impl Layout {
    /// The layout that a new target gets.
    ///
    /// # Errors
    /// `Unsupported` for a type without a column form.
    pub(crate) fn new(spec: &TableSpec) -> Result<Self> {
        let mut layout = Self { columns: columns_of(&spec.name, &spec.columns)?, key: Vec::new() };
        layout.key = layout.places(&spec.key).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "a key column is not captured")
                .with("table", &spec.source)
        })?;
        for (place, target) in layout.columns.iter_mut().enumerate() {
            let captured = spec.columns.iter().find(|own| name::same(&own.name, &target.name));
            target.required =
                layout.key.contains(&place) && captured.is_some_and(|own| !own.nullable);
        }
        Ok(layout)
    }

    /// The layout of a target that is there, from its columns and the names of its key.
    ///
    /// # Errors
    /// `InvalidData` when a column of the key is gone.
    pub(crate) fn found(table: &str, columns: Vec<TargetColumn>, key: &[String]) -> Result<Self> {
        let mut layout = Self { columns, key: Vec::new() };
        layout.key = layout.places(key).ok_or_else(|| {
            Error::new(ErrorKind::InvalidData, "a column of the target's key is gone")
                .with("table", table)
                .with("key", key.join(", "))
                .remedy("restore the column, or copy the table into a new target")
        })?;
        Ok(layout)
    }

    /// The column of this name, in any case: its place.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        let exact = self.columns.iter().position(|column| column.name == name);
        exact.or_else(|| {
            let folded = name.to_lowercase();
            self.columns.iter().position(|column| column.name.to_lowercase() == folded)
        })
    }

    fn places(&self, names: &[String]) -> Option<Vec<usize>> {
        names.iter().map(|name| self.place(name)).collect()
    }

    /// The columns of the key.
    pub(crate) fn key_columns(&self) -> impl Iterator<Item = &TargetColumn> {
        self.key.iter().filter_map(|place| self.columns.get(*place))
    }

    /// The columns that the target lacks.
    ///
    /// # Errors
    /// `SchemaChanged` when a column is there with a type that cannot take the new one's values;
    /// `Unsupported` for a type without a column form.
    pub(crate) fn missing(&self, table: &str, columns: &[Column]) -> Result<Vec<TargetColumn>> {
        let mut lacking: Vec<Column> = Vec::new();
        for column in columns {
            match self.place(&column.name).and_then(|place| self.columns.get(place)) {
                Some(own) if own.column_type.takes(&column.sql_type) => {}
                Some(own) => {
                    return Err(Error::new(
                        ErrorKind::SchemaChanged,
                        "the target's column cannot take the captured type",
                    )
                    .with("table", table)
                    .with("column", &column.name)
                    .with("target_type", &own.column_type)
                    .with("captured_type", &column.sql_type)
                    .remedy(
                        "ALTER TABLE … ALTER COLUMN … TYPE to a wider type, or copy the table \
                             into a new target",
                    ));
                }
                None if lacking.iter().any(|other| name::same(&other.name, &column.name)) => {}
                None => lacking.push(column.clone()),
            }
        }
        columns_of(table, &lacking)
    }
}

/// Columns as a target has them, each taking NULL: a change row may lack what the table has.
fn columns_of(table: &str, columns: &[Column]) -> Result<Vec<TargetColumn>> {
    let column = |column: &Column| {
        let column_type = ColumnType::of(column).map_err(|error| error.with("table", table))?;
        Ok(TargetColumn { name: column.name.clone(), column_type, required: false })
    };
    columns.iter().map(column).collect()
}
