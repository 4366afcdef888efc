//! The model against cases small enough to check by eye.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use cdc_core::{Column, SqlType, TableName, TableSpec, port::SinkCapabilities};

use super::*;
use crate::feed::{Feed, position, stamp};

fn spec() -> TableSpec {
    let columns = vec![
        Column::new("id", 1, SqlType::Int, false),
        Column { computed: true, ..Column::new("sum", 2, SqlType::Int, true) },
    ];
    TableSpec::new("t", TableName::new("dbo", "t"), columns, vec!["ID".into()]).expect("valid")
}

fn keyed() -> Model {
    Model::new(&spec(), SinkCapabilities::least().with_one_row_a_key())
}

fn row(id: i64, sum: i64) -> Vec<Cell> {
    vec![Cell::Int(id), Cell::Int(sum)]
}

fn images(model: &Model) -> Vec<(Cell, Cell)> {
    let rows = model.rows();
    let cell = |row: &Row, name: &str| row.cells.get(name).cloned().unwrap();
    rows.as_slice().iter().map(|row| (cell(row, "id"), cell(row, "sum"))).collect()
}

#[test]
fn staged_rows_count_only_after_a_commit() {
    let mut model = Model::new(&spec(), SinkCapabilities::least());
    let batch = Feed::new(&spec().columns).insert(1, row(1, 1)).changes().unwrap();
    model.stage(&batch).unwrap();
    assert!(model.rows().is_empty());
    model.discard();
    model.commit();
    assert!(model.rows().is_empty());
    model.stage(&batch).unwrap();
    model.commit();
    assert_eq!(model.rows().len(), 1);
}

#[test]
fn one_row_a_key_is_the_latest_image() {
    let mut model = keyed();
    let feed = Feed::new(&spec().columns)
        .insert(1, row(1, 1))
        .update(2, row(1, 1), row(1, 2))
        .insert(2, row(2, 5))
        .delete(3, row(2, 5))
        .update(3, row(1, 2), row(7, 3));
    model.stage(&feed.changes().unwrap()).unwrap();
    model.commit();
    assert_eq!(images(&model), [(Cell::Int(7), Cell::Int(3))]);
}

#[test]
fn a_delete_outlives_an_older_chunk() {
    let mut model = keyed();
    let feed = Feed::new(&spec().columns);
    model.stage(&feed.clone().delete(9, row(1, 1)).changes().unwrap()).unwrap();
    let chunk = feed.insert(5, row(1, 1)).insert(5, row(2, 2));
    let batch = chunk.chunk(position(10, 4).unwrap(), stamp(10, 5).unwrap(), 0).unwrap();
    model.stage(&batch).unwrap();
    model.commit();
    assert_eq!(images(&model), [(Cell::Int(2), Cell::Int(2))]);
}

#[test]
fn an_unknown_cell_keeps_what_is_known_until_the_key_is_deleted() {
    let mut model = keyed();
    let feed = Feed::new(&spec().columns);
    let first = feed.clone().insert(1, row(1, 4)).snapshot(stamp(10, 1).unwrap()).unwrap();
    model.stage(&first).unwrap();
    let unknown = || vec![Cell::Int(1), Cell::Null];
    let update = feed.clone().update(2, unknown(), unknown());
    model.stage(&update.changes().unwrap()).unwrap();
    model.commit();
    assert_eq!(images(&model), [(Cell::Int(1), Cell::Int(4))]);
    let anew = feed.delete(3, unknown()).insert(4, unknown());
    model.stage(&anew.changes().unwrap()).unwrap();
    model.commit();
    assert_eq!(images(&model), [(Cell::Int(1), Cell::Null)]);
}
