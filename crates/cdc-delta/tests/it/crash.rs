//! A fault at any request to the store, and what is there after the next start.

use cdc_conformance::{Cell, feed};
use cdc_core::{
    BatchEvent, BatchEventKind, Column, Committed, ErrorKind, Result, Retry, SqlType, Stamp,
    Verdict,
    port::{Sink, TableSink},
};

use crate::{
    store::{Fault, Watched},
    support::{
        WIDTH, block_on, cells, commit, ints, mark, open, orders, place, read, rows, settings,
    },
};

const BATCHES: u64 = 2;

/// Bytes of a part of an upload: a file in one piece, and in several.
const PARTS: [usize; 2] = [1 << 20, 600];

/// Loads what is missing: two batches, a new column before the second, an event in the second,
/// a verdict after each.
async fn load(store: &Watched, seed: u64, part: usize) -> Result<()> {
    let mut config = settings();
    // A checkpoint falls into the script.
    config.checkpoint_interval = 2;
    config.upload_part_bytes = part;
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
    let end = Cell::text(mark(BATCHES).end.to_string());
    let bronze = read(&store, &place("bronze/orders")).await;
    assert_eq!(cells(&bronze, "id"), ints(1..=2), "{context}");
    assert_eq!(cells(&bronze, "_batch_id"), ints(1..=2), "{context}");
    let facts = read(&store, &place("facts")).await;
    assert_eq!(cells(&facts, "batch_id"), ints([1, 2, 2]), "{context}");
    let event = Cell::text("schema_change");
    let events = [Cell::Null, Cell::Null, event];
    assert_eq!(cells(&facts, "event"), events, "{context}");
    let control = read(&store, &place("control")).await;
    assert_eq!(cells(&control, "table_name"), [Cell::text("orders")], "{context}");
    assert_eq!(cells(&control, "end_lsn"), [end], "{context}");
    let sink = open(&store, settings(), 99);
    let state = sink.inspect(&orders()).await.unwrap().unwrap();
    assert_eq!(state.mark, Some(mark(BATCHES)), "{context}");
    let until = state.verdict.unwrap().finalized_until;
    assert_eq!(until, mark(BATCHES).commit_time, "{context}");
}

/// What a load without a fault asked of the store.
fn without_a_fault(part: usize) -> Watched {
    let store = Watched::default();
    block_on(async {
        load(&store, 1, part).await.unwrap();
        check(&store, "without a fault").await;
    });
    store
}

/// Loads with a fault at request `at`, again and again until done.
async fn with_fault(at: u64, fault: Fault, part: usize) {
    let context = format!("{fault:?} at request {at}, parts of {part} bytes");
    let mut store = Watched::default();
    store.fail_at(at, fault);
    for seed in 1.. {
        assert!(seed < 5, "no end: {context}");
        match load(&store, seed, part).await {
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
    let [whole, in_parts] = PARTS.map(without_a_fault);
    // Losing the answer to a read is no other than the read failing.
    let requests = match fault {
        Fault::ReplyLost | Fault::DeadAfter | Fault::Twice => whole.effects(),
        Fault::Lost | Fault::DeadBefore => (1..=whole.requests()).collect(),
    };
    assert!(requests.len() > 15);
    assert!(in_parts.parts().len() > 10, "files go up in parts");
    block_on(async {
        for at in requests {
            with_fault(at, fault, PARTS[0]).await;
        }
        // All but the uploads is as before, and dying before a part is dying after the last one.
        let parts = in_parts.parts();
        for at in parts.into_iter().filter(|_| fault != Fault::DeadBefore) {
            with_fault(at, fault, PARTS[1]).await;
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

#[test]
fn a_put_that_meets_its_own_twin_anywhere_loses_and_doubles_nothing() {
    at_every_request(Fault::Twice);
}
