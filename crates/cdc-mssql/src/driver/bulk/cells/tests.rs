//! What becomes of the cells that the decoder pushes.

use std::sync::Arc;

use arrow_array::{Array, cast::AsArray, types::Decimal128Type};
use arrow_schema::{Field, Schema};
use cdc_core::{ErrorKind, Length, SqlType};
use proptest::prelude::*;

use super::*;
use crate::driver::{Form, ResultColumn};

fn builder(types: &[SqlType]) -> BatchBuilder {
    let columns: Vec<_> = types
        .iter()
        .enumerate()
        .map(|(at, own)| ResultColumn::new(format!("c{at}"), Form::Sql(own.clone())))
        .collect();
    let field = |column: &ResultColumn| {
        Field::new(&column.name, column.form.arrow().expect("has a form"), true)
    };
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    BatchBuilder::new(Arc::new(schema), &columns, 1_000).expect("is built")
}

fn bytes_of(units: &[u16]) -> Vec<u8> {
    units.iter().flat_map(|unit| unit.to_le_bytes()).collect()
}

#[test]
fn money_is_exact_at_its_ends() {
    for own in [i64::MIN, -1, 0, 1, i64::from(i32::MAX) + 1, i64::MAX] {
        let [a, b, c, d, e, f, g, h] = own.to_le_bytes();
        let parts = (i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]));
        assert_eq!(money(&SqlMoney::from(parts)), i128::from(own));
    }
}

#[test]
fn a_decimal_keeps_its_sign_and_takes_the_scale_of_its_column() {
    let mut batch = builder(&[SqlType::Decimal { precision: 38, scale: 10 }]);
    let most = 10_u128.pow(38) - 1;
    let mut cells = Cells::new(&mut batch, &[0], 1);
    cells.write_decimal(0, DecimalParts::new(false, 38, 10, most));
    cells.end_row();
    cells.write_numeric(0, DecimalParts::new(true, 5, 2, 125));
    cells.end_row();
    cells.check().expect("fits");
    let batch = batch.take().expect("a batch");
    let values = batch.column(0).as_primitive::<Decimal128Type>().values().to_vec();
    assert_eq!(values, [1 - 10_i128.pow(38), 12_500_000_000]);
}

#[test]
fn a_value_that_does_not_fit_names_its_column_once_the_row_is_read() {
    let mut batch = builder(&[SqlType::Int, SqlType::SmallInt]);
    let mut cells = Cells::new(&mut batch, &[0, 1], 2);
    cells.write_i32(0, 1);
    cells.write_i32(1, 40_000);
    cells.end_row();
    let error = cells.check().expect_err("does not fit").error;
    assert_eq!((error.kind(), error.context("column")), (ErrorKind::InvalidData, Some("c1")));
    assert!(!error.report().contains("40000"), "{}", error.report());
}

#[test]
fn a_column_that_nobody_wants_is_passed_over_and_the_others_find_their_places() {
    let mut batch = builder(&[SqlType::Int, SqlType::Bit]);
    let mut cells = Cells::new(&mut batch, &[2, 0], 3);
    cells.write_bool(0, true);
    cells.write_vector(1, SqlVector::try_from_f32(vec![1.0]).expect("a vector"));
    cells.write_null(2);
    cells.end_row();
    cells.check().expect("fits");
    let batch = batch.take().expect("a batch");
    assert!(batch.column(0).is_null(0) && batch.column(1).as_boolean().value(0));
}

#[test]
fn a_text_of_a_code_page_is_read_when_it_is_plain_alone() {
    let text = SqlType::NVarChar(Length::Max);
    for (bytes, fits) in [(&b"plain"[..], true), (&b"\xE4"[..], false)] {
        let mut batch = builder(std::slice::from_ref(&text));
        let mut cells = Cells::new(&mut batch, &[0], 1);
        cells.write_string(0, Cow::Borrowed(bytes), EncodingType::Utf8);
        cells.end_row();
        assert_eq!(cells.check().is_ok(), fits);
    }
}

#[test]
fn half_a_unit_is_no_text() {
    assert_eq!(read_utf16(&[b'a', 0, b'b'], String::new()), Err(Misfit));
}

proptest! {
    #[test]
    fn utf16_is_read_as_the_standard_library_reads_it(
        units in prop_oneof![
            prop::collection::vec(any::<u16>(), 0..40),
            prop::collection::vec(0_u16..128, 0..40),
            prop::collection::vec(0xD7F0_u16..0xE010, 0..40),
        ],
        before in ".{0,5}",
    ) {
        let read = read_utf16(&bytes_of(&units), before);
        prop_assert_eq!(read, Ok(String::from_utf16_lossy(&units)));
    }
}
