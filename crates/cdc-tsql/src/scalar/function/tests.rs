//! Functions, call by call.

use cdc_fake::collation::named;
use proptest::prelude::*;

use super::*;
use crate::{
    relation::Settings,
    scalar::{
        conversion::convert,
        literal::{number_literal, text_literal},
        tests_support::facts,
    },
};

/// An argument: `'text'`, `N'text'`, a number, `null`, `0x..`, `type:text`, or a bare word.
fn argument(text: &str) -> ArgumentValue {
    let max = Kind::new(SqlType::VarChar(Length::Max), true);
    let cast = |text: &str, sql_type: SqlType, style| {
        let kind = Kind::new(sql_type, true);
        let value = convert(&Value::text(text), &max, &kind, style, true, &facts());
        Typed { kind, value: value.expect(text) }
    };
    let inner = |quoted: &str| quoted.trim_matches('\'').to_owned();
    ArgumentValue::Value(match text {
        "null" => Typed::new(SqlType::Int, Value::Null),
        "null text" => Typed::new(SqlType::VarChar(Length::Limited(5)), Value::Null),
        _ if text.starts_with('\'') => text_literal(&inner(text), false, &facts()),
        _ if text.starts_with("N'") => text_literal(&inner(&text[1..]), true, &facts()),
        _ if text.starts_with("0x") => {
            let length = u16::try_from(text.len() / 2 - 1).expect("short").max(1);
            cast(text, SqlType::VarBinary(Length::Limited(length)), Some(1))
        }
        _ => match text.split_once(':') {
            Some((name, text)) if !text.is_empty() => {
                let sql_type = match name {
                    "tinyint" => SqlType::TinyInt,
                    "bigint" => SqlType::BigInt,
                    "bit" => SqlType::Bit,
                    "money" => SqlType::Money,
                    "float" => SqlType::Float,
                    "real" => SqlType::Real,
                    "char9" => SqlType::Char(9),
                    "max" => SqlType::VarChar(Length::Max),
                    "date" => SqlType::Date,
                    "time" => SqlType::Time { scale: 7 },
                    "datetime" => SqlType::DateTime,
                    "smalldatetime" => SqlType::SmallDateTime,
                    "dt2" => SqlType::DateTime2 { scale: 7 },
                    "dt20" => SqlType::DateTime2 { scale: 0 },
                    "dto" => SqlType::DateTimeOffset { scale: 7 },
                    "dto0" => SqlType::DateTimeOffset { scale: 0 },
                    "guid" => SqlType::UniqueIdentifier,
                    "text" => SqlType::Text,
                    other => panic!("no type {other}"),
                };
                cast(text, sql_type, None)
            }
            _ if text.starts_with('-') => {
                let typed = number_literal(&text[1..]).expect(text);
                let minus = crate::scalar::Unary::Minus;
                let value = crate::scalar::unary(minus, (&typed.value, &typed.kind), &facts());
                Typed { value: value.expect(text), ..typed }
            }
            _ if text.starts_with(|c: char| c.is_ascii_digit() || c == '$') => {
                number_literal(text).expect(text)
            }
            _ => return ArgumentValue::Word(text.to_owned()),
        },
    })
}

fn evaluated(call: &str, facts: &Facts) -> Result<(Kind, Value), i32> {
    let (name, rest) = call.split_once('(').expect(call);
    let list = rest.strip_suffix(')').expect(call);
    let arguments: Vec<ArgumentValue> =
        if list.is_empty() { vec![] } else { list.split(", ").map(argument).collect() };
    let kinds: Vec<ArgumentKind> = arguments.iter().map(kind_of).collect();
    let kind = function_kind(name, &kinds).ok_or(195)?.map_err(|error| error.number)?;
    let value = function(name, &arguments, facts).map_err(|error| error.number)?;
    Ok((kind, value))
}

/// The result as text: binaries as `0x..`, dates in style 121, money with four digits.
fn shown(call: &str, facts: &Facts) -> Result<String, i32> {
    let (kind, value) = evaluated(call, facts)?;
    if value.is_null() {
        return Ok("NULL".into());
    }
    // The announced type holds the value as it is.
    assert_eq!(value.clone().stored(&kind.sql_type), Ok(value.clone()), "{call} as {kind:?}");
    let style = match &kind.sql_type {
        SqlType::VarBinary(_) => Some(1),
        SqlType::Money => Some(2),
        SqlType::DateTime | SqlType::SmallDateTime => Some(121),
        _ => None,
    };
    let max = Kind::new(SqlType::NVarChar(Length::Max), true);
    match convert(&value, &kind, &max, style, true, facts) {
        Ok(Value::Text(text)) => Ok(text.to_string()),
        other => panic!("{call}: {other:?}"),
    }
}

fn check(cases: &[(&str, Result<&str, i32>)]) {
    for (call, wanted) in cases {
        let found = shown(call, &facts());
        assert_eq!(found.as_deref().map_err(|number| *number), *wanted, "{call}");
    }
}

#[test]
fn texts_are_cut_and_joined() {
    check(&[
        ("LEFT('abcdef', 3)", Ok("abc")),
        ("LEFT('abc', 9)", Ok("abc")),
        ("LEFT('abc', -1)", Err(537)),
        ("RIGHT('abcdef', 2)", Ok("ef")),
        ("RIGHT('abc', -1)", Err(536)),
        ("SUBSTRING('abcdef', 2, 3)", Ok("bcd")),
        ("SUBSTRING('abcdef', 0, 3)", Ok("ab")),
        ("SUBSTRING('abcdef', -1, 3)", Ok("a")),
        ("SUBSTRING('abcdef', 9, 3)", Ok("")),
        ("SUBSTRING('abcdef', 2, -1)", Err(537)),
        ("SUBSTRING(0x010203, 2, 1)", Ok("0x02")),
        ("UPPER('aé')", Ok("AÉ")),
        ("LOWER(N'ΣΑ')", Ok("σα")),
        ("UPPER(12)", Ok("12")),
        ("REVERSE('abc')", Ok("cba")),
        ("LTRIM('  a ')", Ok("a ")),
        ("RTRIM('  a ')", Ok("  a")),
        ("TRIM('  a ')", Ok("a")),
        ("TRIM('x', 'xxaxx')", Ok("a")),
        ("TRIM('X', 'xxaxx')", Ok("a")),
        ("TRIM(LEADING, 'x', 'xxaxx')", Ok("axx")),
        ("TRIM(TRAILING, 'x', 'xxaxx')", Ok("xxa")),
        ("REPLACE('aBcb', 'b', 'xy')", Ok("axycxy")),
        ("REPLACE('abc', '', 'x')", Ok("abc")),
        ("REPLACE('abc', 'b', '')", Ok("ac")),
        ("REPLICATE('ab', 3)", Ok("ababab")),
        ("REPLICATE('ab', -1)", Ok("NULL")),
        ("SPACE(3)", Ok("   ")),
        ("STUFF('abcdef', 2, 3, 'ijklmn')", Ok("aijklmnef")),
        ("STUFF('abc', 0, 1, 'x')", Ok("NULL")),
        ("STUFF('abc', 4, 1, 'x')", Ok("NULL")),
        ("STUFF('abc', 2, 1, null text)", Ok("ac")),
        ("CHARINDEX('B', 'abcb')", Ok("2")),
        ("CHARINDEX('b', 'abcb', 3)", Ok("4")),
        ("CHARINDEX('x', 'abc')", Ok("0")),
        ("CHARINDEX('b', 'abcb', -5)", Ok("2")),
        ("CHARINDEX('b', 'abcb', bigint:-9223372036854775808)", Err(8115)),
        ("PATINDEX('%[0-9]%', 'ab3c')", Ok("3")),
        ("PATINDEX('[0-9]%', 'ab3c')", Ok("0")),
        ("CONCAT('a', null, 1, '!')", Ok("a1!")),
        ("CONCAT_WS('-', 'a', null, 'b')", Ok("a-b")),
        ("TRANSLATE('2*[3+4]', '[]', '()')", Ok("2*(3+4)")),
        ("TRANSLATE('a', 'ab', 'c')", Err(9828)),
        ("QUOTENAME('a]b')", Ok("[a]]b]")),
        ("QUOTENAME('ab', '(')", Ok("(ab)")),
        ("QUOTENAME('ab', 'x')", Ok("NULL")),
        ("LEFT(null text, 1)", Ok("NULL")),
    ]);
    let long = format!("QUOTENAME('{}')", "x".repeat(129));
    check(&[(&long, Ok("NULL"))]);
}

#[test]
fn lengths_and_characters_are_those_of_the_type() {
    check(&[
        ("LEN('ab  ')", Ok("2")),
        ("LEN(N'😀')", Ok("2")),
        ("LEN('')", Ok("0")),
        ("LEN(0x2020)", Ok("0")),
        ("LEN(1234)", Ok("4")),
        ("DATALENGTH('ab  ')", Ok("4")),
        ("DATALENGTH(N'ab')", Ok("4")),
        ("DATALENGTH(char9:ab)", Ok("9")),
        ("DATALENGTH(1)", Ok("4")),
        ("DATALENGTH(bigint:1)", Ok("8")),
        ("DATALENGTH(1.5)", Ok("5")),
        ("DATALENGTH(dt2:2024-01-01)", Ok("8")),
        ("DATALENGTH(0x0102)", Ok("2")),
        ("ASCII('Abc')", Ok("65")),
        ("ASCII('€')", Ok("128")),
        ("ASCII('')", Ok("NULL")),
        ("UNICODE(N'Ω')", Ok("937")),
        ("CHAR(65)", Ok("A")),
        ("CHAR(128)", Ok("€")),
        ("CHAR(256)", Ok("NULL")),
        ("NCHAR(937)", Ok("Ω")),
        ("STR(123.45, 6, 1)", Ok(" 123.5")),
        ("STR(123.45)", Ok("       123")),
        ("STR(123.45, 2, 2)", Ok("**")),
        ("STR(-0.2, 4, 0)", Ok("   0")),
        ("ISNUMERIC('1e3')", Ok("1")),
        ("ISNUMERIC('$1,000.5')", Ok("1")),
        ("ISNUMERIC('abc')", Ok("0")),
        ("ISNUMERIC('')", Ok("0")),
        ("ISNUMERIC(1.5)", Ok("1")),
        ("ISNUMERIC(null)", Ok("0")),
        ("sys.fn_varbintohexstr(0x01AB)", Ok("0x01ab")),
    ]);
}

#[test]
fn hashes_are_those_of_the_bytes() {
    check(&[
        ("HASHBYTES('MD5', 'abc')", Ok("0x900150983CD24FB0D6963F7D28E17F72")),
        ("HASHBYTES('sha1', 'abc')", Ok("0xA9993E364706816ABA3E25717850C26C9CD0D89D")),
        (
            "HASHBYTES('SHA2_256', 'abc')",
            Ok("0xBA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD"),
        ),
        // The bytes of nvarchar are UTF-16.
        ("HASHBYTES('MD5', N'a')", Ok("0x4144E195F46DE78A3623DA7364D04F11")),
        ("HASHBYTES('SHA3', 'abc')", Ok("NULL")),
        ("HASHBYTES('MD4', 'abc')", Err(50_000)),
        ("HASHBYTES('MD5', 1)", Err(8116)),
    ]);
}

#[test]
fn numbers_keep_their_type_as_the_documentation_says() {
    check(&[
        ("ABS(-5)", Ok("5")),
        ("ABS(-1.5)", Ok("1.5")),
        ("ABS('-1.5')", Ok("1.5")),
        ("ABS(money:-2.5)", Ok("2.5000")),
        ("SIGN(-1.5)", Ok("-1.0")),
        ("CEILING(1.25)", Ok("2")),
        ("CEILING(-1.25)", Ok("-1")),
        ("CEILING(money:1.25)", Ok("2.0000")),
        ("FLOOR(-1.25)", Ok("-2")),
        ("FLOOR(float:1.75)", Ok("1")),
        ("ROUND(123.4545, 2)", Ok("123.4500")),
        ("ROUND(123.4567, 2)", Ok("123.4600")),
        ("ROUND(123.45, -2)", Ok("100.00")),
        ("ROUND(150.75, 0, 1)", Ok("150.00")),
        ("ROUND(748.58, -3)", Err(8115)),
        ("ROUND(748, -2)", Ok("700")),
        ("ROUND(-2.5, 0)", Ok("-3.0")),
        ("ROUND(float:2.345, 2)", Ok("2.35")),
        ("ROUND(float:0, -400)", Ok("0")),
        ("ROUND(float:1.7e308, -400)", Ok("0")),
        ("ROUND(float:1.7e308, 400)", Ok("1.7e+308")),
        ("POWER(2, 10)", Ok("1024")),
        ("POWER(2, 31)", Err(8115)),
        ("POWER(2, 0.5)", Ok("1")),
        ("POWER(2.0, 3)", Ok("8.0")),
        ("POWER(float:2, 0.5)", Ok("1.41421")),
        ("SQUARE(3)", Ok("9")),
        ("SQRT(16)", Ok("4")),
        ("SQRT(-1)", Err(3623)),
        ("LOG(0)", Err(3623)),
        ("LOG(8, 2)", Ok("3")),
        ("LOG10(1000)", Ok("3")),
        ("EXP(0)", Ok("1")),
        ("EXP(1000)", Err(8115)),
        ("PI()", Ok("3.14159")),
        ("DEGREES(float:3.141592653589793)", Ok("180")),
        ("RADIANS(180)", Ok("3")),
        ("ATN2(0, 1)", Ok("0")),
        ("ABS(date:2024-01-01)", Err(8116)),
    ]);
    assert_eq!(shown("RAND(7)", &facts()), shown("RAND(7)", &facts()));
    assert_ne!(shown("RAND()", &facts()), shown("RAND()", &facts()));
}

#[test]
fn dates_are_added_to() {
    check(&[
        ("DATEADD(month, 1, date:2024-01-31)", Ok("2024-02-29")),
        ("DATEADD(year, 1, date:2024-02-29)", Ok("2025-02-28")),
        ("DATEADD(qq, -1, date:2024-03-31)", Ok("2023-12-31")),
        ("DATEADD(week, 1, date:2024-01-01)", Ok("2024-01-08")),
        ("DATEADD(dw, 1, date:2024-01-01)", Ok("2024-01-02")),
        ("DATEADD(hour, 1, date:2024-01-01)", Err(9810)),
        ("DATEADD(day, 1, time:10:00)", Err(9810)),
        ("DATEADD(hour, 15, time:10:00)", Ok("01:00:00.0000000")),
        ("DATEADD(ms, 3, datetime:2024-01-01)", Ok("2024-01-01 00:00:00.003")),
        ("DATEADD(ms, 1, datetime:2024-01-01)", Ok("2024-01-01 00:00:00.000")),
        ("DATEADD(mcs, 1, datetime:2024-01-01)", Err(9810)),
        ("DATEADD(ns, 150, dt2:2024-01-01)", Ok("2024-01-01 00:00:00.0000002")),
        ("DATEADD(second, 30, smalldatetime:2024-01-01)", Ok("2024-01-01 00:01:00.000")),
        ("DATEADD(minute, -60, dto0:2024-01-01 00:30 +01:00)", Ok("2023-12-31 23:30:00 +01:00")),
        ("DATEADD(day, 1, '2024-01-01')", Ok("2024-01-02 00:00:00.000")),
        ("DATEADD(day, 1.9, date:2024-01-01)", Ok("2024-01-02")),
        ("DATEADD(year, 8000, date:2024-01-01)", Err(517)),
        ("DATEADD(day, null, date:2024-01-01)", Ok("NULL")),
        ("DATEADD(fortnight, 1, date:2024-01-01)", Err(155)),
        ("DATEADD(day, 1, guid:6F9619FF-8B86-D011-B42D-00C04FC964FF)", Err(8116)),
    ]);
}

#[test]
fn differences_count_the_boundaries_between() {
    let years = [
        "year",
        "quarter",
        "month",
        "dayofyear",
        "day",
        "week",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    ];
    for part in years {
        // One tick apart, one boundary of every part.
        let call = format!(
            "DATEDIFF({part}, dt2:2005-12-31 23:59:59.9999999, dt2:2006-01-01 00:00:00.0000000)"
        );
        // 2005-12-31 was a Saturday.
        assert_eq!(shown(&call, &facts()), Ok("1".into()), "{part}");
    }
    check(&[
        ("DATEDIFF(day, date:1970-01-01, date:2024-03-05)", Ok("19787")),
        ("DATEDIFF(day, date:2024-03-05, date:1970-01-01)", Ok("-19787")),
        ("DATEDIFF(week, date:2024-03-09, date:2024-03-10)", Ok("1")),
        ("DATEDIFF(week, date:2024-03-10, date:2024-03-16)", Ok("0")),
        ("DATEDIFF(hour, '2024-01-01 00:59', '2024-01-01 01:00')", Ok("1")),
        ("DATEDIFF(day, '2024-01-01', dto:2024-01-02 00:30 +01:00)", Ok("0")),
        ("DATEDIFF(second, date:1900-01-01, date:2024-01-01)", Err(535)),
        ("DATEDIFF_BIG(second, date:1900-01-01, date:2024-01-01)", Ok("3913056000")),
        ("DATEDIFF_BIG(ns, dt2:2024-01-01, dt2:2024-01-01 00:00:01)", Ok("1000000000")),
        ("DATEDIFF(day, null, date:2024-01-01)", Ok("NULL")),
        ("DATEDIFF(tz, date:2024-01-01, date:2024-01-01)", Err(9810)),
        ("DATEDIFF(minute, time:10:00:59, time:10:01)", Ok("1")),
    ]);
}

#[test]
fn parts_of_a_date_are_those_of_its_calendar() {
    check(&[
        ("DATEPART(year, date:2024-03-05)", Ok("2024")),
        ("DATEPART(quarter, date:2024-03-05)", Ok("1")),
        ("DATEPART(dayofyear, date:2024-03-05)", Ok("65")),
        ("DATEPART(week, date:2024-01-01)", Ok("1")),
        ("DATEPART(week, date:2024-01-07)", Ok("2")),
        ("DATEPART(iso_week, date:2024-12-31)", Ok("1")),
        ("DATEPART(iso_week, date:2021-01-03)", Ok("53")),
        ("DATEPART(weekday, date:2024-03-10)", Ok("1")),
        ("DATEPART(weekday, date:2024-03-16)", Ok("7")),
        ("DATEPART(ms, datetime:2024-01-01 00:00:00.127)", Ok("127")),
        ("DATEPART(mcs, datetime:2024-01-01 00:00:00.007)", Ok("6666")),
        ("DATEPART(mcs, dt2:2024-01-01 00:00:00.1234567)", Ok("123456")),
        ("DATEPART(ns, dt2:2024-01-01 00:00:00.1234567)", Ok("123456700")),
        ("DATEPART(tz, dto:2024-01-01 00:00 +05:30)", Ok("330")),
        ("DATEPART(tz, datetime:2024-01-01)", Err(9810)),
        ("DATEPART(hour, date:2024-01-01)", Err(9810)),
        ("DATEPART(hour, '2024-01-01 13:00')", Ok("13")),
        ("DATENAME(month, date:2024-03-05)", Ok("March")),
        ("DATENAME(weekday, date:2024-03-05)", Ok("Tuesday")),
        ("DATENAME(year, date:2024-03-05)", Ok("2024")),
        ("DATENAME(tz, dto:2024-01-01 00:00 -05:30)", Ok("-05:30")),
        ("YEAR(date:2024-03-05)", Ok("2024")),
        ("MONTH('2024-03-05')", Ok("3")),
        ("DAY(0)", Ok("1")),
        ("EOMONTH(date:2024-02-10)", Ok("2024-02-29")),
        ("EOMONTH(date:2024-02-10, -2)", Ok("2023-12-31")),
        ("DATETRUNC(month, dt2:2024-03-05 13:05:09.1234567)", Ok("2024-03-01 00:00:00.0000000")),
        ("DATETRUNC(quarter, date:2024-06-05)", Ok("2024-04-01")),
        ("DATETRUNC(week, date:2024-03-05)", Ok("2024-03-03")),
        ("DATETRUNC(iso_week, date:2024-03-05)", Ok("2024-03-04")),
        ("DATETRUNC(minute, datetime:2024-03-05 13:05:09.127)", Ok("2024-03-05 13:05:00.000")),
        ("DATETRUNC(hour, date:2024-03-05)", Err(9810)),
    ]);
    let settings = Settings { date_first: 1, ..Settings::default() };
    let monday = Facts { settings, ..facts() };
    assert_eq!(shown("DATEPART(weekday, date:2024-03-10)", &monday), Ok("7".into()));
    assert_eq!(shown("DATEPART(week, date:2024-01-07)", &monday), Ok("1".into()));
    assert_eq!(shown("DATETRUNC(week, date:2024-03-05)", &monday), Ok("2024-03-04".into()));
}

#[test]
fn the_clock_is_the_statements() {
    check(&[
        ("GETDATE()", Ok("2026-11-01 06:30:00.123")),
        ("CURRENT_TIMESTAMP()", Ok("2026-11-01 06:30:00.123")),
        ("GETUTCDATE()", Ok("2026-11-01 05:30:00.123")),
        ("SYSDATETIME()", Ok("2026-11-01 06:30:00.1234567")),
        ("SYSUTCDATETIME()", Ok("2026-11-01 05:30:00.1234567")),
        ("SYSDATETIMEOFFSET()", Ok("2026-11-01 06:30:00.1234567 +01:00")),
        ("GETDATE(1)", Err(174)),
    ]);
    for (name, deterministic) in [("getdate", false), ("NEWID", false), ("DATEADD", true)] {
        assert_eq!(is_deterministic(name), deterministic, "{name}");
    }
}

#[test]
fn offsets_and_zones_move_moments() {
    check(&[
        ("SWITCHOFFSET(dto0:2024-01-01 00:00 +00:00, '-05:30')", Ok("2023-12-31 18:30:00 -05:30")),
        ("SWITCHOFFSET(dto0:2024-01-01 00:00 +00:00, 60)", Ok("2024-01-01 01:00:00 +01:00")),
        ("SWITCHOFFSET(dto0:2024-01-01 00:00 +00:00, '+15:00')", Err(9812)),
        ("SWITCHOFFSET(dto0:2024-01-01 00:00 +00:00, 'x')", Err(9812)),
        ("SWITCHOFFSET(dto0:2024-01-01 00:00 +00:00, -32768)", Err(9812)),
        ("SWITCHOFFSET(dto0:2024-01-01 00:00 +00:00, '+05:-5')", Err(9812)),
        ("TODATETIMEOFFSET(dt20:2024-01-01 00:00, '+02:00')", Ok("2024-01-01 00:00:00 +02:00")),
        ("TODATETIMEOFFSET(datetime:2024-01-01, -120)", Ok("2024-01-01 00:00:00.000 -02:00")),
        ("TODATETIMEOFFSET(null, 60)", Err(8116)),
        (
            "at time zone(dt20:2024-07-01 12:00, 'Pacific Standard Time')",
            Ok("2024-07-01 12:00:00 -07:00"),
        ),
        (
            "AT TIME ZONE(dto0:2024-07-01 12:00 +00:00, 'Tokyo Standard Time')",
            Ok("2024-07-01 21:00:00 +09:00"),
        ),
        ("AT TIME ZONE(date:2024-07-01, 'UTC')", Err(8116)),
        ("AT TIME ZONE(dt2:2024-07-01, 'Nowhere')", Err(9820)),
    ]);
}

#[test]
fn dates_are_made_of_their_parts() {
    check(&[
        ("DATEFROMPARTS(2024, 2, 29)", Ok("2024-02-29")),
        ("DATEFROMPARTS(2023, 2, 29)", Err(289)),
        ("DATEFROMPARTS(2024, null, 1)", Ok("NULL")),
        ("DATETIMEFROMPARTS(2024, 3, 5, 13, 5, 9, 127)", Ok("2024-03-05 13:05:09.127")),
        ("DATETIME2FROMPARTS(2024, 3, 5, 13, 5, 9, 5, 1)", Ok("2024-03-05 13:05:09.5000000")),
        ("DATETIME2FROMPARTS(2024, 3, 5, 13, 5, 9, 10, 1)", Err(289)),
        ("SMALLDATETIMEFROMPARTS(2024, 3, 5, 13, 5)", Ok("2024-03-05 13:05:00.000")),
        (
            "DATETIMEOFFSETFROMPARTS(2024, 3, 5, 13, 5, 9, 0, -5, -30, 0)",
            Ok("2024-03-05 13:05:09.0000000 -05:30"),
        ),
        ("DATETIMEOFFSETFROMPARTS(2024, 3, 5, 13, 5, 9, 0, -5, 30, 0)", Err(289)),
        ("TIMEFROMPARTS(13, 5, 9, 123, 3)", Ok("13:05:09.1230000")),
        ("ISDATE('2024-03-05')", Ok("1")),
        ("ISDATE('2024-13-05')", Ok("0")),
        ("ISDATE(datetime:2024-03-05)", Ok("1")),
        ("ISDATE(date:2024-03-05)", Err(8116)),
    ]);
}

#[test]
fn a_choice_has_the_type_that_decides() {
    check(&[
        ("ISNULL(null text, 'abcdefgh')", Ok("abcde")),
        ("ISNULL('x', 'y')", Ok("x")),
        ("COALESCE(null text, 'abcdefgh')", Ok("abcdefgh")),
        ("COALESCE(null, 1.5, 2)", Ok("1.5")),
        ("NULLIF(1, 1.0)", Ok("NULL")),
        ("NULLIF(1, 2)", Ok("1")),
        ("NULLIF('a', 'A ')", Ok("NULL")),
        ("IIF(bit:1, 'a', 'bc')", Ok("a")),
        ("IIF(bit:0, 1, 2.5)", Ok("2.5")),
        ("CHOOSE(2, 'a', 'b')", Ok("b")),
        ("CHOOSE(3, 'a', 'b')", Ok("NULL")),
        ("GREATEST(1, 2.5, null)", Ok("2.5")),
        ("LEAST('b', 'A', 'c')", Ok("A")),
        ("GREATEST(null, null)", Ok("NULL")),
        ("COALESCE(date:2024-01-01, 1)", Err(206)),
    ]);
}

#[test]
fn results_have_the_servers_types() {
    let limited = |length| SqlType::VarChar(Length::Limited(length));
    for (call, sql_type) in [
        ("LEFT('abc', 1)", limited(3)),
        ("UPPER(char9:ab)", limited(9)),
        ("SUBSTRING(N'abc', 1, 1)", SqlType::NVarChar(Length::Limited(3))),
        ("SUBSTRING(0x010203, 1, 1)", SqlType::VarBinary(Length::Limited(3))),
        ("REPLACE('a', 'b', 'c')", limited(8000)),
        ("REPLACE('a', N'b', 'c')", SqlType::NVarChar(Length::Limited(4000))),
        ("CONCAT('ab', 'cde')", limited(5)),
        ("CONCAT('ab', N'cde')", SqlType::NVarChar(Length::Limited(5))),
        ("CONCAT_WS('-', 'ab', 'cde')", limited(6)),
        ("LEN('a')", SqlType::Int),
        ("LEN(max:a)", SqlType::BigInt),
        ("QUOTENAME('a')", SqlType::NVarChar(Length::Limited(258))),
        ("ABS(tinyint:5)", SqlType::Int),
        ("ABS(1.5)", SqlType::Decimal { precision: 2, scale: 1 }),
        ("CEILING(1.5)", SqlType::Decimal { precision: 2, scale: 0 }),
        ("POWER(1.5, 2)", SqlType::Decimal { precision: 38, scale: 1 }),
        ("DATEADD(day, 1, dt20:2024-01-01)", SqlType::DateTime2 { scale: 0 }),
        ("DATENAME(day, date:2024-01-01)", SqlType::NVarChar(Length::Limited(30))),
        ("AT TIME ZONE(datetime:2024-07-01, 'UTC')", SqlType::DateTimeOffset { scale: 3 }),
        ("ISNULL(null text, 'x')", limited(5)),
        ("COALESCE('x', N'yy')", SqlType::NVarChar(Length::Limited(2))),
    ] {
        let (kind, _) = evaluated(call, &facts()).expect(call);
        assert_eq!(kind.sql_type, sql_type, "{call}");
    }
}

#[test]
fn a_function_that_is_not_here_is_unknown_or_refused_by_name() {
    assert!(function_kind("OBJECT_ID", &[]).is_none());
    check(&[
        ("FORMAT(1, 'N')", Err(50_000)),
        ("CHECKSUM(1)", Err(50_000)),
        ("LEFT('a')", Err(174)),
        ("SUBSTRING('a')", Err(189)),
        ("NOSUCH(1)", Err(195)),
        ("DATEPART('year', date:2024-01-01)", Err(1023)),
    ]);
}

#[test]
fn new_identifiers_differ_and_have_the_random_shape() {
    let (_, a) = evaluated("NEWID()", &facts()).expect("made");
    let (_, b) = evaluated("NEWID()", &facts()).expect("made");
    assert_ne!(a, b);
    let Value::Uuid(bytes) = a else { panic!("identifier") };
    assert_eq!((bytes[6] >> 4, bytes[8] >> 6), (4, 2));
}

#[test]
fn a_result_keeps_the_collation_of_its_argument() {
    let greek = Kind {
        collation: named("Greek_CI_AS"),
        ..Kind::new(SqlType::VarChar(Length::Limited(5)), true)
    };
    let typed = Typed { kind: greek.clone(), value: Value::text("Ωμέγα") };
    let arguments = [
        ArgumentValue::Value(typed),
        ArgumentValue::Value(Typed::new(SqlType::Int, Value::Int(2))),
    ];
    let kinds: Vec<_> = arguments.iter().map(kind_of).collect();
    let kind = function_kind("LEFT", &kinds).expect("known").expect("kind");
    assert_eq!(kind.collation, greek.collation);
    assert_eq!(function("LEFT", &arguments, &facts()), Ok(Value::text("Ωμ")));
}

proptest! {
    #[test]
    fn a_text_is_its_left_and_its_right(text in "[a-zé😀]{0,12}", at in 0..14_i64) {
        let typed = text_literal(&text, true, &facts());
        let length = i64::try_from(text.encode_utf16().count()).expect("short");
        let call = |name, count: i64| function(
            name,
            &[ArgumentValue::Value(typed.clone()), ArgumentValue::Value(Typed::new(SqlType::Int, Value::Int(count)))],
            &facts(),
        );
        let (Ok(Value::Text(left)), Ok(Value::Text(right))) =
            (call("LEFT", at), call("RIGHT", (length - at).max(0))) else { panic!("texts") };
        // A character of two units is never cut; where one straddles the border it is in one part.
        let straddles = text.chars().scan(0, |units, c| {
            let start = *units;
            *units += i64::try_from(c.len_utf16()).expect("small");
            Some(start < at && at < *units)
        }).any(|straddles| straddles);
        prop_assume!(!straddles);
        prop_assert_eq!(format!("{left}{right}"), text);
    }

    #[test]
    fn what_is_added_is_the_difference(days in 0..700_000_i64, number in -300_000..300_000_i64, part in prop::sample::select(vec!["day", "week", "month", "year", "hour", "second"])) {
        let start = Value::DateTime2(days * 864_000_000_000);
        let kind = SqlType::DateTime2 { scale: 7 };
        let number = if part == "year" || part == "month" { number / 1000 } else { number };
        let word = ArgumentValue::Word(part.into());
        let added = function("DATEADD", &[
            word.clone(),
            ArgumentValue::Value(Typed::new(SqlType::Int, Value::Int(number))),
            ArgumentValue::Value(Typed::new(kind.clone(), start.clone())),
        ], &facts());
        let Ok(end) = added else { return Ok(()) };
        let found = function("DATEDIFF_BIG", &[
            word,
            ArgumentValue::Value(Typed::new(kind.clone(), start)),
            ArgumentValue::Value(Typed::new(kind, end)),
        ], &facts());
        prop_assert_eq!(found, Ok(Value::Int(number)));
    }
}
