//! The order of values: comparison, and keys whose byte order is the server's order.
//!
//! NULL sorts first. Texts compare without their trailing blanks, binaries without their trailing
//! zeros. Within a collation that is not binary, letters sort by the code point of their lower
//! case; of two that differ in case alone, the lower comes first.

use std::{borrow::Cow, cmp::Ordering};

use cdc_core::SqlType;
use cdc_fake::{Value, append_ended, append_plain};
use icu_normalizer::DecomposingNormalizerBorrowed;

use super::{
    code_page,
    collation::{DEFAULT_COLLATION, IGNORE_KANA, IGNORE_WIDTH},
};
use crate::kind::{Collation, Kind};

/// How two values of `kind` compare; none when one is NULL. A kind without a collation compares
/// with [`DEFAULT_COLLATION`].
pub(crate) fn compare(left: &Value, right: &Value, kind: &Kind) -> Option<Ordering> {
    match (left, right) {
        (Value::Null, _) | (_, Value::Null) => None,
        (Value::Int(left), Value::Int(right))
        | (Value::DateTime2(left), Value::DateTime2(right))
        | (Value::Time(left), Value::Time(right)) => Some(left.cmp(right)),
        (Value::Decimal(left), Value::Decimal(right)) => {
            Some(i128::from(*left).cmp(&i128::from(*right)))
        }
        (Value::DateTime(left), Value::DateTime(right)) => Some(left.cmp(right)),
        (Value::Date(left), Value::Date(right)) => Some(left.cmp(right)),
        (Value::DateTimeOffset { utc: left, .. }, Value::DateTimeOffset { utc: right, .. }) => {
            Some(left.cmp(right))
        }
        (Value::Float(left), Value::Float(right)) => left.partial_cmp(right),
        (Value::Real(left), Value::Real(right)) => left.partial_cmp(right),
        (Value::Bytes(left), Value::Bytes(right)) => {
            Some(significant(left).cmp(significant(right)))
        }
        (Value::Text(left), Value::Text(right)) => Some(compare_texts(left, right, kind)),
        _ => {
            let (mut one, mut other) = (Vec::with_capacity(20), Vec::with_capacity(20));
            append_order_key(&mut one, left, kind, false);
            append_order_key(&mut other, right, kind, false);
            Some(one.cmp(&other))
        }
    }
}

/// Bytes whose order is the server's order of the tuple, NULL first; equal bytes are equal values.
/// Each item is a value, its kind, and whether it sorts descending.
pub(crate) fn order_key<'a>(
    values: impl IntoIterator<Item = (&'a Value, &'a Kind, bool)>,
) -> Vec<u8> {
    let mut key = Vec::with_capacity(24);
    for (value, kind, descending) in values {
        append_order_key(&mut key, value, kind, descending);
    }
    key
}

/// Adds one value to an order key. No value's bytes begin another's of the same kind, so that keys
/// of several values compare value by value.
pub(crate) fn append_order_key(key: &mut Vec<u8>, value: &Value, kind: &Kind, descending: bool) {
    let start = key.len();
    append_ascending(key, value, kind);
    if descending {
        key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

fn append_ascending(key: &mut Vec<u8>, value: &Value, kind: &Kind) {
    match value {
        Value::Text(text) => {
            key.push(1);
            text_key(key, text, kind);
        }
        Value::Bytes(bytes) => {
            key.push(1);
            append_ended(key, significant(bytes));
        }
        plain => append_plain(key, plain),
    }
}

/// A binary without its trailing zeros, which never count.
fn significant(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes.get(..end).unwrap_or_default()
}

fn text_key(key: &mut Vec<u8>, text: &str, kind: &Kind) {
    let collation = kind.collation.unwrap_or(DEFAULT_COLLATION);
    let text = text.trim_end_matches(' ');
    if collation.binary {
        append_ended(key, &binary_form(text, collation, &kind.sql_type));
        return;
    }
    append_ended(key, folded(text, collation).as_bytes());
    if !collation.ignores_case {
        let start = key.len();
        append_ended(key, unaccented(text, collation).as_bytes());
        // Inverted, for the lower case to come first.
        key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

fn compare_texts(left: &str, right: &str, kind: &Kind) -> Ordering {
    let collation = kind.collation.unwrap_or(DEFAULT_COLLATION);
    let (left, right) = (left.trim_end_matches(' '), right.trim_end_matches(' '));
    if left == right {
        return Ordering::Equal;
    }
    if collation.binary {
        return binary_form(left, collation, &kind.sql_type).cmp(&binary_form(
            right,
            collation,
            &kind.sql_type,
        ));
    }
    let ascii = left.is_ascii() && right.is_ascii();
    let folded_order = if ascii {
        let lower =
            |text: &'_ str| text.bytes().map(|b| b.to_ascii_lowercase()).collect::<Vec<_>>();
        match left.len().max(right.len()) {
            // Short texts are compared in place.
            0..=64 => {
                let mut bytes = left.bytes().map(|b| b.to_ascii_lowercase());
                let mut others = right.bytes().map(|b| b.to_ascii_lowercase());
                loop {
                    match (bytes.next(), others.next()) {
                        (None, None) => break Ordering::Equal,
                        (None, Some(_)) => break Ordering::Less,
                        (Some(_), None) => break Ordering::Greater,
                        (Some(a), Some(b)) if a != b => break a.cmp(&b),
                        _ => {}
                    }
                }
            }
            _ => lower(left).cmp(&lower(right)),
        }
    } else {
        folded(left, collation).as_bytes().cmp(folded(right, collation).as_bytes())
    };
    if collation.ignores_case || folded_order != Ordering::Equal {
        return folded_order;
    }
    unaccented(right, collation).as_bytes().cmp(unaccented(left, collation).as_bytes())
}

/// A text as a binary collation compares it: code points, or the bytes of a code page's types.
fn binary_form<'a>(text: &'a str, collation: Collation, sql_type: &SqlType) -> Cow<'a, [u8]> {
    match sql_type {
        SqlType::Char(_) | SqlType::VarChar(_) | SqlType::Text => {
            code_page::encode(text, collation.code_page)
        }
        _ => Cow::Borrowed(text.as_bytes()),
    }
}

/// A text with everything alike that the collation holds for equal, case included.
pub(super) fn folded(text: &str, collation: Collation) -> Cow<'_, str> {
    if text.is_ascii() {
        return if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            Cow::Owned(text.to_ascii_lowercase())
        } else {
            Cow::Borrowed(text)
        };
    }
    let plain = unaccented(text, collation);
    // The small sigma at a word's end is the same letter as elsewhere.
    let lower = plain.chars().flat_map(char::to_lowercase);
    Cow::Owned(lower.map(|c| if c == 'ς' { 'σ' } else { c }).collect())
}

/// A text with what the collation ignores besides case made alike: accents, width, kana type.
pub(super) fn unaccented(text: &str, collation: Collation) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let ignores = |flag| collation.flags & flag != 0;
    let alike = |c: char| match c {
        '\u{ff01}'..='\u{ff5e}' if ignores(IGNORE_WIDTH) => {
            char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c)
        }
        '\u{3000}' if ignores(IGNORE_WIDTH) => ' ',
        '\u{30a1}'..='\u{30f6}' if ignores(IGNORE_KANA) => {
            char::from_u32(u32::from(c) - 0x60).unwrap_or(c)
        }
        c => c,
    };
    if !collation.ignores_accents {
        return Cow::Owned(text.chars().map(alike).collect());
    }
    let apart = DecomposingNormalizerBorrowed::new_nfd().normalize(text);
    Cow::Owned(apart.chars().filter(|c| !is_mark(*c)).map(alike).collect())
}

/// True for a combining mark of the scripts that accents are written in.
fn is_mark(c: char) -> bool {
    [
        '\u{300}'..='\u{36f}',
        '\u{591}'..='\u{5bd}',
        '\u{64b}'..='\u{652}',
        '\u{1ab0}'..='\u{1aff}',
        '\u{1dc0}'..='\u{1dff}',
        '\u{3099}'..='\u{309a}',
    ]
    .iter()
    .any(|marks| marks.contains(&c))
}

#[cfg(test)]
mod tests {
    use cdc_core::{Length, ServerTime};
    use proptest::prelude::*;

    use super::*;
    use crate::scalar::collation::named;

    fn kind(sql_type: SqlType, collation: &str) -> Kind {
        Kind { collation: Some(named(collation).expect(collation)), ..Kind::new(sql_type, true) }
    }

    fn nvarchar(collation: &str) -> Kind {
        kind(SqlType::NVarChar(Length::Max), collation)
    }

    const CI: &str = "SQL_Latin1_General_CP1_CI_AS";
    const CS: &str = "Latin1_General_CS_AS";
    const AI: &str = "Latin1_General_100_CI_AI";
    const BIN: &str = "Latin1_General_BIN2";

    #[test]
    fn texts_compare_as_their_collation_says() {
        use Ordering::{Equal, Greater, Less};
        for (left, right, collation, order) in [
            ("abc", "ABC  ", CI, Equal),
            ("abc", "ABC", CS, Less),
            ("abc", "ABC", BIN, Greater),
            ("abc ", "abc", BIN, Equal),
            ("B", "a", CS, Greater),
            ("B", "a", BIN, Less),
            ("é", "e", CI, Greater),
            ("É", "é", CI, Equal),
            ("É", "e", AI, Equal),
            ("Straße", "STRASSE", BIN, Greater),
            ("ΣΊΣΥΦΟΣ", "σίσυφος", CI, Equal),
            ("Ａ", "a", CI, Equal),
            ("ア", "あ", CI, Equal),
            ("Ａ", "A", "Japanese_CI_AS_KS_WS", Greater),
            ("", " ", CI, Equal),
            ("a", "ab", CI, Less),
        ] {
            let kind = nvarchar(collation);
            let (a, b) = (Value::text(left), Value::text(right));
            assert_eq!(compare(&a, &b, &kind), Some(order), "{left} and {right} in {collation}");
            assert_eq!(compare(&b, &a, &kind), Some(order.reverse()), "{right} and {left}");
        }
    }

    #[test]
    fn a_binary_collation_of_a_code_page_compares_its_bytes() {
        // In 1252 the euro is 0x80, before é; as a code point it is far behind.
        let (euro, e) = (Value::text("€"), Value::text("é"));
        let narrow = kind(SqlType::VarChar(Length::Limited(9)), BIN);
        assert_eq!(compare(&euro, &e, &narrow), Some(Ordering::Less));
        assert_eq!(compare(&euro, &e, &nvarchar(BIN)), Some(Ordering::Greater));
    }

    #[test]
    fn trailing_zeros_of_a_binary_never_count() {
        let kind = Kind::new(SqlType::VarBinary(Length::Max), true);
        for (left, right, order) in [
            (b"".as_slice(), [0].as_slice(), Ordering::Equal),
            (&[0, 0], &[0], Ordering::Equal),
            (&[1], &[1, 0, 0], Ordering::Equal),
            (&[1], &[1, 0, 1], Ordering::Less),
            (&[0x20], &[0x20, 0x20], Ordering::Less),
        ] {
            let (a, b) = (Value::bytes(left), Value::bytes(right));
            assert_eq!(compare(&a, &b, &kind), Some(order));
        }
    }

    #[test]
    fn a_uniqueidentifier_sorts_by_its_last_group_first() {
        let kind = Kind::new(SqlType::UniqueIdentifier, true);
        let with = |at: usize| {
            let mut bytes = [0; 16];
            bytes[at] = 1;
            Value::Uuid(bytes)
        };
        let ascending = [0, 1, 2, 3, 4, 5, 6, 7, 9, 8, 15, 14, 13, 12, 11, 10].map(with);
        let descends = ascending
            .windows(2)
            .find(|pair| compare(&pair[0], &pair[1], &kind) != Some(Ordering::Less));
        assert_eq!(descends, None);
    }

    #[test]
    fn nothing_compares_with_null_but_it_sorts_first() {
        let kind = Kind::new(SqlType::Int, true);
        assert_eq!(compare(&Value::Null, &Value::Int(1), &kind), None);
        assert_eq!(compare(&Value::Null, &Value::Null, &kind), None);
        let key = |value: &Value, descending| order_key([(value, &kind, descending)]);
        assert!(key(&Value::Null, false) < key(&Value::Int(i64::MIN), false));
        assert!(key(&Value::Null, true) > key(&Value::Int(i64::MIN), true));
    }

    fn value() -> impl Strategy<Value = (Value, Value, Kind)> {
        let texts = || "[ aA0éÉΩς€\u{0}b]{0,5}";
        prop_oneof![
            (any::<i64>(), any::<i64>()).prop_map(|(a, b)| (
                Value::Int(a),
                Value::Int(b),
                Kind::new(SqlType::BigInt, true)
            )),
            (any::<i128>(), any::<i128>()).prop_map(|(a, b)| (
                Value::decimal(a),
                Value::decimal(b),
                Kind::new(SqlType::Decimal { precision: 38, scale: 0 }, true)
            )),
            (-1e300..1e300, -1e300..1e300).prop_map(|(a, b)| (
                Value::Float(a),
                Value::Float(b),
                Kind::new(SqlType::Float, true)
            )),
            (any::<i64>(), any::<i64>()).prop_map(|(a, b)| (
                Value::DateTime(ServerTime::from_ticks(a)),
                Value::DateTime(ServerTime::from_ticks(b)),
                Kind::new(SqlType::DateTime, true)
            )),
            (any::<[u8; 16]>(), any::<[u8; 16]>()).prop_map(|(a, b)| (
                Value::Uuid(a),
                Value::Uuid(b),
                Kind::new(SqlType::UniqueIdentifier, true)
            )),
            (prop::collection::vec(0..3_u8, 0..4), prop::collection::vec(0..3_u8, 0..4)).prop_map(
                |(a, b)| (
                    Value::bytes(&a),
                    Value::bytes(&b),
                    Kind::new(SqlType::VarBinary(Length::Max), true)
                )
            ),
            (texts(), texts(), prop::sample::select(vec![CI, CS, AI, BIN]), any::<bool>())
                .prop_map(|(a, b, collation, narrow)| (
                    Value::text(&a),
                    Value::text(&b),
                    kind(
                        if narrow {
                            SqlType::VarChar(Length::Max)
                        } else {
                            SqlType::NVarChar(Length::Max)
                        },
                        collation
                    )
                )),
        ]
    }

    proptest! {
        #[test]
        fn key_order_is_the_order_of_compare((a, b, kind) in value()) {
            let key = |value: &Value, descending| order_key([(value, &kind, descending)]);
            let order = compare(&a, &b, &kind).expect("neither is NULL");
            prop_assert_eq!(key(&a, false).cmp(&key(&b, false)), order);
            prop_assert_eq!(key(&a, true).cmp(&key(&b, true)), order.reverse());
        }

        #[test]
        fn a_tuple_compares_value_by_value(
            (a, b, kind) in value(), (c, d, other) in value(), down: (bool, bool),
        ) {
            let key = |first: &Value, second: &Value| {
                order_key([(first, &kind, down.0), (second, &other, down.1)])
            };
            let by = |order: Ordering, down| if down { order.reverse() } else { order };
            let first = by(compare(&a, &b, &kind).expect("not NULL"), down.0);
            let second = by(compare(&c, &d, &other).expect("not NULL"), down.1);
            prop_assert_eq!(key(&a, &c).cmp(&key(&b, &d)), first.then(second));
        }

        #[test]
        fn floats_compare_as_numbers(a: f64, b: f64) {
            prop_assume!(a.is_finite() && b.is_finite());
            let kind = Kind::new(SqlType::Float, true);
            prop_assert_eq!(compare(&Value::Float(a), &Value::Float(b), &kind), a.partial_cmp(&b));
        }
    }
}
