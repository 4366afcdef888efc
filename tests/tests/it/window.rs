//! The window of what the source can serve: starts, waits, purges, restores.

use std::{sync::Arc, time::Duration};

use cdc_core::{
    ErrorKind, Lsn, Position, RunReport, SqlType, StartAt, TableConfig, TableName, TableRef,
    port::{Bound, PositionLog, Shutdown},
};
use cdc_fake::{EnableOptions, FakeDatabase, FakeSource, Login, TableDefinition, Value};
use cdc_tests::world::{World, block_on, table};

fn name() -> TableName {
    TableName::new("dbo", "t")
}

fn create(database: &FakeDatabase) {
    let definition = TableDefinition::new("t")
        .column("id", SqlType::Int)
        .nullable("v", SqlType::Int)
        .primary_key(&["id"]);
    database.create_table(definition).expect("new");
}

fn enabled(world: World) -> World {
    create(&world.database);
    world.database.enable_table(&name(), EnableOptions::default()).expect("new");
    world
}

fn insert(world: &World, id: i64) -> Lsn {
    world
        .database
        .transact(|transaction| transaction.insert(&name(), vec![id.into(), Value::Null]))
        .expect("a new row")
        .lsn
}

fn kinds(report: &RunReport) -> Vec<ErrorKind> {
    report.errors().map(|error| error.kind()).collect()
}

fn rows(world: &World) -> usize {
    world.target.commits("t").iter().map(|commit| commit.rows).sum()
}

fn starting(start: StartAt) -> TableConfig {
    TableConfig { start, ..table("t") }
}

#[test]
fn an_instance_that_capture_has_not_reached_is_waited_for() {
    let world = enabled(World::new().by_hand());
    insert(&world, 1);
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    assert_eq!(world.target.state("t"), None, "nothing is written while waiting");
    world.database.capture();
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    assert_eq!(rows(&world), 1);
}

#[test]
fn an_unknown_name_is_a_configuration_error_that_names_what_looks_like_it() {
    let world = enabled(World::new());
    let config = TableConfig {
        source: TableRef::Instance(cdc_core::InstanceName::new("dbo_tt")),
        ..table("t")
    };
    let report = world.copy(&[config]);
    assert_eq!(kinds(&report), [ErrorKind::Config]);
    let text = report.errors().next().expect("one").report();
    assert!(text.contains("dbo_tt"), "{text}");
    assert_eq!(world.target.state("t"), None);
}

#[test]
fn a_table_without_capture_is_a_configuration_error() {
    let world = World::new();
    create(&world.database);
    world.database.enable_cdc();
    assert_eq!(kinds(&world.copy(&[table("t")])), [ErrorKind::Config]);
}

#[test]
fn a_purged_start_and_a_future_start_are_refused_and_nothing_is_written() {
    let world = enabled(World::new().by_hand());
    let first = insert(&world, 1);
    insert(&world, 2);
    world.database.capture();
    world.database.cleanup_instance(&cdc_core::InstanceName::new("dbo_t"), insert(&world, 3)).ok();
    world.clock.advance(Duration::from_secs(10 * 86_400));
    insert(&world, 4);
    world.database.capture();
    world.database.cleanup();
    let purged = Position::from(first.decrement());
    let report = world.copy(&[starting(StartAt::After(purged))]);
    assert_eq!(kinds(&report), [ErrorKind::DataLoss]);
    assert_eq!(report.errors().next().expect("one").context("setting"), Some("start"));
    let future = world.clock.time().plus_micros(1);
    let ahead = [StartAt::After(Position::from(Lsn::MAX)), StartAt::Since(future)];
    for start in ahead {
        assert_eq!(kinds(&world.copy(&[starting(start)])), [ErrorKind::Config]);
    }
    assert_eq!(world.target.state("t"), None);
}

#[test]
fn a_moment_that_has_not_come_is_no_start() {
    let world = enabled(World::new());
    insert(&world, 1);
    world.clock.advance(Duration::from_secs(60));
    let now = world.clock.time();
    let report = world.copy(&[starting(StartAt::Since(now.plus_micros(3_600_000_000)))]);
    assert_eq!(kinds(&report), [ErrorKind::Config]);
    let error = report.errors().next().expect("one");
    assert_eq!(error.context("setting"), Some("start"));
    assert!(error.message().contains("future"), "{error}");
    assert_eq!(world.target.state("t"), None);
    // Nothing newer than a moment of the past is there yet: the copy waits behind it.
    assert!(kinds(&world.copy(&[starting(StartAt::Since(now))])).is_empty());
    assert_eq!(rows(&world), 0);
    insert(&world, 2);
    world.clock.advance(Duration::from_secs(60));
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    assert_eq!(rows(&world), 1);
}

#[test]
fn a_login_that_may_not_read_is_told_the_grant_and_nothing_is_written() {
    let world = World::new().by_hand();
    create(&world.database);
    let options = EnableOptions::default().role("cdc_readers");
    let instance = world.database.enable_table(&name(), options).expect("new");
    insert(&world, 1);
    world.database.capture();
    let copy = || {
        let source = FakeSource::new(&world.database, Login::named("reader")).expect("a zone");
        let engine = world.engine_on(Arc::new(source), Arc::new(world.target.open()));
        block_on(engine.run_once(vec![table("t")], &Shutdown::never()))
    };
    let refused = |report: RunReport| {
        let error = report.errors().next().expect("stops").report();
        assert_eq!(world.target.state("t"), None, "{error}");
        let advice = report.errors().next().expect("stops").advice().to_owned();
        format!("{:?} {error}; {advice}", kinds(&report))
    };
    let nothing = refused(copy());
    assert!(nothing.contains("dbo.t") && nothing.contains("SELECT"), "{nothing}");
    world.database.grant_select("reader", &name());
    let no_role = refused(copy());
    assert!(no_role.contains("dbo"), "{no_role}");
    world.database.grant_changes("reader", &instance);
    world.database.add_role_member("reader", "cdc_readers");
    assert!(kinds(&copy()).is_empty());
    assert_eq!(rows(&world), 1);
}

#[test]
fn latest_is_durable_before_the_first_change_so_a_restart_skips_nothing() {
    let world = enabled(World::new().by_hand());
    insert(&world, 1);
    world.database.capture();
    assert!(kinds(&world.copy(&[starting(StartAt::Latest)])).is_empty());
    insert(&world, 2);
    world.database.capture();
    // The process starts again, told the same.
    assert!(kinds(&world.copy(&[starting(StartAt::Latest)])).is_empty());
    assert_eq!(rows(&world), 1);
}

#[test]
fn ten_quiet_days_lose_nothing_although_retention_is_three() {
    let world = enabled(World::new());
    insert(&world, 1);
    world.clock.advance(Duration::from_secs(60));
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    for _ in 0..240 {
        world.clock.advance(Duration::from_secs(3_600));
        world.database.cleanup();
        assert!(kinds(&world.copy(&[table("t")])).is_empty());
        let high = block_on(world.source().high()).expect("readable");
        let mark = world.target.state("t").expect("attached").mark.expect("marked");
        assert_eq!(high, Bound::At(mark.end));
    }
    insert(&world, 2);
    world.clock.advance(Duration::from_secs(60));
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    assert_eq!(rows(&world), 2);
}

#[test]
fn an_instance_disabled_and_enabled_again_under_its_name_is_a_loss() {
    let world = enabled(World::new().by_hand());
    insert(&world, 1);
    world.database.capture();
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    insert(&world, 2);
    world.database.disable_instance(&cdc_core::InstanceName::new("dbo_t")).expect("there");
    world.database.enable_table(&name(), EnableOptions::default()).expect("free again");
    insert(&world, 3);
    world.database.capture();
    assert_eq!(kinds(&world.copy(&[table("t")])), [ErrorKind::DataLoss]);
    assert_eq!(rows(&world), 1);
}

#[test]
fn a_restored_source_is_found_whether_it_is_behind_or_has_passed_the_mark() {
    let world = enabled(World::new().by_hand());
    insert(&world, 1);
    world.database.capture();
    let backup = world.database.backup();
    world.clock.advance(Duration::from_secs(60));
    insert(&world, 2);
    world.database.capture();
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    world.database.restore(&backup);
    assert_eq!(kinds(&world.copy(&[table("t")])), [ErrorKind::LineageBroken]);
    // The restored log grows past the mark: the position alone would look right.
    for id in 10..30 {
        world.clock.advance(Duration::from_secs(7));
        insert(&world, id);
    }
    world.database.capture();
    assert_eq!(kinds(&world.copy(&[table("t")])), [ErrorKind::LineageBroken]);
    assert_eq!(rows(&world), 2);
}

#[test]
fn random_splits_read_each_commit_exactly_once() {
    for commits_max in 1..8u64 {
        for rows_max in 1..8u64 {
            let mut world = enabled(World::new().by_hand()).rows_max(rows_max);
            world.settings.limits.commits_max = commits_max.try_into().ok();
            for id in 0..25 {
                insert(&world, id);
            }
            world.database.capture();
            assert!(kinds(&world.copy(&[table("t")])).is_empty());
            assert_eq!(rows(&world), 25, "{commits_max} {rows_max}");
        }
    }
}

#[test]
fn a_column_that_a_newer_instance_brought_while_nothing_ran_is_added() {
    let world = enabled(World::new().by_hand());
    insert(&world, 1);
    world.database.capture();
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    let added = cdc_fake::ColumnDefinition::nullable("w", SqlType::Int);
    world.database.add_column(&name(), added, None).expect("new");
    world.database.enable_table(&name(), EnableOptions::named("dbo_t_2")).expect("second");
    let row = vec![Value::Int(2), Value::Null, Value::Int(5)];
    world.database.transact(|open| open.insert(&name(), row)).expect("new");
    // The older instance does not see an update of the new column alone.
    let set = [("w", Value::Int(6))];
    world
        .database
        .transact(|open| open.update(&name(), &[1.into()], &set).map(|_| ()))
        .expect("is");
    world.database.capture();
    assert!(kinds(&world.copy(&[table("t")])).is_empty());
    assert_eq!(rows(&world), 4);
    let history = world.target.rows("t").expect("readable");
    let newest =
        cdc_conformance::image::newest(&history, &["id", "w"], &["id"]).expect("a history");
    let (present, _) = world.source_rows(&name()).expect("readable");
    assert_eq!(newest, cdc_conformance::image::present(&present, &["id", "w"]).expect("rows"));
    let kinds: Vec<_> = world
        .target
        .commits("t")
        .into_iter()
        .flat_map(|commit| commit.events)
        .map(|event| event.kind.name())
        .collect();
    assert_eq!(kinds, ["schema_change", "capture_instance_switched"]);
}
