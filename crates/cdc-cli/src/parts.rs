//! Builds the parts of a run from its configuration: source, sink, clock, observers.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cdc_core::{
    Error, ErrorKind, Result,
    port::{Clock, Diagnose, Entropy, Event, Observer, Sink, Source},
};
use cdc_delta::{DeltaConfig, DeltaSink};
use cdc_mssql::MssqlSource;
use cdc_postgres::PostgresSink;

use crate::{
    clock::{OsEntropy, RealClock, ShiftedClock},
    config::{Config, DeltaTarget, SourceConfig, TargetConfig, TargetKind},
    sample::Sample,
};

/// How often the simulated server's clock follows the machine's.
const LIFE_INTERVAL: Duration = Duration::from_millis(200);

/// One of the sinks that get the tables.
pub(crate) struct NamedSink {
    /// Its name below `[targets]`; none for the only one.
    pub(crate) name: Option<String>,
    pub(crate) sink: Arc<dyn Sink>,
}

impl NamedSink {
    /// What a table of this sink is called beside those of others.
    pub(crate) fn label(&self, table: &str) -> String {
        match &self.name {
            Some(name) => format!("{name}/{table}"),
            None => table.to_owned(),
        }
    }
}

/// The parts of a run.
pub(crate) struct Parts {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) sinks: Vec<NamedSink>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// The simulated server, when the source is one.
    pub(crate) sample: Option<Sample>,
}

impl Parts {
    /// The parts that a configuration names. Nothing is written.
    ///
    /// # Errors
    /// `Config` and `InvalidData` for rows or a target that cannot be.
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let (source, clock, sample): (Arc<dyn Source>, Arc<dyn Clock>, _) = match &config.source {
            SourceConfig::Fake(config) => {
                let sample = Sample::at_present(config)?;
                let clock = ShiftedClock::showing(sample.now());
                (Arc::new(sample.source()?), Arc::new(clock), Some(sample))
            }
            SourceConfig::SqlServer(config) => {
                (Arc::new(sql_server(config)), Arc::new(RealClock), None)
            }
        };
        let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy::default());
        let mut sinks = Vec::new();
        for target in &config.targets {
            let sink = sink(target, &clock, &entropy)?;
            sinks.push(NamedSink { name: target.name.clone(), sink });
        }
        Ok(Self { source, sinks, clock, entropy, sample })
    }

    /// Lets the simulated server live on, as fast as the machine's clock, until the returned
    /// guard is dropped. Another server lives by itself.
    pub(crate) fn live(self) -> Option<Life> {
        let (mut sample, clock) = (self.sample?, self.clock);
        let task = tokio::spawn(async move {
            loop {
                if let Err(error) = sample.pass_until(clock.now()) {
                    tracing::error!(error = error.report(), "the simulated server stands still");
                    return;
                }
                tokio::time::sleep(LIFE_INTERVAL).await;
            }
        });
        Some(Life(task))
    }
}

/// A source that is looked at, beside the clock that it is compared with.
pub(crate) struct Patient {
    pub(crate) name: String,
    pub(crate) source: Arc<dyn Diagnose>,
    pub(crate) clock: Arc<dyn Clock>,
}

/// The source of a configuration alone. Nothing is written.
///
/// # Errors
/// As for [`Parts::new`].
pub(crate) fn patient(config: &SourceConfig) -> Result<Patient> {
    Ok(match config {
        SourceConfig::Fake(config) => {
            let sample = Sample::at_present(config)?;
            let source = sample.source()?;
            Patient {
                name: source.name().to_owned(),
                source: Arc::new(source),
                clock: Arc::new(ShiftedClock::showing(sample.now())),
            }
        }
        SourceConfig::SqlServer(config) => {
            let source = sql_server(config);
            Patient {
                name: source.name().to_owned(),
                source: Arc::new(source),
                clock: Arc::new(RealClock),
            }
        }
    })
}

fn sql_server(config: &cdc_mssql::MssqlConfig) -> MssqlSource {
    if config.trust == cdc_mssql::Trust::Any {
        tracing::warn!(
            "source.tls_trust_any: whoever is on the way can read and change everything"
        );
    }
    MssqlSource::new(config.clone())
}

/// A simulated server that lives on; it stands still when this is dropped.
pub(crate) struct Life(tokio::task::JoinHandle<()>);

impl Drop for Life {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The sink of a target.
///
/// # Errors
/// `Config` for a root that no store serves, or a setting that cannot be.
fn sink(
    target: &TargetConfig,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> Result<Arc<dyn Sink>> {
    match &target.kind {
        TargetKind::Delta(config) => Ok(Arc::new(delta(config, clock, entropy)?)),
        TargetKind::Postgres(config) => {
            if config.tls == cdc_postgres::Tls::Off && !config.host.starts_with('/') {
                tracing::warn!(
                    "tls = \"off\": whoever is on the way can read and change everything"
                );
            }
            Ok(Arc::new(PostgresSink::new(config, entropy.as_ref())?))
        }
    }
}

fn delta(
    target: &DeltaTarget,
    clock: &Arc<dyn Clock>,
    entropy: &Arc<dyn Entropy>,
) -> Result<DeltaSink> {
    let mut config = DeltaConfig::new(target.root.clone());
    let reveal = |(name, value): (&String, &crate::config::Secret)| {
        (name.clone(), value.reveal().to_owned())
    };
    config.storage_options = target.storage.iter().map(reveal).collect::<BTreeMap<_, _>>();
    DeltaSink::new(config, Arc::clone(clock), Arc::clone(entropy))
        .map_err(|error| error.with("setting", "target.root"))
}

/// Tells every event to several observers, in their order.
pub(crate) struct Observers(pub(crate) Vec<Arc<dyn Observer>>);

impl Observer for Observers {
    fn on(&self, event: &Event<'_>) {
        for observer in &self.0 {
            observer.on(event);
        }
    }
}

/// Tells the events of one of several sinks' engines: tables bear the sink's name.
pub(crate) struct Labelled {
    pub(crate) sink: String,
    pub(crate) observer: Arc<dyn Observer>,
}

impl Observer for Labelled {
    fn on(&self, event: &Event<'_>) {
        let label = |table: &str| format!("{}/{table}", self.sink);
        let tell = |event: Event<'_>| self.observer.on(&event);
        match event {
            Event::Attached { table, mark } => {
                tell(Event::Attached { table: &label(table), mark: *mark })
            }
            Event::WaitingForCapture { table } => {
                tell(Event::WaitingForCapture { table: &label(table) })
            }
            Event::Staged { table, rows, bytes } => {
                tell(Event::Staged { table: &label(table), rows: *rows, bytes: *bytes });
            }
            Event::Committed { table, mark, facts } => {
                tell(Event::Committed { table: &label(table), mark, facts });
            }
            Event::Discarded { table } => tell(Event::Discarded { table: &label(table) }),
            Event::VerdictPublished { table, verdict } => {
                tell(Event::VerdictPublished { table: &label(table), verdict });
            }
            Event::Retrying { table, error, attempt, pause_ms } => {
                let table = table.map(label);
                let (attempt, pause_ms) = (*attempt, *pause_ms);
                tell(Event::Retrying { table: table.as_deref(), error, attempt, pause_ms });
            }
            Event::TableStopped { table, error } => {
                tell(Event::TableStopped { table: &label(table), error });
            }
            Event::Warning { table, message } => {
                let table = table.map(label);
                tell(Event::Warning { table: table.as_deref(), message });
            }
            other => self.observer.on(other),
        }
    }
}

/// The runtime of a command, on every core.
///
/// # Errors
/// `Unavailable` when the system gives no thread.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(no_runtime)
}

/// The error of a runtime that cannot be started.
pub(crate) fn no_runtime(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the asynchronous runtime cannot be started")
        .caused_by(error)
}
