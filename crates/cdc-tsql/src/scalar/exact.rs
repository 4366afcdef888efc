//! Exact numbers: the precision and scale of a result, and its digits.
//!
//! Digits stand at a scale: 12.34 at scale 2 is 1234. Intermediate results have 256 bits, so that
//! nothing is lost before the one rounding that the result's scale asks for.

use arrow_buffer::i256;
use cdc_core::SqlType;
use cdc_fake::SqlResult;

use super::{Operator, error};

/// The most digits an exact number has.
pub(super) const MAX_PRECISION: u8 = 38;
/// A quotient or a product keeps this many digits behind the point when its scale has to give way.
const KEPT_SCALE: u8 = 6;

/// Precision and scale of a number type as a `decimal` sees it; none for other types.
pub(super) const fn digits_of(sql_type: &SqlType) -> Option<(u8, u8)> {
    Some(match sql_type {
        SqlType::Bit => (1, 0),
        SqlType::TinyInt => (3, 0),
        SqlType::SmallInt => (5, 0),
        SqlType::Int => (10, 0),
        SqlType::BigInt => (19, 0),
        SqlType::Money => (19, 4),
        SqlType::SmallMoney => (10, 4),
        SqlType::Decimal { precision, scale } => (*precision, *scale),
        _ => return None,
    })
}

/// Precision and scale of `left op right`, both given as precision and scale.
pub(super) fn result_digits(op: Operator, left: (u8, u8), right: (u8, u8)) -> (u8, u8) {
    let ((p1, s1), (p2, s2)) = (left, right);
    let (whole1, whole2) = (p1.saturating_sub(s1), p2.saturating_sub(s2));
    match op {
        Operator::Multiply => product_digits(p1 + p2 + 1, s1 + s2),
        Operator::Divide => {
            let scale = KEPT_SCALE.max(s1 + p2 + 1);
            product_digits(whole1 + s2 + scale, scale)
        }
        Operator::Modulo => (whole1.min(whole2) + s1.max(s2), s1.max(s2)),
        _ => sum_digits(whole1.max(whole2), s1.max(s2), 1),
    }
}

/// Precision and scale that hold both numbers.
pub(super) fn united_digits(left: (u8, u8), right: (u8, u8)) -> (u8, u8) {
    let whole = left.0.saturating_sub(left.1).max(right.0.saturating_sub(right.1));
    sum_digits(whole, left.1.max(right.1), 0)
}

/// Whole digits are never given up for digits behind the point.
fn sum_digits(whole: u8, scale: u8, carry: u8) -> (u8, u8) {
    let precision = whole + scale + carry;
    if precision <= MAX_PRECISION {
        return (precision, scale);
    }
    (MAX_PRECISION, scale.min(MAX_PRECISION - whole))
}

/// The scale gives way to whole digits, but keeps six when it has them.
fn product_digits(precision: u8, scale: u8) -> (u8, u8) {
    if precision <= MAX_PRECISION {
        return (precision, scale);
    }
    let whole = precision - scale;
    let room = MAX_PRECISION.saturating_sub(whole);
    (MAX_PRECISION, scale.min(room.max(KEPT_SCALE)))
}

/// The digits of `left op right` at the scale of `result`. Sums and products round half away from
/// zero where their scale gave way; quotients are cut, as the server cuts them.
///
/// # Errors
/// 8134 for a division by zero, 8115 for more than 38 digits.
pub(super) fn compute(
    op: Operator,
    left: (i128, u8),
    right: (i128, u8),
    result: (u8, u8),
) -> SqlResult<i128> {
    let ((a, s1), (b, s2)) = (left, right);
    let (precision, scale) = result;
    let overflow = || error::overflow(&SqlType::Decimal { precision, scale });
    if b == 0 && matches!(op, Operator::Divide | Operator::Modulo) {
        return Err(error::division_by_zero());
    }
    let (wide_a, wide_b) = (i256::from_i128(a), i256::from_i128(b));
    let digits = match op {
        Operator::Multiply => {
            wide_a.checked_mul(wide_b).and_then(|product| rescaled(product, s1 + s2, scale))
        }
        Operator::Divide => {
            quotient(wide_a, wide_b, i16::from(scale) + i16::from(s2) - i16::from(s1))
        }
        _ => {
            let common = s1.max(s2);
            let aligned = rescaled(wide_a, s1, common).zip(rescaled(wide_b, s2, common));
            aligned
                .and_then(|(a, b)| match op {
                    Operator::Subtract => a.checked_sub(b),
                    Operator::Modulo => a.checked_rem(b),
                    _ => a.checked_add(b),
                })
                .and_then(|sum| rescaled(sum, common, scale))
        }
    };
    let digits = digits.and_then(i256::to_i128).ok_or_else(overflow)?;
    if fits(digits, precision) { Ok(digits) } else { Err(overflow()) }
}

/// `a / b` with `shift` more digits (fewer when negative), cut.
fn quotient(a: i256, b: i256, shift: i16) -> Option<i256> {
    let ten = i256::from_i128(10);
    if shift < 0 {
        let unit = ten.checked_pow(u32::from(shift.unsigned_abs()))?;
        return a.checked_div(b)?.checked_div(unit);
    }
    // Digit by digit, because a shifted dividend could have more than 76 digits. A remainder is
    // below 10^38, so ten of them fit.
    let mut digits = a.checked_div(b)?;
    let mut rest = a.checked_rem(b)?;
    for _ in 0..shift {
        rest = rest.checked_mul(ten)?;
        digits = digits.checked_mul(ten)?.checked_add(rest.checked_div(b)?)?;
        rest = rest.checked_rem(b)?;
    }
    Some(digits)
}

/// Digits at scale `from` at scale `to`, rounded half away from zero.
fn rescaled(digits: i256, from: u8, to: u8) -> Option<i256> {
    let ten = i256::from_i128(10);
    if to >= from {
        return digits.checked_mul(ten.checked_pow(u32::from(to - from))?);
    }
    let unit = ten.checked_pow(u32::from(from - to))?;
    let half = unit.checked_div(i256::from_i128(2))?;
    let away = if digits.is_negative() { half.checked_neg()? } else { half };
    digits.checked_add(away)?.checked_div(unit)
}

/// Digits at scale `from` at scale `to`, rounded half away from zero; none beyond 128 bits.
pub(super) fn rescale(digits: i128, from: u8, to: u8) -> Option<i128> {
    rescaled(i256::from_i128(digits), from, to)?.to_i128()
}

/// The whole part of digits at a scale, cut.
pub(super) fn whole(digits: i128, scale: u8) -> i128 {
    10_i128.checked_pow(u32::from(scale)).map_or(0, |unit| digits / unit)
}

/// True when a number has at most `precision` digits.
pub(super) fn fits(digits: i128, precision: u8) -> bool {
    10_u128.checked_pow(u32::from(precision)).is_none_or(|limit| digits.unsigned_abs() < limit)
}

/// The digits of a text like `-12.340` and their scale: blanks around, a sign, digits with at most
/// one point among them. None for anything else, and beyond 128 bits.
pub(super) fn parsed(text: &str) -> Option<(i128, u8)> {
    let text = text.trim_matches(' ');
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches(' ');
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let mut number: i128 = 0;
    let mut scale = 0_u8;
    for (behind_point, digit) in
        whole.chars().map(|c| (false, c)).chain(part.chars().map(|c| (true, c)))
    {
        let digit = i128::from(digit.to_digit(10)?);
        if behind_point && scale >= MAX_PRECISION {
            continue;
        }
        number = number.checked_mul(10)?.checked_add(digit)?;
        scale += u8::from(behind_point);
    }
    Some((if negative { -number } else { number }, scale))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_result_has_the_documented_precision_and_scale() {
        use Operator::{Add, Divide, Modulo, Multiply, Subtract};
        for (left, op, right, result) in [
            ((5, 2), Add, (5, 2), (6, 2)),
            ((10, 0), Add, (5, 2), (13, 2)),
            ((38, 10), Add, (38, 10), (38, 10)),
            ((38, 20), Subtract, (38, 0), (38, 0)),
            ((38, 20), Add, (38, 10), (38, 10)),
            ((30, 10), Add, (30, 20), (38, 18)),
            ((5, 2), Multiply, (5, 2), (11, 4)),
            ((30, 20), Multiply, (30, 20), (38, 17)),
            ((30, 10), Multiply, (30, 10), (38, 6)),
            ((38, 2), Multiply, (38, 2), (38, 4)),
            ((38, 0), Multiply, (38, 0), (38, 0)),
            ((18, 9), Multiply, (19, 9), (38, 18)),
            ((5, 2), Divide, (5, 2), (13, 8)),
            ((2, 1), Divide, (1, 0), (7, 6)),
            ((10, 0), Divide, (10, 0), (21, 11)),
            ((38, 10), Divide, (38, 10), (38, 6)),
            ((19, 4), Divide, (19, 4), (38, 19)),
            ((5, 2), Modulo, (10, 4), (7, 4)),
            ((38, 38), Modulo, (38, 0), (38, 38)),
        ] {
            assert_eq!(result_digits(op, left, right), result, "{left:?} {op:?} {right:?}");
        }
    }

    #[test]
    fn united_digits_hold_both() {
        for (left, right, both) in
            [((5, 2), (10, 0), (12, 2)), ((5, 5), (5, 0), (10, 5)), ((38, 20), (38, 0), (38, 0))]
        {
            assert_eq!(united_digits(left, right), both);
        }
    }

    #[test]
    fn sums_and_products_round_and_quotients_are_cut() {
        use Operator::{Add, Divide, Modulo, Multiply};
        for (left, op, right, kinds, digits) in [
            // 2.0 / 3.0 = 0.666666
            ((20, 1), Divide, (30, 1), ((2, 1), (2, 1)), 666_666),
            // -2.0 / 3 = -0.666666
            ((-20, 1), Divide, (3, 0), ((2, 1), (1, 0)), -666_666),
            // 0.0000009 * 1 as decimal(30,10) rounds to 0.000001
            ((9_000, 10), Multiply, (10_000_000_000, 10), ((30, 10), (30, 10)), 1),
            // 1.25 + 0.5 = 1.75
            ((125, 2), Add, (5, 1), ((3, 2), (2, 1)), 175),
            // 7.5 % -2 = 1.5
            ((75, 1), Modulo, (-2, 0), ((2, 1), (1, 0)), 15),
            ((-75, 1), Modulo, (2, 0), ((2, 1), (1, 0)), -15),
        ] {
            let result = result_digits(op, kinds.0, kinds.1);
            assert_eq!(
                compute(op, left, right, result).expect("fits"),
                digits,
                "{left:?} {op:?} {right:?}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_an_overflow_and_zero_divides_nothing() {
        let most = 10_i128.pow(38) - 1;
        let number = |op, b| compute(op, (most, 0), (b, 0), (38, 0)).map_err(|error| error.number);
        assert_eq!(number(Operator::Add, 1), Err(8115));
        assert_eq!(number(Operator::Multiply, 10), Err(8115));
        assert_eq!(number(Operator::Divide, 0), Err(8134));
        assert_eq!(number(Operator::Modulo, 0), Err(8134));
        assert_eq!(number(Operator::Add, 0), Ok(most));
    }

    #[test]
    fn a_text_has_its_digits_and_scale() {
        for (text, digits) in [
            (" 12.340 ", Some((12_340, 3))),
            ("-.5", Some((-5, 1))),
            ("5.", Some((5, 0))),
            ("+ 7", Some((7, 0))),
            ("", None),
            (".", None),
            ("1e3", None),
            ("1,000", None),
            ("1.2.3", None),
        ] {
            assert_eq!(parsed(text), digits, "{text}");
        }
    }

    fn decimal() -> impl Strategy<Value = ((u8, u8), i128)> {
        (1..=38_u8).prop_flat_map(|p| (Just(p), 0..=p)).prop_flat_map(|(p, s)| {
            let limit = 10_i128.pow(u32::from(p));
            (Just((p, s)), (1 - limit)..limit)
        })
    }

    proptest! {
        #[test]
        fn a_result_type_is_a_type(left in decimal(), right in decimal()) {
            for op in [Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide, Operator::Modulo] {
                let (p, s) = result_digits(op, left.0, right.0);
                prop_assert!((1..=38).contains(&p) && s <= p, "{:?}", (p, s));
            }
        }

        #[test]
        fn a_sum_within_38_digits_is_exact((left, a) in decimal(), (right, b) in decimal()) {
            let (p, s) = result_digits(Operator::Add, left, right);
            prop_assume!(s == left.1.max(right.1));
            let Ok(sum) = compute(Operator::Add, (a, left.1), (b, right.1), (p, s)) else {
                // Only a carry into a 39th digit fails.
                prop_assert_eq!(p, 38);
                return Ok(());
            };
            let back = compute(Operator::Subtract, (sum, s), (b, right.1), (38, s));
            if let Ok(back) = back {
                prop_assert_eq!(Some(back), rescale(a, left.1, s));
            }
        }

        #[test]
        fn a_quotient_is_the_largest_that_does_not_exceed(a in -1_000_000_000_000_i128..1_000_000_000_000, b in 1..1_000_000_i128, s1 in 0..6_u8, s2 in 0..6_u8) {
            let result = result_digits(Operator::Divide, (12 + s1, s1), (6 + s2, s2));
            let q = compute(Operator::Divide, (a, s1), (b, s2), result).expect("fits");
            // |q| * |b| <= |a| < (|q| + 1) * |b|, everything at the scale of q * b.
            let a_at = |digits: i128| i256::from_i128(digits.abs())
                .checked_mul(i256::from_i128(10).checked_pow(u32::from(result.1 + s2 - s1)).expect("small")).expect("fits");
            let times_b = |digits: i128| i256::from_i128(digits).checked_mul(i256::from_i128(b)).expect("fits");
            prop_assert!(times_b(q.abs()) <= a_at(a));
            prop_assert!(a_at(a) < times_b(q.abs() + 1));
            prop_assert!(q == 0 || q.signum() == a.signum());
        }

        #[test]
        fn a_product_is_within_half_of_its_last_digit((left, a) in decimal(), (right, b) in decimal()) {
            let result = result_digits(Operator::Multiply, left, right);
            let Ok(product) = compute(Operator::Multiply, (a, left.1), (b, right.1), result) else {
                return Ok(());
            };
            let exact = i256::from_i128(a).checked_mul(i256::from_i128(b)).expect("76 digits");
            let unit = i256::from_i128(10).checked_pow(u32::from(left.1 + right.1 - result.1)).expect("76 digits");
            let shown = i256::from_i128(product).checked_mul(unit).expect("76 digits");
            let off = exact.checked_sub(shown).expect("close").checked_abs().expect("small");
            prop_assert!(off.checked_add(off).expect("small") <= unit);
        }

        #[test]
        fn a_number_read_back_from_its_text_is_itself(((_, scale), digits) in decimal()) {
            let text = crate::scalar::number_text::decimal(digits, scale);
            prop_assert_eq!(parsed(&text), Some((digits, scale)));
        }
    }
}
