//! The server under test: the project's own binary, started for each client and ended after it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
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
/// The variable that tells it to the server.
const PASSWORD_VARIABLE: &str = "CDC_CLIENTS_PASSWORD";
/// How long a server may take to say where it listens, and how often it is looked for.
const START_LIMIT: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);

/// The binaries that serve.
pub(super) struct ServerBinary {
    serve: PathBuf,
    /// Serves a database and writes what the project's own source reads of it.
    fixture: PathBuf,
}

impl ServerBinary {
    /// Builds what the clients need.
    pub(super) fn build(workspace: &Workspace, clients: &[Client]) -> Result<Self> {
        // With the workspace, so that nothing below is built anew after its tests.
        let mut build = vec!["build", "--workspace", "--bin", "cdc"];
        if clients.contains(&Client::MssqlCdcPyspark) {
            build.extend(["--bin", "client_fixture"]);
        }
        steps::run_to_end(&mut workspace.cargo(&build))?;
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
        command.args(["--user", USER, "--password-env", PASSWORD_VARIABLE]);
        command.arg("--write-certificate").arg(certificate_of(directory));
        command.arg("--address-file").arg(address_file_of(directory));
        Self::spawn(command, directory)
    }

    fn spawn(mut command: Command, directory: &Path) -> Result<Self> {
        let path = directory.join("server.log");
        let log = File::create(&path).map_err(|e| Failure::caused(path.display(), e))?;
        let errors = log.try_clone().map_err(|e| Failure::caused(path.display(), e))?;
        command.env(PASSWORD_VARIABLE, PASSWORD);
        command.stdin(Stdio::null()).stdout(log).stderr(errors);
        let child =
            command.spawn().map_err(|e| Failure::caused(command.get_program().display(), e))?;
        let mut server = Self {
            child,
            host: String::new(),
            port: String::new(),
            certificate: certificate_of(directory),
        };
        let Some((host, port)) = server.address(&address_file_of(directory)) else {
            let said = fs::read(&path).map(|text| last_line(&text)).unwrap_or_default();
            return Err(Failure::new(format!("the server does not say where it listens: {said}")));
        };
        (server.host, server.port) = (host, port);
        Ok(server)
    }

    /// Host and port that the server writes; none when it ends, or writes nothing in time.
    fn address(&mut self, file: &Path) -> Option<(String, String)> {
        let deadline = Instant::now() + START_LIMIT;
        while Instant::now() < deadline {
            if let Ok(text) = fs::read_to_string(file) {
                return read_address(&text);
            }
            if self.child.try_wait().ok()?.is_some() {
                return None;
            }
            thread::sleep(POLL);
        }
        None
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

fn address_file_of(directory: &Path) -> PathBuf {
    directory.join("address")
}

fn read_address(text: &str) -> Option<(String, String)> {
    let (host, port) = text.trim().rsplit_once(':')?;
    Some((host.to_owned(), port.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_a_host_and_a_port() {
        let read = |line| read_address(line).map(|(host, port)| format!("{host} {port}"));
        assert_eq!(read("127.0.0.1:14330\n").as_deref(), Some("127.0.0.1 14330"));
        assert_eq!(read("[::1]:7").as_deref(), Some("[::1] 7"));
        assert_eq!(read("starting"), None);
    }
}
