//! The clock of commits: readings of the mapping, in LSN order, turned into UTC.

use super::{
    ServerTime, ServerZone, Timestamp,
    transition::{DAY, OFFSET_LIMIT, Quiet, Stretches},
};
use crate::planted::{self, Planted};

/// How far two rows of the mapping may be out of order before the reading counts as put back: one
/// minute, in microseconds.
///
/// Commits that end together can get their LSNs in another order than their times, and a clock is
/// corrected by small steps. Inside a repeated interval such a drop of milliseconds would otherwise
/// look like the second pass, almost a whole interval ahead of the truth. A true second pass drops
/// by the interval (the shortest since 1970 has 30 minutes) less the time since the row before, and
/// the mapping has a row about every five minutes.
pub const ORDER_SLACK_MICROS: i64 = 60_000_000;

/// How much of the zone's history is kept at hand: behind a reading, for the moments it can stand
/// for, and ahead of it, so that a search serves a month of commits.
const BEHIND_MICROS: i64 = 2 * OFFSET_LIMIT;
const AHEAD_MICROS: i64 = 30 * DAY;

/// Turns commit times of the mapping into UTC, one reading after the other in LSN order.
///
/// A reading stands for one moment as a rule, and for two in a repeated interval. The clock takes
/// the least of them that is not before its previous result.
///
/// * It never goes back: no result is below the one before.
/// * It is never after the truth, for a source whose clock does not go back: if the previous result
///   is not after its true time, the reading's own true time is one of the moments to choose from
///   and not before the previous result, so the least one is not after it.
/// * It is the truth wherever earlier rows determine it, up to [`ORDER_SLACK_MICROS`]; later rows
///   can only rule out later moments, which are not taken anyway. Without a pause in the mapping
///   as long as the repeated interval less the slack, every result is the truth.
///
/// A reading up to the slack below the previous result is taken for the same time, out of order. A
/// reading further below, without a later moment to stand for, means that the server's clock was
/// put back: the result stays, until the clock has caught up. A reading in a spring gap means that
/// the clock was put forward too early or too late: it counts as too early, the least of both, and
/// never moves the result back. [`CommitClock::take_doubts`] tells about both.
///
/// Results are cut to the microsecond, never rounded forward.
#[derive(Clone, Debug)]
pub struct CommitClock {
    zone: ServerZone,
    slack: i64,
    last: Option<i64>,
    quiet: Option<Quiet>,
    around: Option<Stretches>,
    doubts: ClockDoubts,
}

/// Readings that no correct clock of the zone shows. The usual cause is a wrong zone in the
/// configuration, or a server whose clock was set by hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClockDoubts {
    /// Readings in a spring gap.
    pub in_gap: u64,
    /// Readings too far below the previous one; the previous result was repeated.
    pub put_back: u64,
    /// The furthest that a reading was below the previous result, in microseconds.
    pub put_back_micros: i64,
}

impl ClockDoubts {
    /// Whether every reading was one that the zone's clock can show.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.in_gap == 0 && self.put_back == 0
    }
}

impl CommitClock {
    /// A clock that knows no earlier commit. Its first reading should have one moment only; where
    /// it is repeated, start at [`lookback`](super::lookback).
    #[must_use]
    pub const fn new(zone: ServerZone) -> Self {
        Self {
            zone,
            slack: ORDER_SLACK_MICROS,
            last: None,
            quiet: None,
            around: None,
            doubts: ClockDoubts { in_gap: 0, put_back: 0, put_back_micros: 0 },
        }
    }

    /// A clock that goes on behind an earlier commit, such as the end of a mark.
    #[must_use]
    pub const fn resume(zone: ServerZone, last: Timestamp) -> Self {
        let mut clock = Self::new(zone);
        clock.last = Some(last.as_micros());
        clock
    }

    /// Takes drops of up to `micros` for rows out of order, instead of [`ORDER_SLACK_MICROS`]. With
    /// 0, every drop inside a repeated interval starts its second pass.
    #[must_use]
    pub const fn with_slack(mut self, micros: i64) -> Self {
        self.slack = if micros < 0 { 0 } else { micros };
        self
    }

    /// The moment of the next commit or idle entry in LSN order.
    pub fn next(&mut self, reading: ServerTime) -> Timestamp {
        let local = reading.local_micros();
        let moment = match self.quiet {
            Some(quiet) if quiet.first <= local && local <= quiet.last => {
                self.settle(std::iter::once(local.saturating_sub(quiet.offset)))
            }
            _ => self.search(local),
        };
        self.last = Some(moment);
        Timestamp::from_micros(moment)
    }

    /// The last result, or the moment the clock was resumed from.
    #[must_use]
    pub fn last(&self) -> Option<Timestamp> {
        self.last.map(Timestamp::from_micros)
    }

    /// The doubts since they were last taken.
    pub fn take_doubts(&mut self) -> ClockDoubts {
        std::mem::take(&mut self.doubts)
    }

    /// Converts a reading that is not known to be quiet.
    fn search(&mut self, local: i64) -> i64 {
        let zone = self.zone;
        let around =
            self.around.take().filter(|around| around.covers(local)).unwrap_or_else(|| {
                Stretches::between(
                    zone,
                    local.saturating_sub(BEHIND_MICROS),
                    local.saturating_add(AHEAD_MICROS),
                )
            });
        self.quiet = around.quiet_around(local);
        let moment = if planted::is(Planted::RepeatedHourReadLate)
            && let Some(latest) = around.candidates(local).last()
        {
            self.settle(std::iter::once(latest))
        } else if around.candidates(local).next().is_some() {
            self.settle(around.candidates(local))
        } else {
            self.doubts.in_gap = self.doubts.in_gap.saturating_add(1);
            let earliest =
                around.earliest_in_gap(local).unwrap_or(local.saturating_sub(OFFSET_LIMIT));
            self.last.map_or(earliest, |last| last.max(earliest))
        };
        self.around = Some(around);
        moment
    }

    /// The least moment that is not before the last result, give or take the slack.
    fn settle(&mut self, moments: impl Iterator<Item = i64>) -> i64 {
        let last = self.last.unwrap_or(i64::MIN);
        let mut by = 0;
        for moment in moments {
            if moment >= last.saturating_sub(self.slack) {
                return moment.max(last);
            }
            by = last.saturating_sub(moment);
        }
        self.doubts.put_back = self.doubts.put_back.saturating_add(1);
        self.doubts.put_back_micros = self.doubts.put_back_micros.max(by);
        last
    }
}

#[cfg(test)]
mod tests;
