//! What others met in the field, as far as it is the server's part.

use cdc_core::{
    InstanceName, Lsn, Position,
    change::Operation,
    port::{Bound, PositionLog},
};
use cdc_fake::CaptureSchedule;

use crate::rig::{Rig, count, row};

#[tokio::test]
async fn win_03_an_unknown_instance_and_one_without_rights_have_a_zero_low_position() {
    let (rig, instance) = Rig::captured();
    assert_eq!(rig.low(&InstanceName::new("dbo_missing")).await, Bound::Zero);
    let stranger = rig.source_of("stranger");
    let low = stranger.low(std::slice::from_ref(&instance)).await;
    assert_eq!(low.expect("answers"), [Bound::Zero]);
    // A table that was enabled a moment ago and has no changes is a real one.
    let start = rig.database.instance(&instance).expect("known").start;
    assert_eq!(rig.low(&instance).await, Bound::At(Position::from(start)));
}

#[tokio::test]
async fn win_05_a_fresh_instance_starts_ahead_of_the_high_position() {
    let rig = Rig::new();
    rig.enable("old");
    rig.database.set_capture(CaptureSchedule::Manual);
    let high = rig.high().await.expect("the enable");
    let fresh = rig.enable("fresh");
    let start = rig.database.instance(&fresh).expect("known").start;
    assert!(high < start);
    let commit = rig.insert(1, 1);
    let read = rig.read(&fresh, start, commit.lsn, 10).await;
    assert_eq!(count(&read.expect("no error")), 0, "capture has not read it");
    rig.database.capture();
    let read = rig.read(&fresh, start, commit.lsn, 10).await;
    assert_eq!(count(&read.expect("read")), 1);
}

#[tokio::test]
async fn win_09_idle_entries_carry_a_quiet_table_past_its_retention() {
    let (rig, instance) = Rig::captured();
    rig.database.set_capture(CaptureSchedule::DEFAULT);
    let mut saved = rig.high().await.expect("the enable");
    for _ in 0..240 {
        rig.advance(3600);
        rig.database.cleanup();
        let low = match rig.low(&instance).await {
            Bound::At(position) => Lsn::try_from(position).expect("an lsn"),
            other => panic!("no low position: {other:?}"),
        };
        assert!(low <= saved.increment(), "an hour's progress is not lost");
        saved = rig.high().await.expect("entries");
    }
    let commit = rig.insert(1, 1);
    rig.advance(5);
    let read = rig.read(&instance, saved.increment(), commit.lsn, 10).await;
    assert_eq!(count(&read.expect("read")), 1);
}

#[tokio::test]
async fn win_09_a_position_that_stays_behind_is_passed_by_cleanup() {
    let (rig, instance) = Rig::captured();
    rig.database.set_capture(CaptureSchedule::DEFAULT);
    let saved = rig.high().await.expect("the enable");
    rig.advance(5 * 24 * 3600);
    rig.database.cleanup();
    let Bound::At(low) = rig.low(&instance).await else {
        panic!("no low position");
    };
    assert!(low > Position::from(saved.increment()));
}

#[tokio::test]
async fn win_10_a_moment_before_the_first_entry_has_no_position_and_a_later_one_the_last() {
    let (rig, _) = Rig::captured();
    let start = rig.database.clock().time();
    rig.advance(60);
    rig.insert(1, 1);
    let tied = rig.insert(2, 2);
    let find = |micros: i64| {
        let source = rig.source.clone();
        async move {
            let found = source.position_at(start.plus_micros(micros)).await;
            found.expect("answers").map(|position| Lsn::try_from(position).expect("an lsn"))
        }
    };
    assert_eq!(find(-1).await, None);
    assert_eq!(find(62_000_000).await, Some(tied.lsn), "the last among ties");
    assert_eq!(find(86_400_000_000).await, Some(tied.lsn));
}

#[tokio::test]
async fn ret_07_a_stopped_job_differs_from_a_quiet_database_by_its_idle_entries() {
    let (rig, _) = Rig::captured();
    rig.database.set_capture(CaptureSchedule::DEFAULT);
    let age = |rig: &Rig| {
        let last = *rig.database.mapping().last().expect("entries");
        rig.database.clock().time().micros_since(last.moment)
    };
    rig.advance(1800);
    assert!(age(&rig) <= 305_000_000, "quiet");
    rig.database.stop_capture();
    rig.advance(1800);
    assert!(age(&rig) >= 1_800_000_000, "stopped");
}

#[tokio::test]
async fn ord_01_a_row_updated_500_times_in_one_transaction_has_one_last_image() {
    let (rig, instance) = Rig::captured();
    rig.transact(|tx| {
        tx.insert(&rig.table, row(1, 0))?;
        (1..=500).try_for_each(|v: i64| {
            tx.update(&rig.table, &[1.into()], &[("v", v.into())]).map(|_| ())
        })
    });
    let mut rows = rig.database.change_rows(&instance).expect("known");
    assert_eq!(rows.len(), 1001);
    rows.reverse();
    let last = rows
        .iter()
        .max_by_key(|row| (row.commit, row.command, row.seqval, row.operation))
        .expect("rows");
    assert_eq!(last.values[1].as_int(), Some(500));
}

#[tokio::test]
async fn ord_02_a_delete_and_insert_of_one_key_end_with_the_insert_in_change_order() {
    let (rig, instance) = Rig::captured();
    rig.transact(|tx| tx.insert_many(&rig.table, vec![row(4, 4), row(5, 5)]).map(|_| ()));
    rig.transact(|tx| {
        let shift = |edit: &mut cdc_fake::RowEdit<'_>| edit.set("id", edit.view().int("id") + 1);
        tx.update_where(&rig.table, |_| true, shift).map(|_| ())
    });
    let rows = rig.database.change_rows(&instance).expect("known");
    let last = |key: fn(&cdc_fake::ChangeRow) -> (Lsn, i32, Lsn)| {
        rows.iter()
            .filter(|row| row.values[0].as_int() == Some(5))
            .max_by_key(|row| key(row))
            .expect("rows")
            .operation
    };
    assert_eq!(last(|row| (row.commit, row.command, row.seqval)), Operation::Insert);
    // By the sequence value alone the row would be gone.
    assert_eq!(last(|row| (row.commit, 0, row.seqval)), Operation::Delete);
}

#[tokio::test]
async fn ord_05_a_key_changed_twice_in_one_transaction_leaves_the_last_key_only() {
    let (rig, instance) = Rig::captured();
    rig.insert(10, 1);
    rig.transact(|tx| {
        tx.update(&rig.table, &[10.into()], &[("id", 20.into())])?;
        tx.update(&rig.table, &[20.into()], &[("id", 30.into())])?;
        Ok(())
    });
    assert_eq!(rig.operations(&instance), [2, 1, 2, 1, 2]);
    let rows = rig.database.rows(&rig.table).expect("known");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0][0].as_int(), Some(30));
}

#[tokio::test]
async fn ord_08_pairs_of_one_key_end_as_live_rows() {
    let (rig, instance) = Rig::captured();
    rig.transact(|tx| {
        tx.insert_many(&rig.table, vec![row(1, 1), row(2, 2), row(3, 3)]).map(|_| ())
    });
    rig.transact(|tx| {
        tx.merge_where(&rig.table, |_| true, |edit| edit.set("v", edit.view().int("v") + 10))
            .map(|_| ())
    });
    let rows = rig.database.change_rows(&instance).expect("known");
    assert_eq!(rows.len(), 3 + 6);
    for key in 1..=3 {
        let last = rows
            .iter()
            .filter(|row| row.values[0].as_int() == Some(key))
            .max_by_key(|row| (row.commit, row.command, row.seqval, row.operation))
            .expect("rows");
        assert_eq!(last.operation, Operation::Insert);
        assert_eq!(last.values[1].as_int(), Some(key + 10));
    }
}
