//! What a target must hold: the pure rule that every sink is compared with.

use std::collections::BTreeMap;

use arrow_array::{Array, RecordBatch};
use cdc_core::{
    Column, Origin, Stamp, TableBatch, TableSpec,
    change::{ChangeColumns, Operation, field},
    port::SinkCapabilities,
    table::NullMeaning,
};

use crate::{
    cell::Cell,
    outcome::Failure,
    rows::{Lead, Row, Rows, hex},
};

/// A row's place among all rows of its key: commit, command, sequence value, operation. A
/// missing part sorts lowest, so a snapshot row comes before every change of its stamp.
type Place = (Cell, Cell, Cell, Cell);

/// One staged row: its lead and the cells its batch had.
#[derive(Clone, Debug)]
struct Entry {
    lead: Lead,
    cells: BTreeMap<String, Cell>,
}

/// The newest image of a key; a deleted key keeps its place, so that nothing older revives it.
#[derive(Clone, Debug)]
struct Image {
    place: Place,
    cells: Option<BTreeMap<String, Cell>>,
}

/// What a target of the table holds after the same calls, for both kinds of sinks.
#[derive(Clone, Debug)]
pub struct Model {
    history: bool,
    key: Vec<String>,
    columns: BTreeMap<String, Column>,
    staged: Vec<Entry>,
    committed: Vec<Entry>,
}

impl Model {
    /// An empty target.
    #[must_use]
    pub fn new(spec: &TableSpec, capabilities: SinkCapabilities) -> Self {
        let mut model = Self {
            history: capabilities.keeps_history,
            key: spec.key.iter().map(|name| name.to_lowercase()).collect(),
            columns: BTreeMap::new(),
            staged: Vec::new(),
            committed: Vec::new(),
        };
        model.evolve(&spec.columns);
        model
    }

    /// Adds the columns that are not there yet, matched ignoring case.
    pub fn evolve(&mut self, columns: &[Column]) {
        for column in columns {
            self.columns.entry(column.name.to_lowercase()).or_insert_with(|| column.clone());
        }
    }

    /// The captured columns' names in lower case.
    pub fn columns(&self) -> impl Iterator<Item = &str> + Clone {
        self.columns.keys().map(String::as_str)
    }

    /// Takes rows for the next commit.
    ///
    /// # Errors
    /// When a value has a type that no cell has.
    pub fn stage(&mut self, batch: &TableBatch) -> Result<(), Failure> {
        let records = &batch.records;
        let (skip, changes) = match batch.origin {
            Origin::Changes => (field::COUNT, Some(ChangeColumns::of(records)?)),
            _ => (0, None),
        };
        for row in 0..records.num_rows() {
            let mut lead = match &changes {
                Some(_) => change_lead(records, row)?,
                None => row_lead(&batch.origin),
            };
            lead.instance = Cell::text(batch.instance.as_str());
            let mut cells = BTreeMap::new();
            let fields = records.schema_ref().fields().iter();
            for (field, array) in fields.zip(records.columns()).skip(skip) {
                cells.insert(field.name().to_lowercase(), Cell::of(array.as_ref(), row)?);
            }
            self.staged.push(Entry { lead, cells });
        }
        Ok(())
    }

    /// Makes what is staged visible.
    pub fn commit(&mut self) {
        self.committed.append(&mut self.staged);
    }

    /// Forgets what is staged.
    pub fn discard(&mut self) {
        self.staged.clear();
    }

    /// What a reader sees.
    #[must_use]
    pub fn rows(&self) -> Rows {
        if self.history {
            let row = |entry: &Entry| Row {
                lead: Some(entry.lead.clone()),
                cells: self.whole(&entry.cells),
            };
            return Rows::new(self.committed.iter().map(row).collect());
        }
        let mut images: BTreeMap<Vec<Cell>, Image> = BTreeMap::new();
        for entry in &self.committed {
            self.apply(&mut images, entry);
        }
        let rows = images
            .into_values()
            .filter_map(|image| Some(Row { lead: None, cells: self.whole(&image.cells?) }));
        Rows::new(rows.collect())
    }

    /// The latest image per key, by change order alone: what is older than the image is ignored.
    fn apply(&self, images: &mut BTreeMap<Vec<Cell>, Image>, entry: &Entry) {
        let value = |name: &String| entry.cells.get(name).cloned().unwrap_or(Cell::Null);
        let key: Vec<_> = self.key.iter().map(value).collect();
        let place = place(&entry.lead);
        let old = images.get(&key);
        if old.is_some_and(|image| image.place >= place) {
            return;
        }
        let gone =
            |operation: Operation| entry.lead.operation == Cell::Int(operation.code().into());
        let cells = if gone(Operation::Delete) || gone(Operation::UpdateBefore) {
            None
        } else {
            // A before image takes its key away only until its after image gives it back, and
            // what that one does not know is what the row had.
            let known = old.and_then(|image| image.cells.clone());
            let mut cells = known.unwrap_or_default();
            for (name, cell) in &entry.cells {
                let unknown = cell.is_null() && self.unknown(name, &entry.lead);
                if !unknown || !cells.contains_key(name) {
                    cells.insert(name.clone(), cell.clone());
                }
            }
            Some(cells)
        };
        if gone(Operation::UpdateBefore) && self.after_image_follows(entry, &key) {
            return;
        }
        images.insert(key, Image { place, cells });
    }

    /// True when the update that `before` opens leaves its row under the same key.
    fn after_image_follows(&self, before: &Entry, key: &[Cell]) -> bool {
        let value = |entry: &Entry, name: &String| entry.cells.get(name).cloned();
        self.committed.iter().any(|entry| {
            entry.lead.operation == Cell::Int(Operation::UpdateAfter.code().into())
                && entry.lead.commit == before.lead.commit
                && entry.lead.command == before.lead.command
                && entry.lead.sequence == before.lead.sequence
                && self
                    .key
                    .iter()
                    .zip(key)
                    .all(|(name, cell)| value(entry, name).as_ref() == Some(cell))
        })
    }

    /// True when a NULL in this column of a change row says nothing.
    fn unknown(&self, column: &str, lead: &Lead) -> bool {
        // Rows of snapshots are read from the table itself: NULL is NULL there.
        lead.snapshot.is_null()
            && self
                .columns
                .get(column)
                .is_some_and(|column| column.null_meaning() == NullMeaning::Unknown)
    }

    fn whole(&self, cells: &BTreeMap<String, Cell>) -> BTreeMap<String, Cell> {
        self.columns
            .keys()
            .map(|name| {
                let cell = cells.get(name).cloned().unwrap_or(Cell::Null);
                (name.clone(), cell)
            })
            .collect()
    }
}

fn place(lead: &Lead) -> Place {
    (lead.commit.clone(), lead.command.clone(), lead.sequence.clone(), lead.operation.clone())
}

fn change_lead(records: &RecordBatch, row: usize) -> Result<Lead, Failure> {
    let columns = ChangeColumns::of(records)?;
    let position = |array: &dyn Array| {
        Ok::<_, Failure>(match Cell::of(array, row)? {
            Cell::Bytes(bytes) => Cell::Text(hex(&bytes)),
            other => other,
        })
    };
    Ok(Lead {
        commit: position(columns.commits)?,
        command: Cell::of(columns.commands, row)?,
        sequence: position(columns.sequences)?,
        operation: Cell::of(columns.operations, row)?,
        time: Cell::of(columns.times, row)?,
        snapshot: Cell::Null,
        chunk: Cell::Null,
        instance: Cell::Null,
    })
}

fn row_lead(origin: &Origin) -> Lead {
    let (stamp, snapshot, chunk) = match origin {
        Origin::Snapshot(stamp) => (Some(stamp), Some(stamp.position), None),
        Origin::Chunk { snapshot, stamp, index } => (Some(stamp), Some(*snapshot), Some(*index)),
        Origin::Changes => (None, None, None),
    };
    let position =
        |at: Option<cdc_core::Position>| at.map_or(Cell::Null, |at| Cell::Text(at.to_string()));
    let time = |stamp: &Stamp| stamp.commit_time.map(|time| Cell::Wall(time.as_micros()));
    Lead {
        commit: position(stamp.map(|stamp| stamp.position)),
        command: Cell::Null,
        sequence: Cell::Null,
        operation: Cell::Int(Operation::Read.code().into()),
        time: stamp.and_then(time).unwrap_or(Cell::Null),
        snapshot: position(snapshot),
        chunk: chunk.map_or(Cell::Null, |index| Cell::Int(index.into())),
        instance: Cell::Null,
    }
}

#[cfg(test)]
mod tests;
