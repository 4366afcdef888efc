//! The server under test: the project's own binary, started for each client and ended after it.

use std::{
    fs::File,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use super::client::Client;
use crate::{
    Failure, Result, steps,
    workspace::{Workspace, last_line},
};

/// The login that clients use.
const USER: &str = "sa";
/// Its password. The server listens on loopback and ends with the task.
const PASSWORD: &str = "Only-4-clients";
/// What the server prints before its address.
const LISTENING: &str = "listening on ";
/// How long a server may take to say where it listens.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The binaries that serve.
pub(super) struct ServerBinary {
    serve: PathBuf,
    /// Serves a database and writes what the project's own source reads of it.
    fixture: PathBuf,
}

impl ServerBinary {
    /// Builds what the clients need.
    pub(super) fn build(workspace: &Workspace, clients: &[Client]) -> Result<Self> {
        let mut build = vec!["build", "--package", "cdc-cli", "--bin", "cdc"];
        steps::run_to_end(&mut workspace.cargo(&build))?;
        if clients.contains(&Client::MssqlCdcPyspark) {
            build = vec!["build", "--package", "cdc-tests", "--bin", "client_fixture"];
            steps::run_to_end(&mut workspace.cargo(&build))?;
        }
        let directory = workspace.target.join("debug");
        Ok(Self { serve: directory.join("cdc"), fixture: directory.join("client_fixture") })
    }
}

/// A running server; it ends with its value.
pub(super) struct ServerProcess {
    child: Child,
    host: String,
    port: String,
    certificate: PathBuf,
}

impl ServerProcess {
    /// The server that a client is run against.
    pub(super) fn of(binary: &ServerBinary, client: Client, directory: &Path) -> Result<Self> {
        if client != Client::MssqlCdcPyspark {
            return Self::start(binary, directory);
        }
        let mut command = Command::new(&binary.fixture);
        command.arg(directory);
        Self::spawn(command, directory)
    }

    /// Starts an empty server; its log and its certificate go to the directory.
    pub(super) fn start(binary: &ServerBinary, directory: &Path) -> Result<Self> {
        let mut command = Command::new(&binary.serve);
        command.args(["fake", "serve", "--listen", "127.0.0.1:0", "--clock", "virtual"]);
        command.args(["--user", USER, "--password", PASSWORD]);
        command.arg("--write-certificate").arg(certificate_of(directory));
        Self::spawn(command, directory)
    }

    fn spawn(mut command: Command, directory: &Path) -> Result<Self> {
        let path = directory.join("server.log");
        let log = File::create(&path).map_err(|e| Failure::caused(path.display(), e))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child =
            command.spawn().map_err(|e| Failure::caused(command.get_program().display(), e))?;
        let address = address_of(&mut child);
        let mut server = Self {
            child,
            host: String::new(),
            port: String::new(),
            certificate: certificate_of(directory),
        };
        let Some((host, port)) = address else {
            let said = std::fs::read(&path).map(|text| last_line(&text)).unwrap_or_default();
            return Err(Failure::new(format!("the server does not say where it listens: {said}")));
        };
        (server.host, server.port) = (host, port);
        Ok(server)
    }

    /// Its certificate, in PEM.
    pub(super) fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Tells a program where the server is and how to log in.
    pub(super) fn describe(&self, command: &mut Command) {
        command
            .env("CDC_CLIENTS_HOST", &self.host)
            .env("CDC_CLIENTS_PORT", &self.port)
            .env("CDC_CLIENTS_USER", USER)
            .env("CDC_CLIENTS_PASSWORD", PASSWORD)
            .env("CDC_CLIENTS_CERTIFICATE", &self.certificate);
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // A server that has ended by itself leaves nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn certificate_of(directory: &Path) -> PathBuf {
    directory.join("certificate.pem")
}

/// Host and port that the server prints; none when it ends, or says nothing in time. What it prints
/// later is read and dropped, so that it never waits for a reader.
fn address_of(child: &mut Child) -> Option<(String, String)> {
    let stdout = child.stdout.take()?;
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
            if let Some(address) = read_address(&line) {
                let _ = sender.try_send(address);
            }
        }
    });
    receiver.recv_timeout(START_LIMIT).ok()
}

fn read_address(line: &str) -> Option<(String, String)> {
    let (_, address) = line.split_once(LISTENING)?;
    let (host, port) = address.split_whitespace().next()?.rsplit_once(':')?;
    Some((host.to_owned(), port.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_follows_its_words() {
        let read = |line| read_address(line).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(read("listening on 127.0.0.1:14330").as_deref(), Some("127.0.0.1 14330"));
        assert_eq!(read("listening on [::1]:7 (UTC)").as_deref(), Some("[::1] 7"));
        assert_eq!(read("starting"), None);
    }
}
