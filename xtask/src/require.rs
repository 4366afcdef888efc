//! What may not be skipped: the names in `CDC_REQUIRE`.
//!
//! A part of the tests that needs something the machine lacks is skipped by name. A name listed in
//! `CDC_REQUIRE` (comma-separated) turns that skip into a failure.

use std::{collections::BTreeSet, env};

use crate::{Failure, Result};

/// The variable's name.
pub const VARIABLE: &str = "CDC_REQUIRE";

/// Every name the variable may hold: tools, readers, clients, and live servers of the test package.
pub const NAMES: [&str; 17] = [
    "fmt",
    "clippy",
    "duckdb",
    "polars-deltalake",
    "chdb",
    "mssql",
    "postgres",
    "tsql",
    "pymssql",
    "pytds",
    "mssql-python",
    "connectorx",
    "tedious",
    "debezium",
    "rivet",
    "mssql-cdc-pyspark",
    "mssql-tds",
];

/// What `cargo xtask ci` requires when the variable is not set.
pub const CI: &str = "duckdb,polars-deltalake,fmt,clippy,postgres,tsql,pymssql,pytds,mssql-python,\
                      connectorx,tedious,rivet,mssql-cdc-pyspark,debezium,mssql-tds";

/// The names that may not be skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Required(BTreeSet<&'static str>);

impl Required {
    /// Reads the variable, or `default` when it is not set.
    ///
    /// # Errors
    /// When a name is unknown: a misspelt name would otherwise require nothing.
    pub fn from_env(default: &str) -> Result<Self> {
        match env::var(VARIABLE) {
            Ok(text) => Self::parse(&text),
            Err(env::VarError::NotPresent) => Self::parse(default),
            Err(e) => Err(Failure::caused(VARIABLE, e)),
        }
    }

    /// Reads a comma-separated list.
    ///
    /// # Errors
    /// When a name is unknown.
    pub fn parse(text: &str) -> Result<Self> {
        text.split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| {
                NAMES.into_iter().find(|known| *known == name).ok_or_else(|| {
                    let known = NAMES.join(", ");
                    Failure::new(format!("{VARIABLE} names {name:?}, which is none of {known}"))
                })
            })
            .collect::<Result<_>>()
            .map(Self)
    }

    /// Whether `name` may not be skipped.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// The variable's text for a child process.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().copied().collect::<Vec<_>>().join(",")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn blanks_and_empty_names_mean_nothing() {
        let required = Required::parse(" fmt, ,duckdb,").unwrap();
        assert!(required.has("fmt") && required.has("duckdb") && !required.has("clippy"));
        assert_eq!(required.text(), "duckdb,fmt");
    }

    #[test]
    fn a_misspelt_name_is_refused() {
        let refused = Required::parse("duck").unwrap_err().to_string();
        assert!(refused.contains("\"duck\""), "{refused}");
    }

    #[test]
    fn what_ci_requires_is_known() {
        assert!(Required::parse(CI).is_ok());
    }
}
