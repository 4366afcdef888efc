//! One commit of ten million rows from a source that makes them while they are read: peak memory,
//! and speed against the same rows in a hundred commits.

use std::{num::NonZeroU64, path::Path, sync::Arc};

use cdc_core::{Engine, Settings, StartAt, TableConfig, port::Shutdown};
use cdc_delta::KernelCalls;
use cdc_fake::SeededEntropy;

use crate::{
    Figure, Outcome, Scale, Target,
    feeder::sink,
    figure::{Turns, rows_a_second, short},
    generator::Generator,
    machine::{Cost, RealClock, Watch, forget_peak, peak_mib, two_threads},
};

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let rows = scale.pick(10_000_000_u64, 20_000);
    let small = 100;
    let dir = tempfile::tempdir()?;
    let mut pairs = Vec::new();
    let mut peaks = Vec::new();
    for turn in 0..scale.pick(3, 1) {
        forget_peak()?;
        let one = copy(dir.path(), turn, 1, rows)?;
        peaks.push(peak_mib()?);
        let many = copy(dir.path(), turn, small, rows / small)?;
        pairs.push((1.0 / one.cpu, 1.0 / many.cpu));
    }
    let peak = peaks.into_iter().fold(0.0, f64::max);
    let what = format!("one commit of {rows} rows: peak resident memory of the process");
    report(
        Figure::value(what, format!("{} MiB", short(peak)), peak, "MiB")
            .with_target(Target::AtMost(512.0)),
    );
    let of = Turns::of(pairs);
    let rows = usize::try_from(rows)?;
    report(
        Figure::ratio(
            format!("one commit of {rows} rows: throughput, by CPU time"),
            rows_a_second(rows, 1.0 / of.ours),
            format!("{} in {small} commits", rows_a_second(rows, 1.0 / of.reference)),
            of.ratio,
        )
        .with_target(Target::AtLeast(0.85)),
    );
    Ok(())
}

/// Copies `commits` commits of `rows` rows each, one Delta commit for each.
fn copy(dir: &Path, turn: u64, commits: u64, rows: u64) -> Outcome<Cost> {
    let root = dir.join(format!("{turn}-{commits}"));
    let generator = Generator::new(commits, rows)?;
    let table = TableConfig {
        source: generator.table(),
        target: "generated".to_owned(),
        start: StartAt::Earliest,
    };
    let mut settings = Settings::default();
    settings.limits.commits_max = NonZeroU64::new(1);
    let watch = Watch::start();
    let sink = Arc::new(sink(&root, KernelCalls::Pool, turn)?);
    let (clock, entropy) = (Arc::new(RealClock), Arc::new(SeededEntropy::new(turn)));
    let engine = Engine::new(Arc::new(generator), sink, clock, entropy, settings);
    let report = two_threads()?.block_on(engine.run_once(vec![table], &Shutdown::never()));
    let cost = watch.stop();
    if let Some(error) = report.errors().next() {
        return Err(error.report().into());
    }
    let copied = report.tables.first().map(|table| (table.rows, table.batches));
    if copied != Some((commits * rows, commits)) {
        return Err(format!("copied {copied:?} rows and batches, not {}", commits * rows).into());
    }
    std::fs::remove_dir_all(&root)?;
    Ok(cost)
}
