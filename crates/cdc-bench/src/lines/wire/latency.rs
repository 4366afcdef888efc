//! From a row in the change table to the commit of its bronze row, while a hundred small
//! transactions a second come in.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use cdc_core::{
    Engine, Settings, SqlType, StartAt, TableConfig, TableName, TableRef,
    port::{Clock, Event, Observer, ShutdownHandle},
};
use cdc_delta::KernelCalls;
use cdc_fake::{CaptureSchedule, EnableOptions, SeededEntropy, TableDefinition, Value};

use super::stage::{self, READERS, Stage, name};
use crate::{
    Figure, Outcome, Scale, Target,
    feeder::sink,
    figure::{median, millis, quantile},
    machine::{RealClock, two_threads},
};

const TABLE: &str = "ticks";
/// The pause of the engine after a cycle that found nothing, and what a row may take beyond it.
const POLL: Duration = Duration::from_millis(200);
const BEYOND: Duration = Duration::from_millis(50);
/// From one transaction to the next.
const PACE: Duration = Duration::from_millis(10);
/// The longest that the last rows are waited for.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let commits = scale.pick(2_000, 20);
    let reader = *READERS.first().ok_or("no reader")?;
    let (stage, dir) = (prepared()?, tempfile::tempdir()?);
    let arrivals = Arc::new(Arrivals::default());
    let runtime = two_threads()?;
    let sink = Arc::new(sink(dir.path(), KernelCalls::Pool, 7)?);
    let settings = Settings { poll_interval: POLL, ..Settings::default() };
    let source = Arc::new(stage::source(stage.address, reader));
    let (clock, entropy) = (Arc::new(RealClock), Arc::new(SeededEntropy::new(7)));
    let engine = Engine::new(source, sink, clock, entropy, settings)
        .observed_by(Arc::clone(&arrivals) as Arc<dyn Observer>);
    let table = TableConfig {
        source: TableRef::Table(TableName::new("dbo", TABLE)),
        target: TABLE.to_owned(),
        start: StartAt::Earliest,
    };
    let (stop, shutdown) = ShutdownHandle::new();
    let running = runtime.spawn(async move { engine.run(vec![table], &shutdown).await });
    // The first row, so that the table is there.
    commit(&stage, 0)?;
    arrivals.wait_for(1)?;
    let mut sent = Vec::with_capacity(commits);
    let begun = Instant::now();
    for number in 1..=commits {
        let due = begun + PACE * u32::try_from(number)?;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        commit(&stage, number)?;
        sent.push(Instant::now());
    }
    let rate = super::each(commits, 1) / begun.elapsed().as_secs_f64();
    arrivals.wait_for(commits + 1)?;
    stop.request();
    let ended = runtime.block_on(running)?;
    if let Some(error) = ended.errors().next() {
        return Err(error.report().into());
    }
    let times = arrivals.latencies(&sent)?;
    let value = quantile(times.clone(), 0.99) * 1_000.0;
    let ours = format!(
        "{}; {} in the middle, at most {}",
        millis(value / 1_000.0),
        millis(median(times.clone())),
        millis(quantile(times, 1.0))
    );
    let what = format!(
        "from a row in the change table to its bronze commit by {}, {rate:.0} commits a second, \
         99 of 100 rows within",
        name(reader)
    );
    let most = (POLL + BEYOND).as_secs_f64() * 1_000.0;
    let reference = format!("poll interval {}", millis(POLL.as_secs_f64()));
    report(
        Figure::value(what, ours, value, "ms").beside(reference).with_target(Target::AtMost(most)),
    );
    Ok(())
}

fn prepared() -> Outcome<Stage> {
    let stage = Stage::start()?;
    stage.database.set_capture(CaptureSchedule::AtCommit);
    let definition = TableDefinition::new(TABLE)
        .column("id", SqlType::BigInt)
        .nullable("amount", SqlType::Money)
        .primary_key(&["id"]);
    stage.database.create_table(definition)?;
    let name = TableName::new("dbo", TABLE);
    stage.database.enable_table(&name, EnableOptions::default())?;
    Ok(stage)
}

/// A transaction of one row, at the time that it is.
fn commit(stage: &Stage, number: usize) -> Outcome<()> {
    stage.clock.advance_to(RealClock.now());
    let (table, id) = (TableName::new("dbo", TABLE), i64::try_from(number)?);
    stage
        .database
        .transact(|open| open.insert(&table, vec![id.into(), Value::decimal(12_5000)]))?;
    Ok(())
}

/// When how many rows were durable.
#[derive(Debug, Default)]
struct Arrivals(Mutex<Vec<(u64, Instant)>>);

impl Observer for Arrivals {
    fn on(&self, event: &Event<'_>) {
        if let Event::Committed { facts, .. } = event {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let rows = all.last().map_or(0, |last| last.0) + facts.counts.rows;
            all.push((rows, Instant::now()));
        }
    }
}

impl Arrivals {
    fn all(&self) -> Vec<(u64, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn wait_for(&self, rows: usize) -> Outcome<()> {
        let (rows, begun) = (u64::try_from(rows)?, Instant::now());
        while self.all().last().is_none_or(|last| last.0 < rows) {
            if begun.elapsed() > PATIENCE {
                return Err(format!("{rows} rows did not arrive").into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Seconds of each row behind the first, in their order.
    fn latencies(&self, sent: &[Instant]) -> Outcome<Vec<f64>> {
        let all = self.all();
        sent.iter()
            .zip(2_u64..)
            .map(|(sent, number)| {
                let arrived = all.iter().find(|(rows, _)| *rows >= number);
                let (_, arrived) = arrived.ok_or("a row did not arrive")?;
                Ok(arrived.saturating_duration_since(*sent).as_secs_f64())
            })
            .collect()
    }
}
