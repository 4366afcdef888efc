//! The server's clock: names of zones, readings, and the moments they stand for.

use arbitrary::Unstructured;
use cdc_core::{
    CommitClock, ErrorKind, Granularity, ServerTime, ServerZone, Timestamp, lookback,
    lookup_argument,
};

/// Readings of one input: each may cost a search in the zone's history, and a fault needs few.
const READINGS_MAX: usize = 12;
/// Ticks of 9999-12-31: what SQL Server's `datetime` holds ends there.
const TICKS_MAX: i64 = 2_958_463 * 86_400 * ServerTime::TICKS_A_SECOND;
/// Ticks of 1753-01-01: where it begins.
const TICKS_MIN: i64 = -53_690 * 86_400 * ServerTime::TICKS_A_SECOND;
const DAY: i64 = 86_400_000_000;

/// Runs one input: a zone, then readings in LSN order.
pub fn run(data: &[u8]) {
    let mut input = Unstructured::new(data);
    let Some(zone) = zone(&mut input) else {
        return;
    };
    let slack = if input.arbitrary().unwrap_or(false) { 0 } else { cdc_core::ORDER_SLACK_MICROS };
    let mut clock = CommitClock::new(zone).with_slack(slack);
    let mut ticks = 0;
    for _ in 0..READINGS_MAX {
        if input.is_empty() {
            break;
        }
        ticks = next(&mut input, ticks);
        reading(&mut clock, zone, slack, ServerTime::from_ticks(ticks));
    }
}

/// A zone by its name. Names that are none are refused with the setting, and a zone's own name
/// reads back as the zone.
fn zone(input: &mut Unstructured<'_>) -> Option<ServerZone> {
    let text = if input.arbitrary().ok()? {
        let at = input.choose_index(chrono_tz::TZ_VARIANTS.len()).ok()?;
        chrono_tz::TZ_VARIANTS.get(at)?.name().to_owned()
    } else {
        let length = input.int_in_range(0..=40).ok()?;
        String::from_utf8_lossy(input.bytes(length).ok()?).into_owned()
    };
    match ServerZone::parse("source.zone", &text) {
        Ok(zone) => {
            assert_eq!(ServerZone::parse("source.zone", &zone.to_string()).unwrap(), zone);
            Some(zone)
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Config);
            assert_eq!(error.context("setting"), Some("source.zone"));
            assert!(error.report().chars().count() < 600, "{}", error.report());
            None
        }
    }
}

/// The next reading's ticks: some way on or back, or anywhere at all.
fn next(input: &mut Unstructured<'_>, ticks: i64) -> i64 {
    let number = |input: &mut Unstructured<'_>| input.arbitrary::<i64>().unwrap_or(0);
    match input.arbitrary::<u8>().unwrap_or(0) % 5 {
        0 => number(input),
        1 => TICKS_MIN + number(input).rem_euclid(TICKS_MAX - TICKS_MIN),
        2 => ticks.saturating_add(i64::from(input.arbitrary::<i32>().unwrap_or(0))),
        3 => ticks.saturating_add(i64::from(input.arbitrary::<i16>().unwrap_or(0))),
        // From 1970 to 2070, where the zones have changes.
        _ => 6_627_571_200 * 100 + number(input).rem_euclid(947_000_000_000),
    }
}

fn reading(clock: &mut CommitClock, zone: ServerZone, slack: i64, reading: ServerTime) {
    let before = clock.last();
    let mut fresh = match before {
        Some(last) => CommitClock::resume(zone, last),
        None => CommitClock::new(zone),
    }
    .with_slack(slack);
    let moment = clock.next(reading);
    let doubts = clock.take_doubts();
    // Time never goes back.
    assert!(before.is_none_or(|before| moment >= before), "{before:?} {moment:?}");
    assert_eq!(clock.last(), Some(moment));
    // What is kept at hand changes nothing.
    assert_eq!((fresh.next(reading), fresh.take_doubts()), (moment, doubts));
    // Texts and periods of any moment.
    let _ = (moment.to_string(), reading.to_string());
    for period in [Granularity::Minute, Granularity::Hour, Granularity::Day] {
        let cut = period.truncate(moment);
        assert!(cut <= moment && moment.micros_since(cut) <= DAY);
    }
    if !(TICKS_MIN..TICKS_MAX).contains(&reading.as_ticks()) {
        let _ = (lookback(zone, reading), lookup_argument(zone, moment));
        return;
    }
    let wall = reading.wall().unwrap();
    assert_eq!(ServerTime::nearest(wall), reading);
    let local = wall.and_utc().timestamp_micros();
    // No offset reaches a day, so only a time that is held back is further away.
    let held = before == Some(moment);
    assert!(held || (moment.as_micros() - local).abs() < DAY, "{reading} {moment}");
    if doubts.is_none() && !held {
        assert_eq!(
            zone.reading(moment).map(|shown| shown.as_ticks() - reading.as_ticks()),
            Some(0)
        );
    }
    if let Some(from) = lookback(zone, reading) {
        assert!(from <= reading, "{from} {reading}");
    }
    let argument = lookup_argument(zone, moment);
    let shown = zone.reading(moment).unwrap();
    assert!(argument < shown, "{argument} {shown}");
    let later = zone.reading(Timestamp::from_micros(moment.as_micros() + DAY / 24)).unwrap();
    assert!(argument < later, "{argument} {later}");
}
