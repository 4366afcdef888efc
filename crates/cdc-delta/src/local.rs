//! Local files with a listing that looks at the newest files of a log alone.
//!
//! A log's directory keeps every version. An object store begins a listing behind a given name; a
//! file system cannot, and the store's own listing looks at each file there. Here only the names
//! are read, and only the files behind the given one are looked at.

use std::{fmt, fs, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use futures_util::{StreamExt, stream, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};

/// A store of local files whose paths are those of the file system.
#[derive(Debug)]
pub(crate) struct LocalFiles {
    inner: Arc<dyn ObjectStore>,
}

impl LocalFiles {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner }
    }
}

/// The files of a directory behind `offset`, when it has nothing but plain files with plain names;
/// otherwise the store lists them in its own way.
fn behind(directory: &Path, offset: &Path) -> Option<Vec<ObjectMeta>> {
    let plain = |name: &str| !name.contains(['%', '#', '\\']);
    if !plain(directory.as_ref()) {
        return None;
    }
    let place = PathBuf::from(format!("/{directory}"));
    let mut found = Vec::new();
    for entry in fs::read_dir(place).ok()? {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        // Directories and links sort among the files of a log only where it has more than commits.
        if !entry.file_type().ok()?.is_file() {
            return None;
        }
        // A file on its way has a number sign in its name.
        if !plain(&name) {
            continue;
        }
        let location = directory.clone().join(name);
        if location <= *offset {
            continue;
        }
        match entry.metadata() {
            Ok(meta) => found.push(ObjectMeta {
                location,
                last_modified: meta.modified().ok()?.into(),
                size: meta.len(),
                e_tag: None,
                version: None,
            }),
            // Removed since its name was read.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    found.sort_unstable_by(|a, b| a.location.cmp(&b.location));
    Some(found)
}

impl fmt::Display for LocalFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for LocalFiles {
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
        self.inner.get_opts(at, options).await
    }

    async fn get_ranges(
        &self,
        at: &Path,
        ranges: &[std::ops::Range<u64>],
    ) -> Result<Vec<bytes::Bytes>> {
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
        // Some ten thousand names take a few milliseconds; the kernel's calls may block.
        match prefix.and_then(|directory| behind(directory, offset)) {
            Some(found) => stream::iter(found.into_iter().map(Ok)).boxed(),
            None => self.inner.list_with_offset(prefix, offset),
        }
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
    use futures_util::TryStreamExt;
    use object_store::local::LocalFileSystem;

    use super::*;

    async fn listed(store: &dyn ObjectStore, directory: &Path, after: &str) -> Vec<(Path, u64)> {
        let offset = directory.clone().join(after);
        let found = store.list_with_offset(Some(directory), &offset);
        let mut found: Vec<_> = found.try_collect().await.expect("listed");
        found.sort_unstable_by(|a, b| a.location.cmp(&b.location));
        found.into_iter().map(|meta| (meta.location, meta.size)).collect()
    }

    #[tokio::test]
    async fn a_listing_is_the_stores_own() {
        let own: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new());
        let ours = LocalFiles::new(Arc::clone(&own));
        let dir = tempfile::tempdir().expect("a directory");
        let directory = Path::from_absolute_path(dir.path()).expect("a path");
        let same = async |after: &str| {
            let found = listed(&ours, &directory, after).await;
            assert_eq!(found, listed(own.as_ref(), &directory, after).await, "after {after}");
            found.len()
        };
        assert_eq!(same("0").await, 0);
        for name in ["01.json", "02.json", "02.checkpoint.parquet", "03.json#1", "_last", "4"] {
            fs::write(dir.path().join(name), name).expect("written");
        }
        assert_eq!(same("0").await, 5);
        assert_eq!(same("01.json").await, 4);
        assert_eq!(same("02.json").await, 2);
        assert!(behind(&directory, &directory.clone().join("0")).is_some());
        // What is no plain file is left to the store.
        fs::create_dir(dir.path().join("_sidecars")).expect("made");
        fs::write(dir.path().join("_sidecars/a.parquet"), "a").expect("written");
        assert_eq!(same("02.json").await, 3);
        assert_eq!(listed(&ours, &directory.join("absent"), "0").await, []);
    }
}
