//! Other writers of the same tables: newer runners, maintenance, other processes.

use std::sync::Arc;

use arrow_array::RecordBatch;
use cdc_core::{Committed, ErrorKind, port::Sink};
use deltalake::writer::{DeltaWriter, RecordBatchWriter};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory};

use crate::{
    store::Watched,
    support::{
        block_on, column, commit, delta, ints, mark, open, orders, place, read, rows, settings,
    },
};

fn store() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

/// Appends what is there once more, as a writer that knows nothing of us.
async fn foreign_commit(store: &Arc<dyn ObjectStore>, location: &url::Url) {
    let mut table = delta(store, location).await;
    let mut writer = RecordBatchWriter::for_table(&table).unwrap();
    let schema = writer.arrow_schema();
    writer.write(RecordBatch::new_empty(schema)).await.unwrap();
    // A commit without rows, such as maintenance makes.
    deltalake::kernel::transaction::CommitBuilder::default()
        .with_max_retries(0)
        .build(
            Some(table.snapshot().unwrap()),
            table.log_store(),
            deltalake::protocol::DeltaOperation::VacuumStart {
                retention_check_enabled: false,
                specified_retention_millis: None,
                default_retention_millis: 0,
            },
        )
        .await
        .unwrap();
    table.update_state().await.unwrap();
}

#[test]
fn a_commit_of_another_writer_in_between_is_tolerated() {
    block_on(async {
        let store = store();
        let sink = open(&store, settings(), 1);
        let spec = orders();
        let mut table = sink.attach(&spec).await.unwrap().table;
        for sequence in 1..=3 {
            table.stage(rows(&spec, sequence)).await.unwrap();
            foreign_commit(&store, &place("bronze/orders")).await;
            foreign_commit(&store, &place("facts")).await;
            let committed = table.commit(commit(sequence)).await.unwrap();
            assert_eq!(committed, Committed::Now);
        }
        assert_eq!(column(&store, &place("bronze/orders"), "id").await, ints(1..=3));
        assert_eq!(column(&store, &place("facts"), "batch_id").await, ints(1..=3));
    });
}

#[test]
fn an_older_runner_is_fenced_and_writes_nothing() {
    block_on(async {
        let store = store();
        let spec = orders();
        let (first, second) = (open(&store, settings(), 1), open(&store, settings(), 2));
        let mut older = first.attach(&spec).await.unwrap().table;
        older.stage(rows(&spec, 1)).await.unwrap();
        assert!(!first.is_superseded(&spec).await.unwrap());
        let mut newer = second.attach(&spec).await.unwrap().table;
        assert!(first.is_superseded(&spec).await.unwrap());
        assert!(!second.is_superseded(&spec).await.unwrap());
        let error = older.commit(commit(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced, "{}", error.report());
        assert!(read(&store, &place("bronze/orders")).await.is_empty());
        newer.stage(rows(&spec, 1)).await.unwrap();
        newer.commit(commit(1)).await.unwrap();
        assert!(first.is_superseded(&spec).await.unwrap(), "told by every commit");
        assert_eq!(column(&store, &place("bronze/orders"), "id").await, ints([1]));
    });
}

#[test]
fn the_mark_survives_checkpoints_and_the_removal_of_the_log() {
    use futures_util::TryStreamExt;
    block_on(async {
        let store = store();
        let mut config = settings();
        config.checkpoint_interval = 5;
        let spec = orders();
        let sink = open(&store, config.clone(), 1);
        let mut table = sink.attach(&spec).await.unwrap().table;
        for sequence in 1..=23 {
            table.stage(rows(&spec, sequence)).await.unwrap();
            table.commit(commit(sequence)).await.unwrap();
        }
        // Everything below the last checkpoint goes, as cleanup by retention takes it.
        let log: Vec<_> = store.list(None).try_collect().await.unwrap();
        let mut names: Vec<_> = log.into_iter().map(|meta| meta.location).collect();
        names.retain(|name| name.as_ref().starts_with("lake/bronze/orders/_delta_log/0"));
        let last = names
            .iter()
            .filter(|name| name.as_ref().contains("checkpoint"))
            .map(|name| name.filename().unwrap()[..20].to_owned())
            .max()
            .expect("a checkpoint");
        for name in names {
            if name.filename().unwrap()[..20] < *last {
                store.delete(&name).await.unwrap();
            }
        }
        let attached = open(&store, config, 2).attach(&spec).await.unwrap();
        assert_eq!(attached.state.mark, Some(mark(23)));
        let mut table = attached.table;
        table.stage(rows(&spec, 24)).await.unwrap();
        table.commit(commit(24)).await.unwrap();
        assert_eq!(column(&store, &place("bronze/orders"), "id").await, ints(1..=24));
    });
}

#[test]
fn tables_of_one_root_share_facts_and_control() {
    block_on(async {
        let store = store();
        let mut tables = Vec::new();
        for n in 0..4u64 {
            let mut spec = orders();
            spec.name = format!("orders_{n}");
            spec.source.name = format!("orders_{n}");
            // Half of them in another process.
            let sink = open(&store, settings(), n);
            tables.push((spec.clone(), sink.attach(&spec).await.unwrap().table));
        }
        for sequence in 1..=3 {
            for (spec, table) in &mut tables {
                table.stage(rows(spec, sequence)).await.unwrap();
                table.commit(commit(sequence)).await.unwrap();
                let verdict = cdc_core::Verdict {
                    finalized_until: mark(sequence).commit_time,
                    end: cdc_core::Stamp {
                        position: mark(sequence).end,
                        commit_time: mark(sequence).commit_time,
                    },
                };
                assert_eq!(table.publish(verdict).await.unwrap(), verdict);
            }
        }
        let facts = column(&store, &place("facts"), "target").await;
        assert_eq!(facts.len(), 12);
        let names = column(&store, &place("control"), "table_name").await;
        let expected: Vec<_> =
            (0..4).map(|n| cdc_conformance::Cell::text(format!("orders_{n}"))).collect();
        assert_eq!(names, expected);
    });
}

/// Sets a property of a table as another writer would.
async fn set_property(store: &Arc<dyn ObjectStore>, dir: &str, key: &str, value: &str) {
    let log = object_store::path::Path::from(format!("lake/{dir}/_delta_log"));
    let birth = store.get(&log.clone().join(format!("{:020}.json", 0))).await.unwrap();
    let birth = String::from_utf8(birth.bytes().await.unwrap().to_vec()).unwrap();
    let mut action: serde_json::Value =
        serde_json::from_str(birth.lines().find(|line| line.contains("metaData")).unwrap())
            .unwrap();
    action["metaData"]["configuration"][key] = value.into();
    let next = delta(store, &place(dir)).await.version().unwrap() + 1;
    store.put(&log.join(format!("{next:020}.json")), action.to_string().into()).await.unwrap();
}

#[test]
fn a_shared_table_that_may_no_longer_be_written_is_not() {
    for (key, value) in [
        ("delta.setTransactionRetentionDuration", "interval 1 hour"),
        ("cdc.min_version", "99"),
        ("cdc.kind", "other"),
    ] {
        block_on(async {
            let store = store();
            let spec = orders();
            let mut table = open(&store, settings(), 1).attach(&spec).await.unwrap().table;
            table.stage(rows(&spec, 1)).await.unwrap();
            table.commit(commit(1)).await.unwrap();
            set_property(&store, "control", key, value).await;
            let end = cdc_core::Stamp { position: mark(1).end, commit_time: None };
            let verdict = cdc_core::Verdict { finalized_until: None, end };
            let error = table.publish(verdict).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{key}: {}", error.report());
            set_property(&store, "facts", key, value).await;
            table.stage(rows(&spec, 2)).await.unwrap();
            let error = table.commit(commit(2)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config, "{key}: {}", error.report());
            assert_eq!(column(&store, &place("facts"), "batch_id").await, ints([1]));
        });
    }
}

#[test]
fn files_are_kept_while_nobody_sees_whose_commit_took_the_version() {
    let mut config = settings();
    config.commit_attempts_max = 3;
    for dir in ["bronze/orders", "facts", "control"] {
        block_on(async {
            let watched = Watched::default();
            let store = watched.dynamic();
            let spec = orders();
            let mut table = open(&store, config.clone(), 1).attach(&spec).await.unwrap().table;
            table.stage(rows(&spec, 1)).await.unwrap();
            table.commit(commit(1)).await.unwrap();
            let end = cdc_core::Stamp { position: mark(1).end, commit_time: None };
            let verdict = cdc_core::Verdict { finalized_until: None, end };
            if dir != "control" {
                table.publish(verdict).await.unwrap();
            }
            table.stage(rows(&spec, 2)).await.unwrap();
            watched.hide_twin_in(dir);
            let failed = match dir {
                "control" => table.publish(verdict).await.map(drop),
                _ => table.commit(commit(2)).await.map(drop),
            };
            let error = failed.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{dir}: {}", error.report());
            watched.reveal();
            // Reads every file that the log names.
            for table in ["bronze/orders", "facts", "control"] {
                assert!(!read(&store, &place(table)).await.is_empty(), "{dir}: {table}");
            }
            let newer = open(&store, config.clone(), 2).inspect(&spec).await.unwrap().unwrap();
            let reached = if dir == "control" { 1 } else { 2 };
            assert_eq!(newer.mark, Some(mark(reached)), "{dir}");
            assert!(newer.verdict.is_some(), "{dir}");
        });
    }
}
