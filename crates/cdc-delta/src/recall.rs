//! A store that remembers the files of logs it has read, for the length of one step.
//!
//! To open a table its log's tail is read for the schema and once more for the marks. Files of a
//! log never change, so the second reading needs no request. What is remembered lives as long as
//! the step: the next one asks the store again.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

/// Bytes that are remembered at most: the tail between two checkpoints is a few hundred kilobytes;
/// longer ones are read twice.
const HELD_BYTES_MAX: u64 = 16 << 20;

/// The store.
#[derive(Debug)]
pub(crate) struct Recall {
    inner: Arc<dyn ObjectStore>,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    files: BTreeMap<Path, (ObjectMeta, Bytes)>,
}

impl Recall {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, held: Mutex::default() }
    }

    fn remembered(&self, at: &Path) -> Option<GetResult> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (meta, bytes) = held.files.get(at)?;
        Some(whole(meta.clone(), bytes.clone()))
    }

    fn remember(&self, meta: &ObjectMeta, bytes: &Bytes) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.bytes.saturating_add(meta.size) <= HELD_BYTES_MAX {
            held.bytes = held.bytes.saturating_add(meta.size);
            held.files.insert(meta.location.clone(), (meta.clone(), bytes.clone()));
        }
    }
}

/// A file whose bytes are here.
fn whole(meta: ObjectMeta, bytes: Bytes) -> GetResult {
    let range = 0..meta.size;
    let payload = GetResultPayload::Stream(async move { Ok(bytes) }.into_stream().boxed());
    GetResult { payload, meta, range, attributes: object_store::Attributes::default() }
}

/// True for a request of a whole commit of a log: the files that are there once and for all.
fn is_of_a_commit(at: &Path, options: &GetOptions) -> bool {
    let plain = !options.head
        && options.range.is_none()
        && options.version.is_none()
        && options.if_match.is_none()
        && options.if_none_match.is_none()
        && options.if_modified_since.is_none()
        && options.if_unmodified_since.is_none();
    let mut parts = at.parts().collect::<Vec<_>>().into_iter().rev();
    let is_commit = parts.next().is_some_and(|name| {
        name.as_ref()
            .strip_suffix(".json")
            .is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit()))
    });
    plain && is_commit && parts.next().is_some_and(|dir| dir.as_ref() == "_delta_log")
}

impl fmt::Display for Recall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Recall {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        if !is_of_a_commit(at, &options) {
            return self.inner.get_opts(at, options).await;
        }
        if let Some(found) = self.remembered(at) {
            return Ok(found);
        }
        let found = self.inner.get_opts(at, options).await?;
        let meta = found.meta.clone();
        let bytes = found.bytes().await?;
        self.remember(&meta, &bytes);
        Ok(whole(meta, bytes))
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::{ObjectStoreExt, memory::InMemory};

    use super::*;

    #[tokio::test]
    async fn a_commit_is_read_once_and_everything_else_each_time() {
        let inner = Arc::new(InMemory::new());
        let recall = Recall::new(inner.clone());
        let commit = Path::from("t/_delta_log/00000000000000000007.json");
        let others = ["t/_delta_log/_last_checkpoint", "t/7.json", "t/_delta_log/7.parquet"];
        for path in others.into_iter().map(Path::from).chain([commit.clone()]) {
            inner.put(&path, "old".into()).await.expect("in memory");
            let first = recall.get(&path).await.expect("there").bytes().await.expect("there");
            inner.put(&path, "newer".into()).await.expect("in memory");
            let second = recall.get(&path).await.expect("there").bytes().await.expect("there");
            assert_eq!(first, "old");
            assert_eq!(second, if path == commit { "old" } else { "newer" }, "{path}");
        }
        assert_eq!(recall.head(&commit).await.expect("there").size, 5);
    }

    #[tokio::test]
    async fn what_does_not_fit_is_read_again() {
        let inner = Arc::new(InMemory::new());
        let recall = Recall::new(inner.clone());
        let commit = Path::from("t/_delta_log/00000000000000000007.json");
        let large = usize::try_from(HELD_BYTES_MAX).expect("small") + 1;
        inner.put(&commit, vec![b' '; large].into()).await.expect("in memory");
        recall.get(&commit).await.expect("there");
        inner.delete(&commit).await.expect("in memory");
        assert!(recall.get(&commit).await.is_err());
    }
}
