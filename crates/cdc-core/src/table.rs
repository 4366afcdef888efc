//! Tables, their columns and their capture instances, as a source describes them.

use std::{fmt, sync::Arc};

use arrow_schema::{DataType, Field};

use crate::{
    error::{Error, ErrorKind, Result},
    position::Position,
    sql_type::{Length, SqlType},
};

/// A table's name at the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The schema, `dbo` for instance.
    pub schema: String,
    /// The table inside the schema.
    pub name: String,
}

impl TableName {
    /// A name from its two parts.
    #[must_use]
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// The name of a capture instance. It says nothing about the table behind it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceName(Arc<str>);

impl InstanceName {
    /// A capture instance's name, as the source spells it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for InstanceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a NULL in a change row says about the row at the source.
///
/// An unknown value is never written over a known one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NullMeaning {
    /// The value is NULL.
    Null,
    /// Nothing, in every change row: a computed column.
    Unknown,
    /// Nothing in before images (operations 1 and 3): `text`, `ntext`, `image`.
    UnknownBefore,
    /// Nothing in an update's before image (operation 3) unless the update changed the column:
    /// the `(max)` types.
    UnknownUnchanged,
}

/// One column of a table as a capture instance holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name, as the source spells it.
    pub name: String,
    /// The table's `column_id`. A column dropped and added again has a new one.
    pub id: i32,
    /// The declared type.
    pub sql_type: SqlType,
    /// True when the table allows NULL.
    pub nullable: bool,
    /// True for a computed column, which change rows never fill.
    pub computed: bool,
}

impl Column {
    /// A stored column.
    #[must_use]
    pub fn new(name: impl Into<String>, id: i32, sql_type: SqlType, nullable: bool) -> Self {
        Self { name: name.into(), id, sql_type, nullable, computed: false }
    }

    /// What a NULL in a change row's cell of this column says.
    #[must_use]
    pub const fn null_meaning(&self) -> NullMeaning {
        if self.computed {
            return NullMeaning::Unknown;
        }
        match &self.sql_type {
            SqlType::Text | SqlType::NText | SqlType::Image => NullMeaning::UnknownBefore,
            SqlType::VarChar(Length::Max)
            | SqlType::NVarChar(Length::Max)
            | SqlType::VarBinary(Length::Max)
            | SqlType::Xml => NullMeaning::UnknownUnchanged,
            _ => NullMeaning::Null,
        }
    }

    /// The Arrow field of the column in record batches: always nullable, since change rows may
    /// lack a value that the table has.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] naming column and type when the type has no column form.
    pub fn field(&self) -> Result<Field> {
        Ok(Field::new(&self.name, self.data_type()?, true))
    }

    fn data_type(&self) -> Result<DataType> {
        self.sql_type.arrow().map_err(|error| error.with("column", &self.name))
    }
}

/// A capture instance: SQL Server's name for one captured column list of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureInstance {
    /// The instance's name.
    pub name: InstanceName,
    /// The table it captures.
    pub table: TableName,
    /// The first position it holds changes from: the commit that enabled it. Known as soon as it
    /// is listed, even before capture has reached it.
    pub start: Position,
    /// The captured columns, in captured order.
    pub columns: Vec<Column>,
    /// The columns of the unique index named when it was enabled; empty when there is none.
    pub key: Vec<String>,
}

impl CaptureInstance {
    /// The captured column of this name: the exact spelling, or else the only one that differs
    /// in case alone.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name).or_else(|| {
            let mut alike = self
                .columns
                .iter()
                .filter(|column| column.name.to_lowercase() == name.to_lowercase());
            alike.next().filter(|_| alike.next().is_none())
        })
    }
}

/// How a configuration points at a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TableRef {
    /// By the table's name.
    Table(TableName),
    /// By the name of one of its capture instances.
    Instance(InstanceName),
}

impl fmt::Display for TableRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(name) => name.fmt(f),
            Self::Instance(name) => name.fmt(f),
        }
    }
}

/// Column names that bronze uses itself; a captured column may not bear one, in any case.
pub const RESERVED_COLUMNS: [&str; 9] = [
    "_capture_instance",
    "_start_lsn",
    "_seqval",
    "_operation",
    "_command_id",
    "_commit_ts",
    "_batch_id",
    "_snapshot",
    "_chunk",
];

/// A table as a sink keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSpec {
    /// The target's name of the table, also its key in control and facts.
    pub name: String,
    /// The table at the source.
    pub source: TableName,
    /// The captured columns of every instance that is read, older instances first.
    pub columns: Vec<Column>,
    /// The key columns; empty when the table has none.
    pub key: Vec<String>,
}

impl TableSpec {
    /// A spec whose columns every sink can keep: no reserved name, no two names that differ only
    /// in case, every type with a column form.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] naming the table and the first column at fault.
    pub fn new(
        name: impl Into<String>,
        source: TableName,
        columns: Vec<Column>,
        key: Vec<String>,
    ) -> Result<Self> {
        let spec = Self { name: name.into(), source, columns, key };
        let mut seen = std::collections::HashSet::new();
        for column in &spec.columns {
            let folded = column.name.to_lowercase();
            let fault = if RESERVED_COLUMNS.contains(&folded.as_str()) {
                "column bears a name that bronze uses itself"
            } else if !seen.insert(folded) {
                "two columns differ only in case"
            } else {
                column.field().map_err(|error| error.with("table", &spec.source))?;
                continue;
            };
            return Err(Error::new(ErrorKind::Unsupported, fault)
                .with("table", &spec.source)
                .with("column", &column.name)
                .remedy("leave the column out of the capture instance's column list"));
        }
        Ok(spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(names: &[&str]) -> Result<TableSpec> {
        let columns =
            names.iter().zip(1..).map(|(name, id)| Column::new(*name, id, SqlType::Int, true));
        TableSpec::new("t", TableName::new("dbo", "t"), columns.collect(), Vec::new())
    }

    #[test]
    fn a_reserved_name_is_refused_in_any_case() {
        for name in ["_start_lsn", "_Seqval", "_BATCH_ID", "_chunk"] {
            let error = spec(&["id", name]).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.context("column"), Some(name));
        }
        assert!(spec(&["id", "start_lsn"]).is_ok());
    }

    #[test]
    fn two_names_that_differ_in_case_only_are_refused() {
        assert!(spec(&["Id", "iD"]).is_err());
    }
}
