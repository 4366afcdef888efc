//! Functions of numbers.

use std::sync::atomic::{AtomicU64, Ordering};

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult, Value};

use super::{Call, Definition, Signature, define};
use crate::{
    kind::Kind,
    scalar::{
        conversion::{assign, in_range},
        error,
        exact::{MAX_PRECISION, digits_of, fits, rescale},
        number_text::float_digits,
        precedence::{Family, family},
    },
};

pub(super) const FUNCTIONS: &[Definition] = &[
    define("ABS", 1, 1, same_number, abs),
    define("SIGN", 1, 1, widest_number, sign),
    define("CEILING", 1, 1, without_fraction, |call| stepped(call, true)),
    define("FLOOR", 1, 1, without_fraction, |call| stepped(call, false)),
    define("ROUND", 2, 3, same_number, round),
    define("POWER", 2, 2, widest_number, power),
    define("SQUARE", 1, 1, float, |call| of_float(call, |x| x * x)),
    define("SQRT", 1, 1, float, |call| of_float(call, f64::sqrt)),
    define("EXP", 1, 1, float, |call| of_float(call, f64::exp)),
    define("LOG", 1, 2, float, log),
    define("LOG10", 1, 1, float, |call| of_float(call, f64::log10)),
    define(
        "PI",
        0,
        0,
        |_| Ok(Kind::new(SqlType::Float, false)),
        |_| Ok(Value::Float(std::f64::consts::PI)),
    ),
    define("SIN", 1, 1, float, |call| of_float(call, f64::sin)),
    define("COS", 1, 1, float, |call| of_float(call, f64::cos)),
    define("TAN", 1, 1, float, |call| of_float(call, f64::tan)),
    define("COT", 1, 1, float, |call| of_float(call, |x| 1.0 / x.tan())),
    define("ASIN", 1, 1, float, |call| of_float(call, f64::asin)),
    define("ACOS", 1, 1, float, |call| of_float(call, f64::acos)),
    define("ATAN", 1, 1, float, |call| of_float(call, f64::atan)),
    define("ATN2", 2, 2, float, atn2),
    define("DEGREES", 1, 1, fine_number, |call| angle(call, f64::to_degrees)),
    define("RADIANS", 1, 1, fine_number, |call| angle(call, f64::to_radians)),
    define("RAND", 0, 1, |_| Ok(Kind::new(SqlType::Float, true)), rand),
];

/// The number type of the first argument as these functions see it: texts and `bit` are `float`,
/// `tinyint` and `smallint` are `int`.
fn number_type(signature: &Signature<'_>) -> SqlResult<SqlType> {
    use SqlType as T;
    let sql_type = &signature.kind(0)?.sql_type;
    signature.takes(0..1, &T::Float)?;
    if !matches!(family(sql_type), Family::Number | Family::Text) {
        return Err(error::invalid_argument(sql_type, 1, signature.name));
    }
    Ok(match sql_type {
        T::TinyInt | T::SmallInt => T::Int,
        T::Int | T::BigInt | T::Decimal { .. } | T::Money => sql_type.clone(),
        T::SmallMoney => T::Money,
        _ => T::Float,
    })
}

fn same_number(signature: &Signature<'_>) -> SqlResult<Kind> {
    Ok(signature.result(number_type(signature)?))
}

fn widest_number(signature: &Signature<'_>) -> SqlResult<Kind> {
    Ok(signature.result(match number_type(signature)? {
        SqlType::Decimal { scale, .. } => SqlType::Decimal { precision: MAX_PRECISION, scale },
        other => other,
    }))
}

fn without_fraction(signature: &Signature<'_>) -> SqlResult<Kind> {
    Ok(signature.result(match number_type(signature)? {
        SqlType::Decimal { precision, .. } => SqlType::Decimal { precision, scale: 0 },
        other => other,
    }))
}

fn fine_number(signature: &Signature<'_>) -> SqlResult<Kind> {
    Ok(signature.result(match number_type(signature)? {
        SqlType::Decimal { .. } => SqlType::Decimal { precision: MAX_PRECISION, scale: 18 },
        other => other,
    }))
}

fn float(signature: &Signature<'_>) -> SqlResult<Kind> {
    signature.takes(0..signature.arguments.len(), &SqlType::Float)?;
    Ok(signature.result(SqlType::Float))
}

fn invalid_operation() -> SqlError {
    SqlError::new(3623, "An invalid floating point operation occurred.")
}

fn finite(number: f64) -> SqlResult<Value> {
    if number.is_nan() {
        return Err(invalid_operation());
    }
    if number.is_finite() {
        Ok(Value::Float(number))
    } else {
        Err(error::overflow(&SqlType::Float))
    }
}

fn of_float(call: &Call<'_>, function: fn(f64) -> f64) -> SqlResult<Value> {
    match call.float(0)? {
        Some(number) => {
            let found = function(number);
            // The logarithm of 0 is no overflow.
            if found.is_infinite() && number == 0.0 {
                Err(invalid_operation())
            } else {
                finite(found)
            }
        }
        None => Ok(Value::Null),
    }
}

fn log(call: &Call<'_>) -> SqlResult<Value> {
    let base = if call.has(1) { call.float(1)? } else { Some(std::f64::consts::E) };
    let (Some(number), Some(base)) = (call.float(0)?, base) else { return Ok(Value::Null) };
    if number <= 0.0 || base <= 0.0 || base == 1.0 {
        return Err(invalid_operation());
    }
    finite(if call.has(1) { number.ln() / base.ln() } else { number.ln() })
}

fn atn2(call: &Call<'_>) -> SqlResult<Value> {
    match (call.float(0)?, call.float(1)?) {
        (Some(y), Some(x)) => finite(y.atan2(x)),
        _ => Ok(Value::Null),
    }
}

/// The first argument in the type of the result.
fn number(call: &Call<'_>) -> SqlResult<(Value, Kind)> {
    let kind = call.kind()?;
    let typed = call.typed(0)?;
    Ok((assign(&typed.value, &typed.kind, &kind, call.facts)?, kind))
}

fn held(digits: i128, to: &SqlType) -> SqlResult<Value> {
    let fits = match to {
        SqlType::Money => i64::try_from(digits).is_ok(),
        SqlType::Decimal { precision, .. } => fits(digits, *precision),
        _ => true,
    };
    if fits { Ok(Value::decimal(digits)) } else { Err(error::overflow(to)) }
}

fn abs(call: &Call<'_>) -> SqlResult<Value> {
    let (value, kind) = number(call)?;
    let to = &kind.sql_type;
    Ok(match value {
        Value::Int(number) => {
            let positive = in_range(i128::from(number).abs(), to);
            Value::Int(positive.ok_or_else(|| error::overflow(to))?)
        }
        Value::Float(number) => Value::Float(number.abs()),
        Value::Decimal(digits) => held(i128::from(digits).abs(), to)?,
        other => other,
    })
}

fn sign(call: &Call<'_>) -> SqlResult<Value> {
    let (value, kind) = number(call)?;
    let unit = digits_of(&kind.sql_type).and_then(|(_, scale)| rescale(1, 0, scale));
    Ok(match value {
        Value::Int(number) => Value::Int(number.signum()),
        Value::Float(0.0) => Value::Float(0.0),
        Value::Float(number) => Value::Float(number.signum()),
        Value::Decimal(digits) => {
            held(i128::from(digits).signum() * unit.unwrap_or_default(), &kind.sql_type)?
        }
        other => other,
    })
}

/// The next whole number above or below.
fn stepped(call: &Call<'_>, up: bool) -> SqlResult<Value> {
    let typed = call.typed(0)?;
    let kind = call.kind()?;
    if let (Value::Decimal(digits), Some((_, scale))) =
        (&typed.value, digits_of(&typed.kind.sql_type))
    {
        let unit = 10_i128.checked_pow(u32::from(scale)).unwrap_or(i128::MAX);
        let digits = i128::from(*digits);
        let below = digits.div_euclid(unit);
        let whole = if up && below * unit != digits { below + 1 } else { below };
        let (_, own) = digits_of(&kind.sql_type).unwrap_or((MAX_PRECISION, 0));
        let shown = rescale(whole, 0, own).ok_or_else(|| error::overflow(&kind.sql_type))?;
        return held(shown, &kind.sql_type);
    }
    Ok(match number(call)?.0 {
        Value::Float(number) if up => Value::Float(number.ceil()),
        Value::Float(number) => Value::Float(number.floor()),
        other => other,
    })
}

/// To so many digits behind the point, or before it when negative; cut with a third argument that
/// is not 0.
fn round(call: &Call<'_>) -> SqlResult<Value> {
    let (value, kind) = number(call)?;
    let cut = if call.has(2) { call.int(2)? } else { Some(0) };
    let (Some(places), Some(cut)) = (call.int(1)?, cut) else { return Ok(Value::Null) };
    let cut = cut != 0;
    let to = &kind.sql_type;
    Ok(match value {
        Value::Int(number) => {
            let rounded = rounded_digits(i128::from(number), 0, places, cut);
            Value::Int(in_range(rounded, to).ok_or_else(|| error::overflow(to))?)
        }
        Value::Decimal(digits) => {
            let (_, scale) = digits_of(to).unwrap_or((MAX_PRECISION, 0));
            held(rounded_digits(digits.into(), scale, places, cut), to)?
        }
        Value::Float(number) => finite(rounded_float(number, places, cut))?,
        other => other,
    })
}

fn rounded_digits(digits: i128, scale: u8, places: i64, cut: bool) -> i128 {
    let dropped = i64::from(scale).saturating_sub(places);
    if dropped <= 0 {
        return digits;
    }
    let unit = u32::try_from(dropped).ok().and_then(|dropped| 10_i128.checked_pow(dropped));
    let Some(unit) = unit else { return 0 };
    let kept = digits / unit;
    let rest = (digits % unit).abs();
    let away = !cut && rest >= unit - rest;
    (kept + if away { digits.signum() } else { 0 }).saturating_mul(unit)
}

fn rounded_float(number: f64, places: i64, cut: bool) -> f64 {
    /// No float has more digits on either side of its point.
    const MOST: i64 = 308;
    if places < -MOST {
        return 0.0;
    }
    let Ok(places) = i32::try_from(places.min(MOST)) else { return number };
    let power = 10_f64.powi(places.abs());
    let scaled = if places < 0 { number / power } else { number * power };
    if !scaled.is_finite() || scaled.abs() >= 1e16 {
        return number;
    }
    let whole = if cut { scaled.trunc() } else { scaled.round() };
    if places < 0 { whole * power } else { whole / power }
}

/// A power in the type of its base.
fn power(call: &Call<'_>) -> SqlResult<Value> {
    let kind = call.kind()?;
    let (Some(base), Some(exponent)) = (call.float(0)?, call.float(1)?) else {
        return Ok(Value::Null);
    };
    // A whole base to a whole power is exact.
    if let (Value::Int(base), true) = (number(call)?.0, exponent.fract() == 0.0 && exponent >= 0.0)
    {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and positive; saturates"
        )]
        let times = exponent as u32;
        let found = i128::from(base).checked_pow(times);
        let found = found.and_then(|found| in_range(found, &kind.sql_type));
        return found.map(Value::Int).ok_or_else(|| error::overflow(&kind.sql_type));
    }
    if base == 0.0 && exponent < 0.0 {
        return Err(error::division_by_zero());
    }
    of_result_type(base.powf(exponent), &kind.sql_type)
}

fn of_result_type(number: f64, to: &SqlType) -> SqlResult<Value> {
    let Value::Float(number) = finite(number)? else { return Ok(Value::Null) };
    let overflow = || error::overflow(to);
    match to {
        SqlType::Int | SqlType::BigInt => {
            if number.abs() >= 1e19 {
                return Err(overflow());
            }
            #[allow(clippy::cast_possible_truncation, reason = "the whole part, in range")]
            let whole = number as i128;
            in_range(whole, to).map(Value::Int).ok_or_else(overflow)
        }
        SqlType::Decimal { scale, .. } => {
            held(float_digits(number, *scale).ok_or_else(overflow)?, to)
        }
        SqlType::Money => held(float_digits(number, 4).ok_or_else(overflow)?, to),
        _ => Ok(Value::Float(number)),
    }
}

fn angle(call: &Call<'_>, function: fn(f64) -> f64) -> SqlResult<Value> {
    match call.float(0)? {
        Some(number) => of_result_type(function(number), &call.kind()?.sql_type),
        None => Ok(Value::Null),
    }
}

/// Counts calls, so that a sequence of numbers is the same in every run of a program.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// Well-mixed bits of a number (the finaliser of SplitMix64).
pub(super) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The next number of the sequence.
pub(super) fn next_random() -> u64 {
    mixed(CALLS.fetch_add(1, Ordering::Relaxed))
}

/// A number from 0 to below 1; the same one for the same seed. The numbers of a seed are not the
/// server's.
fn rand(call: &Call<'_>) -> SqlResult<Value> {
    let bits = if call.has(0) {
        match call.int(0)? {
            Some(seed) => mixed(u64::from_ne_bytes(seed.to_ne_bytes())),
            None => mixed(0),
        }
    } else {
        next_random()
    };
    #[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
    let number = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    Ok(Value::Float(number))
}
