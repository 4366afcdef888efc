//! Change rows: the data set's columns behind the columns of a log.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, FixedSizeBinaryArray, Int32Array, RecordBatch, TimestampMicrosecondArray,
    builder::FixedSizeBinaryBuilder,
};
use arrow_schema::SchemaRef;
use cdc_core::{Lsn, Position, Stamp, Timestamp, change::change_schema};

use crate::{
    Outcome,
    columns::{Unit, captured, columns, unit},
};

/// Rows of a record batch: what the engine asks for by default.
pub(crate) const BATCH_ROWS: usize = 16_384;
/// The width of an LSN.
const WIDTH: i32 = 10;
/// Commit times begin here, 2026-06-01, and go on by ten milliseconds a commit.
const FIRST_TIME: i64 = 1_780_272_000_000_000;
const COMMIT_MICROS: i64 = 10_000;

/// A log in which every commit has as many rows; rows and commits count from 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogShape {
    pub(crate) rows_a_commit: u64,
}

impl LogShape {
    /// The stamp of a commit.
    pub(crate) fn stamp(self, commit: u64) -> Stamp {
        let time = FIRST_TIME.saturating_add(
            i64::try_from(commit).unwrap_or(i64::MAX).saturating_mul(COMMIT_MICROS),
        );
        Stamp {
            position: self.commit(commit).into(),
            commit_time: Some(Timestamp::from_micros(time)),
        }
    }

    /// The commit at a position, when one ends there.
    pub(crate) fn commit_at(self, position: Position) -> Option<u64> {
        let block = Lsn::try_from(position).ok()?.to_u128() >> 16;
        let row = u64::try_from(block & u128::from(u32::MAX)).ok()?.checked_sub(1)?;
        let commit = (row / self.rows_a_commit).checked_sub(1)?;
        (Position::from(self.commit(commit)) == position).then_some(commit)
    }

    /// Behind its last row's own place.
    fn commit(self, commit: u64) -> Lsn {
        place(commit.saturating_add(1).saturating_mul(self.rows_a_commit).saturating_add(1), 1)
    }
}

/// A place in the log: a block, and a slot in it.
fn place(block: u64, slot: u16) -> Lsn {
    let block = u128::from(block) & u128::from(u32::MAX);
    Lsn::from_u128((0x2D << 48) | (block << 16) | u128::from(slot)).unwrap_or(Lsn::MAX)
}

/// The schema of the change rows.
pub(crate) fn schema() -> Outcome<SchemaRef> {
    Ok(change_schema(WIDTH, &columns())?)
}

/// The change rows whose captured columns are given, from row `first` of the log on.
pub(crate) fn change_rows(
    schema: &SchemaRef,
    shape: LogShape,
    first: u64,
    captured: &[ArrayRef],
) -> Outcome<RecordBatch> {
    let rows = captured.first().map_or(0, |array| array.len());
    let mut commits = FixedSizeBinaryBuilder::with_capacity(rows, WIDTH);
    let mut sequences = FixedSizeBinaryBuilder::with_capacity(rows, WIDTH);
    let mut operations = Vec::with_capacity(rows);
    let mut commands = Vec::with_capacity(rows);
    let mut times = Vec::with_capacity(rows);
    for (number, row) in (0..rows).zip(first..) {
        let commit = row / shape.rows_a_commit;
        let stamp = shape.stamp(commit);
        commits.append_value(stamp.position.as_bytes())?;
        sequences.append_value(place(row, 2).as_bytes())?;
        operations.push(operation(number));
        commands.push(i32::try_from(row % shape.rows_a_commit).unwrap_or(i32::MAX));
        times.push(stamp.commit_time.map_or(0, Timestamp::as_micros));
    }
    let commits: FixedSizeBinaryArray = commits.finish();
    let mut arrays: Vec<ArrayRef> = vec![
        Arc::new(commits),
        Arc::new(sequences.finish()),
        Arc::new(Int32Array::from(operations)),
        Arc::new(Int32Array::from(commands)),
        Arc::new(TimestampMicrosecondArray::from(times)),
    ];
    arrays.extend(captured.iter().cloned());
    Ok(RecordBatch::try_new(Arc::clone(schema), arrays)?)
}

/// Row `number` of a batch is an image of an update, an insert, or, one in ten, a delete.
fn operation(number: usize) -> i32 {
    match (unit(number / 2), number % 2) {
        (Unit::Update, 0) => 3,
        (Unit::Update, _) => 4,
        (Unit::Singles, _) if number % 20 == 3 => 1,
        (Unit::Singles, _) => 2,
    }
}

/// `count` batches of ten rows a commit, all different.
pub(crate) fn batches(count: usize, rows: usize) -> Outcome<Vec<RecordBatch>> {
    let (schema, shape) = (schema()?, LogShape { rows_a_commit: 10 });
    let step = u64::try_from(rows)?;
    (0..u64::try_from(count)?)
        .map(|part| change_rows(&schema, shape, part * step, &captured(part, rows)?))
        .collect()
}

#[cfg(test)]
mod tests {
    use cdc_core::change::ChangeColumns;

    use super::*;

    #[test]
    fn commits_ascend_and_are_found_again() {
        let shape = LogShape { rows_a_commit: 7 };
        for commit in 0..20 {
            let stamp = shape.stamp(commit);
            assert!(stamp.position < shape.stamp(commit + 1).position);
            assert_eq!(shape.commit_at(stamp.position), Some(commit));
            assert_eq!(shape.commit_at(stamp.position.increment()), None);
        }
    }

    #[test]
    fn rows_stand_in_change_order_and_pairs_together() {
        for batch in batches(2, 200).unwrap() {
            let columns = ChangeColumns::of(&batch).unwrap();
            for row in 1..columns.len() {
                assert!(columns.order(row - 1) < columns.order(row), "row {row}");
            }
            let codes = columns.operations.values();
            for row in (0..codes.len()).filter(|row| codes[*row] == 3) {
                assert_eq!(codes[row + 1], 4);
            }
        }
    }
}
