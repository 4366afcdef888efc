//! The files the rules look at: what git tracks or would track, read once.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Failure, Finding, Result, source::RustSource};

/// Directories that a walk leaves out: build products and version control.
const NOT_SOURCE: [&str; 2] = [".git", "target"];

/// The files of a source tree by path relative to its root.
pub struct Tree {
    files: BTreeMap<String, Option<String>>,
    sources: Vec<RustSource>,
    unreadable: Vec<Finding>,
}

impl Tree {
    /// What git tracks under `root`, and what it would track if it were added; every file below
    /// `root` when git does not answer.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub fn tracked(root: &Path) -> Result<Self> {
        let listed = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output();
        match listed {
            Ok(output) if output.status.success() => {
                let names = String::from_utf8_lossy(&output.stdout).into_owned();
                let paths = names.split('\0').filter(|name| !name.is_empty());
                Self::read(root, paths.map(str::to_owned))
            }
            _ => Self::walked(root),
        }
    }

    /// Every file below `root`, whatever git knows.
    ///
    /// # Errors
    /// When a directory or file cannot be read.
    pub fn walked(root: &Path) -> Result<Self> {
        let mut found = Vec::new();
        let mut left = vec![PathBuf::new()];
        while let Some(directory) = left.pop() {
            let full = root.join(&directory);
            let failed = |e: io::Error| Failure::caused(full.display(), e);
            for entry in fs::read_dir(&full).map_err(failed)? {
                let entry = entry.map_err(failed)?;
                let path = directory.join(entry.file_name());
                if !entry.file_type().map_err(failed)?.is_dir() {
                    found.push(path.to_string_lossy().replace('\\', "/"));
                } else if !NOT_SOURCE.iter().any(|left_out| entry.file_name() == *left_out) {
                    left.push(path);
                }
            }
        }
        Self::read(root, found.into_iter())
    }

    /// Every path, in order.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Every text file with its text, in order of the paths.
    pub fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// The text of one file.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether the tree has the file.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Every Rust file, parsed.
    #[must_use]
    pub fn sources(&self) -> &[RustSource] {
        &self.sources
    }

    /// Rust files that do not parse: no rule can vouch for them.
    #[must_use]
    pub fn unreadable(&self) -> &[Finding] {
        &self.unreadable
    }

    fn read(root: &Path, paths: impl Iterator<Item = String>) -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in paths {
            let full = root.join(&path);
            // A file deleted but not yet committed as deleted is not part of the tree.
            if full.is_file() {
                let bytes = fs::read(&full).map_err(|e| Failure::caused(full.display(), e))?;
                files.insert(path, String::from_utf8(bytes).ok());
            }
        }
        let mut sources = Vec::new();
        let mut unreadable = Vec::new();
        for (path, text) in &files {
            let Some(text) = text.as_deref().filter(|_| path.ends_with(".rs")) else {
                continue;
            };
            match RustSource::parse(path, text) {
                Ok(source) => sources.push(source),
                Err(e) => unreadable.push(Finding::new(
                    path,
                    e.span().start().line,
                    "parse",
                    format!("correct the syntax: {e}"),
                )),
            }
        }
        mark_test_modules(&mut sources);
        Ok(Self { files, sources, unreadable })
    }
}

/// A file that is only compiled for tests is a test file, whatever its name.
fn mark_test_modules(sources: &mut [RustSource]) {
    let bases: Vec<String> = sources.iter().flat_map(RustSource::test_module_bases).collect();
    for source in sources {
        let path = &source.path;
        if bases.iter().any(|base| {
            path.strip_prefix(base.as_str())
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        }) {
            source.mark_as_test();
        }
    }
}
