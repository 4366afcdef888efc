//! From the wire to a bronze table on disk: the engine against its two halves, on one core.

use arrow_array::RecordBatch;
use cdc_mssql::MssqlSource;
use tokio::runtime::Runtime;

use super::{
    PEAK_MIB,
    replay::{Recording, Replay},
    stage::{self, READERS, Stage, name},
};
use crate::{
    Figure, Outcome, Scale, Target,
    figure::{Turns, median, rows_a_second, short},
    machine::{Cost, forget_peak, one_thread, peak_mib},
    passage::{Passage, fill},
};

/// What the engine has to reach of its slower half.
const SHARE_OF_HALF: f64 = 0.6;

pub(super) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let rows = scale.pick(300_000, 1_000);
    let stage = Stage::start()?;
    fill(&stage.database, rows)?;
    let dir = tempfile::tempdir()?;
    let runtime = one_thread()?;
    for reader in READERS {
        let recording = Recording::of(stage.address, |address| {
            let recorded =
                Passage { source: stage::source(address, *reader), dir: dir.path(), rows };
            runtime.block_on(recorded.run(0))?;
            runtime.block_on(recorded.read())?;
            Ok(())
        })?;
        let replay = Replay::serve(&recording, 1)?;
        let passage =
            Passage { source: stage::source(replay.address(), *reader), dir: dir.path(), rows };
        compare(&passage, &runtime, &replay, name(*reader), scale.pick(5, 1), report)?;
    }
    Ok(())
}

fn compare(
    passage: &Passage<'_, MssqlSource>,
    runtime: &Runtime,
    replay: &Replay,
    reader: &str,
    turns: u64,
    report: &mut dyn FnMut(Figure),
) -> Outcome<()> {
    // The server's share of the process's CPU time is taken off.
    let ours = |work: &mut dyn FnMut() -> Outcome<Cost>| {
        let before = replay.cpu();
        let cost = work()?;
        Outcome::Ok(cost.cpu - (replay.cpu() - before))
    };
    let batches = runtime.block_on(passage.read())?.0;
    let (mut pairs, mut halves) = (Vec::new(), Vec::new());
    let mut peak: f64 = 0.0;
    for turn in 1..=turns {
        let read = ours(&mut || Ok(runtime.block_on(passage.read())?.1))?;
        let written = runtime.block_on(passage.write(turn, &batches))?.cpu;
        forget_peak()?;
        let whole = ours(&mut || runtime.block_on(passage.run(turn)))?;
        peak = peak.max(peak_mib()?);
        pairs.push((1.0 / whole, 1.0 / read.max(written)));
        halves.push((read, written));
    }
    let of = Turns::of(pairs);
    let half = |half: fn(&(f64, f64)) -> f64| {
        rows_a_second(passage.rows, median(halves.iter().map(half).collect()))
    };
    let what = format!(
        "{} change rows of 12 columns from the wire by {reader} to bronze on disk, one core",
        passage.rows
    );
    let reference = format!("{} source, {} sink alone", half(|it| it.0), half(|it| it.1));
    let figure = Figure::ratio(
        what.clone(),
        rows_a_second(passage.rows, 1.0 / of.ours),
        format!("{reference}; share of the slower"),
        of.ratio,
    );
    report(figure.with_target(Target::AtLeast(SHARE_OF_HALF)));
    // What the measurement itself holds is in it: the batches that the sink alone was given.
    let held = batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>();
    #[allow(clippy::cast_precision_loss, reason = "a figure to report")]
    let own = peak - held as f64 / 1_048_576.0;
    let told = format!("{} MiB without what is held to compare", short(own));
    let figure = Figure::value(format!("{what}: peak memory"), told, own, "MiB");
    report(figure.with_target(Target::AtMost(PEAK_MIB)));
    Ok(())
}
