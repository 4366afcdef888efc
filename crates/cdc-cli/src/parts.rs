//! Builds the parts of a run from its configuration: source, sink, clock, observers.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cdc_core::{
    Error, ErrorKind, Result,
    port::{Clock, Diagnose, Entropy, Event, Observer, Source},
};
use cdc_delta::{DeltaConfig, DeltaSink};
use cdc_mssql::MssqlSource;

use crate::{
    clock::{OsEntropy, RealClock, ShiftedClock},
    config::{Config, SourceConfig, TargetConfig},
    sample::Sample,
};

/// How often the simulated server's clock follows the machine's.
const LIFE_INTERVAL: Duration = Duration::from_millis(200);

/// The parts of a run.
pub(crate) struct Parts {
    pub(crate) source: Arc<dyn Source>,
    pub(crate) sink: DeltaSink,
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
        let sink = sink(&config.target, &clock, &entropy)?;
        Ok(Self { source, sink, clock, entropy, sample })
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
/// `Config` for a root that no store serves.
pub(crate) fn sink(
    target: &TargetConfig,
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

/// The error of a runtime that cannot be started.
pub(crate) fn no_runtime(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "the asynchronous runtime cannot be started")
        .caused_by(error)
}
