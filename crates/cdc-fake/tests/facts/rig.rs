//! A database, a table and a source to drive in a test.

use std::time::Duration;

use arrow_array::RecordBatch;
use cdc_core::{
    ClosedRange, Column, InstanceName, Lsn, Position, Result, SqlType, TableName, TableRef,
    Timestamp,
    change::ChangeColumns,
    port::{Bound, Catalog, ChangeReader, ChangeRequest, PositionLog},
};
use cdc_fake::{
    CaptureSchedule, CommitInfo, EnableOptions, FakeDatabase, FakeServer, FakeSource, Login,
    SqlResult, TableDefinition, Transaction, Value, VirtualClock, Zone,
};
use futures_util::TryStreamExt;

pub(crate) struct Rig {
    pub(crate) database: FakeDatabase,
    pub(crate) source: FakeSource,
    pub(crate) table: TableName,
}

pub(crate) fn at(text: &str) -> Timestamp {
    let moment: chrono::DateTime<chrono::Utc> = text.parse().expect(text);
    moment.into()
}

pub(crate) fn table(name: &str) -> TableName {
    TableName::new("dbo", name)
}

impl Rig {
    /// A database in a zone, from a moment on, with capture at each commit, and a table
    /// `t(id int primary key, v int null, note nvarchar(max) null)` that is not captured yet.
    pub(crate) fn in_zone(zone: Zone, from: &str) -> Self {
        let server = FakeServer::new(VirtualClock::manual(at(from)), zone);
        let database = server.database("shop");
        database.set_capture(CaptureSchedule::AtCommit);
        let definition = TableDefinition::new("t")
            .column("id", SqlType::Int)
            .nullable("v", SqlType::Int)
            .nullable("note", SqlType::NVarChar(cdc_core::Length::Max))
            .primary_key(&["id"]);
        database.create_table(definition).expect("new");
        Self {
            source: FakeSource::new(&database, Login::Owner).expect("known zone"),
            database,
            table: table("t"),
        }
    }

    pub(crate) fn new() -> Self {
        Self::in_zone(Zone::UTC, "2026-03-01T00:00:00Z")
    }

    /// As [`Rig::new`], with `t` captured as `dbo_t`.
    pub(crate) fn captured() -> (Self, InstanceName) {
        let rig = Self::new();
        let instance = rig.enable("dbo_t");
        (rig, instance)
    }

    pub(crate) fn enable(&self, name: &str) -> InstanceName {
        self.database.enable_table(&self.table, EnableOptions::named(name)).expect("allowed")
    }

    pub(crate) fn source_of(&self, login: &str) -> FakeSource {
        FakeSource::new(&self.database, Login::named(login)).expect("known zone")
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.database.clock().advance(Duration::from_secs(seconds));
    }

    pub(crate) fn transact(
        &self,
        work: impl FnOnce(&mut Transaction) -> SqlResult<()>,
    ) -> CommitInfo {
        self.database.transact(work).expect("committed")
    }

    pub(crate) fn insert(&self, id: i64, v: i64) -> CommitInfo {
        self.transact(|tx| tx.insert(&self.table, row(id, v)))
    }

    pub(crate) fn update(&self, id: i64, v: i64) -> CommitInfo {
        self.transact(|tx| tx.update(&self.table, &[id.into()], &[("v", v.into())]).map(|_| ()))
    }

    /// Operations of the change table, in change order.
    pub(crate) fn operations(&self, instance: &InstanceName) -> Vec<i32> {
        let rows = self.database.change_rows(instance).expect("known");
        rows.iter().map(|row| row.operation.code()).collect()
    }

    pub(crate) async fn high(&self) -> Option<Lsn> {
        match self.source.high().await.expect("answers") {
            Bound::At(position) => Some(Lsn::try_from(position).expect("an lsn")),
            _ => None,
        }
    }

    pub(crate) async fn low(&self, instance: &InstanceName) -> Bound {
        let low = self.source.low(std::slice::from_ref(instance)).await;
        low.expect("answers")[0]
    }

    pub(crate) async fn columns(&self, instance: &InstanceName) -> Vec<Column> {
        let listed =
            self.source.instances(&TableRef::Instance(instance.clone())).await.expect("listed");
        let found = listed.into_iter().find(|found| found.name == *instance);
        found.expect("listed").columns
    }

    pub(crate) async fn request(
        &self,
        instance: &InstanceName,
        from: Lsn,
        to: Lsn,
        batch_rows: usize,
    ) -> ChangeRequest {
        ChangeRequest {
            instance: instance.clone(),
            columns: self.columns(instance).await,
            range: range(from, to),
            time_before: None,
            batch_rows,
        }
    }

    pub(crate) async fn read(
        &self,
        instance: &InstanceName,
        from: Lsn,
        to: Lsn,
        batch_rows: usize,
    ) -> Result<Vec<RecordBatch>> {
        let request = self.request(instance, from, to, batch_rows).await;
        self.source.changes(request).await?.try_collect().await
    }
}

pub(crate) fn row(id: i64, v: i64) -> Vec<Value> {
    vec![id.into(), v.into(), Value::Null]
}

pub(crate) fn range(from: Lsn, to: Lsn) -> ClosedRange {
    ClosedRange::new(Position::from(from), Position::from(to)).expect("not inverted")
}

pub(crate) fn count(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

pub(crate) fn operations(batches: &[RecordBatch]) -> Vec<i32> {
    batches
        .iter()
        .flat_map(|batch| {
            let columns = ChangeColumns::of(batch).expect("a change batch");
            columns.operations.values().to_vec()
        })
        .collect()
}

pub(crate) fn times(batches: &[RecordBatch]) -> Vec<Timestamp> {
    let mut times = Vec::new();
    for batch in batches {
        let columns = ChangeColumns::of(batch).expect("a change batch");
        times.extend((0..columns.len()).map(|row| columns.time(row).expect("a time")));
    }
    times
}
