//! A commit to a table of many live files, against the same commit to a table of few.

use std::{fmt::Write as _, fs, path::Path};

use arrow_array::RecordBatch;
use cdc_delta::{DeltaConfig, DeltaSink, KernelCalls};
use cdc_fake::SeededEntropy;
use tokio::runtime::Runtime;

use crate::{
    Figure, Outcome, Scale, Target,
    changes::{LogShape, batches},
    columns::spec,
    feeder::{Feeder, sink},
    figure::{median, millis, short},
    machine::{RealClock, Watch, one_thread},
    plain,
};

const SHAPE: LogShape = LogShape { rows_a_commit: 10 };
/// Files that one made-up commit adds.
const FILES_A_COMMIT: usize = 10_000;

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let files = scale.pick(100_000, 100);
    let dir = tempfile::tempdir()?;
    let rows = batches(1, 100)?.pop().ok_or("no batch")?;
    let runtime = one_thread()?;
    let root = dir.path().join("lake");
    fill(&runtime, &root, &rows, files)?;

    let sink = sink(&root, KernelCalls::Pool, 3)?;
    let watch = Watch::start();
    let mut many = runtime.block_on(Feeder::attach(&sink, &spec("many")?))?;
    let attach = watch.stop();
    let mut few = runtime.block_on(Feeder::attach(&sink, &spec("few")?))?;
    let finished = {
        let file = plain::data_files(&root.join("bronze/many"))?;
        plain::read(file.first().ok_or("the sink wrote no file")?, 100)?
    };
    let (mut ours, mut lone, mut encoding) = (Vec::new(), Vec::new(), Vec::new());
    // Two checkpoint intervals and a half.
    for number in 10..scale.pick(135, 16) {
        for (feeder, costs) in [(&mut many, &mut ours), (&mut few, &mut lone)] {
            let watch = Watch::start();
            runtime.block_on(async {
                feeder.stage(&rows).await?;
                feeder.commit(SHAPE.stamp(number)).await
            })?;
            costs.push(watch.stop().wall);
        }
        let path = dir.path().join("plain.parquet");
        let watch = Watch::start();
        plain::write(&path, plain::of(&finished)?, &finished)?;
        encoding.push(watch.stop().wall);
    }
    let encoding = median(encoding);
    let beyond = (median(ours.clone()) - encoding) * 1_000.0;
    #[allow(clippy::cast_precision_loss, reason = "a hundred")]
    let mean = ours.iter().sum::<f64>() / ours.len() as f64;
    let most = ours.iter().copied().fold(0.0, f64::max);
    report(
        Figure::value(
            format!("commit of 100 rows to a table of {files} live files, beyond encoding, median"),
            format!("{} ms", short(beyond)),
            beyond,
            "ms",
        )
        .beside(format!("{} a table of few files", millis(median(lone) - encoding)))
        .with_target(Target::AtMost(15.0)),
    );
    report(Figure::value(
        format!(
            "the same with its share of checkpoints, mean (the one that writes: {})",
            millis(most)
        ),
        format!("{} ms", short((mean - encoding) * 1_000.0)),
        (mean - encoding) * 1_000.0,
        "ms",
    ));
    report(Figure::value(
        format!("attach of the table of {files} live files"),
        millis(attach.wall),
        attach.wall * 1_000.0,
        "ms",
    ));
    Ok(())
}

/// A table whose log names as many files, with a checkpoint behind them; one more of few files.
fn fill(runtime: &Runtime, root: &Path, rows: &RecordBatch, files: usize) -> Outcome<()> {
    let first = sink(root, KernelCalls::Pool, 1)?;
    for name in ["many", "few"] {
        runtime.block_on(async {
            let mut feeder = Feeder::attach(&first, &spec(name)?).await?;
            feeder.stage(rows).await?;
            feeder.commit(SHAPE.stamp(1)).await
        })?;
    }
    let log = root.join("bronze/many/_delta_log");
    let text = fs::read_to_string(log.join(format!("{:020}.json", 1)))?;
    let add = text
        .lines()
        .find_map(|line| {
            let action: serde_json::Value = serde_json::from_str(line).ok()?;
            action.get("add").cloned()
        })
        .ok_or("the commit adds no file")?;
    for commit in 0..files.div_ceil(FILES_A_COMMIT) {
        let mut text = String::new();
        for number in 0..FILES_A_COMMIT.min(files) {
            let mut add = add.clone();
            if let Some(path) = add.get_mut("path") {
                *path = format!("part-{commit:03}-{number:05}.zstd.parquet").into();
            }
            writeln!(text, "{}", serde_json::json!({ "add": add }))?;
        }
        fs::write(log.join(format!("{:020}.json", commit + 2)), text)?;
    }
    // A sink that writes a checkpoint with every commit.
    let mut config = DeltaConfig::new(root.to_string_lossy());
    config.kernel_calls = KernelCalls::Pool;
    config.checkpoint_interval = 1;
    let clock = std::sync::Arc::new(RealClock);
    let often = DeltaSink::new(config, clock, std::sync::Arc::new(SeededEntropy::new(2)))?;
    for name in ["many", "few"] {
        runtime.block_on(async {
            let mut feeder = Feeder::attach(&often, &spec(name)?).await?;
            feeder.stage(rows).await?;
            feeder.commit(SHAPE.stamp(2)).await
        })?;
    }
    Ok(())
}
