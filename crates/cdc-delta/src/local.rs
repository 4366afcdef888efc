//! Local files with a listing that looks at the newest files of a log alone.
//!
//! A log's directory keeps every version. An object store begins a listing behind a given name; a
//! file system cannot, and the store's own listing looks at each file there. Here the files behind
//! the newest checkpoint are asked for by their names, which are known beforehand; where that does
//! not tell everything, the names are read and only the files behind the given one are looked at.

use std::{
    fmt, fs, io,
    path::{Path as FilePath, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use futures_util::{StreamExt, stream, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};
use serde::Deserialize;

/// Versions behind a checkpoint that are asked for one by one: far more than lie between two
/// checkpoints. For more, reading the directory is as good.
const TAIL_MAX: u64 = 1_000;

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

/// The commits and checkpoints of a log behind `offset`, when that stands at the newest checkpoint
/// or right above it.
///
/// Versions have no gaps, so the first that is absent is the end. There would be a gap where a
/// cleanup runs at the same time; it only runs behind a newer checkpoint, which the log's hint
/// names before. So the hint and its checkpoint have to be the same afterwards.
fn tail(directory: &Path, offset: &Path) -> Option<Vec<ObjectMeta>> {
    if directory.filename() != Some("_delta_log") || directory.as_ref().contains('%') {
        return None;
    }
    let first = version(offset.filename()?)?;
    let place = PathBuf::from(format!("/{directory}"));
    let newest = hinted(&place)?;
    if first != newest && newest.checked_add(1) != Some(first) {
        return None;
    }
    let mut found = Vec::new();
    for version in first..first.checked_add(TAIL_MAX)? {
        for ending in ["checkpoint.parquet", "json"] {
            let name = format!("{version:020}.{ending}");
            match file(&place.join(&name), directory.clone().join(name.as_str())) {
                Ok(Some(meta)) => found.push(meta),
                Ok(None) if ending == "json" && version > newest => {
                    let checkpoint = place.join(format!("{newest:020}.checkpoint.parquet"));
                    let same = hinted(&place) == Some(newest) && checkpoint.is_file();
                    return same.then_some(found);
                }
                Ok(None) => {}
                Err(_) => return None,
            }
        }
    }
    None
}

/// The version of a name that is nothing else.
fn version(name: &str) -> Option<u64> {
    (name.len() == 20 && name.bytes().all(|byte| byte.is_ascii_digit())).then_some(())?;
    name.parse().ok()
}

/// The newest checkpoint, as the log's hint names it.
fn hinted(place: &FilePath) -> Option<u64> {
    #[derive(Deserialize)]
    struct Hint {
        version: u64,
    }
    let text = fs::read(place.join("_last_checkpoint")).ok()?;
    serde_json::from_slice::<Hint>(&text).ok().map(|hint| hint.version)
}

/// What a listing tells of a file; none when there is none.
fn file(place: &FilePath, location: Path) -> io::Result<Option<ObjectMeta>> {
    match fs::metadata(place) {
        Ok(meta) if meta.is_file() => Ok(Some(ObjectMeta {
            location,
            last_modified: meta.modified()?.into(),
            size: meta.len(),
            e_tag: None,
            version: None,
        })),
        Ok(_) => Err(io::ErrorKind::InvalidInput.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
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
    let from = offset.prefix_matches(directory).then(|| offset.filename()).flatten();
    let mut found = Vec::new();
    for entry in fs::read_dir(&place).ok()? {
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
        // Most are far below, and are told by their names alone.
        let simple = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        if simple && from.is_some_and(|from| name.as_str() <= from) {
            continue;
        }
        let location = directory.clone().join(name.as_str());
        if location <= *offset {
            continue;
        }
        // None when it was removed since its name was read.
        found.extend(file(&place.join(&name), location).ok()?);
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
        let found = |directory| tail(directory, offset).or_else(|| behind(directory, offset));
        match prefix.and_then(found) {
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

    /// A log with commits `0..=last`, checkpoints and a hint.
    fn log(last: u64, checkpoints: &[u64], hint: u64) -> (tempfile::TempDir, Path) {
        let dir = tempfile::tempdir().expect("a directory");
        let log = dir.path().join("_delta_log");
        fs::create_dir(&log).expect("made");
        for version in 0..=last {
            fs::write(log.join(format!("{version:020}.json")), "{}").expect("written");
        }
        for version in checkpoints {
            let name = format!("{version:020}.checkpoint.parquet");
            fs::write(log.join(name), "PAR1").expect("written");
        }
        fs::write(log.join("_last_checkpoint"), format!(r#"{{"version":{hint},"size":1}}"#))
            .expect("written");
        let directory = Path::from_absolute_path(&log).expect("a path");
        (dir, directory)
    }

    fn names(found: Vec<ObjectMeta>) -> Vec<String> {
        found.iter().filter_map(|meta| meta.location.filename().map(str::to_owned)).collect()
    }

    #[test]
    fn a_tail_behind_the_newest_checkpoint_is_what_the_directory_holds() {
        let (_dir, directory) = log(25, &[10, 20], 20);
        for first in [20, 21] {
            let offset = directory.clone().join(format!("{first:020}"));
            let mut read = names(behind(&directory, &offset).expect("plain"));
            read.retain(|name| name != "_last_checkpoint");
            assert_eq!(names(tail(&directory, &offset).expect("known")), read, "from {first}");
        }
        // Elsewhere the directory is read.
        for first in [1, 10, 19, 22] {
            let offset = directory.clone().join(format!("{first:020}"));
            assert!(tail(&directory, &offset).is_none(), "from {first}");
        }
    }

    #[tokio::test]
    async fn a_listing_costs_no_more_with_a_longer_history_or_a_stray_directory() {
        let (dir, directory) = log(25, &[10, 20], 20);
        let offset = directory.clone().join(format!("{:020}", 20));
        let tail = names(tail(&directory, &offset).expect("known"));
        // The store's own listing would find what is in here.
        let sidecars = dir.path().join("_delta_log/_sidecars");
        fs::create_dir(&sidecars).expect("made");
        fs::write(sidecars.join("a.parquet"), "a").expect("written");
        let ours = LocalFiles::new(Arc::new(LocalFileSystem::new()));
        let found = listed(&ours, &directory, &format!("{:020}", 20)).await;
        assert_eq!(found.len(), tail.len());
    }

    #[test]
    fn a_cleanup_behind_a_newer_checkpoint_is_no_end_of_the_log() {
        // The checkpoint at 20 has replaced the one at 10, and versions below are going.
        let (dir, directory) = log(25, &[10, 20], 20);
        fs::remove_file(dir.path().join("_delta_log/00000000000000000012.json")).expect("removed");
        let offset = directory.clone().join(format!("{:020}", 10));
        assert!(tail(&directory, &offset).is_none());
        let read = names(behind(&directory, &offset).expect("plain"));
        assert!(read.contains(&format!("{:020}.json", 25)), "{read:?}");
        // So is the checkpoint that the hint still names.
        let (_dir, directory) = log(25, &[10], 20);
        let offset = directory.clone().join(format!("{:020}", 20));
        assert!(tail(&directory, &offset).is_none());
    }

    #[test]
    fn a_tail_that_is_too_long_is_left_to_the_directory() {
        let (_dir, directory) = log(TAIL_MAX + 30, &[20], 20);
        let offset = directory.clone().join(format!("{:020}", 20));
        assert!(tail(&directory, &offset).is_none());
        assert!(behind(&directory, &offset).expect("plain").len() > 1_000);
    }
}
