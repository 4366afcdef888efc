//! The engine between a source and a sink: one poll a database, one common upper bound a cycle,
//! every table's batch committed with its mark, verdicts after the data.
//!
//! # How a cycle goes
//! 1. The high position is read, once for all tables. Where it has not moved, the cycle ends.
//! 2. One more query tells which tables have changes up to it, and one their low positions.
//! 3. Tables with changes are read, each up to the same bound or to its own limits, several at a
//!    time. After the rows, the low position is read again, and the entries of the mark and of the
//!    bound are looked at: nothing was purged, and the log is the same. Only then rows and mark are
//!    committed.
//! 4. Tables without changes only move their mark, at a bounded rate, after their instances were
//!    listed again: a newer instance may hold changes that the older one does not.
//! 5. The verdict follows the mark.
//!
//! After any error of a table's sink the table is attached again, and what its target says is the
//! truth. Errors of one table do not stop the others.

mod batch;
mod cycle;
mod report;
mod retry;
mod settings;
mod table;

pub use report::{RunReport, TableReport};
pub use retry::RetrySettings;
pub use settings::{Settings, StartAt, TableConfig};

use std::sync::Arc;

use crate::port::{Clock, Entropy, Observer, Silent, Sink, Source};

/// The parts a run is made of.
#[derive(Clone)]
pub struct Engine {
    source: Arc<dyn Source>,
    sink: Arc<dyn Sink>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    observer: Arc<dyn Observer>,
    settings: Settings,
}

impl Engine {
    /// An engine that copies from `source` to `sink`, and tells nobody.
    #[must_use]
    pub fn new(
        source: Arc<dyn Source>,
        sink: Arc<dyn Sink>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        settings: Settings,
    ) -> Self {
        Self { source, sink, clock, entropy, observer: Arc::new(Silent), settings }
    }

    /// The same engine, telling `observer` what happens.
    #[must_use]
    pub fn observed_by(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }
}

#[cfg(test)]
mod tests;
