//! The tables as other engines find them: columns, comments, properties, statistics, facts.

use std::sync::Arc;

use cdc_conformance::{Cell, Feed, feed};
use cdc_core::{Column, Length, Origin, SqlType, TableName, TableSpec, Timestamp, port::Sink};
use object_store::{ObjectStore, memory::InMemory};

use crate::support::{
    WIDTH, block_on, column, commit, delta, mark, open, orders, place, read, rows, settings,
};

fn store() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

#[test]
fn the_tables_have_their_columns_in_order_with_comments() {
    block_on(async {
        let store = store();
        drop(open(&store, settings(), 1).attach(&orders()).await.unwrap());
        let bronze = delta(&store, &place("bronze/orders")).await;
        let snapshot = bronze.snapshot().unwrap();
        let schema = snapshot.schema();
        let names: Vec<_> = schema.fields().map(|field| field.name().as_str()).collect();
        assert_eq!(
            names,
            [
                "_capture_instance",
                "_start_lsn",
                "_seqval",
                "_operation",
                "_command_id",
                "_commit_ts",
                "id",
                "name",
                "_batch_id",
                "_snapshot",
                "_chunk"
            ]
        );
        assert!(schema.fields().all(|field| field.is_nullable()));
        for (dir, own) in [("bronze/orders", 9), ("facts", 29), ("control", 9)] {
            let table = delta(&store, &place(dir)).await;
            let snapshot = table.snapshot().unwrap();
            let commented = snapshot
                .schema()
                .fields()
                .filter(|field| field.metadata().contains_key("comment"))
                .count();
            assert_eq!(commented, own, "{dir}");
            let metadata = snapshot.metadata();
            assert!(metadata.description().is_some_and(|text| !text.is_empty()), "{dir}");
            assert_eq!(metadata.configuration()["cdc.schema_version"], "1");
        }
        let metadata = snapshot.metadata().configuration().clone();
        assert_eq!(metadata["cdc.table"], "orders");
        assert_eq!(metadata["cdc.source"], "dbo.orders");
        assert!(!metadata.contains_key("delta.columnMapping.mode"));
    });
}

#[test]
fn snapshot_and_chunk_rows_have_no_batch_number() {
    block_on(async {
        let store = store();
        let spec = orders();
        let mut table = open(&store, settings(), 1).attach(&spec).await.unwrap().table;
        let stamp = feed::stamp(WIDTH, 7).unwrap();
        let row = Feed::new(&spec.columns).insert(1, crate::support::order(1));
        table.stage(row.snapshot(stamp).unwrap()).await.unwrap();
        table.stage(row.chunk(stamp.position, stamp, 3).unwrap()).await.unwrap();
        table.stage(rows(&spec, 1)).await.unwrap();
        table.commit(commit(1)).await.unwrap();
        let bronze = place("bronze/orders");
        let batch = column(&store, &bronze, "_batch_id").await;
        assert_eq!(batch, [Cell::Null, Cell::Null, Cell::Int(1)]);
        let chunk = column(&store, &bronze, "_chunk").await;
        assert_eq!(chunk, [Cell::Null, Cell::Null, Cell::Int(3)]);
        let snapshot = column(&store, &bronze, "_snapshot").await;
        let text = Cell::text(stamp.position.to_string());
        assert_eq!(snapshot, [Cell::Null, text.clone(), text]);
        assert!(matches!(rows(&spec, 1).origin, Origin::Changes));
    });
}

#[test]
fn odd_column_names_are_mapped_and_read_back() {
    block_on(async {
        let store = store();
        let names = ["a b", "a_b", "x;y", "p(q)", "t=1", "{j}", "c,d"];
        let columns: Vec<_> = names
            .iter()
            .zip(1..)
            .map(|(name, id)| Column::new(*name, id, SqlType::Int, true))
            .collect();
        let spec = TableSpec::new("odd", TableName::new("dbo", "odd"), columns, Vec::new());
        let mut spec = spec.unwrap();
        let mut table = open(&store, settings(), 1).attach(&spec).await.unwrap().table;
        let cells: Vec<_> = (1..=7).map(Cell::Int).collect();
        let batch = Feed::new(&spec.columns).insert(1, cells).changes().unwrap();
        table.stage(batch).await.unwrap();
        table.commit(commit(1)).await.unwrap();
        spec.columns.push(Column::new("late one", 8, SqlType::Int, true));
        table.evolve(&spec.columns).await.unwrap();
        let cells: Vec<_> = (1..=8).map(Cell::Int).collect();
        let batch = Feed::new(&spec.columns).insert(2, cells).changes().unwrap();
        table.stage(batch).await.unwrap();
        table.commit(commit(2)).await.unwrap();
        for (name, value) in names.iter().zip(1..) {
            let cells = column(&store, &place("bronze/odd"), name).await;
            assert_eq!(cells, [Cell::Int(value), Cell::Int(value)], "{name}");
        }
        let late = column(&store, &place("bronze/odd"), "late one").await;
        assert_eq!(late, [Cell::Null, Cell::Int(8)]);
    });
}

#[test]
fn a_file_names_its_bounds_exactly() {
    block_on(async {
        let store = store();
        let columns = vec![
            Column::new("d", 1, SqlType::Decimal { precision: 38, scale: 2 }, true),
            Column::new("w", 2, SqlType::DateTime2 { scale: 7 }, true),
            Column::new("o", 3, SqlType::DateTimeOffset { scale: 7 }, true),
            Column::new("n", 4, SqlType::VarChar(Length::Max), true),
        ];
        let spec = TableSpec::new("s", TableName::new("dbo", "s"), columns, Vec::new()).unwrap();
        let mut table = open(&store, settings(), 1).attach(&spec).await.unwrap().table;
        let row = |d, t| vec![Cell::Decimal(d, 2), Cell::Wall(t), Cell::Instant(t), Cell::Null];
        let batch = Feed::new(&spec.columns)
            .insert(1, row(123_456_789_012_345_678, 1_001))
            .insert(1, row(5, 1_999));
        table.stage(batch.changes().unwrap()).await.unwrap();
        table.commit(commit(1)).await.unwrap();
        let path =
            object_store::path::Path::from("lake/bronze/s/_delta_log/00000000000000000001.json");
        let log = object_store::ObjectStoreExt::get(store.as_ref(), &path).await.unwrap();
        let log = log.bytes().await.unwrap();
        let add = log
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok())
            .find_map(|action| action.get("add").cloned())
            .expect("an added file");
        let stats = add["stats"].as_str().unwrap();
        for part in [
            "\"numRecords\":2",
            "\"d\":0.05",
            "\"d\":1234567890123470.00",
            "\"w\":\"1970-01-01T00:00:00.001\"",
            "\"w\":\"1970-01-01T00:00:00.002\"",
            "\"o\":\"1970-01-01T00:00:00.001Z\"",
            "\"o\":\"1970-01-01T00:00:00.002Z\"",
            "\"n\":2",
        ] {
            assert!(stats.contains(part), "{part} in {stats}");
        }
        assert_eq!(read(&store, &place("bronze/s")).await.len(), 1);
    });
}

#[test]
fn facts_tell_what_a_batch_was() {
    block_on(async {
        let store = store();
        let spec = orders();
        let mut table = open(&store, settings(), 1).attach(&spec).await.unwrap().table;
        let batch = rows(&spec, 1);
        let mut commit = commit(1);
        commit.facts.counts.add(mark(1).epoch(), &batch.records).unwrap();
        commit.facts.read_bytes = 1_500_000;
        commit.facts.read_seconds = 0.123_456;
        commit.facts.capture_lag_seconds = Some(2.0);
        let end = mark(1).commit_time.unwrap();
        commit.facts.retention_watermark = Some(end.plus_micros(-9_000_000_000));
        commit.facts.source_commit_time = Some(end.plus_micros(1_500_000));
        commit.facts.warnings = vec!["unknown option".into()];
        table.stage(batch).await.unwrap();
        table.commit(commit).await.unwrap();
        let facts = place("facts");
        for (name, cell) in [
            ("app_id", Cell::text("cdc/orders")),
            ("batch_id", Cell::Int(1)),
            ("rows", Cell::Int(1)),
            ("inserts", Cell::Int(1)),
            ("updates", Cell::Int(0)),
            ("read_mb", Cell::float(1.5)),
            ("read_seconds", Cell::float(0.123)),
            ("retention_headroom_hours", Cell::float(2.5)),
            ("capture_lag_seconds", Cell::float(2.0)),
            ("ingestion_lag_seconds", Cell::float(1.5)),
            ("event", Cell::Null),
            ("end_lsn", Cell::text(mark(1).end.to_string())),
            ("end_commit_ts", Cell::Wall(end.as_micros())),
            ("detail", Cell::text("{\"warnings\":[\"unknown option\"]}")),
            ("target", Cell::text("orders")),
            ("source_rtt_ms", Cell::Null),
        ] {
            assert_eq!(column(&store, &facts, name).await, [cell], "{name}");
        }
        let written = column(&store, &facts, "written_at").await;
        assert!(matches!(written[0], Cell::Wall(at) if Timestamp::from_micros(at) > end));
    });
}

#[test]
fn a_new_column_and_a_checkpoint_leave_comments_and_properties_alone() {
    block_on(async {
        let store = store();
        let mut spec = orders();
        let mut config = settings();
        config.checkpoint_interval = 1;
        let mut table = open(&store, config, 1).attach(&spec).await.unwrap().table;
        let before = delta(&store, &place("bronze/orders")).await;
        spec.columns.push(Column::new("late", 3, SqlType::Int, true));
        table.evolve(&spec.columns).await.unwrap();
        table.stage(rows(&spec, 1)).await.unwrap();
        table.commit(commit(1)).await.unwrap();
        let after = delta(&store, &place("bronze/orders")).await;
        let metadata = |table: &deltalake::DeltaTable| {
            let metadata = table.snapshot().unwrap().metadata();
            let text = metadata.description().map(ToOwned::to_owned);
            (metadata.id().to_owned(), text, metadata.configuration().clone())
        };
        assert_eq!(metadata(&before), metadata(&after));
        assert!(metadata(&after).1.is_some());
        let schema = after.snapshot().unwrap().schema();
        let last = schema.fields().last().unwrap();
        assert_eq!(last.name(), "late", "a late column stands at the end");
        let commented = schema.fields().filter(|field| field.metadata().contains_key("comment"));
        assert_eq!(commented.count(), 9);
    });
}

#[test]
fn a_root_with_blanks_and_a_table_with_odd_letters_are_plain_directories() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("my lake ü");
    let config = cdc_delta::DeltaConfig::new(root.display().to_string());
    let clock = Arc::new(crate::support::Ticking::default());
    let numbers = Arc::new(crate::support::Numbers::new(1));
    let sink = cdc_delta::DeltaSink::new(config, clock, numbers).unwrap();
    let mut spec = orders();
    spec.name = "größe/1".into();
    block_on(async {
        for sequence in 1..=2 {
            let attached = sink.attach(&spec).await.unwrap();
            assert_eq!(attached.state.mark.map_or(0, |mark| mark.sequence), sequence - 1);
            let mut table = attached.table;
            table.stage(rows(&spec, sequence)).await.unwrap();
            table.commit(commit(sequence)).await.unwrap();
        }
        let files: Arc<dyn ObjectStore> = Arc::new(object_store::local::LocalFileSystem::new());
        let bronze = root.join("bronze").join("gr@C3@B6@C3@9Fe@2F1");
        assert!(bronze.join("_delta_log").is_dir(), "{}", sink.bronze_location(&spec.name));
        let location = url::Url::from_directory_path(bronze).unwrap();
        let ids = column(&files, &location, "id").await;
        assert_eq!(ids, crate::support::ints(1..=2));
    });
}
