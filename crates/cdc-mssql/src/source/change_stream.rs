//! From the rows of a change table to change batches: commit times in UTC, and the two images of an
//! update side by side.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, TimestampMicrosecondArray,
    cast::AsArray,
    types::{Int32Type, TimestampMicrosecondType},
};
use arrow_schema::SchemaRef;
use arrow_select::{concat::concat_batches, filter::filter_record_batch};
use cdc_core::{
    Error, InstanceName, Result, Timestamp, change::Operation, port::BatchStream, time::CommitClock,
};
use futures_util::{StreamExt, stream};

use super::answer::reading;
use crate::{driver::RecordStream, sql::changes::LEADING};

/// The change batches of a read.
pub(super) fn assembled(
    batches: RecordStream,
    schema: SchemaRef,
    clock: CommitClock,
    instance: InstanceName,
) -> BatchStream {
    let reader = Reader {
        batches: Some(batches),
        times: CommitTimes { clock, last: None },
        schema,
        pairs: Pairs::default(),
        ready: std::collections::VecDeque::new(),
        instance,
    };
    Box::pin(stream::unfold(reader, |mut reader| async move {
        let item = reader.next().await.transpose()?;
        if item.is_err() {
            // An error is the last item.
            reader.batches = None;
            reader.ready.clear();
            reader.pairs.held = None;
        }
        Some((item, reader))
    }))
}

struct Reader {
    batches: Option<RecordStream>,
    times: CommitTimes,
    schema: SchemaRef,
    pairs: Pairs,
    /// At most two: one batch gives no more.
    ready: std::collections::VecDeque<RecordBatch>,
    instance: InstanceName,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            let Some(batches) = &mut self.batches else { return Ok(None) };
            match batches.next().await {
                Some(batch) => {
                    let batch = batch
                        .map_err(|fault| Error::from(fault).with("instance", &self.instance))?;
                    let batch = self.times.dated(&batch, &self.schema)?;
                    self.pairs.push(batch, &mut self.ready)?;
                }
                None => {
                    self.batches = None;
                    self.ready.extend(self.pairs.held.take());
                }
            }
        }
    }
}

/// The times of commits, in log order.
struct CommitTimes {
    clock: CommitClock,
    /// The last entry of the mapping, and its moment.
    last: Option<([u8; 10], Timestamp)>,
}

impl CommitTimes {
    /// The batch with moments instead of readings, and without the entries that have no change.
    fn dated(&mut self, batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
        let wrong = || Error::bug("a change row lacks a leading column");
        let column = |at: usize| batch.columns().get(at).ok_or_else(wrong);
        let commits = column(0)?.as_fixed_size_binary_opt().ok_or_else(wrong)?;
        let operations = column(2)?.as_primitive_opt::<Int32Type>().ok_or_else(wrong)?;
        let readings =
            column(4)?.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(wrong)?;
        if commits.null_count() + readings.null_count() > 0 {
            return Err(wrong());
        }
        let mut times = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let commit: [u8; 10] = commits.value(row).try_into().map_err(|_| wrong())?;
            let time = match self.last {
                Some((last, time)) if last == commit => time,
                _ => self.clock.next(reading(readings.value(row))),
            };
            self.last = Some((commit, time));
            times.push(time.as_micros());
        }
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times));
        let mut columns = batch.columns().to_vec();
        if let Some(place) = columns.get_mut(LEADING - 1) {
            *place = times;
        }
        let build = |schema: &SchemaRef, columns| {
            RecordBatch::try_new(Arc::clone(schema), columns)
                .map_err(|error| Error::bug("columns do not make a batch").caused_by(error))
        };
        if operations.null_count() == 0 {
            return build(schema, columns);
        }
        let kept: BooleanArray =
            (0..operations.len()).map(|row| Some(operations.is_valid(row))).collect();
        // The read's own schema allows the NULLs that are taken out here.
        let whole = build(&loose(schema), columns)?;
        let kept = filter_record_batch(&whole, &kept)
            .map_err(|error| Error::bug("rows cannot be chosen").caused_by(error))?;
        build(schema, kept.columns().to_vec())
    }
}

fn loose(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| (**field).clone().with_nullable(true));
    Arc::new(arrow_schema::Schema::new(fields.collect::<Vec<_>>()))
}

/// Keeps the two images of an update in one batch. A batch that ends with the first image waits for
/// the second.
#[derive(Default)]
struct Pairs {
    held: Option<RecordBatch>,
}

impl Pairs {
    fn push(
        &mut self,
        mut batch: RecordBatch,
        ready: &mut std::collections::VecDeque<RecordBatch>,
    ) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if let Some(held) = self.held.take() {
            if operation(&batch, 0)? == Operation::UpdateAfter.code() {
                let second = batch.slice(0, 1);
                let joined = concat_batches(&held.schema(), [&held, &second])
                    .map_err(|error| Error::bug("two images do not fit").caused_by(error))?;
                ready.push_back(joined);
                batch = batch.slice(1, batch.num_rows() - 1);
            } else {
                ready.push_back(held);
            }
        }
        match batch.num_rows().checked_sub(1) {
            None => {}
            Some(last) if operation(&batch, last)? == Operation::UpdateBefore.code() => {
                self.held = Some(batch);
            }
            Some(_) => ready.push_back(batch),
        }
        Ok(())
    }
}

fn operation(batch: &RecordBatch, row: usize) -> Result<i32> {
    let column = batch.columns().get(2).and_then(|column| column.as_primitive_opt::<Int32Type>());
    let column = column.filter(|column| row < column.len());
    column.map(|column| column.value(row)).ok_or_else(|| Error::bug("a batch has no operations"))
}

#[cfg(test)]
mod tests;
