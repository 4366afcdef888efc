//! Rows on their way into data files that nobody sees until a commit names them.

use std::{collections::VecDeque, sync::Arc};

use arrow_array::RecordBatch;
use bytes::Bytes;
use cdc_core::{Error, Result};
use object_store::{ObjectStoreExt, buffered::BufWriter};
use tokio::io::AsyncWriteExt;

use crate::{
    commit::DataFile,
    encode::Encoder,
    fault,
    log::{Layout, Shared},
    pipeline::Pipeline,
    store::Place,
};

/// The data files of one commit.
pub(crate) struct Staging {
    shared: Shared,
    place: Place,
    open: Option<OpenFile>,
    done: Vec<DataFile>,
    /// True while a step is under way: a step that was given up leaves rows in doubt.
    is_torn: bool,
}

struct OpenFile {
    name: String,
    layout: Layout,
    upload: BufWriter,
    pipeline: Pipeline,
}

impl Staging {
    pub(crate) fn new(shared: Shared, place: Place) -> Self {
        Self { shared, place, open: None, done: Vec::new(), is_torn: false }
    }

    /// True when there is something to discard.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_none() && self.done.is_empty() && !self.is_torn
    }

    /// Takes rows in the form of `layout`. They may be encoded behind the return; what is wrong
    /// with them is told by one of the next steps, the last of which is [`Staging::take`].
    pub(crate) async fn write(&mut self, layout: &Layout, rows: RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        self.begin_step()?;
        self.add_all(layout, VecDeque::from([rows])).await?;
        // Done at once where encoding is done in place; found by the next step elsewhere.
        if self.open.as_ref().is_some_and(|file| file.pipeline.is_full()) {
            self.end_files().await?;
        }
        self.is_torn = false;
        Ok(())
    }

    /// Ends the open file; the next rows begin another.
    pub(crate) async fn roll(&mut self) -> Result<()> {
        self.begin_step()?;
        self.end_files().await?;
        self.is_torn = false;
        Ok(())
    }

    /// # Errors
    /// A bug when the step before was given up or failed, and nothing was discarded since.
    fn begin_step(&mut self) -> Result<()> {
        if self.is_torn {
            return Err(Error::bug("rows are staged behind a step that did not end")
                .with("path", &self.place));
        }
        self.is_torn = true;
        Ok(())
    }

    async fn add_all(&mut self, layout: &Layout, mut rows: VecDeque<RecordBatch>) -> Result<()> {
        while let Some(next) = rows.pop_front() {
            let file = match self.open.take() {
                Some(file) => file,
                None => self.begin(layout)?,
            };
            let room = match file.pipeline.has_room().await {
                Ok(room) => room,
                Err(error) => {
                    abandon(&self.place, &file.name, file.upload).await;
                    return Err(error);
                }
            };
            if room {
                file.pipeline.add(next);
                let OpenFile { name, layout, upload, pipeline } = file;
                let ready = pipeline.take_ready();
                let part = self.shared.config.upload_part_bytes;
                let upload = put(&self.place, &name, upload, ready, part).await?;
                self.open = Some(OpenFile { name, layout, upload, pipeline });
            } else {
                rows.push_front(next);
                for behind in self.end(file).await?.into_iter().rev() {
                    rows.push_front(behind);
                }
            }
        }
        Ok(())
    }

    fn begin(&self, layout: &Layout) -> Result<OpenFile> {
        let config = &self.shared.config;
        let random = || self.shared.entropy.next_u64();
        let name = format!("part-{:016x}{:016x}.zstd.parquet", random(), random());
        let store = Arc::clone(&self.place.store);
        let upload =
            BufWriter::with_capacity(store, self.place.file(&name), config.upload_part_bytes)
                .with_max_concurrency(config.upload_parts);
        let encoder = Encoder::new(layout, config)?;
        let pipeline = Pipeline::new(encoder, config.file_bytes_max, config.kernel_calls);
        Ok(OpenFile { name, layout: layout.clone(), upload, pipeline })
    }

    /// Ends the open file, and those that the rows behind a full one make.
    async fn end_files(&mut self) -> Result<()> {
        while let Some(file) = self.open.take() {
            let layout = file.layout.clone();
            let behind = self.end(file).await?;
            self.add_all(&layout, behind).await?;
        }
        Ok(())
    }

    /// Ends a file. Gives the rows that came too late for it.
    async fn end(&mut self, file: OpenFile) -> Result<VecDeque<RecordBatch>> {
        let OpenFile { name, upload, pipeline, .. } = file;
        let ended = match pipeline.end().await {
            Ok(ended) => ended,
            Err(error) => {
                abandon(&self.place, &name, upload).await;
                return Err(error);
            }
        };
        let part = self.shared.config.upload_part_bytes;
        let mut upload = put(&self.place, &name, upload, ended.ready, part).await?;
        if let Err(error) = upload.shutdown().await.map_err(store_error) {
            return Err(lost(&self.place, &name, upload, error).await);
        }
        self.done.push(DataFile {
            name,
            bytes: ended.bytes,
            rows: ended.stats.rows(),
            stats: ended.stats.json(),
            modified_ms: self.shared.now_ms(),
        });
        Ok(ended.behind)
    }

    /// Ends everything and gives the files to a commit. From then on they may be named by the
    /// log and are not deleted any more.
    pub(crate) async fn take(&mut self) -> Result<Vec<DataFile>> {
        self.roll().await?;
        Ok(std::mem::take(&mut self.done))
    }

    /// Takes files back that no commit names.
    pub(crate) fn restore(&mut self, files: Vec<DataFile>) {
        self.done.extend(files);
    }

    /// Removes what was staged. What cannot be removed stays invisible.
    pub(crate) async fn discard(&mut self) -> Result<()> {
        self.is_torn = false;
        if let Some(file) = self.open.take() {
            abandon(&self.place, &file.name, file.upload).await;
        }
        let mut first = None;
        for file in std::mem::take(&mut self.done) {
            let path = self.place.file(&file.name);
            match self.place.store.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => {
                    first.get_or_insert_with(|| fault::store(error, &path));
                }
            }
        }
        first.map_or(Ok(()), |error: Error| Err(error))
    }
}

/// Gives up an upload that had no fault. One that had cannot be ended in an orderly way: its
/// writer panics; what a store keeps of it expires by the store's own rules.
async fn abandon(place: &Place, name: &str, mut upload: BufWriter) {
    if let Err(error) = upload.abort().await {
        tracing::debug!(name, %error, "an upload was not ended; no table names its file");
    }
    remove(place, name).await;
}

/// Sends bytes in pieces of a part: a writer that is given more at once starts all its parts.
async fn put(
    place: &Place,
    name: &str,
    mut upload: BufWriter,
    all: Vec<Bytes>,
    part: usize,
) -> Result<BufWriter> {
    for mut bytes in all {
        while !bytes.is_empty() {
            if let Err(error) = upload.put(bytes.split_to(part.min(bytes.len()))).await {
                return Err(lost(place, name, upload, error).await);
            }
        }
    }
    Ok(upload)
}

/// Gives up a file whose upload failed.
async fn lost(place: &Place, name: &str, upload: BufWriter, error: object_store::Error) -> Error {
    let error = fault::store(error, place.file(name));
    drop(upload);
    remove(place, name).await;
    error
}

/// Removes a file that no commit names. It may be there though only its reply was lost.
async fn remove(place: &Place, name: &str) {
    let path = place.file(name);
    match place.store.delete(&path).await {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
        Err(error) => {
            tracing::debug!(%path, %error, "a staged file stays behind; no table names it");
        }
    }
}

fn store_error(error: std::io::Error) -> object_store::Error {
    match error.downcast::<object_store::Error>() {
        Ok(error) => error,
        Err(error) => object_store::Error::Generic { store: "upload", source: Box::new(error) },
    }
}
