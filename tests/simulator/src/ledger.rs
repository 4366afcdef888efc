//! What facts must say of a batch: counted anew from the rows that landed.

use arrow_array::RecordBatch;
use cdc_conformance::cell::Cell;
use cdc_core::{Mark, change::Operation};

use crate::bronze::{Row, cell, micros};

/// A row of facts as far as the batch itself tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    end: String,
    end_time: Option<i64>,
    /// Rows, deletes, inserts, updates.
    counts: [i64; 4],
    /// Commit and time of the first row, and of the last.
    bounds: [(Option<String>, Option<i64>); 2],
}

impl Told {
    /// What the batch of a mark is.
    #[must_use]
    pub fn of(mark: &Mark, rows: &[Row]) -> Self {
        let of = |operation: Operation| {
            rows.iter().filter(|row| row.operation == operation.code()).count()
        };
        let counts =
            [rows.len(), of(Operation::Delete), of(Operation::Insert), of(Operation::UpdateAfter)];
        let bound = |row: Option<&Row>| {
            (row.map(|row| row.commit.to_string()), row.and_then(|row| row.time))
        };
        Self {
            end: mark.end.to_string(),
            end_time: mark.commit_time.map(cdc_core::Timestamp::as_micros),
            counts: counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
            bounds: [bound(rows.first()), bound(rows.last())],
        }
    }

    /// True when the batch ends where this mark does.
    #[must_use]
    pub fn ends_at(&self, mark: &Mark) -> bool {
        let time = mark.commit_time.map(cdc_core::Timestamp::as_micros);
        self.end == mark.end.to_string() && self.end_time == time
    }

    /// What a row of facts says.
    #[must_use]
    pub fn read(facts: &RecordBatch, row: usize) -> Self {
        let text = |name: &str| match cell(facts, name, row) {
            Cell::Text(text) => Some(text),
            _ => None,
        };
        let count = |name: &str| match cell(facts, name, row) {
            Cell::Int(count) => count,
            _ => -1,
        };
        let time = |name: &str| micros(&cell(facts, name, row));
        Self {
            end: text("end_lsn").unwrap_or_default(),
            end_time: time("end_commit_ts"),
            counts: ["rows", "deletes", "inserts", "updates"].map(count),
            bounds: [
                (text("min_lsn"), time("min_commit_ts")),
                (text("max_lsn"), time("max_commit_ts")),
            ],
        }
    }
}

/// The table and the number of the batch that a row of facts is of; none for a row of an event.
///
/// # Errors
/// Why it is neither.
pub fn subject(facts: &RecordBatch, row: usize) -> Result<Result<(String, i64), String>, String> {
    if let Cell::Text(event) = cell(facts, "event", row) {
        return Ok(Err(event));
    }
    match (cell(facts, "target", row), cell(facts, "batch_id", row)) {
        (Cell::Text(table), Cell::Int(id)) => Ok(Ok((table, id))),
        _ => Err("facts without a table or a batch".into()),
    }
}
