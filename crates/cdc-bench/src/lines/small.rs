//! Small commits: a hundred rows staged and committed, with the mark and the facts.

use cdc_delta::KernelCalls;

use crate::{
    Figure, Outcome, Scale, Target,
    changes::{LogShape, batches},
    columns::spec,
    feeder::{Feeder, sink},
    figure::{median, millis, quantile, short},
    machine::{Cost, Watch, one_thread},
    plain,
};

const SHAPE: LogShape = LogShape { rows_a_commit: 10 };

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    let rows = batches(1, 100)?.pop().ok_or("no batch")?;
    let runtime = one_thread()?;
    let root = dir.path().join("lake");
    let sink = sink(&root, KernelCalls::InPlace, 1)?;
    let mut feeder = runtime.block_on(Feeder::attach(&sink, &spec("t")?))?;
    let mut commit = |number: u64| -> Outcome<Cost> {
        let watch = Watch::start();
        runtime.block_on(async {
            feeder.stage(&rows).await?;
            feeder.commit(SHAPE.stamp(number)).await
        })?;
        Ok(watch.stop())
    };
    // The first commit reads the facts' log, and its file is the reference's form.
    commit(0)?;
    let first = plain::data_files(&root.join("bronze/t"))?;
    let finished = plain::read(first.first().ok_or("the sink wrote no file")?, 100)?;
    let (mut ours, mut reference) = (Vec::new(), Vec::new());
    for number in 1..=scale.pick(1_000, 5) {
        ours.push(commit(number)?);
        let watch = Watch::start();
        let path = dir.path().join(format!("{number}.parquet"));
        plain::write(&path, plain::of(&finished)?, &finished)?;
        std::fs::write(path.with_extension("json"), [b' '; 2_048])?;
        reference.push(watch.stop());
    }
    let wall = |costs: &[Cost]| costs.iter().map(|cost| cost.wall).collect::<Vec<_>>();
    let cpu = median(ours.iter().map(|cost| cost.cpu).collect());
    let value = median(wall(&ours)) * 1_000.0;
    let said = format!(
        "{} ms; 95 % within {}; {:.0} a second of CPU time",
        short(value),
        millis(quantile(wall(&ours), 0.95)),
        1.0 / cpu
    );
    let plain = millis(median(wall(&reference)));
    report(
        Figure::value("commit of 100 rows to a local disk, median", said, value, "ms")
            .beside(format!("{plain} to write the Parquet file and 2 KiB plainly"))
            .with_target(Target::AtMost(5.0)),
    );
    Ok(())
}
