//! `cdc run`: the engine over the configured parts, until it is done or asked to stop.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Instant};

use cdc_core::{Engine, ErrorKind, Result, RunReport, port::Observer};

use crate::{
    args::RunArgs,
    config::{Config, TargetConfig},
    exit::Exit,
    logging::LogObserver,
    metrics::{self, Metrics},
    parts::{Labelled, NamedSink, Observers, Parts},
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
    let runtime = match crate::parts::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Report::failed(NAME, error.into()),
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
            report.target = Some(places(&config));
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
    let observer: Arc<dyn Observer> = Arc::new(Observers(observers));
    let engines: Vec<_> = parts
        .sinks
        .iter()
        .map(|sink| engine(&parts, sink, config, Arc::clone(&observer)))
        .collect();
    let names: Vec<_> = parts.sinks.iter().map(|sink| sink.name.clone()).collect();
    let drawing = progress.draw();
    let life = if once { None } else { parts.live() };
    // Each sink has its own engine, at its own pace, with its own marks: one that is behind or
    // stopped keeps no other.
    let runs = futures_util::future::join_all(engines.iter().map(|engine| {
        let (tables, shutdown) = (config.tables.clone(), &shutdown);
        async move {
            if once {
                engine.run_once(tables, shutdown).await
            } else {
                engine.run(tables, shutdown).await
            }
        }
    }))
    .await;
    drop(life);
    let run = merged(&names, runs);
    let metrics = server.as_ref().map(|server| server.address);
    drop((drawing, server));
    Ok(Copied { run, stopped: shutdown.is_requested(), metrics })
}

/// The engine between the source and one of the sinks.
fn engine(parts: &Parts, sink: &NamedSink, config: &Config, observer: Arc<dyn Observer>) -> Engine {
    let observer = match &sink.name {
        Some(name) => Arc::new(Labelled { sink: name.clone(), observer }),
        None => observer,
    };
    Engine::new(
        Arc::clone(&parts.source),
        Arc::clone(&sink.sink),
        Arc::clone(&parts.clock),
        Arc::clone(&parts.entropy),
        config.settings.clone(),
    )
    .observed_by(observer)
}

/// The runs of all sinks as one, each table with its sink's name where there are several.
fn merged(names: &[Option<String>], runs: Vec<RunReport>) -> RunReport {
    let mut whole = RunReport::default();
    for (name, run) in names.iter().zip(runs) {
        whole.tables.extend(run.tables.into_iter().map(|mut table| {
            if let Some(name) = name {
                table.table = format!("{name}/{}", table.table);
            }
            table
        }));
    }
    whole
}

/// Where the targets are.
pub(crate) fn places(config: &Config) -> String {
    config.targets.iter().map(TargetConfig::place).collect::<Vec<_>>().join("; ")
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
