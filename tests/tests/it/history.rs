//! Whatever happens at the source: nothing lost, nothing doubled, the same rows in the end.

use std::{collections::BTreeSet, time::Duration};

use cdc_conformance::{image, rows::Rows};
use cdc_core::{
    ErrorKind, InstanceName, TableConfig,
    port::{Bound, PositionLog, Shutdown},
};
use cdc_fake::{Call, CaptureSchedule, EnableOptions, Side, Workload, WorkloadShape};
use cdc_tests::world::{World, block_on, table};
use proptest::prelude::*;

/// What a test does between runs.
#[derive(Clone, Debug)]
enum Step {
    Work(usize),
    Pass(u64),
    Idle,
    Copy {
        rows_max: u64,
        commits_max: Option<u64>,
        batch_rows: usize,
    },
    Cleanup,
    /// Cleanup runs just before the next batch of changes is fetched.
    CleanupInRead,
    StopCapture,
    StartCapture,
    SecondInstance,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => (1usize..12).prop_map(Step::Work),
        2 => (1u64..20_000).prop_map(Step::Pass),
        1 => Just(Step::Idle),
        4 => (1u64..30, proptest::option::of(1u64..6), 1usize..9).prop_map(
            |(rows_max, commits_max, batch_rows)| Step::Copy { rows_max, commits_max, batch_rows }
        ),
        1 => Just(Step::Cleanup),
        1 => Just(Step::CleanupInRead),
        1 => Just(Step::StopCapture),
        1 => Just(Step::StartCapture),
        1 => Just(Step::SecondInstance),
    ]
}

struct Play {
    world: World,
    workload: Workload,
    tables: Vec<TableConfig>,
    instances: usize,
}

impl Play {
    fn new(seed: u64) -> Self {
        let world = World::new();
        let workload = Workload::new(seed, WorkloadShape::default());
        // Short, so that histories of hours meet it.
        world.database.set_retention_minutes(90);
        workload.create(&world.database).expect("tables are new");
        let tables = workload.tables().iter().map(|name| table(&name.name)).collect();
        let play = Self { world, workload, tables, instances: 1 };
        // From here on every change belongs to the copy.
        play.world.clock.advance(Duration::from_secs(60));
        assert!(play.copy());
        play
    }

    /// Does a step. False when it lost data, as a cleanup before a copy must.
    fn act(&mut self, step: &Step) -> bool {
        match step {
            Step::Work(steps) => {
                let pause = Duration::from_secs(60);
                self.workload.run(&self.world.database, *steps, pause).expect("a workload runs");
            }
            Step::Pass(seconds) => {
                self.world.clock.advance(Duration::from_secs(*seconds));
            }
            Step::Idle => {
                self.world.database.write_idle_entry();
            }
            Step::Copy { rows_max, commits_max, batch_rows } => {
                let limits = &mut self.world.settings.limits;
                limits.rows_max = (*rows_max).try_into().expect("positive");
                limits.commits_max = commits_max.map(|count| count.try_into().expect("positive"));
                self.world.settings.batch_rows = (*batch_rows).try_into().expect("positive");
                return self.copy();
            }
            Step::Cleanup => {
                self.world.database.cleanup();
            }
            Step::CleanupInRead => {
                self.world.database.on_next(Call::ChangeBatch, Side::Before, |database| {
                    database.cleanup();
                });
            }
            Step::StopCapture => self.world.database.stop_capture(),
            Step::StartCapture => self.world.database.start_capture(),
            Step::SecondInstance if self.instances == 1 => {
                self.instances = 2;
                for name in self.workload.tables() {
                    let second = format!("dbo_{}_2", name.name);
                    self.world
                        .database
                        .enable_table(name, EnableOptions::named(&second))
                        .expect("nothing is open");
                }
            }
            Step::SecondInstance => {}
        }
        true
    }

    /// Copies what the source has. False when changes were purged before they were read, which
    /// must then be so.
    fn copy(&self) -> bool {
        let report = self.world.copy(&self.tables);
        let mut kept = true;
        for table in &report.tables {
            let Some(error) = &table.error else { continue };
            assert_eq!(error.kind(), ErrorKind::DataLoss, "{}", error.report());
            assert!(self.is_purged(&table.table), "false alarm: {}", error.report());
            kept = false;
        }
        kept
    }

    /// True when an instance of the table no longer holds what follows the mark.
    fn is_purged(&self, table: &str) -> bool {
        let mark = self.world.target.state(table).and_then(|state| state.mark).expect("marked");
        let names = [table.to_owned(), format!("{table}_2")];
        let names = names.map(|name| InstanceName::new(&name.replacen("work", "dbo_work", 1)));
        let lows = block_on(self.world.source().low(&names)).expect("readable");
        lows.iter().any(|low| matches!(low, Bound::At(low) if mark.end.increment() < *low))
    }

    /// Copies what is left, then compares every table with its source.
    fn settle(&self) {
        self.world.database.start_capture();
        self.world.clock.advance(Duration::from_secs(700));
        if self.copy() {
            self.tables.iter().for_each(|config| self.compare(config));
        }
    }

    fn compare(&self, config: &TableConfig) {
        let history = self.world.target.rows(&config.target).expect("readable");
        let name = cdc_core::TableName::new("dbo", &config.target);
        let (rows, columns) = self.world.source_rows(&name).expect("readable");
        // CDC never fills computed columns.
        let columns: Vec<_> = columns
            .iter()
            .filter(|column| !column.computed)
            .map(|column| column.name.to_lowercase())
            .collect();
        let columns: Vec<_> = columns.iter().map(String::as_str).collect();
        let newest = image::newest(&history, &columns, &["id"]).expect("a history");
        let present = image::present(&rows, &columns).expect("rows");
        assert!(newest == present, "{} differs from its source", config.target);
        let all = Rows::read(&history, columns.iter().copied(), true).expect("a history");
        let mut seen = BTreeSet::new();
        for row in all.as_slice() {
            let lead = row.lead.clone().expect("a history has leads");
            let identity = (lead.commit, lead.command, lead.sequence, lead.operation);
            assert!(seen.insert(identity.clone()), "doubled: {identity:?}");
        }
        self.marks_grow(config);
    }

    fn marks_grow(&self, config: &TableConfig) {
        let commits = self.world.target.commits(&config.target);
        for pair in commits.windows(2) {
            assert!(pair[0].mark.end < pair[1].mark.end, "a mark stood still or went back");
            assert_eq!(pair[0].mark.sequence + 1, pair[1].mark.sequence);
            assert!(pair[0].mark.commit_time <= pair[1].mark.commit_time);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_copy_equals_the_source_after_any_history(
        seed in any::<u64>(), steps in proptest::collection::vec(step(), 1..25),
    ) {
        let mut play = Play::new(seed);
        let kept = steps.iter().all(|step| play.act(step));
        // A purge before the copy is reported; what follows would need a new snapshot.
        if kept {
            play.settle();
        }
        for config in &play.tables {
            play.marks_grow(config);
        }
    }
}

#[test]
fn a_purge_before_the_copy_is_an_error_and_leaves_the_target_as_it_was() {
    let mut play = Play::new(7);
    play.act(&Step::Work(10));
    play.world.clock.advance(Duration::from_secs(700));
    assert!(play.copy());
    let before: Vec<_> =
        play.tables.iter().map(|table| play.world.target.state(&table.target)).collect();
    play.act(&Step::Work(10));
    play.world.clock.advance(Duration::from_secs(9 * 86_400));
    play.act(&Step::Work(10));
    play.world.clock.advance(Duration::from_secs(700));
    play.world.database.cleanup();
    let report = play.world.copy(&play.tables);
    let kinds: Vec<_> = report.errors().map(|error| error.kind()).collect();
    assert_eq!(kinds, [ErrorKind::DataLoss, ErrorKind::DataLoss]);
    let after: Vec<_> =
        play.tables.iter().map(|table| play.world.target.state(&table.target)).collect();
    assert_eq!(before, after);
}

#[test]
fn one_bound_a_cycle_shows_a_transaction_over_two_tables_at_once() {
    let play = Play::new(11);
    play.world.database.set_capture(CaptureSchedule::AtCommit);
    let names = play.workload.tables().to_vec();
    let database = play.world.database.clone();
    let mut workload = play.workload.clone();
    // Commits land between the reads of the first and the second table.
    for _ in 0..40 {
        workload.step(&play.world.database).expect("a workload runs");
    }
    let mut late = play.workload.clone();
    database.on_next(Call::Changes, Side::After, move |database| {
        for _ in 0..5 {
            late.step(database).expect("a workload runs");
        }
    });
    let report = block_on(play.world.engine().run_once(play.tables.clone(), &Shutdown::never()));
    assert_eq!(report.errors().count(), 0);
    let ends: Vec<_> = names
        .iter()
        .map(|name| play.world.target.commits(&name.name).last().expect("copied").mark.end)
        .collect();
    assert_eq!(ends[0], ends[1]);
}
