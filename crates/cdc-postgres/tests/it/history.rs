//! A history of one table, batch by batch, and what the table holds after each.

use std::collections::BTreeMap;

use cdc_conformance::{Cell, Feed, Rows, feed};
use cdc_core::{
    Column, Commit, Committed, Length, Mark, Result, SqlType, TableBatch, TableName, TableSpec,
    mark::next_sequence,
    port::{Sink, TableSink},
};

use crate::{private_server::Server, support::rows};

/// The width of SQL Server's positions.
pub(crate) const WIDTH: usize = 10;

/// A table of orders.
pub(crate) fn orders() -> TableSpec {
    let columns = vec![
        Column::new("id", 1, SqlType::Int, false),
        Column::new("Name", 2, SqlType::NVarChar(Length::Limited(40)), true),
        Column::new("amount", 3, SqlType::Decimal { precision: 12, scale: 2 }, true),
    ];
    table("orders", columns, &["id"])
}

pub(crate) fn table(name: &str, columns: Vec<Column>, key: &[&str]) -> TableSpec {
    let key = key.iter().map(|name| (*name).to_owned()).collect();
    TableSpec { name: name.into(), source: TableName::new("dbo", name), columns, key }
}

pub(crate) fn order(id: i64, name: &str, amount: i128) -> Vec<Cell> {
    vec![Cell::Int(id), Cell::text(name), Cell::Decimal(amount, 2)]
}

/// What the table holds: name and amount by key.
pub(crate) type State = BTreeMap<i64, (String, i128)>;

/// Batches of changes, each with what the table holds behind it.
pub(crate) struct History {
    pub(crate) batches: Vec<(TableBatch, State)>,
}

impl History {
    /// So many batches of so many changes, on few keys so that each changes often.
    pub(crate) fn new(batches: u64, changes: u64, keys: u64) -> Self {
        let (mut state, mut list, mut seed) = (State::new(), Vec::new(), 7u64);
        for commit in 1..=batches {
            let mut feed = Feed::new(&orders().columns);
            for change in 0..changes {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let id = i64::try_from((seed >> 33) % keys).unwrap();
                let new = (format!("n{commit}.{change}"), i128::from(seed >> 40));
                feed = match state.get(&id).cloned() {
                    None => feed.insert(commit, order(id, &new.0, new.1)),
                    Some(old) if seed >> 61 == 0 => {
                        state.remove(&id);
                        feed = feed.delete(commit, order(id, &old.0, old.1));
                        continue;
                    }
                    Some(old) => {
                        feed.update(commit, order(id, &old.0, old.1), order(id, &new.0, new.1))
                    }
                };
                state.insert(id, new);
            }
            list.push((feed.changes().unwrap(), state.clone()));
        }
        Self { batches: list }
    }

    /// The batch that follows a mark, with the mark it is committed with; none at the end.
    pub(crate) fn after(&self, mark: Option<&Mark>) -> Option<(TableBatch, Commit)> {
        let done = usize::try_from(mark.map_or(0, |mark| mark.sequence)).unwrap();
        let (batch, _) = self.batches.get(done)?;
        let sequence = next_sequence(mark);
        Some((batch.clone(), commit(sequence, sequence)))
    }

    /// What the table holds at a mark.
    pub(crate) fn at(&self, mark: Option<&Mark>) -> State {
        match mark {
            None => State::new(),
            Some(mark) => self.batches[usize::try_from(mark.sequence).unwrap() - 1].1.clone(),
        }
    }
}

pub(crate) fn commit(sequence: u64, end: u64) -> Commit {
    feed::commit(feed::mark(WIDTH, sequence, end).unwrap())
}

/// Attaches and commits batches until the history is at its end.
pub(crate) async fn catch_up(sink: &dyn Sink, history: &History) -> Result<()> {
    let mut attached = sink.attach(&orders()).await?;
    let mut mark = attached.state.mark;
    while let Some((batch, commit)) = history.after(mark.as_ref()) {
        mark = Some(commit.mark);
        step(attached.table.as_mut(), batch, commit).await?;
    }
    Ok(())
}

pub(crate) async fn step(
    table: &mut dyn TableSink,
    batch: TableBatch,
    commit: Commit,
) -> Result<Committed> {
    table.stage(batch).await?;
    table.commit(commit).await
}

/// Fails unless a reader sees exactly this.
pub(crate) async fn must_hold(server: &Server, schema: &str, state: &State) {
    let batches = rows(server, schema, "orders").await;
    let found = Rows::read(&batches, ["id", "name", "amount"], false).unwrap();
    let found: Vec<_> = found.as_slice().iter().map(|row| row.cells.clone()).collect();
    let expected: Vec<BTreeMap<String, Cell>> = state
        .iter()
        .map(|(id, (name, amount))| {
            let names = ["id", "name", "amount"].map(str::to_owned);
            names.into_iter().zip(order(*id, name, *amount)).collect()
        })
        .collect();
    let mut sorted = (found, expected);
    sorted.0.sort();
    sorted.1.sort();
    assert!(sorted.0 == sorted.1, "the table differs from its source");
}
