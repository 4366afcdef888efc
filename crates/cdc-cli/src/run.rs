//! `cdc run`: the engine over the configured parts, until it is done or asked to stop.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Instant};

use cdc_core::{Engine, ErrorKind, Result, RunReport, port::Observer};

use crate::{
    args::RunArgs,
    config::Config,
    exit::Exit,
    logging::LogObserver,
    metrics::{self, Metrics},
    parts::{Observers, Parts},
    progress::Progress,
    report::{Failure, Report},
    signals,
};

/// The command's name in reports.
pub(crate) const NAME: &str = "run";

/// Runs the command.
pub(crate) fn run(args: &RunArgs, json: bool, progress: &Progress) -> Report {
    let config = match load(&args.config) {
        Ok(config) => config,
        Err(failure) => return Report::failed(NAME, failure),
    };
    let begun = Instant::now();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Report::failed(NAME, crate::parts::no_runtime(error).into()),
    };
    match runtime.block_on(copy(&config, args.once, json, progress)) {
        Ok(Copied { run, stopped, metrics }) => {
            let exit = exit(&run, args.once);
            let mut report = Report::new(NAME, exit).with_run(&run);
            report.stopped = stopped;
            if let Some(address) = metrics.map(|address| address.to_string()) {
                let line = format!("metrics were served on: {address}");
                report.tell("metrics_address", address, line);
            }
            report.target = Some(config.target.root);
            report.seconds = begun.elapsed().as_secs_f64();
            report
        }
        Err(error) => Report::failed(NAME, error.into()),
    }
}

/// A configuration file, or every problem of it.
pub(crate) fn load(file: &Path) -> Result<Config, Failure> {
    Config::load(file, &|name| std::env::var(name).ok()).map_err(Failure::from)
}

/// What a run did.
struct Copied {
    run: RunReport,
    /// It was asked to stop.
    stopped: bool,
    /// Where its metrics were served.
    metrics: Option<SocketAddr>,
}

async fn copy(config: &Config, once: bool, json: bool, progress: &Progress) -> Result<Copied> {
    let shutdown = signals::watch(NAME, json).map_err(crate::parts::no_runtime)?;
    let parts = Parts::new(config)?;
    let metrics = Arc::new(Metrics::new(Arc::clone(&parts.clock)));
    let server = match config.metrics {
        Some(address) => Some(metrics::serve(address, Arc::clone(&metrics)).await?),
        None => None,
    };
    // Figures first: whoever reads a line finds it counted.
    let mut observers: Vec<Arc<dyn Observer>> = Vec::new();
    if server.is_some() {
        observers.push(metrics);
    }
    observers.push(Arc::new(LogObserver));
    observers.push(Arc::new(progress.clone()));
    let engine = Engine::new(
        Arc::clone(&parts.source),
        Arc::new(parts.sink.clone()),
        Arc::clone(&parts.clock),
        Arc::clone(&parts.entropy),
        config.settings.clone(),
    )
    .observed_by(Arc::new(Observers(observers)));
    let drawing = progress.draw();
    let tables = config.tables.clone();
    let run = if once {
        engine.run_once(tables, &shutdown).await
    } else {
        let life = parts.live();
        let run = engine.run(tables, &shutdown).await;
        drop(life);
        run
    };
    let metrics = server.as_ref().map(|server| server.address);
    drop((drawing, server));
    Ok(Copied { run, stopped: shutdown.is_requested(), metrics })
}

/// How the process ends after a run. A run without an end that was asked to stop is done; one
/// that should have copied everything is not.
fn exit(run: &RunReport, once: bool) -> Exit {
    run.errors()
        .filter(|error| once || error.kind() != ErrorKind::Cancelled)
        .map(|error| Exit::of(error.kind()))
        .fold(Exit::Done, Exit::worse)
}

#[cfg(test)]
mod tests {
    use cdc_core::{Error, TableReport};

    use super::*;

    fn stopped_by(kinds: &[ErrorKind]) -> RunReport {
        let table = |kind: &ErrorKind| TableReport {
            table: "t".into(),
            mark: None,
            verdict: None,
            rows: 0,
            batches: 0,
            error: Some(Error::new(*kind, "x")),
        };
        RunReport { tables: kinds.iter().map(table).collect() }
    }

    #[test]
    fn the_worst_table_decides_and_a_wanted_stop_is_no_failure() {
        assert_eq!(exit(&stopped_by(&[]), true), Exit::Done);
        let asked = stopped_by(&[ErrorKind::Cancelled]);
        assert_eq!(exit(&asked, false), Exit::Done);
        assert_eq!(exit(&asked, true), Exit::Failed);
        let mixed = stopped_by(&[ErrorKind::Config, ErrorKind::DataLoss, ErrorKind::Fenced]);
        assert_eq!(exit(&mixed, false), Exit::DataLoss);
    }
}
