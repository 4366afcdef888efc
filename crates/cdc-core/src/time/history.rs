//! What the tests of the time rules share: every change of every zone, found without the code under
//! test, and a source whose commits are read by its clock.

#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use std::{collections::BTreeSet, sync::LazyLock};

use chrono::{DateTime, Offset, TimeZone, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use proptest::prelude::*;

use super::{
    ServerTime, ServerZone, Timestamp,
    transition::{DAY, SECOND, Stretch},
};

/// A change of a zone's offset; microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Change {
    pub(super) at: i64,
    pub(super) before: i64,
    pub(super) after: i64,
}

impl Change {
    /// The length of the interval that the change repeats or leaves out.
    pub(super) fn length(&self) -> i64 {
        (self.after - self.before).abs()
    }

    /// The length of the repeated interval, zero when the clock is put forward.
    pub(super) fn repeated(&self) -> i64 {
        (self.before - self.after).max(0)
    }

    /// The moment `lengths` of the interval behind the change.
    pub(super) fn near(&self, lengths: f64) -> i64 {
        self.at + (lengths * self.length() as f64) as i64
    }

    /// Moments on, just ahead of and just behind every edge of what the change repeats, in order.
    pub(super) fn edges(&self) -> Vec<i64> {
        self.around_edges(&[-SECOND, -1_700, -1, 0, 1, 1_700, SECOND])
    }

    /// Moments as far off the edges as given.
    pub(super) fn around_edges(&self, offs: &[i64]) -> Vec<i64> {
        let length = self.length();
        [-length, -length / 2, 0, length / 2, length]
            .into_iter()
            .flat_map(|edge| offs.iter().map(move |off| edge + off))
            .map(|off| self.at + off)
            .collect()
    }
}

/// A zone with all its changes from 1970 to 2037.
pub(super) struct History {
    pub(super) zone: ServerZone,
    pub(super) changes: Vec<Change>,
}

/// The history of every zone that chrono-tz knows; names with the same history stand once.
pub(super) static HISTORIES: LazyLock<Vec<History>> = LazyLock::new(|| {
    let mut seen = BTreeSet::new();
    let mut histories = Vec::new();
    for zone in TZ_VARIANTS {
        let changes = changes_of(zone);
        if seen.insert((offset(zone, 0), changes.clone())) {
            let zone = ServerZone::parse("zone", zone.name()).expect("a known name");
            histories.push(History { zone, changes });
        }
    }
    histories
});

/// Every zone's changes.
pub(super) fn all_changes() -> impl Iterator<Item = (ServerZone, Change)> {
    HISTORIES
        .iter()
        .flat_map(|history| history.changes.iter().map(|change| (history.zone, *change)))
}

/// Any change of any zone.
pub(super) fn any_change() -> impl Strategy<Value = (ServerZone, Change)> {
    any::<(prop::sample::Index, prop::sample::Index)>().prop_filter_map(
        "zone without a change",
        |(zone, change)| {
            let history = zone.get(&HISTORIES);
            (!history.changes.is_empty()).then(|| (history.zone, *change.get(&history.changes)))
        },
    )
}

/// Steps of three days: no two changes lie nearer than 6.9 days.
fn changes_of(zone: Tz) -> Vec<Change> {
    const STEP: i64 = 3 * 86_400;
    let end = "2038-01-01T00:00:00Z".parse::<DateTime<Utc>>().expect("a date").timestamp();
    let mut changes = Vec::new();
    let mut before = offset(zone, 0);
    for start in (0..end).step_by(STEP as usize) {
        let after = offset(zone, start + STEP);
        if after != before {
            let at = first(start, start + STEP, |at| offset(zone, at) != before);
            changes.push(Change {
                at: at * SECOND,
                before: before * SECOND,
                after: after * SECOND,
            });
            before = after;
        }
    }
    changes
}

/// The first second behind `from` that is changed; `until` is.
fn first(mut from: i64, mut until: i64, changed: impl Fn(i64) -> bool) -> i64 {
    while until - from > 1 {
        let middle = i64::midpoint(from, until);
        if changed(middle) {
            until = middle;
        } else {
            from = middle;
        }
    }
    until
}

fn offset(zone: Tz, seconds: i64) -> i64 {
    let utc = DateTime::from_timestamp(seconds, 0).expect("in range").naive_utc();
    i64::from(zone.offset_from_utc_datetime(&utc).fix().local_minus_utc())
}

/// How a server makes a `datetime` of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    Nearest,
    Cut,
}

impl Rounding {
    pub(super) const BOTH: [Self; 2] = [Self::Nearest, Self::Cut];

    /// The reading of a clock that shows `local` microseconds since 1970-01-01 00:00.
    pub(super) fn reading(self, local: i64) -> ServerTime {
        let wall = DateTime::from_timestamp_micros(local).expect("in range").naive_utc();
        match self {
            Self::Nearest => ServerTime::nearest(wall),
            Self::Cut => ServerTime::floor(wall),
        }
    }

    /// A moment as the ticks of the clock can tell it, cut to the microsecond.
    pub(super) fn ticked(self, moment: i64) -> i64 {
        self.reading(moment).local_micros()
    }

    /// The furthest that a reading is ahead of its moment, in microseconds.
    pub(super) fn ahead(self) -> i64 {
        match self {
            Self::Nearest => 1_667,
            Self::Cut => 0,
        }
    }
}

/// The reading of `zone`'s clock at a moment.
pub(super) fn reading(zone: ServerZone, moment: i64, rounding: Rounding) -> ServerTime {
    rounding.reading(moment + zone.offset_micros(moment))
}

pub(super) fn utc(text: &str) -> Timestamp {
    text.parse::<DateTime<Utc>>().expect(text).into()
}

pub(super) fn local(text: &str) -> ServerTime {
    ServerTime::nearest(text.parse().expect(text))
}

pub(super) fn zone(name: &str) -> ServerZone {
    ServerZone::parse("zone", name).expect(name)
}

/// A zone that no database knows: up to five changes within days, minutes to two days apart, with
/// offsets to the second.
pub(super) fn invented() -> impl Strategy<Value = Vec<Stretch>> {
    let offset = prop_oneof![
        -86_399i64..=86_399,
        (-48i64..=48).prop_map(|halves| halves * 1_799),
        Just(0),
        Just(-3_600),
    ];
    let rest = prop::collection::vec((600i64..172_800, offset.clone()), 1..=5);
    (offset, rest).prop_map(|(first, rest)| {
        let begin = -30 * DAY;
        let mut list = vec![Stretch { from: begin, until: 0, offset: first * SECOND }];
        let mut at = 0;
        for (lasts, offset) in rest {
            if let Some(last) = list.last_mut() {
                last.until = at;
            }
            list.push(Stretch { from: at, until: at + 30 * DAY, offset: offset * SECOND });
            at += lasts * SECOND;
        }
        list.dedup_by(|next, kept| {
            let same = next.offset == kept.offset;
            if same {
                kept.until = next.until;
            }
            same
        });
        list
    })
}

/// The offset of an invented zone.
pub(super) fn invented_offset(list: &[Stretch], moment: i64) -> i64 {
    list.iter()
        .rfind(|stretch| stretch.from <= moment)
        .map_or(list[0].offset, |stretch| stretch.offset)
}

/// The furthest that an invented zone's clock is ever put back.
pub(super) fn invented_drop(list: &[Stretch]) -> i64 {
    list.iter()
        .enumerate()
        .flat_map(|(i, earlier)| list[i..].iter().map(move |later| earlier.offset - later.offset))
        .max()
        .unwrap_or(0)
}
