//! How checkpoints go to the store: the kernel's Parquet handler with a writer of our own.
//!
//! The kernel's writer sends larger files in parts from tasks of the runtime. A call that runs in
//! the place of the runtime's only task would wait for them for ever. Here the parts go one after
//! the other from the thread that writes.
//!
//! What names no data file stands in row groups of its own at the end, so that a look-up of marks
//! or columns skips the others, however many files there are.

use std::sync::Arc;

use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_select::filter::filter_record_batch;
use bytes::Bytes;
use delta_kernel::{
    CancellationTokenRef, DeltaResult, DeltaResultIteratorStatic, Engine, EngineData,
    EvaluationHandler, FileDataReadResultIterator, FileMeta, JsonHandler, ParquetFooter,
    ParquetHandler, PredicateRef, StorageHandler, engine::arrow_data::ArrowEngineData,
    schema::SchemaRef,
};
use futures_util::{FutureExt, future::BoxFuture};
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use parquet::{
    arrow::{AsyncArrowWriter, arrow_writer::ArrowWriterOptions, async_writer::AsyncFileWriter},
    errors::{ParquetError, Result as ParquetResult},
    file::properties::WriterProperties,
};

use crate::kernel::wait;

/// Bytes of a part: more than the 5 MiB that S3 asks for, and as few as the memory of two parts is
/// no matter.
const PART_BYTES: usize = 8 << 20;

/// Rows of a row group: some 16 MiB, which is what the writer holds; each has some kilobytes in the
/// footer.
const ROW_GROUP_ROWS: usize = 16_384;

/// The columns of actions that name data files.
const FILE_ACTIONS: [&str; 2] = ["add", "remove"];

/// The kernel's engine, whose checkpoints are written here.
pub(crate) struct CheckpointEngine<E> {
    inner: E,
    parquet: Arc<Parquet>,
}

impl<E: Engine> CheckpointEngine<E> {
    pub(crate) fn new(inner: E, store: Arc<dyn ObjectStore>) -> Self {
        let parquet = Arc::new(Parquet { inner: inner.parquet_handler(), store });
        Self { inner, parquet }
    }
}

impl<E: Engine> Engine for CheckpointEngine<E> {
    fn evaluation_handler(&self) -> Arc<dyn EvaluationHandler> {
        self.inner.evaluation_handler()
    }

    fn storage_handler(&self) -> Arc<dyn StorageHandler> {
        self.inner.storage_handler()
    }

    fn json_handler(&self) -> Arc<dyn JsonHandler> {
        self.inner.json_handler()
    }

    fn parquet_handler(&self) -> Arc<dyn ParquetHandler> {
        Arc::clone(&self.parquet) as Arc<dyn ParquetHandler>
    }
}

struct Parquet {
    inner: Arc<dyn ParquetHandler>,
    store: Arc<dyn ObjectStore>,
}

impl ParquetHandler for Parquet {
    fn read_parquet_files(
        &self,
        files: &[FileMeta],
        schema: SchemaRef,
        predicate: Option<PredicateRef>,
    ) -> DeltaResult<FileDataReadResultIterator> {
        self.inner.read_parquet_files(files, schema, predicate)
    }

    fn read_parquet_files_with_cancellation(
        &self,
        files: &[FileMeta],
        schema: SchemaRef,
        predicate: Option<PredicateRef>,
        token: Option<CancellationTokenRef>,
    ) -> DeltaResult<FileDataReadResultIterator> {
        self.inner.read_parquet_files_with_cancellation(files, schema, predicate, token)
    }

    fn write_parquet_file(
        &self,
        location: url::Url,
        mut data: DeltaResultIteratorStatic<Box<dyn EngineData>>,
    ) -> DeltaResult<()> {
        let Some(first) = next(&mut data)? else {
            return Err(delta_kernel::Error::generic("a file without rows cannot be written"));
        };
        let at = Path::from_url_path(location.path())?;
        let upload = Upload { store: Arc::clone(&self.store), at, parts: None, rest: Vec::new() };
        let properties =
            WriterProperties::builder().set_max_row_group_row_count(Some(ROW_GROUP_ROWS)).build();
        // As the kernel writes it: for readers that know no Arrow.
        let options =
            ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let mut writer = AsyncArrowWriter::try_new_with_options(upload, first.schema(), options)?;
        match write_all(&mut writer, first, &mut data) {
            Ok(()) => Ok(()),
            Err(error) => {
                give_up(writer);
                Err(error)
            }
        }
    }

    fn read_parquet_footer(&self, file: &FileMeta) -> DeltaResult<ParquetFooter> {
        self.inner.read_parquet_footer(file)
    }

    fn read_parquet_footer_with_cancellation(
        &self,
        file: &FileMeta,
        token: Option<CancellationTokenRef>,
    ) -> DeltaResult<ParquetFooter> {
        self.inner.read_parquet_footer_with_cancellation(file, token)
    }
}

/// The next batch of a file that is written.
fn next(
    data: &mut DeltaResultIteratorStatic<Box<dyn EngineData>>,
) -> DeltaResult<Option<RecordBatch>> {
    let Some(batch) = data.next() else {
        return Ok(None);
    };
    let batch = ArrowEngineData::try_from_engine_data(batch?)?;
    Ok(Some(batch.record_batch().clone()))
}

/// Writes every row: those that name data files, then all others. A checkpoint is a set.
fn write_all(
    writer: &mut AsyncArrowWriter<Upload>,
    first: RecordBatch,
    data: &mut DeltaResultIteratorStatic<Box<dyn EngineData>>,
) -> DeltaResult<()> {
    let mut batch = Some(first);
    // A few actions of the table, and an entry for each of its names.
    let mut others = Vec::new();
    while let Some(rows) = batch {
        let (files, rest) = parted(&rows)?;
        others.push(rest);
        // Outside of the future: a batch may be read from the store while it is made.
        wait(writer.write(&files))?;
        batch = next(data)?;
    }
    wait(writer.flush())?;
    for rest in &others {
        wait(writer.write(rest))?;
    }
    wait(writer.finish())?;
    Ok(())
}

/// The rows of a batch that name data files, and all others.
fn parted(rows: &RecordBatch) -> DeltaResult<(RecordBatch, RecordBatch)> {
    let columns: Vec<_> =
        FILE_ACTIONS.iter().filter_map(|name| rows.column_by_name(name)).collect();
    let is_file = |row: usize| columns.iter().any(|column| column.is_valid(row));
    let files: BooleanArray = (0..rows.num_rows()).map(|row| Some(is_file(row))).collect();
    let rest: BooleanArray = (0..rows.num_rows()).map(|row| Some(!is_file(row))).collect();
    Ok((filter_record_batch(rows, &files)?, filter_record_batch(rows, &rest)?))
}

/// Gives up an upload. What a store keeps of it expires by the store's own rules.
fn give_up(writer: AsyncArrowWriter<Upload>) {
    if let Some(mut parts) = writer.into_inner().parts
        && let Err(error) = wait(parts.abort())
    {
        tracing::debug!(%error, "an upload was not ended; no log names its file");
    }
}

/// A file on its way: in one piece, or in parts when it is larger than one.
struct Upload {
    store: Arc<dyn ObjectStore>,
    at: Path,
    parts: Option<Box<dyn MultipartUpload>>,
    rest: Vec<u8>,
}

impl Upload {
    async fn add(&mut self, bytes: &[u8]) -> object_store::Result<()> {
        self.rest.extend_from_slice(bytes);
        while self.rest.len() > PART_BYTES {
            let behind = self.rest.split_off(PART_BYTES);
            let part = std::mem::replace(&mut self.rest, behind);
            let mut parts = match self.parts.take() {
                Some(parts) => parts,
                None => self.store.put_multipart(&self.at).await?,
            };
            let sent = parts.put_part(PutPayload::from(part)).await;
            self.parts = Some(parts);
            sent?;
        }
        Ok(())
    }

    async fn end(&mut self) -> object_store::Result<()> {
        let rest = PutPayload::from(std::mem::take(&mut self.rest));
        match &mut self.parts {
            None => self.store.put(&self.at, rest).await?,
            Some(parts) => {
                parts.put_part(rest).await?;
                parts.complete().await?
            }
        };
        Ok(())
    }
}

fn external(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

impl AsyncFileWriter for Upload {
    fn write(&mut self, bytes: Bytes) -> BoxFuture<'_, ParquetResult<()>> {
        async move { self.add(&bytes).await.map_err(external) }.boxed()
    }

    fn complete(&mut self) -> BoxFuture<'_, ParquetResult<()>> {
        async move { self.end().await.map_err(external) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use arrow_array::{Int64Array, StringArray};
    use arrow_select::concat::concat_batches;
    use delta_kernel_engine::DefaultEngineBuilder;
    use object_store::memory::InMemory;

    use super::*;

    const ROWS: i64 = 60_000;
    const BATCH: i64 = 1_000;

    /// A checkpoint's actions: every thousandth row is a mark, the others name files by a text that
    /// does not compress.
    fn batch(first: i64) -> RecordBatch {
        let text = |row: i64| {
            let mut state = row.cast_unsigned();
            let digits = (0..12).map(|_| {
                state = state.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
                format!("{state:016x}")
            });
            digits.collect::<String>()
        };
        let rows = first..first + BATCH;
        let is_mark = |row: &i64| row % 1_000 == 7;
        let marks = rows.clone().map(|row| is_mark(&row).then_some(row));
        let files = rows.map(|row| (!is_mark(&row)).then(|| text(row)));
        RecordBatch::try_from_iter_with_nullable([
            ("add", Arc::new(files.collect::<StringArray>()) as arrow_array::ArrayRef, true),
            ("txn", Arc::new(marks.collect::<Int64Array>()), true),
        ])
        .expect("fits")
    }

    /// Writes a file larger than a part on the only task of a runtime, and gives the store.
    fn write() -> Arc<InMemory> {
        let (done, waits) = mpsc::sync_channel(1);
        // On a thread of its own, so that a wait without end fails the test.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            let store = Arc::new(InMemory::new());
            let own: Arc<dyn ObjectStore> = Arc::clone(&store) as _;
            runtime.block_on(async {
                let engine = DefaultEngineBuilder::new(Arc::clone(&own))
                    .with_task_executor(Arc::new(crate::kernel::ThisThread))
                    .build();
                let engine = CheckpointEngine::new(engine, own);
                let data = (0..ROWS / BATCH).map(|number| {
                    let batch = ArrowEngineData::new(batch(number * BATCH));
                    Ok(Box::new(batch) as Box<dyn EngineData>)
                });
                let location = "memory:///log/1.checkpoint.parquet".parse().expect("a URL");
                let written = engine.parquet_handler().write_parquet_file(location, Box::new(data));
                written.expect("written");
            });
            done.send(store).expect("somebody waits");
        });
        waits.recv_timeout(Duration::from_secs(60)).expect("an end")
    }

    #[tokio::test]
    async fn a_file_of_several_parts_is_written_in_place_and_read_back() {
        use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
        let store = write();
        let path = Path::from("log/1.checkpoint.parquet");
        let bytes = store.get(&path).await.expect("there").bytes().await.expect("there");
        assert!(bytes.len() > PART_BYTES, "{} bytes prove nothing", bytes.len());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).expect("a file");
        let marks = usize::try_from(ROWS / 1_000).expect("small");
        let files = usize::try_from(ROWS).expect("small") - marks;
        let metadata = Arc::clone(reader.metadata());
        let groups = metadata.row_groups();
        assert_eq!(groups.len(), files.div_ceil(ROW_GROUP_ROWS) + 1);
        for (number, group) in groups.iter().enumerate() {
            // What a reader of marks skips a group by.
            let statistics = group.column(1).statistics().expect("some");
            let rows = u64::try_from(group.num_rows()).expect("positive");
            let is_last = number + 1 == groups.len();
            assert_eq!(statistics.null_count_opt() == Some(rows), !is_last);
        }
        let all: Vec<_> =
            reader.build().expect("readable").map(|read| read.expect("rows")).collect();
        let read = concat_batches(&all[0].schema(), &all).expect("one schema");
        let whole: Vec<_> = (0..ROWS / BATCH).map(|number| batch(number * BATCH)).collect();
        let whole = concat_batches(&whole[0].schema(), &whole).expect("one schema");
        let (named, rest) = parted(&whole).expect("parted");
        assert_eq!((named.num_rows(), rest.num_rows()), (files, marks));
        assert_eq!(read.slice(0, files).columns(), named.columns());
        assert_eq!(read.slice(files, marks).columns(), rest.columns());
    }
}
