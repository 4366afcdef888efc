//! Requests as clients write them.

use cdc_core::SqlType;
use cdc_fake::Value;
use proptest::prelude::*;

use super::*;

pub(super) fn units(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// The headers that clients of today send: the transaction they believe in.
const HEADERS: [u8; 22] = [22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];

#[test]
fn a_batch_stands_behind_its_headers() {
    let body = [HEADERS.to_vec(), units("SELECT 1")].concat();
    assert_eq!(batch(without_headers(&body).expect("headers")), Ok("SELECT 1".to_owned()));
    for wrong in [&[][..], &[3, 0, 0, 0], &[23, 0, 0, 0, 1], &[10, 0, 0, 0, 5, 0, 0, 0, 2, 0]] {
        assert!(without_headers(wrong).is_err(), "{wrong:?}");
    }
}

fn int_argument(name: &str, status: u8, number: u8) -> Vec<u8> {
    let name = units(name);
    let mut bytes = vec![u8::try_from(name.len() / 2).unwrap()];
    bytes.extend(name);
    bytes.extend([status, 0x26, 4, 4, number, 0, 0, 0]);
    bytes
}

#[test]
fn calls_come_by_number_and_by_name_with_named_output_and_default_arguments() {
    let by_number =
        [vec![0xFF, 0xFF, 10, 0, 0, 0], int_argument("", 0, 1), int_argument("n", 1, 2)];
    let name = units("[shop].sys.sp_tables");
    let by_name = [
        vec![u8::try_from(name.len() / 2).unwrap(), 0],
        name,
        vec![0, 0],
        int_argument("@a", 2, 3),
    ];
    let body = [by_number.concat(), vec![0xFF], by_name.concat()].concat();
    let calls = calls(&body).expect("read");
    let [first, second] = calls.as_slice() else { panic!("two calls") };
    assert_eq!(first.procedure, Procedure::Known(KnownProcedure::ExecuteSql));
    let Procedure::Named(name) = &second.procedure else { panic!("a name") };
    assert_eq!((name.database.as_deref(), name.schema.as_deref()), (Some("shop"), Some("sys")));
    assert_eq!(name.name, "sp_tables");
    let [plain, named] = first.arguments.as_slice() else { panic!("two arguments") };
    assert_eq!((plain.name.as_deref(), plain.output), (None, false));
    assert_eq!((named.name.as_deref(), named.output), (Some("@n"), true));
    assert_eq!(named.typed.value, Value::Int(2));
    assert_eq!(named.typed.kind.sql_type, SqlType::Int);
    assert!(second.arguments.iter().all(|argument| argument.default && !argument.output));
}

#[test]
fn a_call_that_is_not_to_run_is_left_out() {
    let call = [0xFF, 0xFF, 15, 0, 0, 0];
    let body = [&call[..], &[0xFE], &call[..]].concat();
    assert_eq!(calls(&body).expect("read").len(), 1);
    assert!(calls(&[0xFF, 0xFF, 99, 0, 0, 0]).is_err());
    assert!(calls(&[]).is_err());
    let encrypted = [&call[..], &int_argument("", 8, 1)].concat();
    assert!(matches!(calls(&encrypted), Err(Fault::Unsupported(_))));
}

#[test]
fn names_have_up_to_three_parts_in_any_quotes() {
    let read = |text| object_name(text).map(|n| (n.database, n.schema, n.name));
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(read("p"), Ok((None, None, "p".into())));
    assert_eq!(read("[a.b]].c]. \"x\"\"y\" .p"), Ok((some("a.b].c"), some("x\"y"), "p".into())));
    assert_eq!(read("db..p"), Ok((some("db"), None, "p".into())));
    for wrong in ["", "a.b.c.d", "[a", "[a]b", "a.", "s.d.x.p"] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn transactions_are_begun_ended_and_marked() {
    use TransactionRequest as T;
    let name = units("t1");
    let named = |front: &[u8], back: &[u8]| [front, &[4], &name, back].concat();
    assert_eq!(
        transaction(&[5, 0, 2, 0]),
        Ok(T::Begin { isolation: Some(2), name: String::new() })
    );
    assert_eq!(transaction(&[5, 0, 0, 0]), Ok(T::Begin { isolation: None, name: String::new() }));
    assert_eq!(
        transaction(&named(&[5, 0, 5], &[])),
        Ok(T::Begin { isolation: Some(5), name: "t1".into() })
    );
    assert_eq!(transaction(&[7, 0, 0, 0]), Ok(T::Commit { name: String::new(), begin: false }));
    assert_eq!(
        transaction(&[7, 0, 0, 1, 2, 0]),
        Ok(T::Commit { name: String::new(), begin: true })
    );
    assert_eq!(transaction(&[8, 0, 0, 0]), Ok(T::Rollback { name: String::new(), begin: false }));
    assert_eq!(
        transaction(&named(&[8, 0], &[0])),
        Ok(T::Rollback { name: "t1".into(), begin: false })
    );
    assert_eq!(transaction(&named(&[9, 0], &[])), Ok(T::Save { name: "t1".into() }));
    assert!(matches!(transaction(&[1, 0]), Err(Fault::Unsupported(_))));
    assert!(matches!(transaction(&[5, 0, 6, 0]), Err(Fault::Malformed(_))));
    assert!(matches!(transaction(&[77, 0]), Err(Fault::Malformed(_))));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = without_headers(&bytes).map(<[u8]>::len);
        let _ = batch(&bytes);
        let _ = calls(&bytes);
        let _ = calls(&[vec![0xFF, 0xFF, 10, 0, 0, 0], bytes.clone()].concat());
        let _ = transaction(&bytes);
    }

    #[test]
    fn any_text_is_a_name_or_refused(text in "[\\[\\]\". a-z]{0,12}") {
        if let Ok(name) = object_name(&text) {
            prop_assert!(!name.name.is_empty());
        }
    }
}
