//! Bad input with a lake on disk: a clear error that names what to do, nothing written, nothing
//! lost.

use std::{collections::BTreeMap, fs, path::PathBuf, time::Duration};

use cdc_core::{Error, ErrorKind, SqlType, TableName, port::ShutdownHandle};
use cdc_fake::{Call, ColumnDefinition, EnableOptions, Side, TableDefinition, Value};
use cdc_tests::world::{World, table};
use deltalake::kernel::{DataType, StructField};

use crate::lake::{Lake, runtime};

fn name() -> TableName {
    TableName::new("dbo", "t")
}

/// A captured table with these columns beside its key.
fn world(columns: &[&str]) -> World {
    let world = World::new().by_hand();
    let mut definition = TableDefinition::new("t").column("id", SqlType::Int);
    for column in columns {
        definition = definition.nullable(column, SqlType::Int);
    }
    world.database.create_table(definition.primary_key(&["id"])).expect("new");
    world.database.enable_table(&name(), EnableOptions::default()).expect("new");
    world
}

fn insert(world: &World, id: i64) {
    world.clock.advance(Duration::from_secs(60));
    let row = vec![Value::Int(id), Value::Null];
    world.database.transact(|open| open.insert(&name(), row)).expect("a new row");
    world.database.capture();
}

/// A world with a copy of it: two runs, so that the log has more than one batch.
fn copied() -> (World, Lake) {
    let (world, lake) = (world(&["v"]), Lake::new());
    for id in 1..=2 {
        insert(&world, id);
        assert_eq!(lake.copy(&world, &[table("t")]).errors().count(), 0);
    }
    insert(&world, 3);
    (world, lake)
}

/// Copies, and expects the table to stop with nothing written.
#[track_caller]
fn refused(world: &World, lake: &Lake, kind: ErrorKind) -> Error {
    let before = lake.files();
    let mut report = lake.copy(world, &[table("t")]);
    let error = report.tables.remove(0).error.expect("stops");
    assert_eq!(error.kind(), kind, "{}", error.report());
    assert!(lake.files() == before, "a refusal writes nothing");
    error
}

#[track_caller]
fn says(error: &Error, parts: &[&str]) {
    let text = format!("{}; {}", error.report(), error.advice());
    for part in parts {
        assert!(text.contains(part), "{part} in: {text}");
    }
}

/// The rows of the copy by key, each once.
#[track_caller]
fn holds_each_row_once(lake: &Lake, ids: std::ops::RangeInclusive<i64>) {
    let mut found: Vec<_> = lake.rows("bronze/t").iter().map(|row| row["id"].clone()).collect();
    found.sort();
    let expected: Vec<_> = ids.map(cdc_conformance::Cell::Int).collect();
    assert_eq!(found, expected);
}

/// Takes the newest `count` versions out of a table's log, as restoring an older copy does.
fn rewind(lake: &Lake, table: &str, count: usize) -> BTreeMap<PathBuf, Vec<u8>> {
    let versions = lake.versions(table);
    let newest = versions.iter().rev().take(count);
    newest
        .map(|path| {
            let content = fs::read(path).expect("is read");
            fs::remove_file(path).expect("is removed");
            (path.clone(), content)
        })
        .collect()
}

#[test]
fn a_captured_column_named_like_one_of_bronze_is_unsupported() {
    for column in cdc_core::table::RESERVED_COLUMNS {
        for column in [column.to_owned(), column.to_uppercase()] {
            let (world, lake) = (world(&[&column]), Lake::new());
            insert(&world, 1);
            let error = refused(&world, &lake, ErrorKind::Unsupported);
            says(&error, &["dbo.t", &column, "capture instance's column list"]);
            assert!(lake.files().is_empty(), "not even a directory's log");
        }
    }
}

#[test]
fn a_reserved_name_in_a_newer_instance_stops_a_running_copy_before_its_rows() {
    let (world, lake) = (world(&["v"]), Lake::new());
    insert(&world, 1);
    let (stop, shutdown) = ShutdownHandle::new();
    // While the copy runs, somebody adds the column and captures it.
    plant(&world.database, 3, |database| {
        let column = ColumnDefinition::nullable("_Batch_Id", SqlType::Int);
        database.add_column(&name(), column, None).expect("a new column");
        database.enable_table(&name(), EnableOptions::named("dbo_t_2")).expect("a second instance");
        let row = vec![Value::Int(2), Value::Null, Value::Int(77)];
        database.transact(|open| open.insert(&name(), row)).expect("a new row");
        database.capture();
    });
    plant(&world.database, 60, move |_| stop.request());
    let sink = std::sync::Arc::new(lake.sink(&world));
    let engine = world.engine_on(std::sync::Arc::new(world.source()), sink);
    let mut report = runtime().block_on(engine.run(vec![table("t")], &shutdown));
    let error = report.tables.remove(0).error.expect("stops");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", error.report());
    says(&error, &["dbo.t", "_Batch_Id", "capture instance's column list"]);
    holds_each_row_once(&lake, 1..=1);
}

/// Does something at the `count`-th next poll.
fn plant(
    database: &cdc_fake::FakeDatabase,
    count: usize,
    act: impl FnOnce(&cdc_fake::FakeDatabase) + Send + 'static,
) {
    database.on_next(Call::High, Side::Before, move |database| match count {
        0 => act(database),
        _ => plant(database, count - 1, act),
    });
}

#[test]
fn somebody_elses_delta_table_is_left_alone_wherever_it_lies() {
    for dir in ["bronze/t", "facts", "control"] {
        let (world, lake) = (world(&["v"]), Lake::new());
        insert(&world, 1);
        fs::create_dir_all(lake.path(dir)).expect("is made");
        let location = url::Url::from_directory_path(lake.path(dir)).expect("absolute");
        runtime().block_on(async {
            deltalake::DeltaTableBuilder::from_url(location)
                .expect("a path")
                .build()
                .expect("a table")
                .create()
                .with_columns([StructField::nullable("id", DataType::LONG)])
                .await
                .expect("is created")
        });
        let error = refused(&world, &lake, ErrorKind::Config);
        says(&error, &[dir, "holds another Delta table", "name another root or table"]);
    }
}

#[test]
fn a_directory_of_other_files_is_left_alone() {
    let (world, lake) = (world(&["v"]), Lake::new());
    insert(&world, 1);
    fs::create_dir_all(lake.path("bronze/t")).expect("is made");
    fs::write(lake.path("bronze/t/notes.txt"), "mine").expect("is written");
    let error = refused(&world, &lake, ErrorKind::Config);
    says(&error, &["bronze/t", "no Delta table", "move what is in the directory away"]);
    fs::remove_file(lake.path("bronze/t/notes.txt")).expect("is removed");
    assert_eq!(lake.copy(&world, &[table("t")]).errors().count(), 0);
    holds_each_row_once(&lake, 1..=1);
}

#[test]
fn a_rewound_target_is_refused_and_goes_on_once_it_is_restored() {
    // Fence and batch of the last run, or that and more.
    for versions in 1..=4 {
        let (world, lake) = copied();
        let taken = rewind(&lake, "bronze/t", versions);
        let error = refused(&world, &lake, ErrorKind::InvalidData);
        says(&error, &["bronze/t", "table=t", "rewound", "target_sequence", "newest state"]);
        for (path, content) in taken {
            fs::write(path, content).expect("is restored");
        }
        assert_eq!(lake.copy(&world, &[table("t")]).errors().count(), 0);
        holds_each_row_once(&lake, 1..=3);
    }
}

#[test]
fn a_deleted_bronze_table_is_not_filled_again_from_what_is_left() {
    let (world, lake) = copied();
    fs::rename(lake.path("bronze/t"), lake.path("bronze/moved")).expect("is moved");
    let error = refused(&world, &lake, ErrorKind::InvalidData);
    says(&error, &["bronze/t", "table=t", "deleted", "start a new copy"]);
    fs::rename(lake.path("bronze/moved"), lake.path("bronze/t")).expect("is moved back");
    assert_eq!(lake.copy(&world, &[table("t")]).errors().count(), 0);
    holds_each_row_once(&lake, 1..=3);
}

#[test]
fn a_bronze_table_deleted_under_a_running_copy_is_not_made_anew() {
    let (world, lake) = copied();
    let (stop, shutdown) = ShutdownHandle::new();
    let bronze = lake.path("bronze/t");
    let aside = lake.path("bronze/moved");
    plant(&world.database, 3, move |database| {
        fs::rename(bronze, aside).expect("is moved");
        let row = vec![Value::Int(4), Value::Null];
        database.transact(|open| open.insert(&name(), row)).expect("a new row");
        database.capture();
    });
    plant(&world.database, 200, move |_| stop.request());
    let sink = std::sync::Arc::new(lake.sink(&world));
    let engine = world.engine_on(std::sync::Arc::new(world.source()), sink);
    let mut report = runtime().block_on(engine.run(vec![table("t")], &shutdown));
    let error = report.tables.remove(0).error.expect("stops");
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{}", error.report());
    says(&error, &["bronze/t", "table=t", "deleted or rewound", "newest state"]);
    // Nothing was written in its place, and the copy goes on from what was moved aside.
    fs::remove_dir(lake.path("bronze/t")).ok();
    fs::rename(lake.path("bronze/moved"), lake.path("bronze/t")).expect("is moved back");
    assert_eq!(lake.copy(&world, &[table("t")]).errors().count(), 0);
    holds_each_row_once(&lake, 1..=4);
}

#[test]
fn a_root_that_cannot_be_written_is_named() {
    // A file in the way of each directory: refused to everybody, whatever their rights.
    for dir in ["", "bronze", "facts", "control"] {
        let (world, lake) = (world(&["v"]), Lake::new());
        insert(&world, 1);
        let path = lake.path(dir);
        let path = path.components().collect::<PathBuf>();
        fs::create_dir_all(path.parent().expect("has one")).expect("is made");
        fs::write(&path, "in the way").expect("is written");
        let error = refused(&world, &lake, ErrorKind::Config);
        says(&error, &[&path.display().to_string(), "let the run write to the named path"]);
        assert_eq!(fs::read_to_string(&path).expect("is left"), "in the way");
        // Nothing that would keep the next run from going on.
        fs::remove_file(&path).expect("is removed");
        assert_eq!(lake.copy(&world, &[table("t")]).errors().count(), 0, "{dir}");
        holds_each_row_once(&lake, 1..=1);
    }
}

#[test]
fn a_table_under_another_tables_name_is_refused() {
    let (world, lake) = copied();
    let other = TableDefinition::new("o")
        .column("id", SqlType::Int)
        .nullable("v", SqlType::Int)
        .primary_key(&["id"]);
    world.database.create_table(other).expect("new");
    let name = TableName::new("dbo", "o");
    world.database.enable_table(&name, EnableOptions::default()).expect("new");
    world.database.capture();
    let before = lake.files();
    let config = cdc_core::TableConfig { target: "t".into(), ..table("o") };
    let mut report = lake.copy(&world, &[config]);
    let error = report.tables.remove(0).error.expect("stops");
    assert_eq!(error.kind(), ErrorKind::Config, "{}", error.report());
    says(&error, &["bronze/t", "dbo.t", "dbo.o", "name another root or table"]);
    assert!(lake.files() == before, "nothing is written");
}
