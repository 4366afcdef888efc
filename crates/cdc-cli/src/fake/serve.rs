//! `cdc fake serve`: a SQL Server in memory that drivers and tools connect to.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use cdc_core::{
    Error, ErrorKind, Result, Timestamp,
    port::{Clock, Shutdown},
};
use cdc_fake::{FakeServer, VirtualClock};
use cdc_tds::{Certificate, Encryption, Settings};
use cdc_tsql::{Server, ServerSettings, run_script};
use tokio::net::TcpListener;

use super::{NAME, faults::Faults};
use crate::{
    args::{ClockKind, EncryptionKind, ServeArgs},
    clock::RealClock,
    exit::Exit,
    report::Report,
    signals,
};

/// How often the server's clock follows the machine's. Statements see a time that is at most this
/// old; waits end at most this late.
const TICK: Duration = Duration::from_millis(1);

/// Runs the command.
pub(crate) fn serve(args: &ServeArgs, json: bool) -> Report {
    let begun = Instant::now();
    let runtime = match crate::parts::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Report::failed(NAME, error.into()),
    };
    match runtime.block_on(listen(args, json)) {
        Ok(address) => {
            let mut report = Report::new(NAME, Exit::Done);
            report.tables = None;
            report.stopped = true;
            report.seconds = begun.elapsed().as_secs_f64();
            let line = format!("clients were served on: {address}");
            report.tell("address", address.to_string(), line);
            report
        }
        Err(error) => Report::failed(NAME, error.into()),
    }
}

/// Serves until a signal. Gives the address.
async fn listen(args: &ServeArgs, json: bool) -> Result<SocketAddr> {
    let shutdown = signals::watch(NAME, json).map_err(crate::parts::no_runtime)?;
    let settings = settings(args)?;
    let server = server(args, &|name| std::env::var(name).ok())?;
    let ticking = (args.clock == ClockKind::Real).then(|| {
        let clock = server.fake().clock().clone();
        tokio::spawn(follow(clock, shutdown.clone()))
    });
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        Error::new(ErrorKind::Config, format!("cannot listen: {error}"))
            .with("listen", args.listen)
            .remedy("give an address of this machine and a port that is free")
    })?;
    let address = listener.local_addr().unwrap_or(args.listen);
    tracing::info!(%address, user = args.user, "serving");
    if let Some(file) = &args.address_file {
        write_address(file, address)?;
    }
    let stop = async move { shutdown.requested().await };
    let served = cdc_tds::serve(listener, Arc::new(server), settings, stop).await;
    drop(ticking);
    served.map_err(|error| {
        Error::new(ErrorKind::Config, format!("cannot serve: {error}"))
            .remedy("give a certificate and a key in PEM that belong together")
    })?;
    Ok(address)
}

/// Moves the server's clock along with the machine's.
async fn follow(clock: VirtualClock, shutdown: Shutdown) {
    while !shutdown.is_requested() {
        clock.advance_to(RealClock.now());
        tokio::time::sleep(TICK).await;
    }
}

/// The server with its user, its script and its faults.
fn server(args: &ServeArgs, environment: &dyn Fn(&str) -> Option<String>) -> Result<Server> {
    let now = match args.clock {
        ClockKind::Real => RealClock.now(),
        ClockKind::Virtual => args.start.map_or_else(|| RealClock.now(), Timestamp::from),
    };
    let fake = FakeServer::new(VirtualClock::manual(now), args.zone);
    let password = match &args.password_env {
        Some(name) => environment(name).ok_or_else(|| {
            Error::new(ErrorKind::Config, "the environment variable of the password is not set")
                .with("password_env", name)
                .remedy("set the variable, or leave --password-env out for an empty password")
        })?,
        None => String::new(),
    };
    log_in(&fake, &args.user, &password)?;
    let settings = ServerSettings { waits_move_clock: args.clock == ClockKind::Virtual };
    let server = Server::new(fake, settings);
    for script in &args.script {
        play(&server, script)?;
    }
    if let Some(file) = &args.faults {
        Faults::read(file)?.plant(server.fake());
    }
    Ok(server)
}

/// Lets the user of the command line log in, with every right.
fn log_in(fake: &FakeServer, user: &str, password: &str) -> Result<()> {
    if user.eq_ignore_ascii_case("sa") {
        fake.set_sa_password(password);
        return Ok(());
    }
    let created = fake.create_login(user, password);
    let raised = created.and_then(|()| fake.alter_login(user, None, |login| login.sysadmin = true));
    raised.map_err(|error| Error::from(error).with("user", user))
}

/// Runs a script of statements.
fn play(server: &Server, script: &Path) -> Result<()> {
    let text = fs::read_to_string(script).map_err(|error| {
        Error::new(ErrorKind::Config, format!("the script cannot be read: {error}"))
            .with("script", script.display())
            .remedy("give the path of a file with statements in UTF-8")
    })?;
    run_script(server, &text).map_err(|message| {
        Error::new(ErrorKind::Config, format!("the script failed: {}", message.text))
            .with("script", script.display())
            .with("line", message.line)
            .with("error", message.number)
            .remedy("correct the statement at this line")
    })
}

fn settings(args: &ServeArgs) -> Result<Settings> {
    let mut settings = Settings {
        encryption: match args.encryption {
            EncryptionKind::Off => Encryption::Off,
            EncryptionKind::Offered => Encryption::Offered,
            EncryptionKind::Required => Encryption::Required,
        },
        ..Settings::default()
    };
    let certificate = match (&args.certificate, &args.key) {
        (Some(chain), Some(key)) => {
            let read = |file: &Path, what: &str| {
                fs::read_to_string(file).map_err(|error| {
                    Error::new(ErrorKind::Config, format!("the {what} cannot be read: {error}"))
                        .with("file", file.display())
                        .remedy("give a file in PEM")
                })
            };
            Certificate { chain: read(chain, "certificate")?, key: read(key, "key")? }
        }
        _ => made_for(args.listen)?,
    };
    if let Some(file) = &args.write_certificate {
        fs::write(file, &certificate.chain).map_err(|error| {
            Error::new(ErrorKind::Config, format!("the certificate cannot be written: {error}"))
                .with("write_certificate", file.display())
                .remedy("give a path in a directory that can be written to")
        })?;
    }
    settings.certificate = Some(certificate);
    Ok(settings)
}

/// A certificate for `localhost` and the address that is listened on.
fn made_for(listen: SocketAddr) -> Result<Certificate> {
    let local = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let address = Some(listen.ip().to_string()).filter(|address| !local.contains(address));
    let names: Vec<&str> = local.iter().chain(&address).map(String::as_str).collect();
    Certificate::self_made(&names).map_err(|error| {
        Error::new(ErrorKind::Config, format!("no certificate can be made: {error}"))
            .with("listen", listen)
            .remedy("give a certificate and its key")
    })
}

fn write_address(file: &Path, address: SocketAddr) -> Result<()> {
    // Renamed into place: who waits for the file never reads half of it.
    let partial = file.with_extension("partial");
    let written = fs::write(&partial, format!("{address}\n"));
    written.and_then(|()| fs::rename(&partial, file)).map_err(|error| {
        Error::new(ErrorKind::Config, format!("the address cannot be written: {error}"))
            .with("address_file", file.display())
            .remedy("give a path in a directory that can be written to")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command, FakeCommand};

    fn args(line: &[&str]) -> ServeArgs {
        let words = ["cdc", "fake", "serve"].into_iter().chain(line.iter().copied());
        match Args::try_parse_from(words).expect("well formed").command {
            Command::Fake(fake) => match fake.command {
                FakeCommand::Serve(args) => *args,
            },
            _ => panic!("cdc fake"),
        }
    }

    #[test]
    fn the_certificate_that_is_written_is_the_one_that_clients_meet() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("certificate.pem");
        let mut asked = args(&["--listen", "127.0.0.2:0"]);
        asked.write_certificate = Some(file.clone());
        let served = settings(&asked).expect("made").certificate.expect("one");
        assert_eq!(fs::read_to_string(&file).expect("is written"), served.chain);
        assert!(!served.chain.contains("PRIVATE KEY"));
        asked.write_certificate = Some(directory.path().join("nowhere/certificate.pem"));
        let error = settings(&asked).expect_err("no such directory");
        assert!(error.report().contains("write_certificate="), "{}", error.report());
    }

    #[test]
    fn the_password_comes_from_the_environment_alone() {
        let asked = args(&["--user", "tester", "--password-env", "SECRET"]);
        let error = server(&asked, &|_| None).expect_err("not set");
        assert!(error.report().contains("password_env=SECRET"), "{}", error.report());
        let server = server(&asked, &|name| (name == "SECRET").then(|| "x".into())).expect("made");
        assert!(server.fake().authenticate("tester", "x").expect("opens").sysadmin);
        assert!(server.fake().authenticate("sa", "").is_err());
    }

    #[test]
    fn a_virtual_clock_begins_where_it_is_told_to_in_the_zone_it_is_told_to() {
        let asked = args(&[
            "--clock",
            "virtual",
            "--start",
            "2024-07-01T00:00:00Z",
            "--zone",
            "America/New_York",
        ]);
        let server = server(&asked, &|_| None).expect("made");
        assert_eq!(server.fake().clock().time().to_string(), "2024-07-01T00:00:00Z");
        let shown = server.fake().zone().reading(server.fake().clock().time());
        assert_eq!(shown.to_string(), "2024-06-30T20:00:00.000000");
    }

    #[test]
    fn a_script_that_fails_names_its_line() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("start.sql");
        fs::write(&file, "CREATE DATABASE shop\nGO\nUSE shop\nSELEC 1\n").expect("is written");
        let asked = args(&["--script", &file.to_string_lossy()]);
        let error = server(&asked, &|_| None).expect_err("refused");
        assert!(error.report().contains("line=4"), "{}", error.report());
        fs::write(&file, "CREATE DATABASE shop\nGO\nUSE shop\n").expect("is written");
        let server = server(&asked, &|_| None).expect("runs");
        assert!(server.fake().find_database("shop").is_some());
    }
}
