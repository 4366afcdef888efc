//! The Windows name of a zone: what the server answers when asked for its own.

use cdc_core::time::windows_zone::names;
use chrono::{DateTime, Offset as _, TimeZone as _};
use chrono_tz::Tz;

/// Seconds between two looks at a zone's offset, and how many there are: a look a week for two
/// years finds every zone that changes its clock alike.
const WEEK: i64 = 7 * 86_400;
const WEEKS: i64 = 104;

/// The Windows name of an IANA zone: of the zone itself where the table has it, else of one that
/// shows the same clock around `utc_seconds`; `UTC` when there is none.
pub(super) fn windows_name(zone: Tz, utc_seconds: i64) -> &'static str {
    if matches!(zone, Tz::UTC | Tz::Etc__UTC | Tz::Etc__UCT | Tz::UCT | Tz::Zulu | Tz::Etc__Zulu) {
        return "UTC";
    }
    if let Some((windows, _)) = names().find(|(_, iana)| *iana == zone.name()) {
        return windows;
    }
    let offset = |zone: Tz, week: i64| {
        let moment = DateTime::from_timestamp(utc_seconds - week * WEEK, 0).unwrap_or_default();
        zone.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc()
    };
    let alike = |iana: &str| {
        iana.parse::<Tz>()
            .is_ok_and(|other| (0..WEEKS).all(|week| offset(zone, week) == offset(other, week)))
    };
    names().find(|(_, iana)| alike(iana)).map_or("UTC", |(windows, _)| windows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_has_its_windows_name_or_that_of_one_with_the_same_clock() {
        let now = 1_760_000_000;
        assert_eq!(windows_name(Tz::UTC, now), "UTC");
        assert_eq!(windows_name(Tz::America__Sao_Paulo, now), "E. South America Standard Time");
        assert_eq!(windows_name(Tz::Europe__Berlin, now), "W. Europe Standard Time");
        assert_eq!(windows_name(Tz::America__New_York, now), "Eastern Standard Time");
        // Not in the table: Vienna's clock is Berlin's.
        assert!(windows_name(Tz::Europe__Vienna, now).ends_with("Europe Standard Time"));
    }
}
