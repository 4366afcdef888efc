//! The time zone that the server's own clock shows.

use cdc_core::{ServerTime, Timestamp};
use chrono::{DateTime, FixedOffset, Offset, TimeDelta, TimeZone, Utc};

/// The zone of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// A zone with its history of offsets.
    Named(chrono_tz::Tz),
    /// A constant offset east of UTC.
    Fixed(FixedOffset),
    /// A zone whose changes the server's clock makes so many seconds early, as when an operator
    /// puts it forward by hand. It shows times that the zone skips.
    Early(chrono_tz::Tz, u16),
}

impl Zone {
    /// UTC.
    pub const UTC: Self = Self::Named(chrono_tz::UTC);

    /// What the server's clock shows at `moment`, to the nearest `datetime` tick.
    #[must_use]
    pub fn reading(self, moment: Timestamp) -> ServerTime {
        let utc = moment.to_datetime().unwrap_or(DateTime::<Utc>::MAX_UTC);
        let offset = match self {
            Self::Named(zone) => zone.offset_from_utc_datetime(&utc.naive_utc()).fix(),
            Self::Fixed(offset) => offset,
            Self::Early(zone, seconds) => {
                let known = utc.naive_utc() + TimeDelta::seconds(seconds.into());
                zone.offset_from_utc_datetime(&known).fix()
            }
        };
        ServerTime::nearest(utc.naive_utc() + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_shows_an_hour_twice_when_it_falls_back() {
        let zone = Zone::Named(chrono_tz::America::New_York);
        let show = |text: &str| {
            let moment: DateTime<Utc> = text.parse().expect(text);
            zone.reading(moment.into()).to_string()
        };
        assert_eq!(show("2026-11-01T05:30:00Z"), "2026-11-01T01:30:00.000000");
        assert_eq!(show("2026-11-01T06:30:00Z"), "2026-11-01T01:30:00.000000");
        assert_eq!(show("2026-11-01T07:00:00.0017Z"), "2026-11-01T02:00:00.003333");
    }

    #[test]
    fn an_early_clock_shows_times_that_the_zone_skips() {
        let zone = Zone::Early(chrono_tz::America::New_York, 30);
        let show = |text: &str| {
            let moment: DateTime<Utc> = text.parse().expect(text);
            zone.reading(moment.into()).to_string()
        };
        assert_eq!(show("2026-03-08T06:59:29Z"), "2026-03-08T01:59:29.000000");
        assert_eq!(show("2026-03-08T06:59:30Z"), "2026-03-08T02:59:30.000000");
        assert_eq!(show("2026-03-08T07:00:10Z"), "2026-03-08T03:00:10.000000");
        assert_eq!(show("2026-11-01T05:59:40Z"), "2026-11-01T00:59:40.000000");
    }
}
