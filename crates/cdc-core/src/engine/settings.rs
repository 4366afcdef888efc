//! What a run is told: its limits, its pace, and the tables it copies.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    time::Duration,
};

use super::RetrySettings;
use crate::{
    plan::Limits, position::Position, table::TableRef, time::Timestamp, verdict::Granularity,
};

/// Settings of a run. Every queue, buffer, retry and loop of the engine is bounded by one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Limits of one batch of one table.
    pub limits: Limits,
    /// Most rows in one record batch from the source.
    pub batch_rows: NonZeroUsize,
    /// Tables whose batches are read and committed at the same time. Memory grows with it.
    pub tables_at_once: NonZeroUsize,
    /// Pause after a cycle that found nothing new.
    pub poll_interval: Duration,
    /// Least time between two marks of a table that has no changes.
    pub progress_interval: Duration,
    /// A source whose newest commit or idle entry is older than this is reported as silent.
    pub silence_max: Duration,
    /// What is done after errors that may pass.
    pub retry: RetrySettings,
    /// The periods that verdicts are about.
    pub granularity: Granularity,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits {
                commits_max: None,
                // About a minute of a busy table; staged in files, not in memory.
                rows_max: NonZeroU64::MIN.saturating_add(4_999_999),
                bytes_max: NonZeroU64::MIN.saturating_add((1 << 30) - 1),
            },
            batch_rows: NonZeroUsize::MIN.saturating_add(16_383),
            tables_at_once: NonZeroUsize::MIN.saturating_add(3),
            poll_interval: Duration::from_secs(5),
            progress_interval: Duration::from_secs(60),
            // Three times the idle entries' distance of about 305 s.
            silence_max: Duration::from_secs(915),
            retry: RetrySettings::default(),
            granularity: Granularity::Hour,
        }
    }
}

/// Where the copy of a table begins when its target holds no mark yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartAt {
    /// With the oldest change the source still holds.
    #[default]
    Earliest,
    /// With the first change after the run began.
    Latest,
    /// With the first change after this position, which counts as copied.
    After(Position),
    /// With the first change after the latest commit at or before this moment; in a repeated hour
    /// up to that hour earlier.
    Since(Timestamp),
}

/// One table of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableConfig {
    /// The table at the source.
    pub source: TableRef,
    /// The table's name in the target, also its key in facts and control.
    pub target: String,
    /// Where its copy begins.
    pub start: StartAt,
}
