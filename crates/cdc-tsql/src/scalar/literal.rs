//! Constants as written in a statement, with the type that the server gives them.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    Facts, code_page,
    exact::{MAX_PRECISION, fits, parsed, rescale},
    number_text::parsed_float,
    precedence::{MAX_BYTES, MAX_UNITS},
};
use crate::kind::{Kind, Typed};

/// A number as written in a statement: `int`, `numeric`, `float` or `money` (`$1.50`).
///
/// # Errors
/// 1007 for more than 38 digits, 168 for a float beyond its range, 102 for what is no number.
pub(crate) fn number_literal(text: &str) -> SqlResult<Typed> {
    let constant = |sql_type, value| Typed { kind: Kind::new(sql_type, false), value };
    let syntax = || SqlError::new(102, "Incorrect syntax near a number.");
    let too_long = || {
        SqlError::new(
            1007,
            "A number is out of the range for numeric representation (maximum precision 38).",
        )
    };
    if let Some(amount) = text.strip_prefix('$') {
        let (digits, scale) =
            if amount.is_empty() { (0, 0) } else { parsed(amount).ok_or_else(syntax)? };
        let digits = rescale(digits, scale, 4).filter(|digits| i64::try_from(*digits).is_ok());
        let digits = digits.ok_or_else(too_long)?;
        return Ok(constant(SqlType::Money, Value::decimal(digits)));
    }
    if text.contains(['e', 'E']) {
        // `1e` is `1e0`.
        let full =
            if text.ends_with(['e', 'E', '+', '-']) { format!("{text}0") } else { text.to_owned() };
        let number = parsed_float(&full).ok_or_else(|| {
            SqlError::new(
                168,
                "A floating point value is out of the range of computer representation.",
            )
        })?;
        return Ok(constant(SqlType::Float, Value::Float(number)));
    }
    if !text.contains('.')
        && let Ok(number) = text.parse::<i32>()
    {
        return Ok(constant(SqlType::Int, Value::Int(i64::from(number))));
    }
    if !text.chars().all(|c| c.is_ascii_digit() || c == '.') {
        return Err(syntax());
    }
    let shown = text.bytes().filter(u8::is_ascii_digit).count();
    let (digits, scale) = parsed(text)
        .ok_or_else(|| if shown > usize::from(MAX_PRECISION) { too_long() } else { syntax() })?;
    if text.split_once('.').is_some_and(|(_, part)| part.len() > usize::from(MAX_PRECISION))
        || !fits(digits, MAX_PRECISION)
    {
        return Err(too_long());
    }
    let kind = SqlType::Decimal { precision: digit_count(digits).max(scale).max(1), scale };
    Ok(constant(kind, Value::decimal(digits)))
}

/// Digits of a number without leading zeros.
fn digit_count(digits: i128) -> u8 {
    (1..=MAX_PRECISION).find(|precision| fits(digits, *precision)).unwrap_or(MAX_PRECISION)
}

/// A text as written in a statement, `N'...'` when `national`; characters that the database's
/// code page lacks become `?` otherwise.
pub(crate) fn text_literal(text: &str, national: bool, facts: &Facts) -> Typed {
    let limited = |length: usize, most: u16| match u16::try_from(length) {
        Ok(length) if length <= most => Length::Limited(length.max(1)),
        _ => Length::Max,
    };
    let (sql_type, value) = if national {
        let units = text.encode_utf16().count();
        (SqlType::NVarChar(limited(units, MAX_UNITS)), Value::text(text))
    } else {
        let page = facts.collation.code_page;
        let bytes = code_page::encode(text, page).len();
        let kept = code_page::narrowed(text, page);
        (SqlType::VarChar(limited(bytes, MAX_BYTES)), Value::text(&kept))
    };
    Typed { kind: Kind::new(sql_type, false), value }
}

/// A whole number as written, as the exact number it is next to a `decimal` operand: `3` is
/// `numeric(1,0)` there, while an `int` column is `numeric(10,0)`.
pub(crate) fn integer_as_decimal(number: i64) -> Typed {
    let digits = i128::from(number);
    let sql_type = SqlType::Decimal { precision: digit_count(digits), scale: 0 };
    Typed { kind: Kind::new(sql_type, false), value: Value::decimal(digits) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::tests_support::facts;

    #[test]
    fn a_number_has_the_least_type_that_shows_it() {
        for (text, sql_type, value) in [
            ("0", SqlType::Int, Value::Int(0)),
            ("2147483647", SqlType::Int, Value::Int(2_147_483_647)),
            (
                "2147483648",
                SqlType::Decimal { precision: 10, scale: 0 },
                Value::decimal(2_147_483_648),
            ),
            ("1.50", SqlType::Decimal { precision: 3, scale: 2 }, Value::decimal(150)),
            ("0.5", SqlType::Decimal { precision: 1, scale: 1 }, Value::decimal(5)),
            (".5", SqlType::Decimal { precision: 1, scale: 1 }, Value::decimal(5)),
            ("1.", SqlType::Decimal { precision: 1, scale: 0 }, Value::decimal(1)),
            ("0.00", SqlType::Decimal { precision: 2, scale: 2 }, Value::decimal(0)),
            ("007.10", SqlType::Decimal { precision: 3, scale: 2 }, Value::decimal(710)),
            ("1e3", SqlType::Float, Value::Float(1000.0)),
            ("1E", SqlType::Float, Value::Float(1.0)),
            ("1.5e-1", SqlType::Float, Value::Float(0.15)),
            ("$1.5", SqlType::Money, Value::decimal(15_000)),
            ("$", SqlType::Money, Value::decimal(0)),
        ] {
            let typed = number_literal(text).expect(text);
            assert_eq!((typed.kind.sql_type, typed.value), (sql_type, value), "{text}");
        }
    }

    #[test]
    fn a_number_that_no_type_shows_is_refused() {
        let nines = "9".repeat(39);
        for (text, number) in [(&*nines, 1007), ("1e999", 168), ("1.2.3", 102), ("x", 102)] {
            assert_eq!(number_literal(text).expect_err(text).number, number, "{text}");
        }
        assert!(number_literal(&"9".repeat(38)).is_ok());
    }

    #[test]
    fn a_text_is_varchar_of_its_bytes_or_nvarchar_of_its_units() {
        let facts = facts();
        let long = "x".repeat(8001);
        for (text, national, sql_type, value) in [
            ("abc", false, SqlType::VarChar(Length::Limited(3)), "abc"),
            ("", false, SqlType::VarChar(Length::Limited(1)), ""),
            ("é", false, SqlType::VarChar(Length::Limited(1)), "é"),
            ("Ω", false, SqlType::VarChar(Length::Limited(1)), "?"),
            ("Ω", true, SqlType::NVarChar(Length::Limited(1)), "Ω"),
            ("😀", true, SqlType::NVarChar(Length::Limited(2)), "😀"),
            (&long, false, SqlType::VarChar(Length::Max), &long),
            (&long, true, SqlType::NVarChar(Length::Max), &long),
        ] {
            let typed = text_literal(text, national, &facts);
            assert_eq!((typed.kind.sql_type, typed.value), (sql_type, Value::text(value)));
        }
    }

    #[test]
    fn a_whole_number_next_to_a_decimal_has_its_own_digits() {
        for (number, precision) in [(0, 1), (3, 1), (-10, 2), (i64::MAX, 19)] {
            let typed = integer_as_decimal(number);
            assert_eq!(typed.kind.sql_type, SqlType::Decimal { precision, scale: 0 });
        }
    }
}
