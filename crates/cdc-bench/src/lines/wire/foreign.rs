//! Change rows of nine columns beside the clients of others: to Arrow, and end to end to files.
//!
//! All ask the in-memory server for the same rows a second time, which it then answers from its
//! cache. The clients run in a process each and tell their own wall time; so do we.

use std::{env, path::Path, process::Command, sync::Arc};

use cdc_core::{
    ClosedRange, Engine, InstanceName, Settings, StartAt, TableConfig, TableName, TableRef,
    port::{Bound, Catalog, ChangeReader, ChangeRequest, PositionLog, Shutdown},
};
use cdc_delta::KernelCalls;
use cdc_fake::SeededEntropy;
use cdc_mssql::MssqlSource;
use futures_util::TryStreamExt;

use super::{
    check,
    stage::{self, DATABASE, PASSWORD, READERS, Stage, USER, name},
};
use crate::{
    Figure, Outcome, Scale, Target,
    changes::BATCH_ROWS,
    feeder::sink,
    figure::{median, rows_a_second},
    lines::server::rig::{CHANGE_TABLE, fill},
    machine::{RealClock, Watch, one_thread, two_threads},
};

/// The Python that has the clients.
const PYTHON: &str = "CDC_BENCH_PYTHON";
/// The program that runs them.
const PROGRAM: &str = "CDC_BENCH_RATE";
const ROWS_A_COMMIT: usize = 10;

/// A client, what it does, and how often its rate ours is to be.
const CLIENTS: [(&str, Kind, f64); 3] = [
    ("mssql-python", Kind::ToArrow, 4.0),
    ("connectorx", Kind::ToArrow, 8.0),
    ("rivet", Kind::ToFiles, 5.0),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    ToArrow,
    ToFiles,
}

pub(super) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let rows = scale.pick(500_000, 500);
    let turns = scale.pick(3, 1);
    let reader = *READERS.first().ok_or("no reader")?;
    // Some encrypt their login whatever they are told.
    let stage = Stage::offering_tls()?;
    fill(&stage.database, rows, ROWS_A_COMMIT)?;
    let dir = tempfile::tempdir()?;
    // Idle connections belong to the runtime that they were made in.
    let (one, two) = (one_thread()?, two_threads()?);
    let source = stage::source(stage.address, reader);
    let to_arrow = rate(turns, || one.block_on(read(&source, rows)))?;
    let source = stage::source(stage.address, reader);
    let to_files = rate(turns, || two.block_on(copy(&source, rows, dir.path())))?;
    for (client, kind, times) in CLIENTS {
        let (ours, done) = match kind {
            Kind::ToArrow => (to_arrow, "to Arrow"),
            Kind::ToFiles => (to_files, "to files on disk"),
        };
        let what = format!(
            "{rows} change rows of 9 columns {done} by {}, against {client}, by wall time",
            name(reader)
        );
        let told = rows_a_second(rows, ours);
        report(match theirs(client, &stage, rows, dir.path())? {
            Some(theirs) => Figure::ratio(what, told, rows_a_second(rows, theirs), theirs / ours)
                .with_target(Target::AtLeast(times)),
            None => {
                let reason = format!("SKIPPED: cargo xtask clients --install {client} brings it");
                Figure::ratio(what, told, reason, 0.0)
            }
        });
    }
    Ok(())
}

/// Seconds of a piece of work, once it was done before.
fn rate(turns: usize, work: impl Fn() -> Outcome<f64>) -> Outcome<f64> {
    work()?;
    Ok(median((0..turns).map(|_| work()).collect::<Outcome<_>>()?))
}

/// From the change table to Arrow.
async fn read(source: &MssqlSource, rows: usize) -> Outcome<f64> {
    let table = TableRef::Table(TableName::new("dbo", "orders"));
    let instances = source.instances(&table).await?;
    let instance = instances.first().ok_or("there is no instance")?;
    let low = source.low(std::slice::from_ref(&instance.name)).await?;
    let (Some(Bound::At(low)), Bound::At(high)) = (low.first(), source.high().await?) else {
        return Err("nothing was captured".into());
    };
    let request = ChangeRequest {
        instance: InstanceName::clone(&instance.name),
        columns: instance.columns.clone(),
        range: ClosedRange::new(*low, high).ok_or("the log is empty")?,
        time_before: None,
        batch_rows: BATCH_ROWS,
    };
    let watch = Watch::start();
    let mut batches = source.changes(request).await?;
    let mut read = 0;
    while let Some(batch) = batches.try_next().await? {
        read += batch.num_rows();
    }
    check(read, rows)?;
    Ok(watch.stop().wall)
}

/// From the change table to a bronze table on disk, by the engine.
async fn copy(source: &MssqlSource, rows: usize, dir: &Path) -> Outcome<f64> {
    let root = dir.join("ours");
    let watch = Watch::start();
    let sink = Arc::new(sink(&root, KernelCalls::Pool, 9)?);
    let (clock, entropy) = (Arc::new(RealClock), Arc::new(SeededEntropy::new(9)));
    let engine = Engine::new(Arc::new(source.clone()), sink, clock, entropy, Settings::default());
    let table = TableConfig {
        source: TableRef::Table(TableName::new("dbo", "orders")),
        target: "orders".to_owned(),
        start: StartAt::Earliest,
    };
    let ran = engine.run_once(vec![table], &Shutdown::never()).await;
    let wall = watch.stop().wall;
    if let Some(error) = ran.errors().next() {
        return Err(error.report().into());
    }
    if ran.tables.first().map(|table| table.rows) != Some(rows as u64) {
        return Err("the engine copied another number of rows".into());
    }
    std::fs::remove_dir_all(&root)?;
    Ok(wall)
}

/// Seconds of a client; none when it is not there.
fn theirs(client: &str, stage: &Stage, rows: usize, dir: &Path) -> Outcome<Option<f64>> {
    let (Some(python), Some(program)) = (env::var_os(PYTHON), env::var_os(PROGRAM)) else {
        return Ok(None);
    };
    let query = format!(
        "SELECT __$start_lsn, __$command_id, __$seqval, __$operation, id, customer, title, amount, \
         placed FROM {CHANGE_TABLE} ORDER BY __$start_lsn, __$command_id, __$seqval, __$operation"
    );
    let mut command = Command::new(python);
    command.arg("-B").arg(program).arg(client);
    command.args([&stage.address.ip().to_string(), &stage.address.port().to_string()]);
    command.args([USER, PASSWORD, DATABASE, &query]).arg(dir.join(client));
    let output = command.output()?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        if complaint.contains("ModuleNotFoundError") || complaint.contains("FileNotFoundError") {
            return Ok(None);
        }
        return Err(format!("{client} failed: {complaint}").into());
    }
    let told = String::from_utf8_lossy(&output.stdout);
    let (read, seconds) = told.trim().split_once(' ').ok_or("the client told nothing")?;
    check(read.parse()?, rows)?;
    Ok(Some(seconds.parse()?))
}
