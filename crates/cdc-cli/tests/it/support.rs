//! Runs the binary and reads what it printed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

/// A directory with a configuration and its target.
pub(crate) struct Place {
    pub(crate) directory: TempDir,
}

/// What a process printed, and how it ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The one object on standard output.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "one line: {}\n{}", self.stdout, self.stderr);
        let value: Value = serde_json::from_str(&self.stdout).expect("one JSON object");
        assert_eq!(value["exit_code"], self.code, "{}", self.stdout);
        value
    }

    /// Checks the exit code and returns the report.
    pub(crate) fn expect(&self, code: i32) -> Value {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self.json()
    }
}

/// The binary with arguments.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cdc"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) fn cdc(arguments: &[&str]) -> Ended {
    Ended::of(&command(arguments).output().expect("the binary starts"))
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes a configuration: keys of the simulated server, then tables.
    pub(crate) fn write(&self, fake: &str, more: &str) -> String {
        let text = format!(
            "[source]\nkind = \"fake\"\n[source.fake]\n{fake}\n[target]\nroot = \"lake\"\n{more}\n"
        );
        let path = self.path("cdc.toml");
        fs::write(&path, text).expect("is written");
        path.to_string_lossy().into_owned()
    }

    pub(crate) fn lake(&self) -> PathBuf {
        self.path("lake")
    }
}

/// A table of a configuration.
pub(crate) fn table(source: &str, target: &str, start: &str) -> String {
    format!("[[tables]]\nsource = \"{source}\"\ntarget = \"{target}\"\nstart = \"{start}\"\n")
}

/// Every file below a directory with its size, by relative path.
pub(crate) fn files(directory: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries {
            let entry = entry.expect("is listed");
            if entry.file_type().expect("has a type").is_dir() {
                open.push(entry.path());
            } else {
                let size = entry.metadata().expect("has a size").len();
                found.push((entry.path().to_string_lossy().into_owned(), size));
            }
        }
    }
    found.sort();
    found
}
