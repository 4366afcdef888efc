//! From the catalogue's words to types.

use cdc_core::{Length, SqlType};

/// A type as the catalogue tells it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Described<'a> {
    /// The name of the base type.
    pub(crate) name: &'a str,
    /// Characters or bytes; -1 for `(max)`.
    pub(crate) length: Option<i64>,
    /// Of an exact number.
    pub(crate) precision: Option<i64>,
    /// Of an exact number.
    pub(crate) scale: Option<i64>,
    /// Digits behind the second.
    pub(crate) digits: Option<i64>,
}

impl Described<'_> {
    /// The type. What is not known has no column form, and the preflight says so.
    pub(crate) fn sql_type(&self) -> SqlType {
        let name = self.name.to_ascii_lowercase();
        self.find(&name).unwrap_or(SqlType::Other(name))
    }

    fn find(&self, name: &str) -> Option<SqlType> {
        use SqlType as T;
        let small = |number: Option<i64>| number.and_then(|number| u8::try_from(number).ok());
        let fixed = || self.length.and_then(|length| u16::try_from(length).ok());
        let length = || match self.length {
            Some(-1) => Some(Length::Max),
            _ => fixed().map(Length::Limited),
        };
        Some(match name {
            "bit" => T::Bit,
            "tinyint" => T::TinyInt,
            "smallint" => T::SmallInt,
            "int" => T::Int,
            "bigint" => T::BigInt,
            "real" => T::Real,
            "float" => T::Float,
            "decimal" | "numeric" => {
                T::Decimal { precision: small(self.precision)?, scale: small(self.scale)? }
            }
            "money" => T::Money,
            "smallmoney" => T::SmallMoney,
            "date" => T::Date,
            "datetime" => T::DateTime,
            "smalldatetime" => T::SmallDateTime,
            "datetime2" => T::DateTime2 { scale: small(self.digits)? },
            "datetimeoffset" => T::DateTimeOffset { scale: small(self.digits)? },
            "time" => T::Time { scale: small(self.digits)? },
            "char" => T::Char(fixed()?),
            "varchar" => T::VarChar(length()?),
            "nchar" => T::NChar(fixed()?),
            "nvarchar" => T::NVarChar(length()?),
            "text" => T::Text,
            "ntext" => T::NText,
            "xml" => T::Xml,
            "uniqueidentifier" => T::UniqueIdentifier,
            "binary" => T::Binary(fixed()?),
            "varbinary" => T::VarBinary(length()?),
            "image" => T::Image,
            "timestamp" | "rowversion" => T::RowVersion,
            _ => return None,
        })
    }
}

/// Bytes of a type in `sys.columns`, where `nchar` and `nvarchar` have two a character.
pub(crate) fn characters(name: &str, bytes: i64) -> i64 {
    match name.to_ascii_lowercase().as_str() {
        "nchar" | "nvarchar" if bytes > 0 => bytes / 2,
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_with_its_length_precision_and_digits() {
        let some = |name| Described { name, length: Some(40), ..Described::default() };
        assert_eq!(some("nvarchar").sql_type(), SqlType::NVarChar(Length::Limited(40)));
        let max = Described { name: "varbinary", length: Some(-1), ..Described::default() };
        assert_eq!(max.sql_type(), SqlType::VarBinary(Length::Max));
        let exact = Described { precision: Some(38), scale: Some(10), ..some("Numeric") };
        assert_eq!(exact.sql_type(), SqlType::Decimal { precision: 38, scale: 10 });
        let moment = Described { digits: Some(7), ..some("datetime2") };
        assert_eq!(moment.sql_type(), SqlType::DateTime2 { scale: 7 });
        assert_eq!((characters("nchar", 80), characters("varchar", 80)), (40, 80));
    }

    #[test]
    fn what_is_not_known_has_no_column_form() {
        for name in ["sql_variant", "hierarchyid", "geography", "vector", "decimal"] {
            let found = Described { name, ..Described::default() }.sql_type();
            assert_eq!(found, SqlType::Other(name.into()));
            assert!(found.arrow().is_err());
        }
    }
}
