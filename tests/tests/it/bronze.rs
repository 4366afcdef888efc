//! The whole path: fake server, engine, Delta on disk, read back by a reader of its own, against
//! the server's change tables.

use std::{collections::BTreeMap, time::Duration};

use cdc_conformance::{
    Cell,
    rows::{Rows, hex},
};
use cdc_core::{Column, InstanceName, SqlType};
use cdc_fake::Value;
use cdc_tests::{
    sample,
    world::{World, table},
};

use crate::lake::{Lake, actions};

/// A world with the sample in it, whose batches are small: tables get several files.
fn filled() -> World {
    let world = World::new().rows_max(40);
    sample::fill(&world.database, 120).expect("the server takes it");
    world.clock.advance(Duration::from_secs(600));
    world
}

/// What bronze has to hold for a cell of a change table, by the type's own definition.
fn expected(value: &Value, column: &Column) -> Cell {
    use SqlType as T;
    let scale = match &column.sql_type {
        T::Decimal { scale, .. } => i8::try_from(*scale).expect("at most 38"),
        _ => 4,
    };
    // 100 ns are cut to microseconds, towards the past.
    let micros = |ticks: i64| ticks.div_euclid(10);
    match value {
        Value::Null => Cell::Null,
        Value::Bit(bit) => Cell::Bool(*bit),
        Value::Int(number) => Cell::Int(*number),
        Value::Real(number) => Cell::real(*number),
        Value::Float(number) => Cell::float(*number),
        Value::Decimal(digits) => Cell::Decimal((*digits).into(), scale),
        Value::Date(days) => Cell::Date(*days),
        Value::DateTime(time) => {
            let wall = time.wall().expect("in the calendar").and_utc();
            Cell::Wall(wall.timestamp_micros())
        }
        Value::DateTime2(ticks) => Cell::Wall(micros(*ticks)),
        Value::DateTimeOffset { utc, .. } => Cell::Instant(micros(*utc)),
        Value::Text(text) => Cell::text(&**text),
        Value::Bytes(bytes) => Cell::Bytes(bytes.to_vec()),
        Value::Uuid(bytes) => {
            let digits = hex(bytes);
            let part = |from: usize, to: usize| &digits[2 + from..2 + to];
            let parts = [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)];
            Cell::text(parts.join("-"))
        }
        Value::Time(ticks) => {
            let seconds = ticks / 10_000_000;
            let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
            let part = ticks % 10_000_000;
            Cell::text(format!("{hours:02}:{minutes:02}:{seconds:02}.{part:07}"))
        }
    }
}

/// The identity of a change and its cells.
type Change = (String, i64, String, i64, BTreeMap<String, Cell>);

#[test]
fn bronze_on_disk_is_the_servers_change_tables_row_for_row() {
    let world = filled();
    let lake = Lake::new();
    let tables: Vec<_> = sample::TABLES.iter().map(|name| table(name)).collect();
    assert_eq!(lake.copy(&world, &tables).errors().count(), 0);
    let mut total = 0;
    for name in sample::TABLES {
        let instance = InstanceName::new(&format!("dbo_{name}"));
        let (_, columns) = world.source_rows(&cdc_core::TableName::new("dbo", name)).expect("rows");
        let mut wanted: Vec<Change> = world
            .database
            .change_rows(&instance)
            .expect("an instance")
            .into_iter()
            .map(|row| {
                let cells =
                    row.values.iter().zip(&columns).map(|(value, column)| {
                        (column.name.to_lowercase(), expected(value, column))
                    });
                let operation = row.operation.code().into();
                let (commit, sequence) = (row.commit.to_string(), row.seqval.to_string());
                (commit, row.command.into(), sequence, operation, cells.collect())
            })
            .collect();
        wanted.sort();
        let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
        let read = Rows::read(&lake.batches(&format!("bronze/{name}")), names, true);
        let mut found: Vec<Change> = read
            .expect("a history")
            .as_slice()
            .iter()
            .map(|row| {
                let lead = row.lead.clone().expect("a history has leads");
                assert_eq!(lead.instance, Cell::text(instance.as_str()));
                assert!(lead.snapshot.is_null() && lead.chunk.is_null());
                let (Cell::Text(commit), Cell::Int(command), Cell::Text(sequence)) =
                    (lead.commit, lead.command, lead.sequence)
                else {
                    panic!("a lead of other types");
                };
                let Cell::Int(operation) = lead.operation else { panic!("no operation") };
                (commit, command, sequence, operation, row.cells.clone())
            })
            .collect();
        found.sort();
        assert_eq!(found.len(), wanted.len(), "{name}");
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found, wanted, "{name}");
        }
        total += found.len();
    }
    assert!(total > 200, "{total} rows prove little");
}

#[test]
fn the_lake_and_a_target_in_memory_hold_the_same() {
    let world = filled();
    let lake = Lake::new();
    let tables: Vec<_> = sample::TABLES.iter().map(|name| table(name)).collect();
    assert_eq!(lake.copy(&world, &tables).errors().count(), 0);
    assert_eq!(world.copy(&tables).errors().count(), 0);
    for name in sample::TABLES {
        let columns = world.target.columns(name);
        let names = || columns.iter().map(|column| column.name.as_str());
        let memory = Rows::read(&world.target.rows(name).expect("rows"), names(), true);
        let disk = Rows::read(&lake.batches(&format!("bronze/{name}")), names(), true);
        disk.expect("a history").must_equal(&memory.expect("a history")).expect(name);
        // The captured columns stand between the library's own, in the table's order.
        let fields = lake.fields(&format!("bronze/{name}"));
        let captured: Vec<_> =
            fields[6..fields.len() - 3].iter().map(|f| f.name.as_str()).collect();
        assert_eq!(captured, names().collect::<Vec<_>>());
    }
}

#[test]
fn each_version_that_adds_rows_moves_the_mark_and_holds_whole_commits() {
    let world = filled();
    let lake = Lake::new();
    assert_eq!(lake.copy(&world, &[table("work1")]).errors().count(), 0);
    let mut batches = 0;
    for version in lake.versions("bronze/work1") {
        let actions = actions(&version);
        let has = |kind: &str| actions.iter().any(|action| !action[kind].is_null());
        let sequence = actions
            .iter()
            .any(|action| action["txn"]["appId"].as_str() == Some("cdc/work1/sequence"));
        assert!(!has("add") || sequence, "rows without a mark in {}", version.display());
        batches += usize::from(has("add"));
    }
    assert!(batches > 3, "{batches} batches prove little");
    // A commit is in one batch only.
    let mut batch_of = BTreeMap::new();
    for row in lake.rows("bronze/work1") {
        let batch = row["_batch_id"].clone();
        let known = batch_of.entry(row["_start_lsn"].clone()).or_insert_with(|| batch.clone());
        assert_eq!(*known, batch, "a commit was split between two marks");
    }
}
