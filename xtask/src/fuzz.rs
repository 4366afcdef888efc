//! Runs the fuzz targets of `fuzz/`, one after the other.
//!
//! They need what the other tasks do not: a nightly toolchain and cargo-fuzz. The inputs that were
//! ever found are replayed under the ordinary tests, which need neither.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use toml::Table;

use crate::{
    Failure, Result, steps,
    workspace::{self, Workspace},
};

/// The package of the targets.
const PACKAGE: &str = "fuzz";
/// Seconds that one input may take before it counts as a finding.
const INPUT_SECONDS_MAX: u32 = 20;
/// Megabytes that a target may use before it counts as a finding: the lake in memory needs 600.
const MEMORY_MB_MAX: u32 = 2_560;

/// What the command line asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The targets to run; all when there is none.
    pub targets: Vec<String>,
    /// Minutes for each target.
    pub minutes: u32,
    /// The sanitizer to build with, as cargo-fuzz names it.
    pub sanitizer: String,
}

/// Runs the targets. Inputs that lead somewhere new are kept below the build directory and used by
/// the next run.
///
/// # Errors
/// When nightly, cargo-fuzz or a target is missing, and when a target found something: then every
/// target was run.
pub fn run(workspace: &Workspace, request: &Request) -> Result<()> {
    let manifest = workspace.root.join(PACKAGE).join("Cargo.toml");
    let text = fs::read_to_string(&manifest).map_err(|e| Failure::caused(manifest.display(), e))?;
    let chosen = chosen(&targets(&text)?, &request.targets)?;
    for (arguments, remedy) in [
        (&["--version"][..], "the nightly toolchain; rustup toolchain install nightly"),
        (&["fuzz", "--version"][..], "cargo-fuzz; cargo install cargo-fuzz"),
    ] {
        if !workspace::succeeds(workspace.nightly().args(arguments)) {
            return Err(Failure::new(format!("not installed: {remedy}")));
        }
    }
    let mut failed = Vec::new();
    for target in chosen {
        let directories = Directories::new(workspace, &target);
        directories.make()?;
        println!("== {target}: {} min", request.minutes);
        let mut command = command(workspace, request, &target, &directories);
        if let Err(failure) = steps::run_to_end(&mut command) {
            println!("== {target} FAILED: {failure}");
            failed.push(format!("{target} (see {})", directories.found.display()));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "not everything holds: {}; correct it, and keep the input under fuzz/findings/TARGET/",
        failed.join(", ")
    )))
}

/// Where the inputs of a target lie.
struct Directories {
    /// What runs have collected.
    work: PathBuf,
    /// What breaks the target.
    found: PathBuf,
    /// What the repository keeps.
    corpus: PathBuf,
    /// The words of the target's language, when it has some.
    words: PathBuf,
}

impl Directories {
    fn new(workspace: &Workspace, target: &str) -> Self {
        let inputs = workspace.target.join("fuzz-inputs");
        let package = workspace.root.join(PACKAGE);
        Self {
            work: inputs.join("work").join(target),
            found: inputs.join("found").join(target),
            corpus: package.join("corpus").join(target),
            words: package.join("dictionaries").join(format!("{target}.dict")),
        }
    }

    fn make(&self) -> Result<()> {
        for directory in [&self.work, &self.found, &self.corpus] {
            fs::create_dir_all(directory).map_err(|e| Failure::caused(directory.display(), e))?;
        }
        Ok(())
    }
}

fn command(
    workspace: &Workspace,
    request: &Request,
    target: &str,
    directories: &Directories,
) -> Command {
    let path = |path: &Path| workspace::text(path);
    let mut command = workspace.nightly();
    command.args(["fuzz", "run", "--sanitizer", &request.sanitizer]);
    command.args(["--fuzz-dir", PACKAGE, "--target-dir", &path(&workspace.target.join("fuzz"))]);
    // New inputs go to the first directory.
    command.args([target, &path(&directories.work), &path(&directories.corpus), "--"]);
    command.arg(format!("-max_total_time={}", u64::from(request.minutes) * 60));
    command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
    command.arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"));
    command.arg("-print_final_stats=1");
    command.arg(format!("-artifact_prefix={}/", path(&directories.found)));
    if directories.words.is_file() {
        command.arg(format!("-dict={}", path(&directories.words)));
    }
    command
}

/// The targets that a manifest of cargo-fuzz lists.
fn targets(manifest: &str) -> Result<Vec<String>> {
    let table: Table = manifest.parse().map_err(|e| Failure::caused("fuzz/Cargo.toml", e))?;
    let bins = table.get("bin").and_then(toml::Value::as_array);
    let names = bins.into_iter().flatten().filter_map(|bin| bin.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

fn chosen(targets: &[String], asked: &[String]) -> Result<Vec<String>> {
    if let Some(unknown) = asked.iter().find(|name| !targets.contains(name)) {
        let known = targets.join(", ");
        return Err(Failure::new(format!("no fuzz target {unknown:?}; there are {known}")));
    }
    Ok(if asked.is_empty() { targets.to_vec() } else { asked.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace() -> Workspace {
        Workspace { root: "/checkout".into(), target: "/build".into() }
    }

    #[test]
    fn every_target_runs_unless_some_are_named() {
        let manifest = "[[bin]]\nname = \"lsn\"\n[[bin]]\nname = \"log\"\n";
        let all = targets(manifest).expect("two targets");
        assert_eq!(chosen(&all, &[]).expect("all"), ["lsn", "log"]);
        assert_eq!(chosen(&all, &["log".into()]).expect("one"), ["log"]);
        let refused = chosen(&all, &["lgo".into()]).expect_err("unknown").to_string();
        assert_eq!(refused, "no fuzz target \"lgo\"; there are lsn, log");
    }

    #[test]
    fn what_a_run_finds_stays_out_of_the_checkout() {
        let request = Request { targets: Vec::new(), minutes: 10, sanitizer: "none".into() };
        let directories = Directories::new(&workspace(), "lsn");
        let command = command(&workspace(), &request, "lsn", &directories);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert!(words.contains(&"-max_total_time=600".into()), "{words:?}");
        assert!(words.contains(&"-artifact_prefix=/build/fuzz-inputs/found/lsn/".into()));
        let first = words.iter().position(|word| word == "lsn").map(|at| at + 1);
        assert_eq!(first.map(|at| &*words[at]), Some("/build/fuzz-inputs/work/lsn"));
    }
}
