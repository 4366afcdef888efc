//! Record batches of foreign shape where change batches are expected.

use std::{num::NonZeroU64, sync::Arc};

use arbitrary::{Result, Unstructured};
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, TimestampMicrosecondArray};
use cdc_core::{
    Epoch, ErrorKind, RowCounts,
    change::{ChangeColumns, field},
    plan::{Cut, Cutter, Limits},
};

use crate::draw;

const ROWS_MAX: usize = 9;
const BATCHES_MAX: usize = 4;

/// Runs one input: up to four batches of one read.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    if let Ok((limit, batches)) = read(&mut input) {
        batches.iter().for_each(look);
        cut(limit, &batches);
    }
}

fn read(input: &mut Unstructured<'_>) -> Result<(u64, Vec<RecordBatch>)> {
    let limit = input.int_in_range(1..=20)?;
    let count = input.int_in_range(1..=BATCHES_MAX)?;
    let batches = (0..count).map(|_| batch(input)).collect::<Result<_>>()?;
    Ok((limit, batches))
}

/// The fields of a change batch, or nearly.
fn batch(input: &mut Unstructured<'_>) -> Result<RecordBatch> {
    let rows = input.int_in_range(0..=ROWS_MAX)?;
    let names =
        [field::START_LSN, field::SEQVAL, field::OPERATION, field::COMMAND_ID, field::COMMIT_TS];
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let name = if input.ratio(1, 40)? { "_other" } else { name };
        let array = if input.ratio(1, 40)? {
            draw::foreign(input, rows)?
        } else {
            match at {
                0 | 1 => draw::positions(input, rows)?,
                2 => operations(input, rows)?,
                3 => Arc::new(Int32Array::from(
                    (0..rows).map(|_| input.arbitrary()).collect::<Result<Vec<Option<i32>>>>()?,
                )),
                _ => Arc::new(TimestampMicrosecondArray::from(
                    (0..rows).map(|_| input.arbitrary()).collect::<Result<Vec<Option<i64>>>>()?,
                )),
            }
        };
        columns.push((name.to_owned(), array));
    }
    columns.truncate(if input.ratio(1, 20)? { input.int_in_range(0..=4)? } else { 5 });
    for at in 0..input.int_in_range(0..=2)? {
        columns.push((format!("c{at}"), draw::foreign(input, rows)?));
    }
    Ok(draw::batch(columns, rows))
}

fn operations(input: &mut Unstructured<'_>, rows: usize) -> Result<ArrayRef> {
    let strange = input.ratio(1, 6)?;
    let codes = (0..rows)
        .map(|_| if strange { input.arbitrary() } else { Ok(Some(input.int_in_range(1..=4)?)) });
    Ok(Arc::new(Int32Array::from(codes.collect::<Result<Vec<Option<i32>>>>()?)))
}

/// What is taken for a change batch has a commit and an operation in every row, and is counted row
/// for row.
fn look(batch: &RecordBatch) {
    let columns = match ChangeColumns::of(batch) {
        Ok(columns) => columns,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Bug);
            assert!(error.context("column").is_some());
            return;
        }
    };
    assert_eq!(columns.len(), batch.num_rows());
    assert_eq!(columns.commits.null_count() + columns.operations.null_count(), 0);
    for row in 0..columns.len() {
        let order = columns.order(row);
        assert_eq!(order.commit, columns.commits.value(row));
        assert_eq!(order.command.is_some(), columns.commands.is_valid(row));
        assert_eq!(columns.time(row).is_some(), columns.times.is_valid(row));
    }
    let mut counts = RowCounts::default();
    match counts.add(Epoch(3), batch) {
        Ok(()) => {
            let codes = columns.operations.values();
            let count = |code| codes.iter().filter(|found| **found == code).count() as u64;
            assert_eq!(counts.rows, codes.len() as u64);
            assert_eq!(
                (counts.deletes, counts.inserts, counts.updates),
                (count(1), count(2), count(4))
            );
            assert_eq!(codes.iter().filter(|code| !(1..=4).contains(*code)).count(), 0);
            assert_eq!(counts.first.is_some(), !codes.is_empty());
            if let (Some(first), Some(last)) = (counts.first, counts.last) {
                assert_eq!(first.position.as_bytes(), columns.commits.value(0));
                assert_eq!(last.position.as_bytes(), columns.commits.value(codes.len() - 1));
            }
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidData, "{}", error.report()),
    }
}

/// A batch ends before the first row that begins another commit and has the limit's number of
/// rows before it, and nowhere else.
fn cut(limit: u64, batches: &[RecordBatch]) {
    let limits = Limits {
        commits_max: None,
        rows_max: NonZeroU64::new(limit).unwrap(),
        bytes_max: NonZeroU64::MAX,
    };
    let mut cutter = Cutter::new(&limits);
    let mut taken: Vec<Vec<u8>> = Vec::new();
    for columns in batches.iter().filter_map(|batch| ChangeColumns::of(batch).ok()) {
        let commits = columns.commits;
        let expected = (0..commits.len()).find(|row| {
            let before = match row.checked_sub(1) {
                Some(before) => Some(commits.value(before)),
                None => taken.last().map(Vec::as_slice),
            };
            let reached = taken.len() as u64 + *row as u64 >= limit;
            reached && before.is_some_and(|before| before != commits.value(*row))
        });
        match (cutter.next(commits, 8 * commits.len() as u64).unwrap(), expected) {
            (Cut::Take, None) => {}
            (Cut::Stop(row), Some(expected)) => {
                assert_eq!(row, expected);
                return;
            }
            (cut, expected) => panic!("{cut:?} instead of {expected:?}"),
        }
        taken.extend((0..commits.len()).map(|row| commits.value(row).to_vec()));
    }
}
