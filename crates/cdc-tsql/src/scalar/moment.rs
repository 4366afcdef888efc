//! Dates and times: one form that all of SQL Server's types are read into and made from.

use cdc_core::{ServerTime, SqlType};
use cdc_fake::{SqlResult, Value};
use chrono::{Datelike, NaiveDate};

use super::error;

/// 100 ns in a second, a minute, a day.
pub(super) const TICKS_A_SECOND: i64 = 10_000_000;
pub(super) const TICKS_A_MINUTE: i64 = 60 * TICKS_A_SECOND;
pub(super) const TICKS_A_DAY: i64 = 864_000_000_000;
/// Days from 1970-01-01 to 0001-01-01, 1753-01-01, 1900-01-01, 2079-06-06 and 9999-12-31.
pub(super) const FIRST_DAY: i64 = -719_162;
const FIRST_OLD_DAY: i64 = -79_257;
pub(super) const DAY_1900: i64 = -25_567;
const LAST_SMALL_DAY: i64 = 39_968;
pub(super) const LAST_DAY: i64 = 2_932_896;
/// Ticks of `datetime`, 1/300 s, in a day.
pub(super) const OLD_TICKS_A_DAY: i64 = 25_920_000;

/// A date with a time of day on some wall clock, and how far that clock is ahead of UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wall {
    /// 100 ns since 1970-01-01 00:00 on the wall clock.
    pub(super) ticks: i64,
    /// Minutes ahead of UTC, of a value that has an offset.
    pub(super) offset: Option<i16>,
}

/// The parts of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i32,
    pub(super) month: u32,
    pub(super) day: u32,
}

/// The days since 1970-01-01 of a date; none when there is no such date between 0001 and 9999.
pub(super) fn days_of(year: i32, month: u32, day: u32) -> Option<i64> {
    if !(1..=9999).contains(&year) {
        return None;
    }
    let date = NaiveDate::from_ymd_opt(year, month, day)?;
    Some(i64::from(date.num_days_from_ce()) - 719_163)
}

/// The date that lies so many days after 1970-01-01; the first date for one out of range.
pub(super) fn date_of(days: i64) -> Date {
    let found = i32::try_from(days + 719_163).ok().and_then(NaiveDate::from_num_days_from_ce_opt);
    let date = found.unwrap_or_default();
    Date { year: date.year(), month: date.month(), day: date.day() }
}

/// Days in a month.
pub(super) fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

impl Wall {
    /// A date at midnight.
    pub(super) const fn midnight(days: i64) -> Self {
        Self { ticks: days.saturating_mul(TICKS_A_DAY), offset: None }
    }

    /// Days since 1970-01-01.
    pub(super) const fn days(self) -> i64 {
        self.ticks.div_euclid(TICKS_A_DAY)
    }

    /// 100 ns since midnight.
    pub(super) const fn time(self) -> i64 {
        self.ticks.rem_euclid(TICKS_A_DAY)
    }

    pub(super) fn date(self) -> Date {
        date_of(self.days())
    }

    /// The same moment in UTC, for a wall clock without offset the reading itself.
    pub(super) fn utc(self) -> i64 {
        self.ticks - i64::from(self.offset.unwrap_or_default()) * TICKS_A_MINUTE
    }

    /// A value of any date or time type; a `time` is on 1900-01-01. None for other values.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let plain = |ticks| Some(Self { ticks, offset: None });
        match value {
            Value::Date(days) => Some(Self::midnight(i64::from(*days))),
            Value::DateTime(time) => plain(old_to_ticks(time.as_ticks())),
            Value::DateTime2(ticks) => plain(*ticks),
            Value::Time(ticks) => plain(DAY_1900 * TICKS_A_DAY + *ticks),
            Value::DateTimeOffset { utc, offset_minutes } => Some(Self {
                ticks: utc.saturating_add(i64::from(*offset_minutes) * TICKS_A_MINUTE),
                offset: Some(*offset_minutes),
            }),
            _ => None,
        }
    }

    /// The value of a date or time type, rounded to its precision.
    ///
    /// # Errors
    /// 242 when the type does not reach the date; `from` names the type in the message.
    pub(super) fn stored(self, to: &SqlType, from: &SqlType) -> SqlResult<Value> {
        use SqlType as T;
        let out_of_range = || error::date_out_of_range(from, to);
        let within = |days: i64, first: i64, last: i64| {
            if (first..=last).contains(&days) { Ok(()) } else { Err(out_of_range()) }
        };
        match to {
            T::Date => {
                within(self.days(), FIRST_DAY, LAST_DAY)?;
                i32::try_from(self.days()).map(Value::Date).map_err(|_| out_of_range())
            }
            T::DateTime => {
                let ticks = ticks_to_old(self.ticks);
                let days = ticks.div_euclid(OLD_TICKS_A_DAY) + DAY_1900;
                within(days, FIRST_OLD_DAY, LAST_DAY)?;
                Ok(Value::DateTime(ServerTime::from_ticks(ticks)))
            }
            T::SmallDateTime => {
                // By way of datetime's ticks: 29.999 s is half a minute there.
                let ticks = rounded(old_to_ticks(ticks_to_old(self.ticks)), TICKS_A_MINUTE);
                within(ticks.div_euclid(TICKS_A_DAY), DAY_1900, LAST_SMALL_DAY)?;
                Ok(Value::DateTime2(ticks))
            }
            T::DateTime2 { scale } => {
                let ticks = rounded_within(self.ticks, *scale);
                within(ticks.div_euclid(TICKS_A_DAY), FIRST_DAY, LAST_DAY)?;
                Ok(Value::DateTime2(ticks))
            }
            T::DateTimeOffset { scale } => {
                let utc = rounded_within(self.utc(), *scale);
                within(utc.div_euclid(TICKS_A_DAY), FIRST_DAY, LAST_DAY)?;
                Ok(Value::DateTimeOffset { utc, offset_minutes: self.offset.unwrap_or_default() })
            }
            T::Time { scale } => {
                let ticks = rounded(self.time(), unit(*scale));
                Ok(Value::Time(ticks.min(TICKS_A_DAY - unit(*scale))))
            }
            _ => Err(error::clash(from, to)),
        }
    }
}

/// 100 ns in the least step of a type with `scale` fractional digits.
pub(super) fn unit(scale: u8) -> i64 {
    10_i64.pow(u32::from(7_u8.saturating_sub(scale)))
}

/// To the nearest step, half up.
pub(super) fn rounded(ticks: i64, step: i64) -> i64 {
    ticks.saturating_add(step / 2).div_euclid(step).saturating_mul(step)
}

/// To the nearest step of a scale, but the last moments of 9999 do not round into a year that is
/// not there.
fn rounded_within(ticks: i64, scale: u8) -> i64 {
    let step = unit(scale);
    let nearest = rounded(ticks, step);
    if nearest.div_euclid(TICKS_A_DAY) > LAST_DAY {
        return ticks.div_euclid(step).saturating_mul(step);
    }
    nearest
}

/// 1/300 s since 1900 as 100 ns since 1970, to the nearest.
pub(super) fn old_to_ticks(old: i64) -> i64 {
    let ticks = i128::from(old) * 100_000;
    let nearest = (ticks + 1).div_euclid(3);
    i64::try_from(nearest).unwrap_or(i64::MAX).saturating_add(DAY_1900 * TICKS_A_DAY)
}

/// 100 ns since 1970 as 1/300 s since 1900, to the nearest.
pub(super) fn ticks_to_old(ticks: i64) -> i64 {
    let since_1900 = i128::from(ticks) - i128::from(DAY_1900 * TICKS_A_DAY);
    i64::try_from((since_1900 * 3 + 50_000).div_euclid(100_000)).unwrap_or(i64::MAX)
}

/// The digits of a second that a type shows.
pub(super) const fn scale_of(sql_type: &SqlType) -> u8 {
    match sql_type {
        SqlType::DateTime2 { scale }
        | SqlType::DateTimeOffset { scale }
        | SqlType::Time { scale } => *scale,
        SqlType::DateTime => 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn days_count_from_1970() {
        for (year, month, day, days) in [
            (1970, 1, 1, Some(0)),
            (1, 1, 1, Some(FIRST_DAY)),
            (1753, 1, 1, Some(FIRST_OLD_DAY)),
            (1900, 1, 1, Some(DAY_1900)),
            (2079, 6, 6, Some(LAST_SMALL_DAY)),
            (9999, 12, 31, Some(LAST_DAY)),
            (2023, 2, 29, None),
            (0, 1, 1, None),
            (10_000, 1, 1, None),
        ] {
            assert_eq!(days_of(year, month, day), days, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn a_moment_rounds_to_the_precision_of_its_type() {
        let ticks = |seconds: i64, fraction: i64| seconds * TICKS_A_SECOND + fraction;
        let from = SqlType::DateTime2 { scale: 7 };
        for (given, to, stored) in [
            // 29.999 s is the next minute, 29.998 is not, by way of datetime's ticks.
            (ticks(30, 0), SqlType::SmallDateTime, Value::DateTime2(TICKS_A_MINUTE)),
            (ticks(29, 9_990_000), SqlType::SmallDateTime, Value::DateTime2(TICKS_A_MINUTE)),
            (ticks(29, 9_980_000), SqlType::SmallDateTime, Value::DateTime2(0)),
            (
                ticks(1, 1_234_567),
                SqlType::DateTime2 { scale: 3 },
                Value::DateTime2(ticks(1, 1_230_000)),
            ),
            (
                ticks(1, 1_235_000),
                SqlType::DateTime2 { scale: 3 },
                Value::DateTime2(ticks(1, 1_240_000)),
            ),
            (ticks(0, 9_999_999), SqlType::Time { scale: 0 }, Value::Time(TICKS_A_SECOND)),
            (
                ticks(86_399, 9_999_999),
                SqlType::Time { scale: 0 },
                Value::Time(TICKS_A_DAY - TICKS_A_SECOND),
            ),
            (ticks(86_399, 9_999_999), SqlType::Date, Value::Date(0)),
        ] {
            let wall = Wall { ticks: given, offset: None };
            assert_eq!(wall.stored(&to, &from), Ok(stored), "{given} as {to}");
        }
    }

    #[test]
    fn a_type_refuses_dates_that_it_does_not_reach() {
        let from = SqlType::DateTime2 { scale: 7 };
        for (year, to) in [
            (1752, SqlType::DateTime),
            (1899, SqlType::SmallDateTime),
            (2080, SqlType::SmallDateTime),
        ] {
            let wall = Wall::midnight(days_of(year, 1, 1).expect("a date"));
            assert_eq!(wall.stored(&to, &from).expect_err("out of range").number, 242);
        }
    }

    proptest! {
        #[test]
        fn a_datetime_comes_back_from_its_100_nanoseconds(old in -1_391_904_000_000_i64..76_756_032_000_000) {
            prop_assert_eq!(ticks_to_old(old_to_ticks(old)), old);
            let ms = rounded(old_to_ticks(old), 10_000).rem_euclid(TICKS_A_SECOND) / 10_000;
            prop_assert!([0, 3, 7].contains(&(ms % 10)), "{}", ms);
        }

        #[test]
        fn a_date_comes_back_from_its_days(days in FIRST_DAY..=LAST_DAY) {
            let date = date_of(days);
            prop_assert_eq!(days_of(date.year, date.month, date.day), Some(days));
            prop_assert!(date.day <= days_in_month(date.year, date.month));
        }
    }
}
