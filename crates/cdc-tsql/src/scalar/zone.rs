//! AT TIME ZONE: Windows zone names, the hour that comes twice and the hour that is skipped.

use std::cell::RefCell;

use cdc_core::{ServerZone, Timestamp};
use cdc_fake::{SqlError, SqlResult, Value};

use super::moment::{TICKS_A_MINUTE, Wall};

/// A microsecond in 100 ns.
const TICKS_A_MICRO: i64 = 10;
/// No zone changes twice within so many minutes of a moment.
const CHANGE_WINDOW_MINUTES: i64 = 24 * 60;

thread_local! {
    /// The zone of the last row: a query asks for the same one again and again.
    static LAST: RefCell<Option<(String, ServerZone)>> = const { RefCell::new(None) };
}

/// The zone of a Windows name, or `UTC`.
///
/// # Errors
/// 9820 for a name that Windows does not have; IANA names are among those.
fn named(name: &str) -> SqlResult<ServerZone> {
    let name = name.trim_end_matches(' ');
    let last = LAST.with_borrow(|last| {
        last.as_ref().filter(|(known, _)| known == name).map(|(_, zone)| *zone)
    });
    if let Some(zone) = last {
        return Ok(zone);
    }
    let zone = ServerZone::parse("time zone", name).ok().filter(|zone| {
        let is_iana = zone.iana().is_some_and(|iana| iana.name() == zone.to_string());
        !zone.is_fixed() && !is_iana
    });
    let zone = zone.ok_or_else(|| {
        SqlError::new(9820, "The time zone parameter provided to AT TIME ZONE clause is invalid.")
    })?;
    LAST.with_borrow_mut(|last| *last = Some((name.to_owned(), zone)));
    Ok(zone)
}

/// Minutes that the zone's clock is ahead of UTC at a moment.
fn offset_at(zone: ServerZone, utc: i64) -> i64 {
    let micros = utc.div_euclid(TICKS_A_MICRO);
    let wall = zone.wall(Timestamp::from_micros(micros));
    wall.map_or(0, |wall| (wall.and_utc().timestamp_micros() - micros).div_euclid(60_000_000))
}

/// The moment of a value in a zone. A wall clock without offset is one of the zone: a reading that
/// comes twice is the first one, a reading that is skipped is as much later as the clock jumps.
///
/// # Errors
/// 9820 for a zone that there is not.
pub(super) fn at_time_zone(wall: Wall, zone: &str) -> SqlResult<Value> {
    let zone = named(zone)?;
    let utc = match wall.offset {
        Some(_) => wall.utc(),
        None => {
            let window = CHANGE_WINDOW_MINUTES * TICKS_A_MINUTE;
            let before = offset_at(zone, wall.ticks.saturating_sub(window));
            let after = offset_at(zone, wall.ticks.saturating_add(window));
            let shows = |offset: i64| {
                let utc = wall.ticks.saturating_sub(offset * TICKS_A_MINUTE);
                (offset_at(zone, utc) == offset, utc)
            };
            match (shows(before), shows(after)) {
                ((true, utc), _) | ((false, _), (true, utc)) => utc,
                ((false, skipped), (false, _)) => skipped,
            }
        }
    };
    let offset_minutes = i16::try_from(offset_at(zone, utc)).unwrap_or_default();
    Ok(Value::DateTimeOffset { utc, offset_minutes })
}

#[cfg(test)]
mod tests {
    use cdc_core::SqlType;
    use proptest::prelude::*;

    use super::*;
    use crate::{
        relation::DateFormat,
        scalar::{date_read, date_text},
    };

    fn shown(text: &str, zone: &str) -> Result<String, i32> {
        let kind = SqlType::DateTimeOffset { scale: 0 };
        let varchar = SqlType::VarChar(cdc_core::Length::Max);
        let wall = date_read::read(text, &kind, 126, DateFormat::default(), &varchar).expect(text);
        let value = at_time_zone(wall, zone).map_err(|error| error.number)?;
        let wall = Wall::of(&value).expect("a moment");
        Ok(date_text::text(wall, &kind, 126).expect("a style"))
    }

    #[test]
    fn a_reading_gets_the_offset_that_the_documentation_shows() {
        let europe = "Central European Standard Time";
        for (text, zone, wanted) in [
            ("2015-03-29T01:01:00", europe, "2015-03-29T01:01:00+01:00"),
            // Skipped: an hour later, with the offset after the change.
            ("2015-03-29T02:01:00", europe, "2015-03-29T03:01:00+02:00"),
            ("2015-03-29T03:01:00", europe, "2015-03-29T03:01:00+02:00"),
            ("2015-10-25T01:01:00", europe, "2015-10-25T01:01:00+02:00"),
            // Twice: the offset before the change.
            ("2015-10-25T02:00:00", europe, "2015-10-25T02:00:00+02:00"),
            ("2015-10-25T03:01:00", europe, "2015-10-25T03:01:00+01:00"),
            ("2024-07-01T12:00:00", "pacific standard time", "2024-07-01T12:00:00-07:00"),
            ("2024-04-07T02:15:00", "Lord Howe Standard Time", "2024-04-07T02:15:00+10:30"),
            ("2024-10-06T02:10:00", "Lord Howe Standard Time", "2024-10-06T02:40:00+11:00"),
            ("2024-07-01T12:00:00", "India Standard Time", "2024-07-01T12:00:00+05:30"),
            ("2024-07-01T12:00:00", "UTC", "2024-07-01T12:00:00+00:00"),
            ("2024-07-01T12:00:00Z", europe, "2024-07-01T14:00:00+02:00"),
            ("2015-10-25T01:30:00Z", europe, "2015-10-25T02:30:00+01:00"),
            ("2015-10-25T00:30:00Z", europe, "2015-10-25T02:30:00+02:00"),
        ] {
            assert_eq!(shown(text, zone), Ok(wanted.into()), "{text} in {zone}");
        }
    }

    #[test]
    fn a_name_that_windows_does_not_have_is_refused() {
        for zone in ["Europe/Berlin", "", "CET", "UTC+01:00", "Martian Standard Time"] {
            assert_eq!(shown("2024-07-01T12:00:00", zone), Err(9820), "{zone}");
        }
    }

    proptest! {
        #[test]
        fn to_a_zone_and_back_is_the_same_moment(utc in 0..4_000_000_000_i64) {
            let utc = utc * 10_000_000;
            let moment = Wall { ticks: utc, offset: Some(0) };
            let there = at_time_zone(moment, "Eastern Standard Time").expect("a zone");
            let local = Wall::of(&there).expect("a moment");
            prop_assert_eq!(local.utc(), utc);
            // Without its offset the reading is the same moment, but for the second pass of an hour.
            let again = at_time_zone(Wall { offset: None, ..local }, "Eastern Standard Time");
            let Ok(Value::DateTimeOffset { utc: found, .. }) = again else { panic!("a moment") };
            prop_assert!(found == utc || utc - found == 36_000_000_000);
        }
    }
}
