//! Trouble at every call: whatever fails, nothing is lost, nothing is doubled, nothing runs ahead,
//! and every run ends with the right kind of error.

use std::{sync::Arc, time::Duration};

use cdc_conformance::cell::Cell;
use cdc_core::{
    ErrorKind, InstanceName, RunReport, SqlType, TableName, TableSpec,
    port::{Shutdown, ShutdownHandle, Sink},
};
use cdc_fake::{
    Call, CaptureSchedule, EnableOptions, FakeDatabase, Side, SqlError, TableDefinition, Value,
    faults::{Fault, FaultPlan, FaultySink, FaultySource, Operation},
};
use cdc_tests::world::{World, block_on, table};
use futures_util::FutureExt;

fn world(names: &[&str]) -> World {
    let world = World::new();
    for name in names {
        let definition = TableDefinition::new(name)
            .column("id", SqlType::Int)
            .nullable("a", SqlType::Int)
            .nullable("b", SqlType::Int)
            .primary_key(&["id"]);
        world.database.create_table(definition).expect("new");
        let name = TableName::new("dbo", *name);
        world.database.enable_table(&name, EnableOptions::default()).expect("new");
    }
    world.clock.advance(Duration::from_secs(60));
    world
}

fn insert(world: &World, table: &str, id: i64) {
    let name = TableName::new("dbo", table);
    let row = vec![Value::Int(id), Value::Int(id), Value::Int(id)];
    world.database.transact(|open| open.insert(&name, row)).expect("a new row");
    world.clock.advance(Duration::from_secs(20));
}

fn rows(world: &World, table: &str) -> usize {
    world.target.commits(table).iter().map(|commit| commit.rows).sum()
}

/// Runs something at every `every`-th poll, with the number of that poll, until it says false.
fn at_polls(
    database: &FakeDatabase,
    poll: u64,
    mut act: impl FnMut(&FakeDatabase, u64) -> bool + Send + 'static,
) {
    database.on_next(Call::High, Side::Before, move |database| {
        if act(database, poll) {
            at_polls(database, poll + 1, act);
        }
    });
}

/// Runs the engine for `polls` polls, doing `act` before the poll of its number.
fn run(
    world: &World,
    names: &[&str],
    polls: u64,
    mut act: impl FnMut(&FakeDatabase, u64) + Send + 'static,
) -> RunReport {
    let (stop, shutdown) = ShutdownHandle::new();
    at_polls(&world.database, 1, move |database, poll| {
        act(database, poll);
        if poll >= polls {
            stop.request();
        }
        poll < polls
    });
    let tables = names.iter().map(|name| table(name)).collect();
    block_on(world.engine().run(tables, &shutdown))
}

fn kinds(report: &RunReport) -> Vec<Option<ErrorKind>> {
    report.tables.iter().map(|table| table.error.as_ref().map(|error| error.kind())).collect()
}

#[test]
fn a_table_whose_commits_never_succeed_stops_after_its_attempts() {
    for kind in [ErrorKind::Unavailable, ErrorKind::Conflict] {
        let world = world(&["t"]);
        assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
        insert(&world, "t", 1);
        let plan = FaultPlan::new(Arc::new(world.clock.clone()));
        (0..100).for_each(|_| plan.script(Operation::Commit, Fault::Refuse(kind)));
        let sink = FaultySink::new(Arc::new(world.target.open()), &plan);
        let engine = world.engine_on(Arc::new(world.source()), Arc::new(sink));
        let report = block_on(engine.run_once(vec![table("t")], &Shutdown::never()));
        assert_eq!(kinds(&report), [Some(kind)]);
        let commits = plan.coverage()[&Operation::Commit].calls;
        assert_eq!(commits, u64::from(world.settings.retry.attempts_max));
    }
}

#[test]
fn a_table_that_fails_does_not_slow_the_others_down() {
    let mut world = world(&["good", "bad"]).rows_max(1);
    assert_eq!(kinds(&world.copy(&[table("good"), table("bad")])), [None, None]);
    (0..50).for_each(|id| insert(&world, "good", id));
    insert(&world, "bad", 1);
    world.settings.retry.pause_first = Duration::from_secs(60);
    let plan = FaultPlan::new(Arc::new(world.clock.clone()));
    plan.script(Operation::Commit, Fault::Pass);
    plan.script(Operation::Commit, Fault::Refuse(ErrorKind::Unavailable));
    let sink = FaultySink::new(Arc::new(world.target.open()), &plan);
    let engine = world.engine_on(Arc::new(world.source()), Arc::new(sink));
    let begin = world.clock.time();
    let tables = vec![table("good"), table("bad")];
    let report = block_on(engine.run_once(tables, &Shutdown::never()));
    assert_eq!(kinds(&report), [None, None]);
    assert_eq!((rows(&world, "good"), rows(&world, "bad")), (50, 1));
    let last = world.target.commits("good").last().expect("copied").facts.started_at;
    assert!(last.micros_since(begin) < 5_000_000, "waited for the other table's pause");
    assert!(world.clock.time().micros_since(begin) >= 60_000_000, "the other table has paused");
}

#[test]
fn a_restore_below_the_mark_is_seen_while_the_engine_runs() {
    let world = world(&["t"]);
    insert(&world, "t", 1);
    world.clock.advance(Duration::from_secs(60));
    let backup = world.database.backup();
    insert(&world, "t", 2);
    world.clock.advance(Duration::from_secs(60));
    let name = TableName::new("dbo", "t");
    let report = run(&world, &["t"], 400, move |database, poll| {
        if poll == 20 {
            database.restore(&backup);
        } else if poll > 40 && poll < 50 {
            let row = vec![Value::Int(poll.cast_signed()), Value::Null, Value::Null];
            database.transact(|open| open.insert(&name, row)).expect("a new row");
        }
    });
    assert_eq!(kinds(&report), [Some(ErrorKind::LineageBroken)]);
    assert_eq!(rows(&world, "t"), 2);
}

#[test]
fn a_restore_that_passes_the_mark_between_two_polls_is_seen() {
    let world = world(&["t"]);
    insert(&world, "t", 1);
    world.database.set_capture(CaptureSchedule::AtCommit);
    let backup = world.database.backup();
    insert(&world, "t", 2);
    world.clock.advance(Duration::from_secs(60));
    let name = TableName::new("dbo", "t");
    let report = run(&world, &["t"], 40, move |database, poll| {
        if poll == 20 {
            database.restore(&backup);
            database.clock().advance(Duration::from_millis(1_234));
            for id in 100..110 {
                let row = vec![Value::Int(id), Value::Null, Value::Null];
                database.transact(|open| open.insert(&name, row)).expect("a new row");
            }
        }
    });
    assert_eq!(kinds(&report), [Some(ErrorKind::LineageBroken)]);
    assert_eq!(rows(&world, "t"), 2);
}

#[test]
fn a_clock_that_was_put_back_is_no_other_log() {
    let world = world(&["t"]);
    insert(&world, "t", 1);
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    world.clock.set_back(Duration::from_secs(400));
    world.database.set_capture(CaptureSchedule::AtCommit);
    for id in 2..5 {
        insert(&world, "t", id);
        assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    }
    assert_eq!(rows(&world, "t"), 4);
}

#[test]
fn a_table_that_is_no_longer_captured_stops_alone() {
    let world = world(&["t", "u"]);
    let name = TableName::new("dbo", "u");
    let report = run(&world, &["t", "u"], 60, move |database, poll| {
        if poll == 10 {
            database.disable_instance(&InstanceName::new("dbo_t")).expect("known");
            let row = vec![Value::Int(1), Value::Null, Value::Null];
            database.transact(|open| open.insert(&name, row)).expect("a new row");
        }
    });
    assert_eq!(kinds(&report), [Some(ErrorKind::DataLoss), None]);
    assert_eq!(rows(&world, "u"), 1);
}

#[test]
fn an_instance_that_is_replaced_without_overlap_is_a_loss_and_not_a_wait() {
    let world = world(&["t"]);
    let report = run(&world, &["t"], 200, move |database, poll| {
        if poll == 10 {
            let name = TableName::new("dbo", "t");
            let row = vec![Value::Int(1), Value::Null, Value::Null];
            database.stop_capture();
            database.transact(|open| open.insert(&name, row)).expect("a new row");
            database.disable_instance(&InstanceName::new("dbo_t")).expect("known");
            database.enable_table(&name, EnableOptions::named("next")).expect("free");
            database.write_idle_entry();
        } else if poll == 50 {
            database.start_capture();
        }
    });
    assert_eq!(kinds(&report), [Some(ErrorKind::DataLoss)]);
}

#[test]
fn a_drop_in_mid_read_is_a_loss_and_not_a_missing_right() {
    for call in [Call::Low, Call::SchemaChanges, Call::Changes, Call::ChangeBatch] {
        let world = world(&["t"]);
        assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
        insert(&world, "t", 1);
        let name = TableName::new("dbo", "t");
        world.database.enable_table(&name, EnableOptions::named("next")).expect("free");
        insert(&world, "t", 2);
        world.database.on_next(Call::NthCommit, Side::Before, move |database| {
            database.on_next(call, Side::Before, |database| {
                database.disable_instance(&InstanceName::new("dbo_t")).expect("known");
            });
        });
        let mut world = world;
        world.settings.limits.commits_max = Some(1_000.try_into().expect("positive"));
        let report = world.copy(&[table("t")]);
        assert_eq!(kinds(&report), [Some(ErrorKind::DataLoss)], "{call:?}");
        assert_eq!(rows(&world, "t"), 0);
    }
}

#[test]
fn what_only_a_newer_instance_recorded_is_read_when_the_older_one_was_quiet() {
    let mut world = world(&["u"]).rows_max(1).by_hand();
    let name = TableName::new("dbo", "t");
    let definition = TableDefinition::new("t")
        .column("id", SqlType::Int)
        .nullable("a", SqlType::Int)
        .nullable("b", SqlType::Int)
        .primary_key(&["id"]);
    world.database.create_table(definition).expect("new");
    let of = |name: &str, column: &str| EnableOptions {
        columns: Some(vec!["id".into(), column.into()]),
        ..EnableOptions::named(name)
    };
    world.database.enable_table(&name, of("old", "a")).expect("free");
    let row = vec![Value::Int(1), Value::Int(0), Value::Int(0)];
    world.database.transact(|open| open.insert(&name, row)).expect("new");
    world.database.capture();
    world.settings.progress_interval = Duration::from_secs(100);
    let next = of("next", "b");
    let options = std::sync::Mutex::new(Some(next));
    let report = run(&world, &["t"], 60, move |database, poll| {
        let set = |column: &str, value: i64| {
            let key = [Value::Int(1)];
            let change = [(column, Value::Int(value))];
            database.transact(|open| open.update(&name, &key, &change).map(|_| ())).expect("there");
        };
        match poll {
            10 => {
                let options = options.lock().expect("whole").take().expect("once");
                database.enable_table(&name, options).expect("free");
                set("b", 1);
                set("b", 2);
                database.capture();
            }
            15 => {
                set("a", 3);
                database.capture();
            }
            50 => {
                set("b", 4);
                database.capture();
            }
            _ => {}
        }
    });
    assert_eq!(kinds(&report), [None]);
    // The insert, and both images of the three updates of `b`.
    assert_eq!(rows(&world, "t"), 7);
}

#[test]
fn an_instance_made_after_the_clock_was_put_back_is_still_the_newer_one() {
    let world = world(&["t"]);
    insert(&world, "t", 1);
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    world.clock.set_back(Duration::from_secs(400));
    let name = TableName::new("dbo", "t");
    let added = cdc_fake::ColumnDefinition::nullable("c", SqlType::Int);
    world.database.add_column(&name, added, None).expect("new");
    world.database.enable_table(&name, EnableOptions::named("next")).expect("free");
    let row = (2..6).map(Value::Int).collect();
    world.database.transact(|open| open.insert(&name, row)).expect("a new row");
    world.clock.advance(Duration::from_secs(700));
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    let history = world.target.rows("t").expect("readable");
    let rows = cdc_conformance::rows::Rows::read(&history, ["c"], true).expect("a history");
    let values: Vec<_> = rows.as_slice().iter().map(|row| row.cells["c"].clone()).collect();
    assert_eq!(values, [Cell::Null, Cell::Int(5)]);
}

#[test]
fn a_column_that_came_while_nobody_ran_is_added_to_the_target() {
    let world = world(&["t"]);
    insert(&world, "t", 1);
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    let name = TableName::new("dbo", "t");
    let added = cdc_fake::ColumnDefinition::nullable("c", SqlType::Int);
    world.database.add_column(&name, added, None).expect("new");
    world.database.enable_table(&name, EnableOptions::named("next")).expect("free");
    let row = (2..6).map(Value::Int).collect();
    world.database.transact(|open| open.insert(&name, row)).expect("a new row");
    world.clock.advance(Duration::from_secs(700));
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    assert_eq!(world.target.columns("t").last().map(|column| column.name.as_str()), Some("c"));
    assert_eq!(rows(&world, "t"), 2);
}

#[test]
fn a_handle_that_goes_away_ends_the_run() {
    let world = world(&["t"]);
    let (stop, shutdown) = ShutdownHandle::new();
    let mut stop = Some(stop);
    at_polls(&world.database, 1, move |_, poll| {
        if poll == 3 {
            stop.take();
        }
        assert!(poll < 100, "polls without a pause");
        true
    });
    let report = block_on(world.engine().run(vec![table("t")], &shutdown));
    assert_eq!(kinds(&report), [None]);
    assert!(world.database.calls(Call::High) <= 4);
}

#[test]
fn a_stop_ends_a_read_that_hangs() {
    let world = world(&["t"]);
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    insert(&world, "t", 1);
    world.clock.advance(Duration::from_secs(60));
    let plan = FaultPlan::new(Arc::new(world.clock.clone()));
    plan.script(Operation::ChangeBatch, Fault::Hold);
    let source = FaultySource::new(Arc::new(world.source()), &plan);
    let engine = world.engine_on(Arc::new(source), Arc::new(world.target.open()));
    let (stop, shutdown) = ShutdownHandle::new();
    let mut run = std::pin::pin!(engine.run(vec![table("t")], &shutdown));
    assert!((&mut run).now_or_never().is_none());
    assert_eq!(plan.held(Operation::ChangeBatch), 1);
    stop.request();
    let report = run.now_or_never().expect("ended");
    assert_eq!(kinds(&report), [Some(ErrorKind::Cancelled)]);
    assert_eq!(rows(&world, "t"), 0);
}

#[test]
fn a_restore_between_two_questions_is_not_a_missing_right() {
    let world = world(&["t"]);
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    let name = TableName::new("dbo", "t");
    world.database.enable_table(&name, EnableOptions::named("next")).expect("free");
    // Capture has not reached the new instance here.
    let backup = world.database.backup();
    world.clock.advance(Duration::from_secs(60));
    insert(&world, "t", 1);
    world.clock.advance(Duration::from_secs(60));
    world.database.on_next(Call::HasChanges, Side::Before, move |database| {
        database.restore(&backup);
    });
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    assert_eq!(rows(&world, "t"), 0);
    insert(&world, "t", 2);
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    assert_eq!(rows(&world, "t"), 1);
}

#[test]
fn an_older_runner_does_not_take_the_table_back_after_an_error() {
    let world = world(&["t"]);
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    insert(&world, "t", 1);
    // A newer runner attaches while the older one reads, and that read fails.
    let (target, config) = (world.target.clone(), table("t"));
    let newer = Arc::new(target.open());
    let (taken, spec) = (Arc::clone(&newer), lake_spec(&world, &config.target));
    world.database.on_next(Call::ChangeBatch, Side::Before, move |database| {
        taken.attach(&spec).now_or_never().expect("at once").expect("attached");
        database.fail_next(Call::ChangeBatch, 1, &SqlError::deadlock());
    });
    let report = block_on(world.engine().run_once(vec![config], &Shutdown::never()));
    assert_eq!(kinds(&report), [Some(ErrorKind::Fenced)]);
    let engine = world.engine_on(Arc::new(world.source()), newer);
    let report = block_on(engine.run_once(vec![table("t")], &Shutdown::never()));
    assert_eq!(kinds(&report), [None]);
    assert_eq!(rows(&world, "t"), 1);
}

/// The table as a sink keeps it.
fn lake_spec(world: &World, name: &str) -> TableSpec {
    let source = TableName::new("dbo", name);
    let (_, columns) = world.source_rows(&source).expect("readable");
    TableSpec::new(name, source, columns, vec!["id".to_owned()]).expect("plain columns")
}

#[test]
fn a_mark_that_another_runner_moved_meanwhile_is_no_other_log() {
    let world = world(&["t"]);
    world.copy(&[table("t")]);
    insert(&world, "t", 1);
    let plan = FaultPlan::new(Arc::new(world.clock.clone()));
    plan.script(Operation::Instances, Fault::Hold);
    let source = FaultySource::new(Arc::new(world.source()), &plan);
    let slow = world.engine_on(Arc::new(source), Arc::new(world.target.open()));
    let never = Shutdown::never();
    let mut late = Box::pin(slow.run_once(vec![table("t")], &never));
    // It has read the high position, and is held before it looks at the table.
    assert!((&mut late).now_or_never().is_none());
    insert(&world, "t", 2);
    assert_eq!(kinds(&world.copy(&[table("t")])), [None]);
    plan.release_all();
    assert_eq!(kinds(&block_on(late)), [None]);
    assert_eq!(rows(&world, "t"), 2);
}
