//! Signals: the first asks for a stop, the second ends the process at once.

use std::{
    io::{self, Write},
    process,
};

use cdc_core::port::{Shutdown, ShutdownHandle};

use crate::exit::Exit;

/// Watches Ctrl-C and, where there is one, SIGTERM, for as long as the runtime lives.
///
/// # Errors
/// When the signals cannot be watched.
pub(crate) fn watch() -> io::Result<Shutdown> {
    let (handle, shutdown) = ShutdownHandle::new();
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        say("stopping: the batch in hand is finished or discarded; a second signal ends at once");
        handle.request();
        signals.next().await;
        say("ended at once; what was not committed stays invisible and is copied again");
        process::exit(i32::from(Exit::Failed.code()));
    });
    Ok(shutdown)
}

fn say(line: &str) {
    // Nobody is left to tell when standard error is gone.
    drop(writeln!(io::stderr().lock(), "cdc: {line}"));
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
