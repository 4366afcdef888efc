//! Metrics: what the engine tells, as Prometheus counters, gauges and histograms.

pub(crate) mod name;
mod server;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64},
    },
};

use cdc_core::{
    Mark, Timestamp, Verdict,
    batch::{BatchFacts, Stamp},
    port::{Clock, Event, Observer},
};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

pub(crate) use self::server::serve;

/// Upper bounds of the batch time histograms, in seconds: from an idle mark to a large backlog.
const SECONDS: [f64; 12] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1_800.0];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TableLabel {
    table: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RowLabels {
    table: String,
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    table: String,
    kind: &'static str,
}

type Seconds = Gauge<f64, AtomicU64>;
type HistogramFamily = Family<TableLabel, Histogram, fn() -> Histogram>;

/// The metrics of a run. Labels are table names of the configuration, operations and kinds of
/// error: their number is bounded by the configuration.
pub(crate) struct Metrics {
    registry: Registry,
    clock: Arc<dyn Clock>,
    figures: Figures,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    high: Option<Timestamp>,
    marks: BTreeMap<String, Timestamp>,
    verdicts: BTreeMap<String, Timestamp>,
}

struct Figures {
    headroom: Family<TableLabel, Seconds>,
    capture_lag: Seconds,
    ingestion_lag: Family<TableLabel, Seconds>,
    verdict_age: Family<TableLabel, Seconds>,
    finalized_until: Family<TableLabel, Seconds>,
    mark_sequence: Family<TableLabel, Gauge<i64, AtomicI64>>,
    rows: Family<RowLabels, Counter>,
    bytes: Family<TableLabel, Counter>,
    batches: Family<TableLabel, Counter>,
    batch_seconds: HistogramFamily,
    read_seconds: HistogramFamily,
    staged_rows: Family<TableLabel, Gauge<i64, AtomicI64>>,
    discarded: Family<TableLabel, Counter>,
    retries: Family<KindLabels, Counter>,
    warnings: Counter,
    stopped: Family<KindLabels, Gauge<i64, AtomicI64>>,
}

fn histogram() -> Histogram {
    Histogram::new(SECONDS)
}

impl Figures {
    fn registered(registry: &mut Registry) -> Self {
        fn add<M>(registry: &mut Registry, name: &str, metric: M) -> M
        where
            M: prometheus_client::registry::Metric + Clone,
        {
            // The library adds `_total` to counters itself.
            let stem = name.strip_suffix("_total").unwrap_or(name);
            registry.register(stem, name::help(name), metric.clone());
            metric
        }
        let batch_seconds = HistogramFamily::new_with_constructor(histogram);
        let read_seconds = HistogramFamily::new_with_constructor(histogram);
        Self {
            headroom: add(registry, name::HEADROOM, Family::default()),
            capture_lag: add(registry, name::CAPTURE_LAG, Seconds::default()),
            ingestion_lag: add(registry, name::INGESTION_LAG, Family::default()),
            verdict_age: add(registry, name::VERDICT_AGE, Family::default()),
            finalized_until: add(registry, name::FINALIZED_UNTIL, Family::default()),
            mark_sequence: add(registry, name::MARK_SEQUENCE, Family::default()),
            rows: add(registry, name::ROWS, Family::default()),
            bytes: add(registry, name::BYTES, Family::default()),
            batches: add(registry, name::BATCHES, Family::default()),
            batch_seconds: add(registry, name::BATCH_SECONDS, batch_seconds),
            read_seconds: add(registry, name::READ_SECONDS, read_seconds),
            staged_rows: add(registry, name::STAGED_ROWS, Family::default()),
            discarded: add(registry, name::DISCARDED, Family::default()),
            retries: add(registry, name::RETRIES, Family::default()),
            warnings: add(registry, name::WARNINGS, Counter::default()),
            stopped: add(registry, name::STOPPED, Family::default()),
        }
    }
}

fn label(table: &str) -> TableLabel {
    TableLabel { table: table.to_owned() }
}

fn seconds(micros: i64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a figure to look at")]
    let micros = micros as f64;
    micros / 1_000_000.0
}

impl Metrics {
    /// Metrics whose ages are told by `clock`.
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        let mut registry = Registry::default();
        let figures = Figures::registered(&mut registry);
        Self { registry, clock, figures, seen: Mutex::default() }
    }

    /// All metrics as text, with ages as of now.
    ///
    /// # Errors
    /// When the text cannot be formatted.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let now = self.clock.now();
        {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(high) = seen.high {
                self.figures.capture_lag.set(seconds(now.micros_since(high)));
            }
            for (table, mark) in &seen.marks {
                let lag = seen.high.map_or(0, |high| high.micros_since(*mark).max(0));
                self.figures.ingestion_lag.get_or_create(&label(table)).set(seconds(lag));
            }
            for (table, until) in &seen.verdicts {
                let age = seconds(now.micros_since(*until));
                self.figures.verdict_age.get_or_create(&label(table)).set(age);
            }
        }
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn high(&self, high: &Stamp) {
        if let Some(time) = high.commit_time {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).high = Some(time);
        }
    }

    fn mark(&self, table: &str, mark: &Mark) {
        let sequence = i64::try_from(mark.sequence).unwrap_or(i64::MAX);
        self.figures.mark_sequence.get_or_create(&label(table)).set(sequence);
        if let Some(time) = mark.commit_time {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.marks.insert(table.to_owned(), time);
        }
    }

    fn committed(&self, table: &str, mark: &Mark, facts: &BatchFacts) {
        self.mark(table, mark);
        let (figures, label) = (&self.figures, label(table));
        if let (Some(end), Some(removed)) = (mark.commit_time, facts.retention_watermark) {
            let headroom = seconds(end.micros_since(removed));
            figures.headroom.get_or_create(&label).set(headroom);
        }
        let counts = &facts.counts;
        for (operation, count) in
            [("insert", counts.inserts), ("update", counts.updates), ("delete", counts.deletes)]
        {
            let labels = RowLabels { table: table.to_owned(), operation };
            figures.rows.get_or_create(&labels).inc_by(count);
        }
        figures.bytes.get_or_create(&label).inc_by(facts.read_bytes);
        figures.batches.get_or_create(&label).inc();
        let spent = seconds(facts.duration_ms.saturating_mul(1_000));
        figures.batch_seconds.get_or_create(&label).observe(spent);
        figures.read_seconds.get_or_create(&label).observe(facts.read_seconds);
        figures.staged_rows.get_or_create(&label).set(0);
    }

    fn verdict(&self, table: &str, verdict: &Verdict) {
        if let Some(until) = verdict.finalized_until {
            let unix = seconds(until.as_micros());
            self.figures.finalized_until.get_or_create(&label(table)).set(unix);
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.verdicts.insert(table.to_owned(), until);
        }
    }
}

impl Observer for Metrics {
    fn on(&self, event: &Event<'_>) {
        let figures = &self.figures;
        match event {
            Event::Attached { table, mark: Some(mark) } => self.mark(table, mark),
            Event::CycleStarted { high, .. } | Event::Idle { high: Some(high), .. } => {
                self.high(high);
            }
            Event::Staged { table, rows, .. } => {
                let rows = i64::try_from(*rows).unwrap_or(i64::MAX);
                figures.staged_rows.get_or_create(&label(table)).inc_by(rows);
            }
            Event::Committed { table, mark, facts } => self.committed(table, mark, facts),
            Event::Discarded { table } => {
                figures.staged_rows.get_or_create(&label(table)).set(0);
                figures.discarded.get_or_create(&label(table)).inc();
            }
            Event::VerdictPublished { table, verdict } => self.verdict(table, verdict),
            Event::Retrying { table, error, .. } => {
                let table = table.unwrap_or_default().to_owned();
                let labels = KindLabels { table, kind: error.kind().name() };
                figures.retries.get_or_create(&labels).inc();
            }
            Event::TableStopped { table, error } => {
                let labels = KindLabels { table: (*table).to_owned(), kind: error.kind().name() };
                figures.stopped.get_or_create(&labels).set(1);
            }
            Event::Warning { .. } => {
                figures.warnings.inc();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
