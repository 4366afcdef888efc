//! Streams of change rows: each batch is read from the change table as it is at that moment, so
//! that rows which cleanup removes meanwhile are missing without an error.

use arrow_array::{
    ArrayRef,
    builder::{FixedSizeBinaryBuilder, Int32Builder, TimestampMicrosecondBuilder},
};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use cdc_core::{
    ClosedRange, Column, Error, ErrorKind, InstanceName, Lsn, Result, Timestamp,
    change::change_schema,
    port::{BatchStream, ChangeReader, ChangeRequest},
    time::CommitClock,
};
use futures_util::stream;

use super::{FakeSource, by_id, lsns, unknown};
use crate::{
    columnar::{ColumnBuilder, batch},
    database::DatabaseState,
    injection::Call,
    instance::{CapturedCell, ChangeEntry, Instance},
    log::InstanceId,
    sql_error::SqlError,
};

/// The width of an LSN, as Arrow counts it.
const WIDTH: i32 = 10;

#[async_trait]
impl ChangeReader for FakeSource {
    async fn has_changes(&self, ranges: &[(InstanceName, ClosedRange)]) -> Result<Vec<bool>> {
        self.ask(Call::HasChanges, |state| {
            ranges
                .iter()
                .map(|(name, range)| {
                    let instance = state.instance(name).ok_or_else(|| unknown(name))?;
                    self.require_changes(state, instance)?;
                    let (from, to) = lsns(*range)?;
                    Ok(instance.has_rows(from, to))
                })
                .collect()
        })
        .await
    }

    async fn changes(&self, request: ChangeRequest) -> Result<BatchStream> {
        let (from, to) = lsns(request.range)?;
        let schema = change_schema(WIDTH, &request.columns)?;
        let kill = self.database.next_kill(Call::Changes);
        let (instance, clock) = self
            .ask(Call::Changes, |state| {
                let instance =
                    state.instance(&request.instance).ok_or_else(|| unknown(&request.instance))?;
                self.require_changes(state, instance)?;
                for wanted in &request.columns {
                    by_id(&instance.columns, wanted).ok_or_else(|| {
                        Error::new(ErrorKind::Config, "column is not captured")
                            .with("instance", &request.instance)
                            .with("column", &wanted.name)
                    })?;
                }
                Ok((instance.id, self.clock_before(state, from, request.time_before)))
            })
            .await?;
        let reader = Reader {
            source: self.clone(),
            instance,
            name: request.instance,
            columns: request.columns,
            schema,
            cursor: (from.decrement(), i32::MAX),
            from,
            to,
            rows: request.batch_rows.max(1),
            clock,
            kill,
            time: None,
        };
        Ok(Box::pin(stream::try_unfold(reader, Reader::next)))
    }
}

impl FakeSource {
    fn require_changes(&self, state: &DatabaseState, instance: &Instance) -> Result<()> {
        state
            .permissions
            .require_changes(&self.login, &instance.name)
            .map_err(|error| Error::from(error).with("instance", &instance.name))
    }

    /// The clock for commits from `from` on: behind the time the caller knows, or behind the last
    /// entry of the mapping before the range.
    fn clock_before(
        &self,
        state: &DatabaseState,
        from: Lsn,
        known: Option<Timestamp>,
    ) -> CommitClock {
        let before = state
            .mapping
            .at_or_before(from.decrement())
            .map(|entry| super::positions::moment(state, self.zone, entry));
        match before.max(known) {
            Some(time) => CommitClock::resume(self.zone, time),
            None => CommitClock::new(self.zone),
        }
    }
}

/// A stream's place in a change table.
struct Reader {
    source: FakeSource,
    instance: InstanceId,
    name: InstanceName,
    columns: Vec<Column>,
    schema: SchemaRef,
    /// The commit and command of the last row that was read.
    cursor: (Lsn, i32),
    /// The first LSN of the mapping that the clock has not seen.
    from: Lsn,
    to: Lsn,
    rows: usize,
    clock: CommitClock,
    /// Rows until the connection is killed.
    kill: Option<u64>,
    /// The last commit and its time.
    time: Option<(Lsn, Timestamp)>,
}

impl Reader {
    async fn next(mut self) -> Result<Option<(arrow_array::RecordBatch, Self)>> {
        self.source.enter(Call::ChangeBatch).await?;
        let limit = match self.kill {
            Some(0) => return Err(self.error(SqlError::killed())),
            Some(rows) => self.rows.min(usize::try_from(rows).unwrap_or(usize::MAX)),
            None => self.rows,
        };
        let entries = self.fetch(limit)?;
        self.source.leave(Call::ChangeBatch);
        if entries.is_empty() {
            return match self.kill {
                Some(_) => Err(self.error(SqlError::killed())),
                None => Ok(None),
            };
        }
        let rows: usize = entries.iter().map(|(entry, _)| entry.rows()).sum();
        if let Some(left) = &mut self.kill {
            *left = left.saturating_sub(u64::try_from(rows).unwrap_or(u64::MAX));
        }
        let batch = self.build(&entries, rows)?;
        Ok(Some((batch, self)))
    }

    fn error(&self, error: SqlError) -> Error {
        Error::from(error).with("instance", &self.name)
    }

    /// The next operations whose rows fill a batch, with their commit times. Operations whose
    /// commit has left the mapping are not found, as in a join.
    fn fetch(&mut self, limit: usize) -> Result<Vec<(ChangeEntry, Timestamp)>> {
        let state = self.source.database.state();
        let instance = state.instances.get(&self.instance).ok_or_else(|| unknown(&self.name))?;
        let first = instance.index_behind(self.cursor.0, self.cursor.1);
        let mut fetched = Vec::with_capacity(limit.min(instance.entries.len()));
        let mut rows = 0;
        for entry in instance.entries.range(first) {
            if entry.commit > self.to || rows >= limit {
                break;
            }
            self.cursor = (entry.commit, entry.command);
            let time = match self.time {
                Some((commit, time)) if commit == entry.commit => Some(time),
                _ => {
                    // Every entry of the mapping up to the commit moves the clock: idle ones and
                    // other tables' too.
                    let mut time = None;
                    for passed in state.mapping.between(self.from, entry.commit) {
                        let moment = self.clock.next(passed.time);
                        time = (passed.lsn == entry.commit).then_some(moment);
                    }
                    self.from = entry.commit.increment();
                    time
                }
            };
            let Some(time) = time else { continue };
            self.time = Some((entry.commit, time));
            rows += entry.rows();
            fetched.push((entry.clone(), time));
        }
        Ok(fetched)
    }

    fn build(
        &self,
        entries: &[(ChangeEntry, Timestamp)],
        rows: usize,
    ) -> Result<arrow_array::RecordBatch> {
        let mut commits = FixedSizeBinaryBuilder::with_capacity(rows, WIDTH);
        let mut sequences = FixedSizeBinaryBuilder::with_capacity(rows, WIDTH);
        let mut operations = Int32Builder::with_capacity(rows);
        let mut commands = Int32Builder::with_capacity(rows);
        let mut times = TimestampMicrosecondBuilder::with_capacity(rows);
        let wide = |error| Error::bug("an lsn is not ten bytes").caused_by(error);
        for (entry, time) in entries {
            for operation in entry.operations() {
                commits.append_value(entry.commit.as_bytes()).map_err(wide)?;
                sequences.append_value(entry.seqval.as_bytes()).map_err(wide)?;
                operations.append_value(operation.code());
                commands.append_value(entry.command);
                times.append_value(time.as_micros());
            }
        }
        let mut arrays: Vec<ArrayRef> = vec![
            std::sync::Arc::new(commits.finish()),
            std::sync::Arc::new(sequences.finish()),
            std::sync::Arc::new(operations.finish()),
            std::sync::Arc::new(commands.finish()),
            std::sync::Arc::new(times.finish()),
        ];
        for column in &self.columns {
            arrays.push(self.column(column, entries, rows)?);
        }
        batch(&self.schema, arrays)
    }

    fn column(
        &self,
        column: &Column,
        entries: &[(ChangeEntry, Timestamp)],
        rows: usize,
    ) -> Result<ArrayRef> {
        let mut builder = ColumnBuilder::new(column, rows)?;
        let place = CapturedCell::from(column);
        for (entry, _) in entries {
            for operation in entry.operations() {
                builder
                    .append(entry.cell(*operation, &place))
                    .map_err(|error| error.with("instance", &self.name))?;
            }
        }
        Ok(builder.finish())
    }
}
