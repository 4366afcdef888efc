//! The table that most cases play on, and the reading of its changes.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use cdc_core::{
    CaptureInstance, ClosedRange, Column, Epoch, InstanceName, Length, Position, SqlType,
    TableName, TableRef, Timestamp,
    change::{ChangeColumns, change_schema, field},
    port::{BatchStream, Bound, ChangeRequest, Source},
};
use futures_util::StreamExt;

use super::{SourceHarness, Statement};
use crate::{
    cell::Cell,
    outcome::{Failure, check, same},
};

/// Rows of a record batch where a case is not about batches.
pub(super) const BATCH_ROWS: usize = 100;

/// One change as a case looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) commit: Position,
    pub(super) command: Option<i32>,
    pub(super) sequence: Option<Vec<u8>>,
    pub(super) operation: i32,
    pub(super) time: Option<Timestamp>,
    pub(super) cells: BTreeMap<String, Cell>,
}

impl Change {
    /// The value of a column.
    pub(super) fn cell(&self, column: &str) -> Cell {
        self.cells.get(column).cloned().unwrap_or(Cell::Null)
    }
}

/// A database whose table `dbo.orders` is captured as `dbo_orders`.
pub(super) struct Scene<'a> {
    pub(super) harness: &'a dyn SourceHarness,
    pub(super) source: Arc<dyn Source>,
}

/// The table of every scene.
pub(super) fn orders() -> TableName {
    TableName::new("dbo", "orders")
}

/// Its first instance.
pub(super) fn instance() -> InstanceName {
    InstanceName::new("dbo_orders")
}

/// Its columns.
pub(super) fn columns() -> Vec<Column> {
    let amount = SqlType::Decimal { precision: 12, scale: 2 };
    vec![
        Column::new("id", 1, SqlType::Int, false),
        Column::new("Name", 2, SqlType::NVarChar(Length::Limited(40)), true),
        Column::new("amount", 3, amount, true),
    ]
}

/// Inserts an order.
pub(super) fn insert(id: i64, name: &str) -> Statement {
    Statement::Insert(
        orders(),
        vec![Cell::Int(id), Cell::text(name), Cell::Decimal(i128::from(id), 2)],
    )
}

/// Renames an order.
pub(super) fn rename(id: i64, name: &str) -> Statement {
    Statement::Update {
        table: orders(),
        key: vec![Cell::Int(id)],
        set: vec![("Name".to_owned(), Cell::text(name))],
    }
}

/// Deletes an order.
pub(super) fn delete(id: i64) -> Statement {
    Statement::Delete(orders(), vec![Cell::Int(id)])
}

impl<'a> Scene<'a> {
    /// A database with the table, captured up to its enabling and one first order, number 1000.
    pub(super) async fn open(harness: &'a dyn SourceHarness) -> Result<Scene<'a>, Failure> {
        let scene = Self::bare(harness).await?;
        scene.commit(&[insert(1000, "first")]).await?;
        Ok(scene)
    }

    /// A database with the table, enabled and captured, but without any order.
    pub(super) async fn bare(harness: &'a dyn SourceHarness) -> Result<Scene<'a>, Failure> {
        harness.create_table(&orders(), &columns(), &["id"]).await?;
        harness.enable(&orders(), &instance(), None).await?;
        harness.capture().await?;
        let source = harness.source().await;
        Ok(Self { harness, source })
    }

    /// Commits one transaction and lets capture process it; returns high behind it.
    pub(super) async fn commit(&self, statements: &[Statement]) -> Result<Position, Failure> {
        self.harness.transact(statements).await?;
        self.harness.capture().await?;
        self.high().await
    }

    /// The high position, which must be one.
    pub(super) async fn high(&self) -> Result<Position, Failure> {
        position("high", self.source.high().await?)
    }

    /// The low position of an instance, which must be one.
    pub(super) async fn low(&self, instance: &InstanceName) -> Result<Position, Failure> {
        let bounds = self.source.low(std::slice::from_ref(instance)).await?;
        match bounds.as_slice() {
            [bound] => position("low", *bound),
            other => Err(Failure::new(format!("one low position asked, found {other:?}"))),
        }
    }

    /// The instances of the table.
    pub(super) async fn instances(&self) -> Result<Vec<CaptureInstance>, Failure> {
        Ok(self.source.instances(&TableRef::Table(orders())).await?)
    }

    /// The instance of this name.
    pub(super) async fn find(&self, name: &InstanceName) -> Result<CaptureInstance, Failure> {
        let all = self.instances().await?;
        all.into_iter()
            .find(|instance| &instance.name == name)
            .ok_or_else(|| Failure::new(format!("the table has no instance {name}")))
    }

    /// Everything of the first instance from its low position to high.
    pub(super) async fn all(&self) -> Result<Vec<Change>, Failure> {
        let range = range(self.low(&instance()).await?, self.high().await?)?;
        self.read(&instance(), range).await
    }

    /// The changes of an instance in a range, with the instance's own columns.
    pub(super) async fn read(
        &self,
        instance: &InstanceName,
        range: ClosedRange,
    ) -> Result<Vec<Change>, Failure> {
        let columns = self.find(instance).await?.columns;
        self.request(request(instance, columns, range)).await
    }

    /// The changes of a request. Checks the schema, the sizes, and that no pair is split.
    pub(super) async fn request(&self, request: ChangeRequest) -> Result<Vec<Change>, Failure> {
        let width = self.source.capabilities().position_width;
        let schema = change_schema(width.into(), &request.columns)?;
        let rows_max = request.batch_rows;
        let epoch = request.range.from().epoch();
        let mut stream = self.source.changes(request).await?;
        let mut all = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            same("the schema of changes", batch.schema().fields(), schema.fields())?;
            check(
                batch.num_rows() <= rows_max.saturating_add(1),
                format!("{} rows in a batch of {rows_max}", batch.num_rows()),
            )?;
            let some = changes(&batch, epoch)?;
            let pairs = |code: i32| some.iter().filter(|change| change.operation == code).count();
            same("after images beside their before images", pairs(4), pairs(3))?;
            if rows_max > 1 && some.len() > rows_max {
                let last = some.last().map(|change| change.operation);
                same("the row that exceeds a batch", last, Some(4))?;
            }
            all.extend(some);
        }
        Ok(all)
    }
}

/// A request of a whole range.
pub(super) fn request(
    instance: &InstanceName,
    columns: Vec<Column>,
    range: ClosedRange,
) -> ChangeRequest {
    ChangeRequest {
        instance: instance.clone(),
        columns,
        range,
        time_before: None,
        batch_rows: BATCH_ROWS,
    }
}

/// A range that must not be empty.
pub(super) fn range(from: Position, to: Position) -> Result<ClosedRange, Failure> {
    ClosedRange::new(from, to)
        .ok_or_else(|| Failure::new(format!("positions went back: from {from} to {to}")))
}

/// How a request that must fail does so: at once, or with the first item of its stream.
pub(super) async fn failed(
    source: &Arc<dyn Source>,
    request: ChangeRequest,
) -> cdc_core::Result<()> {
    let mut stream = source.changes(request).await?;
    stream.next().await.transpose().map(drop)
}

/// Every batch of a stream that must not fail.
pub(super) async fn whole(mut stream: BatchStream) -> Result<Vec<RecordBatch>, Failure> {
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        batches.push(batch?);
    }
    Ok(batches)
}

/// The rows of batches as cells by column, in the order in which they came.
pub(super) fn cells(
    batch: &RecordBatch,
    skip: usize,
) -> Result<Vec<BTreeMap<String, Cell>>, Failure> {
    let schema = batch.schema();
    let mut rows = vec![BTreeMap::new(); batch.num_rows()];
    for (field, array) in schema.fields().iter().zip(batch.columns()).skip(skip) {
        for (row, cells) in rows.iter_mut().enumerate() {
            cells.insert(field.name().clone(), Cell::of(array.as_ref(), row)?);
        }
    }
    Ok(rows)
}

fn position(what: &str, bound: Bound) -> Result<Position, Failure> {
    match bound {
        Bound::At(position) => Ok(position),
        other => Err(Failure::new(format!("{what} is no position: {other:?}"))),
    }
}

fn changes(batch: &RecordBatch, epoch: Epoch) -> Result<Vec<Change>, Failure> {
    let columns = ChangeColumns::of(batch)?;
    let rows = cells(batch, field::COUNT)?;
    let change = |(row, cells)| {
        let order = columns.order(row);
        Ok(Change {
            commit: Position::new(epoch, order.commit)?,
            command: order.command,
            sequence: order.sequence.map(<[u8]>::to_vec),
            operation: order.operation,
            time: columns.time(row),
            cells,
        })
    };
    rows.into_iter().enumerate().map(change).collect()
}
