//! Made-up changes and snapshot rows, spelled the way a case reads.

use arrow_array::RecordBatch;
use cdc_core::{
    BatchFacts, Column, Commit, Epoch, InstanceName, Mark, Origin, Position, Stamp, TableBatch,
    Timestamp,
    change::{Operation, change_schema, row_schema},
};

use crate::{
    cell::{Cell, array},
    outcome::Failure,
};

/// The moment that commit numbers count seconds from: 2026-01-01T00:00:00Z.
const BASE_MICROS: i64 = 1_767_225_600_000_000;

/// The position of the made-up commit `number`, `width` bytes wide.
///
/// # Errors
/// When a position cannot have that width.
pub fn position(width: usize, number: u64) -> Result<Position, Failure> {
    let mut bytes = vec![0; width];
    for (place, byte) in bytes.iter_mut().rev().zip(number.to_be_bytes().iter().rev()) {
        *place = *byte;
    }
    Ok(Position::new(Epoch::default(), &bytes)?)
}

/// The commit time of the made-up commit `number`: one second for each.
#[must_use]
pub fn time(number: u64) -> Timestamp {
    let seconds = i64::try_from(number).unwrap_or(i64::MAX);
    Timestamp::from_micros(BASE_MICROS.saturating_add(seconds.saturating_mul(1_000_000)))
}

/// The stamp of the made-up commit `number`.
///
/// # Errors
/// As for [`position`].
pub fn stamp(width: usize, number: u64) -> Result<Stamp, Failure> {
    Ok(Stamp { position: position(width, number)?, commit_time: Some(time(number)) })
}

/// The mark `sequence` that ends at the made-up commit `number`.
///
/// # Errors
/// As for [`position`].
pub fn mark(width: usize, sequence: u64, number: u64) -> Result<Mark, Failure> {
    Ok(Mark {
        sequence,
        end: position(width, number)?,
        commit_time: Some(time(number)),
        entry_time: Some(time(number)),
        generation: 0,
    })
}

/// A commit of `mark` with facts of nothing read and without events.
#[must_use]
pub fn commit(mark: Mark) -> Commit {
    Commit { mark, facts: BatchFacts::begun(time(0)), events: Vec::new() }
}

#[derive(Clone, Debug)]
struct Change {
    commit: u64,
    command: Option<i32>,
    sequence: Option<u64>,
    operation: Operation,
    cells: Vec<Cell>,
}

/// Rows of one call to `stage`, in the order they are added.
#[derive(Clone, Debug)]
pub struct Feed {
    columns: Vec<Column>,
    instance: InstanceName,
    width: usize,
    next: u64,
    changes: Vec<Change>,
}

impl Feed {
    /// No rows of `columns` yet, with positions of ten bytes.
    #[must_use]
    pub fn new(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            instance: InstanceName::new("dbo_orders"),
            width: 10,
            next: 1,
            changes: Vec::new(),
        }
    }

    /// With positions of `width` bytes.
    #[must_use]
    pub const fn width(mut self, width: usize) -> Self {
        self.width = width;
        self
    }

    /// With sequence values and command ids that start at `first`: a later piece of a commit.
    #[must_use]
    pub const fn starting_at(mut self, first: u64) -> Self {
        self.next = first;
        self
    }

    /// Read from another capture instance.
    #[must_use]
    pub fn instance(mut self, name: &str) -> Self {
        self.instance = InstanceName::new(name);
        self
    }

    /// Adds an insert.
    #[must_use]
    pub fn insert(self, commit: u64, cells: impl Into<Vec<Cell>>) -> Self {
        self.add(commit, [(Operation::Insert, cells.into())])
    }

    /// Adds a delete.
    #[must_use]
    pub fn delete(self, commit: u64, cells: impl Into<Vec<Cell>>) -> Self {
        self.add(commit, [(Operation::Delete, cells.into())])
    }

    /// Adds both images of an update: one command, one sequence value.
    #[must_use]
    pub fn update(
        self,
        commit: u64,
        before: impl Into<Vec<Cell>>,
        after: impl Into<Vec<Cell>>,
    ) -> Self {
        let images =
            [(Operation::UpdateBefore, before.into()), (Operation::UpdateAfter, after.into())];
        self.add(commit, images)
    }

    /// Adds a change with its own place in change order.
    #[must_use]
    pub fn change(
        mut self,
        commit: u64,
        command: Option<i32>,
        sequence: Option<u64>,
        operation: Operation,
        cells: impl Into<Vec<Cell>>,
    ) -> Self {
        self.changes.push(Change { commit, command, sequence, operation, cells: cells.into() });
        self
    }

    /// The rows as changes.
    ///
    /// # Errors
    /// When a cell is no value of its column's type.
    pub fn changes(&self) -> Result<TableBatch, Failure> {
        let width = i32::try_from(self.width).map_err(|_| Failure::new("width is too large"))?;
        let schema = change_schema(width, &self.columns)?;
        let mut lead = vec![Vec::new(); 5];
        for change in &self.changes {
            let sequence = change.sequence.map(|n| position(self.width, n)).transpose()?;
            let values = [
                Cell::Bytes(position(self.width, change.commit)?.as_bytes().to_vec()),
                sequence.map_or(Cell::Null, |at| Cell::Bytes(at.as_bytes().to_vec())),
                Cell::Int(change.operation.code().into()),
                change.command.map_or(Cell::Null, |id| Cell::Int(id.into())),
                Cell::Wall(time(change.commit).as_micros()),
            ];
            for (column, value) in lead.iter_mut().zip(values) {
                column.push(value);
            }
        }
        lead.extend(self.cells());
        self.batch(&schema, &lead, Origin::Changes)
    }

    /// The rows' cells as rows of a whole snapshot.
    ///
    /// # Errors
    /// As for [`Feed::changes`].
    pub fn snapshot(&self, stamp: Stamp) -> Result<TableBatch, Failure> {
        let schema = row_schema(&self.columns)?;
        self.batch(&schema, &self.cells(), Origin::Snapshot(stamp))
    }

    /// The rows' cells as rows of one chunk.
    ///
    /// # Errors
    /// As for [`Feed::changes`].
    pub fn chunk(
        &self,
        snapshot: Position,
        stamp: Stamp,
        index: i32,
    ) -> Result<TableBatch, Failure> {
        let origin = Origin::Chunk { snapshot, stamp, index };
        self.batch(&row_schema(&self.columns)?, &self.cells(), origin)
    }

    fn add(
        mut self,
        commit: u64,
        images: impl IntoIterator<Item = (Operation, Vec<Cell>)>,
    ) -> Self {
        let sequence = self.next;
        self.next += 1;
        let command = i32::try_from(sequence).ok();
        images.into_iter().fold(self, |feed, (operation, cells)| {
            feed.change(commit, command, Some(sequence), operation, cells)
        })
    }

    /// The cells by column; a row that is short of cells has NULL there.
    fn cells(&self) -> Vec<Vec<Cell>> {
        let column = |at: usize| {
            let cell = |change: &Change| change.cells.get(at).cloned().unwrap_or(Cell::Null);
            self.changes.iter().map(cell).collect()
        };
        (0..self.columns.len()).map(column).collect()
    }

    fn batch(
        &self,
        schema: &arrow_schema::SchemaRef,
        columns: &[Vec<Cell>],
        origin: Origin,
    ) -> Result<TableBatch, Failure> {
        let arrays = schema
            .fields()
            .iter()
            .zip(columns)
            .map(|(field, cells)| array(field.data_type(), cells))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = arrow_array::RecordBatchOptions::new().with_row_count(Some(self.changes.len()));
        Ok(TableBatch {
            instance: self.instance.clone(),
            origin,
            records: RecordBatch::try_new_with_options(schema.clone(), arrays, &rows)?,
        })
    }
}
