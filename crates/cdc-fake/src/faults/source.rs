//! A source that meets faults.

use std::sync::Arc;

use async_trait::async_trait;
use cdc_core::{
    CaptureInstance, ClosedRange, InstanceName, Position, Result, TableName, TableRef, Timestamp,
    port::{
        BatchStream, Bound, Catalog, ChangeReader, ChangeRequest, Finding, KeyRange, KeyTuple,
        PositionLog, RowRequest, SchemaChange, Sink, Source, SourceCapabilities, TableReader,
    },
};

use super::{FaultPlan, FaultySink, Operation, gate::Gate};

/// A source whose calls and streams go through a [`FaultPlan`]: one process's handle.
pub struct FaultySource {
    inner: Arc<dyn Source>,
    gate: Gate,
}

impl FaultySource {
    /// A handle on `inner` that meets the faults of `plan`.
    #[must_use]
    pub fn new(inner: Arc<dyn Source>, plan: &FaultPlan) -> Self {
        Self { inner, gate: Gate::new(plan) }
    }

    /// A handle on a sink in the same process: a crash ends both.
    #[must_use]
    pub fn sink(&self, inner: Arc<dyn Sink>) -> FaultySink {
        FaultySink::behind(inner, self.gate.clone())
    }

    /// The number of this process in the plan.
    #[must_use]
    pub const fn handle(&self) -> u32 {
        self.gate.handle()
    }

    /// True once a fault let the process of this handle die. A new handle is a new process.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.gate.is_dead()
    }
}

impl Source for FaultySource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn capabilities(&self) -> SourceCapabilities {
        self.inner.capabilities()
    }
}

#[async_trait]
impl Catalog for FaultySource {
    async fn instances(&self, table: &TableRef) -> Result<Vec<CaptureInstance>> {
        self.gate.call(Operation::Instances, self.inner.instances(table)).await
    }

    async fn schema_changes(
        &self,
        instance: &InstanceName,
        range: ClosedRange,
    ) -> Result<Vec<SchemaChange>> {
        let work = self.inner.schema_changes(instance, range);
        self.gate.call(Operation::SchemaChanges, work).await
    }

    async fn preflight(&self, tables: &[TableRef]) -> Result<Vec<Finding>> {
        self.gate.call(Operation::Preflight, self.inner.preflight(tables)).await
    }
}

#[async_trait]
impl PositionLog for FaultySource {
    async fn high(&self) -> Result<Bound> {
        self.gate.call(Operation::High, self.inner.high()).await
    }

    async fn low(&self, instances: &[InstanceName]) -> Result<Vec<Bound>> {
        self.gate.call(Operation::Low, self.inner.low(instances)).await
    }

    async fn commit_time(&self, at: Position) -> Result<Option<Timestamp>> {
        self.gate.call(Operation::CommitTime, self.inner.commit_time(at)).await
    }

    async fn entry_time(&self, at: Position) -> Result<Option<Timestamp>> {
        self.gate.call(Operation::CommitTime, self.inner.entry_time(at)).await
    }

    async fn position_at(&self, moment: Timestamp) -> Result<Option<Position>> {
        self.gate.call(Operation::PositionAt, self.inner.position_at(moment)).await
    }

    async fn nth_commit_after(&self, after: Position, count: u64) -> Result<Option<Position>> {
        let work = self.inner.nth_commit_after(after, count);
        self.gate.call(Operation::NthCommitAfter, work).await
    }
}

#[async_trait]
impl ChangeReader for FaultySource {
    async fn has_changes(&self, ranges: &[(InstanceName, ClosedRange)]) -> Result<Vec<bool>> {
        self.gate.call(Operation::HasChanges, self.inner.has_changes(ranges)).await
    }

    async fn changes(&self, request: ChangeRequest) -> Result<BatchStream> {
        let work = self.inner.changes(request);
        self.gate.open(Operation::Changes, Operation::ChangeBatch, work).await
    }
}

#[async_trait]
impl TableReader for FaultySource {
    async fn key_extent(
        &self,
        table: &TableName,
        key: &[String],
    ) -> Result<Option<(KeyTuple, KeyTuple)>> {
        let work = self.inner.key_extent(table, key);
        self.gate.call(Operation::KeyExtent, work).await
    }

    async fn key_bound(
        &self,
        table: &TableName,
        key: &[String],
        range: &KeyRange,
        rows: u64,
    ) -> Result<Option<KeyTuple>> {
        let work = self.inner.key_bound(table, key, range, rows);
        self.gate.call(Operation::KeyBound, work).await
    }

    async fn count(&self, table: &TableName, key: &[String], range: &KeyRange) -> Result<u64> {
        let work = self.inner.count(table, key, range);
        self.gate.call(Operation::Count, work).await
    }

    async fn rows(&self, request: RowRequest) -> Result<BatchStream> {
        let work = self.inner.rows(request);
        self.gate.open(Operation::Rows, Operation::RowBatch, work).await
    }
}
