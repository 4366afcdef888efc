//! Names inside of statements: the one type through which an identifier gets into a text.

use std::fmt;

use cdc_core::{Error, ErrorKind, InstanceName, Result, TableName};

/// The longest name of SQL Server, in UTF-16 units.
const NAME_UNITS_MAX: usize = 128;

/// A name in brackets, whatever characters it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identifier(String);

impl Identifier {
    /// Quotes a name.
    ///
    /// # Errors
    /// `Config` for a name that no object can have.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let fault = if name.is_empty() {
            "a name is empty"
        } else if name.encode_utf16().count() > NAME_UNITS_MAX {
            "a name is longer than SQL Server allows"
        } else if name.contains('\0') {
            "a name holds the character U+0000"
        } else {
            return Ok(Self(format!("[{}]", name.replace(']', "]]"))));
        };
        Err(Error::new(ErrorKind::Config, fault).with("name", name.escape_debug()))
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A name of two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectName {
    schema: Identifier,
    name: Identifier,
}

impl ObjectName {
    /// The name of a table.
    ///
    /// # Errors
    /// As for [`Identifier::new`].
    pub(crate) fn of_table(table: &TableName) -> Result<Self> {
        Ok(Self { schema: Identifier::new(&table.schema)?, name: Identifier::new(&table.name)? })
    }

    /// The name of an instance's change table.
    ///
    /// # Errors
    /// As for [`Identifier::new`].
    pub(crate) fn of_changes(instance: &InstanceName) -> Result<Self> {
        let name = format!("{}_CT", instance.as_str());
        Ok(Self { schema: Identifier::new("cdc")?, name: Identifier::new(&name)? })
    }
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// The names of a list like `[a], [b]]c]`.
pub(crate) fn listed(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut letters = list.chars().peekable();
    while letters.by_ref().any(|letter| letter == '[') {
        let mut name = String::new();
        while let Some(letter) = letters.next() {
            if letter == ']' && letters.next_if_eq(&']').is_none() {
                break;
            }
            name.push(letter);
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_name_of_the_field_is_quoted() {
        for (name, quoted) in [
            ("order details", "[order details]"),
            ("we]ird", "[we]]ird]"),
            ("a.b", "[a.b]"),
            ("x'y; DROP TABLE t --", "[x'y; DROP TABLE t --]"),
            ("select", "[select]"),
            ("\u{fc}\u{1F600}", "[\u{fc}\u{1F600}]"),
        ] {
            assert_eq!(Identifier::new(name).expect(name).to_string(), quoted);
        }
        let table = ObjectName::of_table(&TableName::new("a.b", "c]")).expect("fits");
        assert_eq!(table.to_string(), "[a.b].[c]]]");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in ["", "a\0b", &"x".repeat(129), &"\u{1F600}".repeat(65)] {
            assert_eq!(Identifier::new(name).expect_err("none").kind(), ErrorKind::Config);
        }
        assert!(Identifier::new(&"x".repeat(128)).is_ok());
    }

    proptest! {
        #[test]
        fn a_list_of_quoted_names_reads_back(names in proptest::collection::vec("[a-c\\[\\],. ]{1,6}", 0..4)) {
            let quoted: Vec<_> =
                names.iter().map(|name| Identifier::new(name).expect("a name").to_string()).collect();
            prop_assert_eq!(listed(&quoted.join(", ")), names);
        }
    }
}
