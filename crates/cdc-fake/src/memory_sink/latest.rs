//! One row a key: the latest image of every key, computed from the stored history.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    Array, ArrayRef, Int32Array, RecordBatch, StringArray, cast::AsArray, new_null_array,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::ArrowError;
use arrow_select::interleave::interleave;
use cdc_core::{
    Column, Error, Result,
    change::{Operation, field, row_schema},
    table::NullMeaning,
};

/// Where a cell stands: batch and row.
type Cell = (usize, usize);

/// A row's place in the order of its key; a missing part sorts lowest.
type Place = (String, Option<i32>, Option<String>, i32);

/// The newest image of a key: for each column, where its last known value stands. A deleted key
/// keeps its place, so that nothing older revives it.
struct Image {
    place: Place,
    cells: Option<Vec<Option<Cell>>>,
}

/// The rows that exist after `batches`, one a key, in the form of the captured columns.
pub(super) fn latest(
    batches: &[&RecordBatch],
    columns: &[Column],
    key: &[String],
) -> Result<RecordBatch> {
    let damaged =
        |error: ArrowError| Error::bug("stored rows do not fit their table").caused_by(error);
    let mut images = BTreeMap::new();
    for (at, batch) in batches.iter().enumerate() {
        Fold::new(batch, at, columns, key).map_err(damaged)?.apply(&mut images)?;
    }
    let rows: Vec<_> = images.into_values().filter_map(|image| image.cells).collect();
    let schema = row_schema(columns)?;
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (index, own) in schema.fields().iter().enumerate() {
        // One array a batch, then one NULL for the cells that nothing was ever known of.
        let lacking = new_null_array(own.data_type(), 1);
        let mut sources: Vec<&dyn Array> = Vec::new();
        for batch in batches {
            let array = batch.column_by_name(own.name()).unwrap_or(&lacking);
            sources.push(array.as_ref());
        }
        sources.push(lacking.as_ref());
        let unknown = (batches.len(), 0);
        let places: Vec<_> = rows
            .iter()
            .map(|cells| cells.get(index).copied().flatten().unwrap_or(unknown))
            .collect();
        arrays.push(interleave(&sources, &places).map_err(damaged)?);
    }
    RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(damaged)
}

/// One stored batch on its way into the images.
struct Fold<'a> {
    at: usize,
    rows: usize,
    commits: &'a StringArray,
    sequences: &'a StringArray,
    operations: &'a Int32Array,
    commands: &'a Int32Array,
    snapshots: &'a StringArray,
    keys: Vec<ArrayFormatter<'a>>,
    /// For each column of the table: the batch's array, and whether NULL says nothing in it.
    columns: Vec<Option<(&'a ArrayRef, bool)>>,
}

impl<'a> Fold<'a> {
    fn new(
        batch: &'a RecordBatch,
        at: usize,
        columns: &[Column],
        key: &[String],
    ) -> Result<Self, ArrowError> {
        static FORMAT: FormatOptions<'static> = FormatOptions::new().with_null("\0");
        let lead = |name: &str| {
            let lacks = || ArrowError::SchemaError(format!("no column {name}"));
            batch.column_by_name(name).ok_or_else(lacks)
        };
        let own = |name: &String| {
            let folded = name.to_lowercase();
            let same = |column: &&Column| column.name.to_lowercase() == folded;
            columns
                .iter()
                .find(same)
                .and_then(|column| batch.column_by_name(&column.name))
                .ok_or_else(|| ArrowError::SchemaError(format!("no key column {name}")))
        };
        let keys = key
            .iter()
            .map(|name| ArrayFormatter::try_new(own(name)?.as_ref(), &FORMAT))
            .collect::<Result<_, _>>()?;
        let columns = columns.iter().map(|column| {
            let unknown = column.null_meaning() == NullMeaning::Unknown;
            batch.column_by_name(&column.name).map(|array| (array, unknown))
        });
        Ok(Self {
            at,
            rows: batch.num_rows(),
            commits: lead(field::START_LSN)?.as_string(),
            sequences: lead(field::SEQVAL)?.as_string(),
            operations: lead(field::OPERATION)?.as_primitive(),
            commands: lead(field::COMMAND_ID)?.as_primitive(),
            snapshots: lead("_snapshot")?.as_string(),
            keys,
            columns: columns.collect(),
        })
    }

    fn apply(&self, images: &mut BTreeMap<Vec<String>, Image>) -> Result<()> {
        for row in 0..self.rows {
            let key = self.key(row);
            let place = self.place(row);
            let old = images.get(&key);
            if old.is_some_and(|image| image.place >= place) {
                continue;
            }
            let cells = match Operation::from_code(self.operations.value(row))? {
                Operation::Delete => None,
                Operation::UpdateBefore if self.gives_back(row, &key) => continue,
                Operation::UpdateBefore => None,
                Operation::Read | Operation::Insert | Operation::UpdateAfter => {
                    Some(self.merged(row, old.and_then(|image| image.cells.as_ref())))
                }
            };
            images.insert(key, Image { place, cells });
        }
        Ok(())
    }

    fn key(&self, row: usize) -> Vec<String> {
        self.keys.iter().map(|cell| cell.value(row).to_string()).collect()
    }

    fn place(&self, row: usize) -> Place {
        let command = self.commands.is_valid(row).then(|| self.commands.value(row));
        let sequence = self.sequences.is_valid(row).then(|| self.sequences.value(row).to_owned());
        let commit = self.commits.value(row).to_owned();
        (commit, command, sequence, self.operations.value(row))
    }

    /// True when the after image of the before image in `row` has the same key.
    fn gives_back(&self, row: usize, key: &[String]) -> bool {
        let after = row + 1;
        after < self.rows
            && self.operations.value(after) == Operation::UpdateAfter.code()
            && self.key(after) == key
    }

    fn merged(&self, row: usize, old: Option<&Vec<Option<Cell>>>) -> Vec<Option<Cell>> {
        let change = self.snapshots.is_null(row);
        let cell = |(index, given): (usize, &Option<(&ArrayRef, bool)>)| match given {
            Some((array, unknown)) if !(change && *unknown && array.is_null(row)) => {
                Some((self.at, row))
            }
            _ => old.and_then(|cells| cells.get(index).copied().flatten()),
        };
        self.columns.iter().enumerate().map(cell).collect()
    }
}
