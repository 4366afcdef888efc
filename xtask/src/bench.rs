//! `cargo xtask bench`: the measurements, built for release.

use std::process::Command;

use crate::{Result, steps, workspace::Workspace};

const PACKAGE: &str = "cdc-bench";

/// Builds the measurements in release and runs the named lines, or all that have a target.
///
/// # Errors
/// When the build fails, or a line cannot be measured. A missed target is no error: it stands in
/// the table.
pub fn run(workspace: &Workspace, lines: &[String], quick: bool) -> Result<()> {
    let build = ["build", "--release", "--quiet", "--package", PACKAGE];
    steps::run_to_end(&mut workspace.cargo(&build))?;
    let mut command = Command::new(workspace.target.join("release").join(PACKAGE));
    command.args(lines);
    if quick {
        command.arg("--quick");
    }
    steps::run_to_end(&mut command)
}
