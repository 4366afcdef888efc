//! Several runners on one table, in every interleaving that a seed draws, with lost calls, lost
//! replies and crashes: the table is the source's at its mark, in every moment.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Waker},
};

use cdc_conformance::{Cell, Feed, feed};
use cdc_core::{
    Column, Commit, Committed, ErrorKind, Length, Mark, Result, SqlType, Stamp, TableBatch,
    TableName, TableSpec, Verdict,
    mark::next_sequence,
    port::{Sink, TableSink},
};
use proptest::prelude::*;

use super::{Database, Fault, ModelStore, decode};
use crate::{column_type::ColumnType, config::NulInText, sink::PostgresSink, table::Limits};

const WIDTH: usize = 10;
/// Runners that are started while others run.
const RUNNERS_MAX: u64 = 30;
/// Steps of all runners together before the test says that nobody comes to the end.
const STEPS_MAX: usize = 60_000;

/// Numbers from a seed.
#[derive(Clone)]
struct Dice(Arc<Mutex<u64>>);

impl Dice {
    fn below(&self, limit: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % limit
    }
}

fn spec() -> TableSpec {
    TableSpec {
        name: "t".into(),
        source: TableName::new("dbo", "t"),
        columns: vec![
            Column::new("id", 1, SqlType::Int, false),
            Column::new("name", 2, SqlType::NVarChar(Length::Limited(9)), true),
        ],
        key: vec!["id".into()],
    }
}

type State = BTreeMap<i64, String>;

/// The source's batches: one commit each, and what the source holds behind it.
struct History(Vec<(TableBatch, State)>);

impl History {
    fn new(dice: &Dice, batches: u64) -> Self {
        let (mut state, mut list) = (State::new(), Vec::new());
        for commit in 1..=batches {
            let mut feed = Feed::new(&spec().columns);
            for change in 0..1 + dice.below(6) {
                let id = i64::try_from(dice.below(5)).unwrap();
                let new = format!("{commit}.{change}");
                let row = |name: &str| [Cell::Int(id), Cell::text(name)];
                feed = match state.get(&id).cloned() {
                    None => feed.insert(commit, row(&new)),
                    Some(old) if dice.below(3) == 0 => {
                        state.remove(&id);
                        feed = feed.delete(commit, row(&old));
                        continue;
                    }
                    Some(old) => feed.update(commit, row(&old), row(&new)),
                };
                state.insert(id, new);
            }
            list.push((feed.changes().unwrap(), state.clone()));
        }
        Self(list)
    }

    fn at(&self, mark: Option<&Mark>) -> State {
        let done = mark.map_or(0, |mark| usize::try_from(mark.sequence).unwrap());
        done.checked_sub(1).map_or_else(State::new, |last| self.0[last].1.clone())
    }
}

fn commit(sequence: u64) -> Commit {
    feed::commit(feed::mark(WIDTH, sequence, sequence).unwrap())
}

/// What an engine does with a table until the history is at its end, without its pauses: after an
/// error it attaches again, unless another runner took the table.
async fn runner(sink: PostgresSink, history: Arc<History>, dice: Dice) {
    while let Err(error) = attached(&sink, &history, &dice).await {
        match error.kind() {
            ErrorKind::Unavailable => {}
            ErrorKind::Fenced => return,
            kind => panic!("{kind}: {}", error.report()),
        }
        if matches!(sink.is_superseded(&spec()).await, Ok(true)) {
            return;
        }
    }
}

async fn attached(sink: &PostgresSink, history: &History, dice: &Dice) -> Result<()> {
    let mut attached = sink.attach(&spec()).await?;
    let table = attached.table.as_mut();
    let mut mark = attached.state.mark;
    let done = |mark: Option<Mark>| mark.map_or(0, |mark| usize::try_from(mark.sequence).unwrap());
    if mark.is_some() && dice.below(3) == 0 {
        // The batch of the durable mark again, by somebody who knows no better.
        let last = done(mark);
        table.stage(history.0[last - 1].0.clone()).await?;
        let answer = table.commit(commit(last as u64)).await?;
        assert_eq!(answer, Committed::Before, "a durable mark was committed again");
    }
    loop {
        let done = done(mark);
        let Some((batch, _)) = history.0.get(done) else { return Ok(()) };
        let again = || history.0[usize::try_from(dice.below(done as u64)).unwrap()].0.clone();
        // Old changes come again, before the new ones and late, behind them.
        if done > 0 && dice.below(4) == 0 {
            table.stage(again()).await?;
        }
        if dice.below(8) == 0 {
            table.discard().await?;
        }
        table.stage(batch.clone()).await?;
        if done > 0 && dice.below(4) == 0 {
            table.stage(again()).await?;
        }
        let next = commit(next_sequence(mark.as_ref()));
        mark = Some(next.mark);
        table.commit(next).await?;
        if dice.below(3) == 0 {
            publish(table, mark).await?;
        }
    }
}

async fn publish(table: &mut dyn TableSink, mark: Option<Mark>) -> Result<()> {
    let mark = mark.unwrap();
    let end = Stamp { position: mark.end, commit_time: mark.commit_time };
    table.publish(Verdict { finalized_until: mark.commit_time, end }).await.map(drop)
}

/// The epoch and position of every row, by key.
type Guards = BTreeMap<Vec<u8>, (u32, Vec<u8>)>;

/// What a reader sees, the mark, and the guards of all rows.
fn look(database: &Database) -> (State, Option<Mark>, Guards) {
    let mark = database.records.get("t").and_then(|record| record.mark);
    let rows = database.targets.get("t").map(|target| target.rows.clone()).unwrap_or_default();
    let text = |cell: &Option<Vec<u8>>, of| decode::cell(&of, cell.as_ref().expect("a value"));
    let mut state = State::new();
    for row in rows.values().filter(|row| !row.deleted) {
        let id = text(&row.cells[0], ColumnType::Integer);
        let name = text(&row.cells[1], ColumnType::Text);
        let (Cell::Int(id), Cell::Text(name)) = (id, name) else { panic!("other cells") };
        state.insert(id, name);
    }
    (state, mark, rows.into_iter().map(|(key, row)| (key, row.guard)).collect())
}

/// One history under one seed.
fn simulate(seed: u64) {
    let dice = Dice(Arc::new(Mutex::new(seed)));
    let history = Arc::new(History::new(&dice, 12));
    let trouble = [0, 8, 25, 60][usize::try_from(dice.below(4)).unwrap()];
    let rolls = dice.clone();
    let store = ModelStore::new(Arc::new(move || match rolls.below(1_000) {
        roll if roll < trouble => Some(Fault::Before),
        roll if roll < 2 * trouble => Some(Fault::After),
        _ => None,
    }));
    let new_runner = |number: u64| {
        let stage_bytes_max = if dice.below(2) == 0 { 1 } else { 1 << 20 };
        let limits = Limits { stage_bytes_max, nul_in_text: NulInText::Refuse };
        let sink = PostgresSink::on(Arc::new(store.clone()), limits, number);
        Box::pin(runner(sink, Arc::clone(&history), dice.clone()))
            as Pin<Box<dyn Future<Output = ()>>>
    };
    let mut runners: Vec<_> = (1..=1 + dice.below(3)).map(new_runner).collect();
    let mut started = 10;
    let mut context = Context::from_waker(Waker::noop());
    let mut before = look(&store.open());
    for _ in 0..STEPS_MAX {
        if runners.is_empty() {
            if before.1.is_some_and(|mark| mark.sequence == 12) {
                return;
            }
            started += 1;
            runners.push(new_runner(started));
        }
        let chosen = usize::try_from(dice.below(runners.len() as u64)).unwrap();
        let ended = runners[chosen].as_mut().poll(&mut context).is_ready();
        // A process may die between any two steps.
        if ended || dice.below(2_000) < trouble {
            drop(runners.swap_remove(chosen));
        }
        if dice.below(60) == 0 && started < RUNNERS_MAX {
            started += 1;
            runners.push(new_runner(started));
        }
        let now = look(&store.open());
        assert_eq!(
            now.0,
            history.at(now.1.as_ref()),
            "seed {seed}: rows are not those of the mark"
        );
        let back = now.1.map(|mark| mark.sequence) < before.1.map(|mark| mark.sequence);
        assert!(!back, "seed {seed}: the mark went back");
        for (key, guard) in &before.2 {
            assert!(now.2.get(key) >= Some(guard), "seed {seed}: a row went back");
        }
        before = now;
    }
    panic!("seed {seed}: nobody comes to the end");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn whoever_runs_and_dies_the_table_is_the_sources_at_its_mark(seed: u64) {
        simulate(seed);
    }
}
