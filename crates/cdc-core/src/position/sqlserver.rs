//! Guard keys of SQL Server's log: in this project's order, and as Debezium's events give them.

use std::fmt;

use super::guard::{
    GuardKey, KeyError, Letters, NUMBER_WIDTH, Parts, write_lower_hex, write_number,
    write_upper_hex,
};
use crate::{
    change::{ChangeOrder, Operation},
    lsn::{Lsn, LsnError},
};

/// The place of one change of SQL Server: commit, command, log record, operation.
///
/// The text has 51 characters: the commit LSN (20 upper-case hex digits), the command id plus one
/// (10 digits, 0 for none), the change LSN (20, zeros for none), the operation (1). A snapshot row
/// has the stamp as its commit and operation 0, so that it is older than every change of its
/// stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeKey {
    // The order of the fields is change order.
    commit: Lsn,
    command: Option<u32>,
    change: Option<Lsn>,
    operation: Operation,
}

impl ChangeKey {
    /// A key from `__$start_lsn`, `__$command_id`, `__$seqval` and `__$operation`. A change LSN of
    /// zero is none: the server never assigns it.
    ///
    /// # Errors
    /// [`KeyError::Negative`] for a command id below zero.
    pub fn new(
        commit: Lsn,
        command: Option<i32>,
        change: Option<Lsn>,
        operation: Operation,
    ) -> Result<Self, KeyError> {
        let command = command
            .map(|id| u32::try_from(id).map_err(|_| KeyError::Negative("command id")))
            .transpose()?;
        Ok(Self { commit, command, change: change.filter(|lsn| !lsn.is_zero()), operation })
    }

    /// The key of a row of a snapshot that is stamped with this LSN.
    #[must_use]
    pub const fn snapshot(stamp: Lsn) -> Self {
        Self { commit: stamp, command: None, change: None, operation: Operation::Read }
    }

    /// `__$start_lsn`, or the stamp of a snapshot row.
    #[must_use]
    pub const fn commit(&self) -> Lsn {
        self.commit
    }

    /// `__$command_id`.
    #[must_use]
    pub const fn command(&self) -> Option<u32> {
        self.command
    }

    /// `__$seqval`.
    #[must_use]
    pub const fn change(&self) -> Option<Lsn> {
        self.change
    }

    /// `__$operation`.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.operation
    }
}

impl GuardKey for ChangeKey {
    const WIDTH: usize = 2 * Lsn::WIDTH + NUMBER_WIDTH + 2 * Lsn::WIDTH + 1;

    fn write(&self, text: &mut Vec<u8>) {
        let command = self.command.map_or(0, |id| u64::from(id) + 1);
        let change = self.change.unwrap_or(Lsn::ZERO);
        write_parts(self.commit.as_bytes(), command, change.as_bytes(), self.operation, text);
    }

    fn read(text: &str) -> Result<Self, KeyError> {
        let mut parts = Parts::of(text, Self::WIDTH)?;
        let commit = Lsn::new(parts.hex("commit", Letters::Upper)?);
        let command = parts.number("command id", NUMBER_WIDTH)?;
        let command = command
            .checked_sub(1)
            .map(i32::try_from)
            .transpose()
            .map_err(|_| KeyError::TooLarge { part: "command id", most: COMMAND_MOST })?;
        let change = Lsn::new(parts.hex("change", Letters::Upper)?);
        let code = i32::try_from(parts.number("operation", 1)?).unwrap_or(i32::MAX);
        let operation = Operation::from_code(code).map_err(|_| KeyError::Part("operation"))?;
        Self::new(commit, command, Some(change), operation)
    }
}

/// The greatest command id: `__$command_id` is an `int`.
const COMMAND_MOST: u64 = 0x7fff_ffff;

/// Appends the key's text of a change row whose source has positions of any width: for ten bytes
/// the text of [`ChangeKey`], for others the same parts with as many hex digits as their positions
/// need. Texts of one width compare in change order.
///
/// # Errors
/// [`KeyError::Negative`] for a command id below zero, [`KeyError::Part`] for an operation that
/// does not exist or a sequence value of another width than the commit's.
pub fn write_change(order: &ChangeOrder<&[u8]>, text: &mut Vec<u8>) -> Result<(), KeyError> {
    let command = match order.command {
        None => 0,
        Some(id) => u64::try_from(id).map_err(|_| KeyError::Negative("command id"))? + 1,
    };
    let operation =
        Operation::from_code(order.operation).map_err(|_| KeyError::Part("operation"))?;
    let zeros = [0; super::Position::WIDTH_MAX];
    let width = order.commit.len();
    let none = zeros.get(..width).ok_or(KeyError::Part("commit"))?;
    let sequence = order.sequence.unwrap_or(none);
    if sequence.len() != width {
        return Err(KeyError::Part("change"));
    }
    write_parts(order.commit, command, sequence, operation, text);
    Ok(())
}

fn write_parts(
    commit: &[u8],
    command: u64,
    change: &[u8],
    operation: Operation,
    text: &mut Vec<u8>,
) {
    write_upper_hex(commit, text);
    write_number(command, NUMBER_WIDTH, text);
    write_upper_hex(change, text);
    write_number(u64::try_from(operation.code()).unwrap_or(0), 1, text);
}

/// The place of one event of Debezium's connector for SQL Server: `commit_lsn`, `change_lsn`,
/// `event_serial_no`.
///
/// The text has 50 characters: both LSNs as 20 lower-case hex digits, the serial number as 10
/// digits; a part that a snapshot event lacks is zeros. It is what
/// `replace(commit_lsn, ':', '') || replace(change_lsn, ':', '') || lpad(event_serial_no, 10, '0')`
/// gives. It never compares with [`ChangeKey`]: a serial number counts events, not operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DebeziumKey {
    // The order of the fields is the order of events.
    commit: Lsn,
    change: Option<Lsn>,
    serial: u64,
}

impl DebeziumKey {
    /// The greatest serial number that a key holds.
    pub const SERIAL_MAX: u64 = 9_999_999_999;

    /// A key from its parts. A change LSN of zero is none, as is a serial number of zero.
    ///
    /// # Errors
    /// [`KeyError::TooLarge`] for a serial number above [`DebeziumKey::SERIAL_MAX`].
    pub fn new(commit: Lsn, change: Option<Lsn>, serial: Option<u64>) -> Result<Self, KeyError> {
        let serial = serial.unwrap_or(0);
        if serial > Self::SERIAL_MAX {
            return Err(KeyError::TooLarge { part: "event_serial_no", most: Self::SERIAL_MAX });
        }
        Ok(Self { commit, change: change.filter(|lsn| !lsn.is_zero()), serial })
    }

    /// A key from the fields of an event's `source` block, as JSON has them. The change LSN of a
    /// snapshot event is absent, or the text `NULL`.
    ///
    /// # Errors
    /// [`KeyError::Part`] for a text that is no LSN of Debezium, [`KeyError::Negative`] and
    /// [`KeyError::TooLarge`] for a serial number that no key holds.
    pub fn from_event(
        commit_lsn: &str,
        change_lsn: Option<&str>,
        event_serial_no: Option<i64>,
    ) -> Result<Self, KeyError> {
        let commit = Lsn::from_grouped(commit_lsn).map_err(|_| KeyError::Part("commit_lsn"))?;
        let change = change_lsn
            .filter(|text| *text != "NULL")
            .map(Lsn::from_grouped)
            .transpose()
            .map_err(|_| KeyError::Part("change_lsn"))?;
        let serial = event_serial_no
            .map(|number| u64::try_from(number).map_err(|_| KeyError::Negative("event_serial_no")))
            .transpose()?;
        Self::new(commit, change, serial)
    }

    /// `commit_lsn`.
    #[must_use]
    pub const fn commit(&self) -> Lsn {
        self.commit
    }

    /// `change_lsn`; none for a snapshot event.
    #[must_use]
    pub const fn change(&self) -> Option<Lsn> {
        self.change
    }

    /// `event_serial_no`; 0 for a snapshot event.
    #[must_use]
    pub const fn serial(&self) -> u64 {
        self.serial
    }
}

impl GuardKey for DebeziumKey {
    const WIDTH: usize = 2 * Lsn::WIDTH + 2 * Lsn::WIDTH + NUMBER_WIDTH;

    fn write(&self, text: &mut Vec<u8>) {
        write_lower_hex(self.commit.as_bytes(), text);
        write_lower_hex(self.change.unwrap_or(Lsn::ZERO).as_bytes(), text);
        write_number(self.serial, NUMBER_WIDTH, text);
    }

    fn read(text: &str) -> Result<Self, KeyError> {
        let mut parts = Parts::of(text, Self::WIDTH)?;
        let commit = Lsn::new(parts.hex("commit_lsn", Letters::Lower)?);
        let change = Lsn::new(parts.hex("change_lsn", Letters::Lower)?);
        let serial = parts.number("event_serial_no", NUMBER_WIDTH)?;
        Self::new(commit, Some(change), Some(serial))
    }
}

/// An LSN as Debezium and the server's own tools print it: eight, eight and four lower-case hex
/// digits between colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupedLsn(pub Lsn);

impl fmt::Display for GroupedLsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, byte) in self.0.as_bytes().iter().enumerate() {
            if index == 4 || index == 8 {
                f.write_str(":")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl Lsn {
    /// The LSN in groups: `00000027:00000758:0003`.
    #[must_use]
    pub const fn grouped(self) -> GroupedLsn {
        GroupedLsn(self)
    }

    /// Reads eight, eight and four hex digits in any case between colons, as
    /// `00000027:00000758:0003`. Short groups are refused: their zeros are not certain.
    ///
    /// # Errors
    /// [`LsnError::Grouping`] for a text that is not in these groups, [`LsnError::NotHex`] counting
    /// the digits without the colons.
    pub fn from_grouped(text: &str) -> Result<Self, LsnError> {
        let mut groups = text.split(':');
        let mut digits = String::with_capacity(2 * Self::WIDTH);
        for width in [8, 8, 4] {
            let group = groups.next().filter(|group| group.chars().count() == width);
            digits.push_str(group.ok_or(LsnError::Grouping)?);
        }
        if groups.next().is_some() {
            return Err(LsnError::Grouping);
        }
        if let Some(at) = digits.chars().position(|digit| !digit.is_ascii_hexdigit()) {
            return Err(LsnError::NotHex(at + 1));
        }
        digits.parse()
    }
}

#[cfg(test)]
mod tests;
