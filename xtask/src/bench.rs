//! `cargo xtask bench`: the measurements, built for release.

use std::process::Command;

use crate::{Result, clients, openssl, steps, workspace::Workspace};

const PACKAGE: &str = "cdc-bench";

/// Builds the measurements in release and runs the named lines, or all that have a target. What
/// needs a library that the machine lacks is left out by name.
///
/// # Errors
/// When the build fails, or a line cannot be measured. A missed target is no error: it stands in
/// the table.
pub fn run(workspace: &Workspace, lines: &[String], quick: bool) -> Result<()> {
    let mut build = workspace.cargo(&["build", "--release", "--quiet", "--package", PACKAGE]);
    match openssl::missing() {
        Some(reason) => println!("SKIPPED {}: {reason}", openssl::MSSQL_TDS),
        None => {
            build.args(["--features", openssl::MSSQL_TDS]);
        }
    }
    steps::run_to_end(&mut build)?;
    let mut command = Command::new(workspace.target.join("release").join(PACKAGE));
    command.args(lines);
    if quick {
        command.arg("--quick");
    }
    // The clients of others that the line about the wire is measured against.
    if let Some(python) = clients::python(workspace) {
        command.env("CDC_BENCH_PYTHON", python);
        command.env("CDC_BENCH_RATE", workspace.root.join("tests/clients/python/rate.py"));
    }
    steps::run_to_end(&mut command)
}
