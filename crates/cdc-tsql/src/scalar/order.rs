//! The order of values: comparison, and keys whose byte order is the server's order. NULL sorts
//! first. How texts and binaries compare is the model's rule, which its keys have too.

use std::cmp::Ordering;

use cdc_fake::{
    Value,
    collation::DEFAULT_COLLATION,
    key::append_value,
    text_order::{TextOrder, significant},
};

use crate::kind::Kind;

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
        (Value::Text(left), Value::Text(right)) => Some(order_of(kind).compare(left, right)),
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
    append_value(key, value, order_of(kind));
    if descending {
        key.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

/// How the texts of a kind compare.
const fn order_of(kind: &Kind) -> TextOrder {
    let collation = match kind.collation {
        Some(collation) => collation,
        None => DEFAULT_COLLATION,
    };
    TextOrder::of(collation, &kind.sql_type)
}

#[cfg(test)]
mod tests {
    use cdc_core::{Length, ServerTime, SqlType};
    use cdc_fake::collation::named;
    use proptest::prelude::*;

    use super::*;

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
