//! Faults around the ports: a source or a sink that refuses, stalls, loses replies or dies.
//!
//! A [`FaultySource`] or [`FaultySink`] wraps any other and is one process's handle on it. Every
//! call of every port method, and every batch of every stream, goes through one gate, which asks
//! the shared [`FaultPlan`] what happens and writes what happened into its trace. With the same
//! plan and the same order of calls, the same things happen.

mod gate;
mod plan;
mod sink;
mod source;

use std::time::Duration;

use cdc_core::ErrorKind;

pub use plan::{Coverage, FaultPlan, Odds, TraceEntry, Watcher};
pub use sink::FaultySink;
pub use source::FaultySource;

/// A call that goes through the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are those of the ports' methods")]
pub enum Operation {
    Instances,
    SchemaChanges,
    Preflight,
    High,
    Low,
    CommitTime,
    PositionAt,
    NthCommitAfter,
    HasChanges,
    Changes,
    /// The next batch of a stream of changes.
    ChangeBatch,
    KeyExtent,
    KeyBound,
    Count,
    Rows,
    /// The next batch of a stream of rows.
    RowBatch,
    Attach,
    Inspect,
    Evolve,
    Stage,
    Commit,
    Discard,
    Publish,
    Close,
}

impl Operation {
    /// Every operation, for tables of coverage.
    pub const ALL: [Self; 24] = [
        Self::Instances,
        Self::SchemaChanges,
        Self::Preflight,
        Self::High,
        Self::Low,
        Self::CommitTime,
        Self::PositionAt,
        Self::NthCommitAfter,
        Self::HasChanges,
        Self::Changes,
        Self::ChangeBatch,
        Self::KeyExtent,
        Self::KeyBound,
        Self::Count,
        Self::Rows,
        Self::RowBatch,
        Self::Attach,
        Self::Inspect,
        Self::Evolve,
        Self::Stage,
        Self::Commit,
        Self::Discard,
        Self::Publish,
        Self::Close,
    ];
}

/// What happens to one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the call takes its course. Stands in a script before the fault of a later call.
    Pass,
    /// The call fails with this kind and does nothing.
    Refuse(ErrorKind),
    /// The call does its work, then the reply is lost: the caller is told `Unavailable`.
    LoseReply,
    /// The call waits until [`FaultPlan::release`], then takes its course.
    Hold,
    /// The call takes its course after this time on the plan's clock.
    Slow(Duration),
    /// The stream that the call opens fails with this kind after so many batches. A call that
    /// opens no stream is refused instead.
    BreakStream(u64, ErrorKind),
    /// The process of this handle dies before the call does anything: it and every later call of
    /// the handle, its tables and its streams fail with `Cancelled`.
    Crash,
    /// The process of this handle dies after the call did its work.
    CrashAfter,
}

#[cfg(test)]
mod tests;
