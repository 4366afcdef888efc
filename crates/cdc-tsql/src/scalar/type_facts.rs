//! What the catalogue says of a type: its ids, its length in bytes, its precision and scale.

use cdc_core::{Length, SqlType};

use super::function::stored_size;

/// What `sys.types` and `sys.columns` say of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeFacts {
    /// The name without length: `varchar`.
    pub name: &'static str,
    /// `system_type_id`.
    pub system_type_id: u8,
    /// `user_type_id`.
    pub user_type_id: i32,
    /// `max_length` in bytes; -1 for `(max)` and `xml`.
    pub max_length: i16,
    /// `precision`.
    pub precision: u8,
    /// `scale`.
    pub scale: u8,
}

/// A type as a declaration spells it: `varchar(20)`, `decimal(10,2)`.
pub(crate) fn result_name_of_type(sql_type: &SqlType) -> String {
    match sql_type {
        SqlType::RowVersion => "timestamp".to_owned(),
        _ => sql_type.to_string(),
    }
}

/// The id, precision and scale of a type of numbers or moments.
fn of_fixed(sql_type: &SqlType) -> Option<(&'static str, u8, u8, u8)> {
    use SqlType as T;
    Some(match sql_type {
        T::Bit => ("bit", 104, 1, 0),
        T::TinyInt => ("tinyint", 48, 3, 0),
        T::SmallInt => ("smallint", 52, 5, 0),
        T::Int => ("int", 56, 10, 0),
        T::BigInt => ("bigint", 127, 19, 0),
        T::Real => ("real", 59, 24, 0),
        T::Float => ("float", 62, 53, 0),
        T::Decimal { precision, scale } => ("decimal", 106, *precision, *scale),
        T::Money => ("money", 60, 19, 4),
        T::SmallMoney => ("smallmoney", 122, 10, 4),
        T::Date => ("date", 40, 10, 0),
        T::DateTime => ("datetime", 61, 23, 3),
        T::SmallDateTime => ("smalldatetime", 58, 16, 0),
        // The characters of the default text.
        T::DateTime2 { scale } => ("datetime2", 42, shown(19, *scale), *scale),
        T::DateTimeOffset { scale } => ("datetimeoffset", 43, shown(26, *scale), *scale),
        T::Time { scale } => ("time", 41, shown(8, *scale), *scale),
        T::UniqueIdentifier => ("uniqueidentifier", 36, 0, 0),
        T::RowVersion => ("timestamp", 189, 0, 0),
        _ => return None,
    })
}

/// Characters of a text with a fraction of a second, the point included.
const fn shown(whole: u8, scale: u8) -> u8 {
    if scale == 0 { whole } else { whole + 1 + scale }
}

/// What `sys.types` and `sys.columns` say of a type; none for one that has no column form.
pub(crate) fn type_facts(sql_type: &SqlType) -> Option<TypeFacts> {
    use SqlType as T;
    if let Some((name, id, precision, scale)) = of_fixed(sql_type) {
        let max_length = i16::try_from(stored_size(sql_type)).ok()?;
        let user_type_id = i32::from(id);
        return Some(TypeFacts {
            name,
            system_type_id: id,
            user_type_id,
            max_length,
            precision,
            scale,
        });
    }
    let bytes = |length: &Length, unit: i16| match length {
        Length::Limited(length) => i16::try_from(*length).unwrap_or(i16::MAX).saturating_mul(unit),
        Length::Max => -1,
    };
    let (name, id, max_length) = match sql_type {
        T::Char(length) => ("char", 175, bytes(&Length::Limited(*length), 1)),
        T::VarChar(length) => ("varchar", 167, bytes(length, 1)),
        T::NChar(length) => ("nchar", 239, bytes(&Length::Limited(*length), 2)),
        T::NVarChar(length) => ("nvarchar", 231, bytes(length, 2)),
        T::Binary(length) => ("binary", 173, bytes(&Length::Limited(*length), 1)),
        T::VarBinary(length) => ("varbinary", 165, bytes(length, 1)),
        T::Text => ("text", 35, 16),
        T::NText => ("ntext", 99, 16),
        T::Image => ("image", 34, 16),
        T::Xml => ("xml", 241, -1),
        T::Other(name) => {
            let (name, id, user, length) = match name.as_str() {
                "sql_variant" => ("sql_variant", 98, 98, 8016),
                "hierarchyid" => ("hierarchyid", 240, 128, 892),
                "geometry" => ("geometry", 240, 129, -1),
                "geography" => ("geography", 240, 130, -1),
                _ => return None,
            };
            return Some(TypeFacts {
                name,
                system_type_id: id,
                user_type_id: user,
                max_length: length,
                precision: 0,
                scale: 0,
            });
        }
        _ => return None,
    };
    let user_type_id = i32::from(id);
    Some(TypeFacts { name, system_type_id: id, user_type_id, max_length, precision: 0, scale: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_the_ids_and_lengths_of_sys_columns() {
        use SqlType as T;
        for (sql_type, name, id, max_length, precision, scale) in [
            (T::Int, "int", 56, 4, 10, 0),
            (T::BigInt, "bigint", 127, 8, 19, 0),
            (T::Bit, "bit", 104, 1, 1, 0),
            (T::Decimal { precision: 18, scale: 2 }, "decimal", 106, 9, 18, 2),
            (T::Decimal { precision: 38, scale: 10 }, "decimal", 106, 17, 38, 10),
            (T::Float, "float", 62, 8, 53, 0),
            (T::Real, "real", 59, 4, 24, 0),
            (T::Money, "money", 60, 8, 19, 4),
            (T::Date, "date", 40, 3, 10, 0),
            (T::DateTime, "datetime", 61, 8, 23, 3),
            (T::SmallDateTime, "smalldatetime", 58, 4, 16, 0),
            (T::DateTime2 { scale: 7 }, "datetime2", 42, 8, 27, 7),
            (T::DateTime2 { scale: 0 }, "datetime2", 42, 6, 19, 0),
            (T::DateTimeOffset { scale: 7 }, "datetimeoffset", 43, 10, 34, 7),
            (T::Time { scale: 7 }, "time", 41, 5, 16, 7),
            (T::UniqueIdentifier, "uniqueidentifier", 36, 16, 0, 0),
            (T::VarChar(Length::Limited(20)), "varchar", 167, 20, 0, 0),
            (T::VarChar(Length::Max), "varchar", 167, -1, 0, 0),
            (T::NVarChar(Length::Limited(128)), "nvarchar", 231, 256, 0, 0),
            (T::NChar(10), "nchar", 239, 20, 0, 0),
            (T::Binary(10), "binary", 173, 10, 0, 0),
            (T::RowVersion, "timestamp", 189, 8, 0, 0),
            (T::Text, "text", 35, 16, 0, 0),
            (T::Xml, "xml", 241, -1, 0, 0),
            (T::Other("sql_variant".into()), "sql_variant", 98, 8016, 0, 0),
        ] {
            let facts = type_facts(&sql_type).expect(name);
            assert_eq!(
                (facts.name, facts.system_type_id, facts.max_length, facts.precision, facts.scale),
                (name, id, max_length, precision, scale)
            );
        }
        assert_eq!(type_facts(&T::Other("none".into())), None);
    }

    #[test]
    fn a_type_is_named_as_a_declaration_spells_it() {
        for (sql_type, name) in [
            (SqlType::VarChar(Length::Limited(20)), "varchar(20)"),
            (SqlType::Decimal { precision: 10, scale: 2 }, "decimal(10,2)"),
            (SqlType::NVarChar(Length::Max), "nvarchar(max)"),
            (SqlType::RowVersion, "timestamp"),
        ] {
            assert_eq!(result_name_of_type(&sql_type), name);
        }
    }
}
