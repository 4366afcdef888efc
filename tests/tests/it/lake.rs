//! A lake on local disk, and a reader of it that shares nothing with the sink: the Delta log's own
//! JSON and plain Parquet.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{Array, RecordBatch, new_null_array};
use arrow_schema::{Field, Schema};
use cdc_cli::bronze::Bronze;
use cdc_conformance::Cell;
use cdc_core::{
    RunReport, TableConfig,
    port::{Clock, Shutdown},
};
use cdc_delta::{DeltaConfig, DeltaSink};
use cdc_tests::world::{Counter, World};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use tempfile::TempDir;

/// A column as the log tells it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LakeField {
    pub(crate) name: String,
    pub(crate) kind: String,
    physical: String,
}

/// A row of a table by column name.
pub(crate) type LakeRow = BTreeMap<String, Cell>;

pub(crate) struct Lake(TempDir);

impl Lake {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    /// A directory or file below the root.
    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.path().join("lake").join(below)
    }

    /// A sink as another process would open it, on the world's clock.
    pub(crate) fn sink(&self, world: &World) -> DeltaSink {
        let config = DeltaConfig::new(self.path("").display().to_string());
        let clock: Arc<dyn Clock> = Arc::new(world.clock.clone());
        // Names of files are drawn from the entropy; each handle draws others.
        let numbers = Counter::starting(self.files().len() as u64 + 1);
        DeltaSink::new(config, clock, Arc::new(numbers)).expect("a root")
    }

    /// Copies everything the source has now into the lake.
    pub(crate) fn copy(&self, world: &World, tables: &[TableConfig]) -> RunReport {
        let engine = world.engine_on(Arc::new(world.source()), Arc::new(self.sink(world)));
        runtime().block_on(engine.run_once(tables.to_vec(), &Shutdown::never()))
    }

    /// Every file below the root with its content.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut left = vec![self.path("")];
        while let Some(next) = left.pop() {
            let Ok(entries) = fs::read_dir(&next) else { continue };
            for entry in entries {
                let path = entry.expect("is listed").path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    found.insert(path.clone(), fs::read(&path).expect("is read"));
                }
            }
        }
        found
    }

    /// The columns of a table, in its order.
    pub(crate) fn fields(&self, table: &str) -> Vec<LakeField> {
        let metadata =
            self.actions(table).into_iter().rfind(|action| !action["metaData"].is_null());
        let text = metadata.expect("a schema")["metaData"]["schemaString"].clone();
        let schema: Value = serde_json::from_str(text.as_str().expect("text")).expect("JSON");
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let fields = schema["fields"].as_array().expect("fields").iter();
        fields
            .map(|field| {
                let name = text(&field["name"]).expect("a name");
                let physical = text(&field["metadata"]["delta.columnMapping.physicalName"]);
                LakeField {
                    physical: physical.unwrap_or_else(|| name.clone()),
                    kind: text(&field["type"]).expect("a plain type"),
                    name,
                }
            })
            .collect()
    }

    /// Every row, its columns in the table's order under their logical names.
    pub(crate) fn batches(&self, table: &str) -> Vec<RecordBatch> {
        let fields = self.fields(table);
        let mut batches = Vec::new();
        for path in Bronze::new(self.path(table)).files().expect("a Delta log") {
            let file = File::open(&path).expect("the log names files that are there");
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
            for batch in reader.build().expect("Parquet") {
                batches.push(logical(&fields, &batch.expect("Parquet")));
            }
        }
        batches
    }

    /// Every row of a table that has library columns only.
    pub(crate) fn rows(&self, table: &str) -> Vec<LakeRow> {
        let mut rows = Vec::new();
        for batch in self.batches(table) {
            let schema = batch.schema();
            for row in 0..batch.num_rows() {
                let cells = schema.fields().iter().zip(batch.columns());
                let cells = cells.map(|(field, column)| {
                    (field.name().clone(), Cell::of(column, row).expect("a cell"))
                });
                rows.push(cells.collect());
            }
        }
        rows
    }

    /// Every action of a table's log, in order. The logs here still have all their versions.
    pub(crate) fn actions(&self, table: &str) -> Vec<Value> {
        self.versions(table).iter().flat_map(|path| actions(path)).collect()
    }

    /// The files of a table's log, in order.
    pub(crate) fn versions(&self, table: &str) -> Vec<PathBuf> {
        let log = self.path(table).join("_delta_log");
        let mut versions: Vec<_> = fs::read_dir(log)
            .expect("a Delta log")
            .map(|entry| entry.expect("is listed").path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
            .collect();
        versions.sort();
        versions
    }
}

/// The actions of one version.
pub(crate) fn actions(version: &Path) -> Vec<Value> {
    let text = fs::read_to_string(version).expect("is read");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// A runtime as the binary has it.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("starts")
}

fn logical(fields: &[LakeField], file: &RecordBatch) -> RecordBatch {
    let known: Vec<_> = fields.iter().map(|field| field.physical.as_str()).collect();
    for field in file.schema().fields() {
        assert!(known.contains(&field.name().as_str()), "{} is not in the log", field.name());
    }
    let columns: Vec<_> = fields
        .iter()
        .map(|field| match file.column_by_name(&field.physical) {
            Some(column) => Arc::clone(column),
            // A file from before the column was added.
            None => new_null_array(&arrow_schema::DataType::Null, file.num_rows()),
        })
        .collect();
    let schema: Vec<_> = fields
        .iter()
        .zip(&columns)
        .map(|(field, column)| Field::new(&field.name, column.data_type().clone(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(schema)), columns).expect("one length")
}
