//! Pieces of key ranges against a model that evaluates them.

#![allow(clippy::unwrap_used)]

use std::{cmp::Ordering, sync::Arc};

use arrow_array::Int32Array;
use arrow_schema::{Field, Schema};
use cdc_core::port::KeyTuple;
use proptest::prelude::*;

use super::*;

fn column(name: &str, nullable: bool) -> KeyColumn {
    KeyColumn {
        name: Identifier::new(name).unwrap(),
        plain: name.into(),
        sql_type: SqlType::Int,
        nullable,
        collation: None,
    }
}

fn tuple(key: &[KeyColumn], values: &[Option<i32>]) -> KeyTuple {
    let fields: Vec<_> =
        key.iter().map(|column| Field::new(&column.plain, DataType::Int32, true)).collect();
    let arrays = values.iter().map(|value| Arc::new(Int32Array::from(vec![*value])) as ArrayRef);
    KeyTuple(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays.collect()).unwrap())
}

/// Whether a condition of the kind that is written here holds for a row.
fn holds(text: &str, row: &[Option<i32>], parameters: &[Parameter]) -> bool {
    let text = text.trim();
    if text.is_empty() {
        return true;
    }
    for (word, all) in [(" OR ", false), (" AND ", true)] {
        let parts = split(text, word);
        if parts.len() > 1 {
            let mut parts = parts.into_iter().map(|part| holds(part, row, parameters));
            return if all { parts.all(|held| held) } else { parts.any(|held| held) };
        }
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return holds(inner, row, parameters);
    }
    let (name, condition) = text.strip_prefix("t.[k").unwrap().split_once("] ").unwrap();
    let value = row[name.parse::<usize>().unwrap()];
    match condition {
        "IS NULL" => return value.is_none(),
        "IS NOT NULL" => return value.is_some(),
        _ => {}
    }
    let (sign, marker) = condition.split_once(" CAST(@P").unwrap();
    let at: usize = marker.strip_suffix(" AS int)").unwrap().parse().unwrap();
    let Parameter::Int(given) = parameters[at - 1] else { panic!("an integer") };
    let Some(value) = value else { return false };
    let order = i64::from(value).cmp(&given);
    match sign {
        "=" => order == Ordering::Equal,
        ">" => order == Ordering::Greater,
        ">=" => order != Ordering::Less,
        "<" => order == Ordering::Less,
        other => panic!("{other}"),
    }
}

/// Splits at a word outside of parentheses. `CAST(...)` holds neither word.
fn split<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && text[at..].starts_with(word) => {
                parts.push(&text[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn cell() -> impl Strategy<Value = Option<i32>> {
    proptest::option::weighted(0.75, 0..3_i32)
}

proptest! {
    #[test]
    fn every_row_of_a_range_is_in_exactly_one_piece_and_no_other_row_in_any(
        columns in 1..4_usize,
        row in proptest::collection::vec(cell(), 3),
        from in proptest::option::of(proptest::collection::vec(cell(), 3)),
        to in proptest::option::of(proptest::collection::vec(cell(), 3)),
    ) {
        let key: Vec<_> = (0..columns).map(|at| column(&format!("k{at}"), true)).collect();
        let cut = |values: &Option<Vec<Option<i32>>>| {
            values.as_ref().map(|values| tuple(&key, &values[..columns]))
        };
        let range = KeyRange { from: cut(&from), to: cut(&to) };
        let pieces = pieces(&key, &range).unwrap();
        let parameters = &pieces.parameters.0;
        let found =
            pieces.predicates.iter().filter(|piece| holds(piece, &row, parameters)).count();
        let inside = from.is_none_or(|from| from[..columns] <= row[..columns])
            && to.is_none_or(|to| row[..columns] < to[..columns]);
        prop_assert_eq!(found, usize::from(inside), "{:?}", pieces.predicates);
    }
}

#[test]
fn a_range_of_one_column_is_one_seek() {
    let key = [column("k0", false)];
    let range = KeyRange { from: Some(tuple(&key, &[Some(1)])), to: Some(tuple(&key, &[Some(9)])) };
    let pieces = pieces(&key, &range).unwrap();
    assert_eq!(pieces.predicates, ["t.[k0] >= CAST(@P1 AS int) AND t.[k0] < CAST(@P2 AS int)"]);
}

#[test]
fn a_text_of_a_code_page_is_given_in_its_own_code_page() {
    let key = KeyColumn {
        sql_type: SqlType::VarChar(cdc_core::Length::Limited(20)),
        collation: Some("Greek_CI_AS".into()),
        ..column("k0", false)
    };
    assert_eq!(typed("@P1", &key), "CAST(@P1 COLLATE Greek_CI_AS AS varchar(20))");
}
