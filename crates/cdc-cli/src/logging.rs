//! Log lines on standard error, and the engine's events as log lines.
//!
//! Levels mean: error, data at risk or a table that stopped; warn, something to look at; info,
//! what became durable; debug, each step. No line carries a cell's value: the events do not, and
//! libraries below are held at warnings, whatever level is asked for.

use std::io;

use cdc_core::port::{Event, Observer};
use tracing_subscriber::{EnvFilter, fmt::MakeWriter};

use crate::{
    args::{LogFormat, LogLevel, OutputArgs},
    progress::Progress,
};

/// How the targets of this project's lines begin: those of its crates, and the engine's events.
const OWN: &str = "cdc";
/// The target of the engine's events.
const ENGINE: &str = "cdc::engine";

/// Starts logging for the whole process.
pub(crate) fn start(output: &OutputArgs, level: LogLevel, progress: &Progress) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(level))
        .with_ansi(false)
        .with_writer(Above(progress.clone()));
    let started = match output.log_format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    // Only a second start fails, and then lines are written already.
    drop(started);
}

fn filter(level: LogLevel) -> EnvFilter {
    let (own, others) = match level {
        LogLevel::Off => ("off", "off"),
        LogLevel::Error => ("error", "error"),
        LogLevel::Warn => ("warn", "warn"),
        LogLevel::Info => ("info", "warn"),
        LogLevel::Debug => ("debug", "warn"),
        LogLevel::Trace => ("trace", "warn"),
    };
    // The drivers log the servers' messages, and some of them quote a value.
    let quiet = "tiberius=off,mssql_tds=off,tokio_postgres=off";
    EnvFilter::new(format!("{others},{quiet},{OWN}={own}"))
}

/// Writes log lines above the progress lines.
#[derive(Clone)]
struct Above(Progress);

impl<'a> MakeWriter<'a> for Above {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

impl io::Write for Above {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.suspend(|| io::stderr().lock().write(line))
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Tells the engine's events to the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogObserver;

impl Observer for LogObserver {
    fn on(&self, event: &Event<'_>) {
        match event {
            Event::Attached { table, mark: Some(mark) } => {
                let (sequence, end) = (mark.sequence, mark.end);
                tracing::info!(target: ENGINE, table, sequence, %end, "attached, resuming");
            }
            Event::Attached { table, mark: None } => {
                tracing::info!(target: ENGINE, table, "attached, nothing copied yet");
            }
            Event::CycleStarted { high, .. } => {
                tracing::debug!(target: ENGINE, high = %high.position, "cycle started");
            }
            Event::Idle { high, .. } => {
                let high = high.map(|high| high.position.to_string());
                tracing::debug!(target: ENGINE, high, "nothing new");
            }
            Event::WaitingForCapture { table } => {
                tracing::info!(target: ENGINE, table, "capture has not reached the table yet");
            }
            Event::Staged { table, rows, bytes } => {
                tracing::debug!(target: ENGINE, table, rows, bytes, "staged");
            }
            Event::Committed { table, mark, facts } => {
                let (sequence, end) = (mark.sequence, mark.end);
                let (rows, ms) = (facts.counts.rows, facts.duration_ms);
                tracing::info!(target: ENGINE, table, sequence, %end, rows, ms, "committed");
            }
            Event::Discarded { table } => {
                tracing::info!(target: ENGINE, table, "staged rows discarded");
            }
            Event::VerdictPublished { table, verdict } => {
                if let Some(until) = verdict.finalized_until {
                    tracing::info!(target: ENGINE, table, finalized_until = %until, "complete");
                }
            }
            Event::Retrying { table, error, attempt, pause_ms } => {
                let (kind, error) = (error.kind().name(), error.report());
                tracing::warn!(
                    target: ENGINE, table, kind, attempt, pause_ms, error, "failed, trying again"
                );
            }
            Event::TableStopped { table, error } => {
                let (kind, advice) = (error.kind().name(), error.advice());
                let error = error.report();
                tracing::error!(target: ENGINE, table, kind, error, advice, "table stopped");
            }
            Event::Warning { table, message } => tracing::warn!(target: ENGINE, table, "{message}"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_below_never_go_under_warnings() {
        for level in [LogLevel::Info, LogLevel::Debug, LogLevel::Trace] {
            let text = filter(level).to_string();
            assert!(text.split(',').any(|part| part == "warn"), "{text}");
        }
        assert!(!filter(LogLevel::Off).to_string().contains("warn"));
    }
}
