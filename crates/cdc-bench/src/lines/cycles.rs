//! Cycles over many tables: an idle one, and one in which every table has one change.
//!
//! The engine runs as always; a gate in its clock holds it in the pause after each cycle. A cycle
//! is measured from the opening of the gate to the next pause, so a busy one includes the idle one
//! that finds nothing more.

use std::{num::NonZeroUsize, path::Path, sync::Arc};

use cdc_core::{
    Engine, Settings, SqlType, StartAt, TableConfig, TableName, TableRef, Timestamp,
    port::{Shutdown, ShutdownHandle},
};
use cdc_delta::{DeltaConfig, DeltaSink};
use cdc_fake::{
    CaptureSchedule, EnableOptions, FakeDatabase, FakeServer, FakeSource, Login, SeededEntropy,
    TableDefinition, VirtualClock, Zone,
};
use futures_util::future::{Either, select};
use object_store::local::LocalFileSystem;
use tokio::runtime::Runtime;
use url::Url;

use crate::{
    Figure, Outcome, Scale, Target,
    counting::CountingStore,
    figure::{median, millis, short},
    gate::Gate,
    machine::{Cost, RealClock, Watch, two_threads},
};

/// What an operator of a thousand small tables sets: a commit waits for the disk more than for a
/// core, and facts of tables that commit at the same time share a commit.
const TABLES_AT_ONCE: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);

/// Cores of the machine class that the target is about, and so commits that run at the same time.
const PARALLEL: f64 = 2.0;

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    let tables = scale.pick(1_000, 5);
    let many = Stage::new(&dir.path().join("many"), tables)?;
    let lone = Stage::new(&dir.path().join("lone"), 1)?;
    let runtime = two_threads()?;
    let (many, lone) = (Running::start(&runtime, many)?, Running::start(&runtime, lone)?);
    idle(&runtime, &many, tables, scale.pick(500, 20), report)?;
    busy(&runtime, &many, &lone, (tables, scale.pick(5, 2)), report)?;
    many.end(&runtime)?;
    lone.end(&runtime)
}

/// A database with captured tables, and a sink that counts requests.
struct Stage {
    database: FakeDatabase,
    names: Vec<TableName>,
    store: CountingStore,
    sink: Arc<DeltaSink>,
}

impl Stage {
    fn new(root: &Path, tables: usize) -> Outcome<Self> {
        std::fs::create_dir_all(root)?;
        let clock = VirtualClock::manual(Timestamp::from_micros(1_780_272_000_000_000));
        let database = FakeServer::new(clock, Zone::UTC).database("bench");
        database.set_capture(CaptureSchedule::AtCommit);
        let mut names = Vec::new();
        for number in 0..tables {
            let name = TableName::new("dbo", format!("t{number:04}"));
            let definition = TableDefinition::named(name.clone())
                .column("id", SqlType::Int)
                .nullable("amount", SqlType::Money)
                .primary_key(&["id"]);
            database.create_table(definition)?;
            database.enable_table(&name, EnableOptions::default())?;
            names.push(name);
        }
        let store = CountingStore::new(Arc::new(LocalFileSystem::new()));
        let url = Url::from_directory_path(root).map_err(|()| "the directory has no URL")?;
        let config = DeltaConfig::new(url.as_str());
        let (clock, entropy) = (Arc::new(RealClock), Arc::new(SeededEntropy::new(tables as u64)));
        let sink = DeltaSink::with_store(config, url, Arc::new(store.clone()), clock, entropy)?;
        let stage = Self { database, names, store, sink: Arc::new(sink) };
        // Capture must have something for the tables to begin at.
        stage.change_each(0)?;
        Ok(stage)
    }

    /// One change in each table, a transaction for each.
    fn change_each(&self, id: i32) -> Outcome<()> {
        for name in &self.names {
            self.database.transact(|open| {
                open.insert(name, vec![id.into(), cdc_fake::Value::decimal(12_5000)])
            })?;
        }
        Ok(())
    }
}

/// An engine that runs and rests at its gate.
struct Running {
    stage: Stage,
    gate: Gate,
    stop: ShutdownHandle,
    task: tokio::task::JoinHandle<cdc_core::RunReport>,
}

impl Running {
    /// Starts the engine; returns when it has copied what there was.
    fn start(runtime: &Runtime, stage: Stage) -> Outcome<Self> {
        let gate = Gate::new();
        let settings = Settings {
            // Marks of quiet tables are another question.
            progress_interval: std::time::Duration::from_secs(86_400),
            tables_at_once: TABLES_AT_ONCE,
            ..Settings::default()
        };
        let source = Arc::new(FakeSource::new(&stage.database, Login::Owner)?);
        let (clock, entropy) = (Arc::new(gate.clone()), Arc::new(SeededEntropy::new(7)));
        let engine = Engine::new(source, stage.sink.clone(), clock, entropy, settings);
        let tables = stage.names.iter().map(|name| TableConfig {
            source: TableRef::Table(name.clone()),
            target: name.name.clone(),
            start: StartAt::Earliest,
        });
        let tables: Vec<_> = tables.collect();
        let (stop, shutdown): (_, Shutdown) = ShutdownHandle::new();
        let task = runtime.spawn(async move { engine.run(tables, &shutdown).await });
        let mut this = Self { stage, gate, stop, task };
        runtime.block_on(this.rest())?;
        Ok(this)
    }

    /// Waits for the engine's pause.
    async fn rest(&mut self) -> Outcome<()> {
        let rested = std::pin::pin!(self.gate.rested());
        match select(rested, &mut self.task).await {
            Either::Left(_) => Ok(()),
            Either::Right(_) => Err("the engine ended".into()),
        }
    }

    /// One cycle, from pause to pause.
    fn cycle(&self, runtime: &Runtime) -> Cost {
        let watch = Watch::start();
        self.gate.pass();
        runtime.block_on(self.gate.rested());
        watch.stop()
    }

    fn end(self, runtime: &Runtime) -> Outcome<()> {
        self.stop.request();
        let report = runtime.block_on(self.task)?;
        match report.errors().next() {
            Some(error) => Err(error.report().into()),
            None => Ok(()),
        }
    }
}

fn idle(
    runtime: &Runtime,
    running: &Running,
    tables: usize,
    cycles: u32,
    report: &mut dyn FnMut(Figure),
) -> Outcome<()> {
    running.stage.database.forget_calls();
    running.stage.store.take();
    let watch = Watch::start();
    for _ in 0..cycles {
        running.cycle(runtime);
    }
    let cpu = watch.stop().cpu / f64::from(cycles) * 1_000.0;
    let calls = running.stage.database.all_calls();
    #[allow(clippy::cast_precision_loss, reason = "a few thousand")]
    let (calls, requests) =
        (calls as f64 / f64::from(cycles), running.stage.store.take().beyond.len() as f64);
    let what = |what: &str| format!("idle cycle over {tables} tables: {what}");
    report(
        Figure::value(what("source calls"), short(calls), calls, "calls")
            .with_target(Target::AtMost(2.0)),
    );
    report(
        Figure::value(what("CPU time"), format!("{} ms", short(cpu)), cpu, "ms")
            .with_target(Target::AtMost(1.0)),
    );
    let said = format!("{requests} in {cycles} cycles");
    report(
        Figure::value(what("requests to the store"), said, requests, "requests")
            .with_target(Target::AtMost(0.0)),
    );
    Ok(())
}

fn busy(
    runtime: &Runtime,
    many: &Running,
    lone: &Running,
    (tables, turns): (usize, i32),
    report: &mut dyn FnMut(Figure),
) -> Outcome<()> {
    #[allow(clippy::cast_precision_loss, reason = "a thousand")]
    let count = tables as f64;
    let mut next = 1;
    let mut ratios = Vec::new();
    let (mut ours, mut alone) = (Vec::new(), Vec::new());
    for _ in 0..turns {
        many.stage.change_each(next)?;
        let each = many.cycle(runtime).wall / count;
        let mut commits = Vec::new();
        for _ in 0..30 {
            lone.stage.change_each(next)?;
            next += 1;
            commits.push(lone.cycle(runtime).wall);
        }
        let commit = median(commits);
        ratios.push(each / (commit / PARALLEL));
        ours.push(each);
        alone.push(commit);
    }
    let value = median(ratios);
    report(
        Figure::ratio(
            format!("cycle with one change in each of {tables} tables, each table, wall time"),
            millis(median(ours)),
            format!("{} a lone table's cycle, divided by {PARALLEL:.0}", millis(median(alone))),
            value,
        )
        .with_target(Target::AtMost(1.3)),
    );
    Ok(())
}
