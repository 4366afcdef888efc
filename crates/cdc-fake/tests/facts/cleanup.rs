//! Cleanup: the order of its steps and what it leaves.

use std::collections::BTreeMap;

use cdc_core::{InstanceName, Lsn, Position, port::Bound};
use cdc_fake::{CleanupStep, EnableOptions, Workload, WorkloadShape};
use proptest::prelude::*;

use crate::rig::{Rig, count};

fn ten(rig: &Rig) -> Vec<Lsn> {
    (0..10)
        .map(|id| {
            rig.advance(1);
            rig.insert(id, 0).lsn
        })
        .collect()
}

#[tokio::test]
async fn the_low_watermark_moves_before_any_row_goes() {
    let (rig, instance) = Rig::captured();
    let commits = ten(&rig);
    let mut cleanup =
        rig.database.begin_cleanup_of(&instance, commits[6], 4).expect("a known mark");
    assert_eq!(cleanup.step(), Some(CleanupStep::Watermark(instance.clone(), commits[6])));
    assert_eq!(rig.low(&instance).await, Bound::At(Position::from(commits[6])));
    let read = rig.read(&instance, commits[0], commits[9], 100).await;
    assert_eq!(count(&read.expect("read")), 10, "no row is gone yet");
    assert_eq!(cleanup.step(), Some(CleanupStep::Rows(instance.clone(), 4)));
    assert_eq!(cleanup.step(), Some(CleanupStep::Rows(instance.clone(), 2)));
    // The enable's entry and six commits.
    assert_eq!(cleanup.step(), Some(CleanupStep::Mapping(4)));
    assert_eq!(cleanup.step(), Some(CleanupStep::Mapping(3)));
    assert_eq!(cleanup.step(), None);
}

#[tokio::test]
async fn the_requested_mark_is_lowered_to_the_first_entry_that_shares_its_time() {
    let (rig, instance) = Rig::captured();
    rig.advance(1);
    let first = rig.insert(1, 0);
    let second = rig.insert(2, 0);
    let third = rig.insert(3, 0);
    rig.advance(1);
    rig.insert(4, 0);
    let removed = rig.database.cleanup_instance(&instance, third.lsn);
    assert_eq!(removed, Ok(0));
    assert_eq!(rig.low(&instance).await, Bound::At(Position::from(first.lsn)));
    assert!(second.lsn < third.lsn);
}

#[tokio::test]
async fn a_mark_that_is_no_entry_of_the_mapping_is_refused() {
    let (rig, instance) = Rig::captured();
    let commit = rig.insert(1, 0);
    let error =
        rig.database.cleanup_instance(&instance, commit.lsn.increment()).expect_err("no entry");
    assert_eq!(error.number, 22964);
}

#[tokio::test]
async fn retention_is_measured_from_the_last_captured_commit() {
    let (rig, instance) = Rig::captured();
    rig.database.set_retention_minutes(60);
    let old = rig.insert(1, 0);
    rig.advance(3 * 3600);
    // Long ago by the clock, but nothing was captured since.
    assert_eq!(rig.database.cleanup(), 0);
    let new = rig.insert(2, 0);
    assert_eq!(rig.database.cleanup(), 1);
    assert_eq!(rig.low(&instance).await, Bound::At(Position::from(new.lsn)));
    assert!(rig.database.mapping().iter().all(|entry| entry.lsn > old.lsn));
}

#[tokio::test]
async fn the_retention_is_three_days_unless_set() {
    let (rig, _) = Rig::captured();
    rig.insert(1, 0);
    rig.advance(3 * 24 * 3600);
    rig.insert(2, 0);
    assert_eq!(rig.database.cleanup(), 0);
    rig.advance(1);
    rig.insert(3, 0);
    assert_eq!(rig.database.cleanup(), 1);
}

#[tokio::test]
async fn mapping_rows_go_only_below_the_lowest_watermark_of_all_instances() {
    let rig = Rig::new();
    let first = rig.enable("first");
    let second = rig.enable("second");
    let commits = ten(&rig);
    rig.database.cleanup_instance(&first, commits[8]).expect("known");
    let lowest = rig.database.instance(&second).expect("known").low;
    assert_eq!(rig.database.mapping().first().map(|entry| entry.lsn), lowest);
    rig.database.cleanup_instance(&second, commits[5]).expect("known");
    let mapping = rig.database.mapping();
    assert_eq!(mapping.first().map(|entry| entry.lsn), Some(commits[5]));
}

#[tokio::test]
async fn cleanup_leaves_the_tables_rows_alone() {
    let (rig, instance) = Rig::captured();
    let commits = ten(&rig);
    rig.database.cleanup_instance(&instance, commits[9]).expect("known");
    assert_eq!(rig.database.row_count(&rig.table), Ok(10));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn in_whatever_order_steps_run_nothing_at_or_above_a_watermark_is_missing(
        seed: u64,
        marks in proptest::collection::vec((0usize..3, 0usize..1000, 1usize..20), 1..6),
        order in proptest::collection::vec(0usize..6, 0..120),
    ) {
        let rig = Rig::new();
        let mut workload = Workload::new(seed, WorkloadShape::default());
        let mut instances = workload.create(&rig.database).expect("new tables");
        let table = workload.tables()[0].clone();
        workload.run(&rig.database, 15, std::time::Duration::from_secs(400)).expect("runs");
        let second = EnableOptions::named("second").columns(&["id", "code"]);
        instances.push(rig.database.enable_table(&table, second).expect("second"));
        workload.run(&rig.database, 15, std::time::Duration::from_secs(400)).expect("runs");
        let rows = |name: &InstanceName| rig.database.change_rows(name).expect("known");
        let whole: BTreeMap<_, _> = instances.iter().map(|name| (name.clone(), rows(name))).collect();
        let mapping = rig.database.mapping();
        let mut cleanups: Vec<_> = marks
            .iter()
            .map(|(instance, mark, threshold)| {
                let mark = mapping[mark % mapping.len()].lsn;
                let name = &instances[instance % instances.len()];
                rig.database.begin_cleanup_of(name, mark, *threshold).expect("known mark")
            })
            .collect();
        let mut lows: BTreeMap<InstanceName, Lsn> = BTreeMap::new();
        for chosen in order.iter().copied().chain((0..6).flat_map(|at| std::iter::repeat_n(at, 400))) {
            let at = chosen % cleanups.len();
            if cleanups[at].step().is_none() {
                continue;
            }
            for name in &instances {
                let low = rig.database.instance(name).expect("known").low.expect("captured");
                let before = lows.insert(name.clone(), low);
                prop_assert!(before <= Some(low), "a watermark went back");
                let kept: Vec<_> = rows(name).into_iter().filter(|row| row.commit >= low).collect();
                let full: Vec<_> =
                    whole[name].iter().filter(|row| row.commit >= low).cloned().collect();
                prop_assert_eq!(kept, full);
            }
            let lowest = lows.values().min().copied();
            let left: Vec<_> = rig.database.mapping().into_iter()
                .filter(|entry| Some(entry.lsn) >= lowest).collect();
            let full: Vec<_> = mapping.iter().copied()
                .filter(|entry| Some(entry.lsn) >= lowest).collect();
            prop_assert_eq!(left, full);
        }
    }
}

#[tokio::test]
async fn the_job_runs_by_itself_on_its_schedule() {
    let (rig, instance) = Rig::captured();
    rig.database.set_capture(cdc_fake::CaptureSchedule::DEFAULT);
    rig.database.set_retention_minutes(60);
    rig.database.set_cleanup(Some(cdc_fake::CleanupSchedule {
        every: std::time::Duration::from_secs(24 * 3600),
        threshold: 5000,
    }));
    rig.insert(1, 0);
    rig.advance(24 * 3600 - 1);
    assert_eq!(rig.operations(&instance), [2]);
    rig.advance(1);
    assert_eq!(rig.operations(&instance), [0; 0]);
    let mapping = rig.database.mapping();
    let age = rig.database.clock().time().micros_since(mapping[0].moment);
    // The first entry kept and the last one before the run are each one idle entry off at most.
    let off = age - 3_600_000_000;
    assert!(off.abs() <= 305_000_000, "{age}");
}

#[tokio::test]
async fn a_change_row_whose_commit_has_left_the_mapping_is_not_found_by_the_join() {
    let rig = Rig::new();
    let (first, second) = (rig.enable("first"), rig.enable("second"));
    let commits = ten(&rig);
    let mut half = rig.database.begin_cleanup_of(&first, commits[6], 100).expect("a known mark");
    half.step().expect("the watermark");
    rig.database.cleanup_instance(&second, commits[6]).expect("a known mark");
    assert_eq!(rig.operations(&first).len(), 10, "its rows are still there");
    let read = rig.read(&first, commits[0], commits[9], 3).await.expect("no error");
    assert_eq!(count(&read), 4);
}
