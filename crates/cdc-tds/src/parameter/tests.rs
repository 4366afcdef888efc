//! Arguments as clients write them.

use proptest::prelude::*;

use super::*;

fn read_all(bytes: &[u8]) -> Read<Typed> {
    let mut input = Input::new(bytes);
    let typed = read(&mut input)?;
    assert!(input.is_empty(), "bytes are left over");
    Ok(typed)
}

const LATIN: [u8; 5] = [0x09, 0x04, 0xD0, 0x00, 0x34];
const GREEK: [u8; 5] = [0x08, 0x04, 0xD0, 0x00, 0x00];

fn given(parts: &[&[u8]], sql_type: SqlType, value: Value) {
    let read = read_all(&parts.concat()).unwrap_or_else(|fault| panic!("{sql_type}: {fault}"));
    assert_eq!(read, Typed::new(sql_type, value));
}

#[test]
fn numbers_are_read_with_and_without_a_length() {
    use SqlType as T;
    given(&[&[0x38], &[1, 0, 0, 0x80]], T::Int, Value::Int(-2_147_483_647));
    given(&[&[0x26, 4], &[4, 255, 255, 255, 255]], T::Int, Value::Int(-1));
    given(&[&[0x26, 4], &[0]], T::Int, Value::Null);
    given(&[&[0x26, 1], &[1, 200]], T::TinyInt, Value::Int(200));
    given(&[&[0x26, 8], &[8], &i64::MIN.to_le_bytes()], T::BigInt, Value::Int(i64::MIN));
    given(&[&[0x68, 1], &[1, 1]], T::Bit, Value::Bit(true));
    given(&[&[0x6D, 8], &[8], &1.5_f64.to_le_bytes()], T::Float, Value::Float(1.5));
    given(&[&[0x6D, 4], &[4], &1.5_f32.to_le_bytes()], T::Real, Value::Real(1.5));
    given(
        &[&[0x6E, 8], &[8, 255, 255, 255, 255, 255, 255, 255, 255]],
        T::Money,
        Value::decimal(-1),
    );
    given(&[&[0x6E, 4], &[4, 16, 39, 0, 0]], T::SmallMoney, Value::decimal(10_000));
    let decimal = T::Decimal { precision: 10, scale: 2 };
    given(&[&[0x6C, 9, 10, 2], &[5, 0, 0xD2, 4, 0, 0]], decimal.clone(), Value::decimal(-1234));
    given(&[&[0x6A, 17, 10, 2], &[0]], decimal, Value::Null);
    given(&[&[0x1F]], T::Int, Value::Null);
}

#[test]
fn texts_are_read_in_their_code_page() {
    use SqlType as T;
    let limited = |length| T::VarChar(Length::Limited(length));
    given(&[&[0xA7, 6, 0], &LATIN, &[4, 0], b"abc\xE4"], limited(6), Value::text("abc\u{e4}"));
    given(
        &[&[0xA7, 6, 0], &GREEK, &[2, 0], &[0xE1, 0xE2]],
        limited(6),
        Value::text("\u{3b1}\u{3b2}"),
    );
    given(&[&[0xA7, 6, 0], &LATIN, &[255, 255]], limited(6), Value::Null);
    given(&[&[0xAF, 3, 0], &LATIN, &[1, 0], b"x"], T::Char(3), Value::text("x  "));
    given(
        &[&[0xE7, 8, 0], &LATIN, &[2, 0], &[0xB1, 0x03]],
        T::NVarChar(Length::Limited(4)),
        Value::text("\u{3b1}"),
    );
    given(&[&[0xEF, 4, 0], &LATIN, &[2, 0], &[0x41, 0]], T::NChar(2), Value::text("A "));
    given(&[&[0x63, 28, 0, 0, 0], &LATIN, &[2, 0, 0, 0], &[0x41, 0]], T::NText, Value::text("A"));
    given(&[&[0x63, 1, 0, 0, 0], &LATIN, &[2, 0, 0, 0], &[0x41, 0]], T::NText, Value::text("A"));
    given(&[&[0x23, 28, 0, 0, 0], &LATIN, &[255, 255, 255, 255]], T::Text, Value::Null);
    given(&[&[0x27, 9], &[2], b"ab"], limited(9), Value::text("ab"));
}

#[test]
fn large_values_come_in_chunks_of_known_or_unknown_sum() {
    use SqlType as T;
    let max = T::NVarChar(Length::Max);
    let kind: &[u8] = &[0xE7, 255, 255];
    let known = [2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0x41, 0, 0, 0, 0, 0];
    given(&[kind, &LATIN, &known], max.clone(), Value::text("A"));
    let unknown =
        [0xFE, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 0, 0x41, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    given(&[kind, &LATIN, &unknown], max.clone(), Value::text("A"));
    given(&[kind, &LATIN, &[255; 8]], max.clone(), Value::Null);
    let empty = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    given(&[kind, &LATIN, &empty], max, Value::text(""));
    let mut short = known;
    short[0] = 4;
    assert!(read_all(&[kind, &LATIN, &short].concat()).is_err());
    let binary: &[u8] = &[0xA5, 255, 255];
    given(
        &[binary, &[1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0]],
        T::VarBinary(Length::Max),
        Value::bytes(&[9]),
    );
    given(&[&[0xF1, 0], &known], T::Xml, Value::text("A"));
}

#[test]
fn moments_are_read_to_their_last_digit() {
    use SqlType as T;
    given(&[&[0x28], &[3, 0xDA, 0xB9, 0x37]], T::Date, Value::Date(2_932_896));
    given(&[&[0x28], &[3, 0, 0, 0]], T::Date, Value::Date(-719_162));
    given(
        &[&[0x29, 7], &[5, 0xFF, 0xBF, 0x69, 0x2A, 0xC9]],
        T::Time { scale: 7 },
        Value::Time(863_999_999_999),
    );
    given(
        &[&[0x2A, 0], &[6, 1, 0, 0, 0x3A, 0xF9, 0x0A]],
        T::DateTime2 { scale: 0 },
        Value::DateTime2(10_000_000),
    );
    given(
        &[&[0x2B, 7], &[10, 0, 0, 0, 0, 0, 0x3A, 0xF9, 0x0A, 0x88, 0xFF]],
        T::DateTimeOffset { scale: 7 },
        Value::DateTimeOffset { utc: 0, offset_minutes: -120 },
    );
    given(
        &[&[0x6F, 8], &[8, 255, 255, 255, 255, 1, 0, 0, 0]],
        T::DateTime,
        Value::DateTime(ServerTime::from_ticks(-25_919_999)),
    );
    given(
        &[&[0x6F, 4], &[4, 1, 0, 2, 0]],
        T::SmallDateTime,
        Value::DateTime2((86_400 - 25_567 * 86_400 + 120) * 10_000_000),
    );
    let uuid = [16, 4, 3, 2, 1, 6, 5, 8, 7, 9, 10, 11, 12, 13, 14, 15, 16];
    given(
        &[&[0x24, 16], &uuid],
        T::UniqueIdentifier,
        Value::Uuid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
    );
}

#[test]
fn what_no_value_can_be_is_refused() {
    for (bytes, why) in [
        (&[0x26, 3, 0][..], "an integer of three bytes"),
        (&[0x26, 4, 2, 0, 0], "two bytes of an int"),
        (&[0x26, 4, 5, 0, 0, 0, 0, 0], "five bytes of an int"),
        (&[0x6A, 17, 39, 0, 0], "precision 39"),
        (&[0x6A, 17, 2, 3, 0], "scale beyond precision"),
        (&[0x6A, 5, 2, 0, 5, 1, 100, 0, 0, 0], "three digits in two"),
        (&[0x29, 8, 0], "scale 8"),
        (&[0x29, 0, 3, 0x80, 0x51, 0x01], "86,400 seconds"),
        (&[0x28, 3, 0xDB, 0xB9, 0x37], "the year 10000"),
        (&[0x6D, 8, 8, 0, 0, 0, 0, 0, 0, 0xF8, 0x7F], "not a number"),
        (&[0xA5, 2, 0, 3, 0, 1, 2, 3], "three bytes in varbinary(2)"),
        (&[0x99], "no type"),
    ] {
        assert!(matches!(read_all(bytes), Err(Fault::Malformed(_))), "{why}");
    }
    for number in [0x62, 0xF0, 0xF3] {
        assert!(matches!(read_all(&[number, 0, 0, 0]), Err(Fault::Unsupported(_))));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(
        first in prop::sample::select((0u8..=255).collect::<Vec<_>>()),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let _ = read(&mut Input::new(&[vec![first], bytes].concat()));
    }
}
