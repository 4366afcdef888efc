//! One table of the sink, owned by one runner: rows are reduced to one a key in memory, staged on
//! the server when they become many, and applied with their mark in one transaction.

use std::sync::Arc;

use async_trait::async_trait;
use cdc_core::{
    Column, Commit, Committed, Epoch, Error, ErrorKind, Origin, Result, TableBatch, TableSpec,
    Verdict, port::TableSink, table::NullMeaning,
};

use crate::{
    config::{NulInText, PostgresConfig},
    layout::Layout,
    name,
    piece::Piece,
    store::{Session, Store},
};

/// What a table is told of the settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of rows in memory before they go to the server.
    pub(crate) stage_bytes_max: usize,
    /// What is done about U+0000.
    pub(crate) nul_in_text: NulInText,
}

impl Limits {
    pub(crate) const fn of(config: &PostgresConfig) -> Self {
        Self { stage_bytes_max: config.stage_bytes_max, nul_in_text: config.nul_in_text }
    }
}

/// One runner's hold on a table.
pub(crate) struct PostgresTable {
    store: Arc<dyn Store>,
    limits: Limits,
    name: String,
    runner: i64,
    layout: Layout,
    /// What a NULL in each column of the layout says in a change row.
    meanings: Vec<NullMeaning>,
    /// Rows that are not on the server yet.
    piece: Piece,
    /// The epoch of the staged snapshot rows.
    epoch: Option<Epoch>,
    /// How many U+0000 were replaced in what is staged.
    replaced: u64,
    /// The session that has rows on the server; none without such rows.
    staged: Option<Box<dyn Session>>,
}

impl PostgresTable {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        limits: Limits,
        spec: &TableSpec,
        layout: Layout,
        runner: i64,
    ) -> Self {
        let mut table = Self {
            store,
            limits,
            name: spec.name.clone(),
            runner,
            piece: Piece::new(layout.columns.len()),
            meanings: vec![NullMeaning::Null; layout.columns.len()],
            layout,
            epoch: None,
            replaced: 0,
            staged: None,
        };
        table.learn(&spec.columns);
        table
    }

    /// Notes what a NULL in these columns says.
    fn learn(&mut self, columns: &[Column]) {
        self.meanings.resize(self.layout.columns.len(), NullMeaning::Null);
        for column in columns {
            let place = self.layout.place(&column.name);
            if let Some(meaning) = place.and_then(|place| self.meanings.get_mut(place)) {
                *meaning = column.null_meaning();
            }
        }
    }

    /// Brings the rows in memory to the server.
    async fn flush(&mut self) -> Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let (mut session, _) = self.session().await?;
        let piece = std::mem::replace(&mut self.piece, Piece::new(self.layout.columns.len()));
        self.replaced = self.replaced.saturating_add(piece.replaced());
        session.stage(&self.name, &self.layout, &piece).await?;
        self.staged = Some(session);
        Ok(())
    }

    /// Forgets everything staged. A session that cannot be cleared is dropped.
    async fn forget(&mut self) -> Result<()> {
        self.piece = Piece::new(self.layout.columns.len());
        self.epoch = None;
        self.replaced = 0;
        match self.staged.take() {
            Some(mut session) => session.clear().await,
            None => Ok(()),
        }
    }

    /// The session of a step: the one with the staged rows, so that a table never holds two, or
    /// another; and whether rows are staged in it.
    async fn session(&mut self) -> Result<(Box<dyn Session>, bool)> {
        match self.staged.take() {
            Some(session) => Ok((session, true)),
            None => Ok((self.store.session().await?, false)),
        }
    }

    /// Begins the step of an owner.
    async fn owned(&mut self, session: &mut Box<dyn Session>) -> Result<crate::record::Record> {
        let record = session.begin(&self.name, false).await?.ok_or_else(|| {
            Error::new(ErrorKind::InvalidData, "the target's record is gone")
                .with("table", &self.name)
                .remedy("restore the table's row of cdc_control, or drop the target as well")
        })?;
        record.is_owned_by(&self.name, self.runner)?;
        Ok(record)
    }
}

#[async_trait]
impl TableSink for PostgresTable {
    async fn evolve(&mut self, columns: &[Column]) -> Result<()> {
        name::columns(&self.name, columns)?;
        // What is in memory has the columns of before.
        self.flush().await?;
        let (mut session, staged) = self.session().await?;
        let mut record = self.owned(&mut session).await?;
        let added = self.layout.missing(&self.name, columns)?;
        if added.is_empty() {
            session.roll_back().await?;
            self.staged = staged.then_some(session);
            self.learn(columns);
            return Ok(());
        }
        let count = added.len();
        record.columns.extend(added.iter().map(|column| column.name.clone()));
        let mut layout = self.layout.clone();
        layout.columns.extend(added);
        session.add(&self.name, &layout, count).await?;
        session.save(&self.name, &record).await?;
        session.commit().await?;
        self.staged = staged.then_some(session);
        self.layout = layout;
        self.piece = Piece::new(self.layout.columns.len());
        self.learn(columns);
        Ok(())
    }

    async fn stage(&mut self, batch: TableBatch) -> Result<()> {
        if let Origin::Snapshot(stamp) | Origin::Chunk { stamp, .. } = &batch.origin {
            let epoch = stamp.position.epoch();
            if *self.epoch.get_or_insert(epoch) != epoch {
                return Err(Error::bug("rows of two epochs in one commit")
                    .with("table", &self.name)
                    .with("position", stamp.position));
            }
        }
        self.piece.take(
            &self.name,
            &self.layout,
            &self.meanings,
            self.limits.nul_in_text,
            &batch,
        )?;
        if self.piece.size() >= self.limits.stage_bytes_max {
            self.flush().await?;
        }
        Ok(())
    }

    async fn commit(&mut self, commit: Commit) -> Result<Committed> {
        let mark = commit.mark;
        if self.epoch.is_some_and(|epoch| epoch != mark.epoch()) {
            return Err(Error::bug("the rows are of another epoch than their mark")
                .with("table", &self.name)
                .with("position", mark.end));
        }
        self.flush().await?;
        let (mut session, staged) = self.session().await?;
        let mut record = self.owned(&mut session).await?;
        if record.follows(&self.name, &mark)? == Committed::Before {
            session.roll_back().await?;
            self.staged = staged.then_some(session);
            self.forget().await?;
            return Ok(Committed::Before);
        }
        if staged {
            session.merge(&self.name, mark.epoch()).await?;
        }
        record.mark = Some(mark);
        session.save(&self.name, &record).await?;
        session.commit().await?;
        if self.replaced > 0 {
            tracing::warn!(
                table = self.name,
                count = self.replaced,
                position = %mark.end,
                "U+0000 in texts was replaced"
            );
        }
        self.replaced = 0;
        self.epoch = None;
        Ok(Committed::Now)
    }

    async fn discard(&mut self) -> Result<()> {
        self.forget().await
    }

    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict> {
        let (mut session, staged) = self.session().await?;
        let mut record = self.owned(&mut session).await?;
        let stored = record.allows(&self.name, verdict)?;
        record.verdict = Some(stored);
        session.save(&self.name, &record).await?;
        session.commit().await?;
        self.staged = staged.then_some(session);
        Ok(stored)
    }

    async fn close(mut self: Box<Self>) -> Result<()> {
        self.forget().await
    }
}
