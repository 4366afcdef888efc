//! Moments: UTC as the tables store it, the zoneless `datetime` of the server's clock, and the
//! rules between the two.
//!
//! * [`ServerZone`] is the zone of the server's clock.
//! * [`CommitClock`] turns the readings of the mapping into UTC, in LSN order; [`lookback`] says
//!   which rows it needs for a single LSN.
//! * [`lookup_argument`] turns a moment in UTC into the argument of a look-up in the mapping.
//!
//! Every rule rests on one relation: moment `u` and reading `r` belong together when `r - u` is the
//! zone's offset at `u`. The server rounds a reading to its tick, up to 1/600 s forward. Offsets
//! and their changes are whole seconds, so rounding happens on the same ticks in UTC and in local
//! time, and "the true time" of a commit below is its time in UTC rounded to that tick. A moment
//! just ahead of a change may be rounded up to the change itself; a stretch of one offset therefore
//! holds both of its ends.

mod commit_clock;
#[cfg(test)]
mod history;
mod lookup;
mod transition;
pub mod windows_zone;
mod zone;

use std::fmt;

pub use commit_clock::{ClockDoubts, CommitClock, ORDER_SLACK_MICROS};
pub use lookup::{lookback, lookup_argument};
pub use zone::ServerZone;

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, Utc};

/// A moment in UTC, in microseconds since 1970-01-01, as Delta's `timestamp_ntz` columns hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A moment from its microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The moment as a [`DateTime`], when it lies in chrono's range.
    #[must_use]
    pub fn to_datetime(self) -> Option<DateTime<Utc>> {
        DateTime::from_timestamp_micros(self.0)
    }

    /// Microseconds from `earlier` to this moment; negative when it is the other way round.
    #[must_use]
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The moment `micros` later.
    #[must_use]
    pub const fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

impl From<DateTime<Utc>> for Timestamp {
    /// Cuts below the microsecond; a moment is never moved forward.
    fn from(moment: DateTime<Utc>) -> Self {
        Self(moment.timestamp_micros())
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_datetime() {
            Some(moment) => f.write_str(&moment.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            None => write!(f, "{}us", self.0),
        }
    }
}

/// A reading of the server's clock as `cdc.lsn_time_mapping` stores it: SQL Server's `datetime`,
/// ticks of 1/300 s since 1900-01-01 00:00, without a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerTime(i64);

impl ServerTime {
    /// Ticks of `datetime` in a second.
    pub const TICKS_A_SECOND: i64 = 300;

    /// A reading from its ticks of 1/300 s since 1900-01-01 00:00.
    #[must_use]
    pub const fn from_ticks(ticks: i64) -> Self {
        Self(ticks)
    }

    /// Ticks of 1/300 s since 1900-01-01 00:00.
    #[must_use]
    pub const fn as_ticks(self) -> i64 {
        self.0
    }

    /// Seconds since an earlier reading of the same clock, rounded down.
    #[must_use]
    pub const fn seconds_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0).div_euclid(Self::TICKS_A_SECOND)
    }

    /// The reading that the server stores for a wall-clock time: the nearest tick, as a
    /// conversion to `datetime` rounds. It may lie up to 1/600 s ahead of `wall`.
    #[must_use]
    pub fn nearest(wall: NaiveDateTime) -> Self {
        let micros =
            wall.signed_duration_since(Self::base()).num_microseconds().unwrap_or(i64::MAX);
        // ticks = micros * 3 / 10000, to the nearest.
        Self(micros.saturating_mul(3).saturating_add(5_000).div_euclid(10_000))
    }

    /// The latest reading that is not after a wall-clock time.
    #[must_use]
    pub fn floor(wall: NaiveDateTime) -> Self {
        let micros =
            wall.signed_duration_since(Self::base()).num_microseconds().unwrap_or(i64::MAX);
        Self(micros.saturating_mul(3).div_euclid(10_000))
    }

    /// The wall-clock time of the reading, cut to the microsecond: never ahead of it.
    #[must_use]
    pub fn wall(self) -> Option<NaiveDateTime> {
        let micros = self.0.checked_mul(10_000)?.div_euclid(3);
        Self::base().checked_add_signed(TimeDelta::microseconds(micros))
    }

    /// The reading as microseconds since 1970-01-01 00:00 on the same clock, cut to the
    /// microsecond.
    pub(crate) const fn local_micros(self) -> i64 {
        self.0.saturating_mul(10_000).div_euclid(3).saturating_sub(Self::BASE_TO_1970_MICROS)
    }

    /// The latest reading that is not after `local` microseconds since 1970-01-01 00:00.
    pub(crate) const fn floor_local_micros(local: i64) -> Self {
        Self(local.saturating_add(Self::BASE_TO_1970_MICROS).saturating_mul(3).div_euclid(10_000))
    }

    /// 25,567 days lie between 1900-01-01 and 1970-01-01.
    const BASE_TO_1970_MICROS: i64 = 25_567 * 86_400 * 1_000_000;

    fn base() -> NaiveDateTime {
        NaiveDate::from_ymd_opt(1900, 1, 1).unwrap_or_default().and_time(chrono::NaiveTime::MIN)
    }
}

impl fmt::Display for ServerTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.wall() {
            Some(wall) => write!(f, "{}", wall.format("%Y-%m-%dT%H:%M:%S%.6f")),
            None => write!(f, "{} ticks", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wall(text: &str) -> NaiveDateTime {
        text.parse().expect(text)
    }

    #[test]
    fn a_datetime_has_the_ticks_of_the_server() {
        for (given, stored) in [
            ("2026-11-01T01:30:00.000", "2026-11-01T01:30:00.000000"),
            ("2026-11-01T01:30:00.001", "2026-11-01T01:30:00.000000"),
            ("2026-11-01T01:30:00.002", "2026-11-01T01:30:00.003333"),
            ("2026-11-01T01:30:00.005", "2026-11-01T01:30:00.006666"),
            ("2026-11-01T01:30:00.999", "2026-11-01T01:30:01.000000"),
            ("1899-12-31T23:59:59.998", "1899-12-31T23:59:59.996666"),
        ] {
            assert_eq!(ServerTime::nearest(wall(given)).to_string(), stored, "{given}");
        }
    }

    proptest! {
        #[test]
        fn microseconds_of_the_same_clock_agree_with_its_wall_time(ticks in -40_000_000_000i64..1_000_000_000_000) {
            let reading = ServerTime::from_ticks(ticks);
            let wall = reading.wall().expect("in range");
            prop_assert_eq!(reading.local_micros(), wall.and_utc().timestamp_micros());
            prop_assert_eq!(ServerTime::floor_local_micros(reading.local_micros()), ServerTime::floor(wall));
        }

        #[test]
        fn rounding_down_never_goes_forward(micros in -4_000_000_000_000_000i64..4_000_000_000_000_000) {
            let given = DateTime::from_timestamp_micros(micros).expect("in range").naive_utc();
            let floor = ServerTime::floor(given);
            prop_assert!(floor.wall().expect("in range") <= given);
            prop_assert!(ServerTime::from_ticks(floor.as_ticks() + 1).wall().expect("in range") >= given);
            prop_assert_eq!(ServerTime::floor(floor.wall().expect("in range") + TimeDelta::microseconds(1)), floor);
        }

        #[test]
        fn a_stored_reading_is_at_most_half_a_tick_off(micros in 0i64..4_000_000_000_000_000) {
            let given = DateTime::from_timestamp_micros(micros).expect("in range").naive_utc();
            let off = ServerTime::nearest(given).wall().expect("in range") - given;
            prop_assert!(off.num_microseconds().expect("small").abs() <= 1_667);
        }
    }
}
