//! A fault at any request to the store, and what is there after the next start.

use cdc_conformance::{Cell, feed};
use cdc_core::{
    BatchEvent, BatchEventKind, Column, Committed, ErrorKind, Result, Retry, SqlType, Stamp,
    Verdict,
    port::{Sink, TableSink},
};

use crate::{
    store::{Fault, Watched},
    support::{WIDTH, block_on, column, commit, ints, mark, open, orders, place, rows, settings},
};

const BATCHES: u64 = 3;

/// Loads what is missing: three batches, a new column before the second, an event in the second,
/// a verdict after each.
async fn load(store: &Watched, seed: u64) -> Result<()> {
    let mut config = settings();
    // A checkpoint falls into the script.
    config.checkpoint_interval = 2;
    let sink = open(&store.dynamic(), config, seed);
    let mut spec = orders();
    let attached = sink.attach(&spec).await?;
    let mut table = attached.table;
    let done = attached.state.mark.map_or(0, |mark| mark.sequence);
    if done > 0 {
        publish(table.as_mut(), done).await?;
    }
    for sequence in done + 1..=BATCHES {
        if sequence >= 2 {
            spec.columns.push(Column::new("note", 3, SqlType::Int, true));
            spec.columns.truncate(3);
            table.evolve(&spec.columns).await?;
        }
        table.stage(rows(&spec, sequence)).await?;
        let mut commit = commit(sequence);
        if sequence == 2 {
            commit.events.push(event());
        }
        assert_eq!(table.commit(commit).await?, Committed::Now);
        publish(table.as_mut(), sequence).await?;
    }
    table.close().await
}

async fn publish(table: &mut dyn TableSink, sequence: u64) -> Result<()> {
    let verdict = Verdict {
        finalized_until: mark(sequence).commit_time,
        end: Stamp { position: mark(sequence).end, commit_time: mark(sequence).commit_time },
    };
    assert_eq!(table.publish(verdict).await?, verdict);
    Ok(())
}

fn event() -> BatchEvent {
    BatchEvent {
        kind: BatchEventKind::SchemaChange,
        at: feed::stamp(WIDTH, 15).unwrap(),
        lost: None,
        detail: "ALTER TABLE".into(),
    }
}

/// The tables after everything was loaded, as an independent reader sees them.
async fn check(store: &Watched, context: &str) {
    let store = store.process().dynamic();
    let bronze = place("bronze/orders");
    assert_eq!(column(&store, &bronze, "id").await, ints(1..=3), "{context}");
    assert_eq!(column(&store, &bronze, "_batch_id").await, ints(1..=3), "{context}");
    let facts = place("facts");
    assert_eq!(column(&store, &facts, "batch_id").await, ints([1, 2, 2, 3]), "{context}");
    let events = column(&store, &facts, "event").await;
    let event = Cell::text("schema_change");
    assert_eq!(events, [Cell::Null, Cell::Null, Cell::Null, event], "{context}");
    let control = place("control");
    assert_eq!(column(&store, &control, "table_name").await, [Cell::text("orders")], "{context}");
    assert_eq!(
        column(&store, &control, "end_lsn").await,
        [Cell::text(mark(3).end.to_string())],
        "{context}"
    );
    let state = open(&store, settings(), 99).inspect(&orders()).await.unwrap().unwrap();
    assert_eq!(state.mark, Some(mark(3)), "{context}");
    let until = state.verdict.unwrap().finalized_until;
    assert_eq!(until, mark(3).commit_time, "{context}");
}

fn requests() -> u64 {
    let store = Watched::default();
    block_on(async {
        load(&store, 1).await.unwrap();
        check(&store, "without a fault").await;
    });
    store.requests()
}

/// Loads with a fault at request `at`, again and again until done.
async fn with_fault(at: u64, fault: Fault) {
    let context = format!("{fault:?} at request {at}");
    let mut store = Watched::default();
    store.fail_at(at, fault);
    for seed in 1.. {
        assert!(seed < 5, "no end: {context}");
        match load(&store, seed).await {
            Ok(()) => break,
            Err(error) => {
                assert_ne!(error.kind().retry(), Retry::Stop, "{context}: {}", error.report());
                assert_ne!(error.kind(), ErrorKind::Conflict, "{context}: {}", error.report());
                if store.is_dead() {
                    store = store.process();
                }
            }
        }
    }
    check(&store, &context).await;
}

fn at_every_request(fault: Fault) {
    let requests = requests();
    assert!(requests > 30);
    block_on(async {
        for at in 1..=requests {
            with_fault(at, fault).await;
        }
    });
}

#[test]
fn a_request_that_fails_anywhere_loses_and_doubles_nothing() {
    at_every_request(Fault::Lost);
}

#[test]
fn a_reply_that_is_lost_anywhere_loses_and_doubles_nothing() {
    at_every_request(Fault::ReplyLost);
}

#[test]
fn a_crash_before_any_request_loses_and_doubles_nothing() {
    at_every_request(Fault::DeadBefore);
}

#[test]
fn a_crash_after_any_request_loses_and_doubles_nothing() {
    at_every_request(Fault::DeadAfter);
}
