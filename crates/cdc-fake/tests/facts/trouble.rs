//! Planted trouble: failing calls, killed connections, slow answers, hooks, restores.

use std::time::Duration;

use cdc_core::{
    ErrorKind, Position,
    port::{ChangeReader, Clock, PositionLog},
};
use cdc_fake::{Call, FaultPlan, Side, SqlError};
use futures_util::{FutureExt, StreamExt};

use crate::rig::{Rig, count, range};

#[tokio::test]
async fn the_next_calls_of_a_kind_fail_as_planted_and_then_no_more() {
    let (rig, _) = Rig::captured();
    rig.database.fail_next(Call::High, 2, &SqlError::deadlock());
    for _ in 0..2 {
        let error = rig.source.high().await.expect_err("planted");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(error.context("error"), Some("1205"));
    }
    assert!(rig.source.high().await.is_ok());
    assert_eq!(rig.database.calls(Call::High), 3);
}

#[tokio::test]
async fn a_connection_killed_in_the_middle_of_a_stream_is_an_error_and_no_end() {
    let (rig, instance) = Rig::captured();
    let first = rig.insert(0, 0);
    for id in 1..9 {
        rig.insert(id, 0);
    }
    let last = rig.insert(9, 0);
    for (rows, batches) in [(0, 0), (4, 2), (10, 4)] {
        rig.database.kill_after_rows(Call::Changes, rows);
        let request = rig.request(&instance, first.lsn, last.lsn, 3).await;
        let mut stream = rig.source.changes(request).await.expect("opens");
        let mut read = Vec::new();
        let error = loop {
            match stream.next().await.expect("an error, no end") {
                Ok(batch) => read.push(batch),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert_eq!(count(&read), usize::try_from(rows).expect("small"));
        assert_eq!(read.len(), batches);
        assert!(stream.next().await.is_none(), "an error is the last item");
    }
    let read = rig.read(&instance, first.lsn, last.lsn, 3).await;
    assert_eq!(count(&read.expect("the next stream is whole")), 10);
}

#[tokio::test]
async fn a_slow_call_takes_its_time_on_the_virtual_clock() {
    let (rig, _) = Rig::captured();
    rig.database.slow(Call::High, Duration::from_secs(30));
    let before = rig.database.clock().now();
    let mut call = Box::pin(rig.source.high());
    assert!(call.as_mut().now_or_never().is_none());
    rig.advance(29);
    assert!(call.as_mut().now_or_never().is_none());
    rig.advance(1);
    assert!(call.await.is_ok());
    assert_eq!(rig.database.clock().now().micros_since(before), 30_000_000);
}

#[tokio::test]
async fn a_hook_lands_a_commit_between_planning_and_reading() {
    let (rig, instance) = Rig::captured();
    let first = rig.insert(1, 0);
    let high = rig.high().await.expect("entries");
    let table = rig.table.clone();
    rig.database.on_next(Call::HasChanges, Side::After, move |database| {
        database.transact(|tx| tx.insert(&table, crate::rig::row(2, 0))).expect("committed");
    });
    let ranges = [(instance.clone(), range(high.increment(), high.increment()))];
    let any = rig.source.has_changes(&ranges).await.expect("answers");
    assert_eq!(any, [false]);
    assert!(rig.high().await > Some(high));
    let read = rig.read(&instance, first.lsn, high, 10).await;
    assert_eq!(count(&read.expect("read")), 1, "the planned range is unchanged");
}

#[tokio::test]
async fn a_seeded_plan_gives_the_same_trouble_for_the_same_seed() {
    let outcomes = |seed| {
        let (rig, _) = Rig::captured();
        rig.database.set_fault_plan(Some(FaultPlan { fail: 0.5, ..FaultPlan::new(seed) }));
        async move {
            let mut outcomes = Vec::new();
            for _ in 0..64 {
                let outcome = rig.source.high().await;
                outcomes.push(outcome.map_err(|error| error.report()).err());
            }
            outcomes
        }
    };
    let first = outcomes(7).await;
    assert_eq!(first, outcomes(7).await);
    assert_ne!(first, outcomes(8).await);
    let failed = first.iter().flatten().count();
    assert!((10..54).contains(&failed), "{failed}");
}

#[tokio::test]
async fn a_restore_brings_back_an_earlier_point_and_the_log_goes_on_from_there() {
    let (rig, instance) = Rig::captured();
    rig.insert(1, 1);
    let mut open_then = rig.database.begin();
    open_then.insert(&rig.table, crate::rig::row(8, 8)).expect("new key");
    let backup = rig.database.backup();
    open_then.rollback();
    let lineage = rig.database.lineage();
    let lost = rig.insert(2, 2);
    rig.insert(3, 3);
    let saved = rig.high().await.expect("entries");
    let mut open = rig.database.begin();
    open.insert(&rig.table, crate::rig::row(9, 9)).expect("new key");
    rig.advance(3600);
    rig.database.restore(&backup);
    assert!(open.commit().is_err(), "open transactions are gone");
    assert!(rig.high().await < Some(saved), "a saved position is ahead of the log");
    assert_eq!(rig.database.row_count(&rig.table), Ok(1));
    assert_ne!(rig.database.lineage(), lineage);
    let new = rig.insert(8, 8);
    assert_eq!(new.lsn, lost.lsn, "the log hands out the same positions again");
    assert_eq!(rig.operations(&instance), [2, 2]);
    let time = rig.source.commit_time(Position::from(new.lsn)).await;
    assert_eq!(time.expect("answers"), Some(new.time));
}

#[tokio::test]
async fn a_row_that_an_open_transaction_wrote_is_locked_for_others() {
    let (rig, instance) = Rig::captured();
    rig.insert(1, 0);
    let mut first = rig.database.begin();
    first.update(&rig.table, &[1.into()], &[("v", 1.into())]).expect("free");
    let mut second = rig.database.begin();
    let blocked = second.update(&rig.table, &[1.into()], &[("v", 2.into())]);
    assert_eq!(blocked.expect_err("locked").number, 1222);
    second.insert(&rig.table, crate::rig::row(2, 0)).expect("another row");
    second.commit().expect("committed");
    first.commit().expect("committed");
    assert_eq!(rig.operations(&instance), [2, 2, 3, 4]);
}

#[tokio::test]
async fn a_refused_statement_leaves_nothing_and_its_transaction_open() {
    let (rig, instance) = Rig::captured();
    rig.insert(5, 0);
    let commit = rig.database.transact(|tx| {
        tx.insert(&rig.table, crate::rig::row(1, 0))?;
        let rows = vec![crate::rig::row(2, 0), crate::rig::row(5, 0)];
        let refused = tx.insert_many(&rig.table, rows);
        assert_eq!(refused.expect_err("taken").number, 2627);
        let twice = vec![crate::rig::row(8, 0), crate::rig::row(3, 0), crate::rig::row(8, 0)];
        assert!(tx.insert_many(&rig.table, twice).is_err());
        let moved = tx.update_where(&rig.table, |row| row.int("id") == 1, |row| row.set("id", 5));
        assert_eq!(moved.expect_err("taken").number, 2627);
        Ok(())
    });
    commit.expect("committed");
    assert_eq!(rig.operations(&instance), [2, 2]);
    assert_eq!(rig.database.row_count(&rig.table), Ok(2));
}

#[tokio::test]
async fn dropping_a_table_drops_its_instances() {
    let (rig, instance) = Rig::captured();
    rig.insert(1, 0);
    rig.database.drop_table(&rig.table).expect("there");
    assert!(rig.database.change_rows(&instance).is_err());
    assert!(rig.database.row_count(&rig.table).is_err());
    rig.database.capture();
}
