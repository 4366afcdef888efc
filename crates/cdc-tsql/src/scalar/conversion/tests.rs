//! Conversions, pair by pair and style by style.

use cdc_fake::collation::named;
use proptest::prelude::*;

use super::*;
use crate::{
    relation::{DateFormat, Settings},
    scalar::{literal::number_literal, tests_support::facts},
};

const fn varchar(length: u16) -> SqlType {
    SqlType::VarChar(Length::Limited(length))
}

const fn nvarchar(length: u16) -> SqlType {
    SqlType::NVarChar(Length::Limited(length))
}

const fn varbinary(length: u16) -> SqlType {
    SqlType::VarBinary(Length::Limited(length))
}

const fn decimal(precision: u8, scale: u8) -> SqlType {
    SqlType::Decimal { precision, scale }
}

const DT2: SqlType = SqlType::DateTime2 { scale: 7 };
const DTO: SqlType = SqlType::DateTimeOffset { scale: 7 };
const TIME: SqlType = SqlType::Time { scale: 7 };

fn cast(value: &Value, from: &SqlType, to: &SqlType, style: Option<i32>) -> Result<Value, i32> {
    let (from, to) = (Kind::new(from.clone(), true), Kind::new(to.clone(), true));
    convert(value, &from, &to, style, true, &facts()).map_err(|error| error.number)
}

/// A value of a type from its text; `0x` for binaries.
fn value(text: &str, sql_type: &SqlType) -> Value {
    let style = matches!(sql_type, SqlType::VarBinary(_) | SqlType::Binary(_)).then_some(1);
    cast(&Value::text(text), &varchar(8000), sql_type, style).expect(text)
}

/// CONVERT(to, CAST(text AS from), style) as text.
fn through(text: &str, from: &SqlType, to: &SqlType, style: Option<i32>) -> Result<String, i32> {
    let found = cast(&value(text, from), from, to, style)?;
    let style = match to {
        SqlType::VarBinary(_) | SqlType::Binary(_) => Some(1),
        SqlType::Money | SqlType::SmallMoney => Some(2),
        SqlType::Float | SqlType::Real => Some(0),
        SqlType::DateTime | SqlType::SmallDateTime => Some(121),
        _ => None,
    };
    match cast(&found, to, &SqlType::VarChar(Length::Max), style)? {
        Value::Text(text) => Ok(text.to_string()),
        other => panic!("no text: {other:?}"),
    }
}

fn check_all(cases: &[(&str, SqlType, SqlType, Result<&str, i32>)]) {
    for (text, from, to, wanted) in cases {
        let found = through(text, from, to, None);
        assert_eq!(found.as_deref().map_err(|n| *n), *wanted, "{text}: {from} to {to}");
    }
}

#[test]
fn numbers_become_numbers_rounded_or_cut_as_the_documentation_lists() {
    check_all(&[
        ("1.9", decimal(3, 1), SqlType::Int, Ok("1")),
        ("-1.9", decimal(3, 1), SqlType::Int, Ok("-1")),
        ("1.5", SqlType::Money, SqlType::Int, Ok("2")),
        ("-1.5", SqlType::Money, SqlType::Int, Ok("-2")),
        ("1.9", SqlType::Float, SqlType::Int, Ok("1")),
        ("1.25", SqlType::Float, decimal(5, 1), Ok("1.3")),
        ("1.25", decimal(5, 2), decimal(5, 1), Ok("1.3")),
        ("-1.25", decimal(5, 2), decimal(5, 1), Ok("-1.3")),
        ("1.23456", decimal(9, 5), SqlType::Money, Ok("1.2346")),
        ("0.1", SqlType::Float, decimal(38, 20), Ok("0.10000000000000001000")),
        ("12345.678", SqlType::Float, decimal(10, 2), Ok("12345.68")),
        ("2", SqlType::Int, SqlType::Bit, Ok("1")),
        ("0.0", decimal(2, 1), SqlType::Bit, Ok("0")),
        ("255", SqlType::Int, SqlType::TinyInt, Ok("255")),
        ("256", SqlType::Int, SqlType::TinyInt, Err(220)),
        ("-1", SqlType::Int, SqlType::TinyInt, Err(220)),
        ("32768", SqlType::Int, SqlType::SmallInt, Err(220)),
        ("2147483648", SqlType::BigInt, SqlType::Int, Err(8115)),
        ("2147483648", decimal(10, 0), SqlType::Int, Err(8115)),
        ("1e10", SqlType::Float, SqlType::Int, Err(232)),
        ("1e40", SqlType::Float, decimal(38, 0), Err(8115)),
        ("1e40", SqlType::Float, SqlType::Real, Err(232)),
        ("100", SqlType::Int, decimal(2, 0), Err(8115)),
        ("922337203685477.5807", SqlType::Money, decimal(19, 4), Ok("922337203685477.5807")),
        ("214748.3648", SqlType::Money, SqlType::SmallMoney, Err(8115)),
        ("16777217", SqlType::Int, SqlType::Real, Ok("1.67772e+007")),
    ]);
}

#[test]
fn texts_become_numbers_or_errors_with_the_servers_number() {
    let text = || varchar(60);
    check_all(&[
        (" 12 ", text(), SqlType::Int, Ok("12")),
        ("-12", nvarchar(9), SqlType::Int, Ok("-12")),
        ("", text(), SqlType::Int, Ok("0")),
        ("-", text(), SqlType::Int, Ok("0")),
        ("1.0", text(), SqlType::Int, Err(245)),
        ("1,000", text(), SqlType::Int, Err(245)),
        ("x", text(), SqlType::Int, Err(245)),
        ("x", text(), SqlType::BigInt, Err(8114)),
        ("2147483648", text(), SqlType::Int, Err(248)),
        ("256", text(), SqlType::TinyInt, Err(244)),
        ("40000", text(), SqlType::SmallInt, Err(244)),
        ("9223372036854775808", text(), SqlType::BigInt, Err(8115)),
        ("-9223372036854775808", text(), SqlType::BigInt, Ok("-9223372036854775808")),
        ("12.345", text(), decimal(5, 2), Ok("12.35")),
        ("", text(), decimal(5, 2), Err(8114)),
        ("1e3", text(), decimal(5, 2), Err(8114)),
        ("12345", text(), decimal(5, 2), Err(8115)),
        ("1e3", text(), SqlType::Float, Ok("1000")),
        ("", text(), SqlType::Float, Ok("0")),
        ("x", text(), SqlType::Float, Err(8114)),
        ("$1,234.56789", text(), SqlType::Money, Ok("1234.5679")),
        ("-€5", nvarchar(9), SqlType::Money, Ok("-5.0000")),
        ("", text(), SqlType::Money, Ok("0.0000")),
        ("1e3", text(), SqlType::Money, Err(235)),
        ("TRUE", text(), SqlType::Bit, Ok("1")),
        ("false", text(), SqlType::Bit, Ok("0")),
        ("7", text(), SqlType::Bit, Ok("1")),
        ("yes", text(), SqlType::Bit, Err(245)),
    ]);
}

#[test]
fn numbers_become_texts_that_fit_or_say_so() {
    check_all(&[
        ("-5", SqlType::Int, varchar(30), Ok("-5")),
        ("12345", SqlType::Int, varchar(3), Ok("*")),
        ("200", SqlType::TinyInt, SqlType::Char(2), Ok("* ")),
        ("12345", SqlType::Int, nvarchar(3), Err(8115)),
        ("12345", SqlType::BigInt, varchar(3), Err(8115)),
        ("1.50", decimal(3, 2), varchar(30), Ok("1.50")),
        ("1.50", decimal(3, 2), varchar(3), Err(8115)),
        ("0.5", decimal(1, 1), varchar(30), Ok("0.5")),
        ("4235.9819", SqlType::Money, varchar(30), Ok("4235.98")),
        ("4235.9819", SqlType::Money, varchar(3), Err(234)),
        ("1234567", SqlType::Float, varchar(30), Ok("1.23457e+006")),
        ("1234567", SqlType::Float, varchar(5), Err(232)),
        ("3.14159274", SqlType::Real, varchar(30), Ok("3.14159")),
        (
            "6F9619FF-8B86-D011-B42D-00C04FC964FF",
            SqlType::UniqueIdentifier,
            varchar(36),
            Ok("6F9619FF-8B86-D011-B42D-00C04FC964FF"),
        ),
        ("6F9619FF-8B86-D011-B42D-00C04FC964FF", SqlType::UniqueIdentifier, varchar(35), Err(8170)),
    ]);
    for (text, from, style, wanted) in [
        ("4235.9819", SqlType::Money, 1, "4,235.98"),
        ("4235.9819", SqlType::Money, 2, "4235.9819"),
        ("1234.5", SqlType::Float, 1, "1.2345000e+003"),
        ("1234.5", SqlType::Float, 2, "1.234500000000000e+003"),
        ("0.1", SqlType::Float, 3, "1.0000000000000001e-001"),
    ] {
        assert_eq!(through(text, &from, &varchar(30), Some(style)), Ok(wanted.into()));
    }
}

#[test]
fn texts_are_cut_by_cast_and_refused_by_a_column() {
    let facts = facts();
    let source = Kind::new(varchar(30), true);
    for (text, to, cut, stored) in [
        ("abcdef", varchar(3), "abc", Err(2628)),
        ("abc   ", varchar(4), "abc ", Ok("abc ")),
        ("ab", SqlType::Char(4), "ab  ", Ok("ab  ")),
        ("aé€", varchar(2), "aé", Err(2628)),
        ("Ωb", varchar(9), "?b", Ok("?b")),
        ("Ωb", nvarchar(9), "Ωb", Ok("Ωb")),
        ("a😀b", nvarchar(3), "a😀", Err(2628)),
        ("a😀b", nvarchar(2), "a", Err(2628)),
        ("ab", SqlType::NChar(3), "ab ", Ok("ab ")),
    ] {
        let to = Kind::new(to, true);
        let value = Value::text(text);
        assert_eq!(convert(&value, &source, &to, None, true, &facts), Ok(Value::text(cut)));
        assert_eq!(assign(&value, &source, &to, &facts), Ok(Value::text(cut)));
        let column = convert(&value, &source, &to, None, false, &facts);
        assert_eq!(column.map_err(|error| error.number), stored.map(Value::text), "{text}");
    }
}

#[test]
fn a_text_goes_into_the_code_page_of_its_collation() {
    let facts = facts();
    let from = Kind::new(nvarchar(30), true);
    for (collation, text, wanted) in [
        ("Greek_CI_AS", "Ωé", "Ω?"),
        ("Latin1_General_100_CI_AS_SC_UTF8", "Ωé", "Ωé"),
        ("Latin1_General_CI_AS", "Ωé", "?é"),
    ] {
        let to = Kind { collation: named(collation), ..Kind::new(varchar(4), true) };
        let found = convert(&Value::text(text), &from, &to, None, true, &facts);
        assert_eq!(found, Ok(Value::text(wanted)), "{collation}");
    }
    // Two bytes a letter in UTF-8.
    let utf_8 = named("Latin1_General_100_CI_AS_SC_UTF8");
    let to = Kind { collation: utf_8, ..Kind::new(varchar(3), true) };
    let found = convert(&Value::text("ΩΩ"), &from, &to, None, true, &facts);
    assert_eq!(found, Ok(Value::text("Ω")));
}

#[test]
fn bytes_and_texts_convert_in_the_binary_styles() {
    let max = || varbinary(8000);
    for (bytes, style, wanted) in [
        ("0x41e9", None, Ok("Aé")),
        ("0x41e9", Some(1), Ok("0x41E9")),
        ("0x41e9", Some(2), Ok("41E9")),
        ("0x41e9", Some(3), Err(281)),
        ("0x", Some(1), Ok("0x")),
    ] {
        let found = cast(&value(bytes, &max()), &max(), &varchar(30), style);
        assert_eq!(found, wanted.map(Value::text), "{bytes} {style:?}");
    }
    let utf_16 = cast(&Value::bytes(&[0x41, 0, 0xA9, 0x03]), &max(), &nvarchar(9), None);
    assert_eq!(utf_16, Ok(Value::text("AΩ")));
    for (text, from, style, to, wanted) in [
        ("0x41E9", varchar(30), Some(1), max(), Ok(vec![0x41, 0xE9])),
        ("41e9", varchar(30), Some(2), max(), Ok(vec![0x41, 0xE9])),
        ("41e9", varchar(30), Some(1), max(), Err(8114)),
        ("0x41e", varchar(30), Some(1), max(), Err(8114)),
        ("0x41zz", varchar(30), Some(1), max(), Err(8114)),
        ("Aé", varchar(30), None, max(), Ok(vec![0x41, 0xE9])),
        ("Aé", nvarchar(30), None, max(), Ok(vec![0x41, 0, 0xE9, 0])),
        ("0x0102", varchar(30), Some(1), SqlType::Binary(3), Ok(vec![1, 2, 0])),
        ("0x010203", varchar(30), Some(1), SqlType::Binary(2), Ok(vec![1, 2])),
        (
            "0x00000024000001A00003",
            varchar(22),
            Some(1),
            SqlType::Binary(10),
            Ok(vec![0, 0, 0, 0x24, 0, 0, 1, 0xA0, 0, 3]),
        ),
    ] {
        let found = cast(&Value::text(text), &from, &to, style);
        assert_eq!(found, wanted.map(|bytes| Value::bytes(&bytes)), "{text} {style:?}");
    }
}

#[test]
fn values_have_the_bytes_of_the_server() {
    for (text, from, to, wanted) in [
        ("1", SqlType::Int, varbinary(30), "0x00000001"),
        ("1", SqlType::BigInt, varbinary(30), "0x0000000000000001"),
        ("1", SqlType::TinyInt, varbinary(30), "0x01"),
        ("1", SqlType::Int, SqlType::Binary(2), "0x0001"),
        ("-1", SqlType::Int, SqlType::Binary(8), "0x00000000FFFFFFFF"),
        ("1.0", decimal(2, 1), varbinary(30), "0x020100010A000000"),
        ("-1.0", decimal(10, 1), varbinary(30), "0x0A0100000A00000000000000"),
        ("1", SqlType::Money, varbinary(30), "0x0000000000002710"),
        ("1", SqlType::Float, varbinary(30), "0x3FF0000000000000"),
        ("2000-01-01", SqlType::DateTime, varbinary(30), "0x00008EAC00000000"),
        ("1900-01-01 00:00:01", SqlType::DateTime, varbinary(30), "0x000000000000012C"),
        ("2000-01-01 00:01", SqlType::SmallDateTime, varbinary(30), "0x8EAC0001"),
        ("2000-01-01", SqlType::Date, varbinary(30), "0x07240B"),
        ("00:00:01", TIME, varbinary(30), "0x078096980000"),
        ("2000-01-01 00:00:01", SqlType::DateTime2 { scale: 0 }, varbinary(30), "0x0001000007240B"),
        (
            "2000-01-01 01:00:00 +01:00",
            SqlType::DateTimeOffset { scale: 0 },
            varbinary(30),
            "0x0000000007240B3C00",
        ),
        (
            "6F9619FF-8B86-D011-B42D-00C04FC964FF",
            SqlType::UniqueIdentifier,
            varbinary(30),
            "0xFF19966F868B11D0B42D00C04FC964FF",
        ),
    ] {
        assert_eq!(through(text, &from, &to, None), Ok(wanted.into()), "{text} {from}");
        if to == varbinary(30) && from != SqlType::Float {
            let bytes = value(wanted, &to);
            assert_eq!(
                cast(&bytes, &to, &from, None),
                Ok(value(text, &from)),
                "{wanted} as {from}"
            );
        }
    }
}

#[test]
fn dates_become_other_dates() {
    check_all(&[
        ("2024-03-05 13:05:09.1234567", DT2, SqlType::DateTime, Ok("2024-03-05 13:05:09.123")),
        ("2024-03-05 13:05:09.1234567", DT2, SqlType::Date, Ok("2024-03-05")),
        ("2024-03-05 13:05:09.1234567", DT2, SqlType::Time { scale: 3 }, Ok("13:05:09.123")),
        ("2024-03-05 13:05:30", DT2, SqlType::SmallDateTime, Ok("2024-03-05 13:06:00.000")),
        ("2024-03-05 13:05:09.003", SqlType::DateTime, DT2, Ok("2024-03-05 13:05:09.0033333")),
        ("2024-03-05", SqlType::Date, SqlType::DateTime, Ok("2024-03-05 00:00:00.000")),
        ("13:05:09", TIME, SqlType::DateTime, Ok("1900-01-01 13:05:09.000")),
        ("2024-03-05 13:05", DT2, DTO, Ok("2024-03-05 13:05:00.0000000 +00:00")),
        ("2024-03-05 13:05 +01:00", DTO, DT2, Ok("2024-03-05 13:05:00.0000000")),
        ("0001-01-01", SqlType::Date, SqlType::DateTime, Err(242)),
        (
            "9999-12-31 23:59:59.9999999",
            DT2,
            SqlType::DateTime2 { scale: 0 },
            Ok("9999-12-31 23:59:59"),
        ),
        (
            "9999-12-31 23:59:59.9999999 +00:00",
            DTO,
            SqlType::DateTimeOffset { scale: 0 },
            Ok("9999-12-31 23:59:59 +00:00"),
        ),
        ("2024-03-05", SqlType::Date, TIME, Err(529)),
    ]);
    // Style 1 takes the moment in UTC.
    assert_eq!(
        through("2024-03-05 13:05 +01:00", &DTO, &DT2, Some(1)),
        Ok("2024-03-05 12:05:00.0000000".into())
    );
}

#[test]
fn numbers_are_days_since_1900_for_the_old_types_alone() {
    check_all(&[
        ("0", SqlType::Int, SqlType::DateTime, Ok("1900-01-01 00:00:00.000")),
        ("45355", SqlType::Int, SqlType::DateTime, Ok("2024-03-06 00:00:00.000")),
        ("-1", SqlType::Int, SqlType::DateTime, Ok("1899-12-31 00:00:00.000")),
        ("1.5", decimal(3, 1), SqlType::DateTime, Ok("1900-01-02 12:00:00.000")),
        ("0.25", SqlType::Float, SqlType::SmallDateTime, Ok("1900-01-01 06:00:00.000")),
        ("3000000", SqlType::Int, SqlType::DateTime, Err(8115)),
        ("1900-01-02 12:00", SqlType::DateTime, SqlType::Int, Ok("2")),
        ("1900-01-02 11:59", SqlType::DateTime, SqlType::Int, Ok("1")),
        ("1900-01-02 12:00", SqlType::DateTime, SqlType::Float, Ok("1.5")),
        ("1900-01-02 12:00", SqlType::DateTime, decimal(5, 2), Ok("1.50")),
        ("1", SqlType::Int, SqlType::Date, Err(529)),
    ]);
}

#[test]
fn texts_become_dates_or_errors_with_the_servers_number() {
    let text = || varchar(60);
    check_all(&[
        ("2024-03-05 13:05:09.127", text(), SqlType::DateTime, Ok("2024-03-05 13:05:09.127")),
        ("2024-03-05 13:05:09.1234567", text(), DT2, Ok("2024-03-05 13:05:09.1234567")),
        ("2024-03-05 13:05:09.1234567", text(), SqlType::DateTime, Err(241)),
        ("x", text(), SqlType::Date, Err(241)),
        ("1752-12-31", text(), SqlType::DateTime, Err(242)),
        ("2024-02-30", text(), SqlType::DateTime, Err(242)),
        ("2024-02-30", text(), SqlType::Date, Err(241)),
        (
            "{6F9619FF-8B86-D011-B42D-00C04FC964FF}",
            text(),
            SqlType::UniqueIdentifier,
            Ok("6F9619FF-8B86-D011-B42D-00C04FC964FF"),
        ),
        (
            "6f9619ff-8b86-d011-b42d-00c04fc964ffwrong",
            text(),
            SqlType::UniqueIdentifier,
            Ok("6F9619FF-8B86-D011-B42D-00C04FC964FF"),
        ),
        ("6F9619FF", text(), SqlType::UniqueIdentifier, Err(8169)),
    ]);
    let settings = Settings { date_format: DateFormat::DayMonthYear, ..Settings::default() };
    let facts = Facts { settings, ..facts() };
    let (from, to) = (Kind::new(text(), true), Kind::new(SqlType::Date, true));
    let found = convert(&Value::text("01/02/2024"), &from, &to, None, true, &facts);
    assert_eq!(found, Ok(value("2024-02-01", &SqlType::Date)));
}

#[test]
fn a_conversion_that_must_be_written_is_refused_when_it_is_not() {
    let refused = |text: &str, from: SqlType, to: SqlType| {
        let (from_kind, to) = (Kind::new(from.clone(), true), Kind::new(to, true));
        convert(&value(text, &from), &from_kind, &to, None, false, &facts())
            .expect_err("refused")
            .number
    };
    assert_eq!(refused("1900-01-01", SqlType::DateTime, SqlType::Int), 257);
    assert_eq!(refused("1", SqlType::Money, varchar(9)), 257);
    assert_eq!(refused("x", varchar(9), varbinary(9)), 257);
    assert_eq!(refused("1", SqlType::Int, SqlType::Date), 206);
}

#[test]
fn no_message_quotes_the_value() {
    let secret = "5ecret";
    for to in [
        SqlType::Int,
        SqlType::BigInt,
        SqlType::Float,
        SqlType::Money,
        SqlType::Bit,
        decimal(5, 2),
        SqlType::Date,
        SqlType::DateTime,
        SqlType::UniqueIdentifier,
        varchar(2),
    ] {
        let (from, to) = (Kind::new(varchar(30), true), Kind::new(to, true));
        let error = convert(&Value::text(secret), &from, &to, None, false, &facts());
        let message = error.expect_err("refused").message;
        assert!(!message.contains(secret) && !message.contains("5e"), "{message}");
    }
}

#[test]
fn a_variant_converts_as_what_is_in_it() {
    let variant = || SqlType::Other("sql_variant".into());
    for (value, to, wanted) in [
        (Value::Int(3), SqlType::Int, Ok(Value::Int(3))),
        (Value::text("16"), SqlType::Int, Ok(Value::Int(16))),
        (Value::Int(3), varchar(9), Ok(Value::text("3"))),
        (Value::text("x"), SqlType::Int, Err(245)),
        (Value::Int(300), SqlType::TinyInt, Err(220)),
    ] {
        assert_eq!(cast(&value, &variant(), &to, None), wanted, "{to}");
    }
    assert_eq!(cast(&Value::Int(1), &SqlType::Int, &variant(), None), Ok(Value::Int(1)));
}

#[test]
fn null_is_null_in_every_type() {
    assert_eq!(cast(&Value::Null, &SqlType::Int, &varchar(3), None), Ok(Value::Null));
    assert_eq!(cast(&Value::Null, &SqlType::DateTime, &SqlType::Int, None), Ok(Value::Null));
}

proptest! {
    #[test]
    fn a_whole_number_comes_back_from_every_type_that_holds_it(number: i32) {
        let value = Value::Int(number.into());
        for by in [SqlType::BigInt, decimal(10, 0), SqlType::Float, varchar(11), nvarchar(11), varbinary(4), SqlType::Money] {
            let there = cast(&value, &SqlType::Int, &by, None).expect("fits");
            let back = cast(&there, &by, &SqlType::Int, None);
            prop_assert_eq!(&back, &Ok(value.clone()), "by {}", by);
        }
    }

    #[test]
    fn a_decimal_comes_back_from_its_text_and_its_bytes(digits in -(10_i128.pow(38) - 1)..10_i128.pow(38), scale in 0..=38_u8) {
        let kind = decimal(38, scale);
        let value = Value::decimal(digits);
        for by in [varchar(41), varbinary(20)] {
            let there = cast(&value, &kind, &by, None).expect("fits");
            prop_assert_eq!(cast(&there, &by, &kind, None), Ok(value.clone()), "by {}", by);
        }
    }

    #[test]
    fn a_moment_comes_back_from_its_text_and_its_bytes(seconds in -62_135_596_800_i64..253_402_300_800, rest in 0..10_000_000_i64, offset in -840..=840_i16) {
        let utc = seconds * 10_000_000 + rest;
        let day = 864_000_000_000;
        prop_assume!((-719_160..2_932_894).contains(&utc.div_euclid(day)));
        for (value, kind) in [
            (Value::DateTime2(utc), DT2),
            (Value::DateTimeOffset { utc, offset_minutes: offset }, DTO),
            (Value::Time(utc.rem_euclid(day)), TIME),
            (Value::Date(i32::try_from(utc.div_euclid(day)).expect("small")), SqlType::Date),
        ] {
            for (by, style) in [(varchar(40), None), (varchar(40), Some(126)), (varbinary(20), None)] {
                let there = cast(&value, &kind, &by, style).expect("fits");
                prop_assert_eq!(cast(&there, &by, &kind, None), Ok(value.clone()), "{} by {}", kind, by);
            }
        }
    }

    #[test]
    fn a_literal_is_printed_as_it_was_written(digits in "(0|[1-9][0-9]{0,17})\\.[0-9]{1,18}") {
        let typed = number_literal(&digits).expect("a number");
        let text = cast(&typed.value, &typed.kind.sql_type, &varchar(60), None);
        prop_assert_eq!(text, Ok(Value::text(&digits)));
    }
}
