//! A sink on a store in memory, with a clock that ticks by itself, and a reader that is not the
//! sink: deltalake's log and plain Parquet.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{Field, Schema};
use cdc_conformance::{Cell, Feed, feed};
use cdc_core::{
    Column, Commit, Length, Mark, SqlType, TableName, TableSpec, Timestamp,
    port::{Clock, Entropy},
};
use cdc_delta::{DeltaConfig, DeltaSink, KernelCalls};
use deltalake::{DeltaTable, DeltaTableBuilder};
use futures_util::future::BoxFuture;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use url::Url;

pub(crate) const WIDTH: usize = 10;

/// Each reading is a millisecond after the last; a pause ends at once.
#[derive(Default)]
pub(crate) struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let tick = self.0.fetch_add(1_000, Ordering::Relaxed);
        Timestamp::from_micros(1_790_000_000_000_000 + tick)
    }

    fn sleep(&self, _pause: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Numbers that look random and are the same in every run.
pub(crate) struct Numbers(AtomicU64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl Entropy for Numbers {
    fn next_u64(&self) -> u64 {
        let mut x = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }
}

pub(crate) fn root() -> Url {
    Url::parse("memory:///lake/").unwrap()
}

pub(crate) fn settings() -> DeltaConfig {
    let mut config = DeltaConfig::new("memory:///lake/");
    config.kernel_calls = KernelCalls::InPlace;
    config
}

/// A sink as another process would open it.
pub(crate) fn open(store: &Arc<dyn ObjectStore>, config: DeltaConfig, seed: u64) -> DeltaSink {
    DeltaSink::with_store(
        config,
        root(),
        Arc::clone(store),
        Arc::new(Ticking::default()),
        Arc::new(Numbers::new(seed)),
    )
    .unwrap()
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(future)
}

pub(crate) fn orders() -> TableSpec {
    TableSpec::new(
        "orders",
        TableName::new("dbo", "orders"),
        vec![
            Column::new("id", 1, SqlType::Int, false),
            Column::new("name", 2, SqlType::NVarChar(Length::Limited(40)), true),
        ],
        vec!["id".into()],
    )
    .unwrap()
}

pub(crate) fn order(id: i64) -> Vec<Cell> {
    vec![Cell::Int(id), Cell::text(format!("name {id}"))]
}

/// The commit that ends at the made-up commit number `sequence * 10`.
pub(crate) fn commit(sequence: u64) -> Commit {
    feed::commit(mark(sequence))
}

pub(crate) fn mark(sequence: u64) -> Mark {
    feed::mark(WIDTH, sequence, sequence * 10).unwrap()
}

/// One inserted order a batch: its id is the batch's number.
pub(crate) fn rows(spec: &TableSpec, sequence: u64) -> cdc_core::TableBatch {
    let mut cells = order(sequence as i64);
    cells.resize(spec.columns.len(), Cell::Null);
    Feed::new(&spec.columns).insert(sequence * 10, cells).changes().unwrap()
}

/// The location of a table in the test root.
pub(crate) fn place(dir: &str) -> Url {
    root().join(&format!("{dir}/")).unwrap()
}

pub(crate) async fn delta(store: &Arc<dyn ObjectStore>, location: &Url) -> DeltaTable {
    DeltaTableBuilder::from_url(location.clone())
        .unwrap()
        .with_storage_backend(Arc::clone(store), location.clone())
        .load()
        .await
        .unwrap()
}

/// Every row of a Delta table, its columns in the table's order under their logical names.
pub(crate) async fn read(store: &Arc<dyn ObjectStore>, location: &Url) -> Vec<RecordBatch> {
    let table = delta(store, location).await;
    let schema = table.snapshot().unwrap().schema();
    let root = object_store::path::Path::from_url_path(location.path()).unwrap();
    let mut batches = Vec::new();
    let names: Vec<_> = {
        let files = table.snapshot().unwrap().log_data();
        files.into_iter().map(|file| file.object_store_path()).collect()
    };
    for name in names {
        let mut path = root.clone();
        for part in name.parts() {
            path = path.join(part);
        }
        let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        for batch in reader.build().unwrap() {
            batches.push(logical(&schema, &batch.unwrap()));
        }
    }
    batches
}

fn logical(schema: &deltalake::kernel::StructType, file: &RecordBatch) -> RecordBatch {
    use deltalake::kernel::engine::arrow_conversion::TryIntoArrow;
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for field in schema.fields() {
        let physical = match field.metadata().get("delta.columnMapping.physicalName") {
            Some(deltalake::kernel::MetadataValue::String(name)) => name.as_str(),
            _ => field.name().as_str(),
        };
        let data_type: arrow_schema::DataType = field.data_type().try_into_arrow().unwrap();
        let column = match file.column_by_name(physical) {
            Some(column) => Arc::clone(column),
            None => new_null_array(&data_type, file.num_rows()),
        };
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// One column of a table, in ascending order.
pub(crate) async fn column(store: &Arc<dyn ObjectStore>, location: &Url, name: &str) -> Vec<Cell> {
    cells(&read(store, location).await, name)
}

/// One column of what was read, in ascending order.
pub(crate) fn cells(batches: &[RecordBatch], name: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    for batch in batches {
        let column = batch.column_by_name(name).unwrap();
        for row in 0..batch.num_rows() {
            cells.push(Cell::of(column, row).unwrap());
        }
    }
    cells.sort();
    cells
}

pub(crate) fn ints(values: impl IntoIterator<Item = i64>) -> Vec<Cell> {
    values.into_iter().map(Cell::Int).collect()
}
