//! Settings of the Parquet files: what each costs in bytes, in time to write, and in the scans that
//! people and silver run on a bronze table.
//!
//! One setting changes at a time from the sink's own. The files are written and read on one thread,
//! from the page cache; times are CPU time, medians, and the variants take turns.

mod scan;
mod variant;

use std::path::Path;

use arrow_array::RecordBatch;
use cdc_delta::KernelCalls;

use self::{
    scan::{Scan, Scans},
    variant::{Variant, variants},
};
use crate::{
    Figure, Outcome, Scale,
    changes::{BATCH_ROWS, LogShape, batches},
    columns::spec,
    feeder::{Feeder, sink},
    figure::{median, short},
    machine::{Watch, one_thread},
    plain,
};

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    let rows = scale.pick(BATCH_ROWS, 512);
    // A million rows: as many as the largest row group takes.
    let finished = finished(dir.path(), batches(scale.pick(64, 4), rows)?, rows)?;
    let schema = finished.first().ok_or("no rows")?.schema();
    let variants = variants(&schema);
    let mut results: Vec<Result> = variants.iter().map(|_| Result::default()).collect();
    for turn in 0..scale.pick(3, 1) {
        for (variant, result) in variants.iter().zip(&mut results) {
            result.take(variant, dir.path(), &finished, turn)?;
        }
    }
    let base = results.first().map(|result| result.bytes).unwrap_or_default();
    for (variant, result) in variants.iter().zip(&results) {
        report(result.figure(variant, base));
    }
    Ok(())
}

/// The rows as the sink writes them.
fn finished(dir: &Path, batches: Vec<RecordBatch>, rows: usize) -> Outcome<Vec<RecordBatch>> {
    let root = dir.join("form");
    one_thread()?.block_on(async {
        let mut feeder =
            Feeder::attach(&sink(&root, KernelCalls::InPlace, 0)?, &spec("t")?).await?;
        for batch in &batches {
            feeder.stage(batch).await?;
        }
        feeder.commit(LogShape { rows_a_commit: 10 }.stamp(u64::from(u32::MAX) / 11)).await
    })?;
    let mut finished = Vec::new();
    for file in plain::data_files(&root.join("bronze/t"))? {
        finished.extend(plain::read(&file, rows)?);
    }
    Ok(finished)
}

/// What one variant came to.
#[derive(Default)]
struct Result {
    bytes: f64,
    write: Vec<f64>,
    scans: Vec<(Scan, f64)>,
}

impl Result {
    fn take(
        &mut self,
        variant: &Variant,
        dir: &Path,
        finished: &[RecordBatch],
        turn: usize,
    ) -> Outcome<()> {
        let path = dir.join(format!("{turn}.parquet"));
        let watch = Watch::start();
        let bytes = plain::write(&path, variant.properties.clone(), finished)?;
        self.write.push(watch.stop().cpu);
        #[allow(clippy::cast_precision_loss, reason = "below 2^53")]
        let bytes = bytes as f64;
        self.bytes = bytes;
        let scans = Scans::of(finished)?;
        for scan in Scan::ALL {
            let watch = Watch::start();
            let found = scans.run(scan, &path)?;
            self.scans.push((scan, watch.stop().cpu));
            if found != scans.expected(scan) {
                return Err(format!("{}: {scan:?} found {found} rows", variant.name).into());
            }
        }
        Ok(std::fs::remove_file(&path)?)
    }

    fn figure(&self, variant: &Variant, base: f64) -> Figure {
        let times = Scan::ALL.map(|scan| {
            let times = self.scans.iter().filter(|done| done.0 == scan).map(|done| done.1);
            format!("{} {}", scan.name(), short(median(times.collect()) * 1_000.0))
        });
        Figure::ratio(
            format!("parquet: {}", variant.name),
            format!(
                "{} MB, written in {} s",
                short(self.bytes / 1e6),
                short(median(self.write.clone()))
            ),
            format!("ms: {}", times.join(", ")),
            self.bytes / base,
        )
    }
}
