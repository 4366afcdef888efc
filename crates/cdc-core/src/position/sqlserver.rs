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
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DEBEZIUM: &str = "00000027:00000758:0003";

    fn lsn() -> impl Strategy<Value = Lsn> {
        // Small numbers too, so that ties are drawn.
        prop_oneof![
            any::<[u8; 10]>().prop_map(Lsn::new),
            (0u128..3).prop_map(|n| Lsn::from_u128(n).expect("small")),
        ]
    }

    fn key() -> impl Strategy<Value = ChangeKey> {
        let command =
            prop_oneof![Just(None), (0i32..3).prop_map(Some), (0..=i32::MAX).prop_map(Some)];
        (lsn(), command, proptest::option::of(lsn()), 0i32..5).prop_map(
            |(commit, command, change, operation)| {
                let operation = Operation::from_code(operation).expect("0 to 4");
                ChangeKey::new(commit, command, change, operation).expect("in range")
            },
        )
    }

    fn event() -> impl Strategy<Value = DebeziumKey> {
        let serial = prop_oneof![0..3u64, 0..=DebeziumKey::SERIAL_MAX];
        (lsn(), proptest::option::of(lsn()), serial).prop_map(|(commit, change, serial)| {
            DebeziumKey::new(commit, change, Some(serial)).expect("in range")
        })
    }

    #[test]
    fn debeziums_texts_parse_and_print() {
        let lsn = Lsn::from_grouped(DEBEZIUM).expect("an LSN");
        assert_eq!(lsn.to_string(), "0x00000027000007580003");
        assert_eq!(lsn.grouped().to_string(), DEBEZIUM);
        assert_eq!(
            Lsn::from_grouped("0000002A:000001F8:0003"),
            Lsn::from_grouped("0000002a:000001f8:0003")
        );
        for (text, error) in [
            ("", LsnError::Grouping),
            ("27:758:3", LsnError::Grouping),
            ("00000027:00000758", LsnError::Grouping),
            ("00000027:00000758:0003:0", LsnError::Grouping),
            ("00000027:00000758:00003", LsnError::Grouping),
            ("0000002700000758:0003", LsnError::Grouping),
            ("0000g027:00000758:0003", LsnError::NotHex(5)),
            ("0x000027:00000758:0003", LsnError::NotHex(2)),
            (" 0000027:00000758:0003", LsnError::NotHex(1)),
        ] {
            assert_eq!(Lsn::from_grouped(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn an_event_of_debezium_has_the_key_that_its_fields_spell() {
        let stream = DebeziumKey::from_event(DEBEZIUM, Some("00000027:00000758:0002"), Some(2));
        assert_eq!(
            stream.expect("a key").text(),
            "00000027000007580003000000270000075800020000000002"
        );
        for change in [None, Some("NULL")] {
            let read = DebeziumKey::from_event(DEBEZIUM, change, None).expect("a key");
            assert_eq!(read.text(), format!("00000027000007580003{}", "0".repeat(30)));
        }
        for (commit, change, serial, error) in [
            ("NULL", None, None, KeyError::Part("commit_lsn")),
            (DEBEZIUM, Some("27"), None, KeyError::Part("change_lsn")),
            (DEBEZIUM, None, Some(-1), KeyError::Negative("event_serial_no")),
            (
                DEBEZIUM,
                None,
                Some(10_000_000_000),
                KeyError::TooLarge { part: "event_serial_no", most: DebeziumKey::SERIAL_MAX },
            ),
        ] {
            assert_eq!(DebeziumKey::from_event(commit, change, serial), Err(error));
        }
    }

    #[test]
    fn a_key_says_what_it_is_made_of() {
        let lsn = Lsn::from_grouped(DEBEZIUM).expect("an LSN");
        let key = ChangeKey::new(lsn, Some(1), Some(lsn), Operation::UpdateAfter).expect("a key");
        assert_eq!(key.text(), "000000270000075800030000000002000000270000075800034");
        let row = ChangeKey::snapshot(lsn);
        assert_eq!(row.text(), format!("00000027000007580003{}", "0".repeat(31)));
        assert!(row < ChangeKey::new(lsn, None, None, Operation::Delete).expect("a key"));
        let negative = ChangeKey::new(lsn, Some(-1), None, Operation::Insert);
        assert_eq!(negative, Err(KeyError::Negative("command id")));
    }

    #[test]
    fn the_command_outranks_the_log_record() {
        let at = |number| Some(Lsn::from_u128(number).expect("small"));
        let key = |command, change, operation| {
            ChangeKey::new(Lsn::MAX, Some(command), at(change), operation).expect("a key")
        };
        assert!(key(1, 9, Operation::Delete).text() < key(2, 7, Operation::Insert).text());
        assert!(key(1, 9, Operation::Delete).text() < key(1, 9, Operation::Insert).text());
    }

    proptest! {
        #[test]
        fn the_order_of_texts_is_the_order_of_keys(a in key(), b in key()) {
            prop_assert_eq!(a.text().cmp(&b.text()), a.cmp(&b));
        }

        #[test]
        fn a_key_round_trips_and_only_its_own_text_reads_as_it(key in key()) {
            let text = key.text();
            prop_assert_eq!(text.len(), ChangeKey::WIDTH);
            prop_assert_eq!(ChangeKey::read(&text), Ok(key));
        }

        #[test]
        fn a_text_that_reads_prints_as_itself(text in "[0-9A-F]{20}[0-9]{10}[0-9A-F]{20}[0-5]") {
            if let Ok(key) = ChangeKey::read(&text) {
                prop_assert_eq!(key.text(), text);
            }
        }

        #[test]
        fn the_order_of_keys_is_change_order(a in key(), b in key()) {
            let order = |key: &ChangeKey| ChangeOrder {
                commit: key.commit(),
                command: key.command().map(|id| i32::try_from(id).expect("an int")),
                sequence: key.change(),
                operation: key.operation().code(),
            };
            prop_assert_eq!(a.cmp(&b), order(&a).cmp(&order(&b)));
        }

        #[test]
        fn positions_of_every_width_order_as_their_change_order(
            width in 1usize..=24,
            a in (any::<[u8; 24]>(), proptest::option::of(0..4i32), proptest::option::of(any::<[u8; 24]>()), 0..5i32),
            b in (any::<[u8; 24]>(), proptest::option::of(0..4i32), proptest::option::of(any::<[u8; 24]>()), 0..5i32),
            same_commit: bool,
        ) {
            let commit = if same_commit { a.0 } else { b.0 };
            let a = (&a.0[..width], a.1, a.2.as_ref().map(|s| &s[..width]), a.3);
            let b = (&commit[..width], b.1, b.2.as_ref().map(|s| &s[..width]), b.3);
            let order = |(commit, command, sequence, operation)| ChangeOrder { commit, command, sequence, operation };
            let text = |order: &ChangeOrder<&[u8]>| {
                let mut text = Vec::new();
                write_change(order, &mut text).expect("in range");
                text
            };
            // Zeros are none, which only equal parts in front can show.
            prop_assume!([a, b].iter().all(|x| x.2.is_none_or(|s| s.iter().any(|byte| *byte != 0))));
            let (a, b) = (order(a), order(b));
            prop_assert_eq!(text(&a).len(), 4 * width + 11);
            prop_assert_eq!(text(&a).cmp(&text(&b)), a.cmp(&b));
        }

        #[test]
        fn ten_bytes_give_the_key_of_sql_server(key in key()) {
            let (commit, change) = (key.commit(), key.change());
            let order = ChangeOrder {
                commit: commit.as_bytes().as_slice(),
                command: key.command().map(|id| i32::try_from(id).expect("an int")),
                sequence: change.as_ref().map(|lsn| lsn.as_bytes().as_slice()),
                operation: key.operation().code(),
            };
            let mut text = Vec::new();
            write_change(&order, &mut text).expect("in range");
            prop_assert_eq!(text, key.text().into_bytes());
        }

        #[test]
        fn events_of_debezium_order_and_round_trip(a in event(), b in event()) {
            prop_assert_eq!(a.text().cmp(&b.text()), a.cmp(&b));
            prop_assert_eq!(a.text().len(), DebeziumKey::WIDTH);
            prop_assert_eq!(DebeziumKey::read(&a.text()), Ok(a));
            prop_assert_eq!(Lsn::from_grouped(&a.commit().grouped().to_string()), Ok(a.commit()));
        }
    }

    #[test]
    fn a_text_of_another_kind_is_refused() {
        let key = ChangeKey::snapshot(Lsn::MAX).text();
        for (text, error) in [
            (key[1..].to_owned(), KeyError::Width { expected: 51, found: 50 }),
            (format!("{key}0"), KeyError::Width { expected: 51, found: 52 }),
            (key.to_lowercase(), KeyError::Part("commit")),
            (format!("{}9", &key[..50]), KeyError::Part("operation")),
            (format!("{}+000000001{}", &key[..20], &key[30..]), KeyError::Part("command id")),
            (
                format!("{}9999999999{}", &key[..20], &key[30..]),
                KeyError::TooLarge { part: "command id", most: COMMAND_MOST },
            ),
        ] {
            assert_eq!(ChangeKey::read(&text), Err(error), "{text}");
        }
        let upper = DebeziumKey::new(Lsn::MAX, None, None).expect("a key").text().to_uppercase();
        assert_eq!(DebeziumKey::read(&upper), Err(KeyError::Part("commit_lsn")));
    }
}
