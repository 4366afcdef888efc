//! Names: how they are quoted, and which the server would cut or keeps for itself.

use std::fmt;

use cdc_core::{Column, Error, ErrorKind, Result, TableSpec};

/// The column that says that a row is the marker of a delete.
pub const DELETED: &str = "src_deleted";
/// The column with the epoch of the log that a row was last written from.
pub const EPOCH: &str = "source_epoch";
/// The column with the position of the change that last wrote a row.
pub const POSITION: &str = "src_pos";
/// The staging column that says which cells of a row say nothing.
pub(crate) const UNKNOWN: &str = "src_unknown";

/// What the name of the view of the present rows adds to the table's.
pub const LIVE_SUFFIX: &str = "_live";
/// What the name of the view with the deleted rows adds to the table's.
pub const SOFT_SUFFIX: &str = "_soft";

/// The table that holds what is durable of each table of its schema.
pub const CONTROL: &str = "cdc_control";

/// The server cuts longer names without a word.
const NAME_BYTES_MAX: usize = 63;

/// Names of columns that every table of the server has.
const SYSTEM: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

/// Names of columns of this sink.
const OWN: [&str; 4] = [DELETED, EPOCH, POSITION, UNKNOWN];

/// A name in double quotes, so that the server takes it as it is.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('"', "\"\""))
    }
}

/// A name inside a schema.
pub(crate) struct Qualified<'a>(pub(crate) &'a str, pub(crate) &'a str);

impl fmt::Display for Qualified<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", Quoted(self.0), Quoted(self.1))
    }
}

/// The view that shows the rows that exist.
pub(crate) fn live_view(table: &str) -> String {
    format!("{table}{LIVE_SUFFIX}")
}

/// The view that shows the deleted rows too.
pub(crate) fn soft_view(table: &str) -> String {
    format!("{table}{SOFT_SUFFIX}")
}

/// True when two names differ in case alone, or not at all.
pub(crate) fn same(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

/// Checks a setting that is a name.
pub(crate) fn setting(setting: &'static str, name: &str) -> Result<()> {
    match fault(name, NAME_BYTES_MAX) {
        None => Ok(()),
        Some(fault) => Err(Error::new(ErrorKind::Config, format!("the schema's name {fault}"))
            .with("setting", setting)
            .with("schema", name)),
    }
}

/// Checks the name of a table and of its columns, and that it has a key of its own columns.
pub(crate) fn table(spec: &TableSpec) -> Result<()> {
    let longest = NAME_BYTES_MAX - LIVE_SUFFIX.len();
    let own = same(&spec.name, CONTROL).then_some("is the name of the sink's own table");
    if let Some(fault) = own.or_else(|| fault(&spec.name, longest)) {
        return Err(Error::new(ErrorKind::Config, format!("the table's name {fault}"))
            .with("table", &spec.name)
            .with("most_bytes", longest)
            .remedy("give the table another target"));
    }
    if spec.key.is_empty() {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "a table without a key cannot be kept as one row a key",
        )
        .with("table", &spec.source)
        .remedy(
            "enable the capture instance with a unique index (@index_name), or copy the table \
             into a target that keeps a history",
        ));
    }
    for key in &spec.key {
        if !spec.columns.iter().any(|column| same(&column.name, key)) {
            return Err(Error::new(ErrorKind::Unsupported, "a key column is not captured")
                .with("table", &spec.source)
                .with("column", key)
                .remedy("capture the key's columns"));
        }
    }
    columns(&spec.name, &spec.columns)
}

/// Checks the names of columns.
pub(crate) fn columns(table: &str, columns: &[Column]) -> Result<()> {
    for column in columns {
        let folded = column.name.to_lowercase();
        let taken = if SYSTEM.contains(&folded.as_str()) {
            Some("is one of the server's own")
        } else if OWN.contains(&folded.as_str()) {
            Some("is one of the sink's own")
        } else {
            fault(&column.name, NAME_BYTES_MAX)
        };
        if let Some(fault) = taken {
            return Err(Error::new(ErrorKind::Unsupported, format!("a column's name {fault}"))
                .with("table", table)
                .with("column", &column.name)
                .remedy("leave the column out of the capture instance's column list"));
        }
    }
    Ok(())
}

fn fault(name: &str, longest: usize) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.contains('\0') {
        Some("holds U+0000")
    } else if name.len() > longest {
        Some("is longer than the server keeps")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::{SqlType, TableName};

    use super::*;

    fn spec(name: &str, columns: &[&str], key: &[&str]) -> TableSpec {
        TableSpec {
            name: name.into(),
            source: TableName::new("dbo", "t"),
            columns: columns
                .iter()
                .zip(1..)
                .map(|(name, id)| Column::new(*name, id, SqlType::Int, true))
                .collect(),
            key: key.iter().map(|name| (*name).into()).collect(),
        }
    }

    #[test]
    fn a_name_is_quoted_whatever_it_holds() {
        assert_eq!(Quoted("two words").to_string(), "\"two words\"");
        assert_eq!(Qualified("s", "a\"b").to_string(), "\"s\".\"a\"\"b\"");
    }

    #[test]
    fn what_the_server_would_cut_or_keeps_for_itself_is_refused_by_name() {
        let long = "x".repeat(64);
        for column in ["ctid", "XMIN", "src_pos", "Source_Epoch", "src_deleted", &long, "", "a\0b"]
        {
            let error = table(&spec("t", &["id", column], &["id"])).expect_err(column);
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert_eq!(error.context("column"), Some(column));
        }
        let fits = "x".repeat(63);
        assert!(table(&spec("t", &["id", &fits, "deleted"], &["ID"])).is_ok());
        for name in ["", "CDC_control", &"t".repeat(59)] {
            let error = table(&spec(name, &["id"], &["id"])).expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Config);
        }
        assert!(table(&spec(&"t".repeat(58), &["id"], &["id"])).is_ok());
        // Bytes are counted, not characters.
        assert!(table(&spec(&"ö".repeat(30), &["id"], &["id"])).is_err());
    }

    #[test]
    fn a_table_needs_a_key_of_captured_columns() {
        for key in [&[][..], &["other"]] {
            let error = table(&spec("t", &["id"], key)).expect_err("no key");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }
}
