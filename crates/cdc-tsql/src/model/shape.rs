//! Columns of views and results, written as the documentation lists them, and their cells.

use cdc_core::{Length, ServerTime, SqlType};
use cdc_fake::Value;

use crate::{kind::Kind, relation::RelationColumn, talk::ResultColumn};

/// The columns of a list such as `name sysname; column_id int; scale tinyint?`: a name, a type,
/// and `?` when it may be NULL.
pub(crate) fn columns(list: &str) -> Vec<RelationColumn> {
    list.split(';').filter_map(column).collect()
}

fn column(text: &str) -> Option<RelationColumn> {
    let (name, declared) = text.trim().split_once(' ')?;
    let declared = declared.trim();
    let nullable = declared.ends_with('?');
    let sql_type = sql_type(declared.trim_end_matches('?'))?;
    Some(RelationColumn::new(name, Kind::new(sql_type, nullable)))
}

/// The same as columns of a result.
pub(crate) fn result_columns(list: &str) -> Vec<ResultColumn> {
    columns(list)
        .into_iter()
        .map(|column| ResultColumn {
            name: column.name,
            kind: column.kind,
            identity: false,
            computed: false,
        })
        .collect()
}

fn sql_type(text: &str) -> Option<SqlType> {
    let (name, length) = match text.split_once('(') {
        Some((name, rest)) => (name, Some(rest.trim_end_matches(')'))),
        None => (text, None),
    };
    let size = || length.and_then(|text| text.parse::<u16>().ok());
    let limited = || match length {
        Some("max") => Some(Length::Max),
        _ => size().map(Length::Limited),
    };
    Some(match name {
        "bit" => SqlType::Bit,
        "tinyint" => SqlType::TinyInt,
        "smallint" => SqlType::SmallInt,
        "int" => SqlType::Int,
        "bigint" => SqlType::BigInt,
        "float" => SqlType::Float,
        "real" => SqlType::Real,
        "decimal" => {
            let (precision, scale) = length?.split_once(',')?;
            SqlType::Decimal { precision: precision.parse().ok()?, scale: scale.parse().ok()? }
        }
        "sysname" => SqlType::NVarChar(Length::Limited(128)),
        "nvarchar" => SqlType::NVarChar(limited()?),
        "varchar" => SqlType::VarChar(limited()?),
        "nchar" => SqlType::NChar(size()?),
        "char" => SqlType::Char(size()?),
        "datetime" => SqlType::DateTime,
        "datetimeoffset" => SqlType::DateTimeOffset { scale: 7 },
        "time" => SqlType::Time { scale: 7 },
        "binary" => SqlType::Binary(size()?),
        "varbinary" => SqlType::VarBinary(limited()?),
        "uniqueidentifier" => SqlType::UniqueIdentifier,
        _ => return None,
    })
}

/// Something that is a cell.
pub(crate) trait Cell {
    /// The cell.
    fn cell(self) -> Value;
}

impl Cell for Value {
    fn cell(self) -> Value {
        self
    }
}

impl Cell for &str {
    fn cell(self) -> Value {
        Value::text(self)
    }
}

impl Cell for &String {
    fn cell(self) -> Value {
        Value::text(self)
    }
}

impl Cell for String {
    fn cell(self) -> Value {
        Value::text(&self)
    }
}

impl Cell for bool {
    fn cell(self) -> Value {
        Value::Bit(self)
    }
}

impl Cell for i32 {
    fn cell(self) -> Value {
        Value::Int(self.into())
    }
}

impl Cell for i64 {
    fn cell(self) -> Value {
        Value::Int(self)
    }
}

impl Cell for u64 {
    fn cell(self) -> Value {
        Value::Int(i64::try_from(self).unwrap_or(i64::MAX))
    }
}

impl Cell for ServerTime {
    fn cell(self) -> Value {
        Value::DateTime(self)
    }
}

impl Cell for () {
    fn cell(self) -> Value {
        Value::Null
    }
}

impl<T: Cell> Cell for Option<T> {
    fn cell(self) -> Value {
        self.map_or(Value::Null, Cell::cell)
    }
}

/// A row from cells.
macro_rules! row {
    ($($cell:expr),* $(,)?) => {
        $crate::relation::Row::from(vec![$($crate::model::shape::Cell::cell($cell)),*])
    };
}
pub(crate) use row;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_columns_reads_as_the_documentation_writes_it() {
        let read = columns("name sysname; id int?; mask varbinary(128); all nvarchar(max)?");
        assert_eq!(read.len(), 4);
        assert_eq!(read[1].kind, Kind::new(SqlType::Int, true));
        assert_eq!(read[3].kind.sql_type, SqlType::NVarChar(Length::Max));
        assert_eq!(columns("broken thing").len(), 0);
    }
}
