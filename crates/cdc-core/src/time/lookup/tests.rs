//! What the look-up of a moment promises, over every change of every zone.

use proptest::prelude::*;

use super::{
    super::{
        CommitClock,
        history::{
            Rounding, all_changes, any_change, invented, invented_drop, invented_offset, local,
            reading, utc, zone,
        },
        transition::SECOND,
    },
    *,
};

/// The second that the argument is cut by, with the tick below it.
const CUT: i64 = SECOND + 3_334;

/// A row of the mapping: when its commit truly was, and what the clock showed. Rows stand in LSN
/// order.
#[derive(Clone, Copy, Debug)]
struct Row {
    moment: i64,
    reading: ServerTime,
}

/// Both ways in which the server may read "largest less than or equal".
fn picks(rows: &[Row], argument: ServerTime) -> [Option<usize>; 2] {
    let mut greatest_time: Option<usize> = None;
    let mut greatest_lsn = None;
    for (i, row) in rows.iter().enumerate() {
        if row.reading <= argument {
            greatest_lsn = Some(i);
            if greatest_time.is_none_or(|best| rows[best].reading <= row.reading) {
                greatest_time = Some(i);
            }
        }
    }
    [greatest_time, greatest_lsn]
}

/// No pick is after the moment; what it passes over is near the moment or near the pick.
fn check(rows: &[Row], moment: i64, argument: ServerTime, repeated: i64) -> Result<(), String> {
    for (way, pick) in picks(rows, argument).into_iter().enumerate() {
        let picked = pick.map_or(i64::MIN / 2, |i| rows[i].moment);
        if picked > moment {
            return Err(format!("way {way} picks {picked} after {moment}, argument {argument}"));
        }
        for missed in &rows[pick.map_or(0, |i| i + 1)..] {
            let at = missed.moment;
            let near_moment = at >= moment - repeated - CUT;
            let near_pick = way == 0 && at <= picked + repeated + CUT;
            if at <= moment && !near_moment && !near_pick {
                return Err(format!("way {way} misses {at} for {moment}, argument {argument}"));
            }
        }
    }
    Ok(())
}

#[test]
fn around_every_change_no_commit_after_the_moment_is_found_and_few_are_missed() {
    for (zone, change) in all_changes() {
        let rows: Vec<Row> = change
            .edges()
            .into_iter()
            .map(|moment| Row { moment, reading: reading(zone, moment, Rounding::Nearest) })
            .collect();
        for moment in change.around_edges(&[-1, 0, 1_700]) {
            let argument = lookup_argument(zone, Timestamp::from_micros(moment));
            assert_eq!(argument.as_ticks() % ServerTime::TICKS_A_SECOND, 0);
            if let Err(why) = check(&rows, moment, argument, change.repeated()) {
                panic!("{zone} {change:?}: {why}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_commit_after_the_moment_is_found_and_few_are_missed(
        (zone, change) in any_change(),
        offsets in prop::collection::vec(-3.0f64..3.0, 1..40),
        asked in -3.0f64..3.0,
        rounding in prop::sample::select(&Rounding::BOTH),
    ) {
        let mut moments: Vec<i64> =
            offsets.into_iter().map(|lengths| change.near(lengths)).collect();
        moments.sort_unstable();
        let rows: Vec<Row> = moments
            .into_iter()
            .map(|moment| Row { moment, reading: reading(zone, moment, rounding) })
            .collect();
        let argument = lookup_argument(zone, Timestamp::from_micros(change.near(asked)));
        let checked = check(&rows, change.near(asked), argument, change.repeated());
        prop_assert_eq!(checked, Ok(()));
    }

    #[test]
    fn changes_that_overlap_in_any_way_keep_the_rule(
        list in invented(),
        seconds in prop::collection::vec(-300_000i64..600_000, 1..60),
        micros in prop::collection::vec(0i64..1_000_000, 60),
        asked in (-300_000i64..600_000, 0i64..1_000_000),
        rounding in prop::sample::select(&Rounding::BOTH),
    ) {
        let mut moments: Vec<i64> = seconds
            .iter()
            .zip(&micros)
            .map(|(second, micro)| second * SECOND + micro)
            .collect();
        moments.extend(list.iter().flat_map(|s| [s.from - 1, s.from, s.from + 1]));
        moments.sort_unstable();
        let rows: Vec<Row> = moments
            .into_iter()
            .map(|moment| Row {
                moment,
                reading: rounding.reading(moment + invented_offset(&list, moment)),
            })
            .collect();
        let moment = asked.0 * SECOND + asked.1;
        let stretches = Stretches::listed(list.clone());
        let checked = check(&rows, moment, argument(&stretches, moment), invented_drop(&list));
        prop_assert_eq!(checked, Ok(()));
    }

}

proptest! {
    #[test]
    fn rows_from_the_lookback_on_give_what_all_rows_give(
        (zone, change) in any_change(),
        offsets in prop::collection::vec(-3.0f64..3.0, 1..40),
        rounding in prop::sample::select(&Rounding::BOTH),
    ) {
        let mut moments: Vec<i64> = offsets
            .into_iter()
            .map(|lengths| change.near(lengths))
            .collect();
        moments.sort_unstable();
        let rows: Vec<ServerTime> =
            moments.iter().map(|moment| reading(zone, *moment, rounding)).collect();
        let mut all = CommitClock::new(zone);
        for (i, row) in rows.iter().enumerate() {
            let expected = all.next(*row);
            let from = lookback(zone, *row).unwrap_or(*row);
            let mut some = CommitClock::new(zone);
            let read = rows[..=i].iter().filter(|row| **row >= from);
            prop_assert_eq!(read.map(|row| some.next(*row)).last(), Some(expected));
        }
    }

    #[test]
    fn a_lookback_cuts_the_history_of_any_clock_cleanly(
        list in invented(),
        second in -300_000i64..600_000,
        others in prop::collection::vec(-400_000i64..700_000, 60),
    ) {
        let show = |at: i64| at + invented_offset(&list, at);
        let at = second * SECOND;
        let stretches = Stretches::listed(list.clone());
        let candidates: Vec<i64> = stretches.candidates(show(at)).collect();
        prop_assert!(candidates.contains(&at));
        match clean_cut(&stretches, show(at)) {
            None => prop_assert_eq!(candidates.len(), 1),
            Some(cut) => {
                prop_assert!(candidates.len() > 1);
                prop_assert!(cut <= show(at));
                let edges = list.iter().flat_map(|s| [s.from - 1, s.from]);
                let others: Vec<i64> =
                    others.iter().map(|second| second * SECOND).chain(edges).collect();
                let latest_below = others.iter().filter(|at| show(**at) < cut).max();
                let first_above = others.iter().filter(|at| show(**at) >= cut).min();
                if let (Some(below), Some(above)) = (latest_below, first_above) {
                    prop_assert!(below < above);
                }
            }
        }
    }
}

#[track_caller]
fn argument_is(zone: ServerZone, moment: &str, expected: &str) {
    assert_eq!(lookup_argument(zone, utc(moment)), local(expected), "{moment}");
}

#[test]
fn new_york_s_repeated_hour_is_asked_for_ahead_of_it() {
    let zone = zone("America/New_York");
    argument_is(zone, "2026-11-01T04:59:59.5Z", "2026-11-01T00:59:59");
    argument_is(zone, "2026-11-01T05:00:00.5Z", "2026-11-01T00:59:59");
    argument_is(zone, "2026-11-01T05:30:00Z", "2026-11-01T00:59:59");
    argument_is(zone, "2026-11-01T06:30:00.5Z", "2026-11-01T01:30:00");
    argument_is(zone, "2026-11-01T07:00:00.5Z", "2026-11-01T02:00:00");
    // The spring gap of 2026-03-08: an argument that no clock shows, and the first one behind it.
    argument_is(zone, "2026-03-08T06:59:59.5Z", "2026-03-08T01:59:59");
    argument_is(zone, "2026-03-08T07:00:00Z", "2026-03-08T02:59:59");
    argument_is(zone, "2026-03-08T07:00:00.5Z", "2026-03-08T03:00:00");
}

#[test]
fn lord_howe_repeats_half_an_hour() {
    let zone = zone("Australia/Lord_Howe");
    argument_is(zone, "2026-04-04T14:29:59.5Z", "2026-04-05T01:29:59");
    argument_is(zone, "2026-04-04T14:45:00.5Z", "2026-04-05T01:29:59");
    argument_is(zone, "2026-04-04T15:15:00.5Z", "2026-04-05T01:45:00");
}

#[test]
fn apia_skips_a_day_and_repeats_nothing() {
    let zone = zone("Pacific/Apia");
    argument_is(zone, "2011-12-30T09:59:59.5Z", "2011-12-29T23:59:59");
    argument_is(zone, "2011-12-30T10:00:00Z", "2011-12-30T23:59:59");
    argument_is(zone, "2011-12-30T10:00:00.5Z", "2011-12-31T00:00:00");
    assert_eq!(lookback(zone, local("2011-12-30T12:00:00")), None);
}

#[test]
fn a_whole_second_is_cut_below_itself_for_a_commit_may_share_its_tick() {
    for zone in [ServerZone::UTC, zone("UTC+00:00")] {
        argument_is(zone, "2026-01-01T12:00:00Z", "2026-01-01T11:59:59");
        argument_is(zone, "2026-01-01T12:00:00.003333Z", "2026-01-01T11:59:59");
        argument_is(zone, "2026-01-01T12:00:00.003334Z", "2026-01-01T12:00:00");
        argument_is(zone, "2026-01-01T12:00:00.999999Z", "2026-01-01T12:00:00");
        assert_eq!(lookback(zone, local("2026-01-01T12:00:00")), None);
    }
    argument_is(zone("UTC-03:00"), "2026-01-01T12:00:00.5Z", "2026-01-01T09:00:00");
}

#[test]
fn only_a_repeated_reading_looks_back_and_then_to_the_start_of_the_repeat() {
    let zone = zone("Europe/Berlin");
    for (reading, from) in [
        ("2025-10-26T01:59:59", None),
        ("2025-10-26T02:00:00", Some("2025-10-26T02:00:00")),
        ("2025-10-26T02:10:00", Some("2025-10-26T02:00:00")),
        ("2025-10-26T02:59:59", Some("2025-10-26T02:00:00")),
        // 02:59:59.999 of the first pass is stored as 03:00:00.
        ("2025-10-26T03:00:00", Some("2025-10-26T02:00:00")),
        ("2025-10-26T03:00:00.003", None),
        ("2025-03-30T02:30:00", None),
        ("2025-07-01T12:00:00", None),
    ] {
        assert_eq!(lookback(zone, local(reading)), from.map(local), "{reading}");
    }
}

#[test]
fn the_ends_of_the_calendar_have_an_answer() {
    for zone in [ServerZone::UTC, zone("America/New_York")] {
        for micros in [i64::MIN, i64::MAX] {
            let argument = lookup_argument(zone, Timestamp::from_micros(micros));
            assert_eq!(argument.as_ticks() % ServerTime::TICKS_A_SECOND, 0);
            assert_eq!(lookback(zone, ServerTime::from_ticks(micros)), None);
        }
    }
}
