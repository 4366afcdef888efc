//! The steps of `cargo xtask test`, one after the other, each with its seconds.

use std::{
    fmt,
    process::Command,
    time::{Duration, Instant},
};

use crate::{
    Failure, Finding, Result, Tree, clients, openssl, postgres, readers,
    require::{self, Required},
    simulation, tidy as rules,
    workspace::{self, Workspace},
};

/// A part of the tests, in the order of [`Step::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Tidy,
    Fmt,
    Clippy,
    Test,
    MssqlTds,
    Planted,
    Sim,
    Readers,
    Clients,
}

/// The second command of the step `clippy`: the mistakes of the simulator's proof are compiled with
/// a feature alone, in these packages alone.
const CLIPPY_PLANTED: [&str; 9] = [
    "clippy",
    "--package=cdc-core",
    "--package=cdc-delta",
    "--package=cdc-sim",
    "--all-targets",
    "--features=cdc-sim/planted-bugs",
    "--",
    "-D",
    "warnings",
];

/// The second command of the step for the second driver of SQL Server.
const CLIPPY_MSSQL_TDS: [&str; 7] = [
    "clippy",
    "--package=cdc-mssql",
    "--all-targets",
    "--features=cdc-mssql/mssql-tds",
    "--",
    "-D",
    "warnings",
];

/// How a step ended.
enum Outcome {
    Passed(Duration),
    /// Passed with some of its parts, which are named, left out.
    PassedWithout(Duration, Vec<&'static str>),
    Skipped(String),
    Failed(Duration),
    NotRun,
}

impl Step {
    const ALL: [Self; 9] = [
        Self::Tidy,
        Self::Fmt,
        Self::Clippy,
        Self::Test,
        Self::MssqlTds,
        Self::Sim,
        Self::Planted,
        Self::Readers,
        Self::Clients,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Tidy => "tidy",
            Self::Fmt => "fmt",
            Self::Clippy => "clippy",
            Self::Test => "test",
            Self::MssqlTds => openssl::MSSQL_TDS,
            Self::Planted => "planted",
            Self::Sim => "sim",
            Self::Readers => "readers",
            Self::Clients => "clients",
        }
    }

    /// The cargo command behind the step; the others run in this process.
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Tidy | Self::Sim | Self::Readers | Self::Clients => &[],
            Self::Fmt => &["fmt", "--all", "--check"],
            Self::Clippy => &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
            Self::Test => &["test", "--workspace"],
            Self::MssqlTds => &[
                "test",
                "--package=cdc-mssql",
                "--package=cdc-wire-tests",
                "--features=cdc-wire-tests/mssql-tds",
            ],
            Self::Planted => &[
                "test",
                "--workspace",
                "--lib",
                "--test=it",
                "--features=cdc-sim/planted-bugs",
                "planted",
            ],
        }
    }

    /// Why the machine cannot do the step, if it cannot.
    fn missing(self, workspace: &Workspace) -> Option<String> {
        let component = match self {
            Self::Fmt => "rustfmt",
            Self::Clippy => "clippy",
            Self::MssqlTds => return openssl::missing(),
            _ => return None,
        };
        let present = workspace::succeeds(&mut workspace.cargo(&[self.name(), "--version"]));
        (!present).then(|| format!("not installed; rustup component add {component}"))
    }

    fn run(self, workspace: &Workspace, required: &Required) -> Result<Outcome> {
        let start = Instant::now();
        match self {
            Self::Tidy => tidy(workspace)?,
            Self::Sim => simulation::step(workspace)?,
            Self::Readers => {
                let compared = readers::run(workspace, required, &readers::Request::default())?;
                return Ok(Outcome::of(&compared.by, compared.skipped, start.elapsed()));
            }
            Self::Clients => {
                let ran = clients::run(workspace, required, &clients::Request::default())?;
                return Ok(Outcome::of(&ran.passed, ran.skipped, start.elapsed()));
            }
            Self::Fmt | Self::Clippy | Self::Test | Self::MssqlTds | Self::Planted => {
                let mut command = workspace.cargo(self.arguments());
                command.env(require::VARIABLE, required.text());
                run_to_end(&mut command)?;
                if self == Self::Clippy {
                    run_to_end(&mut workspace.cargo(&CLIPPY_PLANTED))?;
                }
                if self == Self::MssqlTds {
                    run_to_end(&mut workspace.cargo(&CLIPPY_MSSQL_TDS))?;
                }
                if self == Self::Test && !postgres::is_installed() {
                    // What a test says is not shown when it passes.
                    let name = postgres::NAME;
                    println!("SKIPPED test: {name} (not installed; apt-get install postgresql)");
                    return Ok(Outcome::PassedWithout(start.elapsed(), vec![name]));
                }
            }
        }
        Ok(Outcome::Passed(start.elapsed()))
    }
}

impl Outcome {
    /// How a step with parts that may be missing ended.
    fn of(done: &[&str], skipped: Vec<&'static str>, took: Duration) -> Self {
        match (done.is_empty(), skipped.is_empty()) {
            (true, _) => Self::Skipped(format!("{}: see above", skipped.join(", "))),
            (false, true) => Self::Passed(took),
            (false, false) => Self::PassedWithout(took, skipped),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed(took) => write!(f, "ok       {:>7.1} s", took.as_secs_f64()),
            Self::PassedWithout(took, skipped) => {
                write!(f, "ok       {:>7.1} s  SKIPPED {}", took.as_secs_f64(), skipped.join(", "))
            }
            Self::Failed(took) => write!(f, "FAILED   {:>7.1} s", took.as_secs_f64()),
            Self::Skipped(reason) => write!(f, "SKIPPED  {reason}"),
            Self::NotRun => write!(f, "not run"),
        }
    }
}

/// Runs every step, and stops at the first that fails.
///
/// # Errors
/// The failure of the step, or a step that is required and cannot run here.
pub fn run(workspace: &Workspace, required: &Required) -> Result<()> {
    let mut outcomes = Vec::new();
    let mut failed = None;
    for step in Step::ALL {
        let name = step.name();
        if failed.is_some() {
            outcomes.push((name, Outcome::NotRun));
            continue;
        }
        match step.arguments() {
            [] => println!("== {name}"),
            arguments => println!("== {name}: cargo {}", arguments.join(" ")),
        }
        let start = Instant::now();
        let result = match step.missing(workspace) {
            Some(reason) if required.has(name) => Err(Failure::new(reason)),
            Some(reason) => {
                println!("SKIPPED {name}: {reason}");
                outcomes.push((name, Outcome::Skipped(reason)));
                continue;
            }
            None => step.run(workspace, required),
        };
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(failure) => {
                failed = Some(Failure::new(format!("step {name} failed: {failure}")));
                Outcome::Failed(start.elapsed())
            }
        };
        println!("== {name} {outcome}\n");
        outcomes.push((name, outcome));
    }
    println!("summary");
    for (name, outcome) in &outcomes {
        println!("  {name:<9} {outcome}");
    }
    failed.map_or(Ok(()), Err)
}

/// Checks the rules of the workspace's tree.
///
/// # Errors
/// When there is a breach, or the tree cannot be read.
pub fn tidy(workspace: &Workspace) -> Result<()> {
    report(&rules::check(&Tree::tracked(&workspace.root)?))
}

/// Prints each finding on a line.
///
/// # Errors
/// When there is one.
pub fn report(findings: &[Finding]) -> Result<()> {
    for finding in findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err(Failure::new("1 rule of the tree is broken")),
        count => Err(Failure::new(format!("{count} rules of the tree are broken"))),
    }
}

/// Runs a command with this process's output, and waits for its end.
///
/// # Errors
/// When it does not start, or ends with anything but success.
pub fn run_to_end(command: &mut Command) -> Result<()> {
    let status =
        command.status().map_err(|e| Failure::caused(command.get_program().display(), e))?;
    if status.success() {
        return Ok(());
    }
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    Err(Failure::new(format!("`{}` ended with {status}", line.join(" "))))
}
