//! Other writers of the same tables: newer runners, maintenance, other processes.

use std::sync::Arc;

use arrow_array::RecordBatch;
use cdc_core::{Committed, ErrorKind, port::Sink};
use deltalake::writer::{DeltaWriter, RecordBatchWriter};
use object_store::{ObjectStore, memory::InMemory};

use crate::support::{
    block_on, column, commit, delta, ints, mark, open, orders, place, read, rows, settings,
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
    use object_store::ObjectStoreExt;
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
