//! A row in the binary form, read field by field, and the form of a key that compares as bytes.

use std::ops::Range;

use crate::column_type::ColumnType;

/// The fields of a row, one after the other: where each lies, its length included.
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    /// The fields from a place on.
    pub(crate) const fn from(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }
}

impl Iterator for Fields<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        let length = self.bytes.get(start..)?.first_chunk()?;
        let end = start + size_of::<i32>();
        self.at = end + usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
        Some(start..self.at)
    }
}

/// The bytes of a field without its length; none for a NULL.
pub(crate) fn value(field: &[u8]) -> Option<&[u8]> {
    let (length, bytes) = field.split_first_chunk()?;
    (i32::from_be_bytes(*length) >= 0).then_some(bytes)
}

/// Bits of places, as the server's `get_bit` counts them.
pub(crate) fn bits(places: &[usize], columns: usize) -> Vec<u8> {
    let mut bytes = vec![0; columns.div_ceil(8)];
    for place in places {
        if let Some(byte) = bytes.get_mut(place / 8) {
            *byte |= 1 << (place % 8);
        }
    }
    bytes
}

/// Gives values that the server takes for equal the same bytes: both zeros, every NaN, and
/// numerics that differ in how many digits they show.
pub(crate) fn canonical(column_type: &ColumnType, field: &mut [u8]) {
    let body = size_of::<i32>();
    match column_type {
        ColumnType::Real | ColumnType::Double => {
            let Some(bytes) = field.get_mut(body..) else { return };
            let number = match bytes.len() {
                4 => bytes.first_chunk().map(|b| f64::from(f32::from_be_bytes(*b))),
                _ => bytes.first_chunk().map(|b| f64::from_be_bytes(*b)),
            };
            match number {
                Some(0.0) => bytes.fill(0),
                Some(number) if number.is_nan() => bytes.fill(0xff),
                _ => {}
            }
        }
        ColumnType::Numeric(_) => {
            // The scale stands behind count, weight and sign.
            if let Some(scale) = field.get_mut(body + 6..body + 8) {
                scale.fill(0);
            }
        }
        _ => {}
    }
}
