//! Keys of SQL Server and of Debezium: their order, their texts, what is refused.

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
    let command = prop_oneof![Just(None), (0i32..3).prop_map(Some), (0..=i32::MAX).prop_map(Some)];
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
    assert_eq!(stream.expect("a key").text(), "00000027000007580003000000270000075800020000000002");
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
