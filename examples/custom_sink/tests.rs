//! The example passes the suite of every sink.

use std::{collections::BTreeMap, future::Future};

use cdc_conformance::{Cell, cell::array, sink::SinkHarness};
use cdc_core::change::field;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::rows::unhex;

/// A directory that goes with the test.
struct Directory(TempDir);

#[async_trait]
impl SinkHarness for Directory {
    async fn sink(&self) -> Arc<dyn Sink> {
        Arc::new(JsonLinesSink::new(self.0.path()))
    }

    async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
        Ok(read(self.0.path(), spec))
    }
}

/// The visible rows of a table as one record batch, read back from the lines.
fn read(root: &Path, spec: &TableSpec) -> Vec<RecordBatch> {
    let Some(manifest) = Manifest::newest(&root.join(&spec.name)).expect("manifest reads") else {
        return Vec::new();
    };
    let mut rows: Vec<Value> = Vec::new();
    for file in visible_files(root, spec).expect("manifest reads") {
        let text = fs::read_to_string(file).expect("file reads");
        rows.extend(text.lines().map(|line| serde_json::from_str(line).expect("line reads")));
    }
    let text = |value: &Value| value.as_str().map_or(Cell::Null, Cell::text);
    let number = |value: &Value| value.as_i64().map_or(Cell::Null, Cell::Int);
    let wall = |value: &Value| value.as_i64().map_or(Cell::Null, Cell::Wall);
    type Reading<'a> = (&'a str, &'a dyn Fn(&Value) -> Cell, Form);
    let lead: [Reading<'_>; 8] = [
        ("_capture_instance", &text, Form::Text),
        (field::START_LSN, &text, Form::Text),
        (field::SEQVAL, &text, Form::Text),
        (field::OPERATION, &number, Form::Int(64)),
        (field::COMMAND_ID, &number, Form::Int(64)),
        (field::COMMIT_TS, &wall, Form::Wall),
        ("_snapshot", &text, Form::Text),
        ("_chunk", &number, Form::Int(64)),
    ];
    let mut columns = BTreeMap::new();
    for (name, cell, form) in lead {
        let cells: Vec<_> = rows.iter().map(|row| cell(&row[name])).collect();
        columns.insert(name.to_owned(), array(&arrow(&form), &cells).expect("cells fit"));
    }
    for (name, form) in &manifest.columns {
        let cells: Vec<_> = rows.iter().map(|row| parsed(form, &row["row"][name])).collect();
        columns.insert(name.clone(), array(&arrow(form), &cells).expect("cells fit"));
    }
    vec![
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        )
        .expect("columns fit"),
    ]
}

fn parsed(form: &Form, value: &Value) -> Cell {
    let whole = || value.as_i64().expect("a number");
    let text = || value.as_str().expect("a text");
    if value.is_null() {
        return Cell::Null;
    }
    match form {
        Form::Bool => Cell::Bool(value.as_bool().expect("a truth value")),
        Form::Int(_) => Cell::Int(whole()),
        Form::Float(32) => Cell::real(text().parse().expect("a number")),
        Form::Float(_) => Cell::float(text().parse().expect("a number")),
        Form::Decimal(_, scale) => Cell::Decimal(text().parse().expect("digits"), *scale),
        Form::Date => Cell::Date(i32::try_from(whole()).expect("a day")),
        Form::Wall => Cell::Wall(whole()),
        Form::Instant => Cell::Instant(whole()),
        Form::Text => Cell::text(text()),
        Form::Bytes => Cell::Bytes(unhex(text()).expect("hex digits")),
    }
}

fn arrow(form: &Form) -> arrow_schema::DataType {
    use arrow_schema::{DataType, TimeUnit};

    match form {
        Form::Bool => DataType::Boolean,
        Form::Int(16) => DataType::Int16,
        Form::Int(32) => DataType::Int32,
        Form::Int(_) => DataType::Int64,
        Form::Float(32) => DataType::Float32,
        Form::Float(_) => DataType::Float64,
        Form::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
        Form::Date => DataType::Date32,
        Form::Wall => DataType::Timestamp(TimeUnit::Microsecond, None),
        Form::Instant => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Form::Text => DataType::Utf8,
        Form::Bytes => DataType::Binary,
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    futures_util::FutureExt::now_or_never(future).expect("files do not wait")
}

cdc_conformance::sink_suite! {
    harness: async || Directory(TempDir::new().expect("a directory")),
    block_on: block_on,
}

#[test]
fn the_example_feeds_it_by_hand() {
    let root = TempDir::new().expect("a directory");
    block_on(feed(&root.path().join("fed"))).expect("runs");
}

#[test]
fn a_name_that_leaves_the_directory_is_refused() {
    let sink = JsonLinesSink::new("nowhere");
    for name in ["..", "a/b", "a\\b", ".hidden"] {
        let spec = TableSpec {
            name: name.to_owned(),
            source: TableName::new("dbo", "t"),
            columns: Vec::new(),
            key: Vec::new(),
        };
        let error = block_on(sink.attach(&spec)).err().expect(name);
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}
