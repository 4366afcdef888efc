//! One runner of a case: a table of the sink under test, and the model beside it.

use std::sync::Arc;

use cdc_core::{
    Column, Committed, Length, Mark, SqlType, TableBatch, TableName, TableSpec,
    port::{Sink, TableSink, TargetState},
};

use super::SinkHarness;
use crate::{
    cell::Cell,
    feed::{self, Feed},
    model::Model,
    outcome::{Failure, same},
    rows::Rows,
};

/// The width of positions where a case is not about widths: SQL Server's.
pub(super) const WIDTH: usize = 10;

/// A table with a whole-number key, a text and an amount.
pub(super) fn orders() -> TableSpec {
    table(
        "orders",
        vec![
            Column::new("id", 1, SqlType::Int, false),
            Column::new("Name", 2, SqlType::NVarChar(Length::Limited(40)), true),
            Column::new("amount", 3, SqlType::Decimal { precision: 12, scale: 2 }, true),
        ],
    )
}

/// A table of these columns whose key is `id`.
pub(super) fn table(name: &str, columns: Vec<Column>) -> TableSpec {
    TableSpec {
        name: name.to_owned(),
        source: TableName::new("dbo", name),
        columns,
        key: vec!["id".to_owned()],
    }
}

/// A row of [`orders`].
pub(super) fn order(id: i64, name: &str, amount: i128) -> Vec<Cell> {
    vec![Cell::Int(id), Cell::text(name), Cell::Decimal(amount, 2)]
}

/// A runner that attached a table, and what the target must hold by now.
pub(super) struct Session<'a> {
    pub(super) harness: &'a dyn SinkHarness,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) table: Box<dyn TableSink>,
    pub(super) spec: TableSpec,
    pub(super) model: Model,
    pub(super) mark: Option<Mark>,
}

impl<'a> Session<'a> {
    /// Attaches a table that does not exist yet.
    pub(super) async fn open(
        harness: &'a dyn SinkHarness,
        spec: TableSpec,
    ) -> Result<Session<'a>, Failure> {
        let sink = harness.sink().await;
        let attached = sink.attach(&spec).await?;
        same("the state of an empty target", attached.state, TargetState::default())?;
        let model = Model::new(&spec, sink.capabilities());
        Ok(Self { harness, sink, table: attached.table, spec, model, mark: None })
    }

    /// No rows yet, of the table's columns.
    pub(super) fn feed(&self) -> Feed {
        Feed::new(&self.spec.columns)
    }

    /// Stages rows in the sink and in the model.
    pub(super) async fn stage(&mut self, batch: TableBatch) -> Result<(), Failure> {
        self.model.stage(&batch)?;
        self.table.stage(batch).await?;
        Ok(())
    }

    /// The mark after the durable one, ending at the made-up commit `number`.
    pub(super) fn next(&self, number: u64) -> Result<Mark, Failure> {
        feed::mark(WIDTH, cdc_core::mark::next_sequence(self.mark.as_ref()), number)
    }

    /// Commits what is staged with the next mark, which ends at the made-up commit `number`.
    pub(super) async fn commit(&mut self, number: u64) -> Result<(), Failure> {
        let mark = self.next(number)?;
        self.commit_mark(mark).await
    }

    /// Commits what is staged with `mark`.
    pub(super) async fn commit_mark(&mut self, mark: Mark) -> Result<(), Failure> {
        let committed = self.table.commit(feed::commit(mark)).await?;
        same("the answer to a new mark", committed, Committed::Now)?;
        self.model.commit();
        self.mark = Some(mark);
        Ok(())
    }

    /// Fills the table with one order and commits it as the first mark, ending at commit 10.
    pub(super) async fn filled(harness: &'a dyn SinkHarness) -> Result<Session<'a>, Failure> {
        let mut session = Self::open(harness, orders()).await?;
        let batch = session.feed().insert(10, order(1, "ink", 250)).changes()?;
        session.stage(batch).await?;
        session.commit(10).await?;
        Ok(session)
    }

    /// Gives the table up without a word, attaches it through a fresh handle, and checks that
    /// what is durable is what was committed.
    pub(super) async fn reattach(&mut self) -> Result<(), Failure> {
        self.sink = self.harness.sink().await;
        let attached = self.sink.attach(&self.spec).await?;
        self.table = attached.table;
        self.model.discard();
        same("the durable mark", attached.state.mark, self.mark)
    }

    /// What a reader sees.
    pub(super) async fn seen(&mut self) -> Result<Rows, Failure> {
        let batches = self.harness.rows(&self.spec).await?;
        let history = self.sink.capabilities().keeps_history;
        Rows::read(&batches, self.model.columns(), history)
    }

    /// Fails unless a reader sees what the model holds, and a fresh handle the durable mark.
    pub(super) async fn check(&mut self, moment: &str) -> Result<(), Failure> {
        let seen = self.seen().await?;
        seen.must_equal(&self.model.rows()).map_err(|failure| failure.during(moment))?;
        let state = self.harness.sink().await.inspect(&self.spec).await?;
        let mark = state.and_then(|state| state.mark);
        same("the durable mark", mark, self.mark).map_err(|failure| failure.during(moment))
    }
}
