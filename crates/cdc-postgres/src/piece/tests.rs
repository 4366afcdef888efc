//! Pieces: one row a key, the newest one, with everything that is known of it.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use cdc_core::{
    Column, Epoch, InstanceName, Length, SqlType, Stamp, TableName, TableSpec,
    change::{change_schema, row_schema},
};
use proptest::prelude::*;

use super::*;

/// A change: commit, command, operation, key, text, computed number.
type Change = (u8, i32, i32, i32, Option<&'static str>, Option<i32>);

fn columns() -> Vec<Column> {
    vec![
        Column::new("id", 1, SqlType::Int, false),
        Column::new("name", 2, SqlType::NVarChar(Length::Max), true),
        Column { computed: true, ..Column::new("total", 3, SqlType::Int, true) },
    ]
}

fn layout() -> Layout {
    let spec = TableSpec {
        name: "t".into(),
        source: TableName::new("dbo", "t"),
        columns: columns(),
        key: vec!["id".into()],
    };
    Layout::new(&spec).expect("every type has a form")
}

fn meanings() -> Meanings {
    columns().iter().map(Column::null_meaning).collect()
}

fn batch(origin: Origin, schema: SchemaRef, arrays: Vec<ArrayRef>) -> TableBatch {
    let records = RecordBatch::try_new(schema, arrays).expect("columns fit");
    TableBatch { instance: InstanceName::new("dbo_t"), origin, records }
}

fn changes(list: &[Change]) -> TableBatch {
    let binary = |at: fn(&Change) -> u8| {
        let values = list.iter().map(|change| Some([at(change); 2]));
        let array = arrow_array::FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, 2);
        Arc::new(array.expect("two bytes")) as ArrayRef
    };
    let arrays: Vec<ArrayRef> = vec![
        binary(|change| change.0),
        binary(|_| 1),
        Arc::new(list.iter().map(|change| Some(change.2)).collect::<Int32Array>()),
        Arc::new(list.iter().map(|change| Some(change.1)).collect::<Int32Array>()),
        Arc::new(arrow_array::TimestampMicrosecondArray::from(vec![None; list.len()])),
        Arc::new(list.iter().map(|change| Some(change.3)).collect::<Int32Array>()),
        Arc::new(list.iter().map(|change| change.4).collect::<StringArray>()),
        Arc::new(list.iter().map(|change| change.5).collect::<Int32Array>()),
    ];
    batch(Origin::Changes, change_schema(2, &columns()).expect("a schema"), arrays)
}

fn snapshot(stamp: u8, rows: &[(i32, Option<&str>, Option<i32>)]) -> TableBatch {
    let position = Position::new(Epoch(0), &[stamp; 2]).expect("two bytes");
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| Some(row.0)).collect::<Int32Array>()),
        Arc::new(rows.iter().map(|row| row.1).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.2).collect::<Int32Array>()),
    ];
    let origin = Origin::Snapshot(Stamp { position, commit_time: None });
    batch(origin, row_schema(&columns()).expect("a schema"), arrays)
}

/// A row as it is sent: key, text, number, deleted, what it does not say.
type Sent = (i32, Option<String>, Option<i32>, bool, Vec<u8>);

fn sent(piece: &Piece) -> Vec<Sent> {
    let read = |row: &[u8]| {
        let fields: Vec<_> = Fields::from(row, 0).map(|field| value(&row[field])).collect();
        let number = |bytes: &[u8]| i32::from_be_bytes(bytes.try_into().expect("four bytes"));
        (
            number(fields[0].expect("a key")),
            fields[1].map(|text| String::from_utf8(text.to_vec()).expect("UTF-8")),
            fields[2].map(number),
            fields[3] == Some(&[1][..]),
            fields[5].unwrap_or_default().to_vec(),
        )
    };
    let mut rows: Vec<_> = piece.rows().map(read).collect();
    rows.sort();
    rows
}

fn taken(batches: &[TableBatch]) -> Result<Piece> {
    let (layout, mut piece) = (layout(), Piece::new(3));
    for batch in batches {
        piece.take("t", &layout, &meanings(), NulInText::Refuse, batch)?;
    }
    Ok(piece)
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn a_key_that_comes_again_is_sent_once_with_its_last_image() {
    let piece = taken(&[changes(&[
        (1, 1, 2, 7, Some("a"), None),
        (1, 2, 3, 7, Some("a"), None),
        (1, 2, 4, 7, Some("b"), None),
        (1, 3, 1, 7, Some("b"), None),
        (1, 4, 2, 7, Some("c"), None),
    ])]);
    // Deleted and inserted again: of the computed column nothing is left to keep.
    assert_eq!(sent(&piece.expect("taken")), [(7, text("c"), None, false, vec![])]);
}

#[test]
fn a_key_update_leaves_a_marker_and_an_update_of_the_same_key_none() {
    let piece = taken(&[changes(&[
        (1, 1, 3, 1, Some("a"), None),
        (1, 1, 4, 2, Some("a"), None),
        (1, 2, 3, 5, Some("x"), None),
        (1, 2, 4, 5, Some("y"), None),
    ])])
    .expect("taken");
    let unknown = vec![0b100];
    assert_eq!(
        sent(&piece),
        [
            (1, text("a"), None, true, unknown.clone()),
            (2, text("a"), None, false, unknown.clone()),
            (5, text("y"), None, false, unknown),
        ]
    );
    assert_eq!(piece.unknown(), [2]);
}

#[test]
fn what_a_change_does_not_say_is_taken_from_the_row_before_it() {
    let batches = [
        snapshot(1, &[(1, Some("a"), Some(40)), (2, None, None)]),
        changes(&[(2, 1, 3, 1, None, None), (2, 1, 4, 1, Some("b"), None)]),
        changes(&[(3, 1, 1, 2, None, None)]),
    ];
    let piece = taken(&batches).expect("taken");
    let expected = [(1, text("b"), Some(40), false, vec![]), (2, None, None, true, vec![])];
    assert_eq!(sent(&piece), expected);
    assert_eq!(piece.unknown(), [0usize; 0]);
    // In two pieces the target has to know it.
    let later = taken(&batches[1..]).expect("taken");
    assert_eq!(sent(&later)[0], (1, text("b"), None, false, vec![0b100]));
}

#[test]
fn a_position_that_is_not_greater_changes_nothing() {
    let newer = changes(&[(5, 1, 4, 1, Some("new"), None)]);
    let older = changes(&[(4, 9, 4, 1, Some("old"), None), (5, 1, 4, 1, Some("same"), None)]);
    let chunk = snapshot(5, &[(1, Some("stamped"), Some(1)), (2, Some("alone"), Some(2))]);
    let piece = taken(&[newer, older, chunk]).expect("taken");
    assert_eq!(
        sent(&piece),
        [(1, text("new"), None, false, vec![0b100]), (2, text("alone"), Some(2), false, vec![])]
    );
}

#[test]
fn a_key_is_never_null() {
    let mut rows = snapshot(1, &[(1, None, None)]);
    let mut arrays = rows.records.columns().to_vec();
    arrays[0] = Arc::new(Int32Array::from(vec![None]));
    rows.records = RecordBatch::try_new(rows.records.schema(), arrays).expect("fits");
    let error = taken(&[rows]).expect_err("a NULL key");
    assert_eq!((error.kind(), error.context("column")), (ErrorKind::InvalidData, Some("id")));
}

#[test]
fn a_nul_is_refused_with_its_position_or_replaced_and_counted() {
    let rows = changes(&[(1, 1, 2, 1, Some("ok"), None), (9, 1, 2, 2, Some("a\0b\0"), None)]);
    let error = taken(std::slice::from_ref(&rows)).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let context = (error.context("column"), error.context("position"));
    assert_eq!(context, (Some("name"), Some("0x0909")));
    let mut piece = Piece::new(3);
    piece.take("t", &layout(), &meanings(), NulInText::Replace, &rows).expect("replaced");
    assert_eq!(piece.replaced(), 2);
    assert_eq!(sent(&piece)[1].1, text("a\u{fffd}b\u{fffd}"));
}

#[test]
fn keys_that_the_server_takes_for_equal_are_one() {
    let column = |sql_type| Column::new("id", 1, sql_type, false);
    let one_key = |sql_type: SqlType, arrays: Vec<ArrayRef>| {
        let columns = vec![column(sql_type)];
        let spec = TableSpec {
            name: "t".into(),
            source: TableName::new("dbo", "t"),
            columns: columns.clone(),
            key: vec!["id".into()],
        };
        let layout = Layout::new(&spec).expect("a form");
        let mut piece = Piece::new(1);
        for (array, stamp) in arrays.into_iter().zip(1u8..) {
            let field = arrow_schema::Field::new("id", array.data_type().clone(), true);
            let schema = Arc::new(arrow_schema::Schema::new(vec![field]));
            let position = Position::new(Epoch(0), &[stamp]).expect("a byte");
            let origin = Origin::Snapshot(Stamp { position, commit_time: None });
            let rows = batch(origin, schema, vec![array]);
            let meanings = vec![NullMeaning::Null];
            piece.take("t", &layout, &meanings, NulInText::Refuse, &rows).expect("taken");
        }
        piece.len()
    };
    let float = |values: &[f64]| Arc::new(Float64Array::from(values.to_vec())) as ArrayRef;
    let nan = f64::from_bits(0xfff8_0000_0000_0001);
    assert_eq!(one_key(SqlType::Float, vec![float(&[0.0, -0.0]), float(&[f64::NAN, nan])]), 2);
    // An older instance has the key as a whole number.
    let decimal = arrow_array::Decimal128Array::from(vec![500, 501]);
    let decimal = Arc::new(decimal.with_precision_and_scale(12, 2).expect("fits")) as ArrayRef;
    let whole = Arc::new(Int32Array::from(vec![5])) as ArrayRef;
    assert_eq!(one_key(SqlType::Decimal { precision: 12, scale: 2 }, vec![whole, decimal]), 2);
}

#[test]
fn a_column_that_the_target_lacks_or_does_not_take_is_refused_by_name() {
    let error = |rename: &str, array: ArrayRef| {
        let field = arrow_schema::Field::new(rename, array.data_type().clone(), true);
        let schema = Arc::new(arrow_schema::Schema::new(vec![field]));
        let position = Position::new(Epoch(0), &[1]).expect("a byte");
        let origin = Origin::Snapshot(Stamp { position, commit_time: None });
        taken(&[batch(origin, schema, vec![array])]).expect_err("refused")
    };
    let number = || Arc::new(Int32Array::from(vec![1])) as ArrayRef;
    for (name, array) in
        [("surprise", number()), ("id", Arc::new(StringArray::from(vec!["1"])) as ArrayRef)]
    {
        let error = error(name, array);
        assert_eq!((error.kind(), error.context("column")), (ErrorKind::SchemaChanged, Some(name)));
    }
    assert_eq!(error("total", number()).kind(), ErrorKind::SchemaChanged);
}

proptest! {
    #[test]
    fn a_piece_holds_the_newest_image_of_every_key(
        steps in proptest::collection::vec((0i32..4, any::<bool>(), any::<bool>()), 1..30),
        cut in 0usize..30,
    ) {
        const WORDS: [&str; 5] = ["a", "b", "c", "d", "e"];
        let mut live: BTreeMap<i32, &'static str> = BTreeMap::new();
        let mut list: Vec<Change> = Vec::new();
        for ((key, delete, _), command) in steps.into_iter().zip(1..) {
            let word = WORDS[usize::try_from(command).unwrap() % WORDS.len()];
            match live.get(&key).copied() {
                None => list.push((1, command, 2, key, Some(word), None)),
                Some(old) if delete => {
                    list.push((1, command, 1, key, Some(old), None));
                    live.remove(&key);
                    continue;
                }
                Some(old) => {
                    list.push((1, command, 3, key, Some(old), None));
                    list.push((1, command, 4, key, Some(word), None));
                }
            }
            live.insert(key, word);
        }
        // Two calls, but no update cut in half.
        let mut cut = cut.min(list.len());
        if cut < list.len() && cut > 0 && list[cut].2 == 4 {
            cut -= 1;
        }
        let piece = taken(&[changes(&list[..cut]), changes(&list[cut..])]).expect("taken");
        let rows = sent(&piece);
        let present: BTreeMap<_, _> =
            rows.iter().filter(|row| !row.3).map(|row| (row.0, row.1.clone().unwrap())).collect();
        let expected: BTreeMap<_, _> =
            live.iter().map(|(key, word)| (*key, (*word).to_owned())).collect();
        prop_assert_eq!(present, expected);
        // Again, and again in parts: nothing changes.
        let twice = taken(&[changes(&list), changes(&list[..cut]), changes(&list)]);
        prop_assert_eq!(sent(&twice.expect("taken")), rows);
    }
}
