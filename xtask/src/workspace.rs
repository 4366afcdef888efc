//! Where the workspace and its build directory are, and how cargo is called inside a task.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use cargo_metadata::MetadataCommand;

use crate::{Failure, Result};

/// Variables that `cargo run` sets for a task. Build scripts watch some of them, so a cargo called
/// with them would build their crates again.
const SET_BY_CARGO: [&str; 6] = [
    "CARGO_MANIFEST_",
    "CARGO_PKG_",
    "CARGO_PRIMARY_PACKAGE",
    "CARGO_CRATE_NAME",
    "CARGO_BIN_NAME",
    "OUT_DIR",
];

/// The directories a task works in.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The directory of the root manifest.
    pub root: PathBuf,
    /// The one build directory that every step shares.
    pub target: PathBuf,
}

impl Workspace {
    /// The workspace that holds the current directory.
    ///
    /// # Errors
    /// When the current directory is in no workspace.
    pub fn find() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .no_deps()
            .exec()
            .map_err(|e| Failure::caused("run this inside the workspace", e))?;
        Ok(Self {
            root: metadata.workspace_root.into_std_path_buf(),
            target: metadata.target_directory.into_std_path_buf(),
        })
    }

    /// The name of the commit that is checked out; none outside of a repository.
    #[must_use]
    pub fn commit(&self) -> Option<String> {
        let mut git = Command::new("git");
        git.args(["rev-parse", "HEAD"]).current_dir(&self.root);
        let output = git.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// A cargo command at the root, with the environment of a cargo started by hand.
    #[must_use]
    pub fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.started_by_hand(env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(arguments).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// The cargo of the nightly toolchain at the root. It has no build directory yet.
    #[must_use]
    pub fn nightly(&self) -> Command {
        // Only rustup's own cargo takes a toolchain; the one behind CARGO belongs to one already.
        let mut command = self.started_by_hand("cargo".into());
        command.arg("+nightly").env_remove("CARGO");
        command
    }

    fn started_by_hand(&self, program: OsString) -> Command {
        let mut command = Command::new(program);
        for (name, _) in env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if SET_BY_CARGO.iter().any(|set| name.starts_with(set)) {
                command.env_remove(name);
            }
        }
        command.current_dir(&self.root);
        command
    }
}

/// Whether a command starts and succeeds; its output is dropped.
#[must_use]
pub fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Runs a command and keeps its output for the case that it fails.
///
/// # Errors
/// When it does not start or does not succeed, with the last line it said.
pub fn quietly(command: &mut Command, what: &str) -> Result<()> {
    let output = command.output().map_err(|e| Failure::caused(what, e))?;
    if output.status.success() {
        return Ok(());
    }
    // `venv` explains itself on stdout, pip on stderr.
    let reason = [output.stderr, output.stdout]
        .iter()
        .map(|text| last_line(text))
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    Err(Failure::caused(what, reason))
}

/// The last line of an output that says something.
#[must_use]
pub fn last_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let line = text.lines().rfind(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().to_owned()
}

/// `path` as text for a command's argument or a message.
#[must_use]
pub fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
