//! The mark: what a sink has made durable for a table.

use crate::{
    position::{Epoch, Position},
    time::Timestamp,
};

/// What a sink has made durable for a table. Rows and their mark become visible in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Counts the table's commits: the first mark has 1, each following one more.
    pub sequence: u64,
    /// Every change at or before this position is in the target, within the generation.
    pub end: Position,
    /// The commit time of `end`, when the source knows one. A snapshot's position may be no
    /// commit and have none.
    pub commit_time: Option<Timestamp>,
    /// The time of the entry at `end` by its own reading, as
    /// [`crate::port::PositionLog::entry_time`] gives it. `commit_time` never goes back and may be
    /// later. It tells `end` from the same position in another log. None when `end` was no entry
    /// that stays, and in targets that were written before marks had it.
    pub entry_time: Option<Timestamp>,
    /// Counts the snapshots taken after data loss; 0 before the first.
    pub generation: u32,
}

impl Mark {
    /// The epoch of the log that `end` belongs to.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.end.epoch()
    }

    /// The time that the entry at `end` had, as far as the mark knows one.
    #[must_use]
    pub fn recorded(&self) -> Option<Timestamp> {
        self.entry_time.or(self.commit_time)
    }
}

/// The sequence number of the mark after `mark`.
#[must_use]
pub fn next_sequence(mark: Option<&Mark>) -> u64 {
    mark.map_or(1, |mark| mark.sequence.saturating_add(1))
}
