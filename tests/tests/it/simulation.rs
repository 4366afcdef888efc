//! Random histories with trouble at every call, on a target in memory and on Delta: nothing is
//! lost, nothing is doubled, no mark, verdict or time goes back, every stop has the right kind,
//! and every run ends.

mod lake;
mod stage;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use cdc_conformance::{cell::Cell, rows::Rows};
use cdc_core::{
    ErrorKind, Position, RunReport, TableConfig, TableName, TableRef, Timestamp, plan,
    port::{Bound, Catalog, PositionLog, Shutdown, Sink, TargetState},
};
use cdc_fake::{
    Call, Zone,
    faults::{FaultPlan, FaultySink, FaultySource, Odds},
};
use cdc_tests::{
    image,
    world::{World, table},
};
use lake::Lake;
use proptest::prelude::*;
use stage::{Act, BASE, Stage, TABLES, act};

/// What a test does.
#[derive(Clone, Debug)]
enum Step {
    /// Something at the source, now.
    Now(Act),
    /// Something at the source, at a call of the next run.
    At(Call, usize, Act),
    /// The connection of the next stream is killed after so many rows.
    Kill(u64),
    Run(Run),
}

/// One run, or two at the same time.
#[derive(Clone, Debug)]
struct Run {
    rows_max: u64,
    commits_max: Option<u64>,
    batch_rows: usize,
    /// Chance of trouble at every call; with a crash, of the process's end.
    trouble: Option<(u64, f64)>,
    two: bool,
}

fn planted() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        Just(Call::High),
        Just(Call::Low),
        Just(Call::Instances),
        Just(Call::SchemaChanges),
        Just(Call::CommitTime),
        Just(Call::HasChanges),
        Just(Call::Changes),
        Just(Call::ChangeBatch),
    ];
    (call, 0usize..4, stage::acts()).prop_map(|(call, skip, act)| Step::At(call, skip, act))
}

fn run() -> impl Strategy<Value = Run> {
    let trouble = (any::<u64>(), prop_oneof![3 => Just(0.0), 1 => Just(0.02)]);
    (
        1u64..30,
        proptest::option::of(1u64..6),
        1usize..9,
        proptest::option::of(trouble),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(rows_max, commits_max, batch_rows, trouble, two)| Run {
            rows_max,
            commits_max,
            batch_rows,
            trouble,
            two,
        })
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => stage::acts().prop_map(Step::Now),
        4 => planted(),
        1 => (0u64..20).prop_map(Step::Kill),
        4 => run().prop_map(Step::Run),
    ];
    proptest::collection::vec(step, 1..most)
}

/// What a reader sees of one table, with what is durable of it.
#[derive(Clone, Default)]
struct Seen {
    state: TargetState,
    rows: usize,
    /// Rows of periods that the verdict calls complete.
    complete: usize,
}

struct Sim {
    world: World,
    stage: Stage,
    lake: Option<Lake>,
    tables: Vec<TableConfig>,
    seen: Vec<Seen>,
    /// Tables that stopped for good, rightly.
    ended: BTreeSet<String>,
    seeds: u64,
}

/// 2026-11-01T05:00:00Z: an hour before New York's clocks go back.
const BEFORE_FALL: Timestamp = Timestamp::from_micros(1_793_509_200_000_000);

impl Sim {
    async fn new(delta: bool) -> Self {
        let mut world = World::at(BEFORE_FALL, Zone::Named(chrono_tz::America::New_York));
        world.settings.retry.attempts_max = 20;
        let stage = Stage::new(&world.database);
        world.clock.advance(Duration::from_secs(60));
        let lake = delta.then(|| Lake::new(&world));
        let tables: Vec<_> = TABLES.iter().map(|name| table(name)).collect();
        let seen = vec![Seen::default(); tables.len()];
        let mut sim = Self { world, stage, lake, tables, seen, ended: BTreeSet::new(), seeds: 0 };
        // From here on every change belongs to the copy.
        let calm =
            Run { rows_max: 100, commits_max: None, batch_rows: 10, trouble: None, two: false };
        sim.run(&calm).await;
        assert!(sim.ended.is_empty());
        sim
    }

    async fn play(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Now(what) => act(&self.world.database, &self.stage, what),
                Step::At(call, skip, what) => {
                    self.stage.plant(&self.world.database, *call, *skip, what.clone());
                }
                Step::Kill(rows) => self.world.database.kill_after_rows(Call::Changes, *rows),
                Step::Run(run) => self.run(run).await,
            }
        }
        self.settle().await;
    }

    fn sink(&mut self) -> Arc<dyn Sink> {
        self.seeds += 1;
        match &self.lake {
            Some(lake) => Arc::new(lake.open(self.seeds)),
            None => Arc::new(self.world.target.open()),
        }
    }

    async fn run(&mut self, run: &Run) {
        let limits = &mut self.world.settings.limits;
        limits.rows_max = run.rows_max.try_into().expect("positive");
        limits.commits_max = run.commits_max.map(|count| count.try_into().expect("positive"));
        self.world.settings.batch_rows = run.batch_rows.try_into().expect("positive");
        let plan = FaultPlan::new(Arc::new(self.world.clock.clone()));
        if let Some((seed, crash)) = run.trouble {
            let kinds = vec![ErrorKind::Unavailable, ErrorKind::Conflict];
            let slow = if run.two { 0.2 } else { 0.02 };
            plan.chance(seed, Odds { kinds, slow, ..Odds::transient() }.with_crash(crash));
        }
        let begin = self.world.clock.time();
        let mut engines = Vec::new();
        for _ in 0..=usize::from(run.two) {
            let source = FaultySource::new(Arc::new(self.world.source()), &plan);
            let sink = FaultySink::new(self.sink(), &plan);
            engines.push(self.world.engine_on(Arc::new(source), Arc::new(sink)));
        }
        let tables: Vec<_> = self.tables.clone();
        let never = Shutdown::never();
        let runs = engines.iter().map(|engine| engine.run_once(tables.clone(), &never));
        let reports = futures_util::future::join_all(runs).await;
        let took = self.world.clock.time().micros_since(begin);
        assert!(took < 24 * 3_600_000_000, "a run took {took} us");
        self.stage.quiet(true);
        self.judge(&reports, run).await;
        self.look().await;
        self.stage.quiet(false);
    }

    /// Every stop must have its reason.
    async fn judge(&mut self, reports: &[RunReport], run: &Run) {
        for (index, config) in self.tables.clone().iter().enumerate() {
            let mut fenced = 0;
            for report in reports {
                let Some(error) = &report.tables[index].error else { continue };
                let name = &config.target;
                let told = error.report();
                match error.kind() {
                    ErrorKind::Unavailable | ErrorKind::Conflict => {
                        assert!(run.trouble.is_some(), "{name}: {told}");
                    }
                    ErrorKind::Cancelled => {
                        assert!(run.trouble.is_some_and(|(_, crash)| crash > 0.0), "{told}");
                    }
                    ErrorKind::Fenced => fenced += 1,
                    ErrorKind::DataLoss => {
                        // A restore may have brought back what was gone at the time.
                        let restored = self.stage.restored_to().is_some();
                        let purged = restored || self.is_purged(index).await;
                        assert!(purged, "{name}: false alarm: {told}");
                        self.ended.insert(name.clone());
                    }
                    ErrorKind::LineageBroken => {
                        assert!(self.is_other_log(index).await, "{name}: false alarm: {told}");
                        self.ended.insert(name.clone());
                    }
                    ErrorKind::SchemaChanged => {
                        assert!(self.stage.altered(name), "{name}: false alarm: {told}");
                        self.ended.insert(name.clone());
                    }
                    ErrorKind::Config => {
                        let gone = self.instances(name).await.is_empty();
                        assert!(gone, "{name}: false alarm: {told}");
                        self.ended.insert(name.clone());
                    }
                    _ => panic!("{name}: {told}"),
                }
            }
            assert!(fenced == 0 || run.two && fenced < reports.len(), "nobody owns the table");
        }
    }

    async fn instances(&self, name: &str) -> Vec<cdc_core::CaptureInstance> {
        let table = TableRef::Table(TableName::new("dbo", name));
        self.world.source().instances(&table).await.unwrap_or_default()
    }

    async fn state(&mut self, index: usize) -> TargetState {
        let config = self.tables[index].clone();
        match &self.lake {
            Some(lake) => {
                let spec = lake::spec(&config.target);
                lake.open(0).inspect(&spec).await.expect("readable").unwrap_or_default()
            }
            None => self.world.target.state(&config.target).unwrap_or_default(),
        }
    }

    /// True when what follows the mark is no longer in the instance that held it.
    async fn is_purged(&mut self, index: usize) -> bool {
        let mark = self.state(index).await.mark.expect("marked");
        let instances = self.instances(&self.tables[index].target.clone()).await;
        let Some(holder) = plan::holder(mark.end, &instances) else { return true };
        let low = self.world.source().low(std::slice::from_ref(&holder.name)).await;
        match low.expect("readable")[0] {
            Bound::At(low) => mark.end.increment() < low,
            Bound::Null | Bound::Zero => mark.end.increment() < holder.start,
        }
    }

    /// True when a restore went back behind the mark.
    async fn is_other_log(&mut self, index: usize) -> bool {
        let mark = self.state(index).await.mark.expect("marked");
        self.stage.restored_to().is_some_and(|kept| mark.end > Position::from(kept))
    }

    async fn history(&self, name: &str) -> Vec<RecordBatch> {
        match &self.lake {
            Some(lake) => lake.rows(name).await,
            None => self.world.target.rows(name).expect("readable"),
        }
    }

    /// Marks, verdicts and complete periods only ever grow.
    async fn look(&mut self) {
        for index in 0..self.tables.len() {
            let name = self.tables[index].target.clone();
            let state = self.state(index).await;
            let rows = times(&self.history(&name).await);
            let before = std::mem::take(&mut self.seen[index]);
            let (old, new) = (before.state.mark, state.mark);
            assert!(old.map(|m| m.sequence) <= new.map(|m| m.sequence), "{name}: mark went back");
            assert!(old.map(|m| m.end) <= new.map(|m| m.end), "{name}: mark went back");
            assert!(old.and_then(|m| m.commit_time) <= new.and_then(|m| m.commit_time));
            let until = |state: &TargetState| state.verdict.and_then(|v| v.finalized_until);
            assert!(until(&before.state) <= until(&state), "{name}: verdict went back");
            assert!(until(&state) <= new.and_then(|m| m.commit_time), "{name}: verdict ahead");
            assert!(before.rows <= rows.len(), "{name}: rows vanished");
            let complete = |until: Option<Timestamp>| {
                rows.iter().filter(|time| until.is_some_and(|until| **time < until)).count()
            };
            assert_eq!(
                before.complete,
                complete(until(&before.state)),
                "{name}: rows came into a period that was called complete"
            );
            let complete = complete(until(&state));
            self.seen[index] = Seen { state, rows: rows.len(), complete };
        }
    }

    /// Lets everything come to rest, then compares every table with its source.
    async fn settle(&mut self) {
        self.world.database.start_capture();
        for round in 0..if self.lake.is_some() { 2 } else { 6 } {
            self.world.clock.advance(Duration::from_secs(700));
            let calm = Run {
                rows_max: 1_000,
                commits_max: (round % 2 == 0).then_some(1_000),
                batch_rows: 100,
                trouble: None,
                two: false,
            };
            self.run(&calm).await;
        }
        self.stage.quiet(true);
        self.world.database.start_capture();
        self.world.clock.advance(Duration::from_secs(700));
        let calm =
            Run { rows_max: 1_000, commits_max: None, batch_rows: 100, trouble: None, two: false };
        self.run(&calm).await;
        self.stage.quiet(true);
        self.compare(true).await;
        // Every row has an image from the newest instance now.
        self.stage.quiet(false);
        TABLES.iter().for_each(|name| act(&self.world.database, &self.stage, &Act::touch(name)));
        self.stage.quiet(true);
        self.world.clock.advance(Duration::from_secs(700));
        self.run(&calm).await;
        self.stage.quiet(true);
        self.compare(false).await;
    }

    async fn compare(&mut self, base: bool) {
        for config in self.tables.clone() {
            let name = &config.target;
            if self.ended.contains(name) {
                continue;
            }
            let instances = self.instances(name).await;
            let newest = instances.last().expect("captured");
            let live = self.stage.columns(name);
            let columns: Vec<&str> = if base {
                BASE.to_vec()
            } else {
                let captured = |column: &&str| newest.column(column).is_some();
                live.iter().map(String::as_str).filter(captured).collect()
            };
            let history = self.history(name).await;
            let copy = image::newest(&history, &columns, &["id"]).expect("a history");
            let table = TableName::new("dbo", name.as_str());
            let (rows, _) = self.world.source_rows(&table).expect("readable");
            let source = image::present(&rows, &columns).expect("rows");
            assert!(copy == source, "{name} differs from its source:\n{copy:?}\n{source:?}");
            let mut seen = BTreeSet::new();
            for row in Rows::read(&history, columns.iter().copied(), true).expect("rows").as_slice()
            {
                let lead = row.lead.clone().expect("a history has leads");
                let identity = (lead.commit, lead.command, lead.sequence, lead.operation);
                assert!(seen.insert(identity.clone()), "{name} doubled: {identity:?}");
            }
            self.whole_commits(name);
        }
    }

    /// Every row lies between the marks of its commit.
    fn whole_commits(&self, name: &str) {
        if self.lake.is_some() {
            return;
        }
        let commits = self.world.target.commits(name);
        for pair in commits.windows(2) {
            let (from, to) = (pair[0].mark.end, pair[1].mark.end);
            assert!(from < to, "a mark stood still or went back");
            assert_eq!(pair[0].mark.sequence + 1, pair[1].mark.sequence);
            let counts = pair[1].facts.counts;
            assert_eq!(counts.rows, pair[1].rows as u64);
            assert!(counts.first.is_none_or(|first| from < first.position));
            assert!(counts.last.is_none_or(|last| last.position <= to));
        }
    }
}

/// The commit times of a history.
fn times(history: &[RecordBatch]) -> Vec<Timestamp> {
    let rows = Rows::read(history, ["id"], true).expect("a history");
    let time = |row: &cdc_conformance::rows::Row| match row.lead.as_ref()?.time {
        Cell::Wall(micros) | Cell::Instant(micros) => Some(Timestamp::from_micros(micros)),
        _ => None,
    };
    rows.as_slice().iter().filter_map(time).collect()
}

/// As many cases as `CDC_SIMULATION_CASES` says; the default takes a few seconds.
fn cases(default: u32) -> ProptestConfig {
    let cases = std::env::var("CDC_SIMULATION_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(default),
        max_shrink_iters: 4_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn simulate(delta: bool, steps: &[Step]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        Sim::new(delta).await.play(steps).await;
    });
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn any_trouble_leaves_a_target_in_memory_whole(steps in steps(40)) {
        simulate(false, &steps);
    }
}

proptest! {
    #![proptest_config(cases(3))]

    #[test]
    fn any_trouble_leaves_a_lake_whole(steps in steps(12)) {
        simulate(true, &steps);
    }
}
