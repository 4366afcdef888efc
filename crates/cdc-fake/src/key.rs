//! Sort keys: key columns as bytes whose order is SQL Server's order of the values.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

use crate::{
    text_order::{TextOrder, significant},
    value::Value,
};

/// Bytes of the longest key that needs no memory of its own: two numbers, or a GUID.
const SHORT_BYTES: usize = 22;

/// The key columns of a row as bytes. Byte order is key order, NULL first; no value's bytes begin
/// another's, so the bytes of leading columns bound all keys that share them.
#[derive(Clone)]
pub(crate) struct SortKey(Form);

/// Short keys stand where they are used: a table of millions has as many keys as rows.
#[derive(Clone)]
enum Form {
    Short { length: u8, bytes: [u8; SHORT_BYTES] },
    Long(Arc<[u8]>),
}

impl From<&[u8]> for SortKey {
    fn from(key: &[u8]) -> Self {
        let mut bytes = [0; SHORT_BYTES];
        match (bytes.get_mut(..key.len()), u8::try_from(key.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(key);
                Self(Form::Short { length, bytes })
            }
            _ => Self(Form::Long(key.into())),
        }
    }
}

impl From<Arc<[u8]>> for SortKey {
    fn from(key: Arc<[u8]>) -> Self {
        if key.len() <= SHORT_BYTES { (&*key).into() } else { Self(Form::Long(key)) }
    }
}

impl SortKey {
    /// The bytes, shared where they are many.
    pub(crate) fn to_shared(&self) -> Arc<[u8]> {
        match &self.0 {
            Form::Short { .. } => (**self).into(),
            Form::Long(bytes) => Arc::clone(bytes),
        }
    }
}

impl Deref for SortKey {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short { length, bytes } => bytes.get(..usize::from(*length)).unwrap_or_default(),
            Form::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for SortKey {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for SortKey {}

impl Ord for SortKey {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl PartialOrd for SortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for SortKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl fmt::Debug for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// The sort key of values that each compare in their own way.
pub(crate) fn sort_key_of<'a>(values: impl IntoIterator<Item = (&'a Value, TextOrder)>) -> SortKey {
    let mut key = Vec::with_capacity(16);
    for (value, order) in values {
        append_value(&mut key, value, order);
    }
    key.as_slice().into()
}

/// The least key above every key that begins with these bytes; none when there is no such key.
pub(crate) fn behind(prefix: &[u8]) -> Option<SortKey> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if let Some(next) = last.checked_add(1) {
            bytes.push(next);
            return Some(bytes.as_slice().into());
        }
    }
    None
}

/// The sort key of the row with this number, in a table without a key.
pub(crate) fn heap_key(number: u64) -> SortKey {
    number.to_be_bytes().as_slice().into()
}

/// Adds bytes with an end that no other bytes go beyond: 0 is 0 255, the end is 0 0.
pub(crate) fn append_ended(key: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        key.push(*byte);
        if *byte == 0 {
            key.push(0xff);
        }
    }
    key.extend([0, 0]);
}

/// Adds the bytes of one value, whose order is the server's. No value's bytes begin another's of
/// the same type. `order` says how texts compare.
pub fn append_value(key: &mut Vec<u8>, value: &Value, order: TextOrder) {
    if value.is_null() {
        key.push(0);
        return;
    }
    key.push(1);
    match value {
        Value::Null => {}
        Value::Bit(bit) => key.push(u8::from(*bit)),
        Value::Int(number) | Value::DateTime2(number) | Value::Time(number) => signed(key, *number),
        Value::DateTimeOffset { utc, .. } => signed(key, *utc),
        Value::DateTime(time) => signed(key, time.as_ticks()),
        Value::Date(days) => signed(key, i64::from(*days)),
        Value::Real(number) => float(key, f64::from(*number)),
        Value::Float(number) => float(key, *number),
        Value::Decimal(digits) => {
            let biased = i128::from(*digits).to_be_bytes();
            key.push(biased.first().copied().unwrap_or_default() ^ 0x80);
            key.extend(biased.iter().skip(1));
        }
        Value::Text(text) => order.append_key(key, text),
        Value::Bytes(bytes) => append_ended(key, significant(bytes)),
        Value::Uuid(uuid) => {
            // The server compares the last group first; in the text's order of bytes that is
            // 10-15, 8-9, then the three leading groups from the third to the first.
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *uuid;
            key.extend([k, l, m, n, o, p, i, j, h, g, f, e, d, c, b, a]);
        }
    }
}

fn signed(key: &mut Vec<u8>, number: i64) {
    key.extend((number ^ i64::MIN).to_be_bytes());
}

fn float(key: &mut Vec<u8>, number: f64) {
    // -0 equals 0 in a key.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let negative = bits >> 63 == 1;
    let ordered = if negative { !bits } else { bits | (1 << 63) };
    key.extend(ordered.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(value: &Value) -> SortKey {
        sort_key_of([(value, TextOrder::default())])
    }

    #[test]
    fn a_key_in_a_table_is_small_and_long_ones_are_shared() {
        assert_eq!(std::mem::size_of::<SortKey>(), 24);
        for length in 0..40_usize {
            let bytes: Vec<u8> = (1..).take(length).collect();
            let key = SortKey::from(&bytes[..]);
            assert_eq!((&*key, &*key.to_shared()), (&bytes[..], &bytes[..]));
            assert_eq!(SortKey::from(key.to_shared()), key);
            let mut longer = bytes.clone();
            longer.push(0);
            assert!(key < SortKey::from(&longer[..]), "{length}");
        }
    }

    #[test]
    fn keys_sort_as_the_server_sorts() {
        let uuid = |at: usize, byte: u8| {
            let mut bytes = [0; 16];
            bytes[at] = byte;
            Value::Uuid(bytes)
        };
        let ascending = [
            Value::Null,
            // The last group outranks the others, the first group comes last, its last byte
            // before its first.
            uuid(0, 1),
            uuid(3, 1),
            uuid(4, 1),
            uuid(7, 1),
            uuid(9, 1),
            uuid(8, 1),
            uuid(15, 1),
            uuid(10, 1),
        ];
        // Within the leading groups the stored bytes are reversed.
        let order: Vec<_> = ascending.iter().map(key).collect();
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(key(&Value::text("Ab ")), key(&Value::text("aB")));
        assert_eq!(key(&Value::Float(0.0)), key(&Value::Float(-0.0)));
        assert!(key(&Value::text("a")) < key(&Value::text("a\0")));
        assert_eq!(key(&Value::bytes(&[1])), key(&Value::bytes(&[1, 0, 0])));
        assert!(key(&Value::bytes(&[1])) < key(&Value::bytes(&[1, 0, 1])));
    }

    proptest! {
        #[test]
        fn byte_order_is_value_order(
            ints: (i64, i64), digits: (i128, i128),
            floats in (-1e300f64..1e300, -1e300f64..1e300),
            bytes: (Vec<u8>, Vec<u8>), rest: (i64, i64),
        ) {
            let pair = |a: Value, b: Value| key(&a).cmp(&key(&b));
            prop_assert_eq!(pair(Value::Int(ints.0), Value::Int(ints.1)), ints.0.cmp(&ints.1));
            prop_assert_eq!(
                pair(Value::decimal(digits.0), Value::decimal(digits.1)),
                digits.0.cmp(&digits.1)
            );
            prop_assert_eq!(
                pair(Value::Float(floats.0), Value::Float(floats.1)),
                floats.0.partial_cmp(&floats.1).expect("no NaN")
            );
            let composite = |bytes: &[u8], rest: i64| {
                let order = TextOrder::default();
                sort_key_of([(&Value::bytes(bytes), order), (&Value::Int(rest), order)])
            };
            prop_assert_eq!(
                composite(&bytes.0, rest.0).cmp(&composite(&bytes.1, rest.1)),
                significant(&bytes.0).cmp(significant(&bytes.1)).then(rest.0.cmp(&rest.1))
            );
        }
    }
}
