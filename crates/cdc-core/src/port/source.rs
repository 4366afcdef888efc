//! The source port: one database with change data capture.
//!
//! It is made of four small ports, so that a double needs only what a test asks for. Everything is
//! pulled: what is not asked for is not read.

use std::pin::Pin;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use futures_core::Stream;

use crate::{
    error::Result,
    position::{ClosedRange, Position},
    table::{CaptureInstance, Column, InstanceName, TableName, TableRef},
    time::Timestamp,
};

/// Record batches as they arrive. An error item is the last one; an end without an error is the
/// whole result.
pub type BatchStream = Pin<Box<dyn Stream<Item = Result<RecordBatch>> + Send>>;

/// A bound of the log as the server gave it, with its own meaning where it is no position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The server gave NULL.
    Null,
    /// The server gave the zero position.
    Zero,
    /// A position.
    At(Position),
}

/// What a source can do beyond the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SourceCapabilities {
    /// Width of its positions in bytes.
    pub position_width: u8,
    /// Change rows carry a command id.
    pub command_ids: bool,
}

impl SourceCapabilities {
    /// Capabilities of a source whose positions have `position_width` bytes.
    #[must_use]
    pub const fn new(position_width: u8, command_ids: bool) -> Self {
        Self { position_width, command_ids }
    }
}

/// A change of a captured table's columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// Where it happened. It is no commit of the mapping.
    pub at: Position,
    /// The commit time of the last commit at or before it.
    pub time: Option<Timestamp>,
    /// The statement, at most 500 characters.
    pub statement: String,
    /// True when a captured column's type changed.
    pub captured_column_changed: bool,
}

/// How much a [`Finding`] matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// Good to know.
    Note,
    /// Will hurt later.
    Warning,
    /// The run cannot work.
    Failure,
}

/// What a preflight found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much it matters.
    pub level: FindingLevel,
    /// The table it is about; none for the database.
    pub table: Option<TableName>,
    /// What was seen.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    /// A finding about a table, or about the database.
    #[must_use]
    pub fn new(
        level: FindingLevel,
        table: Option<&TableName>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { level, table: table.cloned(), message: message.into(), remedy: remedy.into() }
    }

    /// What an instance itself tells, whatever the login: no key, columns that cannot be copied,
    /// columns that are never filled.
    #[must_use]
    pub fn of_instance(instance: &CaptureInstance) -> Vec<Self> {
        let table = Some(&instance.table);
        let mut findings = Vec::new();
        if instance.key.is_empty() {
            findings.push(Self::new(
                FindingLevel::Warning,
                table,
                format!("{} has no unique index", instance.name),
                "name the key columns in the configuration, or enable capture with an index",
            ));
        }
        for column in &instance.columns {
            if let Err(error) = column.field() {
                let (message, remedy) = (error.to_string(), error.advice());
                findings.push(Self::new(FindingLevel::Failure, table, message, remedy));
            }
            if column.computed {
                findings.push(Self::new(
                    FindingLevel::Note,
                    table,
                    format!("computed column {} is NULL in every change", column.name),
                    "leave it out of the captured columns",
                ));
            }
        }
        findings
    }
}

/// Which changes to read.
#[derive(Clone, Debug)]
pub struct ChangeRequest {
    /// The instance to read from.
    pub instance: InstanceName,
    /// The columns wanted, in the order and in the types wanted. The instance captures all of
    /// them, in types whose values fit the wanted ones.
    pub columns: Vec<Column>,
    /// The range; both ends belong to it.
    pub range: ClosedRange,
    /// The commit time of the last commit before the range that is known. Times in the result
    /// are never earlier.
    pub time_before: Option<Timestamp>,
    /// Most rows in one record batch; at least 1. A source may exceed it by one row to keep the
    /// two images of an update together.
    pub batch_rows: usize,
}

/// The key columns' values of one row: a record batch of exactly one row.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyTuple(pub RecordBatch);

/// A half-open range of keys `[from, to)` in the source's own order of the key columns. Open ends
/// reach to the first or last row; NULL sorts first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyRange {
    /// The first key of the range.
    pub from: Option<KeyTuple>,
    /// The first key behind the range.
    pub to: Option<KeyTuple>,
}

/// Which rows of a table to read.
#[derive(Clone, Debug)]
pub struct RowRequest {
    /// The table.
    pub table: TableName,
    /// The columns wanted, in the order wanted. A column that the table no longer has (by
    /// `column_id`) reads NULL.
    pub columns: Vec<Column>,
    /// The key columns that `range` is over; may be empty when the range is open at both ends.
    pub key: Vec<String>,
    /// The keys wanted.
    pub range: KeyRange,
    /// Most rows in one record batch; at least 1.
    pub batch_rows: usize,
}

/// What is captured, and how its columns changed.
///
/// # Contract
/// Read-only. Calls may run concurrently. Nothing is remembered from call to call that a change
/// at the source could make wrong.
#[async_trait]
pub trait Catalog: Send + Sync {
    /// Every capture instance of one table with its columns, oldest first by
    /// their start in the log: the server's clock may have been put back between two. Names match
    /// exactly, or else ignoring case when only one does.
    ///
    /// # Errors
    /// `Config` when nothing is captured under that reference, naming what looks like it;
    /// `Unauthorized` naming the grant; `Unavailable`.
    async fn instances(&self, table: &TableRef) -> Result<Vec<CaptureInstance>>;

    /// Changes of the instance's table in `range`, in log order. Complete for any range that
    /// ends at or before a high position that was read earlier.
    ///
    /// # Errors
    /// `Config` for an unknown instance; `Unauthorized`; `Unavailable`.
    async fn schema_changes(
        &self,
        instance: &InstanceName,
        range: ClosedRange,
    ) -> Result<Vec<SchemaChange>>;

    /// What stands in the way of copying these tables, or will.
    ///
    /// # Errors
    /// `Unavailable` only: what cannot be looked at is a finding, never "fine".
    async fn preflight(&self, tables: &[TableRef]) -> Result<Vec<Finding>>;
}

/// The log's positions and times.
///
/// # Contract
/// Read-only. Calls may run concurrently. Every answer is the server's at some moment during the
/// call.
#[async_trait]
pub trait PositionLog: Send + Sync {
    /// The newest position that capture has processed: one query for the whole database. Every
    /// change at or before it is readable, and no change will appear at or before it later.
    /// `Null` while capture has never written.
    ///
    /// # Errors
    /// `Unavailable`, `Unauthorized`.
    async fn high(&self) -> Result<Bound>;

    /// The first position that each instance can still serve, in the order asked: one query.
    /// `Null` and `Zero` mean that the instance is unknown, that a right is missing, or that
    /// capture has not reached it; they never mean that nothing was removed.
    ///
    /// # Errors
    /// `Unavailable`, `Unauthorized`.
    async fn low(&self, instances: &[InstanceName]) -> Result<Vec<Bound>>;

    /// The commit time of a position; none when the position is no entry of the mapping.
    ///
    /// # Errors
    /// `Unavailable`; `InvalidData` for a position of another kind of source.
    async fn commit_time(&self, at: Position) -> Result<Option<Timestamp>>;

    /// The time of an entry by its own reading, whatever is there before it: the same whenever it
    /// is asked for, as long as the entry is there. Tells the entry from one at the same position
    /// of another log; it may be earlier than the commit time. A source whose commit times depend
    /// on the entry alone need not implement it.
    ///
    /// # Errors
    /// As for [`PositionLog::commit_time`].
    async fn entry_time(&self, at: Position) -> Result<Option<Timestamp>> {
        self.commit_time(at).await
    }

    /// A commit or idle entry at or before `moment`: the latest, or inside a repeated hour one
    /// at most that hour earlier. Never one after `moment`. None before the first entry.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn position_at(&self, moment: Timestamp) -> Result<Option<Position>>;

    /// The `count`-th entry of the mapping after `after`, idle entries included, counted over
    /// the whole database; the last one when there are fewer; none when there is none.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn nth_commit_after(&self, after: Position, count: u64) -> Result<Option<Position>>;
}

/// Change rows.
///
/// # Contract
/// Read-only. Calls may run concurrently; each returned stream is one connection's work and is
/// thrown away with its connection when dropped early. A range below the low position reads as
/// empty, **without an error**: callers compare with [`PositionLog::low`] after the read.
#[async_trait]
pub trait ChangeReader: Send + Sync {
    /// For each pair, in order, whether the instance has a change in the range: one query. A
    /// purged range reads as "no".
    ///
    /// # Errors
    /// `Unavailable`, `Unauthorized`.
    async fn has_changes(&self, ranges: &[(InstanceName, ClosedRange)]) -> Result<Vec<bool>>;

    /// The changes of a closed range in change order, in the form of
    /// [`crate::change::change_schema`] with the columns asked for. The two images of an update
    /// are never in different record batches. An error in the middle is an error item, never an
    /// end of the stream.
    ///
    /// # Errors
    /// `Config` for an unknown instance or column; `Unauthorized` naming the grant;
    /// `Unavailable`.
    async fn changes(&self, request: ChangeRequest) -> Result<BatchStream>;
}

/// Rows of the table itself, as they are now.
///
/// # Contract
/// Read-only; reads committed rows only. Calls may run concurrently. Nothing pins one moment
/// over several calls: a caller stamps rows with a high position it read before.
#[async_trait]
pub trait TableReader: Send + Sync {
    /// The least and the greatest key, in the source's order; none for an empty table.
    ///
    /// # Errors
    /// `Config` for an unknown table or key column; `Unsupported` for a key that has no order;
    /// `Unauthorized`; `Unavailable`.
    async fn key_extent(
        &self,
        table: &TableName,
        key: &[String],
    ) -> Result<Option<(KeyTuple, KeyTuple)>>;

    /// The key that leaves `rows` rows of `range` below it; none when the range has no more than
    /// `rows` rows. Costs no more than reading `rows` keys.
    ///
    /// # Errors
    /// As for [`TableReader::key_extent`].
    async fn key_bound(
        &self,
        table: &TableName,
        key: &[String],
        range: &KeyRange,
        rows: u64,
    ) -> Result<Option<KeyTuple>>;

    /// Rows in a range.
    ///
    /// # Errors
    /// As for [`TableReader::key_extent`].
    async fn count(&self, table: &TableName, key: &[String], range: &KeyRange) -> Result<u64>;

    /// The rows of a range, in any order, in the form of [`crate::change::row_schema`].
    ///
    /// # Errors
    /// As for [`TableReader::key_extent`].
    async fn rows(&self, request: RowRequest) -> Result<BatchStream>;
}

/// One database with change data capture.
///
/// # Contract
/// The sum of its parts. Cheap to share; every method takes `&self` and opens what it needs.
/// A connection whose future was dropped is thrown away, never used again.
pub trait Source: Catalog + PositionLog + ChangeReader + TableReader {
    /// The source's name for logs: server and database, without secrets.
    fn name(&self) -> &str;

    /// What it can do beyond the least.
    fn capabilities(&self) -> SourceCapabilities;
}
