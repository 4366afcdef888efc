//! Tokens as the protocol writes them.

use cdc_core::SqlType;
use cdc_fake::Value;
use proptest::prelude::*;

use super::*;
use crate::charset::tests::LATIN;

fn tokens(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn told(class: u8, text: &str) -> Vec<u8> {
    let told =
        Message { number: 208, state: 1, class, text: text.into(), procedure: "p".into(), line: 3 };
    tokens(|out| message(&told, "S", out))
}

#[test]
fn a_message_is_an_error_from_severity_eleven_on() {
    let expected = [208, 0, 0, 0, 1, 16, 1, 0, b'x', 0, 1, b'S', 0, 1, b'p', 0, 3, 0, 0, 0];
    assert_eq!(told(16, "x"), [&[0xAA, 20, 0][..], &expected].concat());
    assert_eq!((told(10, "x")[0], told(11, "x")[0]), (0xAB, 0xAA));
}

#[test]
fn changes_are_told_with_new_and_old() {
    let database = Change::Database("b".into(), "a".into());
    assert_eq!(tokens(|out| changed(&database, out)), [0xE3, 7, 0, 1, 1, b'b', 0, 1, b'a', 0]);
    let began = tokens(|out| changed(&Change::TransactionBegan(5), out));
    assert_eq!(began, [0xE3, 11, 0, 8, 8, 5, 0, 0, 0, 0, 0, 0, 0, 0]);
    let committed = tokens(|out| changed(&Change::TransactionCommitted(5), out));
    assert_eq!(committed, [0xE3, 11, 0, 9, 0, 8, 5, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(tokens(|out| changed(&Change::Reset, out)), [0xE3, 3, 0, 18, 0, 0]);
    let collation = tokens(|out| changed(&Change::Collation(LATIN), out));
    assert_eq!(collation, [0xE3, 8, 0, 7, 5, 9, 4, 0xD0, 0, 0x34, 0]);
    let size = tokens(|out| packet_size(8000, 512, out));
    assert_eq!(size[..5], [0xE3, 17, 0, 4, 4]);
}

#[test]
fn an_end_tells_rows_only_when_they_count() {
    let ended = |rows| tokens(|out| end(End::Statement, 0, StatementKind::Select, rows, out));
    assert_eq!(ended(Some(2)), [0xFD, 0x10, 0, 0xC1, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(ended(None), [0xFD, 0, 0, 0xC1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn an_output_argument_has_its_type_and_value() {
    let typed = Typed::new(SqlType::Int, Value::Int(7));
    let dialect = Dialect { collation: LATIN, utf8: false };
    let mut out = Vec::new();
    let written = return_value(2, "@h", &typed, dialect, &mut out).expect("a type");
    assert_eq!(written, Ok(()));
    let expected = [0xAC, 2, 0, 2, b'@', 0, b'h', 0, 1, 0, 0, 0, 0, 1, 0, 0x26, 4, 4, 7, 0, 0, 0];
    assert_eq!(out, expected);
}

proptest! {
    #[test]
    fn a_message_of_any_length_has_the_length_it_says(text in "[a\u{3b1}\u{1F600}]{0,50}", times in 1usize..400) {
        let bytes = told(16, &text.repeat(times));
        let length = usize::from(u16::from_le_bytes([bytes[1], bytes[2]]));
        prop_assert_eq!(length + 3, bytes.len());
        let units = usize::from(u16::from_le_bytes([bytes[9], bytes[10]]));
        prop_assert!(units <= 8_000);
        let text = bytes[11..11 + units * 2].chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]]));
        prop_assert!(char::decode_utf16(text).all(|unit| unit.is_ok()));
    }
}
