//! Rows with and without a null bitmap.

use cdc_core::{Length, SqlType};
use cdc_tsql::kind::Kind;
use proptest::prelude::*;

use super::*;
use crate::charset::tests::LATIN;

const DIALECT: Dialect = Dialect { collation: LATIN, utf8: false };

fn column(name: &str, sql_type: SqlType, nullable: bool) -> ResultColumn {
    let kind = Kind::new(sql_type, nullable);
    ResultColumn { name: name.into(), kind, identity: false, computed: false }
}

fn begin(columns: &[ResultColumn]) -> (RowEncoder, Vec<u8>) {
    let mut out = Vec::new();
    let encoder = RowEncoder::begin(columns, DIALECT, &mut out).expect("columns");
    (encoder, out)
}

#[test]
fn columns_are_described_with_their_flags() {
    let mut id = column("id", SqlType::Int, false);
    id.identity = true;
    let mut sum = column("", SqlType::BigInt, true);
    sum.computed = true;
    let text = column("t", SqlType::NText, true);
    let (_, described) = begin(&[id, sum, text]);
    let expected = [
        &[0x81, 3, 0][..],
        &[0, 0, 0, 0, 0x10, 0, 0x38, 2, b'i', 0, b'd', 0],
        &[0, 0, 0, 0, 0x21, 0, 0x26, 8, 0],
        &[
            0, 0, 0, 0, 0x09, 0, 0x63, 254, 255, 255, 127, 0x09, 0x04, 0xD0, 0, 0x34, 1, 0, 0, 1,
            b't', 0,
        ],
    ];
    assert_eq!(described, expected.concat());
}

#[test]
fn a_null_bitmap_is_written_when_it_is_shorter() {
    let max = SqlType::VarBinary(Length::Max);
    let columns =
        [column("a", SqlType::Int, true), column("b", max, true), column("c", SqlType::Int, false)];
    let (encoder, _) = begin(&columns);
    let row = |a: Value, b: Value| {
        let mut out = Vec::new();
        encoder.row(&[a, b, Value::Int(1)], &mut out).expect("written");
        out
    };
    let plain = row(Value::Null, Value::bytes(&[]));
    assert_eq!(plain, [&[0xD1, 0][..], &[0; 12], &[1, 0, 0, 0]].concat());
    assert_eq!(row(Value::Int(2), Value::Null), [0xD2, 0b10, 4, 2, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(row(Value::Null, Value::Null), [0xD2, 0b11, 1, 0, 0, 0]);
}

#[test]
fn a_row_that_does_not_fit_leaves_nothing_behind_and_names_the_column() {
    let (encoder, _) = begin(&[column("a", SqlType::Int, true), column("b", SqlType::Int, false)]);
    let mut out = vec![7];
    for (row, at) in [
        (&[Value::Int(1), Value::Null][..], "b"),
        (&[Value::Int(1), Value::text("x")], "b"),
        (&[Value::Int(1 << 40), Value::Int(1)], "a"),
        (&[Value::Int(1)], ""),
    ] {
        let fault = encoder.row(row, &mut out).expect_err("refused");
        assert_eq!((fault.column.as_str(), out.as_slice()), (at, &[7][..]));
    }
}

proptest! {
    #[test]
    fn a_bitmap_has_a_bit_for_every_null(nulls in prop::collection::vec(any::<bool>(), 1..40)) {
        let max = || SqlType::VarBinary(Length::Max);
        let columns = nulls.iter().map(|_| column("c", max(), true)).collect::<Vec<_>>();
        let (encoder, _) = begin(&columns);
        let row = nulls.iter().map(|null| if *null { Value::Null } else { Value::bytes(&[]) });
        let mut out = Vec::new();
        encoder.row(&row.collect::<Vec<_>>(), &mut out).expect("written");
        let bitmap = nulls.len().div_ceil(8);
        let count = nulls.iter().filter(|null| **null).count();
        let plain = 1 + count * 8 + (nulls.len() - count) * 12;
        prop_assert_eq!(out.len(), plain.min(1 + bitmap + (nulls.len() - count) * 12));
        if out[0] == 0xD2 {
            for (at, null) in nulls.iter().enumerate() {
                prop_assert_eq!(out[1 + at / 8] >> (at % 8) & 1 == 1, *null);
            }
        }
    }
}
