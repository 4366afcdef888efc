//! Lets programs that nobody here wrote use the SQL Server in memory over the wire: drivers, and
//! whole programs that read changes. Each logs in, does what its users do, and says of each thing
//! whether it came out as committed.
//!
//! The programs around them are in `tests/clients`; its README describes what they are told and
//! how they answer.

mod client;
mod environment;
mod program;
mod server;
mod verdict;

use std::{path::PathBuf, time::Instant};

pub use client::Client;
use environment::Environment;
use program::Program;
use server::{ServerBinary, ServerProcess};
use verdict::Verdict;

use crate::{Failure, Result, require::Required, workspace::Workspace};

/// What the command line asks for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Whether missing clients may be installed; a required client always may.
    pub install: bool,
    /// The clients to run; all when there is none.
    pub clients: Vec<Client>,
}

/// Which clients were run. A client that was not is never passed over in silence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The clients whose every check passed.
    pub passed: Vec<&'static str>,
    /// The clients that cannot be run here.
    pub skipped: Vec<&'static str>,
}

/// The Python of the private environment with the clients, when there is one.
#[must_use]
pub fn python(workspace: &Workspace) -> Option<PathBuf> {
    Some(Environment::new(workspace).python()).filter(|python| python.exists())
}

/// Runs every client at hand against a server of its own.
///
/// # Errors
/// When a check fails, a required client cannot be run, or the server cannot be built or started.
pub fn run(workspace: &Workspace, required: &Required, request: &Request) -> Result<Ran> {
    let environment = Environment::new(workspace);
    let mut ran = Ran::default();
    let mut usable = Vec::new();
    for client in request.chosen() {
        let name = client.name();
        let must = required.has(name);
        match environment.prepare(client, must || request.install) {
            Ok(()) => usable.push(client),
            Err(reason) if must => return Err(Failure::caused(name, reason)),
            Err(reason) => {
                println!("SKIPPED clients: {name} ({reason})");
                ran.skipped.push(name);
            }
        }
    }
    if usable.is_empty() {
        return Ok(ran);
    }
    let binary = ServerBinary::build(workspace, &usable)?;
    // Its certificate is the one that a client must not trust.
    let stranger = ServerProcess::start(&binary, &environment.directory("stranger")?)?;
    let mut lines = Vec::new();
    let mut failed = 0;
    for client in usable {
        let start = Instant::now();
        let verdict = one(&environment, &binary, client, &stranger)?;
        let took = start.elapsed().as_secs_f64();
        lines.push(format!("  {:<18} {verdict} {took:>7.1} s", client.name()));
        match verdict.failed {
            0 => ran.passed.push(client.name()),
            count => failed += count,
        }
    }
    println!("clients");
    lines.extend(ran.skipped.iter().map(|name| format!("  {name:<18} SKIPPED, see above")));
    println!("{}", lines.join("\n"));
    match failed {
        0 => Ok(ran),
        1 => Err(Failure::new("1 check of a client failed")),
        count => Err(Failure::new(format!("{count} checks of clients failed"))),
    }
}

/// Runs one client to its end.
fn one(
    environment: &Environment,
    binary: &ServerBinary,
    client: Client,
    stranger: &ServerProcess,
) -> Result<Verdict> {
    let directory = environment.directory(client.name())?;
    let server = ServerProcess::of(binary, client, &directory)?;
    let mut command = environment.command(client)?;
    server.describe(&mut command);
    command.env("CDC_CLIENTS_OTHER_CERTIFICATE", stranger.certificate());
    command.env("CDC_CLIENTS_DIRECTORY", &directory);
    Program::new(client, &directory).run(command)
}

impl Request {
    fn chosen(&self) -> Vec<Client> {
        let all = self.clients.is_empty();
        Client::ALL.into_iter().filter(|client| all || self.clients.contains(client)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, process::Command};

    use crate::require::{NAMES, Required};

    #[test]
    fn the_comparison_finds_every_kind_of_difference() {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/clients/python/check.py");
        match Command::new("python3").arg("-B").arg(script).output() {
            Ok(output) => assert!(output.status.success(), "{output:?}"),
            Err(e) => {
                let required = Required::from_env("").unwrap_or_default();
                let must = NAMES.iter().any(|name| required.has(name));
                assert!(!must, "python3: {e}");
                eprintln!("SKIPPED clients: the comparison's own tests (python3: {e})");
            }
        }
    }
}
