//! The newest image of every key in a bronze table, and the same rows at the source.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use cdc_core::{
    Error, Images,
    change::{ChangeOrder, Operation},
};

use crate::{cell::Cell, outcome::Failure, rows::Rows};

/// The newest image of every key of a history, in canonical order: one map of cells a row.
///
/// # Errors
/// When a column is missing or a row has no known operation.
pub fn newest(
    history: &[RecordBatch],
    columns: &[&str],
    key: &[&str],
) -> Result<Vec<BTreeMap<String, Cell>>, Failure> {
    let mut images = Images::default();
    for row in Rows::read(history, columns.iter().copied(), true)?.as_slice() {
        let lead = row.lead.clone().ok_or_else(|| Failure::new("row without a lead"))?;
        let key: Vec<_> = key.iter().map(|name| row.cells.get(*name).cloned()).collect();
        let operation = match lead.operation {
            Cell::Int(code) => Operation::from_code(i32::try_from(code).unwrap_or(-1))
                .map_err(|error: Error| Failure::new(error.report()))?,
            _ => return Err(Failure::new("row without an operation")),
        };
        let command = match lead.command {
            Cell::Int(command) => i32::try_from(command).ok(),
            _ => None,
        };
        let place = ChangeOrder {
            commit: lead.commit,
            command,
            sequence: Some(lead.sequence),
            operation: operation.code(),
        };
        images.offer(key, place, operation, || row.cells.clone());
    }
    let mut rows: Vec<_> = images.into_present().map(|(_, cells)| cells).collect();
    rows.sort();
    Ok(rows)
}

/// Rows of the table itself, in the same form.
///
/// # Errors
/// When a column is missing.
pub fn present(
    rows: &[RecordBatch],
    columns: &[&str],
) -> Result<Vec<BTreeMap<String, Cell>>, Failure> {
    let rows = Rows::read(rows, columns.iter().copied(), false)?;
    let mut rows: Vec<_> = rows.as_slice().iter().map(|row| row.cells.clone()).collect();
    rows.sort();
    Ok(rows)
}
