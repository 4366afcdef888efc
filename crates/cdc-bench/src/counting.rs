//! An object store that counts its requests, told apart by what they are about.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

/// Requests since the last reset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    /// Reads of the newest checkpoints and of what follows them: the first listing of a log, the
    /// first read of each of its files, all reads of a checkpoint.
    pub(crate) log: usize,
    /// Everything else, by what it was.
    pub(crate) beyond: Vec<String>,
    seen: BTreeSet<String>,
}

impl Requests {
    fn take(&mut self, what: &str, path: Option<&Path>, reads: bool) {
        let path = path.map(ToString::to_string).unwrap_or_default();
        let is_log = path.contains("/_delta_log");
        let is_checkpoint = path.contains(".checkpoint.");
        if reads && is_log && (is_checkpoint || self.seen.insert(format!("{what} {path}"))) {
            self.log += 1;
            return;
        }
        self.beyond.push(format!("{what} {path}"));
    }

    /// Requests beyond the reads of a log that are about a path with `part` in it.
    pub(crate) fn beyond_in(&self, part: &str) -> usize {
        self.beyond.iter().filter(|request| request.contains(part)).count()
    }
}

/// The store. Clones count together.
#[derive(Clone, Debug)]
pub(crate) struct CountingStore {
    inner: Arc<dyn ObjectStore>,
    requests: Arc<Mutex<Requests>>,
}

impl CountingStore {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, requests: Arc::default() }
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The requests since the last time.
    pub(crate) fn take(&self) -> Requests {
        std::mem::take(&mut *self.requests())
    }
}

impl fmt::Display for CountingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "counting {}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for CountingStore {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.requests().take("put", Some(at), false);
        self.inner.put_opts(at, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.requests().take("upload", Some(at), false);
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        // A look at whether a file is there reads nothing of it.
        let what = if options.head { "head" } else { "get" };
        self.requests().take(what, Some(at), !options.head);
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let counted = paths.inspect(move |path| {
            this.requests().take("delete", path.as_ref().ok(), false);
        });
        self.inner.delete_stream(counted.boxed())
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests().take("list", prefix, true);
        self.inner.list(prefix)
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.requests().take("list", prefix, true);
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.requests().take("list", prefix, true);
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.requests().take("copy", Some(to), false);
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use object_store::{ObjectStoreExt, memory::InMemory};

    use super::*;

    #[tokio::test]
    async fn the_first_read_of_a_log_file_is_free_and_the_second_is_not() {
        let store = CountingStore::new(Arc::new(InMemory::new()));
        let path = Path::from("lake/t/_delta_log/00000000000000000000.json");
        store.put(&path, "x".into()).await.unwrap();
        store.get(&path).await.unwrap();
        store.get(&path).await.unwrap();
        store.head(&path).await.unwrap();
        let requests = store.take();
        assert_eq!(requests.log, 1);
        assert_eq!(requests.beyond.len(), 3, "{:?}", requests.beyond);
        assert_eq!(requests.beyond_in("head"), 1);
        assert_eq!(store.take().beyond.len(), 0);
    }
}
