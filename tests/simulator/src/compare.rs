//! The newest image of every key against the source's rows.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use cdc_conformance::{cell::Cell, image, rows::Rows};
use cdc_core::{
    Column, Lsn, Position, TableRef,
    change::Operation,
    port::{Catalog, KeyRange, RowRequest, TableReader},
    schema,
};
use futures_executor::block_on;
use futures_util::{StreamExt, TryStreamExt};

use crate::{
    invariant::Invariant,
    oracle,
    script::{Key, Shape},
    stage::{BASE, source_name},
    yard::Yard,
};

/// Compares every table that has not ended. With `whole`, every row was changed since the newest
/// instance began, so that all of its columns are known.
pub(crate) fn compare(yard: &Yard, shape: &Shape, ended: &BTreeSet<String>, whole: bool) {
    let base = |_| BASE.iter().map(|name| (*name).to_owned()).collect();
    for (table, key) in yard.stage.tables().iter().zip(&shape.tables) {
        let Some(first) = yard.auditor.book(table).first else { continue };
        if let Err(why) = yard.auditor.history(table) {
            yard.record.broken(Invariant::LogReadable, why);
        }
        let archive = yard.database.archive(0);
        let missed = oracle::changes(&archive, table, Position::from(Lsn::ZERO), first, &base);
        let begun_later = missed.iter().any(|change| change.required);
        if ended.contains(*table) || (!whole && begun_later) {
            continue;
        }
        let compared = match key {
            Key::Heap if begun_later => continue,
            Key::Heap => heap(yard, table),
            _ => keyed(yard, table, whole),
        };
        if let Err(detail) = compared {
            yard.record.broken(Invariant::QuietEqualsSource, format!("{table}: {detail}"));
        }
    }
}

/// Rows without a key: as many of each as the changes leave.
fn heap(yard: &Yard, table: &str) -> Result<(), String> {
    let read = |batches: &[RecordBatch], history| {
        Rows::read(batches, BASE, history).map_err(|why| why.to_string())
    };
    let mut left: BTreeMap<BTreeMap<String, Cell>, i64> = BTreeMap::new();
    for row in read(&yard.auditor.history(table)?, true)?.as_slice() {
        let gone = row.lead.as_ref().is_some_and(|lead| {
            let [delete, before] =
                [Operation::Delete, Operation::UpdateBefore].map(Operation::code);
            [Cell::Int(delete.into()), Cell::Int(before.into())].contains(&lead.operation)
        });
        *left.entry(row.cells.clone()).or_default() += if gone { -1 } else { 1 };
    }
    let (rows, _) = source_rows(yard, table)?;
    for row in read(&rows, false)?.as_slice() {
        *left.entry(row.cells.clone()).or_default() -= 1;
    }
    left.retain(|_, times| *times != 0);
    yard.record.note(format!("compare {table} as a heap"));
    match left.iter().next() {
        None => Ok(()),
        Some((row, times)) => Err(format!("{times} too many of {row:?}")),
    }
}

fn keyed(yard: &Yard, table: &str, whole: bool) -> Result<(), String> {
    let (rows, columns) = source_rows(yard, table)?;
    let captured: Vec<&str> = if whole {
        let live = yard.stage.columns(table);
        let newest = block_on(yard.source()?.instances(&TableRef::Table(source_name(table))))
            .map_err(|error| error.report())?;
        let newest = newest.last().ok_or("not captured")?.clone();
        let known =
            |column: &&Column| newest.column(&column.name).is_some() && live.contains(&column.name);
        columns.iter().filter(known).map(|column| column.name.as_str()).collect()
    } else {
        BASE.to_vec()
    };
    let history = yard.auditor.history(table)?;
    let copy = image::newest(&history, &captured, &["id"]).map_err(|why| why.to_string())?;
    let source = image::present(&rows, &captured).map_err(|why| why.to_string())?;
    yard.record.note(format!("compare {table} {} rows", source.len()));
    if copy == source {
        return Ok(());
    }
    let lacking = source.iter().find(|row| !copy.contains(row));
    let extra = copy.iter().find(|row| !source.contains(row));
    let shown = lacking.or(extra).and_then(|row| row.get("id"));
    Err(format!(
        "{} rows, the source {}: lacking {lacking:?}, extra {extra:?}, its changes: {}",
        copy.len(),
        source.len(),
        story(&history, shown)
    ))
}

/// The changes of one row in a history, in order.
fn story(history: &[RecordBatch], id: Option<&Cell>) -> String {
    let Ok(rows) = Rows::read(history, BASE, true) else { return "unreadable".into() };
    let of_row = rows.as_slice().iter().filter(|row| row.cells.get("id") == id);
    let lines = of_row.filter_map(|row| {
        let lead = row.lead.as_ref()?;
        let place = (&lead.commit, &lead.command, &lead.sequence, &lead.operation);
        Some(format!("{place:?}"))
    });
    lines.collect::<Vec<_>>().join("; ")
}

fn source_rows(yard: &Yard, table: &str) -> Result<(Vec<RecordBatch>, Vec<Column>), String> {
    let source = yard.source()?;
    let work = async {
        let instances = source.instances(&TableRef::Table(source_name(table))).await?;
        let columns = schema::union(&instances)?;
        let request = RowRequest {
            table: source_name(table),
            columns: columns.clone(),
            key: Vec::new(),
            range: KeyRange::default(),
            batch_rows: 1_000,
        };
        let rows = source.rows(request).await?.boxed().try_collect().await?;
        Ok((rows, columns))
    };
    block_on(work).map_err(|error: cdc_core::Error| error.report())
}
