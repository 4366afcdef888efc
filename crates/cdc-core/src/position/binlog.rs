//! Guard keys of MySQL's and MariaDB's binary log: file, position, row.

use std::{cmp::Ordering, fmt, str::FromStr};

use super::{
    Epoch, Position,
    guard::{GuardKey, KeyError, NUMBER_WIDTH, Parts, write_number},
};
use crate::error::{Error, ErrorKind, Result};

/// The name of a binary log file: a base of any kind, a dot, and a number that counts on past
/// `.999999` with more digits.
///
/// Names of one base order by number. Names of different bases are not files of one log, and do
/// not compare; neither do files of two servers, which the caller has to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BinlogFile {
    base: String,
    number: u32,
}

/// Why a text is no name of a binary log file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BinlogFileError {
    /// There is nothing in front of the number.
    #[error("a binary log file's name has a base before its number")]
    Base,
    /// What stands behind the last dot is no number.
    #[error("a binary log file's name ends in a dot and a number")]
    Number,
    /// The number is larger than a server counts.
    #[error("a binary log file's number is too large most={}", u32::MAX)]
    TooLarge,
}

impl BinlogFile {
    /// Digits that the server gives a number at least.
    const DIGITS: usize = 6;

    /// The name without dot and number.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The number.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// The order of two files of one log; none when their bases differ.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Option<Ordering> {
        (self.base == other.base).then(|| self.number.cmp(&other.number))
    }
}

impl FromStr for BinlogFile {
    type Err = BinlogFileError;

    /// Reads a name with a number of any width. A path in front of the name belongs to the base.
    fn from_str(text: &str) -> Result<Self, BinlogFileError> {
        let (base, digits) = text.rsplit_once('.').ok_or(BinlogFileError::Number)?;
        if base.is_empty() {
            return Err(BinlogFileError::Base);
        }
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BinlogFileError::Number);
        }
        let number = digits.parse().map_err(|_| BinlogFileError::TooLarge)?;
        Ok(Self { base: base.to_owned(), number })
    }
}

impl fmt::Display for BinlogFile {
    /// As the server prints it: at least six digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:0width$}", self.base, self.number, width = Self::DIGITS)
    }
}

/// The place of one row of a binary log: the file's number, the event's position in it, the row
/// inside the event.
///
/// The text has 32 digits: 10 for the file, 12 for the position, 10 for the row. It is what
/// `lpad(file number, 10, '0') || lpad(pos, 12, '0') || lpad(row, 10, '0')` gives. The rows of a
/// snapshot have the position that was read before it, and row 0. No change has that key: a
/// transaction begins with events of its own, so its first rows lie behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinlogKey {
    // The order of the fields is the order of the log.
    file: u32,
    pos: u64,
    row: u32,
}

impl BinlogKey {
    /// The greatest position that a key holds. Files grow over their limit, and over 4 GiB, only
    /// by a transaction, which is never split.
    pub const POS_MAX: u64 = 999_999_999_999;
    /// Digits of a position.
    const POS_WIDTH: usize = 12;
    /// Bytes of the position that the engine compares.
    const BYTES: usize = 16;

    /// A key from the number of a file, a position in it and a row in the event there.
    ///
    /// # Errors
    /// [`KeyError::TooLarge`] for a position above [`BinlogKey::POS_MAX`].
    pub const fn new(file: u32, pos: u64, row: u32) -> Result<Self, KeyError> {
        if pos > Self::POS_MAX {
            return Err(KeyError::TooLarge { part: "pos", most: Self::POS_MAX });
        }
        Ok(Self { file, pos, row })
    }

    /// A key from the fields `file`, `pos` and `row` of an event's `source` block, as Debezium's
    /// JSON has them. The base of the file's name is no part of the key: a log of another base is
    /// another log, with its own epoch.
    ///
    /// # Errors
    /// [`KeyError::Part`] for a text that is no file's name, [`KeyError::Negative`] and
    /// [`KeyError::TooLarge`] for numbers that no key holds.
    pub fn from_event(file: &str, pos: i64, row: Option<i64>) -> Result<Self, KeyError> {
        let file: BinlogFile = file.parse().map_err(|_| KeyError::Part("file"))?;
        let pos = u64::try_from(pos).map_err(|_| KeyError::Negative("pos"))?;
        let row = u64::try_from(row.unwrap_or(0)).map_err(|_| KeyError::Negative("row"))?;
        let most = u32::MAX;
        let row = u32::try_from(row)
            .map_err(|_| KeyError::TooLarge { part: "row", most: most.into() })?;
        Self::new(file.number, pos, row)
    }

    /// The file's number.
    #[must_use]
    pub const fn file(&self) -> u32 {
        self.file
    }

    /// The event's position in the file.
    #[must_use]
    pub const fn pos(&self) -> u64 {
        self.pos
    }

    /// The row inside the event.
    #[must_use]
    pub const fn row(&self) -> u32 {
        self.row
    }

    /// The same place in the form that the engine compares: 16 bytes.
    ///
    /// # Errors
    /// None in fact; the width is fixed.
    pub fn position(&self, epoch: Epoch) -> Result<Position> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend(self.file.to_be_bytes());
        bytes.extend(self.pos.to_be_bytes());
        bytes.extend(self.row.to_be_bytes());
        Position::new(epoch, &bytes)
    }
}

impl TryFrom<Position> for BinlogKey {
    type Error = Error;

    fn try_from(position: Position) -> Result<Self> {
        let wrong = || {
            Error::new(ErrorKind::InvalidData, "position is no place of a binary log")
                .with("position", position)
        };
        let bytes: [u8; Self::BYTES] = position.as_bytes().try_into().map_err(|_| wrong())?;
        let whole = u128::from_be_bytes(bytes);
        let part = |shift: u32, mask: u64| u64::try_from((whole >> shift) & u128::from(mask)).ok();
        let narrow = |number: Option<u64>| number.and_then(|number| u32::try_from(number).ok());
        let file = narrow(part(96, u32::MAX.into())).ok_or_else(wrong)?;
        let pos = part(32, u64::MAX).ok_or_else(wrong)?;
        let row = narrow(part(0, u32::MAX.into())).ok_or_else(wrong)?;
        Self::new(file, pos, row).map_err(|error| wrong().caused_by(error))
    }
}

impl GuardKey for BinlogKey {
    const WIDTH: usize = NUMBER_WIDTH + Self::POS_WIDTH + NUMBER_WIDTH;

    fn write(&self, text: &mut Vec<u8>) {
        write_number(self.file.into(), NUMBER_WIDTH, text);
        write_number(self.pos, Self::POS_WIDTH, text);
        write_number(self.row.into(), NUMBER_WIDTH, text);
    }

    fn read(text: &str) -> Result<Self, KeyError> {
        let mut parts = Parts::of(text, Self::WIDTH)?;
        let file = parts.number32("file", NUMBER_WIDTH)?;
        let pos = parts.number("pos", Self::POS_WIDTH)?;
        let row = parts.number32("row", NUMBER_WIDTH)?;
        Self::new(file, pos, row)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(text: &str) -> BinlogFile {
        text.parse().expect(text)
    }

    fn key() -> impl Strategy<Value = BinlogKey> {
        let file = prop_oneof![0u32..3, any::<u32>()];
        let pos = prop_oneof![0u64..3, 0..=BinlogKey::POS_MAX];
        let row = prop_oneof![0u32..3, any::<u32>()];
        (file, pos, row).prop_map(|(f, p, r)| BinlogKey::new(f, p, r).expect("in range"))
    }

    #[test]
    fn names_of_one_base_order_by_number_past_six_digits() {
        for (earlier, later) in [
            ("b.9", "b.10"),
            ("b.999999", "b.1000000"),
            ("b.122046", "b.1215501"),
            ("mysql-bin.000009", "mysql-bin.000010"),
            ("host.example-bin.000001", "host.example-bin.000002"),
        ] {
            assert_eq!(file(earlier).compare(&file(later)), Some(Ordering::Less));
            assert_eq!(file(later).compare(&file(earlier)), Some(Ordering::Greater));
        }
        assert_eq!(file("b.000009").compare(&file("b.9")), Some(Ordering::Equal));
        assert_eq!(file("mysql-bin.000001").compare(&file("binlog.000001")), None);
    }

    #[test]
    fn names_parse_and_print_as_the_server_prints_them() {
        for text in
            ["mysql-bin.000003", "binlog.999999", "b.1000000", "a.b.c.000001", "größe.000001"]
        {
            assert_eq!(file(text).to_string(), text);
        }
        assert_eq!(file("b.9").to_string(), "b.000009");
        assert_eq!(file("b.4294967295").number(), u32::MAX);
        for (text, error) in [
            ("", BinlogFileError::Number),
            ("mysql-bin", BinlogFileError::Number),
            ("mysql-bin.", BinlogFileError::Number),
            ("mysql-bin.index", BinlogFileError::Number),
            ("mysql-bin.+1", BinlogFileError::Number),
            ("mysql-bin.-1", BinlogFileError::Number),
            (".000001", BinlogFileError::Base),
            ("b.4294967296", BinlogFileError::TooLarge),
        ] {
            assert_eq!(text.parse::<BinlogFile>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_rollover_and_a_large_file_keep_the_order() {
        let key = |file: &str, pos| BinlogKey::from_event(file, pos, None).expect("a key");
        assert!(key("b.999999", 900).text() < key("b.1000000", 4).text());
        // 4 GiB and beyond, where 32 bits begin again at 0.
        assert!(key("b.000001", 0xffff_ffff).text() < key("b.000001", 0x1_0000_0000).text());
        assert!(key("b.000001", 0x1_0000_0004).text() < key("b.000002", 4).text());
        let event = BinlogKey::from_event("mysql-bin.000003", 570, Some(1)).expect("a key");
        assert_eq!(event.text(), "00000000030000000005700000000001");
    }

    #[test]
    fn what_no_key_holds_is_refused_by_name() {
        let large = |part, most| KeyError::TooLarge { part, most };
        for (file, pos, row, error) in [
            ("mysql-bin", 4, None, KeyError::Part("file")),
            ("b.000001", -1, None, KeyError::Negative("pos")),
            ("b.000001", 4, Some(-1), KeyError::Negative("row")),
            ("b.000001", 1_000_000_000_000, None, large("pos", BinlogKey::POS_MAX)),
            ("b.000001", 4, Some(1 << 32), large("row", u32::MAX.into())),
        ] {
            assert_eq!(BinlogKey::from_event(file, pos, row), Err(error));
        }
        let text = format!("{}{}", u64::from(u32::MAX) + 1, "0".repeat(22));
        assert_eq!(BinlogKey::read(&text), Err(large("file", u32::MAX.into())));
        let position = Position::new(Epoch(0), &[0xff; 16]).expect("16 bytes");
        assert!(BinlogKey::try_from(position).is_err());
        assert!(BinlogKey::try_from(Position::from(crate::Lsn::MAX)).is_err());
    }

    proptest! {
        #[test]
        fn the_order_of_texts_is_the_order_of_keys_and_of_positions(a in key(), b in key()) {
            prop_assert_eq!(a.text().cmp(&b.text()), a.cmp(&b));
            let position = |key: BinlogKey| key.position(Epoch(3)).expect("16 bytes");
            prop_assert_eq!(position(a).cmp(&position(b)), a.cmp(&b));
            prop_assert_eq!(BinlogKey::try_from(position(a)).expect("a key"), a);
        }

        #[test]
        fn a_key_round_trips(key in key()) {
            prop_assert_eq!(key.text().len(), BinlogKey::WIDTH);
            prop_assert_eq!(BinlogKey::read(&key.text()), Ok(key));
        }

        #[test]
        fn a_name_round_trips(base in "[a-z.-]{1,12}", number: u32) {
            let name = format!("{base}.{number:06}");
            let read = file(&name);
            prop_assert_eq!(read.to_string(), name);
            prop_assert_eq!((read.base(), read.number()), (base.as_str(), number));
        }
    }
}
