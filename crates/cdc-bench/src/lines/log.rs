//! Attach, mark look-up and commit while a table's log grows, and their requests to the store.
//!
//! A log for each age; the ages take turns, so that whatever else the machine does hits all.
//! Checkpoints are written every ten commits here, so that the youngest log has one too: every age
//! then reads a checkpoint and a tail. Each age is measured over whole checkpoint intervals, so
//! that each sees every length of the tail. Every commit has a row, so that the newest checkpoint
//! names a file for each, in the table and in facts. Each turn is a new sink, as another process
//! would open it. Times are taken on the sink's own local store, requests counted on one that
//! counts.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use cdc_core::{Stamp, TableSpec, port::Sink};
use cdc_delta::{DeltaConfig, DeltaSink};
use cdc_fake::SeededEntropy;
use object_store::local::LocalFileSystem;
use url::Url;

use crate::{
    Figure, Outcome, Scale, Target,
    changes::{LogShape, batches},
    columns::spec,
    counting::{CountingStore, Requests},
    feeder::Feeder,
    figure::{Turns, median, millis},
    machine::{Cost, RealClock, Watch, one_thread},
};

const SHAPE: LogShape = LogShape { rows_a_commit: 10 };

/// Commits between two checkpoints.
const INTERVAL: u64 = 10;

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let ages: &[u64] = scale.pick(&[10, 100, 1_000, 10_000], &[10, 20]);
    let turns: usize = scale.pick(60, 3);
    let dir = tempfile::tempdir()?;
    let runtime = one_thread()?;
    let mut logs = Vec::new();
    for age in ages {
        let mut bench = Bench::new(&dir.path().join(age.to_string()))?;
        runtime.block_on(bench.grow(*age))?;
        logs.push((*age, bench, Stage::default()));
    }
    for _ in 0..turns {
        for (_, bench, stage) in &mut logs {
            runtime.block_on(bench.turn(stage))?;
        }
    }
    for (_, bench, stage) in &mut logs {
        runtime.block_on(bench.count(turns.div_ceil(10), stage))?;
    }
    let (Some((young, _, first)), Some((_, _, last))) = (logs.first(), logs.last()) else {
        return Err("no age".into());
    };
    for (age, _, stage) in logs.iter().skip(1) {
        for step in Step::ALL {
            let [wall, cpu] = [Cost::wall_time, Cost::cpu_time].map(|of| {
                let turns = Turns::of(stage.times(step, of).zip(first.times(step, of)).collect());
                (
                    millis(turns.ours),
                    format!("{} after {young}", millis(turns.reference)),
                    turns.ratio,
                )
            });
            let what = format!("{} after {age} commits", step.name());
            report(
                Figure::ratio(format!("{what}, wall time"), wall.0, wall.1, wall.2)
                    .with_target(Target::AtMost(1.2)),
            );
            // What else the machine does hits it less.
            report(Figure::ratio(format!("{what}, CPU time"), cpu.0, cpu.1, cpu.2));
        }
    }
    for step in Step::ALL {
        let requests = last.requests(step);
        let what = format!("{}: requests beyond the newest checkpoint and its tail", step.name());
        report(
            Figure::value(what, requests.said(), requests.most(), "requests")
                .with_target(Target::AtMost(3.0)),
        );
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Attach,
    LookUp,
    Commit,
}

impl Step {
    const ALL: [Self; 3] = [Self::Attach, Self::LookUp, Self::Commit];

    const fn name(self) -> &'static str {
        match self {
            Self::Attach => "attach",
            Self::LookUp => "mark look-up",
            Self::Commit => "commit of one row batch",
        }
    }
}

/// One age of the log: what each turn took.
#[derive(Default)]
struct Stage {
    times: Vec<(Step, Cost)>,
    requests: Vec<(Step, Requests)>,
}

impl Stage {
    /// What a step took in each turn.
    fn times(&self, step: Step, of: fn(&Cost) -> f64) -> impl Iterator<Item = f64> {
        self.times.iter().filter(move |done| done.0 == step).map(move |done| of(&done.1))
    }

    /// The requests of the median turn.
    fn requests(&self, step: Step) -> Beyond {
        let of = |part: &'static str| {
            #[allow(clippy::cast_precision_loss, reason = "a few")]
            let counts = self.requests.iter().filter(|done| done.0 == step).map(|done| {
                if part.is_empty() {
                    done.1.beyond.len() as f64
                } else {
                    done.1.beyond_in(part) as f64
                }
            });
            median(counts.collect())
        };
        Beyond {
            bronze: of("/bronze/"),
            facts: of("/facts/"),
            control: of("/control/"),
            all: of(""),
        }
    }
}

/// Requests by the table they are about.
struct Beyond {
    bronze: f64,
    facts: f64,
    control: f64,
    all: f64,
}

impl Beyond {
    fn said(&self) -> String {
        let Self { bronze, facts, control, all } = self;
        format!("{bronze} for the table, {facts} for facts, {control} for control ({all})")
    }

    /// Facts and control are tables of their own: each is held to the target.
    fn most(&self) -> f64 {
        self.bronze.max(self.facts).max(self.control)
    }
}

struct Bench {
    path: PathBuf,
    spec: TableSpec,
    rows: arrow_array::RecordBatch,
    commits: u64,
    sinks: u64,
}

impl Bench {
    fn new(root: &Path) -> Outcome<Self> {
        Ok(Self {
            path: root.to_owned(),
            spec: spec("t")?,
            rows: batches(1, 100)?.pop().ok_or("no batch")?,
            commits: 0,
            sinks: 0,
        })
    }

    fn open(&mut self) -> Outcome<DeltaSink> {
        self.sinks += 1;
        let mut config = DeltaConfig::new(self.path.to_string_lossy());
        config.checkpoint_interval = INTERVAL;
        let (clock, entropy) = (Arc::new(RealClock), Arc::new(SeededEntropy::new(self.sinks)));
        Ok(DeltaSink::new(config, clock, entropy)?)
    }

    fn open_counting(&mut self) -> Outcome<(DeltaSink, CountingStore)> {
        self.sinks += 1;
        let root = Url::from_directory_path(&self.path).map_err(|()| "the directory has no URL")?;
        let store = CountingStore::new(Arc::new(LocalFileSystem::new()));
        let mut config = DeltaConfig::new(root.as_str());
        config.checkpoint_interval = INTERVAL;
        let (clock, entropy) = (Arc::new(RealClock), Arc::new(SeededEntropy::new(self.sinks)));
        let over = Arc::new(store.clone());
        Ok((DeltaSink::with_store(config, root, over, clock, entropy)?, store))
    }

    fn end(&mut self) -> Stamp {
        self.commits += 1;
        SHAPE.stamp(self.commits)
    }

    /// Commits a row each until the log has about as many commits.
    async fn grow(&mut self, commits: u64) -> Outcome<()> {
        let sink = self.open()?;
        let mut feeder = Feeder::attach(&sink, &self.spec).await?;
        let row = self.rows.slice(0, 1);
        while feeder.sequence() < commits {
            feeder.stage(&row).await?;
            feeder.commit(self.end()).await?;
        }
        // So that control has a row to read.
        feeder.publish().await
    }

    async fn turn(&mut self, stage: &mut Stage) -> Outcome<()> {
        let sink = self.open()?;
        self.steps(&sink, |step, cost| stage.times.push((step, cost))).await
    }

    /// Counts requests, in fewer turns: they do not vary with what else the machine does.
    async fn count(&mut self, turns: usize, stage: &mut Stage) -> Outcome<()> {
        for _ in 0..turns {
            let (sink, store) = self.open_counting()?;
            self.steps(&sink, |step, _| stage.requests.push((step, store.take()))).await?;
        }
        Ok(())
    }

    /// The three steps of a sink that was just opened.
    async fn steps(&mut self, sink: &DeltaSink, mut done: impl FnMut(Step, Cost)) -> Outcome<()> {
        let watch = Watch::start();
        if sink.inspect(&self.spec).await?.is_none() {
            return Err("the table is gone".into());
        }
        done(Step::LookUp, watch.stop());
        let watch = Watch::start();
        let mut feeder = Feeder::attach(sink, &self.spec).await?;
        done(Step::Attach, watch.stop());
        let watch = Watch::start();
        feeder.stage(&self.rows).await?;
        feeder.commit(self.end()).await?;
        done(Step::Commit, watch.stop());
        Ok(())
    }
}
