//! Signals: the first asks for a stop, the second ends the process at once.

use std::{
    io::{self, Write},
    process,
    sync::mpsc,
    thread,
    time::Duration,
};

use cdc_core::{
    Error, ErrorKind,
    port::{Shutdown, ShutdownHandle},
};

use crate::report::Report;

/// The longest wait for a reader of the last report: at once means at once.
const REPORT_WAIT: Duration = Duration::from_secs(1);

/// Watches Ctrl-C and, where there is one, SIGTERM, for as long as the runtime lives. With `json`
/// the second one writes the report of a failed `command` before the process ends.
///
/// # Errors
/// When the signals cannot be watched.
pub(crate) fn watch(command: &'static str, json: bool) -> io::Result<Shutdown> {
    let (handle, shutdown) = ShutdownHandle::new();
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        tracing::warn!(
            "stopping: the batch in hand is finished or discarded; a second signal ends at once"
        );
        handle.request();
        signals.next().await;
        let report = ended_at_once(command);
        tracing::warn!("ended at once; what was not committed stays invisible and is copied again");
        // No await from here on: the command waits for this task before it reports itself.
        if json {
            write(report.clone());
        }
        process::exit(i32::from(report.exit_code));
    });
    Ok(shutdown)
}

/// The report of a command that a second signal ended.
fn ended_at_once(command: &'static str) -> Report {
    let error = Error::new(ErrorKind::Cancelled, "a second signal ended the process at once")
        .remedy("start again; what was not committed stays invisible and is copied again");
    let mut report = Report::failed(command, error.into());
    report.stopped = true;
    report
}

/// Writes the report, unless nobody reads it.
fn write(report: Report) {
    let (written, wait) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut out = io::stdout().lock();
        // Nobody is left to tell when standard output is gone.
        drop(report.write(true, &mut out).and_then(|()| out.flush()));
        let _ = written.send(());
    });
    let _ = wait.recv_timeout(REPORT_WAIT);
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    #[allow(clippy::unnecessary_wraps, reason = "the same form as on Unix")]
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
