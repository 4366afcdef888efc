//! Switch: a second capture instance next to the first, and what disabling removes.

use std::collections::BTreeSet;

use cdc_core::{
    ErrorKind, InstanceName, Lsn, Position, TableRef,
    port::{Bound, Catalog, PositionLog},
};
use cdc_fake::{CaptureSchedule, EnableOptions, Workload, WorkloadShape};

use crate::rig::{Rig, row};

#[tokio::test]
async fn an_instance_is_listed_with_its_start_before_capture_has_reached_it() {
    let rig = Rig::new();
    rig.database.set_capture(CaptureSchedule::DEFAULT);
    rig.enable("first");
    rig.advance(60);
    let second = rig.enable("second");
    let listed = rig.source.instances(&TableRef::Table(rig.table.clone())).await;
    let listed = listed.expect("listed");
    let names: Vec<_> = listed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["first", "second"], "oldest first");
    let start = Lsn::try_from(listed[1].start).expect("an lsn");
    assert_eq!(rig.low(&second).await, Bound::Zero);
    assert!(rig.high().await < Some(start));
    rig.advance(5);
    assert_eq!(rig.low(&second).await, Bound::At(Position::from(start)));
    assert!(rig.high().await >= Some(start));
}

#[tokio::test]
async fn from_the_second_start_on_every_commit_is_in_both_with_equal_places() {
    let rig = Rig::new();
    let first = rig.enable("first");
    for id in 0..20 {
        rig.insert(id, 0);
    }
    let second = rig.enable("second");
    let start = rig.database.instance(&second).expect("known").start;
    for id in 0..20 {
        rig.update(id, 1);
    }
    let rows = |name: &InstanceName| rig.database.change_rows(name).expect("known");
    let (old, new) = (rows(&first), rows(&second));
    assert_eq!(old.iter().filter(|row| row.commit < start).count(), 20);
    assert!(new.iter().all(|row| row.commit > start));
    let identity = |row: &cdc_fake::ChangeRow| (row.commit, row.seqval, row.operation);
    let later: Vec<_> = old.iter().filter(|row| row.commit > start).collect();
    assert_eq!(later.len(), new.len());
    for (old, new) in later.iter().zip(&new) {
        assert_eq!(identity(old), identity(new));
        assert_eq!(old.values, new.values);
    }
}

#[tokio::test]
async fn command_ids_are_numbered_for_each_instance_on_its_own() {
    let rig = Rig::new();
    let (first, second) = (rig.enable("first"), rig.enable("second"));
    rig.transact(|tx| {
        tx.insert(&rig.table, row(1, 0))?;
        tx.update(&rig.table, &[1.into()], &[("v", 1.into())])?;
        tx.delete(&rig.table, &[1.into()])?;
        Ok(())
    });
    let commands = |name: &InstanceName| -> Vec<i32> {
        let rows = rig.database.change_rows(name).expect("known");
        rows.iter().map(|row| row.command).collect()
    };
    assert_eq!(commands(&first), [1, 3, 3, 5]);
    assert_eq!(commands(&second), [2, 4, 4, 6]);
}

#[tokio::test]
async fn a_third_instance_is_refused() {
    let rig = Rig::new();
    rig.enable("first");
    rig.enable("second");
    let third = rig.database.enable_table(&rig.table, EnableOptions::named("third"));
    assert_eq!(third.expect_err("refused").number, 22962);
}

#[tokio::test]
async fn enabling_waits_for_open_transactions_that_wrote_the_table() {
    let rig = Rig::new();
    rig.enable("first");
    let mut wrote = rig.database.begin();
    wrote.insert(&rig.table, row(1, 0)).expect("new key");
    let mut later = rig.database.begin();
    let options = || EnableOptions::named("second");
    let blocked = rig.database.enable_table(&rig.table, options());
    assert_eq!(blocked.expect_err("blocked").number, 1222);
    wrote.commit().expect("committed");
    // A transaction that is open but writes only later is complete in both.
    let second = rig.database.enable_table(&rig.table, options());
    let second = second.expect("nobody wrote");
    later.insert(&rig.table, row(2, 0)).expect("new key");
    later.insert(&rig.table, row(3, 0)).expect("new key");
    later.commit().expect("committed");
    assert_eq!(rig.operations(&second), [2, 2]);
}

#[tokio::test]
async fn disabling_drops_the_change_table_and_its_history_at_once() {
    let (rig, instance) = Rig::captured();
    let commit = rig.insert(1, 1);
    let request = rig.request(&instance, commit.lsn, commit.lsn, 1).await;
    rig.database.disable_instance(&instance).expect("known");
    assert!(rig.database.ddl_history(&instance).is_err());
    assert_eq!(rig.low(&instance).await, Bound::Zero);
    let Err(error) = cdc_core::port::ChangeReader::changes(&rig.source, request).await else {
        panic!("a dropped change table was read");
    };
    assert_eq!(error.kind(), ErrorKind::Config);
    // The name may be used again: another instance, with nothing of the old one.
    let again = rig.enable("dbo_t");
    assert_eq!(rig.operations(&again), [0; 0]);
}

#[tokio::test]
async fn under_a_random_writer_both_instances_agree_from_the_second_start_on() {
    for seed in 0..20 {
        let rig = Rig::new();
        let mut workload = Workload::new(seed, WorkloadShape::default());
        let old = workload.create(&rig.database).expect("new tables");
        let pause = std::time::Duration::from_secs(10);
        workload.run(&rig.database, 30, pause).expect("runs");
        let table = workload.tables()[0].clone();
        let newer =
            rig.database.enable_table(&table, EnableOptions::named("newer")).expect("second");
        let start = rig.database.instance(&newer).expect("known").start;
        workload.run(&rig.database, 30, pause).expect("runs");
        let identities = |name| -> BTreeSet<_> {
            let rows = rig.database.change_rows(name).expect("known");
            rows.iter()
                .filter(|row| row.commit > start)
                .map(|row| (row.commit, row.seqval, row.operation))
                .collect()
        };
        assert_eq!(identities(&old[0]), identities(&newer), "seed {seed}");
    }
}

#[tokio::test]
async fn names_match_exactly_or_else_ignoring_case_when_only_one_does() {
    let (rig, _) = Rig::captured();
    let by_name = |name: &str| {
        let source = rig.source.clone();
        let reference = TableRef::Instance(InstanceName::new(name));
        async move { source.instances(&reference).await }
    };
    assert_eq!(by_name("DBO_T").await.expect("one fits")[0].name.as_str(), "dbo_t");
    let error = by_name("dbo_tt").await.expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.advice().contains("dbo_t"), "{}", error.advice());
    assert_eq!(
        rig.source.low(&[InstanceName::new("missing")]).await.expect("answers"),
        [Bound::Zero]
    );
}

#[tokio::test]
async fn commits_before_the_start_stay_out_of_an_instance_however_late_capture_reads_them() {
    let rig = Rig::new();
    let first = rig.enable("first");
    rig.database.set_capture(CaptureSchedule::Manual);
    rig.insert(1, 0);
    let second = rig.enable("second");
    rig.insert(2, 0);
    rig.database.capture();
    assert_eq!(rig.operations(&first), [2, 2]);
    assert_eq!(rig.operations(&second), [2]);
}
