//! The engine against the sum of its parts: the fake source's stream read and dropped, and the same
//! batches staged and committed from memory.

use std::{path::Path, sync::Arc};

use arrow_array::RecordBatch;
use cdc_core::{
    ClosedRange, Engine, Settings, StartAt, TableConfig, TableName, TableRef, Timestamp,
    port::{Bound, ChangeReader, ChangeRequest, PositionLog, Shutdown},
};
use cdc_delta::KernelCalls;
use cdc_fake::{
    CaptureSchedule, EnableOptions, FakeServer, FakeSource, Login, SeededEntropy, VirtualClock,
    Zone,
};
use futures_util::TryStreamExt;
use tokio::runtime::Runtime;

use crate::{
    Figure, Outcome, Scale, Target,
    changes::{BATCH_ROWS, LogShape},
    columns::{Rows, columns, spec, table_definition, values},
    feeder::{Feeder, sink},
    figure::{Turns, rows_a_second},
    machine::{Cost, RealClock, Watch, one_thread},
};

const TABLE: &str = "parts";

pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let rows = scale.pick(1_000_000, 2_000);
    let parts = Parts { source: source(rows)?, dir: tempfile::tempdir()?.keep() };
    let runtime = one_thread()?;
    let outcome = parts.measure(&runtime, rows, scale.pick(7, 1), report);
    std::fs::remove_dir_all(&parts.dir)?;
    outcome
}

/// A table of the fake server with `rows` inserts, a hundred a commit.
fn source(rows: usize) -> Outcome<FakeSource> {
    let clock = VirtualClock::auto(Timestamp::from_micros(1_780_272_000_000_000));
    let zone = Zone::Named(chrono_tz::Europe::Berlin);
    let database = FakeServer::new(clock, zone).database("bench");
    database.set_capture(CaptureSchedule::AtCommit);
    database.create_table(table_definition(TABLE))?;
    let name = TableName::new("dbo", TABLE);
    database.enable_table(&name, EnableOptions::default())?;
    let mut draw = Rows::new(0);
    for _ in 0..rows / 100 {
        let values = (0..100).map(|_| values(&draw.row())).collect();
        database.transact(|open| open.insert_many(&name, values).map(drop))?;
    }
    Ok(FakeSource::new(&database, Login::Owner)?)
}

struct Parts {
    source: FakeSource,
    dir: std::path::PathBuf,
}

impl Parts {
    fn measure(
        &self,
        runtime: &Runtime,
        rows: usize,
        turns: u64,
        report: &mut dyn FnMut(Figure),
    ) -> Outcome<()> {
        let batches = runtime.block_on(self.read())?.0;
        let mut pairs = Vec::new();
        let mut shares = Vec::new();
        for turn in 0..turns {
            let whole = runtime.block_on(self.run(turn, rows))?;
            let (_, read) = runtime.block_on(self.read())?;
            let written = runtime.block_on(self.write(turn, &batches))?;
            pairs.push((whole.cpu, read.cpu + written.cpu));
            shares.push((read.cpu, written.cpu));
        }
        let (of, shares) = (Turns::of(pairs), Turns::of(shares));
        report(
            Figure::ratio(
                format!("engine from the fake source to Delta, {rows} rows, by CPU time"),
                rows_a_second(rows, of.ours),
                format!(
                    "{} for source ({}) and sink ({}) alone",
                    rows_a_second(rows, of.reference),
                    rows_a_second(rows, shares.ours),
                    rows_a_second(rows, shares.reference)
                ),
                of.ratio,
            )
            .with_target(Target::AtMost(1.1)),
        );
        Ok(())
    }

    /// The source alone: the whole change table, kept here, dropped by the caller.
    async fn read(&self) -> Outcome<(Vec<RecordBatch>, Cost)> {
        let Bound::At(high) = self.source.high().await? else {
            return Err("nothing was captured".into());
        };
        let instance = cdc_core::InstanceName::new(&format!("dbo_{TABLE}"));
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
        let batches = self.source.changes(request).await?.try_collect().await?;
        Ok((batches, watch.stop()))
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
        remove(&root)?;
        Ok(cost)
    }

    /// The engine, from its start to its end.
    async fn run(&self, turn: u64, rows: usize) -> Outcome<Cost> {
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
        if report.tables.first().map(|table| table.rows) != Some(rows as u64) {
            return Err("the engine copied another number of rows".into());
        }
        remove(&root)?;
        Ok(cost)
    }
}

fn remove(root: &Path) -> Outcome<()> {
    Ok(std::fs::remove_dir_all(root)?)
}
