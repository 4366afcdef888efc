//! The suite for sinks.

mod columns;
mod fencing;
mod marks;
mod origins;
mod session;
mod values;
mod verdicts;
mod visibility;

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_core::{Result, TableSpec, port::Sink};
use futures_core::future::BoxFuture;

use crate::outcome::{CaseResult, Failure, Outcome};
use session::Session;

/// One empty target, and what the suite needs besides the port to judge a sink on it.
#[async_trait]
pub trait SinkHarness: Send + Sync {
    /// A fresh handle on the target, as another process would open it.
    async fn sink(&self) -> Arc<dyn Sink>;

    /// What a reader sees of the table now, on a path that does not go through a handle which
    /// [`SinkHarness::sink`] returned. No batches while the table does not exist.
    ///
    /// Captured columns bear their own names. A history shows the leading columns of bronze as
    /// well: `_capture_instance`, `_start_lsn`, `_seqval`, `_operation`, `_command_id`,
    /// `_commit_ts`, `_snapshot`, `_chunk`; positions are binary, or `0x` and upper-case digits.
    /// A sink that keeps one row a key shows the rows that exist, without markers of deletes.
    ///
    /// # Errors
    /// When the target cannot be read.
    async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>>;

    /// Ends everything that lives in the process only, as a kill would. What
    /// [`SinkHarness::sink`] returns afterwards sees what is durable.
    async fn crash(&self) {}

    /// The widths of positions that the sink keeps, in bytes. SQL Server's have ten.
    fn position_widths(&self) -> Vec<usize> {
        vec![10, 24]
    }

    /// True when the sink keeps the character U+0000 inside text; otherwise it refuses it.
    fn keeps_nul_in_text(&self) -> bool {
        true
    }
}

/// A case: a rule and the calls that show whether a sink keeps it.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    group: &'static str,
    body: for<'a> fn(&'a dyn SinkHarness) -> BoxFuture<'a, CaseResult>,
}

impl Case {
    /// The rule, as a test's name spells it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What the rule is about.
    #[must_use]
    pub const fn group(&self) -> &'static str {
        self.group
    }

    /// Runs the case on an empty target.
    ///
    /// # Errors
    /// What the sink did that its contract does not allow.
    pub async fn run(&self, harness: &dyn SinkHarness) -> CaseResult {
        (self.body)(harness).await
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}", self.group, self.name)
    }
}

/// Every case of the suite.
#[must_use]
pub fn cases() -> Vec<Case> {
    crate::__sink_cases! { __sink_table }
}

/// Runs the case of this name on an empty target.
///
/// # Errors
/// What the sink did that its contract does not allow.
pub async fn run(name: &str, harness: &dyn SinkHarness) -> CaseResult {
    match cases().into_iter().find(|case| case.name == name) {
        Some(case) => case.run(harness).await,
        None => Err(Failure::new(format!("there is no case {name}"))),
    }
}

/// The list of cases as values.
#[doc(hidden)]
#[macro_export]
macro_rules! __sink_table {
    ($($group:ident { $($name:ident)* })*) => {
        vec![$($(Case {
            name: stringify!($name),
            group: stringify!($group),
            body: |harness| Box::pin(async move {
                $group::$name(harness).await.map(|()| Outcome::Passed)
            }),
        },)*)*]
    };
}
