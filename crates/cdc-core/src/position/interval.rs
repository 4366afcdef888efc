//! Sets of transaction numbers as disjoint intervals, with the algebra of sets.

/// A set of whole numbers from 1 on: disjoint intervals in order, none beside its neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Intervals(Vec<Interval>);

/// Every number from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Interval {
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Interval {
    /// The interval, unless it would hold nothing.
    pub(super) fn new(first: u64, last: u64) -> Option<Self> {
        (first <= last).then_some(Self { first, last })
    }

    fn common(self, other: Self) -> Option<Self> {
        Self::new(self.first.max(other.first), self.last.min(other.last))
    }
}

impl Intervals {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Interval> + '_ {
        self.0.iter().copied()
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        self.0.iter().any(|own| own.first <= number && number <= own.last)
    }

    /// How many numbers it holds.
    pub(super) fn count(&self) -> u128 {
        self.0.iter().map(|own| u128::from(own.last - own.first) + 1).sum()
    }

    /// Adds an interval, and joins what then overlaps or touches.
    pub(super) fn insert(&mut self, new: Interval) {
        let touches = |own: &Interval| {
            own.first <= new.last.saturating_add(1) && new.first <= own.last.saturating_add(1)
        };
        let start = self.0.partition_point(|own| own.last.saturating_add(1) < new.first);
        let joined = self.0.iter().skip(start).take_while(|own| touches(own));
        let (mut whole, mut count) = (new, 0);
        for own in joined {
            whole.first = whole.first.min(own.first);
            whole.last = whole.last.max(own.last);
            count += 1;
        }
        self.0.splice(start..start + count, [whole]);
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        let mut whole = self.clone();
        for interval in other.iter() {
            whole.insert(interval);
        }
        whole
    }

    pub(super) fn intersection(&self, other: &Self) -> Self {
        let (mut own, mut others) = (self.iter().peekable(), other.iter().peekable());
        let mut common = Vec::new();
        while let (Some(a), Some(b)) = (own.peek().copied(), others.peek().copied()) {
            common.extend(a.common(b));
            if a.last <= b.last {
                own.next();
            } else {
                others.next();
            }
        }
        Self(common)
    }

    pub(super) fn difference(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut holes = other.iter().peekable();
        for own in self.iter() {
            let mut rest = Some(own);
            while let (Some(part), Some(hole)) = (rest, holes.peek().copied()) {
                if hole.last < part.first {
                    holes.next();
                    continue;
                }
                if hole.first > part.last {
                    break;
                }
                left.extend(hole.first.checked_sub(1).and_then(|to| Interval::new(part.first, to)));
                rest = hole.last.checked_add(1).and_then(|from| Interval::new(from, part.last));
            }
            left.extend(rest);
        }
        Self(left)
    }

    pub(super) fn is_subset(&self, other: &Self) -> bool {
        self.difference(other).is_empty()
    }
}

impl FromIterator<Interval> for Intervals {
    fn from_iter<T: IntoIterator<Item = Interval>>(intervals: T) -> Self {
        let mut whole = Self::default();
        for interval in intervals {
            whole.insert(interval);
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn drawn() -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::vec((1u64..24, 0u64..6), 0..8)
    }

    fn made(drawn: &[(u64, u64)]) -> (Intervals, BTreeSet<u64>) {
        let intervals = drawn.iter().filter_map(|(from, more)| Interval::new(*from, from + more));
        let numbers = drawn.iter().flat_map(|(from, more)| *from..=from + more).collect();
        (intervals.collect(), numbers)
    }

    fn numbers(intervals: &Intervals) -> BTreeSet<u64> {
        intervals.iter().flat_map(|interval| interval.first..=interval.last).collect()
    }

    #[test]
    fn the_ends_of_all_numbers_are_numbers_like_others() {
        let whole = Interval::new(1, u64::MAX).expect("an interval");
        let mut all: Intervals = [whole].into_iter().collect();
        all.insert(Interval::new(u64::MAX, u64::MAX).expect("an interval"));
        assert_eq!(all.iter().collect::<Vec<_>>(), [whole]);
        assert!(all.difference(&all).is_empty() && all.is_subset(&all));
        assert_eq!(all.count(), u128::from(u64::MAX));
    }

    proptest! {
        #[test]
        fn the_algebra_is_that_of_sets(a in drawn(), b in drawn()) {
            let ((a, x), (b, y)) = (made(&a), made(&b));
            prop_assert_eq!(numbers(&a), x.clone());
            prop_assert_eq!(numbers(&a.union(&b)), &x | &y);
            prop_assert_eq!(numbers(&a.intersection(&b)), &x & &y);
            prop_assert_eq!(numbers(&a.difference(&b)), &x - &y);
            prop_assert_eq!(a.is_subset(&b), x.is_subset(&y));
            prop_assert_eq!(a.count(), x.len() as u128);
            prop_assert!((0..32).all(|number| a.contains(number) == x.contains(&number)));
        }

        #[test]
        fn equal_sets_are_equal_and_no_interval_touches_another(a in drawn(), b in drawn()) {
            let ((a, x), (b, y)) = (made(&a), made(&b));
            prop_assert_eq!(a == b, x == y);
            for set in [a.union(&b), a.intersection(&b), a.difference(&b)] {
                let list: Vec<_> = set.iter().collect();
                prop_assert!(list.iter().all(|one| one.first <= one.last));
                prop_assert!(list.windows(2).all(|two| two[0].last + 1 < two[1].first));
            }
        }
    }
}
