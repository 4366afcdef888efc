//! Uploads in parts, each part a request.

use std::{
    fmt,
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
};

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart, path::Path};

use super::{Request, Store, Turn, lost};
use crate::invariant::Invariant;

/// An upload in parts; nothing is there before its end.
pub(super) struct Upload {
    upload: Box<dyn MultipartUpload>,
    store: Store,
    path: String,
    /// Parts on their way.
    flying: Arc<AtomicU32>,
}

impl Upload {
    pub(super) fn new(upload: Box<dyn MultipartUpload>, store: &Store, at: &Path) -> Self {
        Self { upload, store: store.clone(), path: at.as_ref().to_owned(), flying: Arc::default() }
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Upload({})", self.path)
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let turn = self.store.turn(Request::Part, &self.path);
        // What does not reach the store is no part of the object.
        let part = match &turn {
            Ok(Turn::Go { .. }) => Some(self.upload.put_part(data)),
            _ => None,
        };
        let bucket = self.store.bucket.clone();
        let now = self.flying.fetch_add(1, Ordering::SeqCst) + 1;
        let most = bucket.inner().parts_max;
        bucket.record.check(now <= most, Invariant::Limits, || {
            format!("{now} parts of an upload on their way, {most} allowed")
        });
        let flight = Flight(Arc::clone(&self.flying));
        Box::pin(async move {
            let _flight = flight;
            let mut waited = false;
            // Others may be sent meanwhile.
            poll_fn(|context| {
                if std::mem::replace(&mut waited, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            match (turn?, part) {
                (Turn::Go { reply: true }, Some(part)) => part.await,
                (_, part) => {
                    if let Some(part) = part {
                        part.await?;
                    }
                    Err(lost())
                }
            }
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.store.request(Request::EndUpload, &self.path, self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.store.request(Request::AbortUpload, &self.path, self.upload.abort()).await
    }
}

/// A part on its way.
struct Flight(Arc<AtomicU32>);

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
