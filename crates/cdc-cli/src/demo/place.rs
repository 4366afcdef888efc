//! The directory of the demonstration: new, empty, or one that an earlier demonstration marked.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use cdc_core::{Error, ErrorKind, Result};

/// The file that marks a directory as the demonstration's own.
const MARK: &str = "cdc-demo.txt";
const MARK_TEXT: &str = "This directory was made by cdc demo; cdc demo --overwrite empties it.\n";
/// What the demonstration makes, besides the mark.
const OWN: [&str; 3] = ["bronze", "facts", "control"];

/// A directory that the demonstration may write to.
#[derive(Debug)]
pub(super) struct Place(PathBuf);

impl Place {
    /// Takes a directory, creating it when missing. Only with `overwrite`, and only from a
    /// directory that an earlier demonstration marked, is anything removed.
    ///
    /// # Errors
    /// `Config` for a directory that holds something else, or an earlier demonstration, or that
    /// cannot be written.
    pub(super) fn take(directory: &Path, overwrite: bool) -> Result<Self> {
        let cannot = |error: io::Error| {
            Error::new(ErrorKind::Config, "directory cannot be written")
                .with("dir", directory.display())
                .remedy("give --dir a directory that this user may write to")
                .caused_by(error)
        };
        let directory = std::path::absolute(directory).map_err(cannot)?;
        fs::create_dir_all(&directory).map_err(cannot)?;
        let mark = directory.join(MARK);
        let marked = mark.try_exists().map_err(cannot)?;
        let empty = fs::read_dir(&directory).map_err(cannot)?.next().is_none();
        match (empty, marked, overwrite) {
            (true, ..) => {}
            (false, true, true) => {
                for name in OWN {
                    match fs::remove_dir_all(directory.join(name)) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => {
                            return Err(cannot(error));
                        }
                        _ => {}
                    }
                }
            }
            (false, true, false) => {
                return Err(Error::new(
                    ErrorKind::Config,
                    "directory holds an earlier demonstration",
                )
                .with("dir", directory.display())
                .remedy("start afresh with --overwrite, or give another --dir"));
            }
            (false, false, _) => {
                return Err(Error::new(ErrorKind::Config, "directory holds something else")
                    .with("dir", directory.display())
                    .remedy("give --dir a new or an empty directory"));
            }
        }
        fs::write(mark, MARK_TEXT).map_err(cannot)?;
        Ok(Self(directory))
    }

    /// The root of the tables.
    pub(super) fn root(&self) -> String {
        self.0.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_directory_of_its_own_is_emptied_and_only_when_told_to() {
        let base = tempfile::tempdir().expect("a directory");
        let own = base.path().join("a/demo");
        Place::take(&own, false).expect("is made");
        fs::create_dir(own.join("bronze")).expect("is made");
        let again = Place::take(&own, false).expect_err("holds a demonstration");
        assert!(again.advice().contains("--overwrite"));
        assert!(own.join("bronze").exists());
        Place::take(&own, true).expect("is emptied");
        assert!(!own.join("bronze").exists());

        let foreign = base.path().join("foreign");
        fs::create_dir_all(foreign.join("bronze")).expect("is made");
        for overwrite in [false, true] {
            let error = Place::take(&foreign, overwrite).expect_err("is foreign");
            assert_eq!(error.kind(), ErrorKind::Config);
        }
        assert!(foreign.join("bronze").exists());
        assert!(!foreign.join(MARK).exists());
    }
}
