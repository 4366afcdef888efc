//! The zone of the server's clock: how a setting names it, and which offset it has when.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::{TZ_VARIANTS, Tz};

use super::{ServerTime, Timestamp, transition::SECOND, windows_zone};
use crate::{Error, ErrorKind, Result};

/// The zone of the server's clock.
///
/// Named zones follow the IANA database that is compiled in. A Windows server follows its own
/// tables, which agree with it for changes of the last years as far as its updates are installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerZone(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Utc,
    /// Minutes east of UTC.
    Fixed(i16),
    Iana(Tz),
    Windows(&'static str, Tz),
}

/// The greatest offset of SQL Server's `datetimeoffset`, in minutes.
const FIXED_LIMIT_MINUTES: i16 = 14 * 60;

/// Longer texts are no zone name and get no suggestion; the longest known name has 32 characters.
const NAME_LIMIT: usize = 64;

impl ServerZone {
    /// A server whose clock shows UTC.
    pub const UTC: Self = Self(Kind::Utc);

    /// The zone that a setting names: an IANA name (`America/Sao_Paulo`), a Windows name
    /// (`E. South America Standard Time`), or `UTC`, in any case; or, opting into an offset that
    /// never changes, `UTC-03:00`, with sign, hours and minutes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] names the setting, and the nearest name that is known.
    pub fn parse(setting: &str, text: &str) -> Result<Self> {
        if text.eq_ignore_ascii_case("UTC") {
            return Ok(Self::UTC);
        }
        if let Some(minutes) = fixed_minutes(text) {
            return Self::fixed(minutes).map_err(|error| error.with("setting", setting));
        }
        if let Some((name, zone)) = windows_zone::find(text) {
            return Ok(Self(Kind::Windows(name, zone)));
        }
        if let Some(zone) = TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(text)) {
            return Ok(Self(Kind::Iana(*zone)));
        }
        Err(unknown(setting, text))
    }

    /// A clock that is always `minutes` east of UTC. Right only for a server without summer time,
    /// so nothing takes it unless it is asked for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] when the offset is more than 14 hours.
    pub fn fixed(minutes: i16) -> Result<Self> {
        if (-FIXED_LIMIT_MINUTES..=FIXED_LIMIT_MINUTES).contains(&minutes) {
            return Ok(Self(Kind::Fixed(minutes)));
        }
        Err(Error::new(ErrorKind::Config, "offset of the server's clock is more than 14 hours")
            .with("minutes", minutes)
            .remedy("give an offset from UTC-14:00 to UTC+14:00, or the name of the zone"))
    }

    /// Whether the offset was opted into and does not follow any change of the server's clock.
    #[must_use]
    pub const fn is_fixed(self) -> bool {
        matches!(self.0, Kind::Fixed(_))
    }

    /// The IANA zone behind the name; `None` for UTC and a fixed offset.
    #[must_use]
    pub const fn iana(self) -> Option<Tz> {
        match self.0 {
            Kind::Iana(zone) | Kind::Windows(_, zone) => Some(zone),
            Kind::Utc | Kind::Fixed(_) => None,
        }
    }

    /// What the server's clock shows at a moment, when it lies in chrono's range.
    #[must_use]
    pub fn wall(self, moment: Timestamp) -> Option<NaiveDateTime> {
        let offset = TimeDelta::microseconds(self.offset_micros(moment.as_micros()));
        moment.to_datetime()?.naive_utc().checked_add_signed(offset)
    }

    /// The reading that the server stores for a moment: what its clock shows, to the nearest tick.
    #[must_use]
    pub fn reading(self, moment: Timestamp) -> Option<ServerTime> {
        self.wall(moment).map(ServerTime::nearest)
    }

    /// Local time less UTC at a moment in UTC; microseconds both.
    pub(super) fn offset_micros(self, moment: i64) -> i64 {
        match self.0 {
            Kind::Utc => 0,
            Kind::Fixed(minutes) => i64::from(minutes) * 60 * SECOND,
            Kind::Iana(zone) | Kind::Windows(_, zone) => {
                // Beyond chrono's range the offset is the one at its end.
                let utc = DateTime::from_timestamp_micros(moment).unwrap_or(if moment < 0 {
                    DateTime::<chrono::Utc>::MIN_UTC
                } else {
                    DateTime::<chrono::Utc>::MAX_UTC
                });
                let offset = zone.offset_from_utc_datetime(&utc.naive_utc());
                i64::from(offset.fix().local_minus_utc()) * SECOND
            }
        }
    }
}

impl fmt::Display for ServerZone {
    /// The name in the spelling that [`ServerZone::parse`] reads back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::Utc => f.write_str("UTC"),
            Kind::Fixed(minutes) => {
                let sign = if minutes < 0 { '-' } else { '+' };
                let minutes = minutes.unsigned_abs();
                write!(f, "UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
            Kind::Iana(zone) => f.write_str(zone.name()),
            Kind::Windows(name, _) => f.write_str(name),
        }
    }
}

/// The minutes of `UTC+hh:mm`, exactly so spelled. (`UTC-11` and its like are Windows names.)
fn fixed_minutes(text: &str) -> Option<i16> {
    let prefix = text.get(..3)?;
    let (hours, minutes) = text.get(4..)?.split_once(':')?;
    let two_digits = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
    if !prefix.eq_ignore_ascii_case("UTC") || !two_digits(hours) || !two_digits(minutes) {
        return None;
    }
    let (hours, minutes): (i16, i16) = (hours.parse().ok()?, minutes.parse().ok()?);
    if minutes > 59 {
        return None;
    }
    match text.get(3..4)? {
        "+" => Some(hours * 60 + minutes),
        "-" => Some(-(hours * 60 + minutes)),
        _ => None,
    }
}

fn unknown(setting: &str, text: &str) -> Error {
    let shown: String = text.chars().take(NAME_LIMIT).collect();
    let error = Error::new(ErrorKind::Config, "unknown time zone of the server")
        .with("setting", setting)
        .with("value", format_args!("{shown:?}"));
    match nearest(text) {
        Some(name) => error.remedy(format!("did you mean {name:?}?")),
        None => error.remedy(
            "give an IANA name such as \"America/Sao_Paulo\", a Windows name such as \
             \"E. South America Standard Time\", \"UTC\", or, for a clock that never changes, an \
             offset such as \"UTC-03:00\"",
        ),
    }
}

/// The known name nearest to a mistyped one, when it is near enough to be meant.
fn nearest(text: &str) -> Option<String> {
    if text.chars().count() > NAME_LIMIT {
        return None;
    }
    if let Some(offset) = meant_offset(text) {
        return Some(offset.to_string());
    }
    let typed = plain(text);
    let limit = 1 + typed.len() / 6;
    let windows = windows_zone::names().map(|(name, _)| name);
    let iana = TZ_VARIANTS.iter().map(|zone| zone.name());
    windows
        .chain(iana)
        .map(|name| {
            let whole = distance(&typed, &plain(name));
            // "New York" means America/New_York.
            let city = name.rsplit('/').next().unwrap_or(name);
            (whole.min(distance(&typed, &plain(city))), whole, name)
        })
        .min()
        .filter(|(distance, _, _)| *distance <= limit)
        .map(|(_, _, name)| name.to_owned())
}

/// An offset in another spelling: `-03:00`, `GMT-3`, `UTC-3`.
fn meant_offset(text: &str) -> Option<ServerZone> {
    let upper = text.trim().to_ascii_uppercase();
    let rest =
        upper.strip_prefix("UTC").or_else(|| upper.strip_prefix("GMT")).unwrap_or(&upper).trim();
    let sign = rest.get(..1).filter(|sign| matches!(*sign, "+" | "-"))?;
    let (hours, minutes) = match rest.get(1..)?.split_once(':') {
        Some(parts) => parts,
        None => (rest.get(1..)?, "00"),
    };
    let minutes = fixed_minutes(&format!("UTC{sign}{hours:0>2}:{minutes}"))?;
    ServerZone::fixed(minutes).ok()
}

/// A name without what is easily mistaken in it.
fn plain(name: &str) -> Vec<char> {
    name.trim().chars().map(|c| if c == '_' { ' ' } else { c.to_ascii_lowercase() }).collect()
}

/// How many characters must be put in, left out or replaced to make one name of the other.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (done, a) in from.iter().enumerate() {
        let mut diagonal = done;
        let mut left = done + 1;
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (cell, b) in row.iter_mut().skip(1).zip(to) {
            let replaced = diagonal + usize::from(a != b);
            diagonal = *cell;
            left = replaced.min(*cell + 1).min(left + 1);
            *cell = left;
        }
    }
    row.last().copied().unwrap_or(from.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ServerZone> {
        ServerZone::parse("source.time_zone", text)
    }

    #[test]
    fn every_name_is_given_back_and_read_again() {
        for name in [
            "UTC",
            "UTC-03:00",
            "UTC+05:45",
            "UTC+00:00",
            "UTC-11",
            "America/Sao_Paulo",
            "E. South America Standard Time",
            "Etc/GMT+3",
        ] {
            let zone = parse(name).expect(name);
            assert_eq!(zone.to_string(), name);
            assert_eq!(parse(&name.to_lowercase()).expect(name), zone);
        }
        for zone in TZ_VARIANTS {
            let parsed = parse(zone.name()).expect("a known name");
            assert!(parsed == ServerZone::UTC || parsed.iana() == Some(zone));
        }
    }

    #[test]
    fn a_windows_name_and_its_iana_name_are_one_zone() {
        let windows = parse("E. South America Standard Time").expect("known");
        assert_eq!(windows.iana(), Some(Tz::America__Sao_Paulo));
        assert_eq!(parse("UTC-11").expect("known").iana(), Some(Tz::Etc__GMTPlus11));
    }

    #[test]
    fn only_the_spelled_out_offset_opts_into_a_fixed_one() {
        assert!(parse("UTC-03:00").expect("an offset").is_fixed());
        assert!(!parse("Etc/GMT+3").expect("a name").is_fixed());
        for text in ["-03:00", "UTC-3", "UTC -03:00", "GMT-03:00", "UTC-03", "-3"] {
            let error = parse(text).expect_err(text);
            assert_eq!(error.advice(), "did you mean \"UTC-03:00\"?", "{text}");
        }
        for text in ["UTC-3:0", "UTC-03:60", "UTC--3:00", "UTC+99", "UTC-03:00 ", "UTC−03:00"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_offset_beyond_fourteen_hours_is_refused() {
        assert!(ServerZone::fixed(14 * 60).is_ok());
        let error = parse("UTC+14:01").expect_err("too far");
        assert_eq!(error.kind(), ErrorKind::Config);
        assert_eq!(error.context("setting"), Some("source.time_zone"));
        assert!(ServerZone::fixed(i16::MIN).is_err());
    }

    #[test]
    fn an_unknown_zone_is_an_error_with_the_setting_and_the_nearest_name() {
        for (typed, meant) in [
            ("America/Sao_Paolo", "America/Sao_Paulo"),
            ("Sao Paulo", "America/Sao_Paulo"),
            ("new york", "America/New_York"),
            ("E. South America Standart Time", "E. South America Standard Time"),
            ("Europe/Berlin ", "Europe/Berlin"),
            ("W Europe Standard Time", "W. Europe Standard Time"),
        ] {
            let error = parse(typed).expect_err(typed);
            assert_eq!(error.kind(), ErrorKind::Config);
            assert_eq!(error.context("setting"), Some("source.time_zone"));
            assert_eq!(error.advice(), format!("did you mean {meant:?}?"));
        }
        for text in ["", "nowhere near a zone", "\u{1F552}\u{1F552}", &"x".repeat(10_000)] {
            let error = parse(text).expect_err("unknown");
            assert!(error.advice().contains("IANA"), "{}", error.advice());
            assert!(error.report().len() < 300);
        }
    }

    #[test]
    fn the_clock_shows_the_offset_of_the_moment() {
        let berlin = parse("Europe/Berlin").expect("known");
        let at = |text: &str| {
            let utc: DateTime<chrono::Utc> = text.parse().expect(text);
            berlin.wall(utc.into()).expect("in range").to_string()
        };
        assert_eq!(at("2025-10-26T00:59:59Z"), "2025-10-26 02:59:59");
        assert_eq!(at("2025-10-26T01:00:00Z"), "2025-10-26 02:00:00");
        let moment = Timestamp::from_micros(1_666);
        let tick = ServerZone::UTC.reading(moment).expect("in range");
        assert_eq!(tick.wall().expect("in range"), DateTime::UNIX_EPOCH.naive_utc());
    }

    #[test]
    fn moments_beyond_the_calendar_still_have_an_offset() {
        let zone = parse("America/New_York").expect("known");
        assert_eq!(zone.offset_micros(i64::MAX), zone.offset_micros(i64::MAX / 2));
        assert_eq!(zone.offset_micros(i64::MIN), zone.offset_micros(i64::MIN / 2));
        assert_eq!(zone.wall(Timestamp::from_micros(i64::MAX)), None);
    }
}
