//! What holds for every conversion, operator and function: nothing panics, a result is a value of
//! the kind that was announced, and no message quotes a value.

use std::sync::LazyLock;

use cdc_core::{Length, SqlType};
use proptest::prelude::*;

use super::{tests_support::facts, *};

const LIMITED: Length = Length::Limited(40);

/// Types, each with values at its edges as text.
fn edges() -> Vec<(SqlType, &'static [&'static str])> {
    use SqlType as T;
    vec![
        (T::Bit, &["0", "1"]),
        (T::TinyInt, &["0", "255"]),
        (T::SmallInt, &["-32768", "32767", "7"]),
        (T::Int, &["-2147483648", "2147483647", "0", "3"]),
        (T::BigInt, &["-9223372036854775808", "9223372036854775807", "5"]),
        (T::Real, &["0", "-3.4e38", "1.5e-40"]),
        (T::Float, &["0", "1.7e308", "-2.5", "5e-320"]),
        (T::Decimal { precision: 38, scale: 0 }, &["99999999999999999999999999999999999999", "-1"]),
        (T::Decimal { precision: 38, scale: 38 }, &["0.99999999999999999999999999999999999999"]),
        (T::Decimal { precision: 5, scale: 2 }, &["-999.99", "0.01"]),
        (T::Money, &["-922337203685477.5808", "922337203685477.5807", "1.5"]),
        (T::SmallMoney, &["-214748.3648", "2.25"]),
        (T::Date, &["0001-01-01", "9999-12-31", "2024-02-29"]),
        (T::DateTime, &["1753-01-01", "9999-12-31 23:59:59.997", "2024-02-29 12:00"]),
        (T::SmallDateTime, &["1900-01-01", "2079-06-06 23:59"]),
        (T::DateTime2 { scale: 7 }, &["0001-01-01", "9999-12-31 23:59:59.9999999"]),
        (T::DateTime2 { scale: 0 }, &["2024-02-29 23:59:59"]),
        (T::DateTimeOffset { scale: 7 }, &["0001-01-01 00:00 -14:00", "9999-12-31 23:59 +14:00"]),
        (T::DateTimeOffset { scale: 0 }, &["2024-02-29 12:00 +05:30"]),
        (T::Time { scale: 7 }, &["00:00", "23:59:59.9999999"]),
        (T::Time { scale: 0 }, &["12:00"]),
        (T::UniqueIdentifier, &["6F9619FF-8B86-D011-B42D-00C04FC964FF"]),
        (T::Char(5), &["", "é", "12"]),
        (T::VarChar(LIMITED), &["", "  ", "-1", "2024-02-29", "0x1F", "abc", "1e9", "%[a-"]),
        (T::VarChar(Length::Max), &["", "x"]),
        (T::NChar(5), &["Ω"]),
        (T::NVarChar(LIMITED), &["", "😀é", "+01:00", "12:30 PM"]),
        (T::NVarChar(Length::Max), &["ΑΒΓ"]),
        (T::Text, &["abc"]),
        (T::NText, &["Ω"]),
        (T::Xml, &["<a/>"]),
    ]
}

fn cast(value: &Value, from: &Kind, to: &Kind) -> SqlResult<Value> {
    convert(value, from, to, None, true, &facts())
}

/// Every type with its edges, binaries, and NULL of each.
static POOL: LazyLock<Vec<Typed>> = LazyLock::new(|| {
    let text = Kind::new(SqlType::NVarChar(Length::Max), true);
    let mut pool = Vec::new();
    for (sql_type, texts) in edges() {
        let kind = Kind::new(sql_type, true);
        for given in texts {
            let value = cast(&Value::text(given), &text, &kind).expect(given);
            pool.push(Typed { kind: kind.clone(), value });
        }
        pool.push(Typed { kind, value: Value::Null });
    }
    for (sql_type, bytes) in [
        (SqlType::Binary(4), [0, 1, 2, 255].as_slice()),
        (SqlType::VarBinary(LIMITED), &[]),
        (SqlType::VarBinary(LIMITED), &[7, 1, 0, 1, 10, 0, 0, 0]),
        (SqlType::VarBinary(Length::Max), &[1; 20]),
        (SqlType::Image, &[0xFF, 0xD8]),
        (SqlType::RowVersion, &[0, 0, 0, 0, 0, 0, 7, 0xD1]),
    ] {
        pool.push(Typed::new(sql_type, Value::bytes(bytes)));
    }
    pool
});

/// True when a column of the type stores the value as it is.
fn is_of(value: &Value, sql_type: &SqlType) -> bool {
    value.clone().stored(sql_type).as_ref() == Ok(value)
}

#[test]
fn every_conversion_gives_a_value_of_the_type_or_an_error_of_the_server() {
    let known = [
        206, 220, 232, 234, 235, 241, 242, 244, 245, 248, 257, 281, 529, 2628, 8114, 8115, 8169,
        8170, 50_000,
    ];
    let pool = &*POOL;
    for given in pool {
        for target in pool {
            for (style, explicit) in
                [(None, true), (None, false), (Some(1), true), (Some(126), true)]
            {
                let checked = check_conversion(&given.kind, &target.kind, explicit);
                let found =
                    convert(&given.value, &given.kind, &target.kind, style, explicit, &facts());
                let case = format!("{:?} to {}", given, target.kind.sql_type);
                match (checked, found) {
                    (Err(refused), found) => assert_eq!(found, Err(refused), "{case}"),
                    (Ok(()), Ok(value)) => {
                        assert_eq!(value.is_null(), given.value.is_null(), "{case}");
                        assert!(is_of(&value, &target.kind.sql_type), "{case}: {value:?}");
                    }
                    (Ok(()), Err(error)) => {
                        assert!(known.contains(&error.number), "{case} {error}")
                    }
                }
            }
        }
    }
}

#[test]
fn every_operator_gives_a_value_of_its_kind() {
    use Operator::{Add, BitAnd, BitOr, BitXor, Divide, Modulo, Multiply, Subtract};
    let pool = &*POOL;
    for left in pool {
        for right in pool {
            for op in [Add, Subtract, Multiply, Divide, Modulo, BitAnd, BitOr, BitXor] {
                let kind = operator_kind(op, &left.kind, &right.kind);
                let found =
                    operate(op, (&left.value, &left.kind), (&right.value, &right.kind), &facts());
                let case = format!("{left:?} {op:?} {right:?}");
                match (kind, found) {
                    (Ok(kind), Ok(value)) => {
                        assert!(is_of(&value, &kind.sql_type), "{case}: {value:?} as {kind:?}");
                    }
                    (Ok(_), Err(_)) => {}
                    // Whole numbers of one type need no look at kinds, and have one.
                    (Err(refused), found) => assert_eq!(found, Err(refused), "{case}"),
                }
            }
        }
    }
}

#[test]
fn what_has_a_common_kind_converts_to_it_by_itself_and_compares() {
    let pool = &*POOL;
    for left in pool {
        for right in pool {
            let Ok(common) = common_kind(&[left.kind.clone(), right.kind.clone()]) else {
                continue;
            };
            for side in [left, right] {
                let checked = check_conversion(&side.kind, &common, false);
                assert_eq!(checked, Ok(()), "{:?} as {common:?}", side.kind);
            }
            let (Ok(a), Ok(b)) = (
                assign(&left.value, &left.kind, &common, &facts()),
                assign(&right.value, &right.kind, &common, &facts()),
            ) else {
                continue;
            };
            let order = compare(&a, &b, &common);
            assert_eq!(order, compare(&b, &a, &common).map(std::cmp::Ordering::reverse));
            assert_eq!(order.is_none(), a.is_null() || b.is_null());
        }
    }
}

proptest! {
    #[test]
    fn no_text_and_no_bytes_make_a_conversion_panic(
        text: String, digits in "[-+$,. 0-9:eETZ/]{0,24}",
        bytes in prop::collection::vec(any::<u8>(), 0..21), style in -1..140,
    ) {
        let text_kind = Kind::new(SqlType::NVarChar(Length::Max), true);
        let bytes_kind = Kind::new(SqlType::VarBinary(Length::Max), true);
        for (value, from) in [
            (Value::text(&text), &text_kind),
            (Value::text(&digits), &text_kind),
            (Value::bytes(&bytes), &bytes_kind),
        ] {
            for (to, _) in edges() {
                for style in [None, Some(style)] {
                    let found =
                        convert(&value, from, &Kind::new(to.clone(), true), style, true, &facts());
                    if let Ok(value) = found {
                        prop_assert!(is_of(&value, &to), "{:?} as {}", value, to);
                    }
                }
            }
        }
    }
}

/// Parts of dates, and what is none.
const WORDS: [&str; 8] = ["year", "week", "hour", "ns", "tz", "iso_week", "LEADING", "nonsense"];

fn arguments(least: usize, most: usize) -> impl Strategy<Value = Vec<ArgumentValue>> {
    let one = prop_oneof![
        6 => prop::sample::select(POOL.as_slice()).prop_map(ArgumentValue::Value),
        1 => prop::sample::select(WORDS.as_slice()).prop_map(|w| ArgumentValue::Word(w.into())),
    ];
    prop::collection::vec(one, least..=most.min(least + 2))
}

fn call() -> impl Strategy<Value = (&'static str, Vec<ArgumentValue>)> {
    prop::sample::select(function::all().collect::<Vec<_>>()).prop_flat_map(
        |(name, least, most)| {
            let dated =
                name.starts_with("DATE") && !name.ends_with("PARTS") && name != "DATALENGTH";
            (Just(name), arguments(least, most), prop::sample::select(WORDS.as_slice())).prop_map(
                move |(name, mut arguments, word)| {
                    if let Some(first) = arguments.first_mut().filter(|_| dated) {
                        *first = ArgumentValue::Word(word.into());
                    }
                    (name, arguments)
                },
            )
        },
    )
}

proptest! {
    // A failing call is small as it is: what shrinking does to it costs minutes.
    #![proptest_config(ProptestConfig {
        cases: 5_000,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_function_gives_a_value_of_its_kind((name, arguments) in call()) {
        let kinds: Vec<_> = arguments
            .iter()
            .map(|argument| match argument {
                ArgumentValue::Value(typed) => ArgumentKind::Value(typed.kind.clone()),
                ArgumentValue::Word(word) => ArgumentKind::Word(word.clone()),
            })
            .collect();
        let kind = function_kind(name, &kinds).expect("known");
        let found = function(name, &arguments, &facts());
        if let (Ok(kind), Ok(value)) = (kind, found) {
            prop_assert!(
                is_of(&value, &kind.sql_type),
                "{}{:?} gives {:?}, announced as {}", name, arguments, value, kind.sql_type
            );
        }
    }
}
