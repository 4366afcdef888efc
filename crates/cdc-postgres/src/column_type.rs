//! Types of columns: which PostgreSQL type each SQL Server type becomes, and which one takes which
//! values.

use std::fmt;

use arrow_schema::{DataType, TimeUnit};
use cdc_core::{Column, Error, ErrorKind, Result, SqlType};

/// A type of PostgreSQL that holds captured values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Boolean,
    SmallInt,
    Integer,
    BigInt,
    Real,
    Double,
    /// With precision and scale, or without any limit.
    Numeric(Option<(u16, u16)>),
    Date,
    Timestamp,
    TimestampTz,
    Time,
    Text,
    Uuid,
    Bytea,
    /// A type that the sink never makes; holds the server's name of it.
    Other(String),
}

impl ColumnType {
    /// The type that a column of SQL Server becomes.
    ///
    /// # Errors
    /// `Unsupported` for a type without a column form.
    pub(crate) fn of(column: &Column) -> Result<Self> {
        use SqlType as T;
        // Also refuses a precision or scale that no decimal has.
        column.field()?;
        Ok(match &column.sql_type {
            T::Bit => Self::Boolean,
            T::TinyInt | T::SmallInt => Self::SmallInt,
            T::Int => Self::Integer,
            T::BigInt => Self::BigInt,
            T::Real => Self::Real,
            T::Float => Self::Double,
            T::Decimal { precision, scale } => {
                Self::Numeric(Some(((*precision).into(), (*scale).into())))
            }
            T::Money => Self::Numeric(Some((19, 4))),
            T::SmallMoney => Self::Numeric(Some((10, 4))),
            T::Date => Self::Date,
            T::DateTime | T::SmallDateTime | T::DateTime2 { .. } => Self::Timestamp,
            T::DateTimeOffset { .. } => Self::TimestampTz,
            // The server's clock has six digits; the seventh is kept as text.
            T::Time { scale } if *scale <= 6 => Self::Time,
            T::UniqueIdentifier => Self::Uuid,
            T::Binary(_) | T::VarBinary(_) | T::Image | T::RowVersion => Self::Bytea,
            T::Time { .. }
            | T::Char(_)
            | T::VarChar(_)
            | T::NChar(_)
            | T::NVarChar(_)
            | T::Text
            | T::NText
            | T::Xml => Self::Text,
            other => {
                return Err(Error::new(ErrorKind::Unsupported, "type has no column form")
                    .with("column", &column.name)
                    .with("type", other));
            }
        })
    }

    /// The type that the server's catalogue names, as `format_type` spells it.
    pub(crate) fn from_catalogue(name: &str) -> Self {
        match name {
            "boolean" => Self::Boolean,
            "smallint" => Self::SmallInt,
            "integer" => Self::Integer,
            "bigint" => Self::BigInt,
            "real" => Self::Real,
            "double precision" => Self::Double,
            "numeric" => Self::Numeric(None),
            "date" => Self::Date,
            "timestamp without time zone" => Self::Timestamp,
            "timestamp with time zone" => Self::TimestampTz,
            "time without time zone" => Self::Time,
            "text" | "character varying" => Self::Text,
            "uuid" => Self::Uuid,
            "bytea" => Self::Bytea,
            other => limits(other).map_or_else(
                || Self::Other(other.to_owned()),
                |limits| Self::Numeric(Some(limits)),
            ),
        }
    }

    /// True when a column of this type can go on with every value of the SQL Server type.
    pub(crate) fn takes(&self, other: &SqlType) -> bool {
        use SqlType as T;
        match (self, other) {
            (Self::Boolean, T::Bit)
            | (Self::SmallInt, T::TinyInt | T::SmallInt)
            | (Self::Integer, T::TinyInt | T::SmallInt | T::Int)
            | (Self::BigInt, T::TinyInt | T::SmallInt | T::Int | T::BigInt)
            | (Self::Real, T::Real)
            | (Self::Double, T::Real | T::Float | T::TinyInt | T::SmallInt | T::Int)
            | (Self::Date, T::Date)
            | (Self::Timestamp, T::Date | T::DateTime | T::SmallDateTime | T::DateTime2 { .. })
            | (Self::TimestampTz, T::DateTimeOffset { .. })
            | (Self::Uuid, T::UniqueIdentifier)
            | (Self::Bytea, T::Binary(_) | T::VarBinary(_) | T::Image | T::RowVersion) => true,
            (Self::Time, T::Time { scale }) => *scale <= 6,
            (
                Self::Text,
                T::Char(_)
                | T::VarChar(_)
                | T::NChar(_)
                | T::NVarChar(_)
                | T::Text
                | T::NText
                | T::Xml
                | T::Time { .. }
                | T::UniqueIdentifier,
            ) => true,
            (Self::Numeric(limits), other) => match digits(other) {
                Some((whole, part)) => limits.is_none_or(|(precision, scale)| {
                    part <= scale && whole <= precision.saturating_sub(scale)
                }),
                None => false,
            },
            _ => false,
        }
    }

    /// True when the sink writes values of this Arrow type into a column of this type.
    pub(crate) fn takes_array(&self, array: &DataType) -> bool {
        use DataType as D;
        match (self, array) {
            (Self::Boolean, D::Boolean)
            | (Self::SmallInt, D::Int16)
            | (Self::Integer, D::Int16 | D::Int32)
            | (Self::BigInt, D::Int16 | D::Int32 | D::Int64)
            | (Self::Real, D::Float32)
            | (Self::Double, D::Float32 | D::Float64 | D::Int16 | D::Int32)
            | (Self::Date, D::Date32)
            | (Self::Timestamp, D::Date32 | D::Timestamp(TimeUnit::Microsecond, None))
            | (Self::TimestampTz, D::Timestamp(TimeUnit::Microsecond, Some(_)))
            | (Self::Text | Self::Uuid | Self::Time, D::Utf8)
            | (Self::Bytea, D::Binary) => true,
            (Self::Numeric(limits), other) => {
                let (whole, part) = match other {
                    D::Int16 => (5, 0),
                    D::Int32 => (10, 0),
                    D::Int64 => (19, 0),
                    D::Decimal128(precision, scale) => {
                        let part = u16::try_from(*scale).unwrap_or(u16::MAX);
                        (u16::from(*precision).saturating_sub(part), part)
                    }
                    _ => return false,
                };
                limits.is_none_or(|(precision, scale)| {
                    part <= scale && whole <= precision.saturating_sub(scale)
                })
            }
            _ => false,
        }
    }

    /// The type as a column of a key is declared: texts compare as bytes, whatever the database's
    /// own order is and becomes.
    pub(crate) fn in_key(&self) -> String {
        match self {
            Self::Text => "text COLLATE \"C\"".into(),
            other => other.to_string(),
        }
    }
}

/// Precision and scale of `numeric(p,s)`.
fn limits(name: &str) -> Option<(u16, u16)> {
    let (precision, scale) = name.strip_prefix("numeric(")?.strip_suffix(')')?.split_once(',')?;
    // A negative scale rounds, and is no type of this sink.
    Some((precision.parse().ok()?, scale.parse().ok()?))
}

/// Digits before and after the point that hold every value of an exact number type.
fn digits(sql_type: &SqlType) -> Option<(u16, u16)> {
    Some(match sql_type {
        SqlType::TinyInt => (3, 0),
        SqlType::SmallInt => (5, 0),
        SqlType::Int => (10, 0),
        SqlType::BigInt => (19, 0),
        SqlType::Decimal { precision, scale } => {
            (precision.saturating_sub(*scale).into(), (*scale).into())
        }
        SqlType::Money => (15, 4),
        SqlType::SmallMoney => (6, 4),
        _ => return None,
    })
}

impl fmt::Display for ColumnType {
    /// As a column definition spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Boolean => "boolean",
            Self::SmallInt => "smallint",
            Self::Integer => "integer",
            Self::BigInt => "bigint",
            Self::Real => "real",
            Self::Double => "double precision",
            Self::Numeric(None) => "numeric",
            Self::Numeric(Some((precision, scale))) => {
                return write!(f, "numeric({precision},{scale})");
            }
            Self::Date => "date",
            Self::Timestamp => "timestamp without time zone",
            Self::TimestampTz => "timestamp with time zone",
            Self::Time => "time without time zone",
            Self::Text => "text",
            Self::Uuid => "uuid",
            Self::Bytea => "bytea",
            Self::Other(name) => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::Length;

    use super::*;

    fn dec(precision: u8, scale: u8) -> SqlType {
        SqlType::Decimal { precision, scale }
    }

    /// Every type of SQL Server.
    fn every() -> Vec<SqlType> {
        use SqlType as T;
        let limited = Length::Limited(9);
        vec![
            T::Bit,
            T::TinyInt,
            T::SmallInt,
            T::Int,
            T::BigInt,
            T::Real,
            T::Float,
            dec(38, 38),
            dec(9, 0),
            T::Money,
            T::SmallMoney,
            T::Date,
            T::DateTime,
            T::SmallDateTime,
            T::DateTime2 { scale: 7 },
            T::DateTimeOffset { scale: 7 },
            T::Time { scale: 3 },
            T::Time { scale: 7 },
            T::Char(4),
            T::VarChar(limited),
            T::NChar(4),
            T::NVarChar(Length::Max),
            T::Text,
            T::NText,
            T::Xml,
            T::UniqueIdentifier,
            T::Binary(4),
            T::VarBinary(Length::Max),
            T::Image,
            T::RowVersion,
        ]
    }

    #[test]
    fn every_type_becomes_one_that_takes_it_and_reads_back_from_the_catalogue() {
        for sql_type in every() {
            let column = Column::new("c", 1, sql_type.clone(), true);
            let made = ColumnType::of(&column).expect("has a form");
            assert!(made.takes(&sql_type), "{sql_type} -> {made}");
            assert!(made.takes_array(&sql_type.arrow().expect("mapped")), "{sql_type} -> {made}");
            assert_eq!(ColumnType::from_catalogue(&made.to_string()), made);
        }
    }

    #[test]
    fn a_type_without_a_form_is_refused_by_name() {
        let column = Column::new("place", 1, SqlType::Other("geography".into()), true);
        let error = ColumnType::of(&column).expect_err("no form");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let context = (error.context("column"), error.context("type"));
        assert_eq!(context, (Some("place"), Some("geography")));
    }

    #[test]
    fn a_column_takes_only_what_it_holds_to_the_last_digit() {
        use SqlType as T;
        let catalogue = ColumnType::from_catalogue;
        for (column, sql_type, takes) in [
            ("integer", T::BigInt, false),
            ("bigint", T::Int, true),
            ("real", T::Float, false),
            ("double precision", T::BigInt, false),
            ("double precision", T::Int, true),
            ("numeric", dec(38, 38), true),
            ("numeric(20,0)", T::BigInt, true),
            ("numeric(18,0)", T::BigInt, false),
            ("numeric(38,10)", dec(38, 11), false),
            ("numeric(50,12)", dec(38, 0), true),
            ("numeric(40,12)", dec(38, 0), false),
            ("numeric(19,4)", T::Money, true),
            ("numeric(5,-2)", T::TinyInt, false),
            ("time without time zone", T::Time { scale: 7 }, false),
            ("time(3) without time zone", T::Time { scale: 3 }, false),
            ("timestamp(3) without time zone", T::DateTime, false),
            ("timestamp without time zone", T::DateTimeOffset { scale: 0 }, false),
            ("text", T::UniqueIdentifier, true),
            ("text", T::Int, false),
            ("character varying", T::NText, true),
            ("character varying(10)", T::NVarChar(Length::Limited(10)), false),
            ("jsonb", T::NText, false),
        ] {
            assert_eq!(catalogue(column).takes(&sql_type), takes, "{column} {sql_type}");
        }
    }
}
