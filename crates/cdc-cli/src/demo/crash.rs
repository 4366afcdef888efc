//! A sink that stands still for ever in the middle of a staged batch: the place of the kill.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use cdc_core::{
    Column, Commit, Committed, Result, TableBatch, TableSpec, Verdict,
    port::{Attached, Sink, SinkCapabilities, TableSink, TargetState},
};
use tokio::sync::Notify;

/// A sink whose table `table` takes some pieces of a batch, and then never answers again.
pub(super) struct CrashingSink<S> {
    inner: S,
    table: &'static str,
    fuse: Arc<Fuse>,
}

struct Fuse {
    pieces_left: AtomicU64,
    blown: Notify,
}

impl<S> CrashingSink<S> {
    /// A sink that stands still after `pieces` pieces of a batch were staged.
    pub(super) fn new(inner: S, table: &'static str, pieces: u64) -> Self {
        let fuse = Fuse { pieces_left: AtomicU64::new(pieces), blown: Notify::new() };
        Self { inner, table, fuse: Arc::new(fuse) }
    }

    /// Ends when the sink stands still.
    pub(super) async fn crashed(&self) {
        self.fuse.blown.notified().await;
    }
}

#[async_trait]
impl<S: Sink> Sink for CrashingSink<S> {
    fn capabilities(&self) -> SinkCapabilities {
        self.inner.capabilities()
    }

    async fn attach(&self, spec: &TableSpec) -> Result<Attached> {
        let mut attached = self.inner.attach(spec).await?;
        if spec.name == self.table {
            let inner = Some(attached.table);
            attached.table =
                Box::new(CrashingTable { inner, fuse: Arc::clone(&self.fuse), staged: 0 });
        }
        Ok(attached)
    }

    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>> {
        self.inner.inspect(spec).await
    }

    async fn is_superseded(&self, spec: &TableSpec) -> Result<bool> {
        self.inner.is_superseded(spec).await
    }
}

struct CrashingTable {
    inner: Option<Box<dyn TableSink>>,
    fuse: Arc<Fuse>,
    /// Pieces of the batch in hand.
    staged: u64,
}

impl CrashingTable {
    fn inner(&mut self) -> Result<&mut Box<dyn TableSink>> {
        self.inner.as_mut().ok_or_else(|| cdc_core::Error::bug("the table was closed"))
    }
}

impl Drop for CrashingTable {
    fn drop(&mut self) {
        // A killed process runs no destructors: what was staged must not be tidied up.
        std::mem::forget(self.inner.take());
    }
}

#[async_trait]
impl TableSink for CrashingTable {
    async fn evolve(&mut self, columns: &[Column]) -> Result<()> {
        self.inner()?.evolve(columns).await
    }

    async fn stage(&mut self, batch: TableBatch) -> Result<()> {
        self.inner()?.stage(batch).await?;
        self.staged += 1;
        let left = self.fuse.pieces_left.load(Ordering::SeqCst);
        if left == 0 && self.staged >= 2 {
            self.fuse.blown.notify_one();
            std::future::pending::<()>().await;
        }
        self.fuse.pieces_left.store(left.saturating_sub(1), Ordering::SeqCst);
        Ok(())
    }

    async fn commit(&mut self, commit: Commit) -> Result<Committed> {
        self.staged = 0;
        self.inner()?.commit(commit).await
    }

    async fn discard(&mut self) -> Result<()> {
        self.staged = 0;
        self.inner()?.discard().await
    }

    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict> {
        self.inner()?.publish(verdict).await
    }

    async fn close(mut self: Box<Self>) -> Result<()> {
        match self.inner.take() {
            Some(inner) => inner.close().await,
            None => Ok(()),
        }
    }
}
