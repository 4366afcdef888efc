//! The command `cargo xtask`.

#![allow(clippy::print_stderr, reason = "a task's report is what it prints")]

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, Subcommand};
use xtask::{
    Result, bench, clients, fuzz, readers,
    require::{self, Required},
    simulation, steps, tidy,
    workspace::Workspace,
};

/// The project's tasks. They need cargo alone; further tools are used when present and skipped by
/// name when not, unless CDC_REQUIRE lists them.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every test: tidy, fmt, clippy, cargo test, mssql-tds, the simulator, readers, clients.
    Test,
    /// Run every test and let nothing be skipped.
    ///
    /// The same as `test` with a CDC_REQUIRE that lists fmt, clippy, mssql-tds, the readers duckdb
    /// and polars-deltalake, and every client; a value given in the environment wins.
    Ci,
    /// Check the rules of the source tree; each breach is `path:line: rule: what to do`.
    Tidy {
        /// The tree to check instead of this workspace; every file below it counts.
        #[arg(long, value_name = "DIR")]
        tree: Option<PathBuf>,
    },
    /// Simulate the engine and the Delta sink under faults; `-- --help` tells the arguments.
    Sim {
        /// The simulator's own arguments: --seeds N, --seed S, --minutes M, --script FILE and more;
        /// --release builds it in release.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Measure speed and memory against physical references, in release, and print a table.
    Bench {
        /// The lines to measure; all that have a target when none is named.
        #[arg(value_name = "LINE")]
        lines: Vec<String>,
        /// Small sizes that test the measurement itself; the figures mean nothing.
        #[arg(long)]
        quick: bool,
    },
    /// Compare written tables row for row in Delta readers other than the one that wrote them.
    Readers(ReadersArguments),
    /// Let foreign drivers and programs use the SQL Server in memory, and compare what they see.
    Clients(ClientsArguments),
    /// Run the fuzz targets one after the other. Needs a nightly toolchain and cargo-fuzz.
    Fuzz(FuzzArguments),
}

#[derive(Debug, clap::Args)]
struct FuzzArguments {
    /// The targets to run; all when there is none.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Minutes for each target.
    #[arg(long, value_name = "M", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// The sanitizer to build with, as cargo-fuzz names it. The project has no unsafe code; the
    /// libraries below it have.
    #[arg(long, value_name = "NAME", default_value = "none")]
    sanitizer: String,
}

#[derive(Debug, clap::Args)]
struct ReadersArguments {
    /// Install the missing readers into a private environment below the build directory.
    #[arg(long)]
    install: bool,
    /// Also use an optional reader (chdb: 534 MB) and install it when missing.
    #[arg(long, value_name = "READER")]
    with: Vec<readers::Reader>,
    /// Compare this directory instead of writing the fixture anew.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ClientsArguments {
    /// The clients to run; all when there is none.
    #[arg(value_name = "NAME")]
    clients: Vec<clients::Client>,
    /// Install the missing clients into private directories below the build directory.
    #[arg(long)]
    install: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Test => steps::run(&Workspace::find()?, &Required::from_env("")?),
        Task::Ci => steps::run(&Workspace::find()?, &Required::from_env(require::CI)?),
        Task::Tidy { tree: Some(root) } => steps::report(&tidy::check(&xtask::Tree::walked(root)?)),
        Task::Tidy { tree: None } => steps::tidy(&Workspace::find()?),
        Task::Sim { arguments } => simulation::run(&Workspace::find()?, arguments),
        Task::Fuzz(arguments) => {
            let request = fuzz::Request {
                targets: arguments.targets.clone(),
                minutes: arguments.minutes,
                sanitizer: arguments.sanitizer.clone(),
            };
            fuzz::run(&Workspace::find()?, &request)
        }
        Task::Clients(arguments) => {
            let request =
                clients::Request { install: arguments.install, clients: arguments.clients.clone() };
            clients::run(&Workspace::find()?, &Required::from_env("")?, &request).map(|_| ())
        }
        Task::Bench { lines, quick } => bench::run(&Workspace::find()?, lines, *quick),
        Task::Readers(arguments) => {
            let request = readers::Request {
                install: arguments.install,
                with: arguments.with.clone(),
                directory: arguments.dir.clone(),
            };
            readers::run(&Workspace::find()?, &Required::from_env("")?, &request).map(|_| ())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Arguments;

    #[test]
    fn the_command_line_holds_together() {
        Arguments::command().debug_assert();
    }
}
