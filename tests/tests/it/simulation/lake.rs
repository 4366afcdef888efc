//! A Delta target on a store in memory, and a reader of it that is not the sink: the log's JSON
//! and plain Parquet.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema};
use cdc_core::{
    Column, SqlType, TableName, TableSpec,
    port::{Clock, Entropy},
};
use cdc_delta::{DeltaConfig, DeltaSink, KernelCalls};
use cdc_fake::VirtualClock;
use cdc_tests::world::World;
use futures_util::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use url::Url;

/// Numbers that look random and are the same in every run.
struct Numbers(std::sync::atomic::AtomicU64);

impl Entropy for Numbers {
    fn next_u64(&self) -> u64 {
        let step = 0x9E37_79B9_7F4A_7C15;
        let mut x = self.0.fetch_add(step, std::sync::atomic::Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }
}

pub(super) struct Lake {
    store: Arc<dyn ObjectStore>,
    clock: VirtualClock,
}

/// A spec to look a table up with.
pub(super) fn spec(name: &str) -> TableSpec {
    let columns = vec![Column::new("id", 1, SqlType::Int, false)];
    TableSpec::new(name, TableName::new("dbo", name), columns, vec!["id".into()]).expect("a spec")
}

impl Lake {
    pub(super) fn new(world: &World) -> Self {
        Self { store: Arc::new(InMemory::new()), clock: world.clock.clone() }
    }

    /// A sink as another process opens it.
    pub(super) fn open(&self, seed: u64) -> DeltaSink {
        let mut config = DeltaConfig::new("memory:///lake/");
        config.kernel_calls = KernelCalls::InPlace;
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let entropy = Arc::new(Numbers(seed.wrapping_mul(0x5851_F42D_4C95_7F2D).into()));
        let root = Url::parse("memory:///lake/").expect("a URL");
        DeltaSink::with_store(config, root, Arc::clone(&self.store), clock, entropy)
            .expect("settings")
    }

    /// Every row of a bronze table.
    pub(super) async fn rows(&self, name: &str) -> Vec<RecordBatch> {
        let place = self.open(0).bronze_location(name);
        // A path or a URL, as the sink prints it.
        let table = Path::from(place.trim_start_matches("memory://").trim_matches('/'));
        let log = table.clone().join("_delta_log");
        let mut entries: Vec<Path> = self
            .store
            .list(Some(&log))
            .map_ok(|entry| entry.location)
            .try_filter(|path| std::future::ready(path.extension() == Some("json")))
            .try_collect()
            .await
            .expect("listed");
        entries.sort();
        let mut files = Vec::new();
        let mut columns: Vec<(String, DataType)> = Vec::new();
        for entry in entries {
            let bytes = self.store.get(&entry).await.expect("there").bytes().await.expect("read");
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let action: Value = serde_json::from_slice(line).expect("JSON");
                assert!(action.get("remove").is_none(), "a history removes nothing");
                if let Some(path) = action.pointer("/add/path").and_then(Value::as_str) {
                    files.push(path.to_owned());
                }
            }
        }
        let mut batches = Vec::new();
        for file in files {
            let path = table.clone().join(file.as_str());
            let bytes = self.store.get(&path).await.expect("there").bytes().await.expect("read");
            let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("Parquet");
            for batch in reader.build().expect("Parquet") {
                let batch = batch.expect("Parquet");
                for field in batch.schema().fields() {
                    if !columns.iter().any(|(name, _)| name == field.name()) {
                        columns.push((field.name().clone(), field.data_type().clone()));
                    }
                }
                batches.push(batch);
            }
        }
        batches.iter().map(|batch| widened(batch, &columns)).collect()
    }
}

/// The batch with NULL in the columns that it lacks.
fn widened(batch: &RecordBatch, columns: &[(String, DataType)]) -> RecordBatch {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, data_type) in columns {
        fields.push(Field::new(name, data_type.clone(), true));
        arrays.push(match batch.column_by_name(name) {
            Some(column) => Arc::clone(column),
            None => new_null_array(data_type, batch.num_rows()),
        });
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("a batch")
}
