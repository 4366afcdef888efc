//! Texts as `PARSE` reads them: in the culture en-US, by the rules of the framework behind it,
//! which are not those of CAST.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};
use chrono::Weekday;

use super::{
    Facts,
    conversion::{convert, text_of},
    error,
    moment::Wall,
    precedence::{Family, family},
};
use crate::{
    kind::Kind,
    relation::{DateFormat, Settings},
};

/// Refuses what PARSE takes no text of, and what it makes no value of.
///
/// # Errors
/// 8116 for an argument that is no text, 10761 for a type that PARSE does not make.
pub(crate) fn check_parse(from: &Kind, to: &Kind, function: &str) -> SqlResult<()> {
    if !matches!(
        from.sql_type,
        SqlType::Char(_) | SqlType::VarChar(_) | SqlType::NChar(_) | SqlType::NVarChar(_)
    ) {
        return Err(error::invalid_argument(&from.sql_type, 1, function));
    }
    let made = matches!(family(&to.sql_type), Family::Number | Family::Moment | Family::OldMoment)
        && to.sql_type != SqlType::Bit;
    if made {
        return Ok(());
    }
    let name = error::name(&to.sql_type);
    Err(SqlError::new(10_761, format!("Invalid data type {name} in function {function}.")))
}

/// The value of a text as PARSE reads it: dates with the month first, numbers with commas between
/// thousands.
///
/// # Errors
/// 9819 for a text that is none of the type; 50000 for one whose value depends on the day.
pub(crate) fn parse(value: &Value, from: &Kind, to: &Kind, facts: &Facts) -> SqlResult<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let text = text_of(value, from, facts)?;
    let numeric = family(&to.sql_type) == Family::Number;
    let plain = if numeric { number(&text, &to.sql_type) } else { date(&text, &to.sql_type)? };
    let settings = Settings { date_format: DateFormat::MonthDayYear, ..facts.settings };
    let culture = Facts { settings, ..*facts };
    let source = Kind { sql_type: SqlType::NVarChar(Length::Max), ..from.clone() };
    let made = |text: &str| convert(&Value::text(text), &source, to, None, true, &culture).ok();
    let found = plain.and_then(|(text, weekday)| {
        let value = made(&text)?;
        match weekday {
            Some(day) if weekday_of(&value) != Some(day) => None,
            _ => Some(value),
        }
    });
    found.ok_or_else(|| {
        SqlError::new(
            9819,
            format!(
                "Error converting string value into data type {} using culture ''.",
                error::name(&to.sql_type)
            ),
        )
    })
}

fn weekday_of(value: &Value) -> Option<Weekday> {
    // 1970-01-01 was a Thursday.
    let from_monday = (Wall::of(value)?.days() + 3).rem_euclid(7);
    u8::try_from(from_monday).ok().and_then(|day| Weekday::try_from(day).ok())
}

/// A text as CAST reads it, and the day of the week that it names.
type Plain = Option<(String, Option<Weekday>)>;

/// What a text of a number may hold besides digits.
#[derive(Clone, Copy)]
struct Style {
    thousands: bool,
    trailing_sign: bool,
    exponent: bool,
    currency: bool,
}

fn style(sql_type: &SqlType) -> Style {
    let plain = Style { thousands: true, trailing_sign: true, exponent: false, currency: false };
    match sql_type {
        SqlType::Money | SqlType::SmallMoney => Style { currency: true, ..plain },
        SqlType::Float | SqlType::Real => {
            Style { thousands: false, trailing_sign: false, exponent: true, currency: false }
        }
        _ => plain,
    }
}

/// A number's text without what the culture allows in it; none for a text that is no number.
fn number(text: &str, sql_type: &SqlType) -> Plain {
    let style = style(sql_type);
    let mut rest = text.trim_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let mut sign: Option<char> = None;
    let mut has_symbol = false;
    let in_parentheses = style.currency && rest.starts_with('(') && rest.ends_with(')');
    if in_parentheses {
        sign = Some('-');
        rest = rest.trim_start_matches('(').trim_end_matches(')');
    }
    // Signs and the currency's symbol, in front or behind.
    let mut mark = |letter: char, signs: bool| match letter {
        '-' | '+' if signs && sign.is_none() => {
            sign = Some(letter);
            true
        }
        '$' if style.currency && !has_symbol => {
            has_symbol = true;
            true
        }
        ' ' => true,
        _ => false,
    };
    while let Some(letter) = rest.chars().next().filter(|letter| mark(*letter, true)) {
        rest = rest.get(letter.len_utf8()..)?;
    }
    while let Some(letter) =
        rest.chars().next_back().filter(|last| mark(*last, style.trailing_sign))
    {
        rest = rest.get(..rest.len() - letter.len_utf8())?;
    }
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) if style.exponent => (rest.get(..at)?, rest.get(at..)?),
        Some(_) => return None,
        None => (rest, ""),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let grouped = whole.contains(',');
    if grouped && (!style.thousands || whole.starts_with(',')) {
        return None;
    }
    let whole = whole.replace(',', "");
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(&whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return None;
    }
    let integer = !matches!(
        sql_type,
        SqlType::Decimal { .. }
            | SqlType::Money
            | SqlType::SmallMoney
            | SqlType::Float
            | SqlType::Real
    );
    let minus = if sign == Some('-') { "-" } else { "" };
    let whole = if whole.is_empty() { "0" } else { &whole };
    if integer {
        // 12.00 is a whole number to the framework.
        let is_whole = fraction.bytes().all(|byte| byte == b'0');
        return is_whole.then(|| (format!("{minus}{whole}"), None));
    }
    let fraction = if fraction.is_empty() { "0" } else { fraction };
    Some((format!("{minus}{whole}.{fraction}{exponent}"), None))
}

/// A date's text without its day of the week, which it gives besides.
///
/// # Errors
/// 50000 for a time alone, which the framework puts on the current day, and for an offset that it
/// turns into the server's own time.
fn date(text: &str, sql_type: &SqlType) -> SqlResult<Plain> {
    let mut text = text.trim();
    let mut weekday = None;
    if let Some((word, rest)) = text.split_once([',', ' '])
        && word.len() >= 3
        && let Ok(day) = word.parse::<Weekday>()
    {
        weekday = Some(day);
        text = rest.trim_start_matches([',', ' ']);
    }
    // Digits alone are no date to the framework.
    if text.is_empty() || text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(None);
    }
    if !matches!(sql_type, SqlType::Time { .. }) {
        let first = text.split([' ', 'T']).next().unwrap_or_default();
        if first.contains(':') {
            return Err(error::not_supported("PARSE of a time without a date"));
        }
    }
    let zoned = text.ends_with(['Z', 'z'])
        || text.rsplit_once(['+', '-']).is_some_and(|(_, end)| end.contains(':'));
    if zoned && !matches!(sql_type, SqlType::DateTimeOffset { .. }) {
        return Err(error::not_supported("PARSE of an offset as a type without one"));
    }
    Ok(Some((text.to_owned(), weekday)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::tests_support::facts;

    fn parsed(text: &str, to: SqlType) -> Result<String, i32> {
        let from = Kind::new(SqlType::NVarChar(Length::Limited(60)), true);
        let settings = Settings { date_format: DateFormat::DayMonthYear, ..Settings::default() };
        let facts = Facts { settings, ..facts() };
        let to = Kind::new(to, true);
        check_parse(&from, &to, "PARSE").map_err(|error| error.number)?;
        let value = parse(&Value::text(text), &from, &to, &facts).map_err(|error| error.number)?;
        Ok(text_of(&value, &to, &facts).expect("a text").into_owned())
    }

    #[test]
    fn numbers_are_read_as_americans_write_them() {
        let decimal = || SqlType::Decimal { precision: 8, scale: 2 };
        for (text, to, wanted) in [
            ("12", SqlType::Int, Ok("12")),
            (" -1,234 ", SqlType::Int, Ok("-1234")),
            ("12-", SqlType::Int, Ok("-12")),
            ("12.00", SqlType::Int, Ok("12")),
            ("12.5", SqlType::Int, Err(9819)),
            ("300", SqlType::TinyInt, Err(9819)),
            ("", SqlType::Int, Err(9819)),
            ("-", SqlType::Int, Err(9819)),
            ("--1", SqlType::Int, Err(9819)),
            (",1", SqlType::Int, Err(9819)),
            ("1 2", SqlType::Int, Err(9819)),
            ("1e2", SqlType::Int, Err(9819)),
            ("x", SqlType::Int, Err(9819)),
            ("1,234.5", decimal(), Ok("1234.50")),
            (".5", decimal(), Ok("0.50")),
            ("1,2.3,4", decimal(), Err(9819)),
            ("$1,234.5", SqlType::Money, Ok("1234.50")),
            ("($5)", SqlType::Money, Ok("-5.00")),
            ("$1", SqlType::Int, Err(9819)),
            ("1e2", SqlType::Float, Ok("100")),
            ("1,000", SqlType::Float, Err(9819)),
            ("1", SqlType::VarChar(Length::Limited(9)), Err(10_761)),
            ("1", SqlType::Bit, Err(10_761)),
        ] {
            assert_eq!(parsed(text, to.clone()), wanted.map(str::to_owned), "{text:?} as {to}");
        }
    }

    #[test]
    fn dates_are_read_with_the_month_first() {
        let second = || SqlType::DateTime2 { scale: 0 };
        for (text, to, wanted) in [
            ("03/05/2024", SqlType::Date, Ok("2024-03-05")),
            ("13/05/2024", SqlType::Date, Err(9819)),
            ("2024-03-05", SqlType::Date, Ok("2024-03-05")),
            ("March 5, 2024 1:05 PM", second(), Ok("2024-03-05 13:05:00")),
            ("Monday, 13 December 2010", SqlType::Date, Ok("2010-12-13")),
            ("Tuesday, 13 December 2010", SqlType::Date, Err(9819)),
            ("10:30", SqlType::Time { scale: 0 }, Ok("10:30:00")),
            ("10:30", second(), Err(50_000)),
            ("2024-03-05T10:00:00Z", second(), Err(50_000)),
            ("20240305", SqlType::Date, Err(9819)),
            ("", SqlType::Date, Err(9819)),
            ("(getdate())", SqlType::DateTime, Err(9819)),
        ] {
            assert_eq!(parsed(text, to.clone()), wanted.map(str::to_owned), "{text:?} as {to}");
        }
    }

    #[test]
    fn only_texts_are_parsed() {
        let (int, text) =
            (Kind::new(SqlType::Int, true), Kind::new(SqlType::VarChar(Length::Max), true));
        assert_eq!(check_parse(&int, &int, "PARSE").map_err(|error| error.number), Err(8116));
        assert_eq!(check_parse(&text, &int, "PARSE"), Ok(()));
    }
}
