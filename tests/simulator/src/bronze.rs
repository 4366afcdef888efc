//! Rows of a bronze table, as the auditor looks at them.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use cdc_conformance::cell::Cell;
use cdc_core::{Lsn, change::Operation};

/// A row of a bronze table.
pub struct Row {
    /// The commit.
    pub commit: Lsn,
    /// The change's place in the log.
    pub seqval: Lsn,
    /// What the row says.
    pub operation: i32,
    /// The commit time: microseconds.
    pub time: Option<i64>,
    /// The batch that brought it.
    pub batch: Cell,
    /// The instance that it was read from.
    pub instance: Cell,
    /// The source's columns.
    pub cells: BTreeMap<String, Cell>,
}

/// A value; NULL for what is not there.
#[must_use]
pub fn cell(batch: &RecordBatch, name: &str, row: usize) -> Cell {
    batch
        .column_by_name(name)
        .and_then(|column| Cell::of(column.as_ref(), row).ok())
        .unwrap_or(Cell::Null)
}

/// Microseconds of a time.
#[must_use]
pub const fn micros(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Wall(micros) | Cell::Instant(micros) => Some(*micros),
        _ => None,
    }
}

fn lsn(cell: &Cell) -> Result<Lsn, String> {
    match cell {
        Cell::Bytes(bytes) => Lsn::try_from(bytes.as_slice()).map_err(|error| error.to_string()),
        Cell::Text(text) => text.parse::<Lsn>().map_err(|error| error.to_string()),
        other => Err(format!("no LSN: {other:?}")),
    }
}

/// The rows of record batches of a bronze table, in their order.
///
/// # Errors
/// Why they are none.
pub fn rows_of(batches: &[RecordBatch]) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let operation = match cell(batch, "_operation", row) {
                Cell::Int(code) => i32::try_from(code).unwrap_or(-1),
                _ => -1,
            };
            if Operation::from_code(operation).is_err() {
                return Err("a row without an operation".into());
            }
            rows.push(Row {
                commit: lsn(&cell(batch, "_start_lsn", row))?,
                seqval: lsn(&cell(batch, "_seqval", row))?,
                operation,
                time: micros(&cell(batch, "_commit_ts", row)),
                batch: cell(batch, "_batch_id", row),
                instance: cell(batch, "_capture_instance", row),
                cells: captured(batch)
                    .map(|name| (name.to_owned(), cell(batch, name, row)))
                    .collect(),
            });
        }
    }
    Ok(rows)
}

/// The columns of the source: the library's own begin with an underscore.
fn captured(batch: &RecordBatch) -> impl Iterator<Item = &str> {
    let names = batch.schema_ref().fields().iter().map(|field| field.name().as_str());
    names.filter(|name| !name.starts_with('_'))
}
