//! Values as clients read them.

use cdc_core::ServerTime;
use proptest::prelude::*;

use super::*;
use crate::{
    charset::tests::{GREEK, LATIN, UTF8},
    input::Input,
    parameter,
};

const PLAIN: Dialect = Dialect { collation: LATIN, utf8: false };

fn format(sql_type: SqlType, nullable: bool) -> ColumnFormat {
    ColumnFormat::of(&Kind::new(sql_type, nullable), PLAIN).expect("a type with a form")
}

fn described(format: &ColumnFormat) -> Vec<u8> {
    let mut out = Vec::new();
    format.describe(&mut out);
    out
}

fn written(format: &ColumnFormat, value: &Value) -> Result<Vec<u8>, Misfit> {
    let mut out = Vec::new();
    format.write(value, &mut out).map(|()| out)
}

fn decimal(precision: u8, scale: u8) -> SqlType {
    SqlType::Decimal { precision, scale }
}

#[test]
fn a_column_that_is_never_null_has_a_fixed_type_where_there_is_one() {
    use SqlType as T;
    for (sql_type, fixed, nullable) in [
        (T::Bit, &[0x32][..], &[0x68, 1][..]),
        (T::TinyInt, &[0x30], &[0x26, 1]),
        (T::SmallInt, &[0x34], &[0x26, 2]),
        (T::Int, &[0x38], &[0x26, 4]),
        (T::BigInt, &[0x7F], &[0x26, 8]),
        (T::Real, &[0x3B], &[0x6D, 4]),
        (T::Float, &[0x3E], &[0x6D, 8]),
        (T::Money, &[0x3C], &[0x6E, 8]),
        (T::SmallMoney, &[0x7A], &[0x6E, 4]),
        (T::DateTime, &[0x3D], &[0x6F, 8]),
        (T::SmallDateTime, &[0x3A], &[0x6F, 4]),
        (T::Date, &[0x28], &[0x28]),
        (T::Time { scale: 3 }, &[0x29, 3], &[0x29, 3]),
        (T::UniqueIdentifier, &[0x24, 16], &[0x24, 16]),
        (decimal(38, 38), &[0x6A, 17, 38, 38], &[0x6A, 17, 38, 38]),
        (T::Binary(10), &[0xAD, 10, 0], &[0xAD, 10, 0]),
        (T::RowVersion, &[0xAD, 8, 0], &[0xAD, 8, 0]),
        (T::VarBinary(Length::Max), &[0xA5, 255, 255], &[0xA5, 255, 255]),
        (T::Xml, &[0xF1, 0], &[0xF1, 0]),
        (T::Image, &[0x22, 255, 255, 255, 127], &[0x22, 255, 255, 255, 127]),
    ] {
        assert_eq!(described(&format(sql_type.clone(), false)), fixed, "{sql_type} not null");
        assert_eq!(described(&format(sql_type.clone(), true)), nullable, "{sql_type}");
    }
    let text = described(&format(T::NVarChar(Length::Limited(30)), true));
    assert_eq!(text, [0xE7, 60, 0, 0x09, 0x04, 0xD0, 0, 0x34]);
    assert!(ColumnFormat::of(&Kind::new(T::Other("geography".into()), true), PLAIN).is_err());
}

#[test]
fn values_have_the_bytes_that_a_server_sends() {
    use SqlType as T;
    let uuid = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    for (sql_type, value, bytes) in [
        (T::Int, Value::Int(-2), &[4, 254, 255, 255, 255][..]),
        (T::Bit, Value::Bit(true), &[1, 1]),
        (decimal(5, 2), Value::decimal(-12345), &[5, 0, 0x39, 0x30, 0, 0]),
        (T::Money, Value::decimal(-1), &[8, 255, 255, 255, 255, 255, 255, 255, 255]),
        (T::Money, Value::decimal(1 << 32), &[8, 1, 0, 0, 0, 0, 0, 0, 0]),
        (T::Date, Value::Date(0), &[3, 0x3A, 0xF9, 0x0A]),
        (T::Time { scale: 7 }, Value::Time(1), &[5, 1, 0, 0, 0, 0]),
        (T::Time { scale: 2 }, Value::Time(100_000), &[3, 1, 0, 0]),
        (
            T::DateTime,
            Value::DateTime(ServerTime::from_ticks(-1)),
            &[8, 255, 255, 255, 255, 0xFF, 0x81, 0x8B, 1],
        ),
        (T::SmallDateTime, Value::DateTime2(0), &[4, 0xDF, 0x63, 0, 0]),
        (
            T::DateTime2 { scale: 7 },
            Value::DateTime2(-1),
            &[8, 0xFF, 0xBF, 0x69, 0x2A, 0xC9, 0x39, 0xF9, 0x0A],
        ),
        (
            T::UniqueIdentifier,
            Value::Uuid(uuid),
            &[16, 4, 3, 2, 1, 6, 5, 8, 7, 9, 10, 11, 12, 13, 14, 15, 16],
        ),
        (T::NVarChar(Length::Limited(3)), Value::text("A\u{3b1}"), &[4, 0, 0x41, 0, 0xB1, 3]),
        (T::VarChar(Length::Limited(3)), Value::text("\u{e4}"), &[1, 0, 0xE4]),
        (T::VarBinary(Length::Limited(3)), Value::bytes(&[]), &[0, 0]),
        (T::VarBinary(Length::Max), Value::bytes(&[]), &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (
            T::VarBinary(Length::Max),
            Value::bytes(&[7]),
            &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0],
        ),
    ] {
        let found = written(&format(sql_type.clone(), true), &value);
        assert_eq!(found.as_deref(), Ok(bytes), "{sql_type}");
    }
    let text = written(&format(T::Text, true), &Value::text("ab")).expect("written");
    assert_eq!(text[0], 16);
    assert_eq!(&text[25..], [2, 0, 0, 0, b'a', b'b']);
}

#[test]
fn a_value_that_its_column_does_not_hold_is_not_written() {
    use SqlType as T;
    for (sql_type, value) in [
        (T::Int, Value::Int(1 << 31)),
        (T::TinyInt, Value::Int(-1)),
        (T::Int, Value::text("1")),
        (decimal(2, 0), Value::decimal(100)),
        (T::SmallMoney, Value::decimal(1 << 31)),
        (T::VarChar(Length::Limited(1)), Value::text("ab")),
        (T::NVarChar(Length::Limited(1)), Value::text("\u{1F600}")),
        (T::Binary(1), Value::bytes(&[1, 2])),
        (T::Date, Value::Date(i32::MAX)),
        (T::Time { scale: 0 }, Value::Time(864_000_000_000)),
        (T::SmallDateTime, Value::DateTime2(i64::MAX)),
    ] {
        assert!(written(&format(sql_type.clone(), true), &value).is_err(), "{sql_type}");
    }
    assert!(format(T::Int, false).write_null(&mut Vec::new()).is_err());
    assert!(format(T::Xml, false).write_null(&mut Vec::new()).is_err());
}

#[test]
fn texts_in_utf8_go_to_a_client_that_does_not_read_it_as_utf16() {
    let kind = |sql_type| Kind { collation: Some(UTF8), ..Kind::new(sql_type, true) };
    let short = kind(SqlType::VarChar(Length::Limited(20)));
    let long = kind(SqlType::VarChar(Length::Limited(8000)));
    let knows = Dialect { utf8: true, ..PLAIN };
    let first =
        |kind: &Kind, dialect| described(&ColumnFormat::of(kind, dialect).unwrap())[..3].to_vec();
    assert_eq!(first(&short, knows), [0xA7, 20, 0]);
    assert_eq!(first(&short, PLAIN), [0xE7, 40, 0]);
    assert_eq!(first(&long, PLAIN), [0xE7, 255, 255]);
    let value = Value::text("\u{3b1}");
    let bytes = |dialect| written(&ColumnFormat::of(&short, dialect).unwrap(), &value).unwrap();
    assert_eq!(bytes(knows), [2, 0, 0xCE, 0xB1]);
    assert_eq!(bytes(PLAIN), [2, 0, 0xB1, 0x03]);
    let greek = Kind { collation: Some(GREEK), ..Kind::new(SqlType::Char(1), true) };
    assert_eq!(written(&ColumnFormat::of(&greek, PLAIN).unwrap(), &value).unwrap(), [1, 0, 0xE1]);
}

/// A type and a value that a column of it stores.
fn typed() -> impl Strategy<Value = (SqlType, Value)> {
    use SqlType as T;
    let text = "[ -~\u{a1}-\u{ff}\u{3b1}-\u{3c9}\u{1F600}]{0,20}";
    let latin = "[ -~\u{a1}-\u{ff}]{0,20}";
    let bytes = || prop::collection::vec(any::<u8>(), 0..20);
    let days = -719_162i64..=2_932_896;
    let moment = (days.clone(), 0..864_000_000_000i64).prop_map(|(d, t)| d * 864_000_000_000 + t);
    let stored = |sql_type: SqlType, value: Value| {
        let value = value.stored(&sql_type).expect("in range");
        (sql_type, value)
    };
    prop_oneof![
        any::<bool>().prop_map(|bit| (T::Bit, Value::Bit(bit))),
        any::<u8>().prop_map(|n| (T::TinyInt, Value::Int(n.into()))),
        any::<i16>().prop_map(|n| (T::SmallInt, Value::Int(n.into()))),
        any::<i32>().prop_map(|n| (T::Int, Value::Int(n.into()))),
        any::<i64>().prop_map(|n| (T::BigInt, Value::Int(n))),
        any::<i64>().prop_map(|n| (T::Money, Value::decimal(n.into()))),
        any::<i32>().prop_map(|n| (T::SmallMoney, Value::decimal(n.into()))),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| (T::Float, Value::Float(n))),
        any::<f32>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| (T::Real, Value::Real(n))),
        (1u8..=38, 0u8..=38, any::<i128>()).prop_map(|(precision, scale, n)| {
            let n = n % 10_i128.pow(precision.into());
            (decimal(precision, scale.min(precision)), Value::decimal(n))
        }),
        days.prop_map(|days| (T::Date, Value::Date(i32::try_from(days).unwrap()))),
        (0u8..=7, 0..864_000_000_000i64)
            .prop_map(move |(scale, ticks)| stored(T::Time { scale }, Value::Time(ticks))),
        (0u8..=7, moment.clone()).prop_filter_map("a year too far", |(scale, ticks)| {
            let sql_type = T::DateTime2 { scale };
            let value = Value::DateTime2(ticks).stored(&sql_type).ok()?;
            matches!(value, Value::DateTime2(t) if t < 2_932_897 * 864_000_000_000).then_some((sql_type, value))
        }),
        (0u8..=7, moment, -840i16..=840).prop_filter_map("a year too far", |(scale, utc, offset_minutes)| {
            let sql_type = T::DateTimeOffset { scale };
            let value = Value::DateTimeOffset { utc, offset_minutes }.stored(&sql_type).ok()?;
            matches!(value, Value::DateTimeOffset { utc, .. } if utc < 2_932_897 * 864_000_000_000).then_some((sql_type, value))
        }),
        (-1_391_904_000_000i64..76_756_032_000_000)
            .prop_map(|ticks| (T::DateTime, Value::DateTime(ServerTime::from_ticks(ticks)))),
        (0i64..65_536, 0i64..1440).prop_map(|(days, minutes)| {
            let minutes = (days - 25_567) * 1440 + minutes;
            (T::SmallDateTime, Value::DateTime2(minutes * 600_000_000))
        }),
        any::<[u8; 16]>().prop_map(|uuid| (T::UniqueIdentifier, Value::Uuid(uuid))),
        text.prop_map(|t| (T::NVarChar(Length::Limited(40)), Value::text(&t))),
        text.prop_map(|t| (T::NVarChar(Length::Max), Value::text(&t))),
        text.prop_map(|t| (T::Xml, Value::text(&t))),
        text.prop_map(move |t| stored(T::NChar(40), Value::text(&t))),
        latin.prop_map(|t| (T::VarChar(Length::Limited(20)), Value::text(&t))),
        latin.prop_map(|t| (T::VarChar(Length::Max), Value::text(&t))),
        latin.prop_map(move |t| stored(T::Char(20), Value::text(&t))),
        bytes().prop_map(|b| (T::VarBinary(Length::Limited(20)), Value::bytes(&b))),
        bytes().prop_map(|b| (T::VarBinary(Length::Max), Value::bytes(&b))),
        bytes().prop_map(move |b| stored(T::Binary(20), Value::bytes(&b))),
    ]
}

proptest! {
    /// The server reads arguments by rules of its own; results and arguments have the same bytes.
    #[test]
    fn what_is_written_as_a_result_is_read_as_an_argument((sql_type, value) in typed()) {
        for nullable in [false, true] {
            for value in [value.clone(), Value::Null] {
                let format = format(sql_type.clone(), nullable);
                let mut bytes = described(&format);
                let written = match &value {
                    Value::Null => format.write_null(&mut bytes),
                    value => format.write(value, &mut bytes),
                };
                prop_assert_eq!(written.is_ok(), nullable || !value.is_null());
                if written.is_ok() {
                    let mut input = Input::new(&bytes);
                    let read = parameter::read(&mut input).expect("readable");
                    prop_assert!(input.is_empty());
                    prop_assert_eq!(&read.kind.sql_type, &sql_type);
                    prop_assert_eq!(read.value, value);
                }
            }
        }
    }
}
