//! What a reader sees of a target, in a form that compares.

use std::{collections::BTreeMap, fmt};

use arrow_array::{Array, RecordBatch};
use cdc_core::change::field;

use crate::{cell::Cell, outcome::Failure};

/// The column that names a row's capture instance in a history.
pub const CAPTURE_INSTANCE: &str = "_capture_instance";
/// The column that holds the snapshot a row belongs to, in a history.
pub const SNAPSHOT: &str = "_snapshot";
/// The column that holds the index of a row's chunk, in a history.
pub const CHUNK: &str = "_chunk";

/// Where a row of a history comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lead {
    /// `_start_lsn`: the commit, or the stamp of a snapshot row, as `0x` and upper-case digits.
    pub commit: Cell,
    /// `_command_id`.
    pub command: Cell,
    /// `_seqval`.
    pub sequence: Cell,
    /// `_operation`.
    pub operation: Cell,
    /// `_commit_ts`.
    pub time: Cell,
    /// `_snapshot`: S; NULL for a change.
    pub snapshot: Cell,
    /// `_chunk`: the chunk's index; NULL for a change and for a whole snapshot.
    pub chunk: Cell,
    /// `_capture_instance`.
    pub instance: Cell,
}

/// One row: its lead, in a history, and its cells by lower-case column name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Where the row comes from; none for a sink that keeps one row a key.
    pub lead: Option<Lead>,
    /// The values of the captured columns.
    pub cells: BTreeMap<String, Cell>,
}

/// Rows in canonical order. What order a reader returns them in is no part of a contract.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows(Vec<Row>);

/// A position as tables print it.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::from("0x");
    for byte in bytes {
        text.push_str(&format!("{byte:02X}"));
    }
    text
}

impl Rows {
    /// Rows, put in canonical order.
    #[must_use]
    pub fn new(mut rows: Vec<Row>) -> Self {
        rows.sort();
        Self(rows)
    }

    /// The rows of what a reader returned: the columns named in `captured`, and for a history the
    /// leading columns too. Columns that are neither are the sink's own and left out.
    ///
    /// # Errors
    /// When a column is missing, or has a type that no cell has.
    pub fn read<'a>(
        batches: &[RecordBatch],
        captured: impl IntoIterator<Item = &'a str> + Clone,
        history: bool,
    ) -> Result<Self, Failure> {
        let mut rows = Vec::new();
        for batch in batches {
            for row in 0..batch.num_rows() {
                let lead = history.then(|| lead(batch, row)).transpose()?;
                let mut cells = BTreeMap::new();
                for name in captured.clone() {
                    let cell = Cell::of(column(batch, name)?, row)?;
                    cells.insert(name.to_lowercase(), cell);
                }
                rows.push(Row { lead, cells });
            }
        }
        Ok(Self::new(rows))
    }

    /// The rows.
    #[must_use]
    pub fn as_slice(&self) -> &[Row] {
        &self.0
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fails unless both hold the same rows; tells the first ones that only one side has.
    ///
    /// # Errors
    /// When they differ.
    pub fn must_equal(&self, expected: &Self) -> Result<(), Failure> {
        if self == expected {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{} rows expected, {} found; missing {}; not expected {}",
            expected.len(),
            self.len(),
            Sample(&expected.0, &self.0),
            Sample(&self.0, &expected.0),
        )))
    }
}

/// The first rows of one side that the other lacks.
struct Sample<'a>(&'a [Row], &'a [Row]);

impl fmt::Display for Sample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let mut other: BTreeMap<&Row, usize> = BTreeMap::new();
        for row in self.1 {
            *other.entry(row).or_default() += 1;
        }
        let lacking: Vec<_> = self
            .0
            .iter()
            .filter(|row| match other.get_mut(row) {
                Some(count) if *count > 0 => {
                    *count -= 1;
                    false
                }
                _ => true,
            })
            .collect();
        write!(f, "{}", lacking.len())?;
        for row in lacking.iter().take(SHOWN) {
            write!(f, " {row:?}")?;
        }
        Ok(())
    }
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array, Failure> {
    let folded = name.to_lowercase();
    let schema = batch.schema_ref();
    let at = schema
        .fields()
        .iter()
        .position(|field| field.name().to_lowercase() == folded)
        .ok_or_else(|| Failure::new(format!("the reader shows no column {name}")))?;
    Ok(batch.column(at).as_ref())
}

fn lead(batch: &RecordBatch, row: usize) -> Result<Lead, Failure> {
    let cell = |name: &str| Cell::of(column(batch, name)?, row);
    let position = |name: &str| {
        Ok::<_, Failure>(match cell(name)? {
            Cell::Bytes(bytes) => Cell::Text(hex(&bytes)),
            other => other,
        })
    };
    Ok(Lead {
        commit: position(field::START_LSN)?,
        command: cell(field::COMMAND_ID)?,
        sequence: position(field::SEQVAL)?,
        operation: cell(field::OPERATION)?,
        time: cell(field::COMMIT_TS)?,
        snapshot: position(SNAPSHOT)?,
        chunk: cell(CHUNK)?,
        instance: cell(CAPTURE_INSTANCE)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64) -> Row {
        Row { lead: None, cells: [("id".to_owned(), Cell::Int(id))].into() }
    }

    #[test]
    fn order_does_not_matter_but_repetition_does() {
        let rows = |ids: &[i64]| Rows::new(ids.iter().map(|id| row(*id)).collect());
        assert!(rows(&[2, 1]).must_equal(&rows(&[1, 2])).is_ok());
        let failure = rows(&[1, 1]).must_equal(&rows(&[1])).unwrap_err().to_string();
        assert!(failure.contains("1 rows expected, 2 found; missing 0; not expected 1"));
    }
}
