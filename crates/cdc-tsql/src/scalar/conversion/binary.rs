//! Values as bytes, and dates and exact numbers from bytes.

use std::borrow::Cow;

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};

use super::{Excess, swapped};
use crate::{
    kind::Kind,
    scalar::{
        Facts, code_page,
        date_read::is_offset,
        error,
        exact::{MAX_PRECISION, digits_of},
        moment::{
            DAY_1900, FIRST_DAY, LAST_DAY, OLD_TICKS_A_DAY, TICKS_A_DAY, TICKS_A_MINUTE, Wall,
            old_to_ticks, scale_of, ticks_to_old, unit,
        },
        precedence::{is_national, length},
    },
};

/// Bytes as upper-case hexadecimal digits.
pub(super) fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let digits = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.map(|digit| digit.to_ascii_uppercase()).collect()
}

/// The value as a binary of type `to`.
pub(super) fn converted(
    value: &Value,
    from: &Kind,
    to: &SqlType,
    style: Option<i32>,
    excess: Excess,
    facts: &Facts,
) -> SqlResult<Value> {
    let bytes = match (value, style.unwrap_or_default()) {
        (Value::Text(text), style @ (1 | 2)) => Cow::Owned(
            digits_read(text, style == 1)
                .ok_or_else(|| error::not_converted(&from.sql_type, to))?,
        ),
        (Value::Text(_) | Value::Bytes(_), style) if !matches!(style, 0..=2) => {
            return Err(SqlError::new(
                281,
                format!(
                    "{style} is not a valid style number when converting from {} to {}.",
                    error::name(&from.sql_type),
                    error::name(to)
                ),
            ));
        }
        _ => of(value, from, facts)?,
    };
    let Length::Limited(limit) = length(to) else {
        return Ok(Value::bytes(&bytes));
    };
    let limit = usize::from(limit);
    let fixed = matches!(to, SqlType::Binary(_) | SqlType::RowVersion);
    let whole_number = matches!(
        value,
        Value::Bit(_) | Value::Int(_) | Value::Uuid(_) | Value::Float(_) | Value::Real(_)
    ) || (matches!(value, Value::Decimal(_))
        && !matches!(from.sql_type, SqlType::Decimal { .. }))
        || matches!(value, Value::DateTime(_))
        || (matches!(value, Value::DateTime2(_)) && from.sql_type == SqlType::SmallDateTime);
    let bytes = bytes.as_ref();
    if bytes.len() > limit {
        if excess == Excess::Refused && !whole_number {
            return Err(error::truncated(to));
        }
        // Numbers keep their low end, which is the right one; everything else its left end.
        let skipped = if whole_number { bytes.len() - limit } else { 0 };
        let kept: Vec<u8> = bytes.iter().skip(skipped).take(limit).copied().collect();
        return Ok(Value::bytes(&kept));
    }
    if !fixed || bytes.len() == limit {
        return Ok(Value::bytes(bytes));
    }
    let zeros = vec![0; limit - bytes.len()];
    let padded = if whole_number { [&zeros, bytes].concat() } else { [bytes, &zeros].concat() };
    Ok(Value::bytes(&padded))
}

/// The bytes that hexadecimal digits stand for, behind `0x` or without it.
fn digits_read(text: &str, prefixed: bool) -> Option<Vec<u8>> {
    let digits =
        if prefixed { text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))? } else { text };
    let nibbles: Vec<u32> = digits.chars().map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    nibbles
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect()
}

/// The bytes of a value as the server stores it.
pub(super) fn of<'a>(value: &'a Value, from: &Kind, facts: &Facts) -> SqlResult<Cow<'a, [u8]>> {
    let sql_type = &from.sql_type;
    Ok(match value {
        Value::Null => Cow::Borrowed(&[]),
        Value::Bytes(bytes) => Cow::Borrowed(bytes),
        Value::Text(text) if is_national(sql_type) => {
            Cow::Owned(text.encode_utf16().flat_map(u16::to_le_bytes).collect())
        }
        Value::Text(text) => {
            code_page::encode(text, from.collation.unwrap_or(facts.collation).code_page)
        }
        Value::Uuid(bytes) => Cow::Owned(swapped(*bytes).to_vec()),
        Value::Bit(set) => Cow::Owned(vec![u8::from(*set)]),
        Value::Int(number) => {
            let width = match sql_type {
                SqlType::TinyInt => 1,
                SqlType::SmallInt => 2,
                SqlType::Int => 4,
                _ => 8,
            };
            Cow::Owned(number.to_be_bytes().into_iter().skip(8 - width).collect())
        }
        Value::Real(number) => Cow::Owned(number.to_be_bytes().to_vec()),
        Value::Float(number) => Cow::Owned(number.to_be_bytes().to_vec()),
        Value::Decimal(digits) => Cow::Owned(decimal_bytes((*digits).into(), sql_type)),
        _ => {
            let wall = Wall::of(value).ok_or_else(|| error::not_converted(sql_type, sql_type))?;
            Cow::Owned(moment_bytes(wall, sql_type))
        }
    })
}

/// `money` as a big-endian number; `decimal` as precision, scale, sign and little-endian digits.
fn decimal_bytes(digits: i128, sql_type: &SqlType) -> Vec<u8> {
    let big_endian = digits.to_be_bytes();
    match sql_type {
        SqlType::Money => big_endian.into_iter().skip(8).collect(),
        SqlType::SmallMoney => big_endian.into_iter().skip(12).collect(),
        _ => {
            let (precision, scale) = digits_of(sql_type).unwrap_or((MAX_PRECISION, 0));
            let words = match precision {
                0..=9 => 4,
                10..=19 => 8,
                20..=28 => 12,
                _ => 16,
            };
            let mut bytes = vec![precision, scale, 0, u8::from(digits >= 0)];
            bytes.extend(digits.unsigned_abs().to_le_bytes().into_iter().take(words));
            bytes
        }
    }
}

/// The digits and scale that [`decimal_bytes`] wrote.
pub(super) fn decimal_from_bytes(bytes: &[u8]) -> Option<(i128, u8)> {
    let [precision, scale, 0, sign @ (0 | 1), digits @ ..] = bytes else {
        return None;
    };
    if !(1..=MAX_PRECISION).contains(precision) || scale > precision || digits.len() > 16 {
        return None;
    }
    let number = digits.iter().rev().fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    let number = i128::try_from(number).ok()?;
    Some((if *sign == 1 { number } else { -number }, *scale))
}

fn moment_bytes(wall: Wall, sql_type: &SqlType) -> Vec<u8> {
    use SqlType as T;
    let low = |number: i64, width: usize| number.to_le_bytes().into_iter().take(width);
    let scale = scale_of(sql_type);
    let time_width = match scale {
        0..=2 => 3,
        3 | 4 => 4,
        _ => 5,
    };
    match sql_type {
        T::DateTime => {
            let ticks = ticks_to_old(wall.ticks);
            let mut bytes: Vec<u8> =
                ticks.div_euclid(OLD_TICKS_A_DAY).to_be_bytes().into_iter().skip(4).collect();
            bytes.extend(ticks.rem_euclid(OLD_TICKS_A_DAY).to_be_bytes().into_iter().skip(4));
            bytes
        }
        T::SmallDateTime => {
            let mut bytes: Vec<u8> =
                (wall.days() - DAY_1900).to_be_bytes().into_iter().skip(6).collect();
            bytes.extend((wall.time() / TICKS_A_MINUTE).to_be_bytes().into_iter().skip(6));
            bytes
        }
        T::Date => low(wall.days() - FIRST_DAY, 3).collect(),
        T::Time { .. } => {
            let mut bytes = vec![scale];
            bytes.extend(low(wall.time() / unit(scale), time_width));
            bytes
        }
        _ => {
            let offset = wall.offset;
            let wall = Wall { ticks: wall.utc(), offset: None };
            let mut bytes = vec![scale];
            bytes.extend(low(wall.time() / unit(scale), time_width));
            bytes.extend(low(wall.days() - FIRST_DAY, 3));
            bytes.extend(offset.map(i16::to_le_bytes).into_iter().flatten());
            bytes
        }
    }
}

/// A date or time of the bytes that [`moment_bytes`] writes.
pub(super) fn moment(bytes: &[u8], to: &SqlType, from: &SqlType) -> SqlResult<Value> {
    let wall = wall_of_bytes(bytes, to).ok_or_else(|| error::not_converted(from, to))?;
    wall.stored(to, from)
}

fn wall_of_bytes(bytes: &[u8], to: &SqlType) -> Option<Wall> {
    use SqlType as T;
    let little = |bytes: &[u8]| {
        bytes.iter().rev().fold(0_i64, |number, byte| (number << 8) | i64::from(*byte))
    };
    let big =
        |bytes: &[u8]| bytes.iter().fold(0_i64, |number, byte| (number << 8) | i64::from(*byte));
    // The old types are numbers: their low end is the right one, and missing bytes are zeros.
    let last = |width: usize| {
        let mut padded = vec![0; width.saturating_sub(bytes.len())];
        padded.extend(bytes.iter().skip(bytes.len().saturating_sub(width)));
        padded
    };
    let plain = |ticks| Some(Wall { ticks, offset: None });
    match to {
        T::DateTime => {
            let all = last(8);
            let (days, ticks) = all.split_at_checked(4)?;
            let days = i64::from(i32::from_be_bytes(days.try_into().ok()?));
            let ticks = big(ticks);
            if ticks >= OLD_TICKS_A_DAY {
                return None;
            }
            plain(old_to_ticks(days * OLD_TICKS_A_DAY + ticks))
        }
        T::SmallDateTime => {
            let all = last(4);
            let (days, minutes) = all.split_at_checked(2)?;
            let (days, minutes) = (big(days), big(minutes));
            if minutes >= 24 * 60 {
                return None;
            }
            plain((days + DAY_1900) * TICKS_A_DAY + minutes * TICKS_A_MINUTE)
        }
        T::Date => match bytes {
            [_, _, _] => Some(Wall::midnight(little(bytes) + FIRST_DAY)),
            _ => None,
        },
        _ => {
            let (scale, rest) = bytes.split_first().filter(|(scale, _)| **scale <= 7)?;
            let width = match scale {
                0..=2 => 3,
                3 | 4 => 4,
                _ => 5,
            };
            let (time, rest) = rest.split_at_checked(width)?;
            let time = little(time).checked_mul(unit(*scale)).filter(|time| *time < TICKS_A_DAY)?;
            let midnight = |bytes: &[u8]| {
                let days = little(bytes) + FIRST_DAY;
                (days <= LAST_DAY).then(|| days * TICKS_A_DAY)
            };
            match (to, rest) {
                (T::Time { .. }, []) => plain(DAY_1900 * TICKS_A_DAY + time),
                (T::DateTime2 { .. }, [_, _, _]) => plain(midnight(rest)? + time),
                (T::DateTimeOffset { .. }, [a, b, c, low, high]) => {
                    let offset = i16::from_le_bytes([*low, *high]);
                    let utc = midnight(&[*a, *b, *c])? + time;
                    let ticks = utc + i64::from(offset) * TICKS_A_MINUTE;
                    is_offset(offset).then_some(Wall { ticks, offset: Some(offset) })
                }
                _ => None,
            }
        }
    }
}
