//! A sink that meets faults.

use std::sync::Arc;

use async_trait::async_trait;
use cdc_core::{
    Column, Commit, Committed, Result, TableBatch, TableSpec, Verdict,
    port::{Attached, Sink, SinkCapabilities, TableSink, TargetState},
};

use super::{FaultPlan, Operation, gate::Gate};

/// A sink whose calls, and whose tables' calls, go through a [`FaultPlan`]: one process's handle.
pub struct FaultySink {
    inner: Arc<dyn Sink>,
    gate: Gate,
}

struct FaultyTable {
    inner: Box<dyn TableSink>,
    gate: Gate,
}

impl FaultySink {
    /// A handle on `inner` that meets the faults of `plan`.
    #[must_use]
    pub fn new(inner: Arc<dyn Sink>, plan: &FaultPlan) -> Self {
        Self { inner, gate: Gate::new(plan) }
    }

    pub(super) fn behind(inner: Arc<dyn Sink>, gate: Gate) -> Self {
        Self { inner, gate }
    }

    /// True once a fault let the process of this handle die. A new handle is a new process.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.gate.is_dead()
    }
}

#[async_trait]
impl Sink for FaultySink {
    fn capabilities(&self) -> SinkCapabilities {
        self.inner.capabilities()
    }

    async fn attach(&self, spec: &TableSpec) -> Result<Attached> {
        let attached = self.gate.call(Operation::Attach, self.inner.attach(spec)).await?;
        Ok(Attached {
            table: Box::new(FaultyTable { inner: attached.table, gate: self.gate.clone() }),
            state: attached.state,
        })
    }

    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>> {
        self.gate.call(Operation::Inspect, self.inner.inspect(spec)).await
    }

    async fn is_superseded(&self, spec: &TableSpec) -> Result<bool> {
        self.gate.call(Operation::Inspect, self.inner.is_superseded(spec)).await
    }
}

#[async_trait]
impl TableSink for FaultyTable {
    async fn evolve(&mut self, columns: &[Column]) -> Result<()> {
        self.gate.call(Operation::Evolve, self.inner.evolve(columns)).await
    }

    async fn stage(&mut self, batch: TableBatch) -> Result<()> {
        self.gate.call(Operation::Stage, self.inner.stage(batch)).await
    }

    async fn commit(&mut self, commit: Commit) -> Result<Committed> {
        self.gate.call(Operation::Commit, self.inner.commit(commit)).await
    }

    async fn discard(&mut self) -> Result<()> {
        self.gate.call(Operation::Discard, self.inner.discard()).await
    }

    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict> {
        self.gate.call(Operation::Publish, self.inner.publish(verdict)).await
    }

    async fn close(self: Box<Self>) -> Result<()> {
        let Self { inner, gate } = *self;
        gate.call(Operation::Close, inner.close()).await
    }
}
