//! What a runner may believe of its own commits after a cleanup of the log.

use std::sync::Arc;

use cdc_core::{Committed, ErrorKind, port::Sink};
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory};
use url::Url;

use crate::support::{
    block_on, column, commit, delta, ints, mark, open, orders, place, rows, settings,
};

/// Commits of another writer, its checkpoint, and the cleanup of everything below.
async fn maintain(store: &Arc<dyn ObjectStore>, dir: &str) {
    for _ in 0..3 {
        foreign_commit(store, &place(dir)).await;
    }
    deltalake::checkpoints::create_checkpoint(&delta(store, &place(dir)).await, None)
        .await
        .unwrap();
    let newest = delta(store, &place(dir)).await.version().unwrap();
    let log = object_store::path::Path::from(format!("lake/{dir}/_delta_log"));
    let files: Vec<_> = store.list(Some(&log)).try_collect().await.unwrap();
    for file in files {
        let name = file.location.filename().unwrap();
        let version = name.get(..20).and_then(|digits| digits.parse::<u64>().ok());
        if version.is_some_and(|version| version < newest) {
            store.delete(&file.location).await.unwrap();
        }
    }
}

/// A commit without rows, such as maintenance makes.
async fn foreign_commit(store: &Arc<dyn ObjectStore>, location: &Url) {
    let table = delta(store, location).await;
    deltalake::kernel::transaction::CommitBuilder::default()
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
}

#[test]
fn a_commit_after_a_cleanup_of_the_log_is_above_the_checkpoint() {
    block_on(async {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let spec = orders();
        let mut table = open(&store, settings(), 1).attach(&spec).await.unwrap().table;
        for sequence in 1..=3 {
            maintain(&store, "bronze/orders").await;
            maintain(&store, "facts").await;
            table.stage(rows(&spec, sequence)).await.unwrap();
            assert_eq!(table.commit(commit(sequence)).await.unwrap(), Committed::Now);
            let ids = column(&store, &place("bronze/orders"), "id").await;
            assert_eq!(ids, ints(1..=sequence as i64), "what is committed is seen");
        }
        assert_eq!(column(&store, &place("facts"), "batch_id").await, ints(1..=3));
        let state = open(&store, settings(), 2).attach(&spec).await.unwrap().state;
        assert_eq!(state.mark, Some(mark(3)));
    });
}

#[test]
fn a_verdict_after_a_cleanup_of_the_log_is_above_the_checkpoint() {
    block_on(async {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let spec = orders();
        let mut table = open(&store, settings(), 1).attach(&spec).await.unwrap().table;
        for sequence in 1..=2 {
            table.stage(rows(&spec, sequence)).await.unwrap();
            table.commit(commit(sequence)).await.unwrap();
            for dir in ["bronze/orders", "control"] {
                maintain(&store, dir).await;
            }
            let time = mark(sequence).commit_time;
            let end = cdc_core::Stamp { position: mark(sequence).end, commit_time: time };
            let verdict = cdc_core::Verdict { finalized_until: time, end };
            assert_eq!(table.publish(verdict).await.unwrap(), verdict);
            let state = open(&store, settings(), 2).inspect(&spec).await.unwrap().unwrap();
            assert_eq!(state.verdict, Some(verdict), "what is published is seen");
        }
    });
}

#[test]
fn an_older_runner_is_fenced_though_a_cleanup_took_the_fence_from_the_log() {
    block_on(async {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let spec = orders();
        let mut older = open(&store, settings(), 1).attach(&spec).await.unwrap().table;
        older.stage(rows(&spec, 1)).await.unwrap();
        let mut newer = open(&store, settings(), 2).attach(&spec).await.unwrap().table;
        maintain(&store, "bronze/orders").await;
        let error = older.commit(commit(1)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Fenced, "{}", error.report());
        newer.stage(rows(&spec, 1)).await.unwrap();
        assert_eq!(newer.commit(commit(1)).await.unwrap(), Committed::Now);
        assert_eq!(column(&store, &place("bronze/orders"), "id").await, ints([1]));
    });
}
