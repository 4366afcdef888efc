//! Which log a mark was taken from: the one that the source has now, or one that a restore replaced
//! while the mark was on its way.
//!
//! No runner can look at the log and commit in the same moment. What it read of a log that is
//! replaced in between is committed with a mark of that log, and the next look at the log tells.

use cdc_core::{Lsn, Mark, Position, Timestamp};

use super::{Auditor, Inner, TICK};
use crate::{hub::ProcessId, stage::Fork};

/// What the end of a mark says of its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is of the log that the source has, or of what both have.
    Present,
    /// It is an entry of a replaced log alone.
    Replaced,
    /// It may be of either: both have such an entry, or a copy begins where none has one.
    Unknown,
}

/// How many restores there were when a runner last asked for the newest position.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    /// For the cycle that goes on.
    cycle: Option<usize>,
    /// For the cycle that begins next: tables are opened before it.
    next: Option<usize>,
}

impl Auditor {
    /// A runner was told the newest position: what it reads next is of the log as it is now.
    pub fn asked(&self, process: ProcessId) {
        let restores = self.stage.restores();
        // A cycle may ask more than once; its bound is the first answer.
        self.inner().asked.entry(process).or_default().next.get_or_insert(restores);
    }

    /// A runner's cycle begins, with the bound that it asked for.
    pub fn cycle(&self, process: ProcessId) {
        let mut inner = self.inner();
        let asked = inner.asked.entry(process).or_default();
        asked.cycle = asked.next.take();
    }

    /// The logs that a runner may still commit something of: those replaced since it asked for the
    /// bound of its cycle. A write that happens late may be of any cycle of the run.
    pub(super) fn recent<'a>(
        inner: &Inner,
        process: ProcessId,
        forks: &'a [Fork],
    ) -> impl Iterator<Item = &'a Fork> + Clone + use<'a> {
        let asked = inner.asked.get(&process).copied().unwrap_or_default();
        let known = asked.cycle.or(asked.next).filter(|_| !inner.lates).unwrap_or_default();
        let begin = inner.run_begin;
        forks.iter().skip(known).filter(move |fork| Some(fork.moment) >= begin)
    }

    /// Which log a mark is of that follows `before`.
    pub(super) fn origin<'a>(
        &self,
        before: Option<&Mark>,
        mark: &Mark,
        recent: impl Iterator<Item = &'a Fork>,
    ) -> Origin {
        let beyond: Vec<_> = recent.filter(|fork| mark.end > Position::from(fork.kept)).collect();
        let Ok(end) = Lsn::try_from(mark.end) else { return Origin::Present };
        if beyond.is_empty() {
            return Origin::Present;
        }
        let Some(time) = mark.commit_time else {
            // The position before the oldest change is no entry.
            return Origin::Unknown;
        };
        // Marks keep the greatest time so far.
        let kept = before.and_then(|before| before.commit_time) == Some(time);
        let fits = |moment| kept || self.reads(moment, time);
        let own = self.database.mapping_at(end).is_some_and(|entry| fits(entry.moment));
        let other = beyond.iter().any(|fork| fork.entries.get(&end).is_some_and(|at| fits(*at)));
        match (own, other) {
            (true, true) => Origin::Unknown,
            (false, true) => Origin::Replaced,
            // Where neither log has the entry, no restore excuses it.
            (_, false) => Origin::Present,
        }
    }

    /// True when an entry of a moment may read as a time.
    fn reads(&self, moment: Timestamp, time: Timestamp) -> bool {
        let behind = moment.micros_since(time);
        let (repeated, early) = (self.stage.repeated_micros(), self.stage.early_micros());
        let near = |to: i64| (behind - to).abs() <= TICK;
        near(0) || near(repeated) || (early != repeated && (-TICK..=early + TICK).contains(&behind))
    }
}
