//! Commit times of the server's clock turned into UTC, in a zone with summer time.

use std::hint::black_box;

use cdc_core::{CommitClock, ServerTime, ServerZone, Timestamp};

use crate::{
    Figure, Outcome, Scale, Target,
    figure::{Turns, short},
    machine::Watch,
};

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let count = scale.pick(10_000_000, 10_000);
    let zone = ServerZone::parse("time_zone", "Europe/Berlin")?;
    let readings = readings(zone, count)?;
    let mut pairs = Vec::new();
    for _ in 0..scale.pick(7, 1) {
        pairs.push((converted(zone, &readings), copied(&readings)));
    }
    let of = Turns::of(pairs);
    let what =
        format!("{count} commit times of two years in Europe/Berlin to UTC, each, by CPU time");
    report(
        Figure::value(what, format!("{} ns", short(of.ours)), of.ours, "ns")
            .beside(format!("{} ns to read the readings and add them up", short(of.reference)))
            .with_target(Target::AtMost(10.0)),
    );
    Ok(())
}

/// Readings of equally spaced moments over two years from New Year 2024: four changes of the clock.
fn readings(zone: ServerZone, count: i64) -> Outcome<Vec<ServerTime>> {
    let (begin, span) = (1_704_067_200_000_000_i64, 2 * 365 * 86_400_000_000_i64);
    let step = span / count;
    (0..count)
        .map(|number| {
            let moment = Timestamp::from_micros(begin + number * step);
            zone.reading(moment).ok_or_else(|| "a moment has no reading".into())
        })
        .collect()
}

#[allow(clippy::cast_precision_loss, reason = "ten million")]
fn each(seconds: f64, count: usize) -> f64 {
    seconds * 1e9 / count as f64
}

fn converted(zone: ServerZone, readings: &[ServerTime]) -> f64 {
    let mut clock = CommitClock::new(zone);
    let watch = Watch::start();
    let sum = readings
        .iter()
        .fold(0_i64, |sum, reading| sum.wrapping_add(clock.next(*reading).as_micros()));
    black_box(sum);
    each(watch.stop().cpu, readings.len())
}

fn copied(readings: &[ServerTime]) -> f64 {
    let watch = Watch::start();
    let sum = readings.iter().fold(0_i64, |sum, reading| sum.wrapping_add(reading.as_ticks()));
    black_box(sum);
    each(watch.stop().cpu, readings.len())
}
