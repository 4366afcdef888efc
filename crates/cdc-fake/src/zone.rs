//! The time zone that the server's own clock shows.

use cdc_core::{ServerTime, Timestamp};
use chrono::{DateTime, FixedOffset, Offset, TimeZone, Utc};

/// The zone of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// A zone with its history of offsets.
    Named(chrono_tz::Tz),
    /// A constant offset east of UTC.
    Fixed(FixedOffset),
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
}
