//! Stretches of one offset from UTC, and the questions the rules ask about them.
//!
//! The zone database of `chrono-tz` answers "which offset at this moment" and lists no changes, so
//! the changes are searched: steps of [`STEP_MICROS`], and bisection inside a step whose ends
//! differ.

use super::zone::ServerZone;
use crate::planted::{self, Planted};

pub(super) const SECOND: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;

/// The step of the search. Two changes that cancel out inside one step would stay unseen; the
/// closest two in any zone from 1900 to 2100 lie 6.9 days apart.
const STEP_MICROS: i64 = DAY / 4;

/// No offset reaches a day in either direction, so a moment lies within a day of its reading.
pub(super) const OFFSET_LIMIT: i64 = DAY;

/// A stretch of one offset. All values are microseconds; `from` and `until` are in UTC and both
/// belong to the stretch (see the parent module on rounding).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) from: i64,
    pub(super) until: i64,
    /// Local time less UTC.
    pub(super) offset: i64,
}

impl Stretch {
    /// The first reading of the stretch.
    const fn first(&self) -> i64 {
        self.from.saturating_add(self.offset)
    }

    /// The last reading of the stretch.
    const fn last(&self) -> i64 {
        self.until.saturating_add(self.offset)
    }
}

/// Readings that have exactly one moment, all with the same offset. Both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quiet {
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) offset: i64,
}

/// The stretches of a window of time, in order and without holes.
#[derive(Clone, Debug)]
pub(super) struct Stretches {
    from: i64,
    until: i64,
    list: Vec<Stretch>,
}

impl Stretches {
    /// The stretches of `zone` between two moments in UTC. Costs one look at the zone a step.
    pub(super) fn between(zone: ServerZone, from: i64, until: i64) -> Self {
        let list = search(|micros| zone.offset_micros(micros), from, until);
        Self { from, until, list }
    }

    /// The moments in UTC that a reading can stand for, in order: one as a rule, two in a repeated
    /// interval, none in a gap. Complete when [`Self::covers`] the reading.
    pub(super) fn candidates(&self, local: i64) -> impl Iterator<Item = i64> {
        self.list.iter().filter_map(move |stretch| {
            let moment = local.saturating_sub(stretch.offset);
            (stretch.from <= moment && moment <= stretch.until).then_some(moment)
        })
    }

    /// Whether all moments that a reading can stand for lie inside the window.
    pub(super) const fn covers(&self, local: i64) -> bool {
        self.from.saturating_add(OFFSET_LIMIT) <= local
            && local <= self.until.saturating_sub(OFFSET_LIMIT)
    }

    /// The earliest moment that a reading in a gap can stand for: the clock was put forward before
    /// the zone says so. `None` for a reading that lies in no gap.
    pub(super) fn earliest_in_gap(&self, local: i64) -> Option<i64> {
        self.list
            .iter()
            .zip(self.list.iter().skip(1))
            .filter(|(before, after)| before.last() < local && local < after.first())
            .map(|(before, after)| {
                let forward = planted::is(Planted::SpringGapRoundedForward);
                local.saturating_sub(if forward { before.offset } else { after.offset })
            })
            .min()
    }

    /// The least reading that the clock shows at `moment` or later.
    pub(super) fn least_reading_from(&self, moment: i64) -> i64 {
        self.list
            .iter()
            .filter(|stretch| stretch.until >= moment)
            .map(|stretch| stretch.from.max(moment).saturating_add(stretch.offset))
            .min()
            .unwrap_or(moment.saturating_sub(OFFSET_LIMIT))
    }

    /// The earliest moment at which the clock shows `local` or a greater reading.
    pub(super) fn earliest_moment_from(&self, local: i64) -> Option<i64> {
        self.list
            .iter()
            .map(|stretch| (stretch, local.saturating_sub(stretch.offset)))
            .find(|(stretch, moment)| *moment <= stretch.until)
            .map(|(stretch, moment)| moment.max(stretch.from))
    }

    /// The readings around `local` that need no search: covered by the window, and by one stretch
    /// only.
    pub(super) fn quiet_around(&self, local: i64) -> Option<Quiet> {
        if !self.covers(local) {
            return None;
        }
        let mut first = self.from.saturating_add(OFFSET_LIMIT);
        let mut last = self.until.saturating_sub(OFFSET_LIMIT);
        let mut offset = None;
        for stretch in &self.list {
            if stretch.last() < local {
                first = first.max(stretch.last().saturating_add(1));
            } else if stretch.first() > local {
                last = last.min(stretch.first().saturating_sub(1));
            } else if offset.replace(stretch.offset).is_some() {
                // A second stretch with the same reading: it is repeated.
                return None;
            } else {
                first = first.max(stretch.first());
                last = last.min(stretch.last());
            }
        }
        offset.map(|offset| Quiet { first, last, offset })
    }

    /// Stretches that follow each other as given, for zones that no database knows.
    #[cfg(test)]
    pub(super) fn listed(list: Vec<Stretch>) -> Self {
        let (from, until) = (list[0].from, list[list.len() - 1].until);
        Self { from, until, list }
    }

    #[cfg(test)]
    pub(super) fn list(&self) -> &[Stretch] {
        &self.list
    }
}

fn search(offset_at: impl Fn(i64) -> i64, from: i64, until: i64) -> Vec<Stretch> {
    let mut list = Vec::new();
    let mut start = from;
    let mut offset = offset_at(from);
    let mut at = from;
    while at < until {
        let next = at.saturating_add(STEP_MICROS).min(until);
        if offset_at(next) == offset {
            at = next;
            continue;
        }
        // The change lies behind `at` and not behind `change`.
        let mut change = next;
        while change - at > 1 {
            let middle = at + (change - at) / 2;
            if offset_at(middle) == offset {
                at = middle;
            } else {
                change = middle;
            }
        }
        list.push(Stretch { from: start, until: change, offset });
        start = change;
        at = change;
        offset = offset_at(change);
    }
    list.push(Stretch { from: start, until, offset });
    list
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::history::{HISTORIES, all_changes, invented, invented_offset},
        *,
    };

    #[test]
    fn the_search_finds_every_change_and_no_other() {
        for history in HISTORIES.iter() {
            let from = history.changes.first().map_or(0, |change| change.at - DAY);
            let until = history.changes.last().map_or(DAY, |change| change.at + DAY);
            // Years without a change are left out: only their ends are searched.
            let mut found = Vec::new();
            for change in &history.changes {
                let around = Stretches::between(
                    history.zone,
                    (change.at - 3 * DAY).max(from),
                    (change.at + 3 * DAY).min(until),
                );
                let pairs = around.list().iter().zip(&around.list()[1..]);
                found.extend(pairs.map(|(a, b)| (a.until, b.from, a.offset, b.offset)));
            }
            let expected: Vec<_> = history
                .changes
                .iter()
                .map(|change| (change.at, change.at, change.before, change.after))
                .collect();
            assert_eq!(found, expected, "{}", history.zone);
        }
    }

    #[test]
    fn no_two_changes_lie_within_a_step_and_every_offset_is_below_the_limit() {
        for history in HISTORIES.iter() {
            for pair in history.changes.windows(2) {
                assert!(pair[1].at - pair[0].at > 6 * DAY, "{}", history.zone);
            }
        }
        for (zone, change) in all_changes() {
            assert!(change.before.abs().max(change.after.abs()) < OFFSET_LIMIT, "{zone}");
            let repeated = change.before - change.after;
            assert!(
                repeated <= 0 || repeated >= 2 * super::super::ORDER_SLACK_MICROS,
                "{zone} repeats less than the slack can tell"
            );
        }
    }

    proptest! {
        #[test]
        fn a_quiet_reading_has_one_moment_and_the_rest_of_its_range_too(
            list in invented(),
            second in -300_000i64..600_000,
            others in prop::collection::vec(-600_000i64..900_000, 40),
        ) {
            let stretches = Stretches::listed(list.clone());
            let local = second * SECOND + invented_offset(&list, second * SECOND);
            let candidates: Vec<i64> = stretches.candidates(local).collect();
            let quiet = stretches.quiet_around(local);
            prop_assert_eq!(quiet.is_some(), candidates.len() == 1);
            let Some(quiet) = quiet else { return Ok(()) };
            let ends = [quiet.first, quiet.last];
            let inside = others.iter().map(|second| local + second * SECOND).chain(ends);
            for local in inside.filter(|local| (quiet.first..=quiet.last).contains(local)) {
                let moments: Vec<i64> = stretches.candidates(local).collect();
                prop_assert_eq!(moments, vec![local - quiet.offset]);
            }
        }

        #[test]
        fn a_reading_without_a_moment_lies_in_a_gap_and_counts_as_the_earliest(
            list in invented(),
            second in -300_000i64..600_000,
        ) {
            let stretches = Stretches::listed(list.clone());
            let local = second * SECOND;
            if stretches.candidates(local).next().is_none() {
                let earliest = stretches.earliest_in_gap(local);
                let jumps = list.windows(2).filter(|pair| {
                    pair[0].last() < local && local < pair[1].first()
                });
                let plausible =
                    jumps.flat_map(|pair| [pair[0].offset, pair[1].offset]).map(|o| local - o);
                prop_assert!(earliest.is_some());
                prop_assert_eq!(earliest, plausible.min());
            }
        }
    }
}
