//! Functions that count with dates: parts, differences, sums, truncation.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};
use chrono::{Datelike, NaiveDate};

use super::{Call, Definition, Signature, define};
use crate::{
    kind::Kind,
    scalar::{
        ArgumentKind,
        conversion::assign,
        date_text::{MONTHS, WEEKDAYS, offset_text},
        error,
        moment::{
            Date, TICKS_A_DAY, TICKS_A_MINUTE, TICKS_A_SECOND, Wall, days_in_month, days_of,
            rounded,
        },
        precedence::{Family, family},
    },
};

pub(super) const FUNCTIONS: &[Definition] = &[
    define("DATEADD", 3, 3, dateadd_kind, dateadd),
    define("DATEDIFF", 3, 3, |s| datediff_kind(s, SqlType::Int), |c| datediff(c, &SqlType::Int)),
    define(
        "DATEDIFF_BIG",
        3,
        3,
        |s| datediff_kind(s, SqlType::BigInt),
        |c| datediff(c, &SqlType::BigInt),
    ),
    define("DATEPART", 2, 2, datepart_kind, |call| datepart(call, part_argument(call)?)),
    define("DATENAME", 2, 2, datename_kind, datename),
    define("DATETRUNC", 2, 2, datetrunc_kind, datetrunc),
    define("YEAR", 1, 1, part_kind, |call| part_of(call, Part::Year)),
    define("MONTH", 1, 1, part_kind, |call| part_of(call, Part::Month)),
    define("DAY", 1, 1, part_kind, |call| part_of(call, Part::Day)),
    define("EOMONTH", 1, 2, |s| Ok(Kind { nullable: true, ..s.result(SqlType::Date) }), eomonth),
];

/// A part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    Quarter,
    Month,
    DayOfYear,
    Day,
    Week,
    IsoWeek,
    Weekday,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Offset,
}

/// Names and abbreviations of parts.
const PARTS: &[(Part, &[&str])] = &[
    (Part::Year, &["year", "yy", "yyyy"]),
    (Part::Quarter, &["quarter", "qq", "q"]),
    (Part::Month, &["month", "mm", "m"]),
    (Part::DayOfYear, &["dayofyear", "dy", "y"]),
    (Part::Day, &["day", "dd", "d"]),
    (Part::Week, &["week", "wk", "ww"]),
    (Part::IsoWeek, &["iso_week", "isowk", "isoww"]),
    (Part::Weekday, &["weekday", "dw", "w"]),
    (Part::Hour, &["hour", "hh"]),
    (Part::Minute, &["minute", "mi", "n"]),
    (Part::Second, &["second", "ss", "s"]),
    (Part::Millisecond, &["millisecond", "ms"]),
    (Part::Microsecond, &["microsecond", "mcs"]),
    (Part::Nanosecond, &["nanosecond", "ns"]),
    (Part::Offset, &["tzoffset", "tz"]),
];

impl Part {
    fn named(word: &str, function: &str) -> SqlResult<Self> {
        let found = PARTS
            .iter()
            .find(|(_, names)| names.iter().any(|name| name.eq_ignore_ascii_case(word)));
        found.map(|(part, _)| *part).ok_or_else(|| {
            SqlError::new(
                155,
                format!("'{word}' is not a recognized {} option.", function.to_lowercase()),
            )
        })
    }

    fn name(self) -> &'static str {
        let found = PARTS.iter().find(|(part, _)| *part == self);
        found.and_then(|(_, names)| names.first().copied()).unwrap_or_default()
    }

    /// True when values of a type have the part.
    fn belongs_to(self, sql_type: &SqlType) -> bool {
        let of_time = matches!(
            self,
            Self::Hour
                | Self::Minute
                | Self::Second
                | Self::Millisecond
                | Self::Microsecond
                | Self::Nanosecond
        );
        match (self, sql_type) {
            (Self::Offset, _) => {
                matches!(sql_type, SqlType::DateTimeOffset { .. } | SqlType::DateTime2 { .. })
            }
            (_, SqlType::Date) => !of_time,
            (_, SqlType::Time { .. }) => of_time,
            _ => true,
        }
    }
}

/// 9810: a type that does not have a part.
fn part_refused(part: Part, function: &str, sql_type: &SqlType) -> SqlError {
    SqlError::new(
        9810,
        format!(
            "The datepart {} is not supported by date function {} for data type {}.",
            part.name(),
            function.to_lowercase(),
            error::name(sql_type)
        ),
    )
}

fn part_word(signature: &Signature<'_>) -> SqlResult<Part> {
    match signature.arguments.first() {
        Some(ArgumentKind::Word(word)) => Part::named(word, signature.name),
        _ => Err(SqlError::new(
            1023,
            format!("Invalid parameter 1 specified for {}.", signature.name.to_lowercase()),
        )),
    }
}

fn part_argument(call: &Call<'_>) -> SqlResult<Part> {
    Part::named(call.word(0).unwrap_or_default(), call.name)
}

/// The date type that a function sees: texts as `text`, numbers as `datetime`.
fn moment_type(signature: &Signature<'_>, place: usize, text: SqlType) -> SqlResult<SqlType> {
    let sql_type = &signature.kind(place)?.sql_type;
    match family(sql_type) {
        Family::Moment | Family::OldMoment => Ok(sql_type.clone()),
        Family::Text => Ok(text),
        Family::Number if !matches!(sql_type, SqlType::Money | SqlType::SmallMoney) => {
            Ok(SqlType::DateTime)
        }
        _ => Err(error::invalid_argument(sql_type, place + 1, signature.name)),
    }
}

const FINEST: SqlType = SqlType::DateTimeOffset { scale: 7 };

/// An argument as a moment, with the type it is one of; none for NULL.
pub(super) fn moment(
    call: &Call<'_>,
    place: usize,
    text: SqlType,
) -> SqlResult<Option<(Wall, SqlType)>> {
    let typed = call.typed(place)?;
    let sql_type = match family(&typed.kind.sql_type) {
        Family::Moment | Family::OldMoment => typed.kind.sql_type.clone(),
        Family::Text => text,
        _ => SqlType::DateTime,
    };
    if typed.value.is_null() {
        return Ok(None);
    }
    if let Some(wall) = Wall::of(&typed.value) {
        return Ok(Some((wall, sql_type)));
    }
    let to = Kind::new(sql_type.clone(), true);
    let value = assign(&typed.value, &typed.kind, &to, call.facts)?;
    Ok(Wall::of(&value).map(|wall| (wall, sql_type)))
}

fn dateadd_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let part = part_word(signature)?;
    signature.takes(1..2, &SqlType::Int)?;
    let sql_type = moment_type(signature, 2, SqlType::DateTime)?;
    let fine = matches!(part, Part::Microsecond | Part::Nanosecond);
    let old = matches!(sql_type, SqlType::DateTime | SqlType::SmallDateTime);
    if matches!(part, Part::IsoWeek | Part::Offset) || !part.belongs_to(&sql_type) || (fine && old)
    {
        return Err(part_refused(part, signature.name, &sql_type));
    }
    Ok(signature.result(sql_type))
}

fn dateadd(call: &Call<'_>) -> SqlResult<Value> {
    let part = part_argument(call)?;
    let Some((wall, sql_type)) = moment(call, 2, SqlType::DateTime)? else {
        return Ok(Value::Null);
    };
    // A number with a fraction is cut.
    let Some(number) = call.int(1)? else { return Ok(Value::Null) };
    let overflow = || error::date_overflow(&sql_type);
    let step = |ticks: i64| number.checked_mul(ticks).ok_or_else(overflow);
    let added = match part {
        Part::Year => return months_added(wall, number.saturating_mul(12), &sql_type),
        Part::Quarter => return months_added(wall, number.saturating_mul(3), &sql_type),
        Part::Month => return months_added(wall, number, &sql_type),
        Part::Week => step(7 * TICKS_A_DAY)?,
        Part::Hour => step(60 * TICKS_A_MINUTE)?,
        Part::Minute => step(TICKS_A_MINUTE)?,
        Part::Second => step(TICKS_A_SECOND)?,
        Part::Millisecond => step(10_000)?,
        Part::Microsecond => step(10)?,
        Part::Nanosecond => rounded(number, 100) / 100,
        _ => step(TICKS_A_DAY)?,
    };
    let ticks = wall.ticks.checked_add(added).ok_or_else(overflow)?;
    let wall = if matches!(sql_type, SqlType::Time { .. }) {
        // A time goes round the clock.
        Wall { ticks: ticks.rem_euclid(TICKS_A_DAY), ..wall }
    } else {
        Wall { ticks, ..wall }
    };
    wall.stored(&sql_type, &sql_type).map_err(|_| overflow())
}

/// The same day of another month, or its last day.
fn months_added(wall: Wall, months: i64, sql_type: &SqlType) -> SqlResult<Value> {
    let overflow = || error::date_overflow(sql_type);
    let Date { year, month, day } = wall.date();
    let total = (i64::from(year) * 12 + i64::from(month) - 1).saturating_add(months);
    let year = i32::try_from(total.div_euclid(12)).map_err(|_| overflow())?;
    let month = u32::try_from(total.rem_euclid(12) + 1).map_err(|_| overflow())?;
    let days = days_of(year, month, day.min(days_in_month(year, month))).ok_or_else(overflow)?;
    let moved = Wall { ticks: days * TICKS_A_DAY + wall.time(), ..wall };
    moved.stored(sql_type, sql_type).map_err(|_| overflow())
}

fn datediff_kind(signature: &Signature<'_>, sql_type: SqlType) -> SqlResult<Kind> {
    let part = part_word(signature)?;
    for place in [1, 2] {
        let found = moment_type(signature, place, FINEST)?;
        let of_text = family(&signature.kind(place)?.sql_type) == Family::Text;
        // A time counts as of 1900-01-01, a date as of midnight.
        if matches!(part, Part::IsoWeek | Part::Offset) && !of_text {
            return Err(part_refused(part, signature.name, &found));
        }
    }
    Ok(signature.result(sql_type))
}

/// How many boundaries of a part lie between two moments.
fn datediff(call: &Call<'_>, to: &SqlType) -> SqlResult<Value> {
    let part = part_argument(call)?;
    let (Some((start, _)), Some((end, _))) = (moment(call, 1, FINEST)?, moment(call, 2, FINEST)?)
    else {
        return Ok(Value::Null);
    };
    let utc = |wall: Wall| Wall { ticks: wall.utc(), offset: None };
    let (start, end) = (utc(start), utc(end));
    let per = |ticks: i64| i128::from(end.ticks.div_euclid(ticks) - start.ticks.div_euclid(ticks));
    let (first, last) = (start.date(), end.date());
    let years = i128::from(last.year - first.year);
    let months = years * 12 + i128::from(last.month) - i128::from(first.month);
    let found = match part {
        Part::Year => years,
        Part::Quarter => {
            years * 4 + i128::from((last.month - 1) / 3) - i128::from((first.month - 1) / 3)
        }
        Part::Month => months,
        // Weeks begin on Sunday here, whatever DATEFIRST says; 1970-01-01 was a Thursday.
        Part::Week | Part::IsoWeek => {
            i128::from((end.days() + 4).div_euclid(7) - (start.days() + 4).div_euclid(7))
        }
        Part::DayOfYear | Part::Day | Part::Weekday | Part::Offset => per(TICKS_A_DAY),
        Part::Hour => per(60 * TICKS_A_MINUTE),
        Part::Minute => per(TICKS_A_MINUTE),
        Part::Second => per(TICKS_A_SECOND),
        Part::Millisecond => per(10_000),
        Part::Microsecond => per(10),
        Part::Nanosecond => (i128::from(end.ticks) - i128::from(start.ticks)) * 100,
    };
    let held = crate::scalar::conversion::in_range(found, to);
    held.map(Value::Int).ok_or_else(|| {
        SqlError::new(
            535,
            format!(
                "The {0} function resulted in an overflow. The number of dateparts separating two \
                 date/time instances is too large. Try to use {0} with a less precise datepart.",
                call.name.to_lowercase()
            ),
        )
    })
}

fn datepart_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let part = part_word(signature)?;
    let sql_type = moment_type(signature, 1, FINEST)?;
    if !part.belongs_to(&sql_type) {
        return Err(part_refused(part, signature.name, &sql_type));
    }
    Ok(signature.result(SqlType::Int))
}

fn part_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let sql_type = moment_type(signature, 0, FINEST)?;
    if matches!(sql_type, SqlType::Time { .. }) {
        return Err(part_refused(Part::Day, signature.name, &sql_type));
    }
    Ok(signature.result(SqlType::Int))
}

fn part_of(call: &Call<'_>, part: Part) -> SqlResult<Value> {
    let found = moment(call, 0, FINEST)?;
    Ok(found.map_or(Value::Null, |(wall, sql_type)| {
        Value::Int(number_of(part, wall, &sql_type, call.facts.settings.date_first))
    }))
}

fn datepart(call: &Call<'_>, part: Part) -> SqlResult<Value> {
    let found = moment(call, 1, FINEST)?;
    Ok(found.map_or(Value::Null, |(wall, sql_type)| {
        Value::Int(number_of(part, wall, &sql_type, call.facts.settings.date_first))
    }))
}

/// Days from the first day of the week, `DATEFIRST`, to a day.
fn days_into_week(days: i64, date_first: u8) -> i64 {
    // 1970-01-01 was a Thursday: 4 from Monday as 1.
    (days + 3 - (i64::from(date_first) - 1)).rem_euclid(7)
}

fn number_of(part: Part, wall: Wall, sql_type: &SqlType, date_first: u8) -> i64 {
    let Date { year, month, day } = wall.date();
    let first = days_of(year, 1, 1).unwrap_or_default();
    let day_of_year = wall.days() - first + 1;
    let time = match (sql_type, part) {
        // The milliseconds of a datetime are the nearest ones to its third.
        (SqlType::DateTime, Part::Millisecond) => rounded(wall.time(), 10_000),
        _ => wall.time(),
    };
    let fraction = time % TICKS_A_SECOND;
    match part {
        Part::Year => i64::from(year),
        Part::Quarter => i64::from(month.div_ceil(3)),
        Part::Month => i64::from(month),
        Part::DayOfYear => day_of_year,
        Part::Day => i64::from(day),
        Part::Week => (day_of_year - 1 + days_into_week(first, date_first)) / 7 + 1,
        Part::IsoWeek => NaiveDate::from_ymd_opt(year, month, day)
            .map_or(0, |date| i64::from(date.iso_week().week())),
        Part::Weekday => days_into_week(wall.days(), date_first) + 1,
        Part::Hour => time / (60 * TICKS_A_MINUTE),
        Part::Minute => time / TICKS_A_MINUTE % 60,
        Part::Second => time / TICKS_A_SECOND % 60,
        Part::Millisecond => fraction / 10_000,
        Part::Microsecond => fraction / 10,
        Part::Nanosecond => fraction * 100,
        Part::Offset => i64::from(wall.offset.unwrap_or_default()),
    }
}

fn datename_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    datepart_kind(signature)?;
    Ok(signature.result(SqlType::NVarChar(Length::Limited(30))))
}

fn datename(call: &Call<'_>) -> SqlResult<Value> {
    let part = part_argument(call)?;
    let Some((wall, sql_type)) = moment(call, 1, FINEST)? else { return Ok(Value::Null) };
    let index = |number: i64| usize::try_from(number).unwrap_or_default();
    let name = match part {
        Part::Month => MONTHS.get(index(i64::from(wall.date().month) - 1)),
        Part::Weekday => WEEKDAYS.get(index((wall.days() + 3).rem_euclid(7))),
        _ => None,
    };
    Ok(match (name, part) {
        (Some(name), _) => Value::text(name),
        (None, Part::Offset) => Value::text(&offset_text(wall.offset.unwrap_or_default())),
        _ => {
            let number = number_of(part, wall, &sql_type, call.facts.settings.date_first);
            Value::text(&number.to_string())
        }
    })
}

fn datetrunc_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let part = part_word(signature)?;
    let sql_type = moment_type(signature, 1, SqlType::DateTime2 { scale: 7 })?;
    if matches!(part, Part::Weekday | Part::Nanosecond | Part::Offset)
        || !part.belongs_to(&sql_type)
    {
        return Err(part_refused(part, signature.name, &sql_type));
    }
    Ok(signature.result(sql_type))
}

/// The beginning of the part that a moment lies in.
fn datetrunc(call: &Call<'_>) -> SqlResult<Value> {
    let part = part_argument(call)?;
    let Some((wall, sql_type)) = moment(call, 1, SqlType::DateTime2 { scale: 7 })? else {
        return Ok(Value::Null);
    };
    let Date { year, month, .. } = wall.date();
    let first_of = |month: u32| days_of(year, month, 1).unwrap_or_default() * TICKS_A_DAY;
    let step = |ticks: i64| wall.ticks.div_euclid(ticks) * ticks;
    let week = |first: u8| (wall.days() - days_into_week(wall.days(), first)) * TICKS_A_DAY;
    let ticks = match part {
        Part::Year => first_of(1),
        Part::Quarter => first_of((month - 1) / 3 * 3 + 1),
        Part::Month => first_of(month),
        Part::Week => week(call.facts.settings.date_first),
        Part::IsoWeek => week(1),
        Part::Hour => step(60 * TICKS_A_MINUTE),
        Part::Minute => step(TICKS_A_MINUTE),
        Part::Second => step(TICKS_A_SECOND),
        Part::Millisecond => step(10_000),
        Part::Microsecond => step(10),
        _ => step(TICKS_A_DAY),
    };
    Wall { ticks, ..wall }.stored(&sql_type, &sql_type)
}

/// The last day of the month that lies so many months away.
fn eomonth(call: &Call<'_>) -> SqlResult<Value> {
    let months = if call.has(1) { call.int(1)? } else { Some(0) };
    let (Some((wall, _)), Some(months)) = (moment(call, 0, SqlType::Date)?, months) else {
        return Ok(Value::Null);
    };
    let Date { year, month, .. } = wall.date();
    let total = (i64::from(year) * 12 + i64::from(month) - 1).saturating_add(months);
    let overflow = || error::date_overflow(&SqlType::Date);
    let year = i32::try_from(total.div_euclid(12)).map_err(|_| overflow())?;
    let month = u32::try_from(total.rem_euclid(12) + 1).map_err(|_| overflow())?;
    let days = days_of(year, month, days_in_month(year, month)).ok_or_else(overflow)?;
    Wall::midnight(days).stored(&SqlType::Date, &SqlType::Date)
}
