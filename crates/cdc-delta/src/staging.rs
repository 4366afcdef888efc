//! Rows on their way into data files that nobody sees until a commit names them.

use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use cdc_core::{Error, Result};
use object_store::{ObjectStoreExt, buffered::BufWriter};
use tokio::io::AsyncWriteExt;

use crate::{
    commit::DataFile,
    encode::Encoder,
    fault,
    kernel::blocking,
    log::{Layout, Shared},
    store::Place,
};

/// The data files of one commit.
pub(crate) struct Staging {
    shared: Shared,
    place: Place,
    open: Option<OpenFile>,
    done: Vec<DataFile>,
}

struct OpenFile {
    name: String,
    upload: BufWriter,
    encoder: Encoder,
}

impl Staging {
    pub(crate) fn new(shared: Shared, place: Place) -> Self {
        Self { shared, place, open: None, done: Vec::new() }
    }

    /// True when there is something to discard.
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_none() && self.done.is_empty()
    }

    /// Takes rows in the form of `layout`.
    pub(crate) async fn write(&mut self, layout: &Layout, rows: RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let file = match self.open.take() {
            Some(file) => file,
            None => self.begin(layout)?,
        };
        let OpenFile { name, mut upload, mut encoder } = file;
        let encoded = blocking(self.shared.config.kernel_calls, move || {
            let bytes = encoder.write(&rows);
            (encoder, bytes)
        })
        .await;
        let (encoder, bytes) = match encoded {
            Ok((encoder, Ok(bytes))) => (encoder, bytes),
            Ok((_, Err(error))) | Err(error) => {
                abandon(&self.place, &name, upload).await;
                return Err(error);
            }
        };
        let part = self.shared.config.upload_part_bytes;
        if let Err(error) = put(&mut upload, bytes, part).await {
            let error = fault::store(error, self.place.file(&name));
            drop(upload);
            remove(&self.place, &name).await;
            return Err(error);
        }
        let full = encoder.bytes() >= self.shared.config.file_bytes_max;
        self.open = Some(OpenFile { name, upload, encoder });
        if full { self.roll().await } else { Ok(()) }
    }

    fn begin(&self, layout: &Layout) -> Result<OpenFile> {
        let config = &self.shared.config;
        let random = || self.shared.entropy.next_u64();
        let name = format!("part-{:016x}{:016x}.zstd.parquet", random(), random());
        let store = Arc::clone(&self.place.store);
        let upload =
            BufWriter::with_capacity(store, self.place.file(&name), config.upload_part_bytes)
                .with_max_concurrency(config.upload_parts);
        Ok(OpenFile { name, upload, encoder: Encoder::new(layout, config)? })
    }

    /// Ends the open file; the next rows begin another.
    pub(crate) async fn roll(&mut self) -> Result<()> {
        let Some(OpenFile { name, mut upload, encoder }) = self.open.take() else {
            return Ok(());
        };
        let ended = blocking(self.shared.config.kernel_calls, move || encoder.finish()).await;
        let (rest, bytes, stats) = match ended {
            Ok(Ok(ended)) => ended,
            Ok(Err(error)) | Err(error) => {
                abandon(&self.place, &name, upload).await;
                return Err(error);
            }
        };
        let part = self.shared.config.upload_part_bytes;
        let sent = match put(&mut upload, rest, part).await {
            Ok(()) => upload.shutdown().await.map_err(store_error),
            Err(error) => Err(error),
        };
        if let Err(error) = sent {
            let error = fault::store(error, self.place.file(&name));
            drop(upload);
            remove(&self.place, &name).await;
            return Err(error);
        }
        self.done.push(DataFile {
            name,
            bytes,
            rows: stats.rows(),
            stats: stats.json(),
            modified_ms: self.shared.now_ms(),
        });
        Ok(())
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

/// Sends bytes in pieces of a part: a writer that is given more at once starts all its parts.
async fn put(upload: &mut BufWriter, mut bytes: Bytes, part: usize) -> object_store::Result<()> {
    while !bytes.is_empty() {
        upload.put(bytes.split_to(part.min(bytes.len()))).await?;
    }
    Ok(())
}

fn store_error(error: std::io::Error) -> object_store::Error {
    match error.downcast::<object_store::Error>() {
        Ok(error) => error,
        Err(error) => object_store::Error::Generic { store: "upload", source: Box::new(error) },
    }
}
