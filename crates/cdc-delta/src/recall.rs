//! A store that remembers the files of logs it has read, for the length of one step.
//!
//! To open a table its log's tail is read for the schema and once more for the marks. Files of a
//! log never change, so the second reading needs no request. A small checkpoint is read whole, at
//! once: its parts would be more requests. What is remembered lives as long as the step: the next
//! one asks the store again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    path::Path,
};

/// Bytes that are remembered at most: the tail between two checkpoints is a few hundred kilobytes;
/// longer ones are read twice.
const HELD_BYTES_MAX: u64 = 16 << 20;

/// Bytes of a checkpoint that is read whole: what an object store sends in the time of a request
/// or two. Of a larger one only the columns are read that are asked for.
const WHOLE_BYTES_MAX: u64 = 256 << 10;

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
    /// Checkpoints of which parts are read.
    large: BTreeSet<Path>,
}

impl Recall {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, held: Mutex::default() }
    }

    fn remembered(&self, at: &Path) -> Option<(ObjectMeta, Bytes)> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.files.get(at).cloned()
    }

    /// A part of a checkpoint. A reader asks for the end of the file first, so that its length is
    /// known then.
    async fn checkpoint(
        &self,
        at: &Path,
        mut options: GetOptions,
        wanted: Range<u64>,
    ) -> Result<GetResult> {
        let held = self.remembered(at);
        if let Some(found) = held.and_then(|(meta, bytes)| part(meta, &bytes, wanted.clone())) {
            return Ok(found);
        }
        if wanted.end > WHOLE_BYTES_MAX || self.is_large(at) {
            self.note_large(at);
            return self.inner.get_opts(at, options).await;
        }
        options.range = Some(GetRange::Bounded(0..wanted.end));
        let found = self.inner.get_opts(at, options).await?;
        let meta = found.meta.clone();
        let bytes = found.bytes().await?;
        if meta.size != wanted.end || !self.remember(&meta, &bytes) {
            self.note_large(at);
        }
        part(meta, &bytes, wanted).ok_or_else(|| object_store::Error::Generic {
            store: "recall",
            source: "a checkpoint is shorter than its log says".into(),
        })
    }

    fn is_large(&self, at: &Path) -> bool {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.large.contains(at)
    }

    fn note_large(&self, at: &Path) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.large.insert(at.clone());
    }

    /// False when there is no room for it.
    fn remember(&self, meta: &ObjectMeta, bytes: &Bytes) -> bool {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = held.bytes.saturating_add(meta.size) <= HELD_BYTES_MAX;
        if fits {
            held.bytes = held.bytes.saturating_add(meta.size);
            held.files.insert(meta.location.clone(), (meta.clone(), bytes.clone()));
        }
        fits
    }
}

/// A file whose bytes are here.
fn whole(meta: ObjectMeta, bytes: Bytes) -> GetResult {
    let range = 0..meta.size;
    let payload = GetResultPayload::Stream(async move { Ok(bytes) }.into_stream().boxed());
    GetResult { payload, meta, range, attributes: object_store::Attributes::default() }
}

/// A part of a file whose bytes are here; none when it has no such part.
fn part(meta: ObjectMeta, bytes: &Bytes, range: Range<u64>) -> Option<GetResult> {
    let (start, end) = (usize::try_from(range.start).ok()?, usize::try_from(range.end).ok()?);
    (start <= end && end <= bytes.len()).then_some(())?;
    Some(GetResult { range, ..whole(meta, bytes.slice(start..end)) })
}

/// The name of a file that lies in a log.
fn name_in_a_log(at: &Path) -> Option<String> {
    let mut parts = at.parts().collect::<Vec<_>>().into_iter().rev();
    let name = parts.next()?.as_ref().to_owned();
    (parts.next()?.as_ref() == "_delta_log").then_some(name)
}

/// The part of a checkpoint that is asked for.
fn part_of_a_checkpoint(at: &Path, options: &GetOptions) -> Option<Range<u64>> {
    let Some(GetRange::Bounded(range)) = &options.range else {
        return None;
    };
    let name = name_in_a_log(at)?;
    let digits = name.strip_suffix(".checkpoint.parquet")?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit()) && is_unconditional(options);
    is_plain.then(|| range.clone())
}

fn is_unconditional(options: &GetOptions) -> bool {
    !options.head
        && options.version.is_none()
        && options.if_match.is_none()
        && options.if_none_match.is_none()
        && options.if_modified_since.is_none()
        && options.if_unmodified_since.is_none()
}

/// True for a request of a whole commit of a log: the files that are there once and for all.
fn is_of_a_commit(at: &Path, options: &GetOptions) -> bool {
    let is_digits = |version: &str| version.bytes().all(|byte| byte.is_ascii_digit());
    options.range.is_none()
        && is_unconditional(options)
        && name_in_a_log(at).is_some_and(|name| name.strip_suffix(".json").is_some_and(is_digits))
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
        if let Some(range) = part_of_a_checkpoint(at, &options) {
            return self.checkpoint(at, options, range).await;
        }
        if !is_of_a_commit(at, &options) {
            return self.inner.get_opts(at, options).await;
        }
        if let Some((meta, bytes)) = self.remembered(at) {
            return Ok(whole(meta, bytes));
        }
        let found = self.inner.get_opts(at, options).await?;
        let meta = found.meta.clone();
        let bytes = found.bytes().await?;
        self.remember(&meta, &bytes);
        Ok(whole(meta, bytes))
    }

    async fn get_ranges(&self, at: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if let Some((meta, bytes)) = self.remembered(at) {
            let part = |range: &Range<u64>| part(meta.clone(), &bytes, range.clone());
            let parts: Option<Vec<_>> = ranges.iter().map(part).collect();
            if let Some(parts) = parts {
                let mut found = Vec::with_capacity(parts.len());
                for part in parts {
                    found.push(part.bytes().await?);
                }
                return Ok(found);
            }
        }
        // The store knows whether it can read parts that lie apart in one request.
        self.inner.get_ranges(at, ranges).await
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

    #[tokio::test]
    async fn a_small_checkpoint_is_read_whole_at_once_and_a_large_one_in_parts() {
        let inner = Arc::new(InMemory::new());
        let at = Path::from("t/_delta_log/00000000000000000050.checkpoint.parquet");
        for (size, is_held) in [(1_000_u64, true), (WHOLE_BYTES_MAX + 1, false)] {
            let bytes: Vec<u8> = (0..size).map(|at| at.to_be_bytes()[7]).collect();
            inner.put(&at, bytes.clone().into()).await.expect("in memory");
            let recall = Recall::new(inner.clone());
            let end = recall.get_range(&at, size - 8..size).await.expect("there");
            assert_eq!(end, bytes[bytes.len() - 8..]);
            inner.delete(&at).await.expect("in memory");
            let again = recall.get_range(&at, 3..9).await;
            let parts = recall.get_ranges(&at, &[0..2, 900..903]).await;
            assert_eq!((again.is_ok(), parts.is_ok()), (is_held, is_held));
            if is_held {
                assert_eq!(again.expect("held"), bytes[3..9]);
                assert_eq!(parts.expect("held"), [&bytes[0..2], &bytes[900..903]]);
            }
        }
    }
}
