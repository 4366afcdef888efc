//! SQL Server's log sequence number: ten bytes, compared as bytes.

use std::{fmt, str::FromStr};

/// A log sequence number of SQL Server: `binary(10)`, big-endian, printed `0x` and twenty
/// upper-case hex digits, so that text order is byte order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn([u8; Lsn::WIDTH]);

/// Why a text or byte string is not an [`Lsn`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LsnError {
    /// The text has no hex digits.
    #[error("an LSN needs 1 to 20 hex digits, found none")]
    Empty,
    /// The text has more than twenty hex digits.
    #[error("an LSN has at most 20 hex digits, found digits={0}")]
    TooLong(usize),
    /// The text holds something that is no hex digit.
    #[error("an LSN has only hex digits, found another character at_digit={0}")]
    NotHex(usize),
    /// The byte string is not ten bytes long.
    #[error("an LSN is 10 bytes, got bytes={0}")]
    Width(usize),
    /// The text is not in groups of eight, eight and four digits.
    #[error("an LSN in groups has 8, 8 and 4 hex digits between colons")]
    Grouping,
}

impl Lsn {
    /// Bytes in an LSN.
    pub const WIDTH: usize = 10;
    /// The least LSN. The server uses it for "unknown"; it is never a commit.
    pub const ZERO: Self = Self([0; Self::WIDTH]);
    /// The greatest LSN.
    pub const MAX: Self = Self([0xff; Self::WIDTH]);

    /// An LSN from its bytes, as the server stores them.
    #[must_use]
    pub const fn new(bytes: [u8; Self::WIDTH]) -> Self {
        Self(bytes)
    }

    /// The bytes, most significant first.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; Self::WIDTH] {
        &self.0
    }

    /// True for [`Lsn::ZERO`].
    #[must_use]
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// The next LSN, with carry over all ten bytes; [`Lsn::MAX`] stays, as
    /// `sys.fn_cdc_increment_lsn` leaves it.
    #[must_use]
    pub fn increment(self) -> Self {
        let mut bytes = self.0;
        for byte in bytes.iter_mut().rev() {
            let (next, carry) = byte.overflowing_add(1);
            *byte = next;
            if !carry {
                return Self(bytes);
            }
        }
        Self::MAX
    }

    /// The previous LSN, with borrow over all ten bytes; [`Lsn::ZERO`] stays, as
    /// `sys.fn_cdc_decrement_lsn` leaves it.
    #[must_use]
    pub fn decrement(self) -> Self {
        let mut bytes = self.0;
        for byte in bytes.iter_mut().rev() {
            let (next, borrow) = byte.overflowing_sub(1);
            *byte = next;
            if !borrow {
                return Self(bytes);
            }
        }
        Self::ZERO
    }

    /// The LSN as a number below 2^80.
    #[must_use]
    pub fn to_u128(self) -> u128 {
        self.0.iter().fold(0, |number, byte| (number << 8) | u128::from(*byte))
    }

    /// The LSN with this number, when it is below 2^80.
    #[must_use]
    pub fn from_u128(number: u128) -> Option<Self> {
        if number >> 80 != 0 {
            return None;
        }
        let mut bytes = [0; Self::WIDTH];
        for (byte, full) in bytes.iter_mut().rev().zip(number.to_be_bytes().iter().rev()) {
            *byte = *full;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Lsn {
    type Err = LsnError;

    /// Reads hex digits in any case, with or without `0x`, with blanks around. Fewer than twenty
    /// digits are the low ones, as a conversion from a short literal gives.
    fn from_str(text: &str) -> Result<Self, LsnError> {
        let text = text.trim();
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
        if digits.is_empty() {
            return Err(LsnError::Empty);
        }
        let mut number: u128 = 0;
        let mut count = 0;
        for (index, character) in digits.chars().enumerate() {
            let digit = character.to_digit(16).ok_or(LsnError::NotHex(index + 1))?;
            count = index + 1;
            number = (number << 4) | u128::from(digit);
        }
        if count > 2 * Self::WIDTH {
            return Err(LsnError::TooLong(count));
        }
        Self::from_u128(number).ok_or(LsnError::TooLong(count))
    }
}

impl TryFrom<&[u8]> for Lsn {
    type Error = LsnError;

    fn try_from(bytes: &[u8]) -> Result<Self, LsnError> {
        bytes.try_into().map(Self).map_err(|_| LsnError::Width(bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lsn(text: &str) -> Lsn {
        text.parse().expect(text)
    }

    #[test]
    fn every_spelling_of_one_lsn_reads_as_the_same() {
        let canonical = "0x0000002A000001F80003";
        for text in [
            canonical,
            "0x0000002a000001f80003",
            "0X0000002A000001F80003",
            "0000002a000001f80003",
            "2A000001F80003",
            "  0x2a000001f80003\t",
        ] {
            assert_eq!(lsn(text).to_string(), canonical, "{text:?}");
        }
    }

    #[test]
    fn what_is_no_lsn_is_refused_with_its_reason() {
        for (text, error) in [
            ("", LsnError::Empty),
            ("0x", LsnError::Empty),
            ("   ", LsnError::Empty),
            ("0x12G4", LsnError::NotHex(3)),
            ("0x 12", LsnError::NotHex(1)),
            ("-1", LsnError::NotHex(1)),
            ("000000000000000000001", LsnError::TooLong(21)),
            ("ffffffffffffffffffffffffffffffffffffffffff", LsnError::TooLong(42)),
        ] {
            assert_eq!(text.parse::<Lsn>(), Err(error), "{text:?}");
        }
        assert_eq!(Lsn::try_from(&[0u8; 9][..]), Err(LsnError::Width(9)));
        assert_eq!(Lsn::try_from(&[0u8; 11][..]), Err(LsnError::Width(11)));
    }

    #[test]
    fn one_step_carries_over_all_bytes_and_stops_at_the_ends() {
        for (low, high) in [
            ("0x000000000000000000FF", "0x00000000000000000100"),
            ("0x0000FFFFFFFFFFFFFFFF", "0x00010000000000000000"),
            ("0x00FFFFFFFFFFFFFFFFFF", "0x01000000000000000000"),
            ("0xFFFFFFFFFFFFFFFFFFFE", "0xFFFFFFFFFFFFFFFFFFFF"),
        ] {
            assert_eq!(lsn(low).increment(), lsn(high));
            assert_eq!(lsn(high).decrement(), lsn(low));
        }
        assert_eq!(Lsn::MAX.increment(), Lsn::MAX);
        assert_eq!(Lsn::ZERO.decrement(), Lsn::ZERO);
    }

    proptest! {
        #[test]
        fn text_round_trips(bytes: [u8; 10]) {
            let lsn = Lsn::new(bytes);
            prop_assert_eq!(lsn.to_string().parse::<Lsn>(), Ok(lsn));
            prop_assert_eq!(lsn.to_string().len(), 22);
            prop_assert_eq!(Lsn::try_from(&bytes[..]), Ok(lsn));
        }

        #[test]
        fn text_order_is_byte_order_is_number_order(a: [u8; 10], b: [u8; 10]) {
            let (a, b) = (Lsn::new(a), Lsn::new(b));
            prop_assert_eq!(a.cmp(&b), a.to_string().cmp(&b.to_string()));
            prop_assert_eq!(a.cmp(&b), a.to_u128().cmp(&b.to_u128()));
        }

        #[test]
        fn a_step_is_one_and_comes_back(number in 0u128..(1 << 80) - 1) {
            let lsn = Lsn::from_u128(number).expect("below 2^80");
            prop_assert_eq!(lsn.increment().to_u128(), number + 1);
            prop_assert_eq!(lsn.increment().decrement(), lsn);
        }
    }
}
