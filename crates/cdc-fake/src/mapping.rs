//! `cdc.lsn_time_mapping`: which commits and idle entries capture has processed, and when each was
//! by the server's clock.

use std::collections::{BTreeSet, VecDeque};

use cdc_core::{Lsn, ServerTime, Timestamp};

/// A row of the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingEntry {
    /// `start_lsn`.
    pub lsn: Lsn,
    /// `tran_end_time`: the server's clock.
    pub time: ServerTime,
    /// The true moment. No server stores it; tests compare with it.
    pub moment: Timestamp,
    /// True for an entry without a transaction, written because nothing happened.
    pub idle: bool,
    /// `tran_begin_time`: the server's clock when the transaction began.
    pub began: ServerTime,
    /// The transaction's number, behind `tran_id`; 0 of an idle entry.
    pub transaction: u32,
}

/// The mapping, ordered by LSN and indexed by time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mapping {
    entries: VecDeque<MappingEntry>,
    by_time: BTreeSet<(ServerTime, Lsn)>,
}

impl Mapping {
    pub(crate) fn push(&mut self, entry: MappingEntry) {
        self.by_time.insert((entry.time, entry.lsn));
        self.entries.push_back(entry);
    }

    pub(crate) fn last(&self) -> Option<&MappingEntry> {
        self.entries.back()
    }

    pub(crate) fn get(&self, lsn: Lsn) -> Option<&MappingEntry> {
        let at = self.index_after_or_at(lsn);
        self.entries.get(at).filter(|entry| entry.lsn == lsn)
    }

    /// The index of the first entry at or after `lsn`.
    fn index_after_or_at(&self, lsn: Lsn) -> usize {
        self.entries.partition_point(|entry| entry.lsn < lsn)
    }

    /// The last entry at or before `lsn`.
    pub(crate) fn at_or_before(&self, lsn: Lsn) -> Option<&MappingEntry> {
        let after = self.entries.partition_point(|entry| entry.lsn <= lsn);
        after.checked_sub(1).and_then(|at| self.entries.get(at))
    }

    /// The entry with the greatest time at or before `time`, the greatest LSN among equals: what
    /// "largest less than or equal" means on the server.
    pub(crate) fn at_time(&self, time: ServerTime) -> Option<Lsn> {
        let (_, lsn) = self.by_time.range(..=(time, Lsn::MAX)).next_back()?;
        Some(*lsn)
    }

    /// The entry with the least time at or after `time`, the least LSN among equals.
    pub(crate) fn first_since(&self, time: ServerTime) -> Option<Lsn> {
        let (_, lsn) = self.by_time.range((time, Lsn::ZERO)..).next()?;
        Some(*lsn)
    }

    /// The first entry that shares its time with the entry of `lsn`.
    pub(crate) fn first_sharing_time(&self, lsn: Lsn) -> Option<Lsn> {
        let time = self.get(lsn)?.time;
        self.first_since(time).map(|first| first.min(lsn))
    }

    /// The `count`-th entry after `after`, or the last one when there are fewer.
    pub(crate) fn nth_after(&self, after: Lsn, count: u64) -> Option<Lsn> {
        let first = self.index_after_or_at(after.increment());
        let last = self.entries.len().checked_sub(1)?;
        let steps = usize::try_from(count.saturating_sub(1)).unwrap_or(usize::MAX);
        (first <= last && count > 0)
            .then(|| self.entries.get(first.saturating_add(steps).min(last)))
            .flatten()
            .map(|entry| entry.lsn)
    }

    /// The newest entries, at most so many, in LSN order.
    pub(crate) fn latest(&self, most: usize) -> Vec<&MappingEntry> {
        let first = self.entries.len().saturating_sub(most);
        self.entries.range(first..).collect()
    }

    /// Entries with LSNs in `[from, to]`, in LSN order.
    pub(crate) fn between(&self, from: Lsn, to: Lsn) -> impl Iterator<Item = &MappingEntry> {
        let first = self.index_after_or_at(from);
        self.entries.range(first..).take_while(move |entry| entry.lsn <= to)
    }

    /// The readings before `lsn`, back to the last one that is before `from`, in LSN order.
    pub(crate) fn readings_since(&self, from: ServerTime, lsn: Lsn) -> Vec<ServerTime> {
        let end = self.index_after_or_at(lsn);
        let mut found: Vec<_> = self
            .entries
            .range(..end)
            .rev()
            .map(|entry| entry.time)
            .take_while(|time| *time >= from)
            .collect();
        found.reverse();
        found
    }

    /// Removes at most `limit` of the entries below `low`. Returns how many went.
    pub(crate) fn remove_below(&mut self, low: Lsn, limit: usize) -> usize {
        let mut removed = 0;
        while removed < limit {
            let Some(entry) = self.entries.pop_front() else {
                break;
            };
            if entry.lsn >= low {
                self.entries.push_front(entry);
                break;
            }
            self.by_time.remove(&(entry.time, entry.lsn));
            removed += 1;
        }
        removed
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &MappingEntry> {
        self.entries.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lsn(number: u128) -> Lsn {
        Lsn::from_u128(number).expect("small")
    }

    fn mapping(entries: &[(u128, i64)]) -> Mapping {
        let mut mapping = Mapping::default();
        for (number, ticks) in entries {
            mapping.push(MappingEntry {
                lsn: lsn(*number),
                time: ServerTime::from_ticks(*ticks),
                moment: Timestamp::from_micros(0),
                idle: false,
                began: ServerTime::from_ticks(*ticks),
                transaction: 1,
            });
        }
        mapping
    }

    #[test]
    fn a_time_maps_to_the_largest_lsn_among_ties_and_to_nothing_before_the_first() {
        // 10:00:00.003 twice, then 10:05.
        let mapping = mapping(&[(5, 1), (6, 1), (9, 1000)]);
        let at = |ticks| mapping.at_time(ServerTime::from_ticks(ticks));
        assert_eq!(at(0), None);
        assert_eq!(at(1), Some(lsn(6)));
        assert_eq!(at(999), Some(lsn(6)));
        assert_eq!(at(5000), Some(lsn(9)));
        assert_eq!(mapping.first_since(ServerTime::from_ticks(1)), Some(lsn(5)));
        assert_eq!(mapping.first_since(ServerTime::from_ticks(1001)), None);
        assert_eq!(mapping.first_sharing_time(lsn(6)), Some(lsn(5)));
    }

    #[test]
    fn times_that_go_back_do_not_confuse_the_look_up_by_time() {
        // A fall-back: the third commit reads earlier than the second.
        let mapping = mapping(&[(1, 100), (2, 500), (3, 200), (4, 600)]);
        assert_eq!(mapping.at_time(ServerTime::from_ticks(300)), Some(lsn(3)));
        assert_eq!(mapping.at_time(ServerTime::from_ticks(550)), Some(lsn(2)));
    }

    #[test]
    fn the_nth_entry_is_counted_after_and_capped_at_the_last() {
        let mapping = mapping(&[(10, 1), (20, 2), (30, 3)]);
        for (after, count, found) in [
            (0, 1, Some(10)),
            (10, 1, Some(20)),
            (10, 9, Some(30)),
            (15, 2, Some(30)),
            (30, 1, None),
            (10, 0, None),
        ] {
            assert_eq!(mapping.nth_after(lsn(after), count), found.map(lsn));
        }
    }

    #[test]
    fn removing_stops_at_the_mark_and_at_the_limit() {
        let mut mapping = mapping(&[(10, 1), (20, 2), (30, 3)]);
        assert_eq!(mapping.remove_below(lsn(30), 1), 1);
        assert_eq!(mapping.remove_below(lsn(30), 9), 1);
        assert_eq!(mapping.remove_below(lsn(30), 9), 0);
        assert_eq!(mapping.at_time(ServerTime::from_ticks(2)), None);
        assert_eq!(mapping.at_or_before(lsn(29)), None);
    }
}
