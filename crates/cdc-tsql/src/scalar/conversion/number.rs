//! Values as numbers.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult, Value};

use super::binary::decimal_from_bytes;
use crate::scalar::{
    error,
    exact::{digits_of, fits, parsed, rescale, whole},
    moment::{OLD_TICKS_A_DAY, Wall, ticks_to_old},
    number_text::{float_digits, parsed_float},
};

/// Digits behind the point of `money`.
const MONEY_SCALE: u8 = 4;

/// The value as a number of type `to`.
pub(super) fn converted(value: &Value, from: &SqlType, to: &SqlType) -> SqlResult<Value> {
    use SqlType as T;
    match to {
        T::Bit => bit(value, from, to),
        T::TinyInt | T::SmallInt | T::Int | T::BigInt => integer(value, from, to),
        T::Real | T::Float => float(value, from, to),
        _ => exact(value, from, to),
    }
}

fn bit(value: &Value, from: &SqlType, to: &SqlType) -> SqlResult<Value> {
    let set = match value {
        Value::Bit(set) => *set,
        Value::Int(number) => *number != 0,
        Value::Decimal(digits) => i128::from(*digits) != 0,
        Value::Real(number) => *number != 0.0,
        Value::Float(number) => *number != 0.0,
        Value::DateTime(time) => time.as_ticks() != 0,
        Value::Bytes(bytes) => bytes.last().is_some_and(|byte| *byte != 0),
        Value::Text(text) => match text.trim_matches(' ') {
            word if word.eq_ignore_ascii_case("true") => true,
            word if word.eq_ignore_ascii_case("false") => false,
            digits => match parsed_whole(digits) {
                Whole::Number(number) => number != 0,
                Whole::TooLarge => true,
                Whole::NotOne => return Err(error::not_a_number(from, to)),
            },
        },
        _ => match Wall::of(value) {
            Some(wall) => ticks_to_old(wall.ticks) != 0,
            None => return Err(error::explicit_refused(from, to)),
        },
    };
    Ok(Value::Bit(set))
}

/// What a text says as a whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scalar) enum Whole {
    Number(i64),
    TooLarge,
    NotOne,
}

/// A whole number of a text: blanks around, a sign, digits; no digits at all are 0.
pub(in crate::scalar) fn parsed_whole(text: &str) -> Whole {
    let text = text.trim_matches(' ');
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches(' ');
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Whole::NotOne;
    }
    let mut number: i64 = 0;
    for byte in digits.bytes() {
        let digit = i64::from(byte - b'0');
        // Counted downwards: the least number has no positive.
        let next = number.checked_mul(10).and_then(|tens| tens.checked_sub(digit));
        match next {
            Some(next) => number = next,
            None => return Whole::TooLarge,
        }
    }
    match (negative, number.checked_neg()) {
        (true, _) => Whole::Number(number),
        (false, Some(number)) => Whole::Number(number),
        (false, None) => Whole::TooLarge,
    }
}

fn integer(value: &Value, from: &SqlType, to: &SqlType) -> SqlResult<Value> {
    let number: i128 = match value {
        Value::Bit(set) => i128::from(*set),
        Value::Int(number) => i128::from(*number),
        Value::Decimal(digits) if matches!(from, SqlType::Money | SqlType::SmallMoney) => {
            // money rounds where decimal is cut.
            rescale((*digits).into(), MONEY_SCALE, 0).unwrap_or_default()
        }
        Value::Decimal(digits) => {
            let scale = digits_of(from).map_or(0, |(_, scale)| scale);
            whole((*digits).into(), scale)
        }
        Value::Real(number) => truncated(f64::from(*number), to)?,
        Value::Float(number) => truncated(*number, to)?,
        Value::Text(text) => return integer_of_text(text, from, to),
        Value::Bytes(bytes) => return Ok(Value::Int(integer_of_bytes(bytes, to))),
        _ => match Wall::of(value) {
            Some(wall) => {
                let ticks = ticks_to_old(wall.ticks);
                i128::from((ticks + OLD_TICKS_A_DAY / 2).div_euclid(OLD_TICKS_A_DAY))
            }
            None => return Err(error::explicit_refused(from, to)),
        },
    };
    in_range(number, to).map(Value::Int).ok_or_else(|| match (from, to) {
        (SqlType::Decimal { .. }, _) => error::overflow_from(from, to),
        (_, SqlType::TinyInt | SqlType::SmallInt) => error::small_overflow(to),
        _ => error::overflow(to),
    })
}

/// The number when an integer type holds it.
pub(in crate::scalar) fn in_range(number: i128, to: &SqlType) -> Option<i64> {
    let (least, most) = match to {
        SqlType::TinyInt => (0, i128::from(u8::MAX)),
        SqlType::SmallInt => (i128::from(i16::MIN), i128::from(i16::MAX)),
        SqlType::Int => (i128::from(i32::MIN), i128::from(i32::MAX)),
        _ => (i128::from(i64::MIN), i128::from(i64::MAX)),
    };
    if (least..=most).contains(&number) { i64::try_from(number).ok() } else { None }
}

/// The whole part of an approximate number.
fn truncated(number: f64, to: &SqlType) -> SqlResult<i128> {
    if number.abs() >= 1e30 {
        return Err(error::float_overflow(to));
    }
    #[allow(clippy::cast_possible_truncation, reason = "the whole part is asked for, in range")]
    let whole = number.trunc() as i128;
    in_range(whole, to).map(i128::from).ok_or_else(|| error::float_overflow(to))
}

fn integer_of_text(text: &str, from: &SqlType, to: &SqlType) -> SqlResult<Value> {
    let name = error::name(from);
    let number = match parsed_whole(text) {
        Whole::NotOne if *to == SqlType::BigInt => return Err(error::not_converted(from, to)),
        Whole::NotOne => return Err(error::not_a_number(from, to)),
        Whole::TooLarge => None,
        Whole::Number(number) => in_range(i128::from(number), to),
    };
    number.map(Value::Int).ok_or_else(|| match to {
        SqlType::Int => SqlError::new(
            248,
            format!("The conversion of the {name} value overflowed an int column."),
        ),
        SqlType::BigInt => error::overflow(to),
        _ => {
            let width = if *to == SqlType::TinyInt { "INT1" } else { "INT2" };
            SqlError::new(
                244,
                format!(
                    "The conversion of the {name} value overflowed an {width} column. Use a \
                     larger integer column."
                ),
            )
        }
    })
}

/// The last bytes as a big-endian number.
fn integer_of_bytes(bytes: &[u8], to: &SqlType) -> i64 {
    let width = match to {
        SqlType::TinyInt => 1,
        SqlType::SmallInt => 2,
        SqlType::Int => 4,
        _ => 8,
    };
    let skipped = bytes.len().saturating_sub(width);
    let last = bytes.iter().skip(skipped);
    let number = last.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    let low = number.to_be_bytes();
    let [.., a, b, c, d] = low;
    match to {
        SqlType::TinyInt => i64::from(d),
        SqlType::SmallInt => i64::from(i16::from_be_bytes([c, d])),
        SqlType::Int => i64::from(i32::from_be_bytes([a, b, c, d])),
        _ => i64::from_be_bytes(low),
    }
}

fn float(value: &Value, from: &SqlType, to: &SqlType) -> SqlResult<Value> {
    #[allow(clippy::cast_precision_loss, reason = "as the server converts")]
    let number = match value {
        Value::Bit(set) => f64::from(u8::from(*set)),
        Value::Int(number) => *number as f64,
        Value::Decimal(digits) => {
            let scale = digits_of(from).map_or(0, |(_, scale)| scale);
            // By way of the text, for the nearest number.
            let text = crate::scalar::number_text::decimal((*digits).into(), scale);
            text.parse().unwrap_or_default()
        }
        Value::Real(number) => f64::from(*number),
        Value::Float(number) => *number,
        Value::Text(text) => parsed_float(text).ok_or_else(|| error::not_converted(from, to))?,
        _ => match Wall::of(value) {
            Some(wall) => ticks_to_old(wall.ticks) as f64 / OLD_TICKS_A_DAY as f64,
            None => return Err(error::explicit_refused(from, to)),
        },
    };
    if *to == SqlType::Float {
        return Ok(Value::Float(number));
    }
    #[allow(clippy::cast_possible_truncation, reason = "real is the nearest of half the width")]
    let narrow = number as f32;
    if narrow.is_finite() { Ok(Value::Real(narrow)) } else { Err(error::float_overflow(to)) }
}

/// The value as `decimal`, `money` or `smallmoney`.
fn exact(value: &Value, from: &SqlType, to: &SqlType) -> SqlResult<Value> {
    let (precision, scale) = digits_of(to).unwrap_or((38, 0));
    let overflow = || error::overflow_from(from, to);
    let digits = match value {
        Value::Bit(set) => rescale(i128::from(*set), 0, scale),
        Value::Int(number) => rescale(i128::from(*number), 0, scale),
        Value::Decimal(digits) => {
            let own = digits_of(from).map_or(0, |(_, scale)| scale);
            rescale((*digits).into(), own, scale)
        }
        Value::Real(number) => float_digits(f64::from(*number), scale),
        Value::Float(number) => float_digits(*number, scale),
        Value::Text(text) => {
            let (digits, own) = text_digits(text, from, to)?;
            rescale(digits, own, scale)
        }
        Value::Bytes(bytes) => match to {
            SqlType::Decimal { .. } => {
                let (digits, own) =
                    decimal_from_bytes(bytes).ok_or_else(|| error::not_converted(from, to))?;
                rescale(digits, own, scale)
            }
            SqlType::SmallMoney => Some(i128::from(integer_of_bytes(bytes, &SqlType::Int))),
            _ => Some(i128::from(integer_of_bytes(bytes, &SqlType::BigInt))),
        },
        _ => match Wall::of(value) {
            Some(wall) => {
                let ticks = i128::from(ticks_to_old(wall.ticks));
                // Eight digits tell ticks of a day apart.
                let fine = ticks * 1_000_000_000_000 / i128::from(OLD_TICKS_A_DAY);
                rescale(fine, 12, scale)
            }
            None => return Err(error::explicit_refused(from, to)),
        },
    };
    let digits = digits.ok_or_else(overflow)?;
    let held = match to {
        SqlType::Money => i64::try_from(digits).is_ok(),
        SqlType::SmallMoney => i32::try_from(digits).is_ok(),
        _ => fits(digits, precision),
    };
    if held { Ok(Value::decimal(digits)) } else { Err(overflow()) }
}

fn text_digits(text: &str, from: &SqlType, to: &SqlType) -> SqlResult<(i128, u8)> {
    if matches!(to, SqlType::Decimal { .. }) {
        return parsed(text).ok_or_else(|| error::not_converted(from, to));
    }
    parsed_money(text).ok_or_else(|| {
        SqlError::new(
            235,
            "Cannot convert a char value to money. The char value has incorrect syntax.",
        )
    })
}

/// The digits of a text as `money` reads it: a currency sign, commas anywhere among the digits; no
/// digits at all are 0.
pub(in crate::scalar) fn parsed_money(text: &str) -> Option<(i128, u8)> {
    let is_currency = |c: char| {
        matches!(
            c,
            '$' | '¢' | '£' | '¤' | '¥' | '৲' | '৳' | '฿' | '៛' | '₠'..='₿' | '﷼' | '﹩' | '＄'
        )
    };
    let mut rest = text.trim_matches(' ');
    let mut sign = "";
    let mut currency = false;
    loop {
        rest = rest.trim_start_matches(' ');
        match rest.chars().next() {
            Some(first @ ('-' | '+')) if sign.is_empty() => {
                sign = if first == '-' { "-" } else { "+" };
            }
            Some(first) if is_currency(first) && !currency => currency = true,
            _ => break,
        }
        let mut characters = rest.chars();
        characters.next();
        rest = characters.as_str();
    }
    let digits: String = rest.chars().filter(|c| *c != ',').collect();
    if digits.is_empty() {
        return if rest.is_empty() { Some((0, 0)) } else { None };
    }
    parsed(&format!("{sign}{digits}"))
}

/// Ticks of `datetime` since 1900 of a number of days.
pub(in crate::scalar) fn old_ticks(value: &Value, from: &SqlType) -> Option<i64> {
    let day = i128::from(OLD_TICKS_A_DAY);
    let ticks = match value {
        Value::Bit(set) => i128::from(*set) * day,
        Value::Int(number) => i128::from(*number) * day,
        Value::Decimal(digits) => {
            let (_, scale) = digits_of(from)?;
            let digits = rescale((*digits).into(), scale, scale.min(12))?;
            rescale(digits.checked_mul(day)?, scale.min(12), 0)?
        }
        Value::Real(number) => float_ticks(f64::from(*number))?,
        Value::Float(number) => float_ticks(*number)?,
        _ => return None,
    };
    i64::try_from(ticks).ok()
}

fn float_ticks(days: f64) -> Option<i128> {
    #[allow(clippy::cast_precision_loss, reason = "a day has far fewer ticks than 2^53")]
    let ticks = (days * OLD_TICKS_A_DAY as f64).round();
    #[allow(clippy::cast_possible_truncation, reason = "rounded and in range")]
    let whole = ticks as i128;
    (ticks.abs() < 1e18).then_some(whole)
}
