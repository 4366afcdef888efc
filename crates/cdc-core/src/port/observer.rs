//! What the engine tells the outside: typed events, for logs, metrics and progress.

use crate::{
    batch::{BatchFacts, Stamp},
    error::Error,
    mark::Mark,
    time::Timestamp,
    verdict::Verdict,
};

/// Something that happened in a run.
#[derive(Debug)]
#[non_exhaustive]
#[allow(missing_docs, reason = "field names are the words of the documentation")]
pub enum Event<'a> {
    /// A table was attached; `mark` is what its target holds.
    Attached { table: &'a str, mark: Option<&'a Mark> },
    /// A cycle took its upper bound.
    CycleStarted { high: &'a Stamp, now: Timestamp },
    /// Nothing new at the source.
    Idle { high: Option<&'a Stamp>, now: Timestamp },
    /// Capture has not reached the table's instance yet.
    WaitingForCapture { table: &'a str },
    /// Rows were staged; they are not visible yet.
    Staged { table: &'a str, rows: u64, bytes: u64 },
    /// A batch and its mark became durable.
    Committed { table: &'a str, mark: &'a Mark, facts: &'a BatchFacts },
    /// A staged batch was given up.
    Discarded { table: &'a str },
    /// The table's verdict was published.
    VerdictPublished { table: &'a str, verdict: &'a Verdict },
    /// A step failed and will be repeated after `pause_ms`.
    Retrying { table: Option<&'a str>, error: &'a Error, attempt: u32, pause_ms: u64 },
    /// A table stopped for good in this run.
    TableStopped { table: &'a str, error: &'a Error },
    /// Something to look at that does not stop the run.
    Warning { table: Option<&'a str>, message: &'a str },
}

/// Receives events.
///
/// # Contract
/// `on` is called from the engine's own task, in order for each table. It must not block and
/// cannot fail.
pub trait Observer: Send + Sync {
    /// Takes one event.
    fn on(&self, event: &Event<'_>);
}

/// Discards every event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn on(&self, _event: &Event<'_>) {}
}
