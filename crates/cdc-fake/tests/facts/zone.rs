//! Time zone: commit times are the server's own clock in ticks of 1/300 s.

use cdc_core::{Lsn, Position, ServerTime, port::PositionLog};
use cdc_fake::Zone;

use crate::rig::{Rig, at, times};

const NEW_YORK: Zone = Zone::Named(chrono_tz::America::New_York);

#[tokio::test]
async fn commit_times_are_the_servers_clock_to_the_nearest_tick() {
    let rig = Rig::in_zone(NEW_YORK, "2026-07-01T12:00:00.002Z");
    rig.enable("dbo_t");
    let entry = rig.database.mapping()[0];
    assert_eq!(entry.time.to_string(), "2026-07-01T08:00:00.003333");
    assert_eq!(entry.time.as_ticks() % ServerTime::TICKS_A_SECOND, 1);
}

#[tokio::test]
async fn in_a_fall_back_times_go_back_in_lsn_order() {
    let rig = Rig::in_zone(NEW_YORK, "2026-11-01T05:50:00Z");
    rig.enable("dbo_t");
    for id in 0..40 {
        rig.insert(id, 0);
        rig.advance(60);
    }
    let mapping = rig.database.mapping();
    assert!(mapping.windows(2).all(|pair| pair[0].lsn < pair[1].lsn));
    let back: Vec<_> = mapping.windows(2).filter(|pair| pair[1].time < pair[0].time).collect();
    assert_eq!(back.len(), 1);
    assert_eq!(back[0][1].moment, at("2026-11-01T06:00:00Z"));
}

#[tokio::test]
async fn outside_a_fall_back_times_never_go_back() {
    let rig = Rig::in_zone(NEW_YORK, "2026-03-08T06:30:00Z");
    rig.enable("dbo_t");
    for id in 0..90 {
        rig.insert(id, 0);
        rig.advance(60);
    }
    let mapping = rig.database.mapping();
    assert!(mapping.windows(2).all(|pair| pair[0].time <= pair[1].time));
}

#[tokio::test]
async fn streams_and_single_look_ups_tell_the_true_time_across_a_fall_back() {
    let rig = Rig::in_zone(NEW_YORK, "2026-11-01T04:50:00Z");
    let instance = rig.enable("dbo_t");
    let mut commits = Vec::new();
    for id in 0..200 {
        commits.push(rig.insert(id, 0));
        rig.advance(60);
    }
    let (first, last) = (commits[0].lsn, commits[199].lsn);
    let read = times(&rig.read(&instance, first, last, 7).await.expect("read"));
    for (commit, time) in commits.iter().zip(read) {
        assert_eq!(time, commit.time);
        let position = Position::from(commit.lsn);
        let single = rig.source.commit_time(position).await.expect("answers");
        assert_eq!(single, Some(commit.time));
    }
    // A read that starts inside the second pass knows it from the entries before.
    let middle = commits[100].lsn;
    let read = times(&rig.read(&instance, middle, last, 7).await.expect("read"));
    assert_eq!(read[0], commits[100].time);
}

#[tokio::test]
async fn the_commit_time_of_a_position_that_is_no_commit_is_unknown() {
    let rig = Rig::new();
    rig.enable("dbo_t");
    let commit = rig.insert(1, 1);
    let time = |lsn: Lsn| {
        let source = rig.source.clone();
        async move {
            let answer = source.commit_time(Position::from(lsn)).await;
            answer.expect("answers")
        }
    };
    assert_eq!(time(commit.lsn).await, Some(commit.time));
    assert_eq!(time(commit.lsn.increment()).await, None);
    assert_eq!(time(commit.lsn.decrement()).await, None);
}

#[tokio::test]
async fn a_moment_maps_to_the_last_commit_before_it_and_never_to_a_later_one() {
    for (zone, from) in [
        (Zone::UTC, "2026-03-01T00:00:00Z"),
        (NEW_YORK, "2026-11-01T04:30:00Z"),
        (NEW_YORK, "2026-03-08T05:30:00Z"),
    ] {
        let rig = Rig::in_zone(zone, from);
        rig.enable("dbo_t");
        let mut commits = Vec::new();
        for id in 0..180 {
            rig.advance(60);
            commits.push(rig.insert(id, 0));
        }
        for commit in &commits {
            let moment = commit.time.plus_micros(2_000_000);
            let found = rig.source.position_at(moment).await.expect("answers");
            let found = Lsn::try_from(found.expect("not before the first")).expect("an lsn");
            assert!(found <= commit.lsn);
            let missed =
                commits.iter().filter(|other| found < other.lsn && other.lsn <= commit.lsn).count();
            assert!(missed <= 60, "{missed} commits at {}", commit.time);
            if zone == Zone::UTC {
                assert_eq!(found, commit.lsn);
            }
        }
        let before = at(from).plus_micros(-1_000_000);
        assert_eq!(rig.source.position_at(before).await.expect("answers"), None);
    }
}

#[tokio::test]
async fn a_fixed_offset_is_served_too() {
    let offset = chrono::FixedOffset::west_opt(3 * 3600).expect("in range");
    let rig = Rig::in_zone(Zone::Fixed(offset), "2026-03-01T00:00:00Z");
    rig.enable("dbo_t");
    let commit = rig.insert(1, 1);
    let time = rig.source.commit_time(Position::from(commit.lsn)).await;
    assert_eq!(time.expect("answers"), Some(commit.time));
}
