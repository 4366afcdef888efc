//! The operators: numbers, texts behind one another, days added to a `datetime`.

use cdc_core::{ServerTime, SqlType};
use cdc_fake::{SqlResult, Value};

use super::{
    Facts, Operator, Unary,
    conversion::{Excess, assign, bytes_of, fitted, text_of},
    error,
    exact::{compute, digits_of, rescale},
    moment::{OLD_TICKS_A_DAY, Wall, old_to_ticks, ticks_to_old},
    permission::{Permission, permission},
    precedence::{Family, family, length, operator_kind, operator_name, unary_kind},
};
use crate::kind::Kind;

/// An operand with its kind.
type Operand<'a> = (&'a Value, &'a Kind);

/// The value of `left op right`, of the kind that [`operator_kind`] says.
///
/// # Errors
/// 8134 for a division by zero, 8115 for an overflow, and those of conversions.
pub(crate) fn operate(
    op: Operator,
    left: (&Value, &Kind),
    right: (&Value, &Kind),
    facts: &Facts,
) -> SqlResult<Value> {
    let found = match (left, right) {
        // Most rows: two whole numbers of the same type.
        ((Value::Int(a), kind), (Value::Int(b), other)) if kind.sql_type == other.sql_type => {
            integers(op, *a, *b, &kind.sql_type).map(Value::Int)
        }
        _ => any_values(op, left, right, facts),
    };
    forgiven(found, facts)
}

/// With ARITHABORT and ANSI_WARNINGS off, what cannot be computed is NULL.
fn forgiven(found: SqlResult<Value>, facts: &Facts) -> SqlResult<Value> {
    match found {
        Err(error) if !facts.settings.arithmetic_errors && matches!(error.number, 8115 | 8134) => {
            Ok(Value::Null)
        }
        found => found,
    }
}

fn any_values(
    op: Operator,
    left: Operand<'_>,
    right: Operand<'_>,
    facts: &Facts,
) -> SqlResult<Value> {
    let kind = operator_kind(op, left.1, right.1)?;
    let to = &kind.sql_type;
    if family(to) == Family::Text {
        return concatenated(left, right, &kind, facts);
    }
    if left.0.is_null() || right.0.is_null() {
        return Ok(Value::Null);
    }
    match to {
        SqlType::VarBinary(_) => {
            let bytes = [bytes_of(left.0, left.1, facts)?, bytes_of(right.0, right.1, facts)?];
            let most = match length(to) {
                cdc_core::Length::Limited(limit) => usize::from(limit),
                cdc_core::Length::Max => usize::MAX,
            };
            let joined: Vec<u8> =
                bytes.iter().flat_map(|bytes| bytes.iter().copied()).take(most).collect();
            Ok(Value::bytes(&joined))
        }
        SqlType::DateTime | SqlType::SmallDateTime => moments(op, left, right, to, facts),
        SqlType::Decimal { precision, scale } => {
            let (a, b) = (exact_operand(left, right, facts)?, exact_operand(right, left, facts)?);
            compute(op, a, b, (*precision, *scale)).map(Value::decimal)
        }
        _ => {
            let operand = |(value, own): Operand<'_>| assign(value, own, &kind, facts);
            match (operand(left)?, operand(right)?) {
                (Value::Int(a), Value::Int(b)) => integers(op, a, b, to).map(Value::Int),
                (Value::Bit(a), Value::Bit(b)) => bits(op, a, b, to),
                (Value::Float(a), Value::Float(b)) => floats(op, a, b, to),
                (Value::Real(a), Value::Real(b)) => reals(op, a, b, to),
                (Value::Decimal(a), Value::Decimal(b)) => money(op, a.into(), b.into(), to),
                _ => {
                    Err(error::incompatible(&left.1.sql_type, &right.1.sql_type, operator_name(op)))
                }
            }
        }
    }
}

fn concatenated(
    left: Operand<'_>,
    right: Operand<'_>,
    kind: &Kind,
    facts: &Facts,
) -> SqlResult<Value> {
    if facts.settings.concat_null_yields_null && (left.0.is_null() || right.0.is_null()) {
        return Ok(Value::Null);
    }
    let (a, b) = (text_of(left.0, left.1, facts)?, text_of(right.0, right.1, facts)?);
    let page = kind.collation.unwrap_or(facts.collation).code_page;
    fitted(&format!("{a}{b}"), &kind.sql_type, page, Excess::Cut)
}

fn integers(op: Operator, a: i64, b: i64, to: &SqlType) -> SqlResult<i64> {
    if b == 0 && matches!(op, Operator::Divide | Operator::Modulo) {
        return Err(error::division_by_zero());
    }
    let (a, b) = (i128::from(a), i128::from(b));
    let found = match op {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        Operator::Modulo => a % b,
        Operator::BitAnd => a & b,
        Operator::BitOr => a | b,
        Operator::BitXor => a ^ b,
    };
    in_range(found, to)
}

/// The number when the integer type holds it.
pub(super) fn in_range(number: i128, to: &SqlType) -> SqlResult<i64> {
    super::conversion::in_range(number, to).ok_or_else(|| error::overflow(to))
}

fn bits(op: Operator, a: bool, b: bool, to: &SqlType) -> SqlResult<Value> {
    Ok(Value::Bit(match op {
        Operator::BitAnd => a & b,
        Operator::BitOr => a | b,
        Operator::BitXor => a ^ b,
        _ => return Err(error::invalid_operand(to, operator_name(op))),
    }))
}

fn floats(op: Operator, a: f64, b: f64, to: &SqlType) -> SqlResult<Value> {
    if b == 0.0 && op == Operator::Divide {
        return Err(error::division_by_zero());
    }
    let found = match op {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        _ => return Err(error::incompatible(to, to, operator_name(op))),
    };
    if found.is_finite() { Ok(Value::Float(found)) } else { Err(error::overflow(to)) }
}

fn reals(op: Operator, a: f32, b: f32, to: &SqlType) -> SqlResult<Value> {
    if b == 0.0 && op == Operator::Divide {
        return Err(error::division_by_zero());
    }
    let found = match op {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        _ => return Err(error::incompatible(to, to, operator_name(op))),
    };
    if found.is_finite() { Ok(Value::Real(found)) } else { Err(error::overflow(to)) }
}

/// Ten-thousandths: products round to one, quotients are cut.
fn money(op: Operator, a: i128, b: i128, to: &SqlType) -> SqlResult<Value> {
    const ONE: i128 = 10_000;
    if b == 0 && matches!(op, Operator::Divide | Operator::Modulo) {
        return Err(error::division_by_zero());
    }
    let found = match op {
        Operator::Add => Some(a + b),
        Operator::Subtract => Some(a - b),
        Operator::Multiply => rescale(a * b, 8, 4),
        Operator::Divide => Some(a * ONE / b),
        Operator::Modulo => Some(a % b),
        _ => return Err(error::incompatible(to, to, operator_name(op))),
    };
    let held = found.filter(|digits| match to {
        SqlType::SmallMoney => i32::try_from(*digits).is_ok(),
        _ => i64::try_from(*digits).is_ok(),
    });
    held.map(Value::decimal).ok_or_else(|| error::overflow(to))
}

/// The digits and scale of an operand of exact numbers; a text is read as the other's type.
fn exact_operand(operand: Operand<'_>, other: Operand<'_>, facts: &Facts) -> SqlResult<(i128, u8)> {
    let (value, kind) = operand;
    let (number, scale) = match (value, digits_of(&kind.sql_type)) {
        (Value::Decimal(digits), Some((_, scale))) => return Ok(((*digits).into(), scale)),
        (Value::Int(number), Some(_)) => return Ok((i128::from(*number), 0)),
        (Value::Bit(set), Some(_)) => return Ok((i128::from(*set), 0)),
        _ => {
            let scale = digits_of(&other.1.sql_type).map_or(0, |(_, scale)| scale);
            (assign(value, kind, other.1, facts)?, scale)
        }
    };
    match number {
        Value::Decimal(digits) => Ok((digits.into(), scale)),
        _ => Err(error::not_converted(&kind.sql_type, &other.1.sql_type)),
    }
}

/// Days, and parts of days, added to a date since 1900; of two dates, the days of both.
fn moments(
    op: Operator,
    left: Operand<'_>,
    right: Operand<'_>,
    to: &SqlType,
    facts: &Facts,
) -> SqlResult<Value> {
    let datetime = Kind::new(SqlType::DateTime, true);
    let ticks = |(value, kind): Operand<'_>| -> SqlResult<i64> {
        if permission(&kind.sql_type, &SqlType::DateTime) == Permission::Never {
            return Err(error::clash(&kind.sql_type, &SqlType::DateTime));
        }
        // A number of days may be negative far beyond the first datetime.
        if let Some(ticks) = super::conversion::days_as_ticks(value, &kind.sql_type) {
            return Ok(ticks);
        }
        match assign(value, kind, &datetime, facts)? {
            Value::DateTime(time) => Ok(time.as_ticks()),
            _ => Err(error::clash(&kind.sql_type, &SqlType::DateTime)),
        }
    };
    let (a, b) = (ticks(left)?, ticks(right)?);
    let sum = if op == Operator::Subtract { a.checked_sub(b) } else { a.checked_add(b) };
    let sum = sum
        .filter(|sum| (-100_000..=4_000_000).contains(&sum.div_euclid(OLD_TICKS_A_DAY)))
        .ok_or_else(|| error::overflow(to))?;
    let wall = Wall { ticks: old_to_ticks(ServerTime::from_ticks(sum).as_ticks()), offset: None };
    debug_assert_eq!(ticks_to_old(wall.ticks), sum);
    wall.stored(to, to).map_err(|_| error::overflow(to))
}

/// The value of `op of`.
///
/// # Errors
/// 8115 for an overflow, 8117 for a type without this operator.
pub(crate) fn unary(op: Unary, of: (&Value, &Kind), facts: &Facts) -> SqlResult<Value> {
    let (value, kind) = of;
    let to = unary_kind(op, kind)?.sql_type;
    let found = match (op, value) {
        (_, Value::Null) => Ok(Value::Null),
        (Unary::Plus, _) => Ok(value.clone()),
        (Unary::Minus, Value::Int(number)) => in_range(-i128::from(*number), &to).map(Value::Int),
        (Unary::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
        (Unary::Minus, Value::Real(number)) => Ok(Value::Real(-number)),
        (Unary::Minus, Value::Decimal(digits)) => money_or_decimal(-i128::from(*digits), &to),
        (Unary::BitNot, Value::Bit(set)) => Ok(Value::Bit(!set)),
        (Unary::BitNot, Value::Int(number)) if to == SqlType::TinyInt => {
            Ok(Value::Int(255 - number))
        }
        (Unary::BitNot, Value::Int(number)) => Ok(Value::Int(!number)),
        _ => Err(error::invalid_operand(&kind.sql_type, "minus")),
    };
    forgiven(found, facts)
}

fn money_or_decimal(digits: i128, to: &SqlType) -> SqlResult<Value> {
    let held = match to {
        SqlType::Money => i64::try_from(digits).is_ok(),
        SqlType::SmallMoney => i32::try_from(digits).is_ok(),
        _ => true,
    };
    if held { Ok(Value::decimal(digits)) } else { Err(error::overflow(to)) }
}

#[cfg(test)]
mod tests;
