//! SQL Server's column types, and the Arrow type each is carried and stored as.

use std::fmt;

use arrow_schema::{DataType, TimeUnit};

use crate::error::{Error, ErrorKind, Result};

/// The declared length of a variable-length type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Length {
    /// At most this many characters or bytes, as declared.
    Limited(u16),
    /// `(max)`: up to 2 GiB, stored outside the row.
    Max,
}

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(length) => length.fmt(f),
            Self::Max => f.write_str("max"),
        }
    }
}

/// A SQL Server type with its declared precision, scale and length. Alias types are resolved to
/// their base type before they get here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the variants are SQL Server's own names")]
pub enum SqlType {
    Bit,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Real,
    Float,
    /// `decimal` and `numeric`: precision 1 to 38, scale at most the precision.
    Decimal {
        precision: u8,
        scale: u8,
    },
    Money,
    SmallMoney,
    Date,
    DateTime,
    SmallDateTime,
    /// Fractional digits 0 to 7.
    DateTime2 {
        scale: u8,
    },
    /// Fractional digits 0 to 7.
    DateTimeOffset {
        scale: u8,
    },
    /// Fractional digits 0 to 7.
    Time {
        scale: u8,
    },
    Char(u16),
    VarChar(Length),
    NChar(u16),
    NVarChar(Length),
    Text,
    NText,
    Xml,
    UniqueIdentifier,
    Binary(u16),
    VarBinary(Length),
    Image,
    RowVersion,
    /// A type with no column form in the target: `sql_variant`, `geography`, `geometry`,
    /// `hierarchyid`, other CLR types. Holds SQL Server's name of it.
    Other(String),
}

impl SqlType {
    /// The Arrow type that carries the column from the wire to the file.
    ///
    /// `tinyint` is unsigned and becomes `Int16`; zoneless dates and times keep their wall clock;
    /// `datetimeoffset` becomes an instant in UTC; the seventh fractional digit is cut; `time`
    /// and `uniqueidentifier` (upper case, dashed) are text.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for [`SqlType::Other`], [`ErrorKind::InvalidData`] for a
    /// precision or scale that SQL Server does not have.
    pub fn arrow(&self) -> Result<DataType> {
        Ok(match self {
            Self::Bit => DataType::Boolean,
            Self::TinyInt | Self::SmallInt => DataType::Int16,
            Self::Int => DataType::Int32,
            Self::BigInt => DataType::Int64,
            Self::Real => DataType::Float32,
            Self::Float => DataType::Float64,
            Self::Decimal { precision, scale } => decimal(*precision, *scale)?,
            Self::Money => decimal(19, 4)?,
            Self::SmallMoney => decimal(10, 4)?,
            Self::Date => DataType::Date32,
            Self::DateTime | Self::SmallDateTime | Self::DateTime2 { .. } => {
                DataType::Timestamp(TimeUnit::Microsecond, None)
            }
            Self::DateTimeOffset { .. } => {
                DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
            }
            Self::Time { .. }
            | Self::Char(_)
            | Self::VarChar(_)
            | Self::NChar(_)
            | Self::NVarChar(_)
            | Self::Text
            | Self::NText
            | Self::Xml
            | Self::UniqueIdentifier => DataType::Utf8,
            Self::Binary(_) | Self::VarBinary(_) | Self::Image | Self::RowVersion => {
                DataType::Binary
            }
            Self::Other(name) => {
                return Err(Error::new(ErrorKind::Unsupported, "type has no column form")
                    .with("type", name)
                    .remedy(
                        "capture the table without the column (@captured_column_list of \
                         sys.sp_cdc_enable_table), or with one beside it that holds the value as \
                         text or bytes",
                    ));
            }
        })
    }

    /// True when every value of this type is a value of `wider`: a column of `wider` can go on
    /// taking this type's values.
    #[must_use]
    pub fn fits(&self, wider: &Self) -> bool {
        use SqlType as T;
        match (self, wider) {
            (a, b) if a == b => true,
            (T::TinyInt, T::SmallInt | T::Int | T::BigInt | T::Float)
            | (T::SmallInt, T::Int | T::BigInt | T::Float)
            | (T::Int, T::BigInt | T::Float)
            | (T::Real, T::Float)
            | (T::Date, T::DateTime2 { .. }) => true,
            (a, T::Decimal { precision, scale }) => {
                a.integer_digits().is_some_and(|(whole, part)| {
                    whole <= precision.saturating_sub(*scale) && part <= *scale
                })
            }
            (a, b) => match (a.arrow(), b.arrow()) {
                // Declared lengths are not part of the target's type.
                (Ok(a), Ok(b)) => {
                    a == b
                        && matches!(a, DataType::Utf8 | DataType::Binary | DataType::Timestamp(..))
                }
                _ => false,
            },
        }
    }

    /// Digits before and after the decimal point that hold every value of an exact number type.
    fn integer_digits(&self) -> Option<(u8, u8)> {
        match self {
            Self::TinyInt => Some((3, 0)),
            Self::SmallInt => Some((5, 0)),
            Self::Int => Some((10, 0)),
            Self::BigInt => Some((20, 0)),
            Self::Decimal { precision, scale } => Some((precision.saturating_sub(*scale), *scale)),
            Self::Money => Some((15, 4)),
            Self::SmallMoney => Some((6, 4)),
            _ => None,
        }
    }

    /// True for the types that SQL Server stores outside the row: `(max)`, `text`, `ntext`,
    /// `image`, `xml`.
    #[must_use]
    pub const fn is_large_object(&self) -> bool {
        matches!(
            self,
            Self::VarChar(Length::Max)
                | Self::NVarChar(Length::Max)
                | Self::VarBinary(Length::Max)
                | Self::Text
                | Self::NText
                | Self::Image
                | Self::Xml
        )
    }
}

fn decimal(precision: u8, scale: u8) -> Result<DataType> {
    match i8::try_from(scale) {
        Ok(signed) if (1..=38).contains(&precision) && scale <= precision => {
            Ok(DataType::Decimal128(precision, signed))
        }
        _ => Err(Error::new(
            ErrorKind::InvalidData,
            "decimal has precision 1 to 38 and a scale within it",
        )
        .with("precision", precision)
        .with("scale", scale)),
    }
}

impl fmt::Display for SqlType {
    /// As a column definition spells it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Decimal { precision, scale } => return write!(f, "decimal({precision},{scale})"),
            Self::DateTime2 { scale } => return write!(f, "datetime2({scale})"),
            Self::DateTimeOffset { scale } => return write!(f, "datetimeoffset({scale})"),
            Self::Time { scale } => return write!(f, "time({scale})"),
            Self::Char(length) => return write!(f, "char({length})"),
            Self::VarChar(length) => return write!(f, "varchar({length})"),
            Self::NChar(length) => return write!(f, "nchar({length})"),
            Self::NVarChar(length) => return write!(f, "nvarchar({length})"),
            Self::Binary(length) => return write!(f, "binary({length})"),
            Self::VarBinary(length) => return write!(f, "varbinary({length})"),
            Self::Bit => "bit",
            Self::TinyInt => "tinyint",
            Self::SmallInt => "smallint",
            Self::Int => "int",
            Self::BigInt => "bigint",
            Self::Real => "real",
            Self::Float => "float",
            Self::Money => "money",
            Self::SmallMoney => "smallmoney",
            Self::Date => "date",
            Self::DateTime => "datetime",
            Self::SmallDateTime => "smalldatetime",
            Self::Text => "text",
            Self::NText => "ntext",
            Self::Xml => "xml",
            Self::UniqueIdentifier => "uniqueidentifier",
            Self::Image => "image",
            Self::RowVersion => "rowversion",
            Self::Other(name) => name,
        };
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dec(precision: u8, scale: u8) -> SqlType {
        SqlType::Decimal { precision, scale }
    }

    #[test]
    fn a_type_fits_only_where_no_value_is_lost() {
        use SqlType as T;
        for (narrow, wide, fits) in [
            (T::Int, T::Int, true),
            (T::TinyInt, T::SmallInt, true),
            (T::SmallInt, T::Int, true),
            (T::Int, T::BigInt, true),
            (T::BigInt, T::Int, false),
            (T::Int, T::SmallInt, false),
            (T::Int, T::Float, true),
            (T::BigInt, T::Float, false),
            (T::Real, T::Float, true),
            (T::Float, T::Real, false),
            (T::Int, T::Real, false),
            (T::Date, T::DateTime2 { scale: 7 }, true),
            (T::Date, T::DateTime, false),
            (T::DateTime2 { scale: 3 }, T::DateTime2 { scale: 7 }, true),
            (T::DateTime, T::DateTimeOffset { scale: 7 }, false),
            (T::TinyInt, dec(3, 0), true),
            (T::SmallInt, dec(4, 0), false),
            (T::Int, dec(12, 2), true),
            (T::Int, dec(11, 2), false),
            (T::BigInt, dec(20, 0), true),
            (T::BigInt, dec(19, 0), false),
            (dec(10, 2), dec(12, 4), true),
            (dec(10, 2), dec(11, 3), true),
            (dec(10, 2), dec(11, 4), false),
            (dec(10, 4), dec(12, 2), false),
            (T::Money, dec(19, 4), true),
            (T::VarChar(Length::Limited(10)), T::NVarChar(Length::Max), true),
            (T::VarChar(Length::Max), T::Int, false),
            (T::Int, T::VarChar(Length::Max), false),
            (T::UniqueIdentifier, T::Binary(16), false),
            (T::Bit, T::Int, false),
            (T::Other("geography".into()), T::Other("geometry".into()), false),
        ] {
            assert_eq!(narrow.fits(&wide), fits, "{narrow} -> {wide}");
        }
    }

    #[test]
    fn every_type_has_one_arrow_type_or_is_refused_by_name() {
        assert_eq!(SqlType::TinyInt.arrow().expect("mapped"), DataType::Int16);
        assert_eq!(dec(38, 38).arrow().expect("mapped"), DataType::Decimal128(38, 38));
        assert_eq!(SqlType::Money.arrow().expect("mapped"), DataType::Decimal128(19, 4));
        assert!(dec(39, 0).arrow().is_err() && dec(5, 6).arrow().is_err());
        let error = SqlType::Other("geography".into()).arrow().expect_err("no column form");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.context("type"), Some("geography"));
    }
}
