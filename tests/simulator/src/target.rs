//! What is known of one table's target, and how its marks and owners follow each other.

use std::collections::{BTreeMap, BTreeSet};

use cdc_core::{Lsn, Mark, Position, Timestamp};

use crate::{book::Entry, invariant::Invariant, ledger::Told, stage::Fork};

/// A broken invariant and what was seen.
pub(crate) type Broken = (Invariant, String);

/// What is known of one table's target.
#[derive(Clone, Debug, Default)]
pub struct Book {
    /// The durable mark.
    pub mark: Option<Mark>,
    /// Where the copy began.
    pub first: Option<Position>,
    /// The stored verdict.
    pub finalized: Option<Timestamp>,
    /// The data files, in the order of their commits.
    pub files: Vec<String>,
    /// Rows in them.
    pub rows: u64,
    pub(crate) fence: i64,
    pub(crate) runner: i64,
    pub(crate) verdict_end: Option<Position>,
    pub(crate) seen: BTreeSet<(Lsn, Lsn, i32)>,
    /// Batches that facts have a row of.
    pub(crate) facts: BTreeSet<i64>,
    /// What the batches in the log are.
    pub(crate) landed: BTreeMap<i64, Told>,
    /// Restores that happened before the last commit of a mark.
    pub(crate) forks: usize,
    /// The mark belongs to a log that a restore replaced while its batch was on its way.
    pub(crate) foreign: bool,
    /// It may belong to such a log: nothing tells.
    pub(crate) doubtful: bool,
}

impl Book {
    /// True when the mark belongs to a log that a restore has replaced.
    pub(crate) fn is_replaced(&self, forks: &[Fork]) -> bool {
        let end = self.mark.map(|mark| mark.end);
        let since = forks.iter().skip(self.forks);
        self.foreign || since.into_iter().any(|fork| end > Some(Position::from(fork.kept)))
    }
}

/// A commit is the owner's, or takes the table by a greater fence.
pub(crate) fn fence(book: &mut Book, table: &str, entry: &Entry) -> Result<(), Broken> {
    let named = (entry.number(table, "fence"), entry.number(table, "runner"));
    let (Some(fence), Some(runner)) = named else {
        // Whoever moves the mark or adds rows says by which fence.
        if entry.number(table, "sequence").is_some() || !entry.add.is_empty() {
            let detail = format!("{table}: {} without a fence", entry.operation);
            return Err((Invariant::FenceHolds, detail));
        }
        return Ok(());
    };
    let owns = fence == book.fence && runner == book.runner;
    if fence > book.fence {
        book.fence = fence;
        book.runner = runner;
    } else if !owns {
        let detail = format!("{table}: fence {fence} of {runner} above {}", book.fence);
        return Err((Invariant::FenceHolds, detail));
    }
    Ok(())
}

/// A mark follows the one before.
pub(crate) fn forward(table: &str, before: Option<&Mark>, mark: &Mark) -> Result<(), Broken> {
    let sequence = before.map_or(1, |before| before.sequence + 1);
    let back = before.is_some_and(|before| {
        mark.end < before.end
            || mark.commit_time < before.commit_time
            || mark.generation < before.generation
    });
    if mark.sequence != sequence || back {
        return Err((Invariant::MarkForward, format!("{table}: {mark:?} after {before:?}")));
    }
    Ok(())
}
