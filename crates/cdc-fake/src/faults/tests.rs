//! Each fault does what it says, once, and leaves its trace.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{future::Future, sync::Arc};

use cdc_core::{
    BatchFacts, ClosedRange, Column, Commit, Committed, Epoch, InstanceName, Mark, Origin,
    Position, SqlType, TableBatch, TableName, TableSpec, Timestamp,
    change::row_schema,
    port::{Bound, ChangeReader, ChangeRequest, PositionLog, Sink},
};
use futures_util::{FutureExt, StreamExt};

use super::*;
use crate::{
    CaptureSchedule, EnableOptions, FakeServer, FakeSource, Login, TableDefinition, Value,
    VirtualClock, Zone, memory_sink::MemoryTarget,
};

fn clock() -> VirtualClock {
    VirtualClock::manual(Timestamp::from_micros(1_783_944_000_000_000))
}

fn plan() -> FaultPlan {
    FaultPlan::new(Arc::new(clock()))
}

fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("does not wait")
}

fn spec() -> TableSpec {
    let columns = vec![Column::new("id", 1, SqlType::Int, false)];
    TableSpec::new("t", TableName::new("dbo", "t"), columns, vec!["id".into()]).unwrap()
}

fn commit(sequence: u64) -> Commit {
    Commit {
        mark: Mark {
            sequence,
            end: Position::new(Epoch(0), &sequence.to_be_bytes()).unwrap(),
            commit_time: None,
            entry_time: None,
            generation: 0,
        },
        facts: BatchFacts::begun(Timestamp::from_micros(0)),
        events: Vec::new(),
    }
}

/// A source with `rows` committed rows, and a request of all their changes, one a batch.
fn source(rows: i64) -> (FakeSource, ChangeRequest) {
    let database = FakeServer::new(clock(), Zone::UTC).database("d");
    database.set_capture(CaptureSchedule::AtCommit);
    let table = TableName::new("dbo", "t");
    let definition = TableDefinition::new("t").column("id", SqlType::Int);
    database.create_table(definition.primary_key(&["id"])).unwrap();
    database.enable_table(&table, EnableOptions::named("dbo_t")).unwrap();
    for id in 0..rows {
        database.transact(|work| work.insert(&table, vec![Value::Int(id)])).unwrap();
    }
    database.capture();
    let source = FakeSource::new(&database, Login::Owner).unwrap();
    let instance = InstanceName::new("dbo_t");
    let [Bound::At(low)] = now(source.low(std::slice::from_ref(&instance))).unwrap()[..] else {
        panic!("low is no position")
    };
    let Bound::At(high) = now(source.high()).unwrap() else { panic!("high is no position") };
    let request = ChangeRequest {
        instance,
        columns: spec().columns,
        range: ClosedRange::new(low, high).unwrap(),
        time_before: None,
        batch_rows: 1,
    };
    (source, request)
}

#[test]
fn a_refused_call_does_nothing_and_the_next_one_passes() {
    let (plan, target) = (plan(), MemoryTarget::new());
    let sink = FaultySink::new(Arc::new(target.open()), &plan);
    plan.script(Operation::Attach, Fault::Refuse(ErrorKind::Conflict));
    let error = now(sink.attach(&spec())).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(target.state("t"), None);
    assert!(now(sink.attach(&spec())).is_ok());
}

#[test]
fn a_lost_reply_comes_after_the_work() {
    let (plan, target) = (plan(), MemoryTarget::new());
    let sink = FaultySink::new(Arc::new(target.open()), &plan);
    let mut attached = now(sink.attach(&spec())).unwrap();
    plan.script(Operation::Commit, Fault::LoseReply);
    let error = now(attached.table.commit(commit(1))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(target.version("t"), 1);
    let mut again = now(sink.attach(&spec())).unwrap();
    assert_eq!(now(again.table.commit(commit(1))).unwrap(), Committed::Before);
}

#[test]
fn a_script_is_taken_in_its_order_and_pass_lets_a_call_through() {
    let (plan, (source, _)) = (plan(), source(1));
    let source = FaultySource::new(Arc::new(source), &plan);
    plan.script(Operation::High, Fault::Pass);
    plan.script(Operation::High, Fault::Refuse(ErrorKind::Unavailable));
    plan.script(Operation::High, Fault::Refuse(ErrorKind::Unauthorized));
    let kinds: Vec<_> =
        (0..4).map(|_| now(source.high()).err().map(|error| error.kind())).collect();
    let expected = [None, Some(ErrorKind::Unavailable), Some(ErrorKind::Unauthorized), None];
    assert_eq!(kinds, expected);
}

#[test]
fn a_held_call_goes_on_when_it_is_released() {
    let (plan, (source, _)) = (plan(), source(1));
    let source = FaultySource::new(Arc::new(source), &plan);
    plan.script(Operation::High, Fault::Hold);
    let mut call = source.high();
    assert!((&mut call).now_or_never().is_none());
    assert_eq!(plan.held(Operation::High), 1);
    plan.release(Operation::Low);
    assert!((&mut call).now_or_never().is_none());
    plan.release(Operation::High);
    assert!(now(call).is_ok());
    assert_eq!(plan.held(Operation::High), 0);
}

#[test]
fn a_held_call_that_is_dropped_is_held_no_longer() {
    let (plan, (source, _)) = (plan(), source(1));
    let source = FaultySource::new(Arc::new(source), &plan);
    plan.script(Operation::High, Fault::Hold);
    let mut call = source.high();
    assert!((&mut call).now_or_never().is_none());
    drop(call);
    assert_eq!(plan.held(Operation::High), 0);
}

#[test]
fn a_slow_call_takes_its_time_on_the_clock() {
    let clock = clock();
    let plan = FaultPlan::new(Arc::new(clock.clone()));
    let source = FaultySource::new(Arc::new(source(1).0), &plan);
    plan.script(Operation::High, Fault::Slow(Duration::from_secs(5)));
    let mut call = source.high();
    assert!((&mut call).now_or_never().is_none());
    clock.advance(Duration::from_secs(4));
    assert!((&mut call).now_or_never().is_none());
    clock.advance(Duration::from_secs(1));
    assert!(now(call).is_ok());
}

#[test]
fn a_broken_stream_gives_its_batches_then_one_error_then_ends() {
    let (plan, (source, request)) = (plan(), source(5));
    let source = FaultySource::new(Arc::new(source), &plan);
    let fault = Fault::BreakStream(2, ErrorKind::Unavailable);
    plan.script(Operation::Changes, fault);
    let stream = now(source.changes(request.clone())).unwrap();
    let items: Vec<_> = now(stream.map(|item| item.map(|batch| batch.num_rows())).collect());
    assert_eq!(items.len(), 3);
    assert!(items[0].is_ok() && items[1].is_ok());
    assert_eq!(items[2].as_ref().unwrap_err().kind(), ErrorKind::Unavailable);
    let stream = now(source.changes(request)).unwrap();
    assert_eq!(now(stream.count()), 5);
}

#[test]
fn a_fault_of_a_single_batch_ends_its_stream() {
    let (plan, (source, request)) = (plan(), source(5));
    let source = FaultySource::new(Arc::new(source), &plan);
    plan.script(Operation::ChangeBatch, Fault::Pass);
    plan.script(Operation::ChangeBatch, Fault::LoseReply);
    let stream = now(source.changes(request)).unwrap();
    let items: Vec<_> = now(stream.collect());
    assert_eq!(items.iter().map(|item| item.is_ok()).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_crash_ends_the_handle_its_tables_and_its_streams_but_no_other_handle() {
    let (plan, target) = (plan(), MemoryTarget::new());
    let sink = FaultySink::new(Arc::new(target.open()), &plan);
    let mut attached = now(sink.attach(&spec())).unwrap();
    plan.script(Operation::Inspect, Fault::Crash);
    assert_eq!(now(sink.inspect(&spec())).unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(sink.is_dead());
    let error = now(attached.table.commit(commit(1))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(target.version("t"), 0);
    let next = FaultySink::new(Arc::new(target.open()), &plan);
    let mut attached = now(next.attach(&spec())).unwrap();
    assert_eq!(now(attached.table.commit(commit(1))).unwrap(), Committed::Now);
}

#[test]
fn a_crash_after_a_commit_leaves_the_commit() {
    let (plan, target) = (plan(), MemoryTarget::new());
    let sink = FaultySink::new(Arc::new(target.open()), &plan);
    let mut attached = now(sink.attach(&spec())).unwrap();
    let records = row_schema(&spec().columns).unwrap();
    let batch = TableBatch {
        instance: InstanceName::new("dbo_t"),
        origin: Origin::Changes,
        records: arrow_array::RecordBatch::new_empty(records),
    };
    plan.script(Operation::Stage, Fault::Refuse(ErrorKind::Unavailable));
    assert!(now(attached.table.stage(batch)).is_err());
    plan.script(Operation::Commit, Fault::CrashAfter);
    let error = now(attached.table.commit(commit(1))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert_eq!(target.version("t"), 1);
    assert!(now(sink.inspect(&spec())).is_err());
}

#[test]
fn the_same_seed_brings_the_same_trace() {
    let run = |seed| {
        let (plan, (source, request)) = (plan(), source(3));
        let mut odds = Odds::transient().with_crash(0.01);
        odds.slow = 0.0;
        odds.kinds = vec![ErrorKind::Unavailable, ErrorKind::Conflict];
        plan.chance(seed, odds);
        let mut handle = FaultySource::new(Arc::new(source.clone()), &plan);
        for _ in 0..200 {
            if handle.is_dead() {
                handle = FaultySource::new(Arc::new(source.clone()), &plan);
            }
            let _ = now(handle.high());
            if let Ok(stream) = now(handle.changes(request.clone())) {
                now(stream.count());
            }
        }
        plan.trace()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
    let trace = run(7);
    for wanted in [ErrorKind::Unavailable, ErrorKind::Conflict, ErrorKind::Cancelled] {
        assert!(trace.iter().any(|entry| entry.error == Some(wanted)), "{wanted}");
    }
}

#[test]
fn coverage_counts_calls_faults_and_errors_of_every_operation() {
    let (plan, (source, request)) = (plan(), source(2));
    let source = FaultySource::new(Arc::new(source), &plan);
    plan.script(Operation::High, Fault::Refuse(ErrorKind::Unavailable));
    let _ = now(source.high());
    now(source.high()).unwrap();
    now(now(source.changes(request)).unwrap().count());
    let coverage = plan.coverage();
    assert_eq!(coverage.len(), Operation::ALL.len());
    let high = Coverage { calls: 2, faults: 1, errors: 1 };
    assert_eq!(coverage[&Operation::High], high);
    // Two batches, and the end.
    assert_eq!(coverage[&Operation::ChangeBatch].calls, 3);
    assert_eq!(coverage[&Operation::Low], Coverage::default());
}

#[test]
fn calm_ends_scripts_chance_and_holds() {
    let (plan, (source, _)) = (plan(), source(1));
    let source = FaultySource::new(Arc::new(source), &plan);
    plan.script(Operation::High, Fault::Hold);
    plan.script(Operation::High, Fault::Crash);
    let mut odds = Odds::transient();
    odds.refuse = 1.0;
    plan.chance(1, odds);
    let mut held = source.high();
    assert!((&mut held).now_or_never().is_none());
    plan.calm();
    assert!(now(held).is_ok());
    assert!((0..20).all(|_| now(source.high()).is_ok()));
}

/// Handle, call, fault, and whether it was the end.
type Told = (u32, Operation, Option<Fault>, bool);

#[derive(Default)]
struct Heard(std::sync::Mutex<Vec<Told>>);

impl Watcher for Heard {
    fn begun(&self, handle: u32, operation: Operation, fault: Option<Fault>) {
        self.0.lock().unwrap().push((handle, operation, fault, false));
    }

    fn died(&self, handle: u32) {
        self.0.lock().unwrap().push((handle, Operation::Close, Some(Fault::CrashAfter), true));
    }

    fn ended(&self, entry: TraceEntry) {
        self.0.lock().unwrap().push((entry.handle, entry.operation, entry.fault, true));
    }
}

#[test]
fn a_watched_process_vanishes_with_source_and_sink() {
    let heard = Arc::new(Heard::default());
    let plan = FaultPlan::watched(Arc::new(clock()), Arc::clone(&heard) as Arc<dyn Watcher>);
    let source = FaultySource::new(Arc::new(source(1).0), &plan);
    let sink = source.sink(Arc::new(MemoryTarget::new().open()));
    plan.script(Operation::High, Fault::Pass);
    plan.script(Operation::High, Fault::Crash);
    now(source.high()).unwrap();
    assert!(source.high().now_or_never().is_none(), "the call never returns");
    assert!(sink.inspect(&spec()).now_or_never().is_none(), "nor does one of the same process");
    assert!(sink.is_dead());
    let heard = heard.0.lock().unwrap();
    let handle = source.handle();
    assert_eq!(
        *heard,
        [
            (handle, Operation::High, None, false),
            (handle, Operation::High, None, true),
            (handle, Operation::High, Some(Fault::Crash), false),
            (handle, Operation::Close, Some(Fault::CrashAfter), true),
        ]
    );
}

#[test]
fn held_calls_go_on_when_all_are_released() {
    let plan = plan();
    let source = FaultySource::new(Arc::new(source(1).0), &plan);
    plan.script(Operation::High, Fault::Hold);
    let mut held = source.high();
    assert!((&mut held).now_or_never().is_none());
    assert_eq!(plan.release_all(), 1);
    assert!(held.now_or_never().is_some());
    assert_eq!(plan.release_all(), 0);
}
