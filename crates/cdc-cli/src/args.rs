//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// SQL Server change data capture into Delta Lake.
#[derive(Debug, Parser)]
#[command(name = "cdc", version, about, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// The least level of log lines: what was asked for, or the command's own. The demonstration
    /// tells its story in its report.
    pub(crate) fn log_level(&self) -> LogLevel {
        self.output.log_level.unwrap_or(match self.command {
            Command::Demo(_) => LogLevel::Warn,
            Command::Run(_) | Command::Status(_) => LogLevel::Info,
        })
    }
}

/// How the process talks.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Print one JSON object on standard output at the end, and nothing else there
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// The least level of log lines on standard error [default: info, of demo: warn]
    #[arg(long, global = true, value_enum, value_name = "LEVEL")]
    pub(crate) log_level: Option<LogLevel>,
    /// The form of log lines
    #[arg(long, global = true, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) log_format: LogFormat,
    /// Draw no progress lines, even on a terminal
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
}

/// The least level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// No log
    Off,
    /// Data at risk, or a table that stopped
    Error,
    /// Something to look at that does not stop the run
    Warn,
    /// What became durable
    Info,
    /// Each step
    Debug,
    /// Everything
    Trace,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    #[default]
    Text,
    /// One JSON object a line
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Copy real rows from a simulated SQL Server into Delta tables, with a crash half-way, and
    /// prove that the copy equals the source
    Demo(DemoArgs),
    /// Copy the configured tables until stopped
    Run(RunArgs),
    /// Show how far the copies are, without writing anything
    Status(StatusArgs),
}

/// Arguments of `cdc demo`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// The directory to put the Delta tables in; created when missing
    #[arg(long, default_value = "cdc-demo")]
    pub(crate) dir: PathBuf,
    /// A directory with flights, planes, airports and airlines as .csv, .csv.zst or .csv.zip;
    /// without it the rows in the binary are used
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,
    /// Load at most this many flights
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rows: Option<u64>,
    /// Seed of the live workload and of the place of the crash
    #[arg(long, default_value_t = 20_131_103)]
    pub(crate) seed: u64,
    /// Remove what an earlier demo left in the directory and start afresh
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// Arguments of `cdc run`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The configuration file
    pub(crate) config: PathBuf,
    /// Copy what the source has now, then end
    #[arg(long)]
    pub(crate) once: bool,
}

/// Arguments of `cdc status`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StatusArgs {
    /// The configuration file
    pub(crate) config: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn output_options_go_before_and_after_the_command() {
        for line in [["cdc", "--json", "run", "c.toml"], ["cdc", "run", "c.toml", "--json"]] {
            let args = Args::try_parse_from(line).expect("well formed");
            assert!(args.output.json);
            assert_eq!(args.log_level(), LogLevel::Info);
        }
        assert!(Args::try_parse_from(["cdc", "demo", "--rows", "0"]).is_err());
    }

    #[test]
    fn the_demonstration_logs_warnings_unless_told_otherwise() {
        let level = |line: &[&str]| Args::try_parse_from(line).expect("well formed").log_level();
        assert_eq!(level(&["cdc", "demo"]), LogLevel::Warn);
        assert_eq!(level(&["cdc", "demo", "--log-level", "info"]), LogLevel::Info);
        assert_eq!(level(&["cdc", "--log-level", "debug", "demo"]), LogLevel::Debug);
    }
}
