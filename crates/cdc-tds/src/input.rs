//! Bytes that a client sent, taken from the front; every step is checked against what is there.

use crate::fault::{Fault, Read};

/// What is left of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// All of `bytes`.
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What is left, without taking it.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.0
    }

    /// True when nothing is left.
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte, without taking it.
    pub(crate) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Takes `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Read<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(Fault::Malformed("it ends in the middle of something"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (taken, rest) = self
            .0
            .split_first_chunk::<N>()
            .ok_or(Fault::Malformed("it ends in the middle of something"))?;
        self.0 = rest;
        Ok(*taken)
    }

    /// Takes a byte.
    pub(crate) fn u8(&mut self) -> Read<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Takes 16 bits, least byte first.
    pub(crate) fn u16(&mut self) -> Read<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Takes 16 bits, greatest byte first.
    pub(crate) fn u16_big(&mut self) -> Read<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Takes 32 bits, least byte first.
    pub(crate) fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Takes 64 bits, least byte first.
    pub(crate) fn u64(&mut self) -> Read<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Takes 32 bits with a sign.
    pub(crate) fn i32(&mut self) -> Read<i32> {
        self.array().map(i32::from_le_bytes)
    }

    /// Takes a length of 32 bits.
    pub(crate) fn length(&mut self) -> Read<usize> {
        usize::try_from(self.u32()?).map_err(|_| Fault::Malformed("a length is too large"))
    }

    /// Takes as many UTF-16 units as its length byte says.
    pub(crate) fn short_text(&mut self) -> Read<String> {
        let units = self.u8()?;
        self.text(usize::from(units))
    }

    /// Takes `units` UTF-16 units.
    pub(crate) fn text(&mut self, units: usize) -> Read<String> {
        utf16(self.bytes(units.saturating_mul(2))?)
    }
}

/// Text from UTF-16, least byte first.
///
/// # Errors
/// Half a surrogate pair, or half a unit: a text here is Unicode, and nothing is replaced.
pub(crate) fn utf16(bytes: &[u8]) -> Read<String> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    if !odd.is_empty() {
        return Err(Fault::Malformed("a text in UTF-16 has an odd number of bytes"));
    }
    let mut text = String::with_capacity(pairs.len());
    for unit in char::decode_utf16(pairs.iter().map(|pair| u16::from_le_bytes(*pair))) {
        text.push(
            unit.map_err(|_| Fault::Unsupported("a text with half of a surrogate pair".into()))?,
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_taken_beyond_the_end() {
        let mut input = Input::new(&[1, 0, 0, 0, 2]);
        assert_eq!(input.u32(), Ok(1));
        assert!(input.u16().is_err() && input.bytes(2).is_err() && input.text(1).is_err());
        assert_eq!((input.peek(), input.u8()), (Some(2), Ok(2)));
        assert!(input.is_empty() && input.u8().is_err());
        assert!(Input::new(&[0; 8]).text(usize::MAX).is_err());
    }

    #[test]
    fn text_is_unicode_or_refused() {
        assert_eq!(utf16(&[0x3d, 0xd8, 0x00, 0xde, 0x61, 0]), Ok("\u{1F600}a".to_owned()));
        assert!(matches!(utf16(&[0x3d, 0xd8]), Err(Fault::Unsupported(_))));
        assert!(matches!(utf16(&[0x61]), Err(Fault::Malformed(_))));
    }
}
