//! Rows of a table, their counts, and the ends and bounds of their keys. Each works on the disjoint
//! pieces of a key range that an index can seek.

use std::time::Duration;

use cdc_core::{Result, diagnosis::RowIsolation};

use super::{
    Parameters,
    key_range::{KeyColumn, Pieces},
    number_column, question,
};
use crate::{
    driver::{Matching, Parameter, ResultColumn, Statement},
    name::ObjectName,
};

/// Puts around a read of a table's rows how it is isolated and how long it waits for locks. What
/// is set in front is set back behind: whether a server does so itself when `sp_executesql` ends
/// is not relied on. A read that fails in between takes its connection with it.
pub(crate) fn isolated(
    mut statement: Statement,
    isolation: RowIsolation,
    lock_timeout: Option<Duration>,
) -> Statement {
    let (mut before, mut after) = (String::new(), String::new());
    if let Some(timeout) = lock_timeout {
        let milliseconds = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
        before.push_str(&format!("SET LOCK_TIMEOUT {milliseconds}; "));
        after.push_str("; SET LOCK_TIMEOUT -1");
    }
    if isolation == RowIsolation::Snapshot {
        before.push_str("SET TRANSACTION ISOLATION LEVEL SNAPSHOT; ");
        after.push_str("; SET TRANSACTION ISOLATION LEVEL READ COMMITTED");
    }
    statement.text = format!("{before}{}{after}", statement.text);
    statement
}

/// The rows of a range, in any order. `columns` are expressions over the alias `t`.
pub(crate) fn rows(
    table: &ObjectName,
    columns: Vec<(String, ResultColumn)>,
    pieces: Pieces,
    batch_rows: usize,
) -> Statement {
    let list = expressions(&columns);
    let selects: Vec<_> = pieces
        .predicates
        .iter()
        .map(|predicate| format!("SELECT {list} FROM {table} AS t{}", filter(predicate)))
        .collect();
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let text = selects.join(" UNION ALL ");
    let mut statement = question(text, pieces.parameters, columns, Matching::Place);
    statement.batch_rows = batch_rows;
    statement
}

/// The number of rows of each piece of a range.
pub(crate) fn count(table: &ObjectName, pieces: Pieces) -> Statement {
    let selects: Vec<_> = pieces
        .predicates
        .iter()
        .map(|predicate| {
            format!("SELECT COUNT_BIG(*) AS rows FROM {table} AS t{}", filter(predicate))
        })
        .collect();
    question(
        selects.join(" UNION ALL "),
        pieces.parameters,
        vec![number_column("rows")],
        Matching::Place,
    )
}

/// The first key, then the last: a seek each. No row for an empty table.
pub(crate) fn key_extent(
    table: &ObjectName,
    key: &[KeyColumn],
    columns: Vec<(String, ResultColumn)>,
) -> Statement {
    let list = expressions(&columns);
    let end = |direction: &str| {
        format!("SELECT TOP (1) {list} FROM {table} AS t ORDER BY {}", order("t", key, direction))
    };
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let text = format!("{}; {}", end(""), end(" DESC"));
    question(text, Parameters::default(), columns, Matching::Place)
}

/// The key with `rows` keys of the range before it; no row when there are no more.
pub(crate) fn key_bound(
    table: &ObjectName,
    key: &[KeyColumn],
    columns: Vec<(String, ResultColumn)>,
    mut pieces: Pieces,
    rows: i64,
) -> Statement {
    let names: Vec<_> = key.iter().map(|column| format!("t.{}", column.name)).collect();
    let names = names.join(", ");
    let most = pieces.parameters.add(Parameter::Int(rows.saturating_add(1)));
    let skipped = pieces.parameters.add(Parameter::Int(rows));
    // Each piece gives as many keys as could be needed of it, in order, so that it ends early.
    let selects: Vec<_> = pieces
        .predicates
        .iter()
        .enumerate()
        .map(|(at, predicate)| {
            format!(
                "SELECT p{at}.* FROM (SELECT TOP ({most}) {names} FROM {table} AS t{} \
                 ORDER BY {}) AS p{at}",
                filter(predicate),
                order("t", key, "")
            )
        })
        .collect();
    let text = format!(
        "SELECT {} FROM ({}) AS t ORDER BY {} OFFSET {skipped} ROWS FETCH NEXT 1 ROWS ONLY",
        expressions(&columns),
        selects.join(" UNION ALL "),
        order("t", key, "")
    );
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    question(text, pieces.parameters, columns, Matching::Place)
}

fn filter(predicate: &str) -> String {
    if predicate.is_empty() { String::new() } else { format!(" WHERE {predicate}") }
}

fn expressions(columns: &[(String, ResultColumn)]) -> String {
    let list: Vec<_> = columns.iter().map(|(expression, _)| expression.as_str()).collect();
    // A row without columns is a row all the same.
    if list.is_empty() { "1".into() } else { list.join(", ") }
}

fn order(alias: &str, key: &[KeyColumn], direction: &str) -> String {
    let list: Vec<_> =
        key.iter().map(|column| format!("{alias}.{}{direction}", column.name)).collect();
    list.join(", ")
}

/// The pieces of a range, checked to fit into one statement.
///
/// # Errors
/// `Unsupported` for a key with too many columns.
pub(crate) fn checked(pieces: Pieces) -> Result<Pieces> {
    if pieces.parameters.len() >= super::PARAMETERS_MAX {
        return Err(cdc_core::Error::new(
            cdc_core::ErrorKind::Unsupported,
            "the key has too many columns for a range",
        ));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_for_a_read_is_set_back_behind_it() {
        let read = || question("SELECT 1".into(), Parameters::default(), vec![], Matching::Place);
        let text = |isolation, timeout| isolated(read(), isolation, timeout).text;
        assert_eq!(text(RowIsolation::ReadCommitted, None), "SELECT 1");
        assert_eq!(
            text(RowIsolation::Snapshot, Some(Duration::from_secs(5))),
            "SET LOCK_TIMEOUT 5000; SET TRANSACTION ISOLATION LEVEL SNAPSHOT; SELECT 1; \
             SET LOCK_TIMEOUT -1; SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
        );
        let long = Some(Duration::from_secs(u64::MAX));
        assert!(text(RowIsolation::ReadCommitted, long).contains("2147483647"));
    }
}
