//! Bronze append: staging and committing change rows, against the plain Parquet writer on the rows
//! as they stand in the file.
//!
//! The reference gets the finished columns: the sink's own work (the log's columns as text, the
//! matching of columns, statistics for the Delta log, the upload, the commit) counts against us.

use std::path::Path;

use arrow_array::RecordBatch;
use cdc_delta::{DeltaSink, KernelCalls};
use tokio::runtime::Runtime;

use crate::{
    Figure, Outcome, Scale, Target,
    changes::{BATCH_ROWS, LogShape, batches},
    columns::spec,
    feeder::{Feeder, sink},
    figure::{Turns, rows_a_second},
    machine::{Cost, Watch, one_thread, two_threads},
    plain,
};

/// Batches that are all different: four row groups, so that none holds a batch twice.
const POOL: usize = 64;

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    let pool = batches(scale.pick(POOL, 2), scale.pick(BATCH_ROWS, 1_024))?;
    // 5 M rows.
    let count = scale.pick(306, 4);
    let turns = scale.pick(3, 1);
    let bench = Bench { dir: dir.path(), pool: &pool, count };
    let rows = count * pool.first().map_or(0, RecordBatch::num_rows);
    let finished = bench.finished()?;

    let one = one_thread()?;
    let mut pairs = Vec::new();
    for turn in 0..turns {
        let ours = bench.ours(&one, KernelCalls::InPlace, turn, 1)?;
        let reference = bench.reference(&finished, turn)?;
        pairs.push((1.0 / ours.cpu, 1.0 / reference.cpu));
    }
    let of = Turns::of(pairs);
    report(
        Figure::ratio(
            format!("bronze append of {rows} rows on one core, by CPU time"),
            rows_a_second(rows, 1.0 / of.ours),
            format!("{} plain Parquet writer", rows_a_second(rows, 1.0 / of.reference)),
            of.ratio,
        )
        .with_target(Target::AtLeast(0.9)),
    );

    bench.two_cores(&finished, rows, turns, report)?;
    Ok(())
}

struct Bench<'a> {
    dir: &'a Path,
    pool: &'a [RecordBatch],
    count: usize,
}

impl Bench<'_> {
    /// Two tables at once, against one table alone and against two plain writers at once.
    fn two_cores(
        &self,
        finished: &[RecordBatch],
        rows: usize,
        turns: usize,
        report: &mut dyn FnMut(Figure),
    ) -> Outcome<()> {
        let (one, two) = (one_thread()?, two_threads()?);
        let (mut to_one, mut to_plain) = (Vec::new(), Vec::new());
        for turn in turns..2 * turns {
            let alone = self.ours(&one, KernelCalls::InPlace, turn, 1)?;
            let both = self.ours(&two, KernelCalls::Pool, turn, 2)?;
            let watch = Watch::start();
            std::thread::scope(|scope| {
                let other = scope.spawn(|| self.reference(finished, 2 * turn));
                self.reference(finished, 2 * turn + 1)?;
                other.join().map_err(|_| "the other writer ended early")?
            })?;
            let plain = watch.stop();
            to_one.push((2.0 / both.wall, 1.0 / alone.wall));
            to_plain.push((2.0 / both.wall, 2.0 / plain.wall));
        }
        let what = format!("two tables of {rows} rows each at once on two cores, by wall time");
        for (of, beside, target) in [
            (Turns::of(to_one), "one table on one core", Target::AtLeast(1.7)),
            (Turns::of(to_plain), "two plain writers on two threads", Target::None),
        ] {
            let ours = rows_a_second(rows, 1.0 / of.ours);
            let reference = format!("{} {beside}", rows_a_second(rows, 1.0 / of.reference));
            report(Figure::ratio(what.clone(), ours, reference, of.ratio).with_target(target));
        }
        Ok(())
    }

    fn batches(&self) -> impl Iterator<Item = &RecordBatch> {
        self.pool.iter().cycle().take(self.count)
    }

    /// The pool as it stands in a data file of the sink, which the plain writer would write alike.
    fn finished(&self) -> Outcome<Vec<RecordBatch>> {
        let root = self.dir.join("form");
        let sink = sink(&root, KernelCalls::InPlace, 0)?;
        one_thread()?.block_on(self.append(&sink, "t", self.pool.len()))?;
        let files = plain::data_files(&root.join("bronze/t"))?;
        let ours = files.first().ok_or("the sink wrote no file")?;
        let rows = self.pool.first().map_or(1, RecordBatch::num_rows);
        let finished = plain::read(ours, rows)?;
        let reference = self.dir.join("form.parquet");
        plain::write(&reference, plain::of(&finished)?, &finished)?;
        plain::same_form(ours, &reference)?;
        std::fs::remove_dir_all(&root)?;
        Ok(finished)
    }

    async fn append(&self, sink: &DeltaSink, name: &str, count: usize) -> Outcome<Cost> {
        let mut feeder = Feeder::attach(sink, &spec(name)?).await?;
        let watch = Watch::start();
        for batch in self.batches().take(count) {
            feeder.stage(batch).await?;
        }
        feeder.commit(LogShape { rows_a_commit: 10 }.stamp(u64::from(u32::MAX) / 11)).await?;
        Ok(watch.stop())
    }

    /// Appends to as many tables at once. The time is that from the first attach's end on.
    fn ours(
        &self,
        runtime: &Runtime,
        calls: KernelCalls,
        turn: usize,
        tables: usize,
    ) -> Outcome<Cost> {
        let root = self.dir.join(format!("ours-{turn}"));
        let sink = sink(&root, calls, turn as u64)?;
        let cost = runtime.block_on(async {
            if tables == 1 {
                return self.append(&sink, "t0", self.count).await;
            }
            let watch = Watch::start();
            // Concurrent on the calling task; encoding runs on the pool beside it.
            let (a, b) = futures_util::future::join(
                self.append(&sink, "t0", self.count),
                self.append(&sink, "t1", self.count),
            )
            .await;
            a?;
            b?;
            Ok(watch.stop())
        });
        std::fs::remove_dir_all(&root)?;
        cost
    }

    fn reference(&self, finished: &[RecordBatch], turn: usize) -> Outcome<Cost> {
        let path = self.dir.join(format!("plain-{turn}.parquet"));
        let watch = Watch::start();
        let batches = finished.iter().cycle().take(self.count);
        plain::write(&path, plain::of(finished)?, batches)?;
        let cost = watch.stop();
        std::fs::remove_file(&path)?;
        Ok(cost)
    }
}
