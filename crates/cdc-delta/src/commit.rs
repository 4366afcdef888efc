//! One commit of a Delta log: what it holds, and how its file is written.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, StructArray,
    builder::{MapBuilder, MapFieldNames, StringBuilder},
};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use delta_kernel::{
    DeltaResult, DeltaResultIterator, Engine, Error as KernelError, FileMeta, FilteredEngineData,
    committer::{CommitMetadata, CommitResponse, Committer, PublishMetadata},
    engine::{arrow_data::ArrowEngineData, to_json_bytes},
};
use serde_json::{Map, Value, json};

/// A data file that is written but not yet part of a table.
#[derive(Clone, Debug)]
pub(crate) struct DataFile {
    /// Relative to the table's directory, without a character that URLs escape.
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    /// The statistics as the log holds them: JSON text.
    pub(crate) stats: String,
    /// Milliseconds since 1970-01-01.
    pub(crate) modified_ms: i64,
}

/// What surrounds the actions of a commit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// Milliseconds since 1970-01-01, by the sink's clock.
    pub(crate) at_ms: i64,
    /// A number that names the commit.
    pub(crate) id: u64,
    /// Free text that travels with the commit.
    pub(crate) user_metadata: Option<String>,
    /// The table's comment, at its creation.
    pub(crate) comment: Option<String>,
    /// Properties of the table that the commit sets.
    pub(crate) properties: BTreeMap<String, String>,
    /// Statistics by file name.
    pub(crate) stats: BTreeMap<String, String>,
}

/// Writes the kernel's actions as the next file of the log, by put-if-absent.
///
/// The kernel knows no comments of tables and no exact statistics, and it takes times and names
/// from the machine; those are put into its actions here.
#[derive(Debug)]
pub(crate) struct LogFile(pub(crate) Frame);

impl LogFile {
    fn complete(&self, line: &[u8], metadata: &CommitMetadata) -> DeltaResult<Vec<Value>> {
        let mut action: Map<String, Value> =
            serde_json::from_slice(line).map_err(KernelError::MalformedJson)?;
        let frame = &self.0;
        let mut extra = Vec::new();
        if let Some(info) = object(&mut action, "commitInfo") {
            info.insert("timestamp".into(), frame.at_ms.into());
            info.insert("txnId".into(), format!("{:016x}", frame.id).into());
            if let Some(text) = &frame.user_metadata {
                info.insert("userMetadata".into(), text.clone().into());
            }
            if !frame.properties.is_empty() && !metadata.has_metadata_change() {
                let old = metadata.effective_metadata()?;
                let mut value = serde_json::to_value(old).map_err(KernelError::MalformedJson)?;
                if let Some(fields) = value.as_object_mut() {
                    self.complete_metadata(fields);
                }
                extra.push(json!({ "metaData": value }));
            }
        }
        if let Some(table) = object(&mut action, "metaData") {
            self.complete_metadata(table);
        }
        if let Some(txn) = object(&mut action, "txn") {
            txn.insert("lastUpdated".into(), frame.at_ms.into());
        }
        if let Some(add) = object(&mut action, "add") {
            let stats =
                add.get("path").and_then(Value::as_str).and_then(|path| frame.stats.get(path));
            if let Some(stats) = stats {
                add.insert("stats".into(), stats.clone().into());
            }
        }
        extra.insert(0, Value::Object(action));
        Ok(extra)
    }

    fn complete_metadata(&self, table: &mut Map<String, Value>) {
        if let Some(comment) = &self.0.comment {
            table.insert("description".into(), comment.clone().into());
        }
        if let Some(Value::Object(properties)) = table.get_mut("configuration") {
            for (key, value) in &self.0.properties {
                properties.insert(key.clone(), value.clone().into());
            }
        }
    }
}

fn object<'a>(action: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Map<String, Value>> {
    action.get_mut(key).and_then(Value::as_object_mut)
}

impl Committer for LogFile {
    fn commit(
        &self,
        engine: &dyn Engine,
        actions: DeltaResultIterator<'_, FilteredEngineData>,
        commit_metadata: CommitMetadata,
    ) -> DeltaResult<CommitResponse> {
        let plain = to_json_bytes(actions)?;
        let mut file = Vec::with_capacity(plain.len() + 256);
        for line in plain.split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            for action in self.complete(line, &commit_metadata)? {
                serde_json::to_writer(&mut file, &action).map_err(KernelError::MalformedJson)?;
                file.push(b'\n');
            }
        }
        let path = commit_metadata.published_commit_path()?;
        let size = file.len() as u64;
        match engine.storage_handler().put(&path, Bytes::from(file), false) {
            Ok(()) => Ok(CommitResponse::Committed {
                file_meta: FileMeta::new(path, commit_metadata.in_commit_timestamp(), size),
            }),
            Err(KernelError::FileAlreadyExists(_)) => {
                Ok(CommitResponse::Conflict { version: commit_metadata.version() })
            }
            Err(error) => Err(error),
        }
    }

    fn is_catalog_committer(&self) -> bool {
        false
    }

    fn publish(&self, _engine: &dyn Engine, _metadata: PublishMetadata) -> DeltaResult<()> {
        Ok(())
    }
}

/// Files in the form that the kernel takes.
pub(crate) fn added(files: &[DataFile]) -> DeltaResult<ArrowEngineData> {
    let whole = |number: u64| {
        i64::try_from(number).map_err(|_| KernelError::generic("number does not fit the log"))
    };
    let names = StringArray::from_iter_values(files.iter().map(|file| &file.name));
    let sizes = files.iter().map(|file| whole(file.bytes));
    let sizes = sizes.collect::<DeltaResult<Vec<_>>>()?;
    let rows = files.iter().map(|file| whole(file.rows));
    let rows = rows.collect::<DeltaResult<Vec<_>>>()?;
    let times = Int64Array::from_iter_values(files.iter().map(|file| file.modified_ms));
    let map_names =
        MapFieldNames { entry: "key_value".into(), key: "key".into(), value: "value".into() };
    let mut partitions =
        MapBuilder::new(Some(map_names), StringBuilder::new(), StringBuilder::new());
    for _ in files {
        partitions.append(true)?;
    }
    let partitions = partitions.finish();
    let stats = StructArray::from(vec![(
        Arc::new(Field::new("numRecords", DataType::Int64, true)),
        Arc::new(Int64Array::from(rows)) as ArrayRef,
    )]);
    use arrow_array::Array as _;
    let schema = Schema::new(vec![
        Field::new("path", DataType::Utf8, false),
        Field::new("partitionValues", partitions.data_type().clone(), false),
        Field::new("size", DataType::Int64, false),
        Field::new("modificationTime", DataType::Int64, false),
        Field::new("stats", stats.data_type().clone(), true),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(names),
        Arc::new(partitions),
        Arc::new(Int64Array::from(sizes)),
        Arc::new(times),
        Arc::new(stats),
    ];
    Ok(ArrowEngineData::new(RecordBatch::try_new(Arc::new(schema), columns)?))
}
