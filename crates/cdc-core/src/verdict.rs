//! Completeness: up to which moment a copy holds everything.

use std::{fmt, str::FromStr};

use crate::{
    batch::Stamp,
    error::{Error, ErrorKind, Result},
    time::Timestamp,
};

/// The length of the periods that become complete one after the other, in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// Whole minutes.
    Minute,
    /// Whole hours.
    #[default]
    Hour,
    /// Whole days.
    Day,
}

impl Granularity {
    const fn micros(self) -> i64 {
        match self {
            Self::Minute => 60_000_000,
            Self::Hour => 3_600_000_000,
            Self::Day => 86_400_000_000,
        }
    }

    /// The begin of the period that holds `moment`.
    #[must_use]
    pub fn truncate(self, moment: Timestamp) -> Timestamp {
        let micros = moment.as_micros();
        Timestamp::from_micros(micros.saturating_sub(micros.rem_euclid(self.micros())))
    }
}

impl FromStr for Granularity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "minute" => Ok(Self::Minute),
            "hour" => Ok(Self::Hour),
            "day" => Ok(Self::Day),
            _ => Err(Error::new(ErrorKind::Config, "granularity is minute, hour or day")
                .with("setting", "granularity")
                .with("value", text)),
        }
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        })
    }
}

/// Up to when a copy is complete, and what that rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Every period that ends at or before this moment is complete. None before the first.
    pub finalized_until: Option<Timestamp>,
    /// The mark's end that the verdict rests on.
    pub end: Stamp,
}

impl Verdict {
    /// True when the period that ends (exclusively) at `period_end` is complete.
    #[must_use]
    pub fn is_final(&self, period_end: Timestamp) -> bool {
        self.finalized_until.is_some_and(|until| period_end <= until)
    }
}

/// What keeps a verdict from following the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Nothing.
    Free,
    /// A chunked snapshot is open: the verdict stays where it is.
    OpenSnapshot,
    /// Changes after this moment are missing and no snapshot has closed the gap yet; the verdict
    /// never passes the begin of the period that holds it. Without a moment it stays.
    Gap(Option<Timestamp>),
}

/// The verdict after a mark became durable: its commit time cut to the granularity, never behind
/// the verdict before, and held where something is missing.
///
/// A mark without a commit time leaves the verdict's moment as it was.
#[must_use]
pub fn advance(
    before: Option<Verdict>,
    end: Stamp,
    granularity: Granularity,
    hold: Hold,
) -> Verdict {
    let old = before.and_then(|verdict| verdict.finalized_until);
    let reached = end.commit_time.map(|time| granularity.truncate(time));
    let allowed = match hold {
        Hold::Free => reached,
        Hold::OpenSnapshot | Hold::Gap(None) => None,
        Hold::Gap(Some(moment)) => reached.map(|time| time.min(granularity.truncate(moment))),
    };
    Verdict { finalized_until: old.max(allowed), end }
}

/// What holds for a group of tables: the least of their verdicts, and nothing while one has none.
#[must_use]
pub fn group(verdicts: impl IntoIterator<Item = Option<Timestamp>>) -> Option<Timestamp> {
    verdicts.into_iter().min().flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lsn::Lsn;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn stamp(time: Option<i64>) -> Stamp {
        Stamp { position: Lsn::from_u128(7).expect("small").into(), commit_time: time.map(at) }
    }

    const HOUR: i64 = 3_600_000_000;

    #[test]
    fn the_open_period_is_never_final() {
        let verdict = advance(None, stamp(Some(3 * HOUR + 1)), Granularity::Hour, Hold::Free);
        assert_eq!(verdict.finalized_until, Some(at(3 * HOUR)));
        assert!(verdict.is_final(at(3 * HOUR)));
        assert!(!verdict.is_final(at(3 * HOUR + 1)));
        assert!(!verdict.is_final(at(4 * HOUR)));
    }

    #[test]
    fn moments_before_1970_are_cut_down_too() {
        assert_eq!(Granularity::Hour.truncate(at(-1)), at(-HOUR));
        assert_eq!(Granularity::Day.truncate(at(-24 * HOUR)), at(-24 * HOUR));
    }

    #[test]
    fn a_group_is_as_complete_as_its_last_table() {
        assert_eq!(group([Some(at(3)), Some(at(1)), Some(at(2))]), Some(at(1)));
        assert_eq!(group([Some(at(3)), None]), None);
        assert_eq!(group([]), None);
    }

    proptest! {
        #[test]
        fn a_verdict_never_goes_back_and_never_passes_its_mark_or_its_gap(
            times in proptest::collection::vec(proptest::option::of(-9 * HOUR..9 * HOUR), 1..20),
            gap in proptest::option::of(-9 * HOUR..9 * HOUR),
            granularity in prop_oneof![Just(Granularity::Minute), Just(Granularity::Hour), Just(Granularity::Day)],
        ) {
            let mut verdict = None;
            let mut newest = None;
            for time in times {
                let before = verdict.and_then(|v: Verdict| v.finalized_until);
                let hold = gap.map_or(Hold::Free, |moment| Hold::Gap(Some(at(moment))));
                let after = advance(verdict, stamp(time), granularity, hold);
                newest = newest.max(time.map(at));
                prop_assert!(after.finalized_until >= before);
                prop_assert!(after.finalized_until <= newest);
                if let (Some(moment), Some(until)) = (gap, after.finalized_until) {
                    prop_assert!(until <= at(moment));
                }
                let held = advance(Some(after), stamp(time), granularity, Hold::OpenSnapshot);
                prop_assert_eq!(held.finalized_until, after.finalized_until);
                verdict = Some(after);
            }
        }
    }
}
