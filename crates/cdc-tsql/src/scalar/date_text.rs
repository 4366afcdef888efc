//! Dates and times as text, in the styles of CONVERT.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult};

use super::{
    error,
    moment::{Date, TICKS_A_MINUTE, TICKS_A_SECOND, Wall, rounded, scale_of, unit},
};

/// Months, as us_english names them.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Weekdays from Monday, as us_english names them.
pub(super) const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The first three letters of a month.
fn short_month(month: u32) -> &'static str {
    let index = usize::try_from(month).unwrap_or_default().saturating_sub(1);
    MONTHS.get(index).and_then(|name| name.get(..3)).unwrap_or_default()
}

/// The style that a type has when CAST or CONVERT names none.
pub(super) const fn default_style(sql_type: &SqlType) -> i32 {
    match sql_type {
        SqlType::DateTime | SqlType::SmallDateTime => 0,
        _ => 121,
    }
}

/// How a style writes the date.
#[derive(Clone, Copy)]
enum DateForm {
    None,
    /// `Jan  2 2024`
    MonthName,
    /// Day, month name, year, with two digits of the day.
    DayMonthName,
    /// `Jan 02, 2024`
    MonthComma,
    /// Parts by letters `y`, `m`, `d` with the separator between.
    Parts(&'static str, &'static str),
}

/// How a style writes the time.
#[derive(Clone, Copy, PartialEq)]
enum TimeForm {
    None,
    /// ` 1:05PM`
    Twelve,
    /// ` 1:05:09:123PM`
    TwelveFull,
    /// `1:05:09 PM`
    TwelveSeconds,
    /// `13:05:09`
    Seconds,
    /// `13:05:09:123`
    ColonFraction,
    /// `13:05:09.123`
    PointFraction,
    /// `T13:05:09.123`, without a fraction of zero.
    Iso,
}

/// The forms of a style, and whether the year has four digits.
fn forms(style: i32) -> Option<(DateForm, TimeForm, bool)> {
    use DateForm as D;
    use TimeForm as T;
    let short = style < 100;
    let (date, time, century) = match style % 100 {
        _ if style == 126 || style == 127 => (D::Parts("ymd", "-"), T::Iso, true),
        _ if !(0..=25).contains(&style)
            && !(100..=114).contains(&style)
            && !(120..=121).contains(&style) =>
        {
            return None;
        }
        0 => (D::MonthName, T::Twelve, true),
        1 => (D::Parts("mdy", "/"), T::None, !short),
        2 => (D::Parts("ymd", "."), T::None, !short),
        3 => (D::Parts("dmy", "/"), T::None, !short),
        4 => (D::Parts("dmy", "."), T::None, !short),
        5 => (D::Parts("dmy", "-"), T::None, !short),
        6 => (D::DayMonthName, T::None, !short),
        7 => (D::MonthComma, T::None, !short),
        8 | 24 => (D::None, T::Seconds, true),
        9 => (D::MonthName, T::TwelveFull, true),
        10 => (D::Parts("mdy", "-"), T::None, !short),
        11 => (D::Parts("ymd", "/"), T::None, !short),
        12 => (D::Parts("ymd", ""), T::None, !short),
        13 => (D::DayMonthName, T::ColonFraction, true),
        14 => (D::None, T::ColonFraction, true),
        20 => (D::Parts("ymd", "-"), T::Seconds, true),
        21 | 25 => (D::Parts("ymd", "-"), T::PointFraction, true),
        22 => (D::Parts("mdy", "/"), T::TwelveSeconds, false),
        23 => (D::Parts("ymd", "-"), T::None, true),
        _ => return None,
    };
    Some((date, time, century))
}

/// True for a style that there is.
pub(super) fn is_style(style: i32) -> bool {
    forms(style).is_some()
}

/// The text of a date or time of a type in a style.
///
/// # Errors
/// 281 for a style that there is not, 50000 for the Hijri styles.
pub(super) fn text(wall: Wall, sql_type: &SqlType, style: i32) -> SqlResult<String> {
    if matches!(style, 130 | 131) {
        return Err(error::not_supported("the Hijri calendar of CONVERT's styles 130 and 131"));
    }
    let unknown = || {
        SqlError::new(
            281,
            format!(
                "{style} is not a valid style number when converting from {} to a character \
                 string.",
                error::name(sql_type)
            ),
        )
    };
    let (mut date, mut time, century) = forms(style).ok_or_else(unknown)?;
    if matches!(sql_type, SqlType::Time { .. }) {
        date = DateForm::None;
    }
    if *sql_type == SqlType::Date {
        time = TimeForm::None;
    }
    let mut wall = wall;
    if style == 127 && wall.offset.is_some() {
        // The moment in UTC.
        wall = Wall { ticks: wall.utc(), offset: wall.offset };
    }
    let date = date_text(date, wall.date(), century);
    let clock = time_text(time, wall, sql_type);
    if date.is_empty() && clock.is_empty() {
        return Err(unknown());
    }
    let between = match time {
        _ if date.is_empty() || clock.is_empty() => "",
        TimeForm::Iso => "T",
        _ => " ",
    };
    let offset = match wall.offset {
        Some(_) if style == 127 => "Z".to_owned(),
        Some(minutes) if time == TimeForm::Iso => offset_text(minutes),
        Some(minutes) if time != TimeForm::None => format!(" {}", offset_text(minutes)),
        _ => String::new(),
    };
    Ok(format!("{date}{between}{clock}{offset}"))
}

/// An offset as `+05:30`.
pub(super) fn offset_text(minutes: i16) -> String {
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.unsigned_abs();
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

fn date_text(form: DateForm, date: Date, century: bool) -> String {
    let Date { year, month, day } = date;
    let year_text =
        if century { format!("{year:04}") } else { format!("{:02}", year.rem_euclid(100)) };
    match form {
        DateForm::None => String::new(),
        DateForm::MonthName => format!("{} {day:2} {year_text}", short_month(month)),
        DateForm::DayMonthName => format!("{day:02} {} {year_text}", short_month(month)),
        DateForm::MonthComma => format!("{} {day:02}, {year_text}", short_month(month)),
        DateForm::Parts(order, separator) => {
            let part = |letter| match letter {
                'y' => year_text.clone(),
                'm' => format!("{month:02}"),
                _ => format!("{day:02}"),
            };
            order.chars().map(part).collect::<Vec<_>>().join(separator)
        }
    }
}

fn time_text(form: TimeForm, wall: Wall, sql_type: &SqlType) -> String {
    // A datetime shows the nearest millisecond of its third.
    let ticks = match sql_type {
        SqlType::DateTime => rounded(wall.time(), 10_000),
        _ => wall.time(),
    };
    let (hour, minute) = (ticks / (60 * TICKS_A_MINUTE), ticks / TICKS_A_MINUTE % 60);
    let (second, rest) = (ticks / TICKS_A_SECOND % 60, ticks % TICKS_A_SECOND);
    let half = if hour < 12 { "AM" } else { "PM" };
    let twelve = (hour + 11) % 12 + 1;
    // The old types show three digits behind a colon where the others show theirs behind a point.
    let old = matches!(sql_type, SqlType::DateTime | SqlType::SmallDateTime);
    let scale = if old { 3 } else { scale_of(sql_type) };
    let fraction = |mark: &str| match scale {
        0 => String::new(),
        _ => format!("{mark}{:0width$}", rest / unit(scale), width = usize::from(scale)),
    };
    let clock = || format!("{hour:02}:{minute:02}:{second:02}");
    let mark = if old { ":" } else { "." };
    match form {
        TimeForm::None => String::new(),
        TimeForm::Twelve => format!("{twelve:2}:{minute:02}{half}"),
        TimeForm::TwelveFull => {
            format!("{twelve:2}:{minute:02}:{second:02}{}{half}", fraction(mark))
        }
        TimeForm::TwelveSeconds => format!("{twelve:2}:{minute:02}:{second:02} {half}"),
        TimeForm::Seconds => clock(),
        TimeForm::ColonFraction => format!("{}{}", clock(), fraction(mark)),
        TimeForm::PointFraction => format!("{}{}", clock(), fraction(".")),
        TimeForm::Iso if rest == 0 => clock(),
        TimeForm::Iso => format!("{}{}", clock(), fraction(".")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scalar::moment::{TICKS_A_DAY, days_of, old_to_ticks, ticks_to_old};

    /// 2024-03-05 at a time of day.
    fn wall(hour: i64, minute: i64, second: i64, fraction: i64) -> Wall {
        let days = days_of(2024, 3, 5).expect("a date");
        let seconds = (hour * 60 + minute) * 60 + second;
        Wall { ticks: days * TICKS_A_DAY + seconds * TICKS_A_SECOND + fraction, offset: None }
    }

    #[test]
    fn a_datetime_has_every_style_of_the_documentation() {
        let given = wall(13, 5, 9, 1_233_333);
        let given = Wall { ticks: old_to_ticks(ticks_to_old(given.ticks)), offset: None };
        for (style, wanted) in [
            (0, "Mar  5 2024  1:05PM"),
            (100, "Mar  5 2024  1:05PM"),
            (1, "03/05/24"),
            (101, "03/05/2024"),
            (2, "24.03.05"),
            (102, "2024.03.05"),
            (3, "05/03/24"),
            (103, "05/03/2024"),
            (4, "05.03.24"),
            (104, "05.03.2024"),
            (5, "05-03-24"),
            (105, "05-03-2024"),
            (6, "05 Mar 24"),
            (106, "05 Mar 2024"),
            (7, "Mar 05, 24"),
            (107, "Mar 05, 2024"),
            (8, "13:05:09"),
            (24, "13:05:09"),
            (108, "13:05:09"),
            (9, "Mar  5 2024  1:05:09:123PM"),
            (109, "Mar  5 2024  1:05:09:123PM"),
            (10, "03-05-24"),
            (110, "03-05-2024"),
            (11, "24/03/05"),
            (111, "2024/03/05"),
            (12, "240305"),
            (112, "20240305"),
            (13, "05 Mar 2024 13:05:09:123"),
            (113, "05 Mar 2024 13:05:09:123"),
            (14, "13:05:09:123"),
            (114, "13:05:09:123"),
            (20, "2024-03-05 13:05:09"),
            (120, "2024-03-05 13:05:09"),
            (21, "2024-03-05 13:05:09.123"),
            (25, "2024-03-05 13:05:09.123"),
            (121, "2024-03-05 13:05:09.123"),
            (22, "03/05/24  1:05:09 PM"),
            (23, "2024-03-05"),
            (126, "2024-03-05T13:05:09.123"),
            (127, "2024-03-05T13:05:09.123"),
        ] {
            assert_eq!(text(given, &SqlType::DateTime, style), Ok(wanted.into()), "{style}");
        }
    }

    #[test]
    fn other_types_show_what_they_have() {
        let offset = Wall { offset: Some(-330), ..wall(0, 5, 9, 1_234_567) };
        let plain = wall(0, 5, 9, 1_234_567);
        for (given, sql_type, style, wanted) in [
            (plain, SqlType::DateTime2 { scale: 7 }, 121, "2024-03-05 00:05:09.1234567"),
            (plain, SqlType::DateTime2 { scale: 3 }, 121, "2024-03-05 00:05:09.123"),
            (plain, SqlType::DateTime2 { scale: 0 }, 121, "2024-03-05 00:05:09"),
            (plain, SqlType::DateTime2 { scale: 7 }, 109, "Mar  5 2024 12:05:09.1234567AM"),
            (plain, SqlType::DateTime2 { scale: 7 }, 0, "Mar  5 2024 12:05AM"),
            (plain, SqlType::DateTime2 { scale: 7 }, 126, "2024-03-05T00:05:09.1234567"),
            (wall(0, 5, 9, 0), SqlType::DateTime2 { scale: 7 }, 126, "2024-03-05T00:05:09"),
            (wall(0, 5, 9, 0), SqlType::DateTime, 126, "2024-03-05T00:05:09"),
            (plain, SqlType::Date, 121, "2024-03-05"),
            (plain, SqlType::Date, 0, "Mar  5 2024"),
            (plain, SqlType::Date, 126, "2024-03-05"),
            (plain, SqlType::Time { scale: 7 }, 121, "00:05:09.1234567"),
            (plain, SqlType::Time { scale: 0 }, 114, "00:05:09"),
            (plain, SqlType::Time { scale: 0 }, 0, "12:05AM"),
            (wall(12, 0, 0, 0), SqlType::SmallDateTime, 0, "Mar  5 2024 12:00PM"),
            (wall(12, 0, 0, 0), SqlType::SmallDateTime, 121, "2024-03-05 12:00:00.000"),
            (
                offset,
                SqlType::DateTimeOffset { scale: 7 },
                121,
                "2024-03-05 00:05:09.1234567 -05:30",
            ),
            (offset, SqlType::DateTimeOffset { scale: 0 }, 126, "2024-03-05T00:05:09-05:30"),
            (offset, SqlType::DateTimeOffset { scale: 0 }, 127, "2024-03-05T05:35:09Z"),
            (offset, SqlType::DateTimeOffset { scale: 0 }, 101, "03/05/2024"),
        ] {
            let rounded_off = match sql_type {
                // A value of the type has no more digits than it shows.
                SqlType::DateTimeOffset { scale } => {
                    Wall { ticks: given.ticks / unit(scale) * unit(scale), ..given }
                }
                _ => given,
            };
            assert_eq!(
                text(rounded_off, &sql_type, style),
                Ok(wanted.into()),
                "{sql_type} {style}"
            );
        }
    }

    #[test]
    fn a_style_that_says_nothing_of_the_type_is_refused() {
        let given = wall(1, 2, 3, 0);
        for (sql_type, style, number) in [
            (SqlType::DateTime, 99, 281),
            (SqlType::DateTime, 115, 281),
            (SqlType::DateTime, -1, 281),
            (SqlType::Date, 108, 281),
            (SqlType::Time { scale: 7 }, 101, 281),
            (SqlType::DateTime, 130, 50_000),
            (SqlType::DateTime, 131, 50_000),
        ] {
            let refused = text(given, &sql_type, style).expect_err("refused");
            assert_eq!(refused.number, number, "{sql_type} {style}");
        }
    }
}
