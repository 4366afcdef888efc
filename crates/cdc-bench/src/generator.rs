//! A source that makes its rows while they are read, so that no commit is too large to hold.
//!
//! One table, one capture instance, and a log of equal commits. The key and the log's columns are
//! made anew for each record batch; the other columns come from a few batches of the data set over
//! and over.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use cdc_core::{
    CaptureInstance, ClosedRange, Error, ErrorKind, InstanceName, Lsn, Position, Result, TableName,
    TableRef, Timestamp,
    port::{
        BatchStream, Bound, Catalog, ChangeReader, ChangeRequest, Finding, KeyRange, KeyTuple,
        PositionLog, RowRequest, SchemaChange, Source, SourceCapabilities, TableReader,
    },
};
use futures_util::stream;

use crate::{
    Outcome,
    changes::{BATCH_ROWS, LogShape, change_rows, schema},
    columns::{captured, columns},
};

/// Batches of the data set that are used over and over.
const POOL: u64 = 4;

/// The source.
#[derive(Clone)]
pub(crate) struct Generator {
    instance: CaptureInstance,
    shape: LogShape,
    commits: u64,
    schema: SchemaRef,
    pool: Arc<Vec<Vec<ArrayRef>>>,
}

impl Generator {
    /// A log of `commits` commits with `rows_a_commit` rows each, an even number.
    pub(crate) fn new(commits: u64, rows_a_commit: u64) -> Outcome<Self> {
        let pool = (0..POOL).map(|part| captured(part, BATCH_ROWS)).collect::<Outcome<_>>()?;
        Ok(Self {
            instance: CaptureInstance {
                name: InstanceName::new("dbo_generated"),
                table: TableName::new("dbo", "generated"),
                start: first(),
                columns: columns(),
                key: vec!["id".into()],
            },
            shape: LogShape { rows_a_commit },
            commits,
            schema: schema()?,
            pool: Arc::new(pool),
        })
    }

    /// The table at the source.
    pub(crate) fn table(&self) -> TableRef {
        TableRef::Table(self.instance.table.clone())
    }

    fn end(&self) -> Position {
        self.shape.stamp(self.commits.saturating_sub(1)).position
    }

    /// The first commit at or behind a position.
    fn commit_from(&self, from: Position) -> u64 {
        // Commits are few or the search is short: positions ascend with their number.
        let (mut low, mut high) = (0, self.commits);
        while low < high {
            let middle = u64::midpoint(low, high);
            if self.shape.stamp(middle).position < from {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The rows of the log from `first` to before `end`, a batch at a time.
    fn rows(&self, first: u64, end: u64, batch_rows: u64) -> Outcome<Option<(u64, Batch)>> {
        if first >= end {
            return Ok(None);
        }
        // The images of an update stay together: first and end are even.
        let rows = batch_rows.min(end - first).min(BATCH_ROWS as u64) & !1;
        let at = usize::try_from(first / BATCH_ROWS as u64 % POOL)?;
        let pool = self.pool.get(at).ok_or("the pool is empty")?;
        let rows_wanted = usize::try_from(rows)?;
        let mut arrays: Vec<ArrayRef> =
            pool.iter().map(|array| array.slice(0, rows_wanted)).collect();
        if let Some(key) = arrays.first_mut() {
            let keys = (first..first + rows).map(|row| i64::try_from(row / 2 * 7_919 % 4_000_037));
            *key = Arc::new(Int64Array::from(keys.collect::<std::result::Result<Vec<_>, _>>()?));
        }
        let batch = change_rows(&self.schema, self.shape, first, &arrays)?;
        Ok(Some((first + rows, batch)))
    }
}

type Batch = arrow_array::RecordBatch;

/// The position before the log's first commit.
fn first() -> Position {
    Position::from(Lsn::from_u128(0x2D << 48).unwrap_or(Lsn::ZERO))
}

fn nothing(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, "the generating source has change rows alone")
        .with("asked", what)
}

#[async_trait]
impl Catalog for Generator {
    async fn instances(&self, _table: &TableRef) -> Result<Vec<CaptureInstance>> {
        Ok(vec![self.instance.clone()])
    }

    async fn schema_changes(
        &self,
        _instance: &InstanceName,
        _range: ClosedRange,
    ) -> Result<Vec<SchemaChange>> {
        Ok(Vec::new())
    }

    async fn preflight(&self, _tables: &[TableRef]) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

#[async_trait]
impl PositionLog for Generator {
    async fn high(&self) -> Result<Bound> {
        Ok(Bound::At(self.end()))
    }

    async fn low(&self, instances: &[InstanceName]) -> Result<Vec<Bound>> {
        Ok(instances.iter().map(|_| Bound::At(first())).collect())
    }

    async fn commit_time(&self, at: Position) -> Result<Option<Timestamp>> {
        let commit = self.shape.commit_at(at).filter(|commit| *commit < self.commits);
        Ok(commit.and_then(|commit| self.shape.stamp(commit).commit_time))
    }

    async fn position_at(&self, _moment: Timestamp) -> Result<Option<Position>> {
        Err(nothing("a position at a moment"))
    }

    async fn nth_commit_after(&self, after: Position, count: u64) -> Result<Option<Position>> {
        let next = self.commit_from(after.increment());
        let nth = next.saturating_add(count.saturating_sub(1)).min(self.commits.saturating_sub(1));
        Ok((next < self.commits).then(|| self.shape.stamp(nth).position))
    }
}

#[async_trait]
impl ChangeReader for Generator {
    async fn has_changes(&self, ranges: &[(InstanceName, ClosedRange)]) -> Result<Vec<bool>> {
        let has = |range: &ClosedRange| {
            let next = self.commit_from(range.from());
            next < self.commits && self.shape.stamp(next).position <= range.to()
        };
        Ok(ranges.iter().map(|(_, range)| has(range)).collect())
    }

    async fn changes(&self, request: ChangeRequest) -> Result<BatchStream> {
        let begin = self.commit_from(request.range.from()) * self.shape.rows_a_commit;
        let end = self.commit_from(request.range.to().increment()) * self.shape.rows_a_commit;
        let (this, batch_rows) = (self.clone(), request.batch_rows as u64);
        Ok(Box::pin(stream::try_unfold(begin, move |row| {
            let made = this.rows(row, end, batch_rows);
            let made = made.map(|next| next.map(|(row, batch)| (batch, row)));
            std::future::ready(
                made.map_err(|error| Error::bug("rows were not made").caused_by(error.to_string())),
            )
        })))
    }
}

#[async_trait]
impl TableReader for Generator {
    async fn key_extent(
        &self,
        _table: &TableName,
        _key: &[String],
    ) -> Result<Option<(KeyTuple, KeyTuple)>> {
        Err(nothing("keys"))
    }

    async fn key_bound(
        &self,
        _table: &TableName,
        _key: &[String],
        _range: &KeyRange,
        _rows: u64,
    ) -> Result<Option<KeyTuple>> {
        Err(nothing("keys"))
    }

    async fn count(&self, _table: &TableName, _key: &[String], _range: &KeyRange) -> Result<u64> {
        Err(nothing("a count"))
    }

    async fn rows(&self, _request: RowRequest) -> Result<BatchStream> {
        Err(nothing("rows"))
    }
}

impl Source for Generator {
    fn name(&self) -> &str {
        "generator"
    }

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities::new(10, true)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn every_commit_of_a_range_is_there_whole_and_no_other() {
        let source = Generator::new(5, 30_000).unwrap();
        let stamp = |commit| source.shape.stamp(commit).position;
        let range = ClosedRange::after(stamp(0), stamp(2)).unwrap();
        let request = ChangeRequest {
            instance: source.instance.name.clone(),
            columns: columns(),
            range,
            time_before: None,
            batch_rows: BATCH_ROWS,
        };
        let batches: Vec<_> = source.changes(request).await.unwrap().try_collect().await.unwrap();
        let rows: usize = batches.iter().map(|batch| batch.num_rows()).sum();
        assert_eq!(rows, 60_000);
        assert_eq!(source.nth_commit_after(stamp(0), 2).await.unwrap(), Some(stamp(2)));
        assert_eq!(source.nth_commit_after(stamp(4), 1).await.unwrap(), None);
        assert!(source.commit_time(stamp(3)).await.unwrap().is_some());
        assert!(source.commit_time(stamp(3).increment()).await.unwrap().is_none());
    }
}
