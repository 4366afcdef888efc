//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use cdc_fake::Zone;
use chrono::{DateTime, FixedOffset, Utc};
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
            Command::Run(_) | Command::Status(_) | Command::Doctor(_) | Command::Fake(_) => {
                LogLevel::Info
            }
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
    /// Look at the source: jobs, rights, windows, settings, clocks, and say what would mend it
    Doctor(DoctorArgs),
    /// The simulated server on its own
    Fake(FakeArgs),
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

/// Arguments of `cdc doctor`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// The configuration file
    pub(crate) config: PathBuf,
    /// Let warnings, and what could not be looked at, fail the command too
    #[arg(long)]
    pub(crate) strict: bool,
}

/// Arguments of `cdc fake`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FakeArgs {
    #[command(subcommand)]
    pub(crate) command: FakeCommand,
}

/// What the simulated server does.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum FakeCommand {
    /// Serve clients of SQL Server (ODBC, JDBC, FreeTDS, ...) until stopped, from memory
    Serve(Box<ServeArgs>),
}

/// Arguments of `cdc fake serve`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:1433")]
    pub(crate) listen: SocketAddr,
    /// The zone of the server's clock: a name like Europe/Athens, or an offset like +02:00
    #[arg(long, value_name = "ZONE", default_value = "UTC", value_parser = zone)]
    pub(crate) zone: Zone,
    /// What moves the server's clock
    #[arg(long, value_enum, default_value_t)]
    pub(crate) clock: ClockKind,
    /// When a virtual clock begins, in RFC 3339 [default: now]
    #[arg(long, value_name = "MOMENT")]
    pub(crate) start: Option<DateTime<Utc>>,
    /// Statements to run before clients are let in, with batches parted by lines that say GO
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Vec<PathBuf>,
    /// A TOML file of errors, killed connections and slowness to plant
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
    /// The login that may do everything
    #[arg(long, value_name = "NAME", default_value = "sa")]
    pub(crate) user: String,
    /// The environment variable that holds its password [default: no password]
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) password_env: Option<String>,
    /// Whether clients may or must encrypt
    #[arg(long, value_enum, default_value_t)]
    pub(crate) encryption: EncryptionKind,
    /// The server's certificate in PEM [default: made at the start, for localhost]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// Write the server's certificate to this file, in PEM: for clients that look at it
    #[arg(long, value_name = "FILE")]
    pub(crate) write_certificate: Option<PathBuf>,
    /// Write the address to this file once clients are let in
    #[arg(long, value_name = "FILE")]
    pub(crate) address_file: Option<PathBuf>,
}

/// What moves the clock of a served server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClockKind {
    /// The machine's clock
    #[default]
    Real,
    /// Statements: fake.advance_clock and WAITFOR
    Virtual,
}

/// Whether clients encrypt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum EncryptionKind {
    /// Never
    Off,
    /// As the client likes
    #[default]
    Offered,
    /// Always
    Required,
}

fn zone(text: &str) -> Result<Zone, String> {
    if let Ok(zone) = text.parse::<chrono_tz::Tz>() {
        return Ok(Zone::Named(zone));
    }
    let offset = text.parse::<FixedOffset>();
    offset.map(Zone::Fixed).map_err(|_| "no zone of that name, and no offset like +02:00".into())
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
