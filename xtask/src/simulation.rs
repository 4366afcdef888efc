//! Runs the simulator, with what the tests have built anyway; a long campaign in release.

use std::process::Command;

use crate::{Result, steps, workspace::Workspace};

/// The package and its binary.
const PACKAGE: &str = "cdc-sim";
/// Minutes of fresh seeds in the step of the tests.
const STEP_MINUTES: &str = "2";

/// Runs the simulator with its own arguments; see `cargo xtask sim -- --help`. With `--release` it
/// is built in release: four times as fast, once it is built.
///
/// # Errors
/// When an invariant is broken, or it cannot be built.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let release = |argument: &str| argument == "--release";
    let mut all = vec!["run", "--quiet", "--package", PACKAGE];
    all.extend(arguments.iter().map(String::as_str).find(|argument| release(argument)));
    if arguments.iter().any(|argument| argument.starts_with("--planted")) {
        all.extend(["--features", "planted-bugs"]);
    }
    all.push("--");
    all.extend(arguments.iter().map(String::as_str).filter(|argument| !release(argument)));
    steps::run_to_end(&mut workspace.cargo(&all))
}

/// The step of the tests: the kept scripts, then a fixed time of seeds that are fresh for each
/// commit and the same whenever the commit is tested.
///
/// # Errors
/// As for [`run`].
pub fn step(workspace: &Workspace) -> Result<()> {
    let seed = workspace.commit().map_or(1, |commit| seed_of(&commit)).to_string();
    // Built with the workspace, so that nothing below it is built anew.
    let build = ["build", "--workspace", "--bin", PACKAGE];
    steps::run_to_end(&mut workspace.cargo(&build))?;
    let mut command = Command::new(workspace.target.join("debug").join(PACKAGE));
    command.args(["--minutes", STEP_MINUTES, "--seed", &seed, "--no-shrink"]);
    command.arg("--failures").arg(workspace.target.join("sim")).current_dir(&workspace.root);
    steps::run_to_end(&mut command)
}

/// A number from the first digits of a commit's name.
fn seed_of(commit: &str) -> u64 {
    let digits: String = commit.chars().take(8).collect();
    u64::from_str_radix(&digits, 16).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_has_seeds_of_its_own() {
        assert_eq!(seed_of("0fac36912345"), 0x0fac_3691);
        assert_ne!(seed_of("0fac36912345"), seed_of("3580ea412345"));
        assert_eq!(seed_of("not a commit"), 1);
    }
}
