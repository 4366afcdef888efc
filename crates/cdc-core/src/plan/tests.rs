//! What batch planning promises.

use proptest::prelude::*;

use super::*;
use crate::{Epoch, InstanceName, Lsn, TableName, Timestamp};

fn at(number: u128) -> Position {
    Lsn::from_u128(number).expect("below 2^80").into()
}

fn instance(name: &str, start: u128) -> CaptureInstance {
    CaptureInstance {
        name: InstanceName::new(name),
        table: TableName::new("dbo", "t"),
        start: at(start),
        columns: Vec::new(),
        key: Vec::new(),
    }
}

fn limits(rows: u64, bytes: u64) -> Limits {
    Limits {
        commits_max: None,
        rows_max: NonZeroU64::new(rows).expect("positive"),
        bytes_max: NonZeroU64::new(bytes).expect("positive"),
    }
}

#[test]
fn a_mark_above_high_is_another_log_unless_the_instance_is_still_ahead() {
    let broken = plan(at(90), Bound::At(at(80)), None, at(10)).expect_err("above high");
    assert_eq!(broken.kind(), ErrorKind::LineageBroken);
    let gone = plan(at(90), Bound::Null, None, at(10)).expect_err("capture never ran");
    assert_eq!(gone.kind(), ErrorKind::LineageBroken);
    // A fresh instance starts at 55 while capture stands at 40, then 50, then 60.
    for high in [Bound::Null, Bound::Zero, Bound::At(at(40)), Bound::At(at(50))] {
        assert_eq!(plan(at(54), high, None, at(55)).expect("waits"), Plan::WaitingForCapture);
    }
    let read = plan(at(54), Bound::At(at(60)), None, at(55)).expect("reached");
    assert_eq!(read, Plan::Read(ClosedRange::new(at(55), at(60)).expect("range")));
}

#[test]
fn a_limit_counts_entries_and_an_idle_end_is_an_end() {
    let read = plan(at(10), Bound::At(at(30)), Some(at(20)), at(1)).expect("planned");
    assert_eq!(read, Plan::Read(ClosedRange::new(at(11), at(20)).expect("range")));
    let beyond = plan(at(10), Bound::At(at(30)), Some(at(31)), at(1)).expect("planned");
    assert_eq!(beyond, Plan::Read(ClosedRange::new(at(11), at(30)).expect("range")));
    let behind = plan(at(10), Bound::At(at(30)), Some(at(10)), at(1)).expect_err("inverted");
    assert_eq!(behind.kind(), ErrorKind::Bug);
}

#[test]
fn the_newer_instance_is_read_from_its_start() {
    let instances = [instance("old", 5), instance("new", 20)];
    let all = ClosedRange::new(at(10), at(30)).expect("range");
    let parts: Vec<_> = pieces(all, &instances)
        .into_iter()
        .map(|piece| (piece.instance.name.as_str().to_owned(), piece.range))
        .collect();
    let part = |from, to| ClosedRange::new(at(from), at(to)).expect("range");
    assert_eq!(parts, [("old".to_owned(), part(10, 19)), ("new".to_owned(), part(20, 30))]);
    let late = pieces(part(20, 30), &instances);
    assert_eq!((late.len(), late[0].instance.name.as_str()), (1, "new"));
    let early = pieces(part(10, 19), &instances);
    assert_eq!((early.len(), early[0].instance.name.as_str()), (1, "old"));
    assert_eq!(holder(at(18), &instances).expect("one").name.as_str(), "old");
    assert_eq!(holder(at(19), &instances).expect("one").name.as_str(), "new");
    assert_eq!(holder(at(1), &instances).expect("one").name.as_str(), "old");
}

#[test]
fn a_mark_whose_entry_is_gone_or_moved_belongs_to_another_log() {
    let time = Timestamp::from_micros(1_000_000_000_000);
    let mark =
        Mark { sequence: 3, end: at(50), commit_time: Some(time), entry_time: None, generation: 0 };
    assert!(check_lineage(&mark, at(10), Some(time)).is_ok());
    assert!(
        check_lineage(&mark, at(52), None).is_ok(),
        "cleanup has passed it, as the guard tells"
    );
    assert!(check_lineage(&Mark { commit_time: None, ..mark }, at(10), None).is_ok());
    let hour = time.plus_micros(-3_600_000_000);
    assert!(check_lineage(&mark, at(10), Some(hour)).is_ok(), "another zone setting");
    let earlier = time.plus_micros(-3_333);
    assert!(check_lineage(&mark, at(10), Some(earlier)).is_ok(), "out of order by a tick");
    let days = time.plus_micros(-2 * 86_400_000_000);
    for observed in [None, Some(time.plus_micros(3_333)), Some(days)] {
        let error = check_lineage(&mark, at(10), observed).expect_err("another log");
        assert_eq!(error.kind(), ErrorKind::LineageBroken);
    }
}

#[test]
fn a_mark_that_knows_its_entrys_time_is_not_deceived_by_a_clock_that_was_put_back() {
    let time = Timestamp::from_micros(1_000_000_000_000);
    let entry_time = Some(time.plus_micros(-7_000_000));
    let mark =
        Mark { sequence: 3, end: at(50), commit_time: Some(time), entry_time, generation: 0 };
    assert!(check_lineage(&mark, at(10), entry_time).is_ok(), "the clock had been put back");
    let pass = entry_time.map(|time| time.plus_micros(-1_800_000_000));
    assert!(check_lineage(&mark, at(10), pass).is_ok(), "the rows before it are gone");
    // A restored log gives the position again, in an hour that the clock shows twice.
    let again = entry_time.map(|time| time.plus_micros(-1_234_567_000));
    for observed in [again, Some(time), None] {
        let error = check_lineage(&mark, at(10), observed).expect_err("another log");
        assert_eq!(error.kind(), ErrorKind::LineageBroken);
    }
}

#[test]
fn a_mark_right_before_the_low_position_passes_only_while_its_entry_is_there() {
    let entry_time = Some(Timestamp::from_micros(1_000_000_000_000));
    let mark =
        Mark { sequence: 3, end: at(50), commit_time: entry_time, entry_time, generation: 0 };
    assert!(check_lineage(&mark, at(51), entry_time).is_ok());
    let error = check_lineage(&mark, at(51), None).expect_err("nothing tells the log");
    assert_eq!(error.kind(), ErrorKind::DataLoss);
    let other = entry_time.map(|time| time.plus_micros(1));
    let error = check_lineage(&mark, at(51), other).expect_err("another entry");
    assert_eq!(error.kind(), ErrorKind::LineageBroken);
}

/// Splits `commits` (ids in order, one a row) as the engine does: reads in arrays of `step`
/// rows, and starts the next batch where the last one ended. Gives the rows of each batch.
fn run(commits: &[u8], step: usize, limits: &Limits, row_bytes: u64) -> Vec<Vec<u8>> {
    let mut batches = Vec::new();
    let mut begin = 0;
    while begin < commits.len() {
        let mut cutter = Cutter::new(limits);
        let mut end = begin;
        for rows in commits[begin..].chunks(step) {
            let array =
                FixedSizeBinaryArray::try_from_iter(rows.iter().map(|id| [*id])).expect("rows");
            match cutter.next(&array, row_bytes * rows.len() as u64).expect("cut") {
                Cut::Take => end += rows.len(),
                Cut::Stop(rows) => {
                    end += rows;
                    break;
                }
            }
        }
        assert!(end > begin, "every batch makes progress");
        batches.push(commits[begin..end].to_vec());
        begin = end;
    }
    batches
}

#[test]
fn a_batch_ends_with_the_commit_that_reaches_a_limit() {
    let commits = [1, 1, 1, 2, 3, 3, 3, 3, 4];
    for step in 1..10 {
        let cut = run(&commits, step, &limits(2, u64::MAX), 1);
        assert_eq!(cut, [vec![1, 1, 1], vec![2, 3, 3, 3, 3], vec![4]], "step {step}");
        let by_bytes = run(&commits, step, &limits(u64::MAX, 20), 10);
        assert_eq!(by_bytes, cut, "step {step}");
    }
}

proptest! {
    #[test]
    fn every_batch_is_a_run_of_whole_commits_near_its_limit(
        sizes in proptest::collection::vec(1usize..9, 1..30),
        step in 1usize..12,
        rows_max in 1u64..20,
    ) {
        let commits: Vec<u8> =
            sizes.iter().zip(0u8..).flat_map(|(size, id)| std::iter::repeat_n(id, *size)).collect();
        let batches = run(&commits, step, &limits(rows_max, u64::MAX), 8);
        prop_assert_eq!(batches.concat(), commits);
        for pair in batches.windows(2) {
            prop_assert_ne!(pair[0].last(), pair[1].first(), "a commit was split");
            // Full, and not fuller than its last commit makes it.
            prop_assert!(pair[0].len() as u64 >= rows_max);
            let last = pair[0].iter().filter(|id| Some(*id) == pair[0].last()).count();
            prop_assert!(((pair[0].len() - last) as u64) < rows_max);
        }
    }

    #[test]
    fn planned_ranges_join_without_gap_or_overlap_and_end_at_high(
        start in 1u128..20, steps in proptest::collection::vec((1u128..30, 1u128..9), 1..30),
    ) {
        let mut after = at(start - 1);
        let mut high = start - 1;
        for (growth, nth) in steps {
            high += growth;
            let nth = Position::from(Lsn::from_u128(Lsn::try_from(after).expect("lsn").to_u128() + nth).expect("small"));
            match plan(after, Bound::At(at(high)), Some(nth), at(start)).expect("planned") {
                Plan::Read(range) => {
                    prop_assert_eq!(range.from(), after.increment());
                    prop_assert_eq!(range.to(), nth.min(at(high)));
                    after = range.to();
                }
                other => prop_assert!(false, "{:?} although high has grown", other),
            }
        }
        prop_assert_eq!(plan(at(high), Bound::At(at(high)), None, at(start)).expect("planned"), Plan::UpToDate);
    }

    #[test]
    fn pieces_tile_the_range(
        from in 1u128..60, length in 0u128..60, starts in proptest::collection::btree_set(1u128..120, 1..3),
    ) {
        let instances: Vec<_> = starts.iter().map(|start| instance("i", *start)).collect();
        let range = ClosedRange::new(at(from), at(from + length)).expect("range");
        let parts = pieces(range, &instances);
        prop_assert_eq!(parts[0].range.from(), range.from());
        prop_assert_eq!(parts[parts.len() - 1].range.to(), range.to());
        for pair in parts.windows(2) {
            prop_assert_eq!(pair[0].range.to().increment(), pair[1].range.from());
            prop_assert_eq!(pair[1].range.from(), pair[1].instance.start);
        }
        for piece in &parts {
            let newest = instances.iter().rfind(|i| i.start <= piece.range.from()).unwrap_or(&instances[0]);
            prop_assert_eq!(piece.instance.start, newest.start);
        }
    }

    #[test]
    fn a_plan_never_joins_two_epochs(a in 0u128..9, high in 0u128..9, epoch in 1u32..3) {
        let planned = plan(at(a), Bound::At(at(high).in_epoch(Epoch(epoch))), None, at(1));
        prop_assert_eq!(planned.expect_err("another lineage").kind(), ErrorKind::LineageBroken);
    }
}
