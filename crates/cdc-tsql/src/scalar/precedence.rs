//! Which type comes of two: operators, and the common type of alternatives and comparisons.

use cdc_core::{Length, SqlType};
use cdc_fake::SqlResult;

use super::{
    Operator, Unary, collation, error,
    exact::{digits_of, result_digits, united_digits},
    permission::{Permission, permission},
};
use crate::kind::Kind;

/// The most bytes of a text or binary that is not `(max)`.
pub(super) const MAX_BYTES: u16 = 8000;
/// The most UTF-16 units of an `nchar` or `nvarchar`.
pub(super) const MAX_UNITS: u16 = 4000;

/// What a type is to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Number,
    Text,
    Binary,
    /// `datetime` and `smalldatetime`, which count as numbers.
    OldMoment,
    /// The other dates and times, which do not.
    Moment,
    Guid,
    /// `text`, `ntext`, `image`, `xml`, CLR types.
    Large,
}

pub(super) const fn family(sql_type: &SqlType) -> Family {
    use SqlType as T;
    match sql_type {
        T::Char(_) | T::VarChar(_) | T::NChar(_) | T::NVarChar(_) => Family::Text,
        T::Binary(_) | T::VarBinary(_) | T::RowVersion => Family::Binary,
        T::DateTime | T::SmallDateTime => Family::OldMoment,
        T::Date | T::Time { .. } | T::DateTime2 { .. } | T::DateTimeOffset { .. } => Family::Moment,
        T::UniqueIdentifier => Family::Guid,
        T::Text | T::NText | T::Image | T::Xml | T::Other(_) => Family::Large,
        _ => Family::Number,
    }
}

/// A type's precedence: the higher number wins.
pub(super) const fn rank(sql_type: &SqlType) -> u8 {
    use SqlType as T;
    match sql_type {
        T::Binary(_) => 1,
        T::VarBinary(_) => 2,
        T::Char(_) => 3,
        T::VarChar(_) => 4,
        T::NChar(_) => 5,
        T::NVarChar(_) => 6,
        T::UniqueIdentifier => 7,
        T::RowVersion => 8,
        T::Image => 9,
        T::Text => 10,
        T::NText => 11,
        T::Bit => 12,
        T::TinyInt => 13,
        T::SmallInt => 14,
        T::Int => 15,
        T::BigInt => 16,
        T::SmallMoney => 17,
        T::Money => 18,
        T::Decimal { .. } => 19,
        T::Real => 20,
        T::Float => 21,
        T::Time { .. } => 22,
        T::Date => 23,
        T::SmallDateTime => 24,
        T::DateTime => 25,
        T::DateTime2 { .. } => 26,
        T::DateTimeOffset { .. } => 27,
        T::Xml => 28,
        _ => 29,
    }
}

/// An operator's name in messages.
pub(super) const fn operator_name(op: Operator) -> &'static str {
    match op {
        Operator::Add => "add",
        Operator::Subtract => "subtract",
        Operator::Multiply => "multiply",
        Operator::Divide => "divide",
        Operator::Modulo => "modulo",
        Operator::BitAnd => "'&'",
        Operator::BitOr => "'|'",
        Operator::BitXor => "'^'",
    }
}

const fn is_bitwise(op: Operator) -> bool {
    matches!(op, Operator::BitAnd | Operator::BitOr | Operator::BitXor)
}

/// The kind of `left op right`: precedence, precision and scale, lengths, collation.
///
/// # Errors
/// 402, 8117, 206 for operands that do not go together, 468 for collations that do not.
pub(crate) fn operator_kind(op: Operator, left: &Kind, right: &Kind) -> SqlResult<Kind> {
    let (a, b) = (&left.sql_type, &right.sql_type);
    let name = operator_name(op);
    let mismatch = || Err(error::incompatible(a, b, name));
    let nullable = left.nullable || right.nullable;
    let sql_type = match (family(a), family(b)) {
        (Family::Large, _) | (_, Family::Large) => return mismatch(),
        (Family::Text, Family::Text) | (Family::Binary, Family::Binary) => {
            if op != Operator::Add {
                return if is_bitwise(op) {
                    mismatch()
                } else {
                    Err(error::invalid_operand(a, name))
                };
            }
            let deciding = collation::deciding(left, right)?;
            return Ok(Kind::new(concatenated(a, b), nullable).collated_as(deciding));
        }
        (Family::Text, Family::Binary) | (Family::Binary, Family::Text) => return mismatch(),
        (Family::Number, Family::Text | Family::Binary) => number_result(op, a, a)?,
        (Family::Text | Family::Binary, Family::Number) => number_result(op, b, b)?,
        (Family::Number, Family::Number) => number_result(op, a, b)?,
        (Family::OldMoment, Family::Number | Family::Text)
        | (Family::Number | Family::Text, Family::OldMoment)
        | (Family::OldMoment, Family::OldMoment) => {
            if !matches!(op, Operator::Add | Operator::Subtract) {
                let moment = if family(a) == Family::OldMoment { a } else { b };
                return Err(error::invalid_operand(moment, name));
            }
            if rank(a) >= rank(b) { a.clone() } else { b.clone() }
        }
        (Family::Moment | Family::Guid, _) | (_, Family::Moment | Family::Guid) => {
            return Err(match () {
                () if a == b => error::invalid_operand(a, name),
                () if family(a) == Family::Number || family(b) == Family::Number => {
                    let (moment, other) = if family(a) == Family::Number { (b, a) } else { (a, b) };
                    error::clash(moment, other)
                }
                () => error::incompatible(a, b, name),
            });
        }
        (Family::Binary, Family::OldMoment) | (Family::OldMoment, Family::Binary) => {
            return mismatch();
        }
    };
    Ok(Kind::new(sql_type, nullable))
}

/// The type of an operator between two number types.
fn number_result(op: Operator, a: &SqlType, b: &SqlType) -> SqlResult<SqlType> {
    use SqlType as T;
    let name = operator_name(op);
    let winner = if rank(a) >= rank(b) { a } else { b };
    let whole = matches!(winner, T::Bit | T::TinyInt | T::SmallInt | T::Int | T::BigInt);
    if is_bitwise(op) {
        return if whole { Ok(winner.clone()) } else { Err(error::incompatible(a, b, name)) };
    }
    match winner {
        T::Bit => Err(error::invalid_operand(winner, name)),
        T::Real | T::Float if op == Operator::Modulo => Err(error::incompatible(a, b, name)),
        T::Decimal { .. } => {
            let (left, right) = (digits_of(a), digits_of(b));
            let (precision, scale) = match (left, right) {
                (Some(left), Some(right)) => result_digits(op, left, right),
                _ => return Err(error::incompatible(a, b, name)),
            };
            Ok(T::Decimal { precision, scale })
        }
        _ => Ok(winner.clone()),
    }
}

/// The type of two texts, or two binaries, one behind the other.
fn concatenated(a: &SqlType, b: &SqlType) -> SqlType {
    let sum = |most: u16| match (length(a), length(b)) {
        (Length::Limited(one), Length::Limited(other)) => {
            Length::Limited(one.saturating_add(other).min(most).max(1))
        }
        _ => Length::Max,
    };
    match family(a) {
        Family::Binary => SqlType::VarBinary(sum(MAX_BYTES)),
        _ if is_national(a) || is_national(b) => SqlType::NVarChar(sum(MAX_UNITS)),
        _ => SqlType::VarChar(sum(MAX_BYTES)),
    }
}

/// The declared length of a text or binary; `(max)` for the large types.
pub(super) const fn length(sql_type: &SqlType) -> Length {
    use SqlType as T;
    match sql_type {
        T::Char(length) | T::NChar(length) | T::Binary(length) => Length::Limited(*length),
        T::VarChar(length) | T::NVarChar(length) | T::VarBinary(length) => *length,
        T::RowVersion => Length::Limited(8),
        _ => Length::Max,
    }
}

/// True for the types of UTF-16 units.
pub(super) const fn is_national(sql_type: &SqlType) -> bool {
    use SqlType as T;
    matches!(sql_type, T::NChar(_) | T::NVarChar(_) | T::NText | T::Xml)
}

/// The kind of `op of`.
///
/// # Errors
/// 8117 for a type without this operator.
pub(crate) fn unary_kind(op: Unary, of: &Kind) -> SqlResult<Kind> {
    let sql_type = &of.sql_type;
    let whole = matches!(
        sql_type,
        SqlType::Bit | SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt
    );
    let takes = match op {
        Unary::Plus => true,
        Unary::Minus => family(sql_type) == Family::Number && *sql_type != SqlType::Bit,
        Unary::BitNot => whole,
    };
    if takes {
        // tinyint has no negative numbers.
        return Ok(match (op, sql_type) {
            (Unary::Minus, SqlType::TinyInt) => Kind { sql_type: SqlType::SmallInt, ..of.clone() },
            _ => of.clone(),
        });
    }
    let name = if op == Unary::Minus { "minus" } else { "'~'" };
    Err(error::invalid_operand(sql_type, name))
}

/// The kind that all operands of CASE, COALESCE, UNION, IN or a comparison are converted to: the
/// one of highest precedence, with lengths, precisions and scales united. A bare NULL is to be left
/// out; of none, the kind is a nullable `int`.
///
/// # Errors
/// 206 for types that do not go together, 468 for collations.
pub(crate) fn common_kind(kinds: &[Kind]) -> SqlResult<Kind> {
    let Some((first, rest)) = kinds.split_first() else {
        return Ok(Kind::new(SqlType::Int, true));
    };
    let mut common = first.clone();
    for kind in rest {
        common = common_of_two(&common, kind)?;
    }
    Ok(common)
}

fn common_of_two(left: &Kind, right: &Kind) -> SqlResult<Kind> {
    let (a, b) = (&left.sql_type, &right.sql_type);
    let nullable = left.nullable || right.nullable;
    let (winner, loser) = if rank(a) >= rank(b) { (left, right) } else { (right, left) };
    let sql_type = united(&winner.sql_type, &loser.sql_type);
    if permission(&loser.sql_type, &sql_type) != Permission::Implicit {
        return Err(error::clash(a, b));
    }
    let textual = |sql_type: &SqlType| {
        family(sql_type) == Family::Text || matches!(sql_type, SqlType::Text | SqlType::NText)
    };
    let kind = match (textual(a), textual(b)) {
        (true, true) => {
            Kind::new(sql_type, nullable).collated_as(collation::deciding(left, right)?)
        }
        _ if textual(&sql_type) => Kind::new(sql_type, nullable).collated_as(winner),
        _ => Kind::new(sql_type, nullable),
    };
    Ok(kind)
}

/// The winning type, wide enough for the other.
fn united(winner: &SqlType, loser: &SqlType) -> SqlType {
    use SqlType as T;
    match (family(winner), family(loser)) {
        (Family::Text, Family::Text) => return united_text(winner, loser),
        (Family::Binary, Family::Binary) if *winner != T::RowVersion && *loser != T::RowVersion => {
            let longest = longer(length(winner), length(loser));
            return match (winner, loser, longest) {
                (T::Binary(_), T::Binary(_), Length::Limited(length)) => T::Binary(length),
                _ => T::VarBinary(longest),
            };
        }
        _ => {}
    }
    match (winner, digits_of(winner), digits_of(loser)) {
        (T::Decimal { .. }, Some(one), Some(other)) => {
            let (precision, scale) = united_digits(one, other);
            T::Decimal { precision, scale }
        }
        (T::DateTime2 { scale }, ..) => T::DateTime2 { scale: fraction(*scale, loser) },
        (T::DateTimeOffset { scale }, ..) => T::DateTimeOffset { scale: fraction(*scale, loser) },
        (T::Time { scale }, ..) => T::Time { scale: fraction(*scale, loser) },
        _ => winner.clone(),
    }
}

fn united_text(a: &SqlType, b: &SqlType) -> SqlType {
    use SqlType as T;
    let fixed = matches!(a, T::Char(_) | T::NChar(_)) && matches!(b, T::Char(_) | T::NChar(_));
    let national = is_national(a) || is_national(b);
    let longest = longer(length(a), length(b));
    match (national, longest) {
        (false, Length::Limited(length)) if fixed => T::Char(length),
        (false, _) => T::VarChar(longest),
        (true, Length::Limited(length)) if fixed => T::NChar(length.min(MAX_UNITS)),
        (true, Length::Limited(length)) => T::NVarChar(Length::Limited(length.min(MAX_UNITS))),
        (true, Length::Max) => T::NVarChar(Length::Max),
    }
}

fn longer(a: Length, b: Length) -> Length {
    match (a, b) {
        (Length::Limited(a), Length::Limited(b)) => Length::Limited(a.max(b)),
        _ => Length::Max,
    }
}

/// Digits of a second that hold both.
fn fraction(scale: u8, other: &SqlType) -> u8 {
    match other {
        SqlType::DateTime2 { scale: other }
        | SqlType::DateTimeOffset { scale: other }
        | SqlType::Time { scale: other } => scale.max(*other),
        SqlType::DateTime => scale.max(3),
        _ => scale,
    }
}

#[cfg(test)]
mod tests;
