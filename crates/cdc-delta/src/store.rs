//! The object store and the places in it.

use std::{fmt, sync::Arc};

use cdc_core::{Error, ErrorKind, Result};
use deltalake::logstore::{StorageConfig, logstore_for};
use futures_util::StreamExt;
use object_store::{ObjectStore, path::Path};
use url::Url;

use crate::{config::DeltaConfig, fault, local::LocalFiles};

/// A directory in an object store.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// The directory, with a slash at the end.
    pub(crate) url: Url,
    pub(crate) path: Path,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.url.to_file_path() {
            Ok(path) => path.display().fmt(f),
            Err(()) => f.write_str(self.url.as_str()),
        }
    }
}

impl Place {
    /// The root that the settings name, in the store that belongs to its URL.
    pub(crate) fn of_config(config: &DeltaConfig) -> Result<Self> {
        let wrong = |why: String| {
            Error::new(ErrorKind::Config, "root is neither a path nor a URL of a known store")
                .with("setting", "root")
                .with("root", &config.root)
                .caused_by(why)
        };
        let url = match Url::parse(&config.root) {
            // A single letter is a drive, not a scheme.
            Ok(url) if url.scheme().len() > 1 => url,
            _ => {
                let path = std::path::absolute(&config.root).map_err(|e| wrong(e.to_string()))?;
                Url::from_directory_path(&path).map_err(|()| wrong("no absolute path".into()))?
            }
        };
        let url = directory(url);
        let options = StorageConfig::parse_options(config.storage_options.clone())
            .map_err(|error| wrong(error.to_string()))?;
        let log = logstore_for(&url, options).map_err(|error| wrong(error.to_string()))?;
        let store = log.root_object_store(None);
        match url.scheme() {
            "file" => Self::new(Arc::new(LocalFiles::new(store)), url),
            _ => Self::new(store, url),
        }
    }

    /// The directory `url` in a store whose paths are the URL's paths.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, url: Url) -> Result<Self> {
        let url = directory(url);
        let path = Path::from_url_path(url.path()).map_err(|error| {
            Error::new(ErrorKind::Config, "root is no path of the object store")
                .with("setting", "root")
                .with("root", &url)
                .caused_by(error)
        })?;
        Ok(Self { store, url, path })
    }

    /// A directory below. `name` has no character that URLs or paths escape.
    pub(crate) fn below(&self, name: &str) -> Self {
        let mut url = self.url.clone();
        url.set_path(&format!("{}{name}/", self.url.path()));
        Self { store: Arc::clone(&self.store), path: self.path.clone().join(name), url }
    }

    /// A file in the directory.
    pub(crate) fn file(&self, name: &str) -> Path {
        self.path.clone().join(name)
    }

    /// What the directory holds.
    pub(crate) async fn content(&self) -> Result<Content> {
        let log = self.path.clone().join("_delta_log");
        let first = |prefix: Path| {
            let store = Arc::clone(&self.store);
            async move { store.list(Some(&prefix)).next().await.transpose() }
        };
        let found = |result: object_store::Result<Option<object_store::ObjectMeta>>| {
            result.map_err(|error| fault::store(error, self))
        };
        if found(first(log.clone()).await)?.is_some() {
            return Ok(Content::Table);
        }
        if found(first(self.path.clone()).await)?.is_none() {
            return Ok(Content::Nothing);
        }
        // What is there may be the log itself, when somebody created the table in between.
        Ok(match found(first(log).await)? {
            Some(_) => Content::Table,
            None => Content::Files,
        })
    }
}

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Nothing,
    /// Files, but no Delta log.
    Files,
    Table,
}

fn directory(mut url: Url) -> Url {
    if !url.path().ends_with('/') {
        url.set_path(&format!("{}/", url.path()));
    }
    url
}

/// The directory name of a table: its name, with everything but ASCII letters, digits, `_`, `-`
/// and inner dots as `@` and the byte's two hex digits. No two names share a directory.
pub(crate) fn directory_name(table: &str) -> String {
    use std::fmt::Write as _;
    let mut name = String::with_capacity(table.len());
    for (at, byte) in table.bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || (byte == b'.' && at > 0)
        {
            name.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(name, "@{byte:02X}");
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_table_name_never_leaves_its_directory() {
        for (name, dir) in [
            ("dbo.orders", "dbo.orders"),
            ("..", "@2E."),
            ("a/b", "a@2Fb"),
            ("Straße 1", "Stra@C3@9Fe@201"),
            ("x@y", "x@40y"),
        ] {
            assert_eq!(directory_name(name), dir);
        }
    }

    proptest! {
        #[test]
        fn no_two_tables_share_a_directory(a in ".{0,8}", b in ".{0,8}") {
            prop_assert_eq!(a == b, directory_name(&a) == directory_name(&b));
        }
    }
}
