//! What the clock of commits promises, over every change of every zone.

use proptest::prelude::*;

use super::{
    super::{
        history::{
            Rounding, all_changes, any_change, invented, invented_offset, local, reading, utc, zone,
        },
        transition::SECOND,
    },
    *,
};

/// How often the mapping has an idle entry.
const IDLE: i64 = 305 * SECOND;

fn convert(clock: &mut CommitClock, readings: &[ServerTime]) -> Vec<i64> {
    readings.iter().map(|reading| clock.next(*reading).as_micros()).collect()
}

/// The moments that a reading can stand for, asked of the zone itself: a stretch of an offset holds
/// both of its ends.
fn possible(offset_at: impl Fn(i64) -> i64, offsets: &[i64], reading: ServerTime) -> Vec<i64> {
    let mut moments: Vec<i64> = offsets
        .iter()
        .map(|offset| (offset, reading.local_micros() - offset))
        .filter(|(offset, at)| offset_at(*at) == **offset || offset_at(*at - 1) == **offset)
        .map(|(_, at)| at)
        .collect();
    moments.sort_unstable();
    moments.dedup();
    moments
}

/// What rows in LSN order determine: for each row, its moment in every history that never goes
/// back, by trying all of them; `None` where histories differ.
fn determined(possible: &[Vec<i64>]) -> Vec<Option<i64>> {
    let mut histories: Vec<Vec<i64>> = vec![vec![]];
    for moments in possible {
        histories = histories
            .iter()
            .flat_map(|history| {
                moments
                    .iter()
                    .filter(|at| history.last().is_none_or(|last| last <= at))
                    .map(|at| [history.as_slice(), &[*at]].concat())
            })
            .collect();
    }
    (0..possible.len())
        .map(|i| {
            let first = histories[0][i];
            histories.iter().all(|history| history[i] == first).then_some(first)
        })
        .collect()
}

fn check(
    results: &[i64],
    truth: &[i64],
    possible: &[Vec<i64>],
    rounding: Rounding,
) -> Result<(), String> {
    if !results.is_sorted() {
        return Err(format!("goes back: {results:?}"));
    }
    for (result, truth) in results.iter().zip(truth) {
        if *result > *truth + rounding.ahead() {
            return Err(format!("{result} is after the truth {truth}"));
        }
    }
    let ticked = truth.iter().map(|truth| rounding.ticked(*truth));
    if results.iter().copied().eq(ticked.clone()) {
        return Ok(());
    }
    for ((result, truth), known) in results.iter().zip(ticked).zip(determined(possible)) {
        if known.is_some() && *result != truth {
            return Err(format!("{result} is not the determined {truth}"));
        }
    }
    Ok(())
}

#[test]
fn around_every_change_idle_entries_determine_every_commit() {
    for (zone, change) in all_changes() {
        let count = change.length() / IDLE + 2;
        let mut clock = CommitClock::new(zone);
        for at in (-count..=count).map(|entry| change.at + entry * IDLE) {
            let result = clock.next(reading(zone, at, Rounding::Nearest)).as_micros();
            assert_eq!(result, Rounding::Nearest.ticked(at), "{zone} {change:?} {at}");
        }
        assert!(clock.take_doubts().is_none(), "{zone} {change:?}");
    }
}

#[test]
fn around_every_repeat_any_two_commits_give_what_they_determine() {
    for (zone, change) in all_changes().filter(|(_, change)| change.repeated() > 0) {
        let warm = {
            let mut clock = CommitClock::new(zone).with_slack(0);
            clock.next(reading(zone, change.at - DAY, Rounding::Nearest));
            CommitClock { last: None, ..clock }
        };
        let offsets = [change.before, change.after];
        let rows: Vec<(i64, ServerTime, Vec<i64>)> = change
            .edges()
            .into_iter()
            .map(|at| {
                let reading = reading(zone, at, Rounding::Nearest);
                let possible = possible(|at| zone.offset_micros(at), &offsets, reading);
                (at, reading, possible)
            })
            .collect();
        // Every eighth, of five edges with seven moments each: another kind comes first each time.
        for (i, first) in rows.iter().enumerate().step_by(8) {
            for second in rows.iter().skip(i) {
                let results = convert(&mut warm.clone(), &[first.1, second.1]);
                let truth = [first.0, second.0];
                let possible = [first.2.clone(), second.2.clone()];
                let checked = check(&results, &truth, &possible, Rounding::Nearest);
                assert_eq!(checked, Ok(()), "{zone} {change:?}");
            }
        }
    }
}

#[test]
fn around_every_gap_every_commit_is_converted_to_its_tick() {
    for (zone, change) in all_changes().filter(|(_, change)| change.repeated() == 0) {
        let mut clock = CommitClock::new(zone);
        for at in change.edges() {
            let result = clock.next(reading(zone, at, Rounding::Nearest)).as_micros();
            assert_eq!(result, Rounding::Nearest.ticked(at), "{zone} {change:?}");
        }
        assert!(clock.take_doubts().is_none(), "{zone} {change:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn never_after_the_truth_never_back_and_true_where_determined(
        (zone, change) in any_change(),
        offsets in prop::collection::vec(-2.0f64..2.0, 1..8),
        rounding in prop::sample::select(&Rounding::BOTH),
    ) {
        let mut truth: Vec<i64> = offsets
            .into_iter()
            .map(|lengths| change.near(lengths))
            .collect();
        truth.sort_unstable();
        let readings: Vec<ServerTime> =
            truth.iter().map(|at| reading(zone, *at, rounding)).collect();
        let offsets = [change.before, change.after];
        let possible: Vec<Vec<i64>> = readings
            .iter()
            .map(|reading| possible(|at| zone.offset_micros(at), &offsets, *reading))
            .collect();
        let mut strict = CommitClock::new(zone).with_slack(0);
        let results = convert(&mut strict, &readings);
        prop_assert_eq!(check(&results, &truth, &possible, rounding), Ok(()));
        prop_assert!(strict.take_doubts().is_none());

        // With slack it is never later, and still never back.
        let slack = convert(&mut CommitClock::new(zone), &readings);
        prop_assert!(slack.is_sorted());
        prop_assert!(slack.iter().zip(&results).all(|(slack, strict)| slack <= strict));
    }

    #[test]
    fn changes_that_overlap_in_any_way_keep_the_rule(
        list in invented(),
        seconds in prop::collection::vec(-300_000i64..600_000, 1..6),
        rounding in prop::sample::select(&Rounding::BOTH),
        part in 0i64..1_000_000,
    ) {
        let offset_at = |at: i64| invented_offset(&list, at);
        let mut truth: Vec<i64> = seconds.iter().map(|second| second * SECOND + part).collect();
        truth.sort_unstable();
        let readings: Vec<ServerTime> =
            truth.iter().map(|at| rounding.reading(at + offset_at(*at))).collect();
        let offsets: Vec<i64> = list.iter().map(|stretch| stretch.offset).collect();
        let possible: Vec<Vec<i64>> =
            readings.iter().map(|reading| possible(offset_at, &offsets, *reading)).collect();
        let mut clock = CommitClock {
            around: Some(Stretches::listed(list.clone())),
            ..CommitClock::new(ServerZone::UTC).with_slack(0)
        };
        let results = convert(&mut clock, &readings);
        prop_assert_eq!(check(&results, &truth, &possible, rounding), Ok(()));
    }

}

proptest! {
    #[test]
    fn commits_out_of_order_within_the_slack_are_never_after_the_latest_so_far(
        (zone, change) in any_change(),
        steps in prop::collection::vec((0i64..1_200, -60_000_000i64..=0), 1..60),
    ) {
        let mut now = change.at - change.length() - 600 * SECOND;
        let mut latest = i64::MIN;
        let mut clock = CommitClock::new(zone);
        let mut before = i64::MIN;
        for (step, out_of_order) in steps {
            now += step * SECOND;
            let at = Rounding::Nearest.ticked(now + out_of_order).max(latest.saturating_sub(60 * SECOND));
            latest = latest.max(at);
            let result = clock.next(reading(zone, at, Rounding::Nearest)).as_micros();
            prop_assert!(before <= result && result <= latest + 1);
            before = result;
        }
    }

    #[test]
    fn a_clock_resumed_from_any_result_goes_on_alike(
        (zone, change) in any_change(),
        offsets in prop::collection::vec(-2.0f64..2.0, 2..30),
        at in any::<prop::sample::Index>(),
    ) {
        let mut truth: Vec<i64> = offsets
            .into_iter()
            .map(|lengths| change.near(lengths))
            .collect();
        truth.sort_unstable();
        let readings: Vec<ServerTime> =
            truth.iter().map(|at| reading(zone, *at, Rounding::Nearest)).collect();
        let whole = convert(&mut CommitClock::new(zone), &readings);
        let split = at.index(readings.len() - 1);
        let last = Timestamp::from_micros(whole[split]);
        let rest = convert(&mut CommitClock::resume(zone, last), &readings[split + 1..]);
        prop_assert_eq!(&rest, &whole[split + 1..]);
    }

    #[test]
    fn no_order_of_readings_moves_the_clock_back(
        zone in prop::sample::select(vec!["Europe/Dublin", "Pacific/Apia", "UTC-03:00", "UTC"]),
        ticks in prop::collection::vec(any::<i64>(), 1..5),
        days in prop::collection::vec(0i64..60_000, 1..20),
    ) {
        let days = days.iter().map(|day| ServerTime::from_ticks(day * 86_400 * 300));
        let readings: Vec<ServerTime> =
            ticks.into_iter().map(ServerTime::from_ticks).chain(days).collect();
        let results = convert(&mut CommitClock::new(super::tests::zone(zone)), &readings);
        prop_assert!(results.is_sorted());
    }
}

/// Converts readings of a zone in LSN order and compares with UTC.
#[track_caller]
fn times(name: &str, rows: &[(&str, &str)]) {
    let mut clock = CommitClock::new(zone(name));
    for (shown, expected) in rows {
        assert_eq!(clock.next(local(shown)), utc(expected), "{shown}");
    }
    assert!(clock.take_doubts().is_none());
}

#[test]
fn new_york_repeats_an_hour_and_skips_one() {
    times(
        "America/New_York",
        &[
            ("2026-03-08T01:59:00", "2026-03-08T06:59:00Z"),
            ("2026-03-08T03:01:00", "2026-03-08T07:01:00Z"),
            ("2026-11-01T00:59:00", "2026-11-01T04:59:00Z"),
            ("2026-11-01T01:30:00", "2026-11-01T05:30:00Z"),
            ("2026-11-01T01:59:59", "2026-11-01T05:59:59Z"),
            ("2026-11-01T01:00:00", "2026-11-01T06:00:00Z"),
            ("2026-11-01T01:30:00", "2026-11-01T06:30:00Z"),
            ("2026-11-01T02:00:00", "2026-11-01T07:00:00Z"),
        ],
    );
}

#[test]
fn a_windows_zone_keeps_the_rules_of_its_iana_zone() {
    times(
        "Eastern Standard Time",
        &[
            ("2026-11-01T01:50:00", "2026-11-01T05:50:00Z"),
            ("2026-11-01T01:10:00", "2026-11-01T06:10:00Z"),
        ],
    );
}

#[test]
fn lord_howe_repeats_half_an_hour() {
    times(
        "Australia/Lord_Howe",
        &[
            ("2026-04-05T01:29:00", "2026-04-04T14:29:00Z"),
            ("2026-04-05T01:45:00", "2026-04-04T14:45:00Z"),
            ("2026-04-05T01:31:00", "2026-04-04T15:01:00Z"),
            ("2026-04-05T02:00:01", "2026-04-04T15:30:01Z"),
        ],
    );
}

#[test]
fn sao_paulo_repeats_the_hour_before_midnight_until_summer_time_is_abolished() {
    times(
        "America/Sao_Paulo",
        &[
            ("2018-02-17T22:59:00", "2018-02-18T00:59:00Z"),
            ("2018-02-17T23:50:00", "2018-02-18T01:50:00Z"),
            ("2018-02-17T23:10:00", "2018-02-18T02:10:00Z"),
            ("2018-02-18T00:01:00", "2018-02-18T03:01:00Z"),
            ("2018-11-03T23:59:00", "2018-11-04T02:59:00Z"),
            ("2018-11-04T01:01:00", "2018-11-04T03:01:00Z"),
            ("2019-02-16T23:59:00", "2019-02-17T01:59:00Z"),
            ("2019-02-16T23:01:00", "2019-02-17T02:01:00Z"),
            // Neither the spring of 2019 nor the following autumn change anything.
            ("2019-11-03T00:30:00", "2019-11-03T03:30:00Z"),
            ("2020-02-15T23:30:00", "2020-02-16T02:30:00Z"),
        ],
    );
}

#[test]
fn dublin_s_winter_time_is_the_exception_and_its_fall_back_the_usual_one() {
    times(
        "Europe/Dublin",
        &[
            ("2026-03-29T00:59:00", "2026-03-29T00:59:00Z"),
            ("2026-03-29T02:01:00", "2026-03-29T01:01:00Z"),
            ("2026-10-25T01:50:00", "2026-10-25T00:50:00Z"),
            ("2026-10-25T01:10:00", "2026-10-25T01:10:00Z"),
            ("2026-10-25T02:01:00", "2026-10-25T02:01:00Z"),
        ],
    );
}

#[test]
fn casablanca_goes_back_for_ramadan_and_forward_after_it() {
    times(
        "Africa/Casablanca",
        &[
            ("2025-02-23T02:50:00", "2025-02-23T01:50:00Z"),
            ("2025-02-23T02:10:00", "2025-02-23T02:10:00Z"),
            ("2025-04-06T01:59:00", "2025-04-06T01:59:00Z"),
            ("2025-04-06T03:01:00", "2025-04-06T02:01:00Z"),
        ],
    );
}

#[test]
fn apia_has_no_thirtieth_of_december() {
    times(
        "Pacific/Apia",
        &[
            ("2011-12-29T23:59:00", "2011-12-30T09:59:00Z"),
            ("2011-12-31T00:01:00", "2011-12-30T10:01:00Z"),
        ],
    );
}

#[test]
fn a_fixed_offset_never_changes() {
    times(
        "UTC-03:00",
        &[
            ("2018-02-17T23:50:00", "2018-02-18T02:50:00Z"),
            ("2018-11-04T00:30:00", "2018-11-04T03:30:00Z"),
        ],
    );
    times("UTC", &[("2026-11-01T01:30:00", "2026-11-01T01:30:00Z")]);
}

#[test]
fn los_angeles_is_converted_within_the_tick() {
    let mut clock = CommitClock::new(zone("America/Los_Angeles"));
    let result = clock.next(local("2021-04-28T16:26:36.387"));
    assert_eq!(result, utc("2021-04-28T23:26:36.386666Z"));
    assert_eq!(ServerZone::UTC.reading(result), Some(local("2021-04-28T23:26:36.387")));
}

#[test]
fn berlin_s_repeated_hour_follows_the_order_of_lsns() {
    times(
        "Europe/Berlin",
        &[
            ("2025-10-26T02:50:00", "2025-10-26T00:50:00Z"),
            ("2025-10-26T02:10:00", "2025-10-26T01:10:00Z"),
            ("2025-10-26T03:05:00", "2025-10-26T02:05:00Z"),
        ],
    );
}

#[test]
fn the_last_tick_of_the_first_pass_is_not_an_hour_late() {
    // 01:59:59.999 of the first pass is stored as 02:00:00, which is also the end of the second.
    let zone = zone("America/New_York");
    let mut clock = CommitClock::resume(zone, utc("2026-11-01T05:59:00Z"));
    assert_eq!(clock.next(local("2026-11-01T02:00:00")), utc("2026-11-01T06:00:00Z"));
    let mut clock = CommitClock::resume(zone, utc("2026-11-01T06:59:00Z"));
    assert_eq!(clock.next(local("2026-11-01T02:00:00")), utc("2026-11-01T07:00:00Z"));
}

#[test]
fn a_few_milliseconds_out_of_order_do_not_start_the_second_pass() {
    let mut clock = CommitClock::new(zone("America/New_York"));
    assert_eq!(clock.next(local("2026-11-01T01:30:00.100")), utc("2026-11-01T05:30:00.1Z"));
    assert_eq!(clock.next(local("2026-11-01T01:30:00.050")), utc("2026-11-01T05:30:00.1Z"));
    assert_eq!(clock.next(local("2026-11-01T01:31:00")), utc("2026-11-01T05:31:00Z"));
    assert!(clock.take_doubts().is_none());
}

#[test]
fn a_reading_in_a_gap_is_the_least_of_both_and_told() {
    let mut clock = CommitClock::new(zone("America/New_York"));
    assert_eq!(clock.next(local("2026-03-08T02:30:00")), utc("2026-03-08T06:30:00Z"));
    assert_eq!(clock.next(local("2026-03-08T01:55:00")), utc("2026-03-08T06:55:00Z"));
    assert_eq!(clock.next(local("2026-03-08T02:35:00")), utc("2026-03-08T06:55:00Z"));
    assert_eq!(clock.next(local("2026-03-08T03:01:00")), utc("2026-03-08T07:01:00Z"));
    let doubts = clock.take_doubts();
    assert_eq!((doubts.in_gap, doubts.put_back), (2, 0));
    assert!(clock.take_doubts().is_none());
}

#[test]
fn a_clock_put_back_holds_the_result_until_it_has_caught_up_and_is_told() {
    let mut clock = CommitClock::new(ServerZone::UTC);
    assert_eq!(clock.next(local("2026-07-01T12:00:00")), utc("2026-07-01T12:00:00Z"));
    assert_eq!(clock.next(local("2026-07-01T11:55:00")), utc("2026-07-01T12:00:00Z"));
    assert_eq!(clock.next(local("2026-07-01T11:59:30")), utc("2026-07-01T12:00:00Z"));
    assert_eq!(clock.next(local("2026-07-01T12:00:01")), utc("2026-07-01T12:00:01Z"));
    let doubts = clock.take_doubts();
    assert_eq!((doubts.in_gap, doubts.put_back), (0, 1));
    assert_eq!(doubts.put_back_micros, 300 * SECOND);
}

#[test]
fn a_quiet_month_is_searched_once() {
    let mut clock = CommitClock::new(zone("America/New_York"));
    clock.next(local("2026-06-01T00:00:00"));
    let quiet = clock.quiet.expect("no change in June");
    assert_eq!(quiet.offset, -4 * 3_600 * SECOND);
    let covered = quiet.last - local("2026-06-01T00:00:00").local_micros();
    assert!(covered >= 28 * DAY, "{covered}");
}
