//! The parsers of foreign bytes, text and batches, for the fuzz targets alone: no API.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use cdc_core::{Commit, Mark, Result, TableBatch, Timestamp};
use delta_kernel::engine::arrow_conversion::TryIntoArrow;

use crate::{
    config::DeltaConfig,
    encode::Encoder,
    facts,
    log::Layout,
    mark::Names,
    schema::{BRONZE_HEAD, BRONZE_TAIL, FACTS, Own, own_field},
};

/// A mark as `txn` entries of a table.
///
/// # Errors
/// `Bug` for a mark that fits no log.
pub fn entries_of(table: &str, mark: &Mark) -> Result<Vec<(String, i64)>> {
    Names::new(table).entries(mark)
}

/// The mark in a table's `txn` entries.
///
/// # Errors
/// `InvalidData` for entries that are no mark.
pub fn mark_of(table: &str, entries: &BTreeMap<String, i64>) -> Result<Option<Mark>> {
    Names::new(table).mark(entries)
}

/// The names of every entry that a mark may need, and of those of its owner.
#[must_use]
pub fn entry_names(table: &str) -> Vec<String> {
    Names::new(table).all()
}

/// The bytes in a stored position's text.
#[must_use]
pub fn position_bytes(text: &str) -> Option<Vec<u8>> {
    crate::control::unhex(text)
}

/// The directory of a table.
#[must_use]
pub fn directory_name(table: &str) -> String {
    crate::store::directory_name(table)
}

/// The facts in a commit's text.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts(facts::Record);

impl Facts {
    /// The facts of a commit that is about to be written.
    #[must_use]
    pub fn of_commit(table: &str, commit: &Commit) -> Self {
        Self(facts::record(table, commit))
    }

    /// The facts of batch `sequence` in a commit's text.
    #[must_use]
    pub fn of_text(text: &str, sequence: u64) -> Option<Self> {
        facts::Record::of_text(text, sequence).map(Self)
    }

    /// The text that a commit carries.
    ///
    /// # Errors
    /// `Bug` for facts that make no JSON.
    pub fn text(&self) -> Result<String> {
        self.0.text()
    }

    /// How many events stand beside the batch.
    #[must_use]
    pub fn events(&self) -> usize {
        self.0.events.len()
    }

    /// The rows of the facts table.
    ///
    /// # Errors
    /// `Bug` for rows that do not fit the table.
    pub fn rows(&self, written_at: Timestamp) -> Result<RecordBatch> {
        self.0.rows(&layout(FACTS.iter().filter_map(own)), written_at)
    }
}

/// Rows in the form of a bronze table with these captured columns.
///
/// # Errors
/// As for a stage.
pub fn aligned(
    table: &str,
    captured: &[(String, DataType)],
    batch: &TableBatch,
    sequence: u64,
) -> Result<RecordBatch> {
    crate::align::align(table, &bronze(captured), batch, sequence)
}

/// The columns of a bronze table with these captured columns.
#[must_use]
pub fn bronze_schema(captured: &[(String, DataType)]) -> SchemaRef {
    bronze(captured).physical
}

/// True when every value of `from` is a value of `to`, a type that Delta files hold.
#[must_use]
pub fn fits(from: &DataType, to: &DataType) -> bool {
    crate::schema::fits(from, to)
}

/// The statistics of a file with these rows, as JSON text.
#[must_use]
pub fn stats(batches: &[RecordBatch]) -> String {
    let Some(first) = batches.first() else {
        return String::new();
    };
    let schema = first.schema();
    let measured = schema.fields().iter().map(|field| field.name().clone()).collect();
    let layout =
        Layout { logical: Arc::clone(&schema), physical: schema, measured: Arc::new(measured) };
    let Ok(mut encoder) = Encoder::new(&layout, &DeltaConfig::new("memory:///")) else {
        return String::new();
    };
    if batches.iter().any(|batch| encoder.write(batch).is_err()) {
        return String::new();
    }
    encoder.finish().map_or_else(|_| String::new(), |(_, _, stats)| stats.json())
}

fn bronze(captured: &[(String, DataType)]) -> Layout {
    let head = BRONZE_HEAD.iter().filter_map(own);
    let tail = BRONZE_TAIL.iter().filter_map(own);
    layout(head.chain(captured.iter().cloned()).chain(tail))
}

fn own(own: &Own) -> Option<(String, DataType)> {
    let field: arrow_schema::Field = (&own_field(own)).try_into_arrow().ok()?;
    Some((field.name().clone(), field.data_type().clone()))
}

fn layout(columns: impl Iterator<Item = (String, DataType)>) -> Layout {
    let fields = columns.map(|(name, data_type)| arrow_schema::Field::new(name, data_type, true));
    let schema: SchemaRef = Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()));
    Layout { logical: Arc::clone(&schema), physical: schema, measured: Arc::default() }
}
