//! Random histories: what change tables say is what happened.

use std::{collections::BTreeMap, time::Duration};

use arrow_array::{Array, RecordBatch};
use cdc_core::{
    InstanceName,
    change::{ChangeColumns, Operation},
};
use cdc_fake::{
    CaptureSchedule, ChangeRow, CommitInfo, EnableOptions, FakeDatabase, Value, Workload,
    WorkloadShape, Zone,
};
use proptest::prelude::*;

use crate::rig::Rig;

/// Applies change rows in order and says what is left, by key.
fn replay(rows: &[ChangeRow]) -> BTreeMap<i64, Vec<Value>> {
    let mut state: BTreeMap<i64, Vec<Value>> = BTreeMap::new();
    for row in rows {
        let key = row.values[0].as_int().expect("a key");
        match row.operation {
            Operation::Delete => assert!(state.remove(&key).is_some(), "deleted nothing"),
            Operation::Insert => {
                assert!(state.insert(key, row.values.clone()).is_none(), "inserted twice");
            }
            Operation::UpdateBefore => assert!(state.contains_key(&key), "updated nothing"),
            Operation::UpdateAfter => {
                state.insert(key, row.values.clone());
            }
            Operation::Read => panic!("a snapshot row among changes"),
        }
    }
    state
}

/// The table's rows by key, without the computed column, which changes never carry.
fn table_state(
    database: &FakeDatabase,
    workload: &Workload,
    at: usize,
) -> BTreeMap<i64, Vec<Value>> {
    let rows = database.rows(&workload.tables()[at]).expect("known");
    rows.into_iter()
        .map(|mut row| {
            if let Some(computed) = row.last_mut() {
                *computed = Value::Null;
            }
            (row[0].as_int().expect("a key"), row)
        })
        .collect()
}

fn ran(seed: u64, steps: usize) -> (Rig, Workload, Vec<InstanceName>, Vec<CommitInfo>) {
    let rig = Rig::new();
    let mut workload = Workload::new(seed, WorkloadShape::default());
    let instances = workload.create(&rig.database).expect("new tables");
    let commits = workload.run(&rig.database, steps, Duration::from_secs(60)).expect("runs");
    (rig, workload, instances, commits)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn change_rows_applied_in_change_order_reproduce_the_table(seed: u64) {
        let (rig, workload, instances, _) = ran(seed, 60);
        for (at, instance) in instances.iter().enumerate() {
            let rows = rig.database.change_rows(instance).expect("known");
            let order = |row: &ChangeRow| (row.commit, row.command, row.seqval, row.operation);
            prop_assert!(rows.windows(2).all(|pair| order(&pair[0]) < order(&pair[1])));
            prop_assert_eq!(replay(&rows), table_state(&rig.database, &workload, at));
        }
    }

    #[test]
    fn lsn_order_is_commit_order(seed: u64) {
        let (rig, _, _, commits) = ran(seed, 60);
        prop_assert!(commits.windows(2).all(|pair| pair[0].lsn < pair[1].lsn));
        prop_assert!(commits.windows(2).all(|pair| pair[0].time <= pair[1].time));
        let mapping = rig.database.mapping();
        prop_assert!(mapping.windows(2).all(|pair| pair[0].lsn < pair[1].lsn));
    }

    #[test]
    fn whenever_capture_reads_the_log_the_change_tables_end_up_the_same(
        seed: u64, interval in 1u64..40, lag in 0u64..200,
    ) {
        let rows = |schedule| {
            let rig = Rig::new();
            rig.database.set_capture(schedule);
            let mut workload = Workload::new(seed, WorkloadShape::default());
            let instances = workload.create(&rig.database).expect("new tables");
            workload.run(&rig.database, 30, Duration::from_secs(60)).expect("runs");
            rig.database.capture();
            let project = |row: ChangeRow| (row.command, row.operation, row.values);
            instances
                .iter()
                .flat_map(|name| rig.database.change_rows(name).expect("known"))
                .map(project)
                .collect::<Vec<_>>()
        };
        let polled = CaptureSchedule::Every {
            interval: Duration::from_secs(interval),
            lag: Duration::from_secs(lag),
        };
        prop_assert_eq!(rows(CaptureSchedule::AtCommit), rows(polled));
    }

    #[test]
    fn a_partial_instance_holds_the_same_changes_but_those_it_cannot_see(seed: u64) {
        let rig = Rig::new();
        let mut workload = Workload::new(seed, WorkloadShape { tables: 1, ..WorkloadShape::default() });
        let whole = workload.create(&rig.database).expect("new tables").remove(0);
        let options = EnableOptions::named("part").columns(&["id", "code"]);
        let part = rig.database.enable_table(&workload.tables()[0], options).expect("second");
        workload.run(&rig.database, 60, Duration::ZERO).expect("runs");
        let rows = |name: &InstanceName| rig.database.change_rows(name).expect("known");
        let narrow = |values: &[Value]| values[..2].to_vec();
        let replayed: Vec<_> = replay(&rows(&whole)).values().map(|row| narrow(row)).collect();
        let part_rows = rows(&part);
        prop_assert!(part_rows.len() <= rows(&whole).len());
        let replayed_part: Vec<_> = replay(&part_rows).into_values().collect();
        prop_assert_eq!(replayed_part, replayed);
    }

    #[test]
    fn the_source_streams_what_the_change_table_holds(seed: u64, batch_rows in 1usize..50) {
        let (rig, _, instances, _) = ran(seed, 30);
        runtime().block_on(async {
            for instance in &instances {
                let rows = rig.database.change_rows(instance).expect("known");
                let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
                let read = rig.read(instance, first.commit, last.commit, batch_rows).await.expect("read");
                let streamed: Vec<_> = read.iter().flat_map(orders).collect();
                let held: Vec<_> = rows
                    .iter()
                    .map(|row| (row.commit.as_bytes().to_vec(), Some(row.command), row.operation.code()))
                    .collect();
                prop_assert_eq!(streamed, held);
                for (at, _) in rows[0].values.iter().enumerate() {
                    let nulls: usize = read.iter().map(|batch| batch.column(5 + at).null_count()).sum();
                    let expected = rows.iter().filter(|row| row.values[at].is_null()).count();
                    prop_assert_eq!(nulls, expected);
                }
                prop_assert!(read.iter().all(|batch| batch.num_rows() <= batch_rows + 1));
            }
            Ok(())
        })?;
    }

    #[test]
    fn across_any_fall_back_streamed_times_are_the_true_ones_to_the_tick(seed: u64) {
        let zone = Zone::Named(chrono_tz::Australia::Lord_Howe);
        // 30 minutes are repeated from 15:00 UTC on.
        let rig = Rig::in_zone(zone, "2026-04-04T14:00:00Z");
        let mut workload = Workload::new(seed, WorkloadShape::default());
        let instances = workload.create(&rig.database).expect("new tables");
        workload.run(&rig.database, 120, Duration::from_secs(120)).expect("runs");
        let mapping: BTreeMap<_, _> = rig
            .database
            .mapping()
            .into_iter()
            .map(|entry| (entry.lsn.as_bytes().to_vec(), entry.moment))
            .collect();
        runtime().block_on(async {
            for instance in &instances {
                let rows = rig.database.change_rows(instance).expect("known");
                let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
                for batch in rig.read(instance, first.commit, last.commit, 9).await.expect("read") {
                    let columns = ChangeColumns::of(&batch).expect("a change batch");
                    for row in 0..columns.len() {
                        let time = columns.time(row).expect("a time");
                        let moment = mapping[columns.commits.value(row)];
                        let off = time.micros_since(moment).abs();
                        prop_assert!(off <= 1_667, "{} us off at {}", off, moment);
                    }
                }
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_same_seed_gives_the_same_history(seed: u64) {
        let history = || {
            let (rig, _, instances, commits) = ran(seed, 20);
            let rows: Vec<_> = instances
                .iter()
                .map(|name| rig.database.change_rows(name).expect("known"))
                .collect();
            (rows, commits)
        };
        prop_assert_eq!(history(), history());
    }
}

fn orders(batch: &RecordBatch) -> Vec<(Vec<u8>, Option<i32>, i32)> {
    let columns = ChangeColumns::of(batch).expect("a change batch");
    (0..columns.len())
        .map(|row| {
            let order = columns.order(row);
            (order.commit.to_vec(), order.command, order.operation)
        })
        .collect()
}
