//! Each mistake that can be planted in the engine changes what a run does: the same story is told
//! without it and with it.

use super::*;
use crate::planted::{Planted, with};

/// What a run came to.
#[derive(Debug, Default, PartialEq)]
struct Told {
    /// Sequence, end, and rows of every commit.
    commits: Vec<(u64, u128, u64)>,
    /// The last mark's time, in hours.
    time: Option<i64>,
    /// Ends of the published verdicts, and 0 for a commit between them.
    verdicts: Vec<u128>,
    stops: Vec<ErrorKind>,
}

impl Told {
    fn rows(&self) -> u64 {
        self.commits.iter().map(|(_, _, rows)| rows).sum()
    }

    fn end(&self) -> u128 {
        self.commits.last().map_or(0, |(_, end, _)| *end)
    }
}

fn number(position: Position) -> u128 {
    crate::Lsn::try_from(position).expect("an LSN").to_u128()
}

/// A table that takes everything and notes what it is given.
fn noting(held: Arc<Mutex<Mark>>, told: Arc<Mutex<Told>>) -> MockTab {
    let mut table = closing();
    table.expect_stage().returning(|_| Ok(()));
    table.expect_discard().returning(|| Ok(()));
    table.expect_evolve().returning(|_| Ok(()));
    let seen = Arc::clone(&told);
    table.expect_commit().returning(move |commit| {
        let mark = commit.mark;
        *held.lock().expect("not poisoned") = mark;
        let mut told = seen.lock().expect("not poisoned");
        told.commits.push((mark.sequence, number(mark.end), commit.facts.counts.rows));
        told.time = mark.commit_time.map(|at| at.as_micros() / 3_600_000_000);
        told.verdicts.push(0);
        Ok(Committed::Now)
    });
    table.expect_publish().returning(move |verdict| {
        let end = number(verdict.end.position);
        told.lock().expect("not poisoned").verdicts.push(end);
        Ok(verdict)
    });
    table
}

fn lenient(mark: Mark, told: &Arc<Mutex<Told>>) -> MockTarget {
    let held = Arc::new(Mutex::new(mark));
    let mut sink = MockTarget::new();
    let all = SinkCapabilities::least().with_verdict().with_add_columns();
    sink.expect_capabilities().return_const(all);
    sink.expect_is_superseded().returning(|_| Ok(false));
    let state = |held: &Mutex<Mark>| TargetState {
        mark: Some(*held.lock().expect("not poisoned")),
        verdict: None,
    };
    let seen = Arc::clone(&held);
    sink.expect_inspect().returning(move |_| Ok(Some(state(&seen))));
    let told = Arc::clone(told);
    sink.expect_attach().returning(move |_| {
        let table = noting(Arc::clone(&held), Arc::clone(&told));
        Ok(Attached { table: Box::new(table), state: state(&held) })
    });
    sink
}

/// A run on a source that ends after some sleeps, from a mark.
fn run(source: MockSrc, mark: Mark, settings: Settings, sleeps: usize) -> Told {
    let told = Arc::new(Mutex::new(Told::default()));
    let bench = bench(source, lenient(mark, &told), sleeps, settings);
    let report = block_on(bench.engine.run(vec![table()], &bench.shutdown));
    let mut told = std::mem::take(&mut *told.lock().expect("not poisoned"));
    told.stops = report.errors().map(Error::kind).collect();
    told
}

/// A source whose high position stands at 9, with an insert at each of `commits`.
fn filled(commits: &'static [u8]) -> MockSrc {
    let mut source = source(9);
    source.expect_low().returning(|names| Ok(vec![Bound::At(at(1)); names.len()]));
    with_changes(&mut source, commits);
    source
}

fn with_changes(source: &mut MockSrc, commits: &'static [u8]) {
    let inside = move |range: ClosedRange| {
        commits.iter().copied().filter(move |commit| range.contains(at(u128::from(*commit))))
    };
    source.expect_has_changes().returning(move |asked| {
        Ok(asked.iter().map(|(_, range)| inside(*range).next().is_some()).collect())
    });
    source.expect_changes().returning(move |request| {
        let rows: Vec<u8> = inside(request.range).collect();
        Ok(Box::pin(stream::iter([Ok(inserts(&rows))])))
    });
}

/// Settings with which a quiet table is moved in every cycle.
fn eager() -> Settings {
    Settings { progress_interval: Duration::ZERO, ..Settings::default() }
}

/// What a story comes to, and what it comes to with the mistake.
fn both(planted: Planted, story: impl Fn() -> Told) -> [Told; 2] {
    let [right, wrong] = [with(None, &story), with(Some(planted), &story)];
    assert_ne!(right, wrong, "{planted} changes nothing");
    [right, wrong]
}

#[test]
fn the_last_commit_is_lost_with_an_exclusive_upper_bound() {
    let story = || run(filled(&[7, 9]), mark(1, 3), eager(), 2);
    let [right, wrong] = both(Planted::UpperBoundExclusive, story);
    assert_eq!([right.rows(), wrong.rows()], [2, 1]);
    assert_eq!([right.end(), wrong.end()], [9, 9]);
}

#[test]
fn the_rest_of_a_commit_is_lost_when_it_is_split() {
    let mut settings = eager();
    settings.limits.rows_max = NonZeroU64::new(2).expect("positive");
    let story = || run(filled(&[7, 7, 7, 8]), mark(1, 3), settings.clone(), 2);
    let [right, wrong] = both(Planted::CommitSplit, story);
    assert_eq!(right.commits[0], (2, 7, 3));
    assert_eq!(wrong.commits[0], (2, 7, 2));
    assert_eq!([right.rows(), wrong.rows()], [4, 3]);
}

/// Two instances; the newer starts at 6, and the rest of the source is up to the caller.
fn of_two() -> MockSrc {
    let mut source = MockSrc::new();
    source.expect_instances().returning(|_| Ok(vec![instance("dbo_t", 1), instance("dbo_t_2", 6)]));
    source.expect_high().returning(|| Ok(Bound::At(at(9))));
    source.expect_schema_changes().returning(|_, _| Ok(Vec::new()));
    source.expect_commit_time().returning(hours);
    with_changes(&mut source, &[4, 7]);
    source
}

fn lows(source: &mut MockSrc, newer: u128) {
    source.expect_low().returning(move |names| {
        let low = |name: &InstanceName| if name.as_str() == "dbo_t" { 1 } else { newer };
        Ok(names.iter().map(|name| Bound::At(at(low(name)))).collect())
    });
}

#[test]
fn a_second_instance_stops_the_copy_when_the_guard_looks_at_the_newest() {
    let story = || {
        let mut source = of_two();
        lows(&mut source, 6);
        run(source, mark(1, 3), eager(), 2)
    };
    let [right, wrong] = both(Planted::GuardOnNewestInstance, story);
    assert_eq!(right.stops, []);
    assert_eq!(wrong.stops, [ErrorKind::DataLoss]);
}

#[test]
fn a_purge_of_the_newer_instance_goes_unseen_when_the_guard_looks_at_the_oldest() {
    let story = || {
        let mut source = of_two();
        lows(&mut source, 8);
        run(source, mark(1, 3), eager(), 2)
    };
    let [right, wrong] = both(Planted::GuardOnOldestInstance, story);
    assert_eq!(right.stops, [ErrorKind::DataLoss]);
    assert_eq!((wrong.stops.len(), wrong.end()), (0, 9));
}

#[test]
fn a_mark_stays_at_the_last_row_when_idle_ends_are_dropped() {
    let story = || run(filled(&[7]), mark(1, 3), eager(), 3);
    let [right, wrong] = both(Planted::IdleEndDropped, story);
    assert_eq!([right.end(), wrong.end()], [9, 7]);
    let quiet = || run(filled(&[]), mark(1, 3), eager(), 3);
    let [right, wrong] = both(Planted::IdleEndDropped, quiet);
    assert_eq!([right.end(), wrong.end()], [9, 0]);
}

#[test]
fn the_verdict_stays_at_the_last_row_when_it_does_not_follow_the_mark() {
    let story = || run(filled(&[7]), mark(1, 3), eager(), 2);
    let [right, wrong] = both(Planted::VerdictFromLastRow, story);
    assert_eq!(right.verdicts.last(), Some(&9));
    assert_eq!(wrong.verdicts.last(), Some(&7));
}

#[test]
fn the_verdict_comes_before_the_rows_when_it_is_published_first() {
    let story = || run(filled(&[7]), mark(1, 3), eager(), 2);
    let [right, wrong] = both(Planted::VerdictBeforeCommit, story);
    assert_eq!(right.verdicts, [3, 0, 9]);
    assert_eq!(wrong.verdicts, [3, 9, 0]);
}

#[test]
fn a_row_too_many_in_a_record_batch_is_lost_when_pairs_are_cut() {
    let settings = Settings { batch_rows: std::num::NonZeroUsize::MIN, ..eager() };
    let story = || run(filled(&[7, 7]), mark(1, 3), settings.clone(), 2);
    let [right, wrong] = both(Planted::UpdatePairCut, story);
    assert_eq!([right.rows(), wrong.rows()], [2, 1]);
}

#[test]
fn a_table_runs_ahead_of_its_cycle_when_it_asks_for_a_bound_of_its_own() {
    let story = || {
        let mut source = MockSrc::new();
        source.expect_instances().returning(|_| Ok(vec![instance("dbo_t", 1)]));
        let asked = AtomicUsize::new(0);
        source.expect_high().returning(move || {
            Ok(Bound::At(at(if asked.fetch_add(1, Ordering::SeqCst) == 0 { 5 } else { 9 })))
        });
        source.expect_schema_changes().returning(|_, _| Ok(Vec::new()));
        source.expect_commit_time().returning(hours);
        source.expect_low().returning(|names| Ok(vec![Bound::At(at(1)); names.len()]));
        with_changes(&mut source, &[7]);
        run(source, mark(1, 3), eager(), 3)
    };
    let [right, wrong] = both(Planted::TwoUpperBounds, story);
    assert_eq!(right.commits, [(2, 5, 0), (3, 9, 1)]);
    assert_eq!(wrong.commits, [(2, 9, 0)], "quiet up to 5, marked up to 9");
}

#[test]
fn what_follows_a_lost_connection_is_lost_when_it_is_taken_for_the_end() {
    let story = || {
        let mut source = source(9);
        source.expect_low().returning(|names| Ok(vec![Bound::At(at(1)); names.len()]));
        source.expect_has_changes().returning(|_| Ok(vec![true]));
        let reads = AtomicUsize::new(0);
        source.expect_changes().returning(move |_| {
            let second = match reads.fetch_add(1, Ordering::SeqCst) {
                0 => Err(Error::new(ErrorKind::Unavailable, "connection lost")),
                _ => Ok(inserts(&[8])),
            };
            Ok(Box::pin(stream::iter([Ok(inserts(&[7])), second])))
        });
        run(source, mark(1, 3), eager(), 3)
    };
    let [right, wrong] = both(Planted::ReadErrorTakenAsEnd, story);
    assert_eq!((right.rows(), right.end()), (2, 9));
    assert_eq!((wrong.rows(), wrong.end()), (1, 9));
}

/// In one run a newer instance is enabled at 5, with one more column, and only that is updated.
fn extended() -> (MockSrc, Arc<Mutex<Vec<usize>>>) {
    let mut source = MockSrc::new();
    let listed = AtomicUsize::new(0);
    source.expect_instances().returning(move |_| {
        let mut newer = instance("dbo_t_2", 5);
        newer.columns.push(Column::new("late", 2, SqlType::Int, true));
        Ok(match listed.fetch_add(1, Ordering::SeqCst) {
            0 => vec![instance("dbo_t", 1)],
            _ => vec![instance("dbo_t", 1), newer],
        })
    });
    source.expect_high().returning(|| Ok(Bound::At(at(9))));
    source.expect_commit_time().returning(hours);
    source.expect_schema_changes().returning(|_, _| Ok(Vec::new()));
    source.expect_has_changes().returning(|asked| Ok(vec![false; asked.len()]));
    source.expect_low().returning(|names| Ok(vec![Bound::At(at(1)); names.len()]));
    let columns = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&columns);
    source.expect_changes().returning(move |request| {
        asked.lock().expect("not poisoned").push(request.columns.len());
        let newer = request.instance.as_str() == "dbo_t_2";
        Ok(Box::pin(stream::iter(newer.then(|| Ok(inserts(&[7]))))))
    });
    (source, columns)
}

#[test]
fn changes_of_a_newer_instance_are_lost_when_instances_are_not_listed_again() {
    let story = || run(extended().0, mark(1, 3), eager(), 2);
    let [right, wrong] = both(Planted::ProgressWithoutListing, story);
    assert_eq!((right.rows(), right.end()), (1, 9));
    assert_eq!((wrong.rows(), wrong.end()), (0, 9));
}

#[test]
fn a_late_column_is_not_asked_for_when_it_is_only_added_to_the_target() {
    let story = || {
        let (source, columns) = extended();
        let told = run(source, mark(1, 3), eager(), 2);
        assert_eq!(told.rows(), 1);
        let columns = columns.lock().expect("not poisoned");
        columns.clone()
    };
    assert_eq!(with(None, story), [1, 2]);
    assert_eq!(with(Some(Planted::LateColumnNotRead), story), [1, 1]);
}

#[test]
fn cleanup_looks_like_a_restore_when_the_marks_time_is_asked_for_late() {
    let story = || {
        let mut source = MockSrc::new();
        source.expect_instances().returning(|_| Ok(vec![instance("dbo_t", 1)]));
        source.expect_high().returning(|| Ok(Bound::At(at(9))));
        source.expect_schema_changes().returning(|_, _| Ok(Vec::new()));
        with_changes(&mut source, &[7]);
        // Twice at the attach, once before the read and once after it; then cleanup comes.
        let asked = Arc::new(AtomicUsize::new(0));
        let lows = Arc::clone(&asked);
        source.expect_low().returning(move |_| {
            lows.fetch_add(1, Ordering::SeqCst);
            Ok(vec![Bound::At(at(1))])
        });
        source.expect_commit_time().returning(move |position| {
            let gone = number(position) <= 3 && asked.load(Ordering::SeqCst) >= 4;
            let hours = i64::try_from(number(position)).expect("small");
            Ok((!gone).then(|| time(hours)))
        });
        run(source, Mark { commit_time: Some(time(3)), ..mark(1, 3) }, eager(), 2)
    };
    let [right, wrong] = both(Planted::LineageReadAfterLow, story);
    assert_eq!(right.stops, []);
    assert_eq!(wrong.stops, [ErrorKind::LineageBroken]);
}

#[test]
fn changes_of_a_restored_log_are_lost_where_the_replaced_one_was_quiet() {
    let story = || {
        let mut source = source(9);
        source.expect_low().returning(|names| Ok(vec![Bound::At(at(1)); names.len()]));
        let asked = AtomicUsize::new(0);
        source
            .expect_has_changes()
            .returning(move |_| Ok(vec![asked.fetch_add(1, Ordering::SeqCst) > 0]));
        source.expect_changes().returning(|_| Ok(Box::pin(stream::iter([Ok(inserts(&[6]))]))));
        run(source, mark(1, 3), Settings::default(), 40)
    };
    let [right, wrong] = both(Planted::SilenceRemembered, story);
    assert_eq!([right.rows(), wrong.rows()], [1, 0]);
    assert_eq!([right.end(), wrong.end()], [9, 9]);
}

#[test]
fn one_more_commit_passes_when_the_limit_is_off_by_one() {
    let mut settings = eager();
    settings.limits.commits_max = Some(NonZeroU64::MIN);
    let story = || {
        let mut source = filled(&[4, 5, 6, 7, 8, 9]);
        source
            .expect_nth_commit_after()
            .returning(|after, count| Ok(Some(at(number(after) + u128::from(count)))));
        run(source, mark(1, 3), settings.clone(), 2)
    };
    let [right, wrong] = both(Planted::CommitLimitOffByOne, story);
    assert_eq!([right.commits.len(), wrong.commits.len()], [6, 3]);
}

#[test]
fn a_marks_time_goes_back_when_the_greatest_so_far_is_not_kept() {
    let before = Mark { commit_time: Some(time(12)), ..mark(1, 3) };
    let story = || run(filled(&[7]), before, eager(), 2);
    let [right, wrong] = both(Planted::MarkTimeGoesBack, story);
    assert_eq!([right.time, wrong.time], [Some(12), Some(9)]);
}

#[test]
fn a_batch_without_rows_has_the_old_number_when_it_is_reused() {
    let story = || run(filled(&[]), mark(1, 3), eager(), 2);
    let [right, wrong] = both(Planted::SequenceReused, story);
    assert_eq!(right.commits, [(2, 9, 0)]);
    assert_eq!(wrong.commits, [(1, 9, 0)]);
}
