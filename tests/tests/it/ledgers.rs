//! Facts and control as their readers know them: columns, and what a run writes into them.

use std::time::Duration;

use cdc_conformance::Cell;
use cdc_core::{Granularity, Lsn, SqlType, TableName, Timestamp};
use cdc_fake::{ColumnDefinition, CommitInfo, EnableOptions, TableDefinition, Value};
use cdc_tests::world::{World, table};

use crate::lake::{Lake, LakeRow};

/// The columns of facts: name and Delta type.
const FACTS: [(&str, &str); 29] = [
    ("app_id", "string"),
    ("batch_id", "long"),
    ("rows", "long"),
    ("min_lsn", "string"),
    ("max_lsn", "string"),
    ("min_commit_ts", "timestamp_ntz"),
    ("max_commit_ts", "timestamp_ntz"),
    ("deletes", "long"),
    ("inserts", "long"),
    ("updates", "long"),
    ("started_at", "timestamp_ntz"),
    ("duration_ms", "long"),
    ("source_rtt_ms", "double"),
    ("read_seconds", "double"),
    ("read_mb", "double"),
    ("network_wait_ms", "long"),
    ("retention_watermark_ts", "timestamp_ntz"),
    ("retention_headroom_hours", "double"),
    ("event", "string"),
    ("lost_from_ts", "timestamp_ntz"),
    ("lost_to_ts", "timestamp_ntz"),
    ("source_max_commit_ts", "timestamp_ntz"),
    ("capture_lag_seconds", "double"),
    ("ingestion_lag_seconds", "double"),
    ("end_lsn", "string"),
    ("end_commit_ts", "timestamp_ntz"),
    ("detail", "string"),
    ("target", "string"),
    ("written_at", "timestamp_ntz"),
];

/// The columns of control: name and Delta type.
const CONTROL: [(&str, &str); 9] = [
    ("table_name", "string"),
    ("finalized_until", "timestamp_ntz"),
    ("end_lsn", "string"),
    ("end_commit_ts", "timestamp_ntz"),
    ("updated_at", "timestamp_ntz"),
    ("applied_lsn", "string"),
    ("snapshot_lsn", "string"),
    ("open_snapshot_lsn", "string"),
    ("snapshot_wave", "integer"),
];

fn name() -> TableName {
    TableName::new("dbo", "t")
}

/// A world with one captured table, capture by hand.
fn world() -> World {
    let world = World::new().by_hand();
    let definition = TableDefinition::new("t")
        .column("id", SqlType::Int)
        .nullable("v", SqlType::Int)
        .primary_key(&["id"]);
    world.database.create_table(definition).expect("new");
    world.database.enable_table(&name(), EnableOptions::default()).expect("new");
    world
}

fn insert(world: &World, row: Vec<Value>) -> CommitInfo {
    world.database.transact(|open| open.insert(&name(), row)).expect("a new row")
}

fn copy(world: &World, lake: &Lake) {
    world.database.capture();
    let report = lake.copy(world, &[table("t")]);
    let errors: Vec<_> = report.errors().map(cdc_core::Error::report).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// Facts in order: by batch, the batch before its events.
fn facts(lake: &Lake) -> Vec<LakeRow> {
    let mut rows = lake.rows("facts");
    rows.sort_by_key(|row| (row["batch_id"].clone(), row["event"].clone(), row["min_lsn"].clone()));
    rows
}

fn lsn(at: Lsn) -> Cell {
    Cell::text(at.to_string())
}

/// A commit's time on the server's clock: to its tick, in whole microseconds.
fn near(cell: &Cell, time: Timestamp) -> bool {
    matches!(cell, Cell::Wall(at) if (at - time.as_micros()).abs() < 3_334)
}

#[track_caller]
fn holds(row: &LakeRow, expected: &[(&str, Cell)]) {
    for (column, cell) in expected {
        assert_eq!(row[*column], *cell, "{column} of {row:#?}");
    }
}

#[test]
fn facts_and_control_have_their_columns_by_name_order_and_type() {
    let (world, lake) = (world(), Lake::new());
    insert(&world, vec![Value::Int(1), Value::Null]);
    copy(&world, &lake);
    for (dir, expected) in [("facts", &FACTS[..]), ("control", &CONTROL[..])] {
        let fields = lake.fields(dir);
        let found: Vec<_> =
            fields.iter().map(|field| (field.name.as_str(), field.kind.as_str())).collect();
        assert_eq!(found, expected, "{dir}");
    }
}

#[test]
fn a_batch_has_one_row_of_facts_that_tells_what_was_copied() {
    let (world, lake) = (world(), Lake::new());
    let first = insert(&world, vec![Value::Int(1), Value::Null]);
    insert(&world, vec![Value::Int(2), Value::Null]);
    world.clock.advance(Duration::from_secs(60));
    let change = world.database.transact(|open| {
        open.update(&name(), &[Value::Int(1)], &[("v", Value::Int(7))])?;
        open.delete(&name(), &[Value::Int(2)]).map(|_| ())
    });
    let last = change.expect("both rows are there");
    world.database.capture();
    world.clock.advance(Duration::from_secs(40));
    assert!(world.database.write_idle_entry().is_some(), "nothing is left to capture");
    copy(&world, &lake);
    let high = world.database.max_lsn().expect("captured");
    let rows = facts(&lake);
    let [begin, batch] = rows.as_slice() else { panic!("two batches: {rows:#?}") };
    // The first mark has no rows: it is where the copy begins.
    holds(begin, &[("batch_id", Cell::Int(1)), ("rows", Cell::Int(0)), ("event", Cell::Null)]);
    holds(begin, &[("min_lsn", Cell::Null), ("max_commit_ts", Cell::Null)]);
    holds(
        batch,
        &[
            ("app_id", Cell::text("cdc/t")),
            ("batch_id", Cell::Int(2)),
            // Two inserts, both images of an update, a delete.
            ("rows", Cell::Int(5)),
            ("deletes", Cell::Int(1)),
            ("inserts", Cell::Int(2)),
            ("updates", Cell::Int(1)),
            ("min_lsn", lsn(first.lsn)),
            ("max_lsn", lsn(last.lsn)),
            ("end_lsn", lsn(high)),
            ("event", Cell::Null),
            ("detail", Cell::Null),
            ("lost_from_ts", Cell::Null),
            ("lost_to_ts", Cell::Null),
            ("target", Cell::text("t")),
            ("source_rtt_ms", Cell::Null),
            ("network_wait_ms", Cell::Null),
            // The end is the newest entry of the source.
            ("ingestion_lag_seconds", Cell::float(0.0)),
        ],
    );
    assert!(near(&batch["min_commit_ts"], first.time), "{batch:#?}");
    assert!(near(&batch["max_commit_ts"], last.time), "{batch:#?}");
    assert!(near(&batch["end_commit_ts"], world.clock.time()), "{batch:#?}");
    assert_eq!(batch["source_max_commit_ts"], batch["end_commit_ts"]);
    assert!(matches!(batch["read_mb"], Cell::Float(bits) if f64::from_bits(bits) > 0.0));
    // The copy ran at the moment of the newest entry.
    assert!(
        matches!(batch["capture_lag_seconds"], Cell::Float(bits)
        if f64::from_bits(bits) < 0.01),
        "{batch:#?}"
    );
    let headroom = Cell::float(0.03);
    assert_eq!(batch["retention_headroom_hours"], headroom, "100 s: {batch:#?}");
    // What is in the rows themselves agrees.
    let bronze = lake.rows("bronze/t");
    assert_eq!(bronze.len(), 5);
    assert!(bronze.iter().all(|row| row["_batch_id"] == Cell::Int(2)));
}

#[test]
fn a_schema_change_and_a_switch_are_rows_of_the_batch_they_lie_in() {
    let (world, lake) = (world(), Lake::new());
    insert(&world, vec![Value::Int(1), Value::Null]);
    copy(&world, &lake);
    world.clock.advance(Duration::from_secs(60));
    let added = ColumnDefinition::nullable("w", SqlType::Int);
    world.database.add_column(&name(), added, None).expect("a new column");
    world.clock.advance(Duration::from_secs(60));
    let second = EnableOptions::named("dbo_t_2").columns(&["id", "w"]);
    world.database.enable_table(&name(), second).expect("a second instance");
    world.clock.advance(Duration::from_secs(60));
    let row = vec![Value::Int(2), Value::Int(5), Value::Int(6)];
    let inserted = insert(&world, row);
    copy(&world, &lake);
    let rows = facts(&lake);
    let newest = rows.iter().map(|row| row["batch_id"].clone()).max().expect("rows");
    let rows: Vec<_> = rows.into_iter().filter(|row| row["batch_id"] == newest).collect();
    let [batch, switched, changed] = rows.as_slice() else { panic!("a batch, two events") };
    holds(batch, &[("event", Cell::Null), ("rows", Cell::Int(1)), ("min_lsn", lsn(inserted.lsn))]);
    let of_events = [
        ("app_id", Cell::text("cdc/t")),
        ("target", Cell::text("t")),
        ("rows", Cell::Int(0)),
        ("deletes", Cell::Int(0)),
        ("inserts", Cell::Int(0)),
        ("updates", Cell::Int(0)),
        ("lost_from_ts", Cell::Null),
        ("lost_to_ts", Cell::Null),
        ("retention_watermark_ts", Cell::Null),
        ("capture_lag_seconds", Cell::Null),
    ];
    let old = cdc_core::InstanceName::new("dbo_t");
    let ddl = world.database.ddl_history(&old).expect("an instance");
    let [ddl] = ddl.as_slice() else { panic!("one schema change") };
    holds(changed, &of_events);
    holds(
        changed,
        &[("event", Cell::text("schema_change")), ("detail", Cell::text(&ddl.statement))],
    );
    let start = world
        .database
        .instance(&cdc_core::InstanceName::new("dbo_t_2"))
        .expect("an instance")
        .start;
    holds(switched, &of_events);
    holds(
        switched,
        &[
            ("event", Cell::text("capture_instance_switched")),
            ("detail", Cell::text("dbo_t -> dbo_t_2; no longer captured: v")),
        ],
    );
    for (row, at) in [(changed, ddl.lsn), (switched, start)] {
        holds(row, &[("min_lsn", lsn(at)), ("max_lsn", lsn(at)), ("end_lsn", lsn(at))]);
        assert_eq!(row["min_commit_ts"], row["max_commit_ts"]);
        assert_eq!(row["min_commit_ts"], row["end_commit_ts"]);
    }
    // The new column is there, at the end, and older rows read NULL.
    let bronze = lake.rows("bronze/t");
    let values: Vec<_> =
        bronze.iter().map(|row| [&row["id"], &row["v"], &row["w"]].map(Clone::clone)).collect();
    assert_eq!(lake.fields("bronze/t").last().map(|field| field.name.clone()), Some("w".into()));
    assert!(values.contains(&[Cell::Int(1), Cell::Null, Cell::Null]), "{values:?}");
    assert!(values.contains(&[Cell::Int(2), Cell::Null, Cell::Int(6)]), "{values:?}");
}

#[test]
fn control_has_one_row_a_table_that_never_runs_ahead_of_its_mark() {
    let (mut world, lake) = (world(), Lake::new());
    world.settings.granularity = Granularity::Hour;
    for id in 0..4 {
        insert(&world, vec![Value::Int(id), Value::Null]);
        world.database.capture();
        world.clock.advance(Duration::from_secs(3_000));
        world.database.write_idle_entry();
        copy(&world, &lake);
        let rows = lake.rows("control");
        let [row] = rows.as_slice() else { panic!("one row: {rows:#?}") };
        let high = world.database.max_lsn().expect("captured");
        holds(
            row,
            &[
                ("table_name", Cell::text("t")),
                ("applied_lsn", Cell::Null),
                ("snapshot_lsn", Cell::Null),
                ("open_snapshot_lsn", Cell::Null),
                ("snapshot_wave", Cell::Null),
            ],
        );
        let Cell::Wall(end) = row["end_commit_ts"] else { panic!("a time") };
        // Hours in UTC: New York is whole hours away.
        let until = end - end.rem_euclid(3_600_000_000);
        assert_eq!(row["finalized_until"], Cell::Wall(until));
        let Cell::Text(position) = &row["end_lsn"] else { panic!("a position") };
        assert!(*position <= high.to_string());
    }
}
