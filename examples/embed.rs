//! A binary of one's own around the library: one table from a source into Delta tables.
//!
//! Run it with `cargo run -p cdc-tests --example embed`. It uses the in-memory server; a real one
//! is another `Source`, and nothing else changes.

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::{error::Error, sync::Arc};

use cdc_core::{
    Engine, Settings, SqlType, StartAt, TableConfig, TableName, TableRef, Timestamp,
    port::{Entropy, ShutdownHandle},
};
use cdc_delta::{DeltaConfig, DeltaSink};
use cdc_fake::{
    CaptureSchedule, EnableOptions, FakeServer, FakeSource, Login, TableDefinition, VirtualClock,
    Zone,
};

/// Names of files need numbers that no other process draws.
struct Random;

impl Entropy for Random {
    fn next_u64(&self) -> u64 {
        uuid::Uuid::new_v4().as_u64_pair().0
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // A server with one captured table and a change in it.
    let clock = VirtualClock::auto(Timestamp::from_micros(1_793_361_600_000_000));
    let server = FakeServer::new(clock.clone(), Zone::Named(chrono_tz::America::New_York));
    let database = server.database("sales");
    database.set_capture(CaptureSchedule::AtCommit);
    let orders = TableName::new("dbo", "orders");
    let definition = TableDefinition::new("orders").column("id", SqlType::Int).primary_key(&["id"]);
    database.create_table(definition)?;
    database.enable_table(&orders, EnableOptions::default())?;
    database.transact(|open| open.insert(&orders, vec![1.into()]))?;

    // The parts of a run: a source, a sink, a clock, randomness, settings.
    let dir = tempfile::tempdir()?;
    let clock = Arc::new(clock);
    let config = DeltaConfig::new(dir.path().to_string_lossy());
    let sink = Arc::new(DeltaSink::new(config, clock.clone(), Arc::new(Random))?);
    let source = Arc::new(FakeSource::new(&database, Login::Owner)?);
    let engine = Engine::new(source, sink, clock, Arc::new(Random), Settings::default());

    // `run` goes on until it is asked to stop; `run_once` ends when everything is copied.
    let (_stop, shutdown) = ShutdownHandle::new();
    let table = TableConfig {
        source: TableRef::Table(orders),
        target: "orders".to_owned(),
        start: StartAt::Earliest,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    let report = runtime.block_on(engine.run_once(vec![table], &shutdown));

    for table in &report.tables {
        println!("{}: {} rows", table.table, table.rows);
    }
    match report.finalized_until() {
        Some(until) => println!("complete until {until}"),
        None => println!("nothing is complete yet"),
    }
    match report.errors().next() {
        Some(error) => Err(format!("{}; {}", error.report(), error.advice()).into()),
        None => Ok(()),
    }
}

#[test]
fn the_example_runs() {
    assert!(main().is_ok());
}
