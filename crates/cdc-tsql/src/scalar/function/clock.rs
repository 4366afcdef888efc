//! Functions of the clock, of time zones, and those that make a date of its parts.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult, Value};

use super::{Call, Definition, Signature, calendar::moment, define};
use crate::{
    kind::Kind,
    scalar::{
        conversion::assign,
        date_read::is_offset,
        error,
        moment::{TICKS_A_DAY, TICKS_A_MINUTE, TICKS_A_SECOND, Wall, days_of, scale_of, unit},
        precedence::{Family, family},
        zone::at_time_zone,
    },
};

const DATETIME2: SqlType = SqlType::DateTime2 { scale: 7 };
const DATETIMEOFFSET: SqlType = SqlType::DateTimeOffset { scale: 7 };

pub(super) const FUNCTIONS: &[Definition] = &[
    define("GETDATE", 0, 0, |_| certain(SqlType::DateTime), |c| now(c, true, &SqlType::DateTime)),
    define(
        "CURRENT_TIMESTAMP",
        0,
        0,
        |_| certain(SqlType::DateTime),
        |c| now(c, true, &SqlType::DateTime),
    ),
    define("CURRENT_DATE", 0, 0, |_| certain(SqlType::Date), |c| now(c, true, &SqlType::Date)),
    define(
        "GETUTCDATE",
        0,
        0,
        |_| certain(SqlType::DateTime),
        |c| now(c, false, &SqlType::DateTime),
    ),
    define("SYSDATETIME", 0, 0, |_| certain(DATETIME2), |c| now(c, true, &DATETIME2)),
    define("SYSUTCDATETIME", 0, 0, |_| certain(DATETIME2), |c| now(c, false, &DATETIME2)),
    define(
        "SYSDATETIMEOFFSET",
        0,
        0,
        |_| certain(DATETIMEOFFSET),
        |c| now(c, true, &DATETIMEOFFSET),
    ),
    define("AT TIME ZONE", 2, 2, zone_kind, zone),
    define("SWITCHOFFSET", 2, 2, offset_kind, |call| with_offset(call, true)),
    define("TODATETIMEOFFSET", 2, 2, offset_kind, |call| with_offset(call, false)),
    define("DATEFROMPARTS", 3, 3, |s| parts_kind(s, SqlType::Date), date_from_parts),
    define(
        "DATETIMEFROMPARTS",
        7,
        7,
        |s| parts_kind(s, SqlType::DateTime),
        |c| moment_from_parts(c, &SqlType::DateTime),
    ),
    define(
        "SMALLDATETIMEFROMPARTS",
        5,
        5,
        |s| parts_kind(s, SqlType::SmallDateTime),
        |c| moment_from_parts(c, &SqlType::SmallDateTime),
    ),
    define(
        "DATETIME2FROMPARTS",
        8,
        8,
        |s| parts_kind(s, DATETIME2),
        |c| moment_from_parts(c, &DATETIME2),
    ),
    define(
        "DATETIMEOFFSETFROMPARTS",
        10,
        10,
        |s| parts_kind(s, DATETIMEOFFSET),
        |c| moment_from_parts(c, &DATETIMEOFFSET),
    ),
    define("TIMEFROMPARTS", 5, 5, |s| parts_kind(s, SqlType::Time { scale: 7 }), time_from_parts),
    define("ISDATE", 1, 1, |_| certain(SqlType::Int), isdate),
];

fn certain(sql_type: SqlType) -> SqlResult<Kind> {
    Ok(Kind::new(sql_type, false))
}

fn now(call: &Call<'_>, local: bool, to: &SqlType) -> SqlResult<Value> {
    let now = call.facts.now;
    let offset = if local { now.offset_minutes } else { 0 };
    let ticks = now.utc_ticks.saturating_add(i64::from(offset) * TICKS_A_MINUTE);
    let offset = matches!(to, SqlType::DateTimeOffset { .. }).then_some(offset);
    Wall { ticks, offset }.stored(to, to)
}

/// A `datetimeoffset` with as many digits as the argument has.
fn offset_type(signature: &Signature<'_>) -> SqlResult<SqlType> {
    let sql_type = &signature.kind(0)?.sql_type;
    match family(sql_type) {
        Family::Text => Ok(DATETIMEOFFSET),
        Family::OldMoment | Family::Moment if !matches!(sql_type, SqlType::Time { .. }) => {
            Ok(SqlType::DateTimeOffset { scale: scale_of(sql_type) })
        }
        _ => Err(error::invalid_argument(sql_type, 1, signature.name)),
    }
}

fn zone_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let sql_type = &signature.kind(0)?.sql_type;
    let dated = matches!(
        sql_type,
        SqlType::DateTime
            | SqlType::SmallDateTime
            | SqlType::DateTime2 { .. }
            | SqlType::DateTimeOffset { .. }
    );
    if !dated {
        return Err(error::invalid_argument(sql_type, 1, signature.name));
    }
    Ok(signature.result(offset_type(signature)?))
}

fn zone(call: &Call<'_>) -> SqlResult<Value> {
    let (Some((wall, sql_type)), Some(name)) = (moment(call, 0, DATETIMEOFFSET)?, call.text(1)?)
    else {
        return Ok(Value::Null);
    };
    let found = at_time_zone(wall, &name)?;
    let to = SqlType::DateTimeOffset { scale: scale_of(&sql_type) };
    Wall::of(&found).map_or(Ok(Value::Null), |wall| wall.stored(&to, &to))
}

fn offset_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    Ok(signature.result(offset_type(signature)?))
}

/// The moment with another offset: the same moment when `keep_moment`, the same reading otherwise.
fn with_offset(call: &Call<'_>, keep_moment: bool) -> SqlResult<Value> {
    let invalid = || {
        SqlError::new(
            9812,
            format!(
                "The timezone provided to builtin function {} is invalid.",
                call.name.to_lowercase()
            ),
        )
    };
    let Some((wall, sql_type)) = moment(call, 0, DATETIMEOFFSET)? else {
        return Ok(Value::Null);
    };
    let zone = call.typed(1)?;
    let minutes = match &zone.value {
        Value::Null => return Ok(Value::Null),
        Value::Text(text) => parsed_offset(text).ok_or_else(invalid)?,
        _ => match call.int(1)?.map(i16::try_from) {
            Some(Ok(minutes)) => minutes,
            _ => return Err(invalid()),
        },
    };
    if !is_offset(minutes) {
        return Err(invalid());
    }
    let shift = i64::from(minutes) * TICKS_A_MINUTE;
    let ticks = if keep_moment { wall.utc().saturating_add(shift) } else { wall.ticks };
    let to = SqlType::DateTimeOffset { scale: scale_of(&sql_type) };
    Wall { ticks, offset: Some(minutes) }.stored(&to, &to)
}

/// The minutes of `+05:30`.
fn parsed_offset(text: &str) -> Option<i16> {
    let text = text.trim_matches(' ');
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+')?),
    };
    let (hours, minutes) = digits.split_once(':')?;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if hours.len() > 2 || minutes.len() != 2 || !digits(hours) || !digits(minutes) {
        return None;
    }
    let (hours, minutes): (i16, i16) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60).then_some(sign * (hours * 60 + minutes))
}

fn parts_kind(signature: &Signature<'_>, sql_type: SqlType) -> SqlResult<Kind> {
    signature.takes(0..signature.arguments.len(), &SqlType::Int)?;
    Ok(signature.result(sql_type))
}

/// All arguments as integers; none when one is NULL.
fn numbers(call: &Call<'_>) -> SqlResult<Option<Vec<i64>>> {
    let mut numbers = Vec::with_capacity(call.arguments.len());
    for place in 0..call.arguments.len() {
        match call.int(place)? {
            Some(number) => numbers.push(number),
            None => return Ok(None),
        }
    }
    Ok(Some(numbers))
}

fn not_constructed(to: &SqlType) -> SqlError {
    SqlError::new(
        289,
        format!(
            "Cannot construct data type {}, some of the arguments have values which are not valid.",
            error::name(to)
        ),
    )
}

fn day(year: i64, month: i64, day: i64) -> Option<i64> {
    days_of(i32::try_from(year).ok()?, u32::try_from(month).ok()?, u32::try_from(day).ok()?)
}

fn clock_ticks(hour: i64, minute: i64, second: i64, fraction: i64, unit: i64) -> Option<i64> {
    let valid = (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..60).contains(&second)
        && fraction >= 0
        && fraction.checked_mul(unit).is_some_and(|ticks| ticks < TICKS_A_SECOND);
    valid.then(|| ((hour * 60 + minute) * 60 + second) * TICKS_A_SECOND + fraction * unit)
}

/// 100 ns of the last digit of so many fractional digits.
fn digit_unit(precision: i64) -> Option<(u8, i64)> {
    let scale = u8::try_from(precision).ok().filter(|scale| *scale <= 7)?;
    // Without digits there is no fraction but 0.
    Some((scale, if scale == 0 { TICKS_A_SECOND } else { unit(scale) }))
}

fn date_from_parts(call: &Call<'_>) -> SqlResult<Value> {
    let Some(parts) = numbers(call)? else { return Ok(Value::Null) };
    let days = match parts.as_slice() {
        [year, month, date] => day(*year, *month, *date),
        _ => None,
    };
    let days = days.ok_or_else(|| not_constructed(&SqlType::Date))?;
    Wall::midnight(days).stored(&SqlType::Date, &SqlType::Date)
}

fn moment_from_parts(call: &Call<'_>, to: &SqlType) -> SqlResult<Value> {
    let Some(parts) = numbers(call)? else { return Ok(Value::Null) };
    wall_of_parts(&parts, to)
        .and_then(|(wall, to)| wall.stored(&to, &to).ok())
        .ok_or_else(|| not_constructed(to))
}

fn wall_of_parts(parts: &[i64], to: &SqlType) -> Option<(Wall, SqlType)> {
    let (date, rest) = parts.split_at_checked(3)?;
    let [year, month, date] = date else { return None };
    let midnight = day(*year, *month, *date)? * TICKS_A_DAY;
    let plain = |time: i64| Wall { ticks: midnight + time, offset: None };
    match (to, rest) {
        (SqlType::SmallDateTime, [hour, minute]) => {
            Some((plain(clock_ticks(*hour, *minute, 0, 0, 1)?), to.clone()))
        }
        (SqlType::DateTime, [hour, minute, second, milli]) => {
            Some((plain(clock_ticks(*hour, *minute, *second, *milli, 10_000)?), to.clone()))
        }
        (SqlType::DateTime2 { .. }, [hour, minute, second, fraction, precision]) => {
            let (scale, unit) = digit_unit(*precision)?;
            let time = clock_ticks(*hour, *minute, *second, *fraction, unit)?;
            Some((plain(time), SqlType::DateTime2 { scale }))
        }
        (_, [hour, minute, second, fraction, hours, minutes, precision]) => {
            let (scale, unit) = digit_unit(*precision)?;
            let time = clock_ticks(*hour, *minute, *second, *fraction, unit)?;
            // Both parts of an offset have its sign.
            let signs_agree = hours.signum() * minutes.signum() >= 0 && minutes.abs() < 60;
            let offset = i16::try_from(hours * 60 + minutes).ok()?;
            (signs_agree && is_offset(offset)).then_some((
                Wall { offset: Some(offset), ..plain(time) },
                SqlType::DateTimeOffset { scale },
            ))
        }
        _ => None,
    }
}

fn time_from_parts(call: &Call<'_>) -> SqlResult<Value> {
    let Some(parts) = numbers(call)? else { return Ok(Value::Null) };
    let ticks = match parts.as_slice() {
        [hour, minute, second, fraction, precision] => digit_unit(*precision)
            .and_then(|(_, unit)| clock_ticks(*hour, *minute, *second, *fraction, unit)),
        _ => None,
    };
    ticks.map(Value::Time).ok_or_else(|| not_constructed(&SqlType::Time { scale: 7 }))
}

/// 1 for a text that converts to `datetime`.
fn isdate(call: &Call<'_>) -> SqlResult<Value> {
    let typed = call.typed(0)?;
    let is_date = match family(&typed.kind.sql_type) {
        Family::Text if !typed.value.is_null() => {
            let datetime = Kind::new(SqlType::DateTime, true);
            call.text(0)?.is_some_and(|text| !text.trim().is_empty())
                && assign(&typed.value, &typed.kind, &datetime, call.facts).is_ok()
        }
        Family::OldMoment => !typed.value.is_null(),
        Family::Moment => {
            return Err(error::invalid_argument(&typed.kind.sql_type, 1, call.name));
        }
        _ => false,
    };
    Ok(Value::Int(i64::from(is_date)))
}
