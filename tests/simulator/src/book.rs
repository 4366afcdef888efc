//! Delta logs and their data files, read by something that is not the sink: JSON and Parquet.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, RecordBatch, new_null_array};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use cdc_core::{Epoch, Mark, Position, Timestamp};
use futures_util::FutureExt;
use object_store::{ObjectStoreExt, memory::InMemory, path::Path};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;

/// One commit of a log.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The operation that the commit names.
    pub operation: String,
    /// `txn` entries.
    pub txn: BTreeMap<String, i64>,
    /// Files that it adds, relative to the table.
    pub add: Vec<String>,
    /// Files that it removes.
    pub remove: Vec<String>,
}

impl Entry {
    /// The commit in a file of the log.
    ///
    /// # Errors
    /// Why it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut entry = Self::default();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let action: Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
            let text = |pointer: &str| {
                action.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned)
            };
            if let Some(operation) = text("/commitInfo/operation") {
                entry.operation = operation;
            }
            if let Some(name) = text("/txn/appId") {
                let number = action.pointer("/txn/version").and_then(Value::as_i64);
                entry.txn.insert(name, number.ok_or("txn without a version")?);
            }
            entry.add.extend(text("/add/path"));
            entry.remove.extend(text("/remove/path"));
        }
        Ok(entry)
    }

    /// The entry `what` of a table.
    #[must_use]
    pub fn number(&self, table: &str, what: &str) -> Option<i64> {
        self.txn.get(&format!("cdc/{table}/{what}")).copied()
    }

    /// The mark that the commit makes durable.
    ///
    /// # Errors
    /// Why its entries are no mark.
    pub fn mark(&self, table: &str) -> Result<Option<Mark>, String> {
        let Some(sequence) = self.number(table, "sequence") else { return Ok(None) };
        let need = |what: &str| self.number(table, what).ok_or_else(|| format!("no entry {what}"));
        let width = usize::try_from(need("pos.width")?).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        let mut index = 0;
        while bytes.len() < width {
            let part = need(&format!("pos{index}"))?.to_be_bytes();
            let take = 7.min(width - bytes.len());
            bytes.extend(part.iter().skip(part.len() - take));
            index += 1;
        }
        let small = |what: &str| u32::try_from(need(what)?).map_err(|error| error.to_string());
        let known = need("commit_time.known")? == 1;
        let time = need("commit_time")?;
        Ok(Some(Mark {
            sequence: u64::try_from(sequence).map_err(|error| error.to_string())?,
            end: Position::new(Epoch(small("epoch")?), &bytes).map_err(|error| error.report())?,
            commit_time: known.then(|| Timestamp::from_micros(time)),
            entry_time: match self.number(table, "entry_time.of") {
                Some(of) if of == sequence => Some(Timestamp::from_micros(need("entry_time")?)),
                _ => None,
            },
            generation: small("generation")?,
        }))
    }
}

/// The rows of a data file, in its order.
///
/// # Errors
/// Why the file cannot be read.
pub fn rows(objects: &InMemory, table: &Path, file: &str) -> Result<Vec<RecordBatch>, String> {
    let path = table.clone().join(file);
    let told = |error: &dyn std::fmt::Display| format!("{path}: {error}");
    let found = objects.get(&path).now_or_never().ok_or("the store waits")?;
    let bytes = found.map_err(|error| told(&error))?.bytes().now_or_never();
    let bytes: Bytes = bytes.ok_or("the store waits")?.map_err(|error| told(&error))?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| told(&error))?;
    let reader = reader.build().map_err(|error| told(&error))?;
    reader.map(|batch| batch.map_err(|error| told(&error))).collect()
}

/// The batches with NULL in the columns that each lacks of the others'.
#[must_use]
pub fn widened(batches: &[RecordBatch]) -> Vec<RecordBatch> {
    let mut columns: Vec<(String, DataType)> = Vec::new();
    for field in batches.iter().flat_map(|batch| batch.schema().fields().clone().to_vec()) {
        if !columns.iter().any(|(name, _)| name == field.name()) {
            columns.push((field.name().clone(), field.data_type().clone()));
        }
    }
    let widen = |batch: &RecordBatch| {
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (name, data_type) in &columns {
            let own = batch.column_by_name(name);
            let data_type = own.map_or(data_type, |column| column.data_type());
            fields.push(Field::new(name, data_type.clone(), true));
            arrays.push(match own {
                Some(column) => Arc::clone(column),
                None => new_null_array(data_type, batch.num_rows()),
            });
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .unwrap_or_else(|_| batch.clone())
    };
    batches.iter().map(widen).collect()
}
