//! A table as its files tell, read without the sink and without a library for Delta.

use std::collections::{BTreeMap, BTreeSet};

use cdc_conformance::Cell;
use futures_util::{FutureExt, TryStreamExt};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// One version of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    pub(crate) operation: String,
    /// The `txn` entries, by what follows the last slash of their names.
    pub(crate) entries: BTreeMap<String, i64>,
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
}

/// Every version of the table in `dir`, in order. The log begins with version 0 and has no gap.
pub(crate) fn log(store: &InMemory, dir: &str) -> Vec<Version> {
    let prefix = Path::from(format!("lake/{dir}/_delta_log"));
    let files: Vec<_> = store.list(Some(&prefix)).try_collect().now_or_never().unwrap().unwrap();
    let mut names: Vec<_> = files.into_iter().map(|file| file.location).collect();
    names.sort();
    let version = |(number, path): (usize, &Path)| {
        assert_eq!(path.filename(), Some(format!("{number:020}.json").as_str()), "a gap");
        let text = bytes(store, path);
        let mut version = Version::default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            read_action(&serde_json::from_slice(line).unwrap(), &mut version);
        }
        version
    };
    names.iter().enumerate().map(version).collect()
}

fn read_action(action: &Value, version: &mut Version) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    if let Some(info) = action.get("commitInfo") {
        version.operation = text(&info["operation"]);
    }
    if let Some(entry) = action.get("txn") {
        let name = text(&entry["appId"]);
        let name = name.rsplit('/').next().unwrap().to_owned();
        version.entries.insert(name, entry["version"].as_i64().unwrap());
    }
    if let Some(file) = action.get("add") {
        version.added.push(text(&file["path"]));
    }
    if let Some(file) = action.get("remove") {
        version.removed.push(text(&file["path"]));
    }
}

fn bytes(store: &InMemory, path: &Path) -> bytes::Bytes {
    let file = store.get(path).now_or_never().unwrap();
    let file = file.unwrap_or_else(|error| panic!("a named file is not there: {error}"));
    file.bytes().now_or_never().unwrap().unwrap()
}

/// The files that the newest version names.
pub(crate) fn live(log: &[Version]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    for version in log {
        files.extend(version.added.iter().cloned());
        for file in &version.removed {
            assert!(files.remove(file), "a file was removed that was not there");
        }
    }
    files
}

/// One column of some files of a table, in ascending order.
pub(crate) fn column<'a>(
    store: &InMemory,
    dir: &str,
    files: impl IntoIterator<Item = &'a String>,
    name: &str,
) -> Vec<Cell> {
    let mut cells = Vec::new();
    for file in files {
        let bytes = bytes(store, &Path::from(format!("lake/{dir}/{file}")));
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        for batch in reader.build().unwrap() {
            cells.extend(crate::support::cells(&[batch.unwrap()], name));
        }
    }
    cells.sort();
    cells
}
