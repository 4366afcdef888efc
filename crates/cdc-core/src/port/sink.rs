//! The sink port: one target that keeps tables and their marks.

use async_trait::async_trait;

use crate::{
    batch::{Commit, Committed, TableBatch},
    error::Result,
    mark::Mark,
    table::{Column, TableSpec},
    verdict::Verdict,
};

/// What a sink can do beyond the least. A conformance suite asks only for what is declared, and
/// checks that the rest is refused with `Unsupported`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SinkCapabilities {
    /// Columns can be added to an existing table.
    pub add_columns: bool,
    /// The target is a history: every change row is kept. Otherwise it keeps one row a key.
    pub keeps_history: bool,
    /// Verdicts are stored beside the data.
    pub stores_verdict: bool,
}

impl SinkCapabilities {
    /// The least: a history without evolution and without verdicts.
    #[must_use]
    pub const fn least() -> Self {
        Self { add_columns: false, keeps_history: true, stores_verdict: false }
    }

    /// With columns that can be added.
    #[must_use]
    pub const fn with_add_columns(mut self) -> Self {
        self.add_columns = true;
        self
    }

    /// With verdicts stored beside the data.
    #[must_use]
    pub const fn with_verdict(mut self) -> Self {
        self.stores_verdict = true;
        self
    }

    /// With one row a key instead of a history.
    #[must_use]
    pub const fn with_one_row_a_key(mut self) -> Self {
        self.keeps_history = false;
        self
    }
}

/// What a target holds of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TargetState {
    /// The last durable mark; none before the first commit.
    pub mark: Option<Mark>,
    /// The published verdict; none before the first, or when the sink stores none.
    pub verdict: Option<Verdict>,
}

/// A table that this runner owns, and what its target holds.
pub struct Attached {
    /// The table, for one caller at a time.
    pub table: Box<dyn TableSink>,
    /// What is durable.
    pub state: TargetState,
}

/// A target that keeps tables.
///
/// # Contract
/// Cheap to share. Different tables may be attached and written concurrently. One runner owns a
/// table: `attach` fences every runner that attached before it, in this process or another.
#[async_trait]
pub trait Sink: Send + Sync {
    /// What it can do beyond the least.
    fn capabilities(&self) -> SinkCapabilities;

    /// Opens or creates the table's target, fences older runners, and returns what is durable.
    /// Called again after any error, it tells the truth about commits whose reply was lost. An
    /// existing target keeps its columns: what it lacks is added by [`TableSink::evolve`].
    ///
    /// # Errors
    /// `Config` when the target cannot be written or belongs to something else, another source
    /// table for instance; `Unsupported` for a table without a key where the sink keeps one row a
    /// key; `SchemaChanged`
    /// when it has a column of a type that cannot take the spec's; `InvalidData` when its own
    /// records are damaged; `Unavailable`; `Conflict`. Nothing is written in any of these cases
    /// except what an attach of the right table would write as well.
    async fn attach(&self, spec: &TableSpec) -> Result<Attached>;

    /// What is durable for a table, without creating, fencing or writing anything. None when
    /// there is no target yet.
    ///
    /// # Errors
    /// `Config`, `InvalidData`, `Unavailable`.
    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>>;

    /// True when another handle attached the table after this one did. A runner asks before it
    /// attaches again after an error: the older of two must not take the table back. An attach of
    /// this handle whose reply was lost is this handle's. A sink that cannot tell says false; the
    /// fence holds all the same.
    ///
    /// # Errors
    /// As for [`Sink::inspect`].
    async fn is_superseded(&self, _spec: &TableSpec) -> Result<bool> {
        Ok(false)
    }
}

/// One table of a sink, owned by one runner.
///
/// # Contract
/// One caller at a time, by type. Staged rows are invisible and, after a crash, as if they had
/// never been. After any error the table is dropped and attached again; what it had staged is
/// lost. Memory stays bounded whatever is staged.
#[async_trait]
pub trait TableSink: Send {
    /// Adds the columns that the target lacks, matched ignoring case. Columns that are there stay
    /// as they are. Idempotent; its own commit, and none when nothing is lacking. Called before
    /// the rows that need it are staged.
    ///
    /// # Errors
    /// `Unsupported` without the capability; `SchemaChanged` when a column is there with a type
    /// that cannot take the new one's values; `Fenced`; `Conflict`; `Unavailable`.
    async fn evolve(&mut self, columns: &[Column]) -> Result<()>;

    /// Takes rows for the next commit. Their columns are matched by name ignoring case; columns
    /// of the table that a batch lacks become NULL (unknown, for a sink that keeps one row a
    /// key). A narrower type, as an older capture instance has it, is widened to the table's. The
    /// calls of one commit come in change order, and no pair of update images is split between two
    /// calls.
    ///
    /// # Errors
    /// `SchemaChanged` for a column that the table lacks or whose type does not fit the table's;
    /// `InvalidData` for a value that its type
    /// does not allow, naming table, column and type; `Unavailable`.
    async fn stage(&mut self, batch: TableBatch) -> Result<()>;

    /// Makes everything staged and the mark visible in one step, or nothing. A mark whose
    /// sequence is the durable one's and whose end is the same is [`Committed::Before`] and
    /// writes nothing; staged rows are dropped. The next sequence may have the same end, as the
    /// chunks of a snapshot do. The fence is looked at first.
    ///
    /// # Errors
    /// `Bug` for a sequence that is neither the durable one nor the next, for the durable one
    /// with another end, for an end that goes back within a generation, and for a generation that
    /// goes back; `Fenced` when a newer runner attached; `Conflict`,
    /// `Unavailable` (the commit may have happened: attach again to learn).
    async fn commit(&mut self, commit: Commit) -> Result<Committed>;

    /// Forgets everything staged.
    ///
    /// # Errors
    /// `Unavailable`; what could not be removed stays invisible.
    async fn discard(&mut self) -> Result<()>;

    /// Stores the verdict that a durable mark allows. A verdict's moment never goes back: an
    /// earlier one leaves the stored moment. Returns what is stored afterwards.
    ///
    /// # Errors
    /// `Unsupported` without the capability; `Bug` for a verdict beyond the durable mark: its end
    /// lies behind the mark's, or its moment is later than both the mark's commit time and the
    /// stored moment, or there is no mark;
    /// `Fenced`; `Conflict`; `Unavailable`.
    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict>;

    /// Gives the table back. Staged rows are discarded.
    ///
    /// # Errors
    /// `Unavailable`; the table is given back all the same.
    async fn close(self: Box<Self>) -> Result<()>;
}
