//! What the engine asks of its ports, in which order, and what it never does. The ports are mocks:
//! a call that a test does not expect fails it.

use std::{
    num::NonZeroU64,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arrow_array::{
    ArrayRef, FixedSizeBinaryArray, Int32Array, RecordBatch, TimestampMicrosecondArray,
};
use async_trait::async_trait;
use futures_core::future::BoxFuture;
use futures_executor::block_on;
use futures_util::{FutureExt, stream};
use mockall::{mock, predicate::always};

use super::*;
use crate::{
    batch::{Commit, Committed, TableBatch},
    change::change_schema,
    error::{Error, ErrorKind, Result},
    mark::Mark,
    port::*,
    position::{ClosedRange, Position},
    sql_type::SqlType,
    table::{CaptureInstance, Column, InstanceName, TableName, TableRef, TableSpec},
    time::Timestamp,
    verdict::Verdict,
};

mock! {
    Src {}
    #[async_trait]
    impl Catalog for Src {
        async fn instances(&self, table: &TableRef) -> Result<Vec<CaptureInstance>>;
        async fn schema_changes(&self, instance: &InstanceName, range: ClosedRange)
            -> Result<Vec<SchemaChange>>;
        async fn preflight(&self, tables: &[TableRef]) -> Result<Vec<Finding>>;
    }
    #[async_trait]
    impl PositionLog for Src {
        async fn high(&self) -> Result<Bound>;
        async fn low(&self, instances: &[InstanceName]) -> Result<Vec<Bound>>;
        async fn commit_time(&self, at: Position) -> Result<Option<Timestamp>>;
        async fn position_at(&self, moment: Timestamp) -> Result<Option<Position>>;
        async fn nth_commit_after(&self, after: Position, count: u64) -> Result<Option<Position>>;
    }
    #[async_trait]
    impl ChangeReader for Src {
        async fn has_changes(&self, ranges: &[(InstanceName, ClosedRange)]) -> Result<Vec<bool>>;
        async fn changes(&self, request: ChangeRequest) -> Result<BatchStream>;
    }
    #[async_trait]
    impl TableReader for Src {
        async fn key_extent(&self, table: &TableName, key: &[String])
            -> Result<Option<(KeyTuple, KeyTuple)>>;
        async fn key_bound(&self, table: &TableName, key: &[String], range: &KeyRange, rows: u64)
            -> Result<Option<KeyTuple>>;
        async fn count(&self, table: &TableName, key: &[String], range: &KeyRange) -> Result<u64>;
        async fn rows(&self, request: RowRequest) -> Result<BatchStream>;
    }
    impl Source for Src {
        fn name(&self) -> &str;
        fn capabilities(&self) -> SourceCapabilities;
    }
}

mock! {
    Target {}
    #[async_trait]
    impl Sink for Target {
        fn capabilities(&self) -> SinkCapabilities;
        async fn attach(&self, spec: &TableSpec) -> Result<Attached>;
        async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>>;
        async fn is_superseded(&self, spec: &TableSpec) -> Result<bool>;
    }
}

mock! {
    Tab {}
    #[async_trait]
    impl TableSink for Tab {
        async fn evolve(&mut self, columns: &[Column]) -> Result<()>;
        async fn stage(&mut self, batch: TableBatch) -> Result<()>;
        async fn commit(&mut self, commit: Commit) -> Result<Committed>;
        async fn discard(&mut self) -> Result<()>;
        async fn publish(&mut self, verdict: Verdict) -> Result<Verdict>;
        async fn close(self: Box<Self>) -> Result<()>;
    }
}

/// A clock on which sleeping is all that passes time; after some sleeps it asks for the stop.
struct Sleeps {
    now: AtomicI64,
    left: AtomicUsize,
    stop: ShutdownHandle,
}

impl Clock for Sleeps {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now.load(Ordering::SeqCst))
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        let micros = i64::try_from(pause.as_micros()).expect("short");
        self.now.fetch_add(micros, Ordering::SeqCst);
        if self.left.fetch_sub(1, Ordering::SeqCst) <= 1 {
            self.stop.request();
        }
        std::future::ready(()).boxed()
    }
}

struct Print;
impl Observer for Print {
    fn on(&self, event: &Event<'_>) {
        println!("{event:?}");
    }
}

struct Seven;

impl Entropy for Seven {
    fn next_u64(&self) -> u64 {
        7
    }
}

fn at(number: u128) -> Position {
    crate::Lsn::from_u128(number).expect("below 2^80").into()
}

fn time(number: i64) -> Timestamp {
    Timestamp::from_micros(number * 3_600_000_000)
}

fn instance(name: &str, start: u128) -> CaptureInstance {
    CaptureInstance {
        name: InstanceName::new(name),
        table: TableName::new("dbo", "t"),
        start: at(start),
        columns: vec![Column::new("id", 1, SqlType::Int, false)],
        key: vec!["id".to_owned()],
    }
}

fn mark(sequence: u64, end: u128) -> Mark {
    Mark { sequence, end: at(end), commit_time: None, entry_time: None, generation: 0 }
}

/// Change rows, an insert a commit.
fn inserts(commits: &[u8]) -> RecordBatch {
    let lsns: Vec<_> = commits.iter().map(|commit| [0, 0, 0, 0, 0, 0, 0, 0, 0, *commit]).collect();
    let lsns: ArrayRef =
        Arc::new(FixedSizeBinaryArray::try_from_iter(lsns.iter()).expect("ten bytes"));
    let ones: ArrayRef = Arc::new(Int32Array::from_iter_values(commits.iter().map(|_| 1)));
    let twos: ArrayRef = Arc::new(Int32Array::from_iter_values(commits.iter().map(|_| 2)));
    let times = commits.iter().map(|commit| time(i64::from(*commit)).as_micros());
    let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(times));
    let schema = change_schema(10, &instance("i", 1).columns).expect("mapped");
    RecordBatch::try_new(schema, vec![lsns.clone(), lsns, twos, ones.clone(), times, ones])
        .expect("a change batch")
}

/// A source with one captured table whose instance starts at 1 and whose high position stands.
fn source(high: u128) -> MockSrc {
    let mut source = MockSrc::new();
    source.expect_instances().returning(|_| Ok(vec![instance("dbo_t", 1)]));
    source.expect_high().returning(move || Ok(Bound::At(at(high))));
    source.expect_schema_changes().returning(|_, _| Ok(Vec::new()));
    source.expect_name().return_const("test".to_owned());
    source.expect_commit_time().returning(hours);
    source
}

/// Every position is an entry, as many hours after the epoch as its number says.
fn hours(position: Position) -> Result<Option<Timestamp>> {
    let number = crate::Lsn::try_from(position).expect("an LSN").to_u128();
    Ok(Some(time(i64::try_from(number).expect("small"))))
}

/// A sink whose table holds `held` and gives out `tables` at each attach.
fn sink(held: Arc<Mutex<Mark>>, mut tables: Vec<MockTab>) -> MockTarget {
    let mut sink = MockTarget::new();
    tables.reverse();
    let tables = Mutex::new(tables);
    let state = move |held: &Mutex<Mark>| TargetState {
        mark: Some(*held.lock().expect("not poisoned")),
        verdict: None,
    };
    let seen = Arc::clone(&held);
    sink.expect_capabilities().return_const(SinkCapabilities::least());
    sink.expect_inspect().returning(move |_| Ok(Some(state(&seen))));
    sink.expect_is_superseded().returning(|_| Ok(false));
    sink.expect_attach().returning(move |_| {
        let table = tables.lock().expect("not poisoned").pop().expect("attached more often");
        Ok(Attached { table: Box::new(table), state: state(&held) })
    });
    sink
}

fn closing() -> MockTab {
    let mut table = MockTab::new();
    table.expect_close().returning(|| Ok(()));
    table
}

struct Bench {
    engine: Engine,
    shutdown: Shutdown,
}

fn bench(source: MockSrc, sink: MockTarget, sleeps: usize, settings: Settings) -> Bench {
    let (stop, shutdown) = ShutdownHandle::new();
    let now = AtomicI64::new(time(100).as_micros());
    let clock = Sleeps { now, left: AtomicUsize::new(sleeps), stop };
    let engine =
        Engine::new(Arc::new(source), Arc::new(sink), Arc::new(clock), Arc::new(Seven), settings);
    let engine = engine.observed_by(Arc::new(Print));
    Bench { engine, shutdown }
}

fn table() -> TableConfig {
    TableConfig {
        source: TableRef::Table(TableName::new("dbo", "t")),
        target: "t".to_owned(),
        start: StartAt::Earliest,
    }
}

fn held(end: u128) -> Arc<Mutex<Mark>> {
    Arc::new(Mutex::new(mark(1, end)))
}

/// A commit that stores its mark, then answers.
fn storing(
    held: Arc<Mutex<Mark>>,
    answer: impl Fn() -> Result<Committed> + Send + 'static,
) -> impl Fn(Commit) -> Result<Committed> + Send + 'static {
    move |commit| {
        *held.lock().expect("not poisoned") = commit.mark;
        answer()
    }
}

#[test]
fn a_run_can_move_between_threads() {
    fn is_send(_: &impl Send) {}
    let bench = bench(source(9), sink(held(9), Vec::new()), 1, Settings::default());
    is_send(&bench.engine.run(Vec::new(), &bench.shutdown));
}

#[test]
fn an_idle_cycle_is_one_query_whatever_the_number_of_tables() {
    let mut source = MockSrc::new();
    source.expect_instances().returning(|_| Ok(vec![instance("dbo_t", 1)]));
    // Each of five cycles asks for the high position, and only the first for its time.
    source.expect_high().times(5).returning(|| Ok(Bound::At(at(9))));
    source.expect_commit_time().with(always()).returning(|_| Ok(Some(time(99))));
    source.expect_low().times(6).returning(|_| Ok(vec![Bound::At(at(5))]));
    let mark = Arc::new(Mutex::new(Mark { commit_time: Some(time(99)), ..mark(4, 9) }));
    let sink = sink(mark, vec![closing(), closing(), closing()]);
    let bench = bench(source, sink, 5, Settings::default());
    let report = block_on(bench.engine.run(vec![table(), table(), table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
}

/// A source that removes what follows the mark while it is read: held when the table is opened and
/// when the batch is planned, gone after the read.
fn purged_meanwhile() -> MockSrc {
    let mut source = source(9);
    source.expect_has_changes().returning(|_| Ok(vec![true]));
    let asked = AtomicUsize::new(0);
    source.expect_low().returning(move |_| {
        let low = if asked.fetch_add(1, Ordering::SeqCst) < 3 { 1 } else { 6 };
        Ok(vec![Bound::At(at(low))])
    });
    source.expect_changes().returning(|_| Ok(Box::pin(stream::iter([Ok(inserts(&[7, 8]))]))));
    source
}

#[test]
fn a_range_purged_while_it_was_read_is_never_committed() {
    let source = purged_meanwhile();
    let mut table_sink = MockTab::new();
    table_sink.expect_stage().times(1).returning(|_| Ok(()));
    table_sink.expect_discard().times(1).returning(|| Ok(()));
    let bench = bench(source, sink(held(3), vec![table_sink]), 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    let error = report.errors().next().expect("the table stopped");
    assert_eq!(error.kind(), ErrorKind::DataLoss);
    assert_eq!(report.tables[0].mark, Some(mark(1, 3)));
}

#[test]
fn a_purged_range_without_rows_is_no_progress() {
    let mut source = source(9);
    source.expect_has_changes().returning(|_| Ok(vec![false]));
    let asked = AtomicUsize::new(0);
    source.expect_low().returning(move |_| {
        let low = if asked.fetch_add(1, Ordering::SeqCst) < 2 { 1 } else { 6 };
        Ok(vec![Bound::At(at(low))])
    });
    let bench = bench(source, sink(held(3), vec![MockTab::new()]), 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().next().map(Error::kind), Some(ErrorKind::DataLoss));
}

#[test]
fn an_error_in_the_middle_of_the_rows_is_no_end_and_is_read_again_whole() {
    let mut source = source(9);
    source.expect_has_changes().returning(|_| Ok(vec![true]));
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
    let reads = AtomicUsize::new(0);
    source.expect_changes().times(2).returning(move |request| {
        assert_eq!(request.range, ClosedRange::new(at(4), at(9)).expect("range"));
        let lost = || Err(Error::new(ErrorKind::Unavailable, "connection lost"));
        let second = match reads.fetch_add(1, Ordering::SeqCst) {
            0 => lost(),
            _ => Ok(inserts(&[8])),
        };
        Ok(Box::pin(stream::iter([Ok(inserts(&[7])), second])))
    });
    let held = held(3);
    let mut first = MockTab::new();
    first.expect_stage().times(1).returning(|_| Ok(()));
    first.expect_discard().times(1).returning(|| Ok(()));
    let mut second = closing();
    second.expect_stage().times(2).returning(|_| Ok(()));
    second.expect_commit().times(1).returning(storing(Arc::clone(&held), || Ok(Committed::Now)));
    let bench = bench(source, sink(held, vec![first, second]), 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
    assert_eq!(report.tables[0].rows, 2);
    assert_eq!(report.tables[0].mark.map(|mark| mark.end), Some(at(9)));
}

#[test]
fn a_commit_whose_reply_was_lost_is_not_made_twice() {
    let mut source = source(9);
    source.expect_has_changes().times(1).returning(|_| Ok(vec![true]));
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
    source.expect_changes().times(1).returning(|_| Ok(Box::pin(stream::iter([Ok(inserts(&[7]))]))));
    let held = held(3);
    let mut first = MockTab::new();
    first.expect_stage().times(1).returning(|_| Ok(()));
    let lost = || Err(Error::new(ErrorKind::Unavailable, "no reply"));
    first.expect_commit().times(1).returning(storing(Arc::clone(&held), lost));
    let bench = bench(source, sink(held, vec![first, closing()]), 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
    assert_eq!(report.tables[0].mark.map(|mark| (mark.sequence, mark.end)), Some((2, at(9))));
}

#[test]
fn a_fenced_table_stops_at_once() {
    let mut source = source(9);
    source.expect_has_changes().times(1).returning(|_| Ok(vec![true]));
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
    source.expect_changes().returning(|_| Ok(Box::pin(stream::iter([Ok(inserts(&[7]))]))));
    let mut first = MockTab::new();
    first.expect_stage().returning(|_| Ok(()));
    first
        .expect_commit()
        .times(1)
        .returning(|_| Err(Error::new(ErrorKind::Fenced, "newer runner")));
    let bench = bench(source, sink(held(3), vec![first]), 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().next().map(Error::kind), Some(ErrorKind::Fenced));
}

#[test]
fn a_limit_ends_a_batch_between_commits_and_the_next_one_begins_there() {
    let mut source = source(9);
    source.expect_has_changes().returning(|_| Ok(vec![true]));
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
    source.expect_changes().returning(|request| {
        let all: Vec<u8> = vec![4, 4, 5, 6, 6, 6, 7];
        let rows: Vec<u8> = all
            .into_iter()
            .filter(|commit| request.range.contains(at(u128::from(*commit))))
            .collect();
        Ok(Box::pin(stream::iter([Ok(inserts(&rows))])))
    });
    let held = held(3);
    let marks = Arc::new(Mutex::new(Vec::new()));
    let mut first = closing();
    first.expect_stage().returning(|_| Ok(()));
    let seen = Arc::clone(&marks);
    let store = storing(Arc::clone(&held), || Ok(Committed::Now));
    first.expect_commit().returning(move |commit| {
        let end = crate::Lsn::try_from(commit.mark.end).expect("an LSN").to_u128();
        seen.lock().expect("not poisoned").push((end, commit.facts.counts.rows));
        store(commit)
    });
    let mut settings = Settings::default();
    settings.limits.rows_max = NonZeroU64::new(2).expect("positive");
    let bench = bench(source, sink(held, vec![first]), 9, settings);
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
    assert_eq!(*marks.lock().expect("not poisoned"), [(4, 2), (6, 4), (9, 1)]);
}

#[test]
fn a_newer_instance_is_read_before_progress_is_recorded() {
    let mut source = MockSrc::new();
    let listed = AtomicUsize::new(0);
    source.expect_instances().returning(move |_| {
        let old = instance("dbo_t", 1);
        // Found when the table was opened: one; enabled in the meantime: two.
        Ok(match listed.fetch_add(1, Ordering::SeqCst) {
            0 => vec![old],
            _ => vec![old, instance("dbo_t_2", 5)],
        })
    });
    source.expect_high().returning(|| Ok(Bound::At(at(9))));
    source.expect_commit_time().returning(|_| Ok(Some(time(9))));
    source.expect_schema_changes().returning(|_, _| Ok(Vec::new()));
    // The older instance does not capture the column that was changed.
    source.expect_has_changes().returning(|_| Ok(vec![false]));
    source.expect_low().returning(|names| Ok(vec![Bound::At(at(1)); names.len()]));
    source.expect_changes().times(2).returning(|request| {
        let rows = match request.instance.as_str() {
            "dbo_t_2" => vec![Ok(inserts(&[7]))],
            _ => Vec::new(),
        };
        Ok(Box::pin(stream::iter(rows)))
    });
    let held = held(3);
    let mut first = closing();
    first.expect_stage().times(1).returning(|_| Ok(()));
    first.expect_commit().times(1).returning(storing(Arc::clone(&held), || Ok(Committed::Now)));
    let bench = bench(source, sink(held, vec![first]), 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
    assert_eq!(report.tables[0].rows, 1);
}

#[test]
fn a_stop_in_the_middle_of_a_batch_discards_it() {
    let mut source = source(9);
    source.expect_has_changes().returning(|_| Ok(vec![true]));
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
    let (stop, shutdown) = ShutdownHandle::new();
    source.expect_changes().returning(move |_| {
        stop.request();
        Ok(Box::pin(stream::iter([Ok(inserts(&[7]))])))
    });
    let mut first = MockTab::new();
    first.expect_discard().times(1).returning(|| Ok(()));
    let bench = bench(source, sink(held(3), vec![first]), 9, Settings::default());
    let report = block_on(bench.engine.run(vec![table()], &shutdown));
    assert_eq!(report.errors().next().map(Error::kind), Some(ErrorKind::Cancelled));
    assert_eq!(report.tables[0].mark, Some(mark(1, 3)));
}

#[test]
fn a_run_that_was_stopped_before_its_end_says_so() {
    // Stopped before the first cycle, and between two batches.
    for sleeps in [0, 1] {
        let mut source = source(9);
        source.expect_has_changes().returning(|_| Ok(vec![true]));
        source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
        let (stop, shutdown) = ShutdownHandle::new();
        source.expect_changes().returning(|_| Ok(Box::pin(stream::iter([Ok(inserts(&[4, 5]))]))));
        let held = held(3);
        let mut first = closing();
        first.expect_stage().returning(|_| Ok(()));
        let store = storing(Arc::clone(&held), || Ok(Committed::Now));
        let mut settings = Settings::default();
        settings.limits.rows_max = NonZeroU64::MIN;
        if sleeps == 0 {
            stop.request();
            first.expect_commit().returning(store);
        } else {
            first.expect_commit().returning(move |commit| {
                stop.request();
                store(commit)
            });
        }
        let bench = bench(source, sink(held, vec![first]), 9, settings);
        let report = block_on(bench.engine.run_once(vec![table()], &shutdown));
        let kinds: Vec<_> = report.errors().map(Error::kind).collect();
        assert_eq!(kinds, [ErrorKind::Cancelled], "{sleeps}");
    }
}

/// A source whose log is replaced at some call: from then on the entries from 5 on are others.
fn restored(replaced: &Arc<AtomicUsize>) -> MockSrc {
    let mut source = MockSrc::new();
    source.expect_instances().returning(|_| Ok(vec![instance("dbo_t", 1)]));
    source.expect_high().returning(|| Ok(Bound::At(at(9))));
    source.expect_name().return_const("test".to_owned());
    source.expect_schema_changes().returning(|_, _| Ok(Vec::new()));
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
    let replaced = Arc::clone(replaced);
    source.expect_commit_time().returning(move |position| {
        let minutes = if position >= at(5) { replaced.load(Ordering::SeqCst) } else { 0 };
        let minutes = i64::try_from(minutes).expect("small");
        Ok(hours(position)?.map(|time| time.plus_micros(minutes * 60_000_000)))
    });
    source
}

#[test]
fn what_was_read_before_a_restore_is_not_committed_after_it() {
    let replaced = Arc::new(AtomicUsize::new(0));
    let mut source = restored(&replaced);
    source.expect_has_changes().returning(|_| Ok(vec![true]));
    source.expect_changes().times(2).returning(move |_| {
        // The first read is the replaced log's, the second the other's.
        let first = replaced.swap(7, Ordering::SeqCst) == 0;
        let rows = if first { inserts(&[6]) } else { inserts(&[7, 8]) };
        Ok(Box::pin(stream::iter([Ok(rows)])))
    });
    let held = held(3);
    let mut first = MockTab::new();
    first.expect_stage().times(1).returning(|_| Ok(()));
    first.expect_discard().times(1).returning(|| Ok(()));
    let mut second = closing();
    second.expect_stage().times(1).returning(|_| Ok(()));
    second.expect_commit().times(1).returning(storing(Arc::clone(&held), || Ok(Committed::Now)));
    let bench = bench(source, sink(held, vec![first, second]), 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
    assert_eq!(report.tables[0].rows, 2);
    let other = time(9).plus_micros(7 * 60_000_000);
    assert_eq!(
        report.tables[0].mark.map(|mark| (mark.end, mark.entry_time)),
        Some((at(9), Some(other)))
    );
}

#[test]
fn silence_before_a_restore_is_no_silence_after_it() {
    let replaced = Arc::new(AtomicUsize::new(0));
    let mut source = restored(&replaced);
    let asked = AtomicUsize::new(0);
    source.expect_has_changes().returning(move |_| {
        // Quiet in the log before; the restored one has a change at 6.
        Ok(vec![asked.fetch_add(1, Ordering::SeqCst) > 0])
    });
    source.expect_changes().returning(|request| {
        assert_eq!(request.range, ClosedRange::new(at(4), at(9)).expect("range"));
        Ok(Box::pin(stream::iter([Ok(inserts(&[6]))])))
    });
    let held = held(3);
    let mut only = closing();
    only.expect_stage().times(1).returning(|_| Ok(()));
    only.expect_commit().times(1).returning(storing(Arc::clone(&held), || Ok(Committed::Now)));
    let bench = bench(source, sink(held, vec![only]), 40, Settings::default());
    let report = block_on(bench.engine.run(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
    assert_eq!(report.tables[0].rows, 1);
}

#[test]
fn a_restore_between_two_answers_is_no_other_log_of_the_marks() {
    // Cleanup has taken the mark's entry; the restore brings it back before its low is asked for.
    let asked = AtomicUsize::new(0);
    let mut source = MockSrc::new();
    source.expect_instances().returning(|_| Ok(vec![instance("dbo_t", 1)]));
    source.expect_high().returning(|| Ok(Bound::At(at(9))));
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
    source.expect_commit_time().returning(move |position| {
        let gone = position == at(9) && asked.fetch_add(1, Ordering::SeqCst) == 2;
        if gone { Ok(None) } else { hours(position) }
    });
    let mark = Mark { commit_time: Some(time(9)), entry_time: Some(time(9)), ..mark(4, 9) };
    let sink = sink(Arc::new(Mutex::new(mark)), vec![closing()]);
    let bench = bench(source, sink, 9, Settings::default());
    let report = block_on(bench.engine.run_once(vec![table()], &bench.shutdown));
    assert_eq!(report.errors().count(), 0);
}

/// A clock that is set an hour back at every look; a millisecond passes between two looks.
#[derive(Default)]
struct Jumping(AtomicI64);

impl Clock for Jumping {
    fn now(&self) -> Timestamp {
        time(100 - self.0.fetch_add(1, Ordering::SeqCst))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.fetch_add(1, Ordering::SeqCst).unsigned_abs())
    }

    fn sleep(&self, _pause: Duration) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

#[test]
fn durations_do_not_follow_a_clock_that_jumps() {
    let mut source = source(9);
    source.expect_has_changes().returning(|_| Ok(vec![true]));
    source.expect_low().returning(|_| Ok(vec![Bound::At(at(1))]));
    source.expect_changes().returning(|_| Ok(Box::pin(stream::iter([Ok(inserts(&[7]))]))));
    let held = held(3);
    let told = Arc::new(Mutex::new(None));
    let mut first = closing();
    first.expect_stage().returning(|_| Ok(()));
    let (store, seen) = (storing(Arc::clone(&held), || Ok(Committed::Now)), Arc::clone(&told));
    first.expect_commit().returning(move |commit| {
        *seen.lock().expect("not poisoned") = Some(commit.facts.clone());
        store(commit)
    });
    let sink = sink(held, vec![first]);
    let clock = Arc::new(Jumping::default());
    let settings = Settings::default();
    let engine = Engine::new(Arc::new(source), Arc::new(sink), clock, Arc::new(Seven), settings);
    let report = block_on(engine.run_once(vec![table()], &Shutdown::never()));
    assert_eq!(report.errors().count(), 0);
    let facts = told.lock().expect("not poisoned").clone().expect("committed");
    assert!((1..100).contains(&facts.duration_ms), "{}", facts.duration_ms);
    assert!(facts.read_seconds > 0.0 && facts.read_seconds < 0.1, "{}", facts.read_seconds);
}

#[cfg(feature = "planted-bugs")]
mod planted;
mod superseded;
