//! Conversions between types: CAST, CONVERT with its styles, assignments, and those that operators
//! and functions make of their operands.

mod binary;
mod number;
mod text;

use std::borrow::Cow;

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    Facts, date_read, error,
    moment::{DAY_1900, OLD_TICKS_A_DAY, TICKS_A_DAY, Wall, old_to_ticks},
    permission::check,
};
use crate::kind::Kind;

pub(super) use number::{Whole, in_range, old_ticks as days_as_ticks, parsed_money, parsed_whole};
pub(super) use text::{byte_length, fitted};

/// The value as one of kind `to`. `explicit` is CAST and CONVERT, which cut texts to the length;
/// otherwise it is an assignment to a column, where a text that does not fit is error 2628.
///
/// # Errors
/// 257, 206 and 529 as the types' conversion is not allowed; 241, 242, 245, 248, 8114, 8115 for
/// values that do not convert.
pub(crate) fn convert(
    value: &Value,
    from: &Kind,
    to: &Kind,
    style: Option<i32>,
    explicit: bool,
    facts: &Facts,
) -> SqlResult<Value> {
    check(&from.sql_type, &to.sql_type, explicit)?;
    let cut = if explicit { Excess::Cut } else { Excess::Refused };
    converted(value, from, to, style, cut, facts)
}

/// The value as a variable or a parameter of kind `to` takes it: implicit conversions only, and
/// texts are cut in silence.
///
/// # Errors
/// As [`convert`], without 2628.
pub(crate) fn assign(value: &Value, from: &Kind, to: &Kind, facts: &Facts) -> SqlResult<Value> {
    check(&from.sql_type, &to.sql_type, false)?;
    converted(value, from, to, None, Excess::Cut, facts)
}

/// What happens to the end of a text or binary that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Cut,
    /// 2628, unless it is blanks.
    Refused,
}

fn converted(
    value: &Value,
    from: &Kind,
    to: &Kind,
    style: Option<i32>,
    excess: Excess,
    facts: &Facts,
) -> SqlResult<Value> {
    use SqlType as T;
    let (source, target) = (&from.sql_type, &to.sql_type);
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let T::Other(name) = source
        && name == "sql_variant"
    {
        let base = Kind { sql_type: base_of(value, source)?, ..from.clone() };
        return converted(value, &base, to, style, excess, facts);
    }
    if source == target && !matches!(value, Value::Text(_)) {
        return Ok(value.clone());
    }
    match target {
        T::Bit
        | T::TinyInt
        | T::SmallInt
        | T::Int
        | T::BigInt
        | T::Real
        | T::Float
        | T::Decimal { .. }
        | T::Money
        | T::SmallMoney => number::converted(value, source, target),
        T::Date
        | T::Time { .. }
        | T::DateTime
        | T::SmallDateTime
        | T::DateTime2 { .. }
        | T::DateTimeOffset { .. } => moment(value, source, target, style, facts),
        T::Char(_) | T::VarChar(_) | T::NChar(_) | T::NVarChar(_) | T::Text | T::NText | T::Xml => {
            text::converted(value, from, to, style, excess, facts)
        }
        T::Binary(_) | T::VarBinary(_) | T::Image | T::RowVersion => {
            binary::converted(value, from, target, style, excess, facts)
        }
        T::UniqueIdentifier => guid(value, source, target),
        T::Other(name) if name == "sql_variant" => Ok(value.clone()),
        _ => Err(error::explicit_refused(source, target)),
    }
}

/// The type of a value in a `sql_variant`: the widest that holds it. An exact number is none,
/// because its scale is not known there.
fn base_of(value: &Value, variant: &SqlType) -> SqlResult<SqlType> {
    use SqlType as T;
    Ok(match value {
        Value::Bit(_) => T::Bit,
        Value::Int(_) => T::BigInt,
        Value::Real(_) => T::Real,
        Value::Float(_) => T::Float,
        Value::Date(_) => T::Date,
        Value::DateTime(_) => T::DateTime,
        Value::DateTime2(_) => T::DateTime2 { scale: 7 },
        Value::DateTimeOffset { .. } => T::DateTimeOffset { scale: 7 },
        Value::Time(_) => T::Time { scale: 7 },
        Value::Text(_) => T::NVarChar(Length::Max),
        Value::Bytes(_) => T::VarBinary(Length::Max),
        Value::Uuid(_) => T::UniqueIdentifier,
        Value::Decimal(_) | Value::Null => return Err(error::clash(variant, variant)),
    })
}

/// The text of a value in the default style of its type, as functions of texts see it.
pub(super) fn text_of<'a>(value: &'a Value, kind: &Kind, facts: &Facts) -> SqlResult<Cow<'a, str>> {
    text::of(value, kind, None, false, facts.collation.code_page)
}

/// The bytes of a value, as functions of bytes see it.
pub(super) fn bytes_of<'a>(
    value: &'a Value,
    kind: &Kind,
    facts: &Facts,
) -> SqlResult<Cow<'a, [u8]>> {
    binary::of(value, kind, facts)
}

fn moment(
    value: &Value,
    from: &SqlType,
    to: &SqlType,
    style: Option<i32>,
    facts: &Facts,
) -> SqlResult<Value> {
    let overflow = || error::overflow_from(from, to);
    let style_number = style.unwrap_or_default();
    let wall = match value {
        Value::Text(text) => {
            date_read::read(text, to, style_number, facts.settings.date_format, from)?
        }
        Value::Bytes(bytes) => return binary::moment(bytes, to, from),
        Value::Bit(_) | Value::Int(_) | Value::Real(_) | Value::Float(_) | Value::Decimal(_) => {
            let old = number::old_ticks(value, from).ok_or_else(overflow)?;
            let days = old.div_euclid(OLD_TICKS_A_DAY);
            if !(-1_000_000..=4_000_000).contains(&days) {
                return Err(overflow());
            }
            let wall = Wall { ticks: old_to_ticks(old), offset: None };
            return wall.stored(to, from).map_err(|_| overflow());
        }
        _ => Wall::of(value).ok_or_else(|| error::explicit_refused(from, to))?,
    };
    let wall = match (value, to) {
        // Style 1 gives a zoneless type the moment in UTC.
        (Value::DateTimeOffset { utc, .. }, _)
            if style_number == 1 && !matches!(to, SqlType::DateTimeOffset { .. }) =>
        {
            Wall { ticks: *utc, offset: None }
        }
        (Value::Time(ticks), SqlType::DateTime | SqlType::SmallDateTime) => {
            Wall { ticks: DAY_1900 * TICKS_A_DAY + ticks, offset: None }
        }
        _ => wall,
    };
    wall.stored(to, from)
}

fn guid(value: &Value, from: &SqlType, to: &SqlType) -> SqlResult<Value> {
    let failed = || {
        SqlError::new(
            8169,
            "Conversion failed when converting from a character string to uniqueidentifier.",
        )
    };
    match value {
        Value::Uuid(_) => Ok(value.clone()),
        Value::Bytes(bytes) => {
            let stored: [u8; 16] =
                bytes.get(..16).and_then(|head| head.try_into().ok()).ok_or_else(failed)?;
            Ok(Value::Uuid(swapped(stored)))
        }
        Value::Text(text) => parsed_guid(text).map(Value::Uuid).ok_or_else(failed),
        _ => Err(error::explicit_refused(from, to)),
    }
}

/// The bytes of a `uniqueidentifier` on disk from those of its text, and the reverse: the three
/// leading groups are little-endian on disk.
pub(super) fn swapped(bytes: [u8; 16]) -> [u8; 16] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
    [d, c, b, a, f, e, h, g, i, j, k, l, m, n, o, p]
}

/// A text of 36 characters, in braces or not; what is behind them does not count.
fn parsed_guid(text: &str) -> Option<[u8; 16]> {
    let inner = match text.strip_prefix('{') {
        Some(rest) => {
            rest.get(36..37).filter(|end| *end == "}")?;
            rest
        }
        None => text,
    };
    let text = inner.get(..36)?;
    let groups: Vec<&str> = text.split('-').collect();
    if groups.iter().map(|group| group.len()).ne([8, 4, 4, 4, 12]) {
        return None;
    }
    let digits = groups.concat();
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests;
