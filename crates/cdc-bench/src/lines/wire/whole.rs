//! From the wire to a bronze table on disk: the engine against its two halves, on one core.

use std::{path::Path, sync::Arc};

use arrow_array::RecordBatch;
use cdc_core::{
    ClosedRange, Engine, InstanceName, Settings, StartAt, TableConfig, TableName, TableRef,
    port::{Bound, ChangeReader, ChangeRequest, PositionLog, Shutdown},
};
use cdc_delta::KernelCalls;
use cdc_fake::{CaptureSchedule, EnableOptions, SeededEntropy};
use cdc_mssql::MssqlSource;
use futures_util::TryStreamExt;
use tokio::runtime::Runtime;

use super::{
    PEAK_MIB,
    replay::{Recording, Replay},
    stage::{self, READERS, Stage, name},
};
use crate::{
    Figure, Outcome, Scale, Target,
    changes::{BATCH_ROWS, LogShape},
    columns::{Rows, columns, spec, table_definition, values},
    feeder::{Feeder, sink},
    figure::{Turns, median, rows_a_second, short},
    machine::{Cost, RealClock, Watch, forget_peak, one_thread, peak_mib},
};

const TABLE: &str = "parts";
const ROWS_A_COMMIT: usize = 100;
/// What the engine has to reach of its slower half.
const SHARE_OF_HALF: f64 = 0.6;

pub(super) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let rows = scale.pick(300_000, 1_000);
    let stage = Stage::start()?;
    fill(&stage, rows)?;
    let dir = tempfile::tempdir()?;
    let runtime = one_thread()?;
    for reader in READERS {
        let recording = Recording::of(stage.address, |address| {
            let recorded = Whole { source: stage::source(address, *reader), dir: dir.path(), rows };
            runtime.block_on(recorded.run(0))?;
            runtime.block_on(recorded.read())?;
            Ok(())
        })?;
        let replay = Replay::serve(&recording, 1)?;
        let whole =
            Whole { source: stage::source(replay.address(), *reader), dir: dir.path(), rows };
        whole.compare(&runtime, &replay, name(*reader), scale.pick(5, 1), report)?;
    }
    Ok(())
}

fn fill(stage: &Stage, rows: usize) -> Outcome<()> {
    stage.database.set_capture(CaptureSchedule::AtCommit);
    stage.database.create_table(table_definition(TABLE))?;
    let name = TableName::new("dbo", TABLE);
    stage.database.enable_table(&name, EnableOptions::default())?;
    let mut draw = Rows::new(0);
    for _ in 0..rows / ROWS_A_COMMIT {
        let values = (0..ROWS_A_COMMIT).map(|_| values(&draw.row())).collect();
        stage.database.transact(|open| open.insert_many(&name, values).map(drop))?;
    }
    Ok(())
}

struct Whole<'a> {
    source: MssqlSource,
    dir: &'a Path,
    rows: usize,
}

impl Whole<'_> {
    fn compare(
        &self,
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
        let batches = runtime.block_on(self.read())?.0;
        let (mut pairs, mut halves) = (Vec::new(), Vec::new());
        let mut peak: f64 = 0.0;
        for turn in 1..=turns {
            let read = ours(&mut || Ok(runtime.block_on(self.read())?.1))?;
            let written = runtime.block_on(self.write(turn, &batches))?.cpu;
            forget_peak()?;
            let whole = ours(&mut || runtime.block_on(self.run(turn)))?;
            peak = peak.max(peak_mib()?);
            pairs.push((1.0 / whole, 1.0 / read.max(written)));
            halves.push((read, written));
        }
        let of = Turns::of(pairs);
        let half = |half: fn(&(f64, f64)) -> f64| {
            rows_a_second(self.rows, median(halves.iter().map(half).collect()))
        };
        let what = format!(
            "{} change rows of 12 columns from the wire by {reader} to bronze on disk, one core",
            self.rows
        );
        let reference = format!("{} source, {} sink alone", half(|it| it.0), half(|it| it.1));
        let figure = Figure::ratio(
            what.clone(),
            rows_a_second(self.rows, 1.0 / of.ours),
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

    /// The source alone: the whole change table.
    async fn read(&self) -> Outcome<(Vec<RecordBatch>, Cost)> {
        let Bound::At(high) = self.source.high().await? else {
            return Err("nothing was captured".into());
        };
        let instance = InstanceName::new(&format!("dbo_{TABLE}"));
        let low = self.source.low(std::slice::from_ref(&instance)).await?;
        let Some(Bound::At(low)) = low.first() else {
            return Err("the instance has no low position".into());
        };
        let request = ChangeRequest {
            instance,
            columns: columns(),
            range: ClosedRange::new(*low, high).ok_or("the log is empty")?,
            time_before: None,
            batch_rows: BATCH_ROWS,
        };
        let watch = Watch::start();
        let batches: Vec<RecordBatch> = self.source.changes(request).await?.try_collect().await?;
        let cost = watch.stop();
        super::check(batches.iter().map(RecordBatch::num_rows).sum(), self.rows)?;
        Ok((batches, cost))
    }

    /// The sink alone: attach, stage, commit.
    async fn write(&self, turn: u64, batches: &[RecordBatch]) -> Outcome<Cost> {
        let root = self.dir.join(format!("sink-{turn}"));
        let watch = Watch::start();
        let mut feeder =
            Feeder::attach(&sink(&root, KernelCalls::InPlace, turn)?, &spec(TABLE)?).await?;
        for batch in batches {
            feeder.stage(batch).await?;
        }
        feeder.commit(LogShape { rows_a_commit: 100 }.stamp(1)).await?;
        drop(feeder);
        let cost = watch.stop();
        std::fs::remove_dir_all(&root)?;
        Ok(cost)
    }

    /// The engine, from its start to its end.
    async fn run(&self, turn: u64) -> Outcome<Cost> {
        let root = self.dir.join(format!("engine-{turn}"));
        let watch = Watch::start();
        let sink = Arc::new(sink(&root, KernelCalls::InPlace, turn)?);
        let source = Arc::new(self.source.clone());
        let (clock, entropy) = (Arc::new(RealClock), Arc::new(SeededEntropy::new(turn)));
        let engine = Engine::new(source, sink, clock, entropy, Settings::default());
        let table = TableConfig {
            source: TableRef::Table(TableName::new("dbo", TABLE)),
            target: TABLE.to_owned(),
            start: StartAt::Earliest,
        };
        let report = engine.run_once(vec![table], &Shutdown::never()).await;
        let cost = watch.stop();
        if let Some(error) = report.errors().next() {
            return Err(error.report().into());
        }
        if report.tables.first().map(|table| table.rows) != Some(self.rows as u64) {
            return Err("the engine copied another number of rows".into());
        }
        std::fs::remove_dir_all(&root)?;
        Ok(cost)
    }
}
