//! Every mistake has its name, and those of the rules change what the rules say.

use super::*;

#[test]
fn every_mistake_is_found_by_its_name_and_an_unknown_name_tells_the_known_ones() {
    for planted in Planted::ALL {
        assert_eq!(planted.name().parse::<Planted>().expect("known"), *planted);
        assert!(!is(*planted), "{planted}: nothing is planted unless somebody does");
    }
    let error = "second-guard".parse::<Planted>().expect_err("unknown");
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.advice().contains("second-guard-skipped"), "{}", error.advice());
}

#[cfg(feature = "planted-bugs")]
#[test]
fn one_mistake_at_a_time_and_on_one_thread() {
    set(Some(Planted::CommitSplit));
    with(Some(Planted::FenceIgnored), || {
        assert!(is(Planted::FenceIgnored) && !is(Planted::CommitSplit));
    });
    assert!(is(Planted::CommitSplit));
    set(None);
    assert!(!is(Planted::FenceIgnored));
}

#[cfg(feature = "planted-bugs")]
mod rules {
    use super::*;
    use crate::{
        CaptureInstance, ClosedRange, CommitClock, InstanceName, Lsn, Mark, Position, ServerZone,
        TableName, Timestamp,
        plan::{self, Plan},
        port::Bound,
        retention,
    };

    fn at(number: u128) -> Position {
        Lsn::from_u128(number).expect("below 2^80").into()
    }

    fn range(from: u128, to: u128) -> ClosedRange {
        ClosedRange::new(at(from), at(to)).expect("not inverted")
    }

    fn instance() -> CaptureInstance {
        CaptureInstance {
            name: InstanceName::new("dbo_t"),
            table: TableName::new("dbo", "t"),
            start: at(1),
            columns: Vec::new(),
            key: Vec::new(),
        }
    }

    /// What the rule says, and what it says with the mistake.
    fn both<T>(planted: Planted, story: impl Fn() -> T) -> [T; 2] {
        [with(None, &story), with(Some(planted), &story)]
    }

    #[test]
    fn a_purge_in_a_read_goes_unseen_when_the_second_guard_is_skipped() {
        let guard =
            || retention::guard_after(&instance(), range(10, 20), Bound::At(at(11))).is_ok();
        assert_eq!(both(Planted::SecondGuardSkipped, guard), [false, true]);
    }

    #[test]
    fn an_unknown_low_position_passes_when_it_means_nothing_purged() {
        let guards = || {
            let (instance, range) = (instance(), range(10, 20));
            let high = Bound::At(at(20));
            retention::guard_before(&instance, range, Bound::Zero, high).is_ok()
                && retention::guard_after(&instance, range, Bound::Zero).is_ok()
        };
        assert_eq!(both(Planted::ZeroLowIsNothingPurged, guards), [false, true]);
    }

    #[test]
    fn a_range_begins_elsewhere_with_a_wrong_low_bound() {
        let range = || ClosedRange::after(at(10), at(20)).map(|range| range.from());
        assert_eq!(both(Planted::LowBoundPlusTwo, range), [Some(at(11)), Some(at(12))]);
        assert_eq!(both(Planted::LowBoundInclusive, range), [Some(at(11)), Some(at(10))]);
    }

    #[test]
    fn a_restore_is_taken_for_silence_when_it_is_not_noticed() {
        let ahead =
            || matches!(plan::plan(at(9), Bound::At(at(5)), None, at(1)), Ok(Plan::UpToDate));
        assert_eq!(both(Planted::RestoreNotNoticed, ahead), [false, true]);
        let mark = Mark {
            sequence: 1,
            end: at(9),
            commit_time: Some(Timestamp::from_micros(7)),
            entry_time: Some(Timestamp::from_micros(7)),
            generation: 0,
        };
        let other = || plan::check_lineage(&mark, at(1), None).is_ok();
        assert_eq!(both(Planted::RestoreNotNoticed, other), [false, true]);
    }

    /// What a clock says of readings of a server, in seconds after the true moments. The server's
    /// zone need not be the one that is configured.
    fn late(server: &str, configured: &str, moments: &[&str]) -> Vec<i64> {
        let zone = |name| ServerZone::parse("zone", name).expect("known");
        let mut clock = CommitClock::new(zone(configured));
        let ahead = moments.iter().map(|text| {
            let moment: chrono::DateTime<chrono::Utc> = text.parse().expect("a moment");
            let moment = Timestamp::from(moment);
            let read = clock.next(zone(server).reading(moment).expect("in range"));
            read.micros_since(moment) / 1_000_000
        });
        ahead.collect()
    }

    #[test]
    fn the_first_pass_of_a_repeated_hour_is_an_hour_ahead_when_it_is_read_late() {
        let york = "America/New_York";
        let passes = ["2026-11-01T04:30:00Z", "2026-11-01T05:30:00Z", "2026-11-01T06:10:00Z"];
        let story = || late(york, york, &passes);
        assert_eq!(
            both(Planted::RepeatedHourReadLate, story),
            [vec![0, 0, 0], vec![0, 3600, 1200]]
        );
    }

    #[test]
    fn a_reading_in_a_spring_gap_is_an_hour_ahead_when_it_is_rounded_forward() {
        let story = || {
            let moments = ["2021-03-27T23:30:00Z", "2021-03-28T00:30:00Z", "2021-03-28T02:30:00Z"];
            late("Europe/Chisinau", "Europe/Athens", &moments)
        };
        assert_eq!(
            both(Planted::SpringGapRoundedForward, story),
            [vec![0, 0, 0], vec![0, 3600, 0]]
        );
    }
}
