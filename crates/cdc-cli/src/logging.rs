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

/// Crates whose lines follow the level asked for.
const OWN: [&str; 4] = ["cdc_cli", "cdc_core", "cdc_delta", "cdc_fake"];

/// Starts logging for the whole process.
pub(crate) fn start(output: &OutputArgs, progress: &Progress) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter(output.log_level))
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
    let mut text = others.to_owned();
    for name in OWN {
        text.push_str(&format!(",{name}={own}"));
    }
    EnvFilter::new(text)
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
            Event::Attached { table, mark } => match mark {
                Some(mark) => tracing::info!(
                    table, sequence = mark.sequence, mark = %mark.end, "attached, resuming"
                ),
                None => tracing::info!(table, "attached, nothing copied yet"),
            },
            Event::CycleStarted { high, .. } => {
                tracing::debug!(high = %high.position, "cycle started");
            }
            Event::Idle { high, .. } => {
                tracing::debug!(high = high.map(|h| h.position.to_string()), "nothing new");
            }
            Event::WaitingForCapture { table } => {
                tracing::info!(table, "capture has not reached the table yet");
            }
            Event::Staged { table, rows, bytes } => tracing::debug!(table, rows, bytes, "staged"),
            Event::Committed { table, mark, facts } => tracing::info!(
                table,
                sequence = mark.sequence,
                mark = %mark.end,
                rows = facts.counts.rows,
                milliseconds = facts.duration_ms,
                "committed"
            ),
            Event::Discarded { table } => tracing::info!(table, "staged rows discarded"),
            Event::VerdictPublished { table, verdict } => tracing::info!(
                table,
                finalized_until = verdict.finalized_until.map(|at| at.to_string()),
                "complete"
            ),
            Event::Retrying { table, error, attempt, pause_ms } => tracing::warn!(
                table,
                kind = error.kind().name(),
                attempt,
                pause_ms,
                error = error.report(),
                "failed, trying again"
            ),
            Event::TableStopped { table, error } => tracing::error!(
                table,
                kind = error.kind().name(),
                error = error.report(),
                advice = error.advice(),
                "table stopped"
            ),
            Event::Warning { table, message } => tracing::warn!(table, "{message}"),
            other => tracing::debug!(?other, "event"),
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
