//! What each runner does, what it is told, and what must be true afterwards.

use std::sync::Arc;

use cdc_conformance::{Cell, Feed};
use cdc_core::{
    Committed, Error, ErrorKind, Result, Stamp, TableBatch, Verdict,
    port::{Sink, TableSink},
};
use object_store::{ObjectStore, memory::InMemory};

use super::{
    reader::{self, Version},
    turns::{Order, Request, Trouble, Turns},
};
use crate::support::{block_on, commit, mark, open, orders, settings};

pub(crate) const BRONZE: &str = "bronze/orders";

/// What a runner was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// The ids of rows whose commit succeeded.
    pub(crate) committed: Vec<i64>,
    /// The ids of rows that a newer runner's fence kept out.
    pub(crate) refused: Vec<i64>,
    /// Why it ended early.
    pub(crate) error: Option<(ErrorKind, String)>,
}

/// The row of a runner's batch: its id tells both.
fn row(runner: u64, sequence: u64) -> (i64, TableBatch) {
    let id = i64::try_from(runner * 100 + sequence).unwrap();
    let cells = vec![Cell::Int(id), Cell::text(format!("runner {runner}"))];
    (id, Feed::new(&orders().columns).insert(sequence * 10, cells).changes().unwrap())
}

/// Attaches, loads every batch that is missing up to `last`, publishes the verdict, closes.
pub(crate) fn run(store: &Arc<dyn ObjectStore>, runner: u64, last: u64) -> Told {
    let mut told = Told::default();
    let result = block_on(load(store, runner, last, &mut told));
    told.error = result.err().map(|error| (error.kind(), error.report()));
    told
}

async fn load(store: &Arc<dyn ObjectStore>, runner: u64, last: u64, told: &mut Told) -> Result<()> {
    let sink = open(store, settings(), runner);
    let attached = sink.attach(&orders()).await?;
    let mut table = attached.table;
    for sequence in attached.state.mark.map_or(0, |mark| mark.sequence) + 1..=last {
        let (id, rows) = row(runner, sequence);
        table.stage(rows).await?;
        match table.commit(commit(sequence)).await {
            Ok(Committed::Now) => told.committed.push(id),
            Ok(Committed::Before) => return Err(Error::bug("nobody committed this before")),
            Err(error) => {
                if matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Conflict) {
                    told.refused.push(id);
                }
                return Err(error);
            }
        }
    }
    publish(table.as_mut(), last).await?;
    table.close().await
}

async fn publish(table: &mut dyn TableSink, sequence: u64) -> Result<()> {
    let time = mark(sequence).commit_time;
    let end = Stamp { position: mark(sequence).end, commit_time: time };
    table.publish(Verdict { finalized_until: time, end }).await.map(drop)
}

/// What two runners were told, what they requested, and what is in the store.
pub(crate) struct Raced {
    pub(crate) told: [Told; 2],
    pub(crate) trace: Vec<Request>,
    pub(crate) store: InMemory,
}

/// Two runners on their own threads, in an order.
pub(crate) fn race(store: &InMemory, order: &Order, last: u64) -> Raced {
    let turns = Turns::new(store.fork(), order.clone());
    let told = std::thread::scope(|scope| {
        let runner = |number: usize| {
            let turns = Arc::clone(&turns);
            move || {
                let seat = turns.sit(number);
                run(&seat.store(), number as u64 + 1, last)
            }
        };
        let (first, second) = (scope.spawn(runner(0)), scope.spawn(runner(1)));
        [first.join().unwrap(), second.join().unwrap()]
    });
    let trace = turns.end();
    Raced { told, trace, store: turns.store().fork() }
}

/// One runner alone.
pub(crate) fn solo(store: &InMemory, last: u64, trouble: Option<(usize, usize, Trouble)>) -> Raced {
    let turns = Turns::new(store.fork(), Order { switches: Vec::new(), trouble });
    let seat = turns.sit(0);
    let told = [run(&seat.store(), 9, last), Told::default()];
    drop(seat);
    let trace = turns.end();
    Raced { told, trace, store: turns.store().fork() }
}

/// A third runner that attaches after two and loads what is missing up to `last`.
pub(crate) fn finish(store: &InMemory, last: u64) -> Told {
    let store: Arc<dyn ObjectStore> = Arc::new(store.clone());
    run(&store, 3, last)
}

/// What the three logs say, without names and times.
pub(crate) fn shape(store: &InMemory) -> String {
    let logs = [BRONZE, "facts", "control"].map(|dir| {
        let versions = reader::log(store, dir);
        let shape = |version: Version| {
            (version.operation, version.entries, version.added.len(), version.removed.len())
        };
        versions.into_iter().map(shape).collect::<Vec<_>>()
    });
    format!("{logs:?}")
}

/// The rules of the log, after everybody is done.
pub(crate) fn check(store: &InMemory, told: &[Told], last: u64, context: &str) {
    let log = reader::log(store, BRONZE);
    let named = check_log(&log, context);
    assert_eq!(named.len() as u64, last, "{context}: every batch is there: {log:?}");
    let ids = reader::column(store, BRONZE, &named, "id");
    let batches = reader::column(store, BRONZE, &named, "_batch_id");
    let whole: Vec<_> = (1..=last as i64).map(Cell::Int).collect();
    assert_eq!(batches, whole, "{context}: each batch once");
    for told in told {
        for id in &told.committed {
            assert!(ids.contains(&Cell::Int(*id)), "{context}: {id} was committed: {told:?}");
        }
        for id in &told.refused {
            assert!(!ids.contains(&Cell::Int(*id)), "{context}: {id} was refused: {told:?}");
        }
    }
    let facts = reader::log(store, "facts");
    let facts = reader::column(store, "facts", &reader::live(&facts), "batch_id");
    assert_eq!(facts, whole, "{context}: the facts of each batch once");
    let control = reader::log(store, "control");
    let end = reader::column(store, "control", &reader::live(&control), "end_lsn");
    assert_eq!(end, [Cell::text(mark(last).end.to_string())], "{context}: the last verdict");
}

/// Checks fences, owners and sequences from version to version, and gives the files of batches.
fn check_log(log: &[Version], context: &str) -> Vec<String> {
    let (mut fence, mut owner, mut sequence) = (0, 0, 0);
    let mut named = Vec::new();
    for (number, version) in log.iter().enumerate() {
        let at = || format!("{context}: version {number}: {version:?}");
        let entry = |name: &str| version.entries.get(name).copied();
        let (own, runner) = (entry("fence").unwrap(), entry("runner").unwrap());
        match entry("sequence") {
            None => {
                assert!(own > fence, "a take-over raises the fence, {}", at());
                assert!(version.added.is_empty(), "rows come with a mark, {}", at());
                (fence, owner) = (own, runner);
            }
            Some(next) => {
                assert_eq!((own, runner), (fence, owner), "only the owner commits, {}", at());
                assert_eq!(next, sequence + 1, "a batch follows the last one, {}", at());
                assert_eq!(version.added.len(), 1, "a mark comes with its rows, {}", at());
                sequence = next;
            }
        }
        named.extend(version.added.iter().cloned());
    }
    named
}
