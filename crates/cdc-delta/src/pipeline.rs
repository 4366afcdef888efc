//! The encoding of one file beside the task that feeds it.
//!
//! Rows wait in a queue, and a job on the pool takes them from there until it is empty. So the
//! encoder of a table that is fed without a pause stays on its thread. A job for each record batch
//! would cost two tables on two cores a fifth of their time: the thread that is woken is often put
//! behind the other table's, while the second core stands idle.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow_array::RecordBatch;
use bytes::Bytes;
use cdc_core::{Error, Result};
use tokio::sync::Notify;

use crate::{config::KernelCalls, encode::Encoder, kernel::start, stats::FileStats};

/// Record batches that wait beside the one that is encoded: enough that the encoder need not wait
/// for its feeder, and one batch more in memory.
const WAITING_MAX: usize = 1;

/// One file's encoder and the rows that wait for it.
pub(crate) struct Pipeline {
    calls: KernelCalls,
    line: Arc<Line>,
}

/// A file that has ended.
pub(crate) struct Ended {
    /// The bytes that were not taken yet.
    pub(crate) ready: Vec<Bytes>,
    /// All bytes of the file.
    pub(crate) bytes: u64,
    pub(crate) stats: FileStats,
    /// Rows that came behind the batch that filled the file.
    pub(crate) behind: VecDeque<RecordBatch>,
}

struct Line {
    state: Mutex<State>,
    /// Tells the feeder, of which there is one, that a place is free or the job has ended.
    moved: Notify,
    /// Bytes after which a file is full.
    bytes_max: u64,
}

struct State {
    /// None while a job has it, and after a fault.
    encoder: Option<Encoder>,
    waiting: VecDeque<RecordBatch>,
    ready: Vec<Bytes>,
    is_full: bool,
    fault: Option<Error>,
}

impl Pipeline {
    pub(crate) fn new(encoder: Encoder, bytes_max: u64, calls: KernelCalls) -> Self {
        let state = State {
            encoder: Some(encoder),
            waiting: VecDeque::new(),
            ready: Vec::new(),
            is_full: false,
            fault: None,
        };
        let line = Line { state: Mutex::new(state), moved: Notify::new(), bytes_max };
        Self { calls, line: Arc::new(line) }
    }

    /// Waits until more rows have a place; false when the file is full.
    ///
    /// # Errors
    /// That of rows that were added before.
    pub(crate) async fn has_room(&self) -> Result<bool> {
        self.until(|state| match state.is_full {
            true => state.encoder.is_some().then_some(false),
            false => (state.waiting.len() < WAITING_MAX).then_some(true),
        })
        .await
    }

    /// Adds rows, for which there is a place.
    pub(crate) fn add(&self, rows: RecordBatch) {
        let encoder = {
            let mut state = self.line.lock();
            state.waiting.push_back(rows);
            state.encoder.take()
        };
        // Otherwise the job that has it finds the rows before it ends.
        if let Some(encoder) = encoder {
            let line = Arc::clone(&self.line);
            start(self.calls, move || line.run(encoder));
        }
    }

    /// The bytes that became ready since they were taken last.
    pub(crate) fn take_ready(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.line.lock().ready)
    }

    /// True when the last rows made the file full.
    pub(crate) fn is_full(&self) -> bool {
        self.line.lock().is_full
    }

    /// Encodes what waits and ends the file.
    ///
    /// # Errors
    /// That of rows that were added before.
    pub(crate) async fn end(self) -> Result<Ended> {
        let encoder = self.until(|state| state.encoder.take()).await?;
        let (rest, bytes, stats) =
            crate::kernel::blocking(self.calls, move || encoder.finish()).await??;
        let mut state = self.line.lock();
        let mut ready = std::mem::take(&mut state.ready);
        ready.push(rest);
        Ok(Ended { ready, bytes, stats, behind: std::mem::take(&mut state.waiting) })
    }

    /// Waits for what `found` tells of the state.
    async fn until<T>(&self, mut found: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        loop {
            {
                let mut state = self.line.lock();
                if let Some(fault) = state.fault.take() {
                    return Err(fault);
                }
                if let Some(found) = found(&mut state) {
                    return Ok(found);
                }
            }
            self.line.moved.notified().await;
        }
    }
}

impl Line {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The job: encodes until nothing waits or the file is full.
    fn run(&self, mut encoder: Encoder) {
        // In place until the end, so that a job that ends early is no silence.
        let early = EndsEarly(self);
        loop {
            let rows = {
                let mut state = self.lock();
                let rows = if state.is_full { None } else { state.waiting.pop_front() };
                let Some(rows) = rows else {
                    state.encoder = Some(encoder);
                    break;
                };
                rows
            };
            self.moved.notify_one();
            let encoded = encoder.write(&rows);
            let mut state = self.lock();
            match encoded {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => state.ready.push(bytes),
                Err(fault) => {
                    state.fault = Some(fault);
                    break;
                }
            }
            state.is_full = encoder.bytes() >= self.bytes_max;
        }
        std::mem::forget(early);
        self.moved.notify_one();
    }
}

/// Tells the feeder of a job that did not come to its end.
struct EndsEarly<'a>(&'a Line);

impl Drop for EndsEarly<'_> {
    fn drop(&mut self) {
        self.0.lock().fault = Some(Error::bug("a blocking step ended early"));
        self.0.moved.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arrow_array::{Int64Array, StringArray};
    use arrow_schema::{DataType, Field, Schema};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;
    use crate::{config::DeltaConfig, log::Layout};

    /// What a test waits at most for another thread.
    const LONG: Duration = Duration::from_secs(60);

    fn config() -> DeltaConfig {
        let mut config = DeltaConfig::new("/nowhere");
        (config.row_group_rows, config.row_group_bytes) = (50, 1_000);
        config
    }

    fn pipeline(bytes_max: u64, calls: KernelCalls) -> Pipeline {
        let schema = Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, true)]));
        let measured = Arc::default();
        let layout = Layout { logical: Arc::clone(&schema), physical: schema, measured };
        Pipeline::new(Encoder::new(&layout, &config()).expect("an encoder"), bytes_max, calls)
    }

    /// A hundred rows that a dictionary or a difference does not make small.
    fn rows(number: i64) -> RecordBatch {
        let id = |row: i64| row.wrapping_mul(0x1E37_79B9_7F4A_7C15);
        let ids = (number * 100..(number + 1) * 100).map(|row| Some(id(row)));
        RecordBatch::try_from_iter_with_nullable([(
            "id",
            Arc::new(ids.collect::<Int64Array>()) as arrow_array::ArrayRef,
            true,
        )])
        .expect("fits")
    }

    /// The files that batches make, each as its number of rows and its bytes.
    async fn files(batches: i64, bytes_max: u64, calls: KernelCalls) -> Vec<(u64, Vec<u8>)> {
        let mut files = Vec::new();
        let mut waiting: VecDeque<_> = (0..batches).map(rows).collect();
        while !waiting.is_empty() {
            let line = pipeline(bytes_max, calls);
            let mut bytes = Vec::new();
            while !waiting.is_empty() && line.has_room().await.expect("no fault") {
                line.add(waiting.pop_front().expect("some"));
                bytes.extend(line.take_ready().concat());
            }
            let ended = line.end().await.expect("no fault");
            bytes.extend(ended.ready.concat());
            assert_eq!(bytes.len() as u64, ended.bytes);
            ended.behind.into_iter().rev().for_each(|rows| waiting.push_front(rows));
            files.push((ended.stats.rows(), bytes));
        }
        files
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pool_makes_the_same_files_as_encoding_in_place() {
        for bytes_max in [1, 2_500, 1 << 30] {
            let in_place = files(40, bytes_max, KernelCalls::InPlace).await;
            let pool = tokio::time::timeout(LONG, files(40, bytes_max, KernelCalls::Pool)).await;
            assert_eq!(pool.expect("an end"), in_place, "files of {bytes_max} bytes");
            assert_eq!(in_place.iter().map(|file| file.0).sum::<u64>(), 4_000);
            assert_eq!(in_place.len() > 1, bytes_max < 1 << 30);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn rows_come_out_in_the_order_they_went_in() {
        let file = files(30, 1 << 30, KernelCalls::Pool).await.pop().expect("one").1;
        let reader = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(file)).expect("a file");
        let read: Vec<_> =
            reader.build().expect("readable").map(|read| read.expect("rows")).collect();
        let read = arrow_select::concat::concat_batches(&read[0].schema(), &read).expect("fits");
        let all: Vec<_> = (0..30).map(rows).collect();
        let all = arrow_select::concat::concat_batches(&all[0].schema(), &all).expect("fits");
        assert_eq!(read.columns(), all.columns());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_fault_of_rows_is_told_by_a_later_step() {
        let texts = StringArray::from(vec!["no number"]);
        let wrong = RecordBatch::try_from_iter([("id", Arc::new(texts) as _)]).expect("fits");
        for calls in [KernelCalls::InPlace, KernelCalls::Pool] {
            let line = pipeline(1 << 30, calls);
            line.add(wrong.clone());
            let told = tokio::time::timeout(LONG, line.end()).await.expect("an end");
            assert!(told.is_err(), "{calls:?}");
        }
    }

    #[tokio::test]
    async fn a_job_that_ends_early_is_an_error_and_no_silence() {
        let line = pipeline(1 << 30, KernelCalls::Pool);
        // As a panic would leave it.
        drop(line.line.lock().encoder.take());
        drop(EndsEarly(&line.line));
        let told = tokio::time::timeout(LONG, line.end()).await.expect("an end");
        assert!(told.err().expect("an error").to_string().contains("ended early"));
    }
}
