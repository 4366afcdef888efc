//! Uploads in parts, each part a request.

use std::{fmt, future::poll_fn, task::Poll};

use async_trait::async_trait;
use object_store::{MultipartUpload, PutPayload, PutResult, Result, UploadPart, path::Path};

use super::{Bucket, Request, Store, Turn, lost};
use crate::invariant::Invariant;

/// An upload in parts; nothing is there before its end.
pub(super) struct Upload {
    upload: Box<dyn MultipartUpload>,
    store: Store,
    path: String,
}

impl Upload {
    pub(super) fn new(upload: Box<dyn MultipartUpload>, store: &Store, at: &Path) -> Self {
        Self { upload, store: store.clone(), path: at.as_ref().to_owned() }
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
        let part = self.upload.put_part(data);
        let bucket = self.store.bucket.clone();
        let (now, most) = {
            let mut inner = bucket.inner();
            inner.parts += 1;
            (inner.parts, inner.parts_max)
        };
        bucket.record.check(now <= most, Invariant::Limits, || {
            format!("{now} parts of uploads on their way, {most} allowed")
        });
        let flight = Flight(bucket);
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
            match turn? {
                Turn::Go { reply: true } => part.await,
                Turn::Go { reply: false } => {
                    part.await?;
                    Err(lost())
                }
                Turn::Late => Err(lost()),
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
struct Flight(Bucket);

impl Drop for Flight {
    fn drop(&mut self) {
        let mut inner = self.0.inner();
        inner.parts = inner.parts.saturating_sub(1);
    }
}
