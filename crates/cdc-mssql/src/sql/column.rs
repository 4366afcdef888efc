//! How a column is read, and how a value of it is given: by its type.

use cdc_core::{Length, SqlType};

use crate::name::Identifier;

/// Most UTF-16 units of an `nvarchar` that is stored in its row.
const NVARCHAR_MAX: u16 = 4_000;

/// The expression that reads a column, in a form that the wire carries without loss.
///
/// * `money` travels as an exact number: the driver makes a double of it.
/// * Texts of a code page travel as UTF-16: the driver does not know every code page, and takes
///   bytes that a code page leaves open for an error.
/// * `xml` travels as text: the driver refuses half a surrogate pair in it.
///
/// The server converts; nothing is padded or cut, since a character of any code page is at most as
/// many UTF-16 units as it has bytes.
pub(crate) fn read(alias: &str, name: &Identifier, sql_type: &SqlType) -> String {
    let column = format!("{alias}.{name}");
    match sql_type {
        SqlType::Money => format!("CAST({column} AS decimal(19, 4))"),
        SqlType::SmallMoney => format!("CAST({column} AS decimal(10, 4))"),
        SqlType::Char(length) | SqlType::VarChar(Length::Limited(length)) => {
            if *length <= NVARCHAR_MAX {
                format!("CAST({column} AS nvarchar({length}))")
            } else {
                format!("CAST({column} AS nvarchar(max))")
            }
        }
        SqlType::VarChar(Length::Max) | SqlType::Text | SqlType::Xml => {
            format!("CAST({column} AS nvarchar(max))")
        }
        _ => column,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_would_change_is_converted_by_the_server() {
        let name = Identifier::new("a]b").expect("a name");
        for (sql_type, expression) in [
            (SqlType::Int, "t.[a]]b]"),
            (SqlType::NText, "t.[a]]b]"),
            (SqlType::Money, "CAST(t.[a]]b] AS decimal(19, 4))"),
            (SqlType::Char(10), "CAST(t.[a]]b] AS nvarchar(10))"),
            (SqlType::VarChar(Length::Limited(4_001)), "CAST(t.[a]]b] AS nvarchar(max))"),
            (SqlType::Xml, "CAST(t.[a]]b] AS nvarchar(max))"),
        ] {
            assert_eq!(read("t", &name, &sql_type), expression);
        }
    }
}
