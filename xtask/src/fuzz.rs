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
    let known = targets(&text)?;
    let chosen = chosen(&known, &request.targets)?;
    let features = features(&known, &chosen);
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
        let mut command = command(workspace, request, &target, &features, &directories);
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
    features: &[String],
    directories: &Directories,
) -> Command {
    let path = |path: &Path| workspace::text(path);
    let mut command = workspace.nightly();
    command.args(["fuzz", "run", "--sanitizer", &request.sanitizer]);
    command.args(["--fuzz-dir", PACKAGE, "--target-dir", &path(&workspace.target.join("fuzz"))]);
    // What no chosen target needs takes most of the time to build.
    command.args(["--no-default-features", "--features", &features.join(",")]);
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

/// A target of a manifest of cargo-fuzz, and the features that it needs.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    name: String,
    features: Vec<String>,
}

/// The targets that a manifest of cargo-fuzz lists.
fn targets(manifest: &str) -> Result<Vec<Target>> {
    let table: Table = manifest.parse().map_err(|e| Failure::caused("fuzz/Cargo.toml", e))?;
    let bins = table.get("bin").and_then(toml::Value::as_array);
    let target = |bin: &toml::Value| {
        let needed = bin.get("required-features").and_then(toml::Value::as_array);
        let features = needed.into_iter().flatten().filter_map(toml::Value::as_str);
        Some(Target {
            name: bin.get("name")?.as_str()?.to_owned(),
            features: features.map(str::to_owned).collect(),
        })
    };
    Ok(bins.into_iter().flatten().filter_map(target).collect())
}

fn chosen(targets: &[Target], asked: &[String]) -> Result<Vec<String>> {
    let names = || targets.iter().map(|target| target.name.clone());
    if let Some(unknown) = asked.iter().find(|name| names().all(|known| known != **name)) {
        let known = names().collect::<Vec<_>>().join(", ");
        return Err(Failure::new(format!("no fuzz target {unknown:?}; there are {known}")));
    }
    Ok(if asked.is_empty() { names().collect() } else { asked.to_vec() })
}

/// What the chosen targets need, each feature once: one build serves all of them.
fn features(targets: &[Target], chosen: &[String]) -> Vec<String> {
    let needed = targets.iter().filter(|target| chosen.contains(&target.name));
    let mut features: Vec<String> = needed.flat_map(|target| target.features.clone()).collect();
    features.sort();
    features.dedup();
    features
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
        let command = command(&workspace(), &request, "lsn", &["tds".into()], &directories);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert!(words.contains(&"-max_total_time=600".into()), "{words:?}");
        assert!(words.contains(&"tds".into()), "{words:?}");
        assert!(words.contains(&"-artifact_prefix=/build/fuzz-inputs/found/lsn/".into()));
        let first = words.iter().position(|word| word == "lsn").map(|at| at + 1);
        assert_eq!(first.map(|at| &*words[at]), Some("/build/fuzz-inputs/work/lsn"));
    }

    #[test]
    fn a_run_builds_what_its_targets_need_and_no_more() {
        let manifest = "[[bin]]\nname = \"lsn\"\n\
                        [[bin]]\nname = \"log\"\nrequired-features = [\"delta\"]\n\
                        [[bin]]\nname = \"rpc\"\nrequired-features = [\"tds\"]\n";
        let all = targets(manifest).expect("three targets");
        let needed = |asked: &[&str]| {
            let asked: Vec<_> = asked.iter().map(|name| (*name).to_owned()).collect();
            features(&all, &chosen(&all, &asked).expect("known")).join(",")
        };
        assert_eq!(needed(&[]), "delta,tds");
        assert_eq!(needed(&["rpc"]), "tds");
        assert_eq!(needed(&["lsn"]), "");
    }
}
