//! Dates and times read from text: ISO 8601, digits alone, digits with separators in the order of
//! DATEFORMAT or a style, names of months, times with AM and PM, offsets.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult};

use super::{
    date_text,
    date_text::MONTHS,
    error,
    moment::{DAY_1900, TICKS_A_DAY, TICKS_A_MINUTE, TICKS_A_SECOND, Wall, days_of},
};
use crate::relation::DateFormat;

/// Years with two digits up to this one are in the 21st century.
const TWO_DIGIT_YEAR_CUTOFF: i32 = 49;
/// The most minutes that an offset is away from UTC.
const MAX_OFFSET: i16 = 14 * 60;

/// True for the minutes of an offset that a `datetimeoffset` may have.
pub(super) fn is_offset(minutes: i16) -> bool {
    (-MAX_OFFSET..=MAX_OFFSET).contains(&minutes)
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Digits(&'a str),
    Word(&'a str),
    Mark(char),
    Blank,
}

/// A date or time of a text, for a type. `from` is the text's type, for messages.
///
/// # Errors
/// 241 for a text that is none, 242 for a day that `datetime` or `smalldatetime` does not have,
/// 9809 for a style that there is not, 50000 for the Hijri styles.
pub(super) fn read(
    text: &str,
    to: &SqlType,
    style: i32,
    format: DateFormat,
    from: &SqlType,
) -> SqlResult<Wall> {
    if matches!(style, 130 | 131) {
        return Err(error::not_supported("the Hijri calendar of CONVERT's styles 130 and 131"));
    }
    if !date_text::is_style(style) {
        return Err(SqlError::new(
            9809,
            format!(
                "The style {style} is not supported for conversions from {} to {}.",
                error::name(from),
                error::name(to)
            ),
        ));
    }
    let old = matches!(to, SqlType::DateTime | SqlType::SmallDateTime);
    let mut tokens = tokens(text).ok_or_else(error::not_a_date)?;
    let iso = is_iso(&tokens);
    let order = if iso { DateFormat::YearMonthDay } else { order_of(style).unwrap_or(format) };
    // The newer types take a leading year with month and day behind it, whatever DATEFORMAT says.
    let leading_year =
        if old && order_of(style).is_none() && !iso { order } else { DateFormat::YearMonthDay };
    let offset = take_offset(&mut tokens).ok_or_else(error::not_a_date)?;
    let time = take_time(&mut tokens, old).ok_or_else(error::not_a_date)?;
    let parts = date_parts(&tokens, order, leading_year).ok_or_else(error::not_a_date)?;
    if (offset.is_some() && time.is_none()) || (iso && time.is_none()) {
        return Err(error::not_a_date());
    }
    let days = match parts {
        None => DAY_1900,
        Some((year, month, day)) => days_of(year, month, day).ok_or_else(|| {
            if old { error::date_out_of_range(from, to) } else { error::not_a_date() }
        })?,
    };
    let ticks = days * TICKS_A_DAY + time.unwrap_or_default();
    match offset {
        // The old types know an offset in style 127 alone, and take the moment in UTC.
        Some(minutes) if old && style == 127 => {
            Ok(Wall { ticks: ticks - i64::from(minutes) * TICKS_A_MINUTE, offset: None })
        }
        Some(_) if old => Err(error::not_a_date()),
        _ => Ok(Wall { ticks, offset }),
    }
}

/// The order of date parts that a style stands for.
const fn order_of(style: i32) -> Option<DateFormat> {
    match style {
        1 | 101 | 7 | 107 | 10 | 110 | 22 | 9 | 109 | 100 => Some(DateFormat::MonthDayYear),
        3..=6 | 103..=106 | 13 | 113 => Some(DateFormat::DayMonthYear),
        2 | 102 | 11 | 111 | 12 | 112 | 20 | 21 | 23 | 25 | 120 | 121 | 126 | 127 => {
            Some(DateFormat::YearMonthDay)
        }
        _ => None,
    }
}

fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut found = Vec::new();
    let mut rest = text.trim_matches(' ');
    while let Some(first) = rest.chars().next() {
        let run = |same: fn(&char) -> bool| {
            rest.char_indices().find(|(_, c)| !same(c)).map_or(rest.len(), |(at, _)| at)
        };
        let (token, length) = match first {
            '0'..='9' => {
                let length = run(char::is_ascii_digit);
                (Token::Digits(rest.get(..length)?), length)
            }
            ' ' => (Token::Blank, run(|c| *c == ' ')),
            _ if first.is_ascii_alphabetic() => {
                let length = run(char::is_ascii_alphabetic);
                (Token::Word(rest.get(..length)?), length)
            }
            '-' | '/' | '.' | ',' | ':' | '+' => (Token::Mark(first), 1),
            _ => return None,
        };
        found.push(token);
        rest = rest.get(length..)?;
    }
    Some(found)
}

/// True for `2024-03-05T...`, which no setting changes.
fn is_iso(tokens: &[Token<'_>]) -> bool {
    matches!(
        tokens,
        [
            Token::Digits(year),
            Token::Mark('-'),
            Token::Digits(_),
            Token::Mark('-'),
            Token::Digits(_),
            Token::Word("T" | "t"),
            ..
        ] if year.len() == 4
    )
}

/// Takes `Z` or `+05:30` off the end: some minutes, none when there is no offset; nothing at all
/// for an offset that there is not.
fn take_offset(tokens: &mut Vec<Token<'_>>) -> Option<Option<i16>> {
    let has_time = tokens.contains(&Token::Mark(':'));
    if let [.., Token::Digits(_), Token::Word("Z" | "z")] = tokens.as_slice() {
        tokens.pop();
        return Some(Some(0));
    }
    let [
        ..,
        Token::Mark(sign @ ('+' | '-')),
        Token::Digits(hours),
        Token::Mark(':'),
        Token::Digits(minutes),
    ] = tokens.as_slice()
    else {
        return Some(None);
    };
    if !has_time || hours.len() != 2 || minutes.len() != 2 {
        return None;
    }
    let (hours, minutes): (i16, i16) = (hours.parse().ok()?, minutes.parse().ok()?);
    let sign = if *sign == '-' { -1 } else { 1 };
    let total = hours * 60 + minutes;
    if minutes > 59 || total > MAX_OFFSET {
        return None;
    }
    tokens.truncate(tokens.len() - 4);
    while tokens.last() == Some(&Token::Blank) {
        tokens.pop();
    }
    Some(Some(sign * total))
}

/// Takes the time of day out: 100 ns since midnight, none when there is no time; nothing at all
/// for a time that there is not.
fn take_time(tokens: &mut Vec<Token<'_>>, old: bool) -> Option<Option<i64>> {
    let half_at = |at: usize| -> Option<(usize, bool)> {
        let at = if tokens.get(at) == Some(&Token::Blank) { at + 1 } else { at };
        match tokens.get(at) {
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("am") => Some((at + 1, false)),
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("pm") => Some((at + 1, true)),
            _ => None,
        }
    };
    let starts = |at: usize| {
        matches!(tokens.get(at), Some(Token::Digits(_)))
            && (tokens.get(at + 1) == Some(&Token::Mark(':')) || half_at(at + 1).is_some())
    };
    let Some(start) = (0..tokens.len()).find(|at| starts(*at)) else {
        return Some(None);
    };
    let number = |at: usize| match tokens.get(at) {
        Some(Token::Digits(digits)) if digits.len() <= 2 => digits.parse::<i64>().ok(),
        _ => None,
    };
    let mut clock = [number(start)?, 0, 0];
    let mut at = start + 1;
    for part in clock.iter_mut().skip(1) {
        if tokens.get(at) != Some(&Token::Mark(':')) {
            break;
        }
        *part = number(at + 1)?;
        at += 2;
    }
    let mut fraction = 0;
    if let (Some(Token::Mark(mark @ ('.' | ':'))), Some(Token::Digits(digits))) =
        (tokens.get(at), tokens.get(at + 1))
        && at == start + 5
    {
        fraction = fraction_ticks(digits, *mark == ':', old)?;
        at += 2;
    }
    let [mut hour, minute, second] = clock;
    if let Some((end, afternoon)) = half_at(at) {
        if hour > 12 {
            return None;
        }
        hour = hour % 12 + if afternoon { 12 } else { 0 };
        at = end;
    } else if at == start + 1 {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let begin = start.saturating_sub(usize::from(matches!(
        start.checked_sub(1).and_then(|before| tokens.get(before)),
        Some(Token::Word("T" | "t"))
    )));
    tokens.splice(begin..at, [Token::Blank]);
    Some(Some(((hour * 60 + minute) * 60 + second) * TICKS_A_SECOND + fraction))
}

/// 100 ns of the digits behind a second: thousandths behind a colon, a fraction behind a point.
fn fraction_ticks(digits: &str, colon: bool, old: bool) -> Option<i64> {
    let most = if old || colon { 3 } else { 7 };
    if digits.len() > most {
        return None;
    }
    let number: i64 = digits.parse().ok()?;
    if colon {
        return Some(number * 10_000);
    }
    let places = u32::try_from(7_usize.checked_sub(digits.len())?).ok()?;
    Some(number * 10_i64.pow(places))
}

/// Year, month and day of what is left; none for an empty text, nothing at all for another.
type Parts = Option<(i32, u32, u32)>;

fn date_parts(tokens: &[Token<'_>], order: DateFormat, leading_year: DateFormat) -> Option<Parts> {
    let mut numbers: Vec<&str> = Vec::new();
    let mut month = None;
    let mut marks = 0;
    for token in tokens {
        match token {
            Token::Digits(digits) => numbers.push(digits),
            Token::Word(word) => {
                if month.replace(month_number(word)?).is_some() {
                    return None;
                }
            }
            Token::Mark(':' | '+') => return None,
            Token::Mark(_) => marks += 1,
            Token::Blank => {}
        }
    }
    match (numbers.as_slice(), month) {
        ([], None) if marks == 0 => Some(None),
        ([digits], None) if marks == 0 => undivided(digits).map(Some),
        ([a, b, c], None) if marks == 2 => {
            let order = if a.len() == 4 { leading_year } else { order };
            divided([a, b, c], order).map(Some)
        }
        ([one], Some(month)) if one.len() == 4 => Some(Some((one.parse().ok()?, month, 1))),
        ([a, b], Some(month)) => {
            let (year, day) = if a.len() == 4 { (a, b) } else { (b, a) };
            Some(Some((year_of(year)?, month, day_of(day)?)))
        }
        _ => None,
    }
}

/// `20240305`, `240305` or `2024`.
fn undivided(digits: &str) -> Option<(i32, u32, u32)> {
    let part = |from: usize, to: usize| digits.get(from..to)?.parse::<u32>().ok();
    match digits.len() {
        8 => Some((year_of(digits.get(..4)?)?, part(4, 6)?, part(6, 8)?)),
        6 => Some((year_of(digits.get(..2)?)?, part(2, 4)?, part(4, 6)?)),
        4 => Some((year_of(digits)?, 1, 1)),
        _ => None,
    }
}

/// Three numbers: the one with four digits is the year; month and day stand in the given order.
fn divided(parts: [&str; 3], order: DateFormat) -> Option<(i32, u32, u32)> {
    let [a, b, c] = parts;
    let year_first = match (a.len(), c.len()) {
        (4, _) => true,
        (_, 4) => false,
        _ => order == DateFormat::YearMonthDay,
    };
    let (year, first, second) = if year_first { (a, b, c) } else { (c, a, b) };
    let (month, day) = match order {
        DateFormat::DayMonthYear => (second, first),
        _ => (first, second),
    };
    Some((year_of(year)?, day_of(month)?, day_of(day)?))
}

fn day_of(digits: &str) -> Option<u32> {
    if digits.len() > 2 { None } else { digits.parse().ok() }
}

fn year_of(digits: &str) -> Option<i32> {
    let year: i32 = digits.parse().ok()?;
    match digits.len() {
        4 => Some(year),
        1 | 2 if year <= TWO_DIGIT_YEAR_CUTOFF => Some(2000 + year),
        1 | 2 => Some(1900 + year),
        _ => None,
    }
}

/// The number of a month by its name or the first three letters of it.
fn month_number(word: &str) -> Option<u32> {
    let index = MONTHS.iter().position(|name| {
        name.eq_ignore_ascii_case(word)
            || name.get(..3).is_some_and(|short| short.eq_ignore_ascii_case(word))
            || (*name == "September" && word.eq_ignore_ascii_case("sept"))
    })?;
    u32::try_from(index + 1).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scalar::date_text;

    const VARCHAR: SqlType = SqlType::VarChar(cdc_core::Length::Max);
    const NEW: SqlType = SqlType::DateTimeOffset { scale: 7 };

    /// What is read, in the style that shows everything.
    fn shown(text: &str, to: &SqlType, style: i32, format: DateFormat) -> Result<String, i32> {
        let wall = read(text, to, style, format, &VARCHAR).map_err(|error| error.number)?;
        let shown_as = if wall.offset.is_some() { NEW } else { SqlType::DateTime2 { scale: 7 } };
        date_text::text(wall, &shown_as, 126).map_err(|error| error.number)
    }

    #[test]
    fn a_text_is_read_as_the_documentation_lists() {
        for (text, wanted) in [
            ("2024-03-05", "2024-03-05T00:00:00"),
            ("20240305", "2024-03-05T00:00:00"),
            ("240305", "2024-03-05T00:00:00"),
            ("2024", "2024-01-01T00:00:00"),
            ("500305", "1950-03-05T00:00:00"),
            ("490305", "2049-03-05T00:00:00"),
            ("20240305 13:05:09.120", "2024-03-05T13:05:09.1200000"),
            ("2024-03-05T13:05:09", "2024-03-05T13:05:09"),
            ("2024-03-05T13:05:09.123", "2024-03-05T13:05:09.1230000"),
            ("2024-03-05 13:05", "2024-03-05T13:05:00"),
            ("03/05/2024", "2024-03-05T00:00:00"),
            ("3/5/24", "2024-03-05T00:00:00"),
            ("3-5-2024", "2024-03-05T00:00:00"),
            ("3.5.2024", "2024-03-05T00:00:00"),
            ("2024/3/5", "2024-03-05T00:00:00"),
            ("Mar 5 2024", "2024-03-05T00:00:00"),
            ("Mar  5 2024  1:05PM", "2024-03-05T13:05:00"),
            ("March 5, 2024", "2024-03-05T00:00:00"),
            ("5 mar 2024 13:05:09:123", "2024-03-05T13:05:09.1230000"),
            ("5-MAR-24", "2024-03-05T00:00:00"),
            ("2024 March 5", "2024-03-05T00:00:00"),
            ("Mar 2024", "2024-03-01T00:00:00"),
            ("13:05:09", "1900-01-01T13:05:09"),
            ("1PM", "1900-01-01T13:00:00"),
            ("12:00 am", "1900-01-01T00:00:00"),
            ("12:30:01 PM", "1900-01-01T12:30:01"),
            ("13:05 Mar 5 2024", "2024-03-05T13:05:00"),
            ("", "1900-01-01T00:00:00"),
            ("  ", "1900-01-01T00:00:00"),
        ] {
            for to in [SqlType::DateTime, SqlType::DateTime2 { scale: 7 }] {
                assert_eq!(
                    shown(text, &to, 0, DateFormat::MonthDayYear),
                    Ok(wanted.into()),
                    "{text} as {to}"
                );
            }
        }
    }

    #[test]
    fn the_order_of_parts_is_dateformats_or_the_styles() {
        use DateFormat::{DayMonthYear, MonthDayYear, YearMonthDay};
        let old = SqlType::DateTime;
        let new = SqlType::DateTime2 { scale: 0 };
        for (text, to, style, format, wanted) in [
            ("03/05/2024", &old, 0, MonthDayYear, "2024-03-05T00:00:00"),
            ("03/05/2024", &old, 0, DayMonthYear, "2024-05-03T00:00:00"),
            ("03/05/24", &old, 0, YearMonthDay, "2003-05-24T00:00:00"),
            // The old types read a leading year in the order of DATEFORMAT, the newer do not.
            ("2024-03-05", &old, 0, DayMonthYear, "2024-05-03T00:00:00"),
            ("2024-03-05", &new, 0, DayMonthYear, "2024-03-05T00:00:00"),
            ("2024-03-05T00:00:00", &old, 0, DayMonthYear, "2024-03-05T00:00:00"),
            ("20240305", &old, 0, DayMonthYear, "2024-03-05T00:00:00"),
            ("03/05/2024", &old, 103, MonthDayYear, "2024-05-03T00:00:00"),
            ("03/05/2024", &old, 101, DayMonthYear, "2024-03-05T00:00:00"),
            ("05.03.2024", &old, 104, MonthDayYear, "2024-03-05T00:00:00"),
            ("2024-03-05 01:02:03", &old, 120, DayMonthYear, "2024-03-05T01:02:03"),
        ] {
            assert_eq!(shown(text, to, style, format), Ok(wanted.into()), "{text} {style}");
        }
    }

    #[test]
    fn an_offset_belongs_to_the_newer_types_and_to_style_127() {
        for (text, to, style, wanted) in [
            ("2024-03-05T13:05:09+01:00", NEW, 0, Ok("2024-03-05T13:05:09+01:00")),
            ("2024-03-05 13:05:09.1234567 -05:30", NEW, 0, Ok("2024-03-05T13:05:09.1234567-05:30")),
            ("2024-03-05T13:05:09Z", NEW, 0, Ok("2024-03-05T13:05:09+00:00")),
            ("2024-03-05T13:05:09Z", SqlType::DateTime, 127, Ok("2024-03-05T13:05:09")),
            ("2024-03-05T13:05:09-08:00", SqlType::DateTime, 127, Ok("2024-03-05T21:05:09")),
            ("2024-03-05T13:05:09-08:00", SqlType::DateTime, 0, Err(241)),
            ("2024-03-05T13:05:09+14:01", NEW, 0, Err(241)),
            ("2024-03-05T13:05:09+01:60", NEW, 0, Err(241)),
        ] {
            let found = shown(text, &to, style, DateFormat::MonthDayYear);
            assert_eq!(found, wanted.map(str::to_owned), "{text} as {to}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        let old = SqlType::DateTime;
        let new = SqlType::Date;
        for (text, to, number) in [
            ("x", &old, 241),
            ("2024-13-01", &old, 242),
            ("2024-02-30", &old, 242),
            ("2024-02-30", &new, 241),
            ("24:00", &old, 241),
            ("10:60", &old, 241),
            ("13:00 PM", &old, 241),
            ("12:00:00.1234", &old, 241),
            ("12:00:00.12345678", &new, 241),
            ("Mar 5", &old, 241),
            ("Foo 5 2024", &old, 241),
            ("12345", &old, 241),
            ("1/2", &old, 241),
            ("2024-03-05T", &new, 241),
            ("2024-03-05 +01:00", &new, 241),
            ("٢٠٢٤", &new, 241),
        ] {
            let found = shown(text, to, 0, DateFormat::MonthDayYear);
            assert_eq!(found, Err(number), "{text} as {to}");
        }
    }

    proptest! {
        #[test]
        fn what_a_style_writes_it_reads_back(
            days in -79_257_i64..=2_932_896, ms in 0..86_400_000_i64,
            style in prop::sample::select(vec![9, 109, 13, 113, 21, 25, 121, 126, 127]),
        ) {
            let wall = Wall { ticks: days * TICKS_A_DAY + ms * 10_000, offset: None };
            let scale = SqlType::DateTime2 { scale: 3 };
            let text = date_text::text(wall, &scale, style).expect("a style");
            let back = read(&text, &scale, style, DateFormat::DayMonthYear, &VARCHAR);
            prop_assert_eq!(back, Ok(wall), "{}", text);
        }

        #[test]
        fn no_text_makes_reading_panic(text: String, style in -1..140) {
            for to in [SqlType::DateTime, NEW] {
                let _ = read(&text, &to, style, DateFormat::MonthDayYear, &VARCHAR);
            }
        }
    }
}
