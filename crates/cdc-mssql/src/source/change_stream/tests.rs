//! Commit times and pairs of images, without a server.

#![allow(clippy::unwrap_used)]

use std::collections::VecDeque;

use arrow_array::{FixedSizeBinaryArray, Int32Array};
use cdc_core::{change::change_schema, time::ServerZone};
use proptest::prelude::*;

use super::*;

/// A batch as the driver gives it: commits by number, operations, readings in seconds.
fn raw(rows: &[(u8, Option<i32>, i64)]) -> RecordBatch {
    let commits = rows.iter().map(|row| [row.0; 10]);
    let commits = FixedSizeBinaryArray::try_from_iter(commits).unwrap();
    let operations = Int32Array::from_iter(rows.iter().map(|row| row.1));
    let times = rows.iter().map(|row| row.2 * 1_000_000);
    let times = TimestampMicrosecondArray::from_iter_values(times);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(commits.clone()),
        Arc::new(commits),
        Arc::new(operations.clone()),
        Arc::new(operations),
        Arc::new(times),
    ];
    RecordBatch::try_new(loose(&schema()), columns).unwrap()
}

fn schema() -> SchemaRef {
    change_schema(10, &[]).unwrap()
}

fn operations(batch: &RecordBatch) -> Vec<i32> {
    batch.column(2).as_primitive::<Int32Type>().values().to_vec()
}

/// Operations of a log: single ones, and updates with their two images.
fn log() -> impl Strategy<Value = Vec<i32>> {
    let one = prop_oneof![Just(vec![1]), Just(vec![2]), Just(vec![3, 4])];
    proptest::collection::vec(one, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn no_pair_is_split_and_no_row_is_lost_repeated_or_moved(log in log(), size in 1..6_usize) {
        let mut pairs = Pairs::default();
        let mut ready = VecDeque::new();
        for rows in log.chunks(size) {
            let rows: Vec<_> = rows.iter().map(|code| (1, Some(*code), 0)).collect();
            let mut times =
                CommitTimes { clock: CommitClock::new(ServerZone::UTC), last: None };
            pairs.push(times.dated(&raw(&rows), &schema()).unwrap(), &mut ready).unwrap();
        }
        ready.extend(pairs.held.take());
        for batch in &ready {
            prop_assert!((1..=size + 1).contains(&batch.num_rows()));
            prop_assert!(operations(batch).last() != Some(&3));
            prop_assert!(operations(batch).first() != Some(&4));
        }
        prop_assert_eq!(ready.iter().flat_map(operations).collect::<Vec<_>>(), log);
    }
}

#[test]
fn an_entry_without_a_change_moves_the_clock_and_is_left_out() {
    let berlin = ServerZone::parse("zone", "Europe/Berlin").unwrap();
    let seconds = |text: &str| {
        let wall: chrono::NaiveDateTime = text.parse().unwrap();
        wall.and_utc().timestamp()
    };
    let rows = [
        (1, Some(2), seconds("2025-10-26T02:10:00")),
        // Of another table, in the first pass of the repeated hour.
        (2, None, seconds("2025-10-26T02:50:00")),
        (3, Some(2), seconds("2025-10-26T02:10:00")),
        (3, Some(1), seconds("2025-10-26T02:10:00")),
    ];
    let mut times = CommitTimes { clock: CommitClock::new(berlin), last: None };
    let dated = times.dated(&raw(&rows), &schema()).unwrap();
    let moments = dated.column(4).as_primitive::<TimestampMicrosecondType>().values().to_vec();
    let utc = |text: &str| seconds(text) * 1_000_000;
    let second = utc("2025-10-26T01:10:00");
    assert_eq!(moments, [utc("2025-10-26T00:10:00"), second, second]);
    assert_eq!(operations(&dated), [2, 2, 1]);
}
