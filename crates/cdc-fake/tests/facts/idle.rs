//! Idle: what moves the high position when nothing is captured.

use std::time::Duration;

use cdc_fake::CaptureSchedule;

use crate::rig::Rig;

fn polling(rig: &Rig) {
    rig.database.set_capture(CaptureSchedule::DEFAULT);
}

#[tokio::test]
async fn without_writes_an_entry_without_changes_comes_about_every_305_seconds() {
    let (rig, instance) = Rig::captured();
    polling(&rig);
    rig.advance(3600);
    let mapping = rig.database.mapping();
    let idle: Vec<_> = mapping.iter().filter(|entry| entry.idle).collect();
    assert!(idle.len() >= 11, "{}", idle.len());
    for pair in idle.windows(2) {
        assert_eq!(pair[1].moment.micros_since(pair[0].moment), 305_000_000);
    }
    assert_eq!(rig.operations(&instance), [0; 0]);
    assert_eq!(rig.high().await, mapping.last().map(|entry| entry.lsn));
}

#[tokio::test]
async fn the_high_positions_time_is_never_much_more_than_300_seconds_old() {
    let (rig, _) = Rig::captured();
    polling(&rig);
    let mut oldest = 0;
    for _ in 0..2000 {
        rig.advance(1);
        let last = *rig.database.mapping().last().expect("the enable");
        oldest = oldest.max(rig.database.clock().time().micros_since(last.moment));
    }
    assert!((300_000_000..=305_000_000).contains(&oldest), "{oldest}");
}

#[tokio::test]
async fn writes_to_a_table_that_is_not_captured_do_not_help() {
    let (rig, _) = Rig::captured();
    polling(&rig);
    let definition = cdc_fake::TableDefinition::new("other")
        .column("id", cdc_core::SqlType::Int)
        .primary_key(&["id"]);
    rig.database.create_table(definition).expect("new");
    let other = crate::rig::table("other");
    let high = rig.high().await;
    for id in 0..29 {
        rig.advance(10);
        rig.transact(|tx| tx.insert(&other, vec![id.into()]));
    }
    assert_eq!(rig.high().await, high);
}

#[tokio::test]
async fn a_captured_update_every_ten_seconds_keeps_the_lag_under_twenty() {
    let (rig, _) = Rig::captured();
    polling(&rig);
    rig.insert(1, 0);
    rig.advance(10);
    for v in 1..100 {
        rig.update(1, v);
        for _ in 0..10 {
            rig.advance(1);
            let last = *rig.database.mapping().last().expect("entries");
            let lag = rig.database.clock().time().micros_since(last.moment);
            assert!(lag <= 20_000_000, "{lag}");
        }
    }
    assert!(rig.database.mapping().iter().all(|entry| !entry.idle));
}

#[tokio::test]
async fn a_stopped_capture_job_moves_nothing_and_looks_like_no_news() {
    let (rig, instance) = Rig::captured();
    polling(&rig);
    rig.advance(60);
    rig.database.stop_capture();
    let high = rig.high().await;
    rig.insert(1, 1);
    rig.advance(1800);
    assert_eq!(rig.high().await, high);
    assert_eq!(rig.operations(&instance), [0; 0]);
    rig.database.start_capture();
    rig.advance(5);
    assert!(rig.high().await > high);
    assert_eq!(rig.operations(&instance), [2]);
}

#[tokio::test]
async fn capture_is_behind_by_its_lag() {
    let (rig, instance) = Rig::captured();
    rig.database.set_capture(CaptureSchedule::Every {
        interval: Duration::from_secs(5),
        lag: Duration::from_secs(60),
    });
    rig.insert(1, 1);
    rig.advance(55);
    assert_eq!(rig.operations(&instance), [0; 0]);
    rig.advance(5);
    assert_eq!(rig.operations(&instance), [2]);
}

#[tokio::test]
async fn an_idle_entry_never_overtakes_a_commit_that_capture_has_not_read() {
    let (rig, _) = Rig::captured();
    rig.database.set_capture(CaptureSchedule::Every {
        interval: Duration::from_secs(5),
        lag: Duration::from_secs(900),
    });
    let commit = rig.insert(1, 1);
    rig.advance(899);
    assert!(rig.high().await < Some(commit.lsn));
    rig.advance(6);
    assert_eq!(rig.high().await, Some(commit.lsn));
}

#[tokio::test]
async fn a_job_that_follows_commits_reads_what_piled_up_while_it_was_stopped() {
    let (rig, instance) = Rig::captured();
    rig.database.stop_capture();
    rig.insert(1, 0);
    assert_eq!(rig.database.pending_records(), 1);
    rig.database.start_capture();
    assert_eq!(rig.operations(&instance), [2]);
}
