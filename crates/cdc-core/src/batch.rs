//! What goes through the sink port: rows with where they come from, and the commit that makes
//! them visible.

use arrow_array::RecordBatch;

use crate::{
    change::{ChangeColumns, Operation},
    error::{Error, ErrorKind, Result},
    mark::Mark,
    position::Position,
    table::InstanceName,
    time::Timestamp,
};

/// Where a position stands in time: the position, and its commit time when it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The position.
    pub position: Position,
    /// Its commit time; none when the position is no commit.
    pub commit_time: Option<Timestamp>,
}

/// What the rows of a [`TableBatch`] are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Change rows in change order, in the form of [`crate::change::change_schema`].
    Changes,
    /// Rows of a whole snapshot or a seed, in the form of [`crate::change::row_schema`].
    Snapshot(Stamp),
    /// Rows of one chunk of a chunked snapshot, in the form of [`crate::change::row_schema`].
    Chunk {
        /// The snapshot the chunk belongs to: S.
        snapshot: Position,
        /// The chunk's own stamp: L, at or after S.
        stamp: Stamp,
        /// The chunk's index, from 0.
        index: i32,
    },
}

/// Rows on their way into a sink.
#[derive(Clone, Debug)]
pub struct TableBatch {
    /// The capture instance the rows were read from or belong to.
    pub instance: InstanceName,
    /// What the rows are.
    pub origin: Origin,
    /// The rows.
    pub records: RecordBatch,
}

/// The commit that makes staged rows and their mark visible.
#[derive(Clone, Debug)]
pub struct Commit {
    /// The mark that becomes durable with the rows.
    pub mark: Mark,
    /// What the batch was and how it went.
    pub facts: BatchFacts,
    /// What happened at the source inside the batch.
    pub events: Vec<BatchEvent>,
}

/// Whether a commit wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// Rows and mark are durable now.
    Now,
    /// The same mark was durable already; nothing was written.
    Before,
}

/// Counts over the change rows of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// All rows.
    pub rows: u64,
    /// Operation 1.
    pub deletes: u64,
    /// Operation 2.
    pub inserts: u64,
    /// Operation 4.
    pub updates: u64,
    /// The first row's commit.
    pub first: Option<Stamp>,
    /// The last row's commit.
    pub last: Option<Stamp>,
}

impl RowCounts {
    /// Counts the rows of the next change batch, in order.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] for a batch without the leading fields, [`ErrorKind::InvalidData`] for
    /// an operation that does not exist.
    pub fn add(&mut self, epoch: crate::Epoch, batch: &RecordBatch) -> Result<()> {
        let columns = ChangeColumns::of(batch)?;
        let stamp = |row: usize| -> Result<Stamp> {
            let position = Position::new(epoch, columns.commits.value(row))?;
            Ok(Stamp { position, commit_time: columns.time(row) })
        };
        let Some(last) = columns.len().checked_sub(1) else {
            return Ok(());
        };
        for code in columns.operations.values() {
            match Operation::from_code(*code)? {
                Operation::Delete => self.deletes += 1,
                Operation::Insert => self.inserts += 1,
                Operation::UpdateAfter => self.updates += 1,
                Operation::UpdateBefore => {}
                Operation::Read => {
                    return Err(Error::new(ErrorKind::InvalidData, "snapshot row among changes"));
                }
            }
            self.rows += 1;
        }
        if self.first.is_none() {
            self.first = Some(stamp(0)?);
        }
        self.last = Some(stamp(last)?);
        Ok(())
    }
}

/// What a batch was and how it went: one row of the facts table.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchFacts {
    /// Counts over the rows.
    pub counts: RowCounts,
    /// When the batch began, on this side's clock.
    pub started_at: Timestamp,
    /// Milliseconds from the begin to the commit.
    pub duration_ms: i64,
    /// Seconds spent waiting for the source's rows.
    pub read_seconds: f64,
    /// Bytes of the rows in memory.
    pub read_bytes: u64,
    /// The commit time of the instance's low position: what cleanup has not yet removed.
    pub retention_watermark: Option<Timestamp>,
    /// The newest commit time the source had when the batch was planned.
    pub source_commit_time: Option<Timestamp>,
    /// Seconds from the source's newest commit time to now.
    pub capture_lag_seconds: Option<f64>,
    /// Warnings that belong to the batch.
    pub warnings: Vec<String>,
}

impl BatchFacts {
    /// Facts of a batch that began at `started_at` and has read nothing yet.
    #[must_use]
    pub fn begun(started_at: Timestamp) -> Self {
        Self {
            counts: RowCounts::default(),
            started_at,
            duration_ms: 0,
            read_seconds: 0.0,
            read_bytes: 0,
            retention_watermark: None,
            source_commit_time: None,
            capture_lag_seconds: None,
            warnings: Vec::new(),
        }
    }
}

/// The kind of a [`BatchEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BatchEventKind {
    /// The table's columns changed; the detail is the statement.
    SchemaChange,
    /// A newer capture instance took over; the detail is `old -> new`.
    CaptureInstanceSwitched,
    /// A gap was accepted; the verdict does not pass it silently.
    DataSkipped,
}

impl BatchEventKind {
    /// The name that the facts table holds.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SchemaChange => "schema_change",
            Self::CaptureInstanceSwitched => "capture_instance_switched",
            Self::DataSkipped => "data_skipped",
        }
    }
}

/// Something that happened at the source inside a batch: one more row of the facts table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchEvent {
    /// What happened.
    pub kind: BatchEventKind,
    /// Where it happened.
    pub at: Stamp,
    /// The gap's first and last moment, for [`BatchEventKind::DataSkipped`].
    pub lost: Option<(Option<Timestamp>, Option<Timestamp>)>,
    /// More, in the kind's own form; never a cell's value.
    pub detail: String,
}
