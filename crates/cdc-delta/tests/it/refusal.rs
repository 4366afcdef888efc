//! Targets that are not ours, not writable, or not what they were.

use std::sync::Arc;

use cdc_core::{Column, Error, ErrorKind, SqlType, TableName, port::Sink};
use cdc_delta::{DeltaConfig, DeltaSink};
use deltalake::{
    DeltaTable,
    kernel::{DataType, StructField},
};
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};

use crate::support::{
    Numbers, Ticking, block_on, commit, delta, open, orders, place, rows, settings,
};

async fn objects(store: &Arc<dyn ObjectStore>) -> Vec<String> {
    let all: Vec<_> = store.list(None).try_collect().await.unwrap();
    let mut names: Vec<_> = all.into_iter().map(|meta| meta.location.to_string()).collect();
    names.sort();
    names
}

/// Attaches and expects a refusal that writes nothing.
async fn refused(store: &Arc<dyn ObjectStore>, kind: ErrorKind) -> Error {
    let before = objects(store).await;
    let sink = open(store, settings(), 77);
    let Err(error) = sink.attach(&orders()).await else {
        panic!("attached");
    };
    assert_eq!(error.kind(), kind, "{}", error.report());
    assert_eq!(objects(store).await, before, "nothing is written");
    error
}

fn store() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

/// A root with one batch of orders and its verdict-free facts.
async fn filled() -> Arc<dyn ObjectStore> {
    let store = store();
    let sink = open(&store, settings(), 1);
    let mut table = sink.attach(&orders()).await.unwrap().table;
    for sequence in 1..=2 {
        table.stage(rows(&orders(), sequence)).await.unwrap();
        table.commit(commit(sequence)).await.unwrap();
    }
    store
}

async fn foreign_table(store: &Arc<dyn ObjectStore>, location: &url::Url) -> DeltaTable {
    let log = deltalake::logstore::default_logstore(
        Arc::new(object_store::prefix::PrefixStore::new(
            Arc::clone(store),
            Path::from_url_path(location.path()).unwrap(),
        )),
        Arc::clone(store),
        location,
        &Default::default(),
    );
    DeltaTable::new(log)
        .create()
        .with_columns([StructField::nullable("id", DataType::LONG)])
        .await
        .unwrap()
}

#[test]
fn somebody_elses_delta_table_is_refused() {
    block_on(async {
        for dir in ["bronze/orders", "facts", "control"] {
            let store = store();
            foreign_table(&store, &place(dir)).await;
            let error = refused(&store, ErrorKind::Config).await;
            assert!(error.context("path").unwrap().contains(dir), "{error}");
        }
    });
}

#[test]
fn a_directory_with_other_files_is_refused() {
    block_on(async {
        let store = store();
        let file = Path::from("lake/bronze/orders/readme.txt");
        store.put(&file, "hello".into()).await.unwrap();
        let error = refused(&store, ErrorKind::Config).await;
        assert!(error.context("path").unwrap().contains("bronze/orders"));
    });
}

#[test]
fn the_copy_of_another_source_table_is_refused() {
    block_on(async {
        let store = filled().await;
        let before = objects(&store).await;
        let mut spec = orders();
        spec.source = TableName::new("sales", "orders");
        let error = open(&store, settings(), 2).attach(&spec).await.err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(error.context("found"), Some("dbo.orders"));
        assert_eq!(objects(&store).await, before);
    });
}

#[test]
fn a_rewound_target_is_refused() {
    block_on(async {
        let store = filled().await;
        // Take the second batch out of bronze, as restoring an older copy does.
        let newest = delta(&store, &place("bronze/orders")).await.version().unwrap();
        let file = format!("lake/bronze/orders/_delta_log/{newest:020}.json");
        store.delete(&Path::from(file)).await.unwrap();
        let error = refused(&store, ErrorKind::InvalidData).await;
        assert_eq!(error.context("target_sequence"), Some("1"));
        assert_eq!(error.context("recorded_sequence"), Some("2"));
        assert!(error.advice().contains("newest state"));
    });
}

#[test]
fn a_deleted_target_is_refused() {
    block_on(async {
        let store = filled().await;
        for name in objects(&store).await {
            if name.starts_with("lake/bronze") {
                store.delete(&Path::from(name)).await.unwrap();
            }
        }
        let error = refused(&store, ErrorKind::InvalidData).await;
        assert!(error.message().contains("deleted"), "{error}");
    });
}

#[test]
fn a_root_below_a_file_is_refused_by_path() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let root = file.join("lake").display().to_string();
    let sink = DeltaSink::new(
        DeltaConfig::new(root.clone()),
        Arc::new(Ticking::default()),
        Arc::new(Numbers::new(1)),
    )
    .unwrap();
    let error = block_on(sink.attach(&orders())).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Config, "{}", error.report());
    assert!(error.context("path").unwrap().contains(&root), "{error}");
}

#[test]
fn a_setting_outside_its_range_is_refused_by_name() {
    let mut config = settings();
    config.checkpoint_interval = 0;
    let error = DeltaSink::new(config, Arc::new(Ticking::default()), Arc::new(Numbers::new(1)));
    assert_eq!(error.unwrap_err().context("setting"), Some("checkpoint_interval"));
    let mut config = settings();
    config.facts_dir = "bronze".into();
    let error = DeltaSink::new(config, Arc::new(Ticking::default()), Arc::new(Numbers::new(1)));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Config);
}

#[test]
fn a_late_column_that_needs_mapping_is_refused_with_the_statement() {
    block_on(async {
        let store = store();
        let sink = open(&store, settings(), 1);
        let mut table = sink.attach(&orders()).await.unwrap().table;
        let before = objects(&store).await;
        let odd = Column::new("unit price", 9, SqlType::Money, true);
        let error = table.evolve(&[odd]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SchemaChanged);
        assert_eq!(error.context("column"), Some("unit price"));
        assert!(error.advice().starts_with("ALTER TABLE delta.`"), "{}", error.advice());
        assert!(error.advice().contains("'delta.columnMapping.mode' = 'name'"));
        assert_eq!(objects(&store).await, before);
    });
}

/// A facts table as an older release would have left it: some columns, no version.
async fn old_facts(store: &Arc<dyn ObjectStore>, properties: &[(&str, &str)]) {
    let location = place("facts");
    let prefix = Path::from_url_path(location.path()).unwrap();
    let inside = object_store::prefix::PrefixStore::new(Arc::clone(store), prefix);
    let log = deltalake::logstore::default_logstore(
        Arc::new(inside),
        Arc::clone(store),
        &location,
        &Default::default(),
    );
    DeltaTable::new(log)
        .create()
        .with_columns([
            StructField::nullable("batch_id", DataType::LONG),
            StructField::nullable("started_at", DataType::TIMESTAMP_NTZ),
        ])
        .with_configuration(
            properties.iter().map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned()))),
        )
        .with_raise_if_key_not_exists(false)
        .await
        .unwrap();
}

#[test]
fn a_table_of_an_older_release_moves_forward_once() {
    block_on(async {
        let store = store();
        old_facts(&store, &[("cdc.kind", "facts")]).await;
        let mut table = open(&store, settings(), 1).attach(&orders()).await.unwrap().table;
        let facts = delta(&store, &place("facts")).await;
        let snapshot = facts.snapshot().unwrap();
        assert_eq!(snapshot.schema().fields().count(), 29);
        assert_eq!(snapshot.metadata().configuration()["cdc.schema_version"], "1");
        let version = facts.version().unwrap();
        open(&store, settings(), 2).attach(&orders()).await.unwrap();
        assert_eq!(delta(&store, &place("facts")).await.version().unwrap(), version);
        table = {
            drop(table);
            open(&store, settings(), 3).attach(&orders()).await.unwrap().table
        };
        table.stage(rows(&orders(), 1)).await.unwrap();
        table.commit(commit(1)).await.unwrap();
        let ids = crate::support::column(&store, &place("facts"), "batch_id").await;
        assert_eq!(ids, crate::support::ints([1]));
    });
}

#[test]
fn a_newer_table_is_written_unless_it_forbids_it() {
    block_on(async {
        let newer = store();
        old_facts(&newer, &[("cdc.kind", "facts"), ("cdc.schema_version", "9")]).await;
        open(&newer, settings(), 1).attach(&orders()).await.unwrap();
        let forbidden = store();
        old_facts(&forbidden, &[("cdc.kind", "facts"), ("cdc.min_version", "9")]).await;
        let error = refused(&forbidden, ErrorKind::Config).await;
        assert_eq!(error.context("needs_version"), Some("9"));
    });
}

#[test]
fn a_log_that_would_forget_its_marks_is_refused() {
    block_on(async {
        let store = store();
        let retention = ("delta.setTransactionRetentionDuration", "interval 1 days");
        old_facts(&store, &[("cdc.kind", "facts"), retention]).await;
        let error = refused(&store, ErrorKind::Config).await;
        assert!(error.advice().contains("UNSET TBLPROPERTIES"), "{}", error.advice());
    });
}

/// Commits one `txn` entry on top of a log, as a writer that knows the name and not its meaning.
async fn foreign_entry(store: &Arc<dyn ObjectStore>, dir: &str, id: &str, number: i64) {
    let log = format!("lake/{dir}/_delta_log/");
    let names = objects(store).await;
    let version = names.iter().filter(|name| name.starts_with(&log)).count();
    let entry = serde_json::json!({ "txn": { "appId": id, "version": number } });
    let path = Path::from(format!("{log}{version:020}.json"));
    store.put(&path, entry.to_string().into()).await.unwrap();
}

#[test]
fn a_fence_that_is_used_up_is_refused_by_its_entry() {
    block_on(async {
        let store = filled().await;
        foreign_entry(&store, "bronze/orders", "cdc/orders/fence", i64::MAX).await;
        let error = refused(&store, ErrorKind::InvalidData).await;
        assert_eq!(error.context("table"), Some("orders"));
        assert_eq!(error.context("entry"), Some("cdc/orders/fence"));
        assert!(error.context("path").unwrap().ends_with("bronze/orders/"));
    });
}

#[test]
fn an_entry_of_facts_below_every_batch_only_repeats_the_newest_facts() {
    block_on(async {
        let store = filled().await;
        foreign_entry(&store, "facts", "cdc/orders#facts", i64::MIN).await;
        let attached = open(&store, settings(), 77).attach(&orders()).await.unwrap();
        assert_eq!(attached.state.mark, Some(crate::support::mark(2)));
    });
}
