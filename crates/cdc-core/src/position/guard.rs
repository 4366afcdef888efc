//! The position guard: fixed-width text keys whose byte order is the order of a log.
//!
//! A sink that keeps one row a key stores, beside each row, the position of the change that wrote
//! it, and applies a change only when its position is greater: a replay does nothing, an older
//! change never overwrites a newer row, and a delete stays as a marker with its own position. A
//! target compares texts, so a position has a text of one width for each kind of log. In front of
//! it stands the epoch, since positions of two logs never compare as places of one.
//!
//! Compare the texts as bytes: in PostgreSQL, `COLLATE "C"`.

use std::fmt;

use super::Epoch;

/// Why something is no guard key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text has another width.
    #[error("a guard key of this kind has another width width={expected} found={found}")]
    Width {
        /// Characters of a key of the kind.
        expected: usize,
        /// Bytes of the text.
        found: usize,
    },
    /// The text has something else where a digit of the part must be.
    #[error("a part of the guard key is not what it must be part={0}")]
    Part(&'static str),
    /// A number has more digits than its place in the key.
    #[error("a part of the position is larger than the guard key holds part={part} most={most}")]
    TooLarge {
        /// The part.
        part: &'static str,
        /// The greatest number that the key holds.
        most: u64,
    },
    /// A number that is counted from zero is below it.
    #[error("a part of the position is negative part={0}")]
    Negative(&'static str),
}

/// A position of one kind of log, in a form that orders as text.
///
/// For all keys `a` and `b` of one kind: `a.cmp(&b)` is the byte order of their texts, every text
/// is [`GuardKey::WIDTH`] bytes of ASCII wide, and reading a text gives back its key, and no other
/// text does.
pub trait GuardKey: Ord + Sized {
    /// Bytes of the text.
    const WIDTH: usize;

    /// Appends the text.
    fn write(&self, text: &mut Vec<u8>);

    /// Reads a text.
    ///
    /// # Errors
    /// [`KeyError`] for a text that no key has.
    fn read(text: &str) -> Result<Self, KeyError>;

    /// The text.
    #[must_use]
    fn text(&self) -> String {
        let mut bytes = Vec::with_capacity(Self::WIDTH);
        self.write(&mut bytes);
        // Keys are ASCII.
        bytes.into_iter().map(char::from).collect()
    }
}

/// A key behind the epoch of the log it belongs to. The epoch decides first: whatever a later log
/// says is newer than everything an earlier one said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Guarded<K> {
    // The order of the fields is the order of positions.
    /// Counts the logs.
    pub epoch: Epoch,
    /// The place in that log.
    pub key: K,
}

impl<K: GuardKey> GuardKey for Guarded<K> {
    const WIDTH: usize = NUMBER_WIDTH + K::WIDTH;

    fn write(&self, text: &mut Vec<u8>) {
        write_number(self.epoch.0.into(), NUMBER_WIDTH, text);
        self.key.write(text);
    }

    fn read(text: &str) -> Result<Self, KeyError> {
        let mut parts = Parts::of(text, Self::WIDTH)?;
        let epoch = parts.number32("epoch", NUMBER_WIDTH)?;
        let key = K::read(parts.rest())?;
        Ok(Self { epoch: Epoch(epoch), key })
    }
}

impl<K: GuardKey> fmt::Display for Guarded<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

/// Digits of a number below 2^32 plus one.
pub(super) const NUMBER_WIDTH: usize = 10;

/// Appends the decimal digits of `number`, with zeros in front; what does not fit is cut in front,
/// so callers check first.
pub(super) fn write_number(number: u64, width: usize, text: &mut Vec<u8>) {
    let start = text.len();
    text.resize(start + width, b'0');
    let mut left = number;
    for digit in text.iter_mut().skip(start).rev() {
        if left == 0 {
            break;
        }
        *digit = decimal_digit(left % 10);
        left /= 10;
    }
}

fn decimal_digit(number: u64) -> u8 {
    b'0'.saturating_add(u8::try_from(number).unwrap_or(0))
}

/// Appends the hexadecimal digits of `bytes` in upper case.
pub(super) fn write_upper_hex(bytes: &[u8], text: &mut Vec<u8>) {
    write_hex(bytes, b"0123456789ABCDEF", text);
}

/// Appends the hexadecimal digits of `bytes` in lower case.
pub(super) fn write_lower_hex(bytes: &[u8], text: &mut Vec<u8>) {
    write_hex(bytes, b"0123456789abcdef", text);
}

fn write_hex(bytes: &[u8], digits: &[u8; 16], text: &mut Vec<u8>) {
    let digit = |number: u8| digits.get(usize::from(number)).copied().unwrap_or(b'0');
    text.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]));
}

/// Which letters a part of hexadecimal digits has.
#[derive(Clone, Copy)]
pub(super) enum Letters {
    Upper,
    Lower,
}

/// A text of the right width, read part by part.
pub(super) struct Parts<'a> {
    rest: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn of(text: &'a str, width: usize) -> Result<Self, KeyError> {
        if text.len() == width && text.is_ascii() {
            return Ok(Self { rest: text });
        }
        Err(KeyError::Width { expected: width, found: text.len() })
    }

    /// What was not read yet.
    pub(super) const fn rest(&self) -> &'a str {
        self.rest
    }

    fn take(&mut self, part: &'static str, width: usize) -> Result<&'a str, KeyError> {
        let (head, tail) = self.rest.split_at_checked(width).ok_or(KeyError::Part(part))?;
        self.rest = tail;
        Ok(head)
    }

    /// A number of so many decimal digits.
    pub(super) fn number(&mut self, part: &'static str, width: usize) -> Result<u64, KeyError> {
        let digits = self.take(part, width)?;
        // A sign is no digit, and would be read as one.
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(KeyError::Part(part));
        }
        digits.parse().map_err(|_| KeyError::Part(part))
    }

    /// A number of so many decimal digits that is below 2^32.
    pub(super) fn number32(&mut self, part: &'static str, width: usize) -> Result<u32, KeyError> {
        let number = self.number(part, width)?;
        u32::try_from(number).map_err(|_| KeyError::TooLarge { part, most: u32::MAX.into() })
    }

    /// So many bytes as hexadecimal digits of one case.
    pub(super) fn hex<const N: usize>(
        &mut self,
        part: &'static str,
        letters: Letters,
    ) -> Result<[u8; N], KeyError> {
        let digits = self.take(part, 2 * N)?;
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            for digit in pair {
                let number = match (digit, letters) {
                    (b'0'..=b'9', _) => digit - b'0',
                    (b'A'..=b'F', Letters::Upper) => digit - b'A' + 10,
                    (b'a'..=b'f', Letters::Lower) => digit - b'a' + 10,
                    _ => return Err(KeyError::Part(part)),
                };
                *byte = (*byte << 4) | number;
            }
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
