//! The passage of one table from a source to Delta: its two halves alone, and the whole.

use std::{path::Path, sync::Arc};

use arrow_array::RecordBatch;
use cdc_core::{
    ClosedRange, Engine, InstanceName, Settings, StartAt, TableConfig, TableName, TableRef,
    port::{Bound, ChangeRequest, Shutdown, Source},
};
use cdc_delta::KernelCalls;
use cdc_fake::{CaptureSchedule, EnableOptions, FakeDatabase, SeededEntropy};
use futures_util::TryStreamExt;

use crate::{
    Outcome,
    changes::{BATCH_ROWS, LogShape},
    columns::{Rows, columns, spec, table_definition, values},
    feeder::{Feeder, sink},
    machine::{Cost, RealClock, Watch},
};

const TABLE: &str = "parts";
const ROWS_A_COMMIT: usize = 100;

/// Gives a database the table, with `rows` inserts, a hundred a commit, captured.
pub(crate) fn fill(database: &FakeDatabase, rows: usize) -> Outcome<()> {
    database.set_capture(CaptureSchedule::AtCommit);
    database.create_table(table_definition(TABLE))?;
    let name = TableName::new("dbo", TABLE);
    database.enable_table(&name, EnableOptions::default())?;
    let mut draw = Rows::new(0);
    for _ in 0..rows / ROWS_A_COMMIT {
        let values = (0..ROWS_A_COMMIT).map(|_| values(&draw.row())).collect();
        database.transact(|open| open.insert_many(&name, values).map(drop))?;
    }
    Ok(())
}

/// A source of the table, and where its copies go.
pub(crate) struct Passage<'a, S> {
    pub(crate) source: S,
    pub(crate) dir: &'a Path,
    pub(crate) rows: usize,
}

impl<S: Source + Clone + 'static> Passage<'_, S> {
    /// The source alone: the whole change table, kept here, dropped by the caller.
    pub(crate) async fn read(&self) -> Outcome<(Vec<RecordBatch>, Cost)> {
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
        if batches.iter().map(RecordBatch::num_rows).sum::<usize>() != self.rows {
            return Err("the source gave another number of rows".into());
        }
        Ok((batches, cost))
    }

    /// The sink alone: attach, stage, commit.
    pub(crate) async fn write(&self, turn: u64, batches: &[RecordBatch]) -> Outcome<Cost> {
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
    pub(crate) async fn run(&self, turn: u64) -> Outcome<Cost> {
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
