//! What is said about completeness, and when.

use std::time::Duration;

use cdc_core::{SqlType, TableName, Timestamp, port::Shutdown};
use cdc_fake::{EnableOptions, TableDefinition, Value};
use cdc_tests::world::{BEGIN, World, block_on, table};

fn world() -> World {
    let world = World::new();
    for name in ["busy", "quiet"] {
        let definition = TableDefinition::new(name).column("id", SqlType::Int).primary_key(&["id"]);
        world.database.create_table(definition).expect("new");
        let name = TableName::new("dbo", name);
        world.database.enable_table(&name, EnableOptions::default()).expect("new");
    }
    world
}

fn insert(world: &World, table: &str, id: i64) -> Timestamp {
    let name = TableName::new("dbo", table);
    let insert = world.database.transact(|open| open.insert(&name, vec![Value::Int(id)]));
    insert.expect("a new row").time
}

fn verdict(world: &World, table: &str) -> Option<Timestamp> {
    world.target.state(table)?.verdict?.finalized_until
}

#[test]
fn a_quiet_table_is_as_complete_as_a_busy_one() {
    let world = world();
    for id in 0..10 {
        insert(&world, "busy", id);
        world.clock.advance(Duration::from_secs(61));
    }
    world.clock.advance(Duration::from_secs(10));
    let report = world.copy(&[table("busy"), table("quiet")]);
    assert_eq!(report.errors().count(), 0);
    assert_eq!(verdict(&world, "busy"), verdict(&world, "quiet"));
    assert_eq!(report.finalized_until(), verdict(&world, "busy"));
    assert!(report.finalized_until() > Some(BEGIN));
}

#[test]
fn the_verdict_never_covers_a_commit_that_is_not_in_the_target() {
    let world = world().rows_max(1);
    let mut commits = Vec::new();
    for id in 0..30 {
        commits.push(insert(&world, "busy", id));
        world.clock.advance(Duration::from_secs(45));
        if id % 7 == 3 {
            let report = world.copy(&[table("busy"), table("quiet")]);
            assert_eq!(report.errors().count(), 0);
            let rows: usize = world.target.commits("busy").iter().map(|commit| commit.rows).sum();
            let until = verdict(&world, "busy").expect("published");
            let due = commits.iter().filter(|time| **time < until).count();
            assert!(rows >= due, "{rows} of {due}");
        }
    }
}

#[test]
fn a_running_engine_records_progress_of_quiet_tables_at_a_bounded_rate() {
    let world = world();
    insert(&world, "busy", 1);
    let (stop, shutdown) = cdc_core::port::ShutdownHandle::new();
    // The clock moves as the engine sleeps: an hour of polls, ended by the server.
    let stop_at = world.clock.time().plus_micros(3_600_000_000);
    let clock = world.clock.clone();
    let database = world.database.clone();
    plant_stop(&database, clock, stop_at, stop);
    let report = block_on(world.engine().run(vec![table("busy"), table("quiet")], &shutdown));
    assert_eq!(report.errors().count(), 0);
    let marks = world.target.commits("quiet").len();
    // Idle entries come every five minutes: about a dozen marks, not one a poll.
    assert!((10..=16).contains(&marks), "{marks}");
    let _: Shutdown = shutdown;
}

#[test]
fn a_stopped_capture_job_is_warned_about_once_and_a_quiet_database_never() {
    for stopped in [false, true] {
        let world = world();
        insert(&world, "busy", 1);
        world.clock.advance(Duration::from_secs(60));
        if stopped {
            world.database.stop_capture();
        }
        let (stop, shutdown) = cdc_core::port::ShutdownHandle::new();
        let stop_at = world.clock.time().plus_micros(3_600_000_000);
        plant_stop(&world.database, world.clock.clone(), stop_at, stop);
        let report = block_on(world.engine().run(vec![table("busy")], &shutdown));
        assert_eq!(report.errors().count(), 0);
        let told = world.log.lines();
        let warnings: Vec<_> = told.iter().filter(|line| line.starts_with("Warning")).collect();
        assert_eq!(warnings.len(), usize::from(stopped), "{warnings:?}");
        assert!(warnings.iter().all(|line| line.contains("capture job")), "{warnings:?}");
    }
}

#[test]
fn a_job_that_stops_twice_is_warned_about_twice() {
    let world = world();
    insert(&world, "busy", 1);
    world.clock.advance(Duration::from_secs(60));
    let database = world.database.clone();
    let hours = |count: i64| world.clock.time().plus_micros(count * 3_600_000_000);
    let plan: Vec<TimedStep> = vec![
        (hours(0), cdc_fake::FakeDatabase::stop_capture),
        (hours(1), cdc_fake::FakeDatabase::start_capture),
        (hours(2), cdc_fake::FakeDatabase::stop_capture),
    ];
    let (stop, shutdown) = cdc_core::port::ShutdownHandle::new();
    plant_steps(&database, world.clock.clone(), plan, (hours(3), stop));
    let report = block_on(world.engine().run(vec![table("busy")], &shutdown));
    assert_eq!(report.errors().count(), 0);
    let told = world.log.lines();
    assert_eq!(told.iter().filter(|line| line.starts_with("Warning")).count(), 2);
}

/// Something done to the server at a moment.
type TimedStep = (Timestamp, fn(&cdc_fake::FakeDatabase));

/// Does each step once its time has come, and asks for the stop at the end.
fn plant_steps(
    database: &cdc_fake::FakeDatabase,
    clock: cdc_fake::VirtualClock,
    mut steps: Vec<TimedStep>,
    end: (Timestamp, cdc_core::port::ShutdownHandle),
) {
    database.on_next(cdc_fake::Call::High, cdc_fake::Side::Before, move |database| {
        if steps.first().is_some_and(|(at, _)| clock.time() >= *at) {
            (steps.remove(0).1)(database);
        }
        if clock.time() >= end.0 {
            end.1.request();
        } else {
            plant_steps(database, clock, steps, end);
        }
    });
}

#[test]
fn tables_are_committed_at_the_same_time_and_no_more_of_them_than_the_setting_says() {
    use cdc_fake::faults::{Fault, FaultPlan, FaultySink, Operation};
    use futures_util::{FutureExt, future::join};
    let names = ["a", "b", "c", "d", "e"];
    for at_once in [1, 2, 4] {
        let mut world = World::new();
        world.settings.tables_at_once = at_once.try_into().expect("positive");
        for name in names {
            let definition =
                TableDefinition::new(name).column("id", SqlType::Int).primary_key(&["id"]);
            world.database.create_table(definition).expect("new");
            let name = TableName::new("dbo", name);
            world.database.enable_table(&name, EnableOptions::default()).expect("new");
            insert(&world, &name.name, 1);
        }
        world.clock.advance(Duration::from_secs(60));
        let plan = FaultPlan::new(std::sync::Arc::new(world.clock.clone()));
        // Each table's first mark, held until somebody lets it go.
        names.iter().for_each(|_| plan.script(Operation::Commit, Fault::Hold));
        let sink = FaultySink::new(std::sync::Arc::new(world.target.open()), &plan);
        let engine =
            world.engine_on(std::sync::Arc::new(world.source()), std::sync::Arc::new(sink));
        let never = Shutdown::never();
        let run = engine.run_once(names.map(table).into(), &never);
        let mut most = 0;
        let watch = async {
            // Whenever all stands still, look, and let them go.
            for _ in 0..100 {
                most = most.max(plan.held(Operation::Commit));
                plan.release(Operation::Commit);
                yielded().await;
            }
        };
        let (report, ()) = block_on(join(run, watch).boxed_local());
        assert_eq!(report.errors().count(), 0);
        assert_eq!(report.tables.iter().map(|table| table.rows).sum::<u64>(), 5);
        assert_eq!(most, at_once, "commits at the same time");
    }
}

/// Gives everything else a turn.
async fn yielded() {
    let mut before = true;
    futures_util::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::take(&mut before) {
            std::task::Poll::Pending
        } else {
            std::task::Poll::Ready(())
        }
    })
    .await;
}

/// Asks for the stop once the clock has reached `at`: looked at with every poll.
fn plant_stop(
    database: &cdc_fake::FakeDatabase,
    clock: cdc_fake::VirtualClock,
    at: Timestamp,
    stop: cdc_core::port::ShutdownHandle,
) {
    database.on_next(cdc_fake::Call::High, cdc_fake::Side::Before, move |database| {
        if clock.time() >= at {
            stop.request();
        } else {
            plant_stop(database, clock, at, stop);
        }
    });
}
