//! Commits of others in the logs of a lake's tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use cdc_core::{
    BatchFacts, Column, Commit, Error, ErrorKind, Lsn, Mark, Result, SqlType, Stamp, TableName,
    TableSpec, Timestamp, Verdict,
    port::{Clock, Entropy, Sink, TargetState},
};
use cdc_delta::{DeltaConfig, DeltaSink, KernelCalls};
use futures_util::{StreamExt, future::BoxFuture};
use object_store::{ObjectStore, ObjectStoreExt, memory::InMemory, path::Path};
use serde_json::{Value, json};
use url::Url;

const ROOT: &str = "memory:///lake/";
const TABLE: &str = "t";
/// Lines of an input; each may become a commit.
const LINES_MAX: usize = 24;

#[derive(Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let tick = self.0.fetch_add(1_000, Ordering::Relaxed);
        Timestamp::from_micros(1_790_000_000_000_000 + tick)
    }

    fn sleep(&self, _pause: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

struct Counting(AtomicU64);

impl Entropy for Counting {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed)
    }
}

type Store = Arc<dyn ObjectStore>;

fn sink(store: &Store, seed: u64) -> DeltaSink {
    let mut config = DeltaConfig::new(ROOT);
    config.kernel_calls = KernelCalls::InPlace;
    let entropy = Arc::new(Counting(AtomicU64::new(seed)));
    let root = Url::parse(ROOT).unwrap();
    DeltaSink::with_store(config, root, Arc::clone(store), Arc::new(Ticking::default()), entropy)
        .unwrap()
}

fn spec() -> TableSpec {
    let columns = vec![Column::new("id", 1, SqlType::Int, false)];
    TableSpec::new(TABLE, TableName::new("dbo", "t"), columns, Vec::new()).unwrap()
}

fn commit(sequence: u64, end: u128) -> Commit {
    let commit_time =
        Some(Timestamp::from_micros(1_700_000_000_000_000 + i64::try_from(end).unwrap_or(0)));
    Commit {
        mark: Mark {
            sequence,
            end: Lsn::from_u128(end).unwrap().into(),
            commit_time,
            entry_time: commit_time,
            generation: 0,
        },
        facts: BatchFacts::begun(Timestamp::from_micros(1)),
        events: Vec::new(),
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    // The store answers at once and the clock never waits.
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// A lake with two commits and a verdict, as its files.
fn lake() -> &'static BTreeMap<Path, Bytes> {
    static LAKE: OnceLock<BTreeMap<Path, Bytes>> = OnceLock::new();
    LAKE.get_or_init(|| {
        block_on(async {
            let store: Store = Arc::new(InMemory::new());
            let mut table = sink(&store, 1).attach(&spec()).await.unwrap().table;
            for sequence in 1..=2u64 {
                table.commit(commit(sequence, u128::from(sequence) * 10)).await.unwrap();
            }
            let mark = commit(2, 20).mark;
            let end = Stamp { position: mark.end, commit_time: mark.commit_time };
            table.publish(Verdict { finalized_until: mark.commit_time, end }).await.unwrap();
            files(&store).await
        })
    })
}

async fn files(store: &Store) -> BTreeMap<Path, Bytes> {
    let mut files = BTreeMap::new();
    let mut list = store.list(None);
    while let Some(meta) = list.next().await {
        let path = meta.unwrap().location;
        let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
        files.insert(path, bytes);
    }
    files
}

/// Runs one input: lines that are put into the logs of the lake.
///
/// A line is a letter for the table (`b`ronze, `f`acts, `c`ontrol), a letter for the commit (`+` a
/// new one, `.` the one of the line before, `0` to `9` in the place of that version), and an
/// action: `t` with an entry's short name and a number, `m` with the user metadata, or JSON.
pub fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lake = lake().clone();
    for (path, lines) in commits(&text) {
        lake.insert(path, Bytes::from(lines.join("\n")));
    }
    block_on(check(lake));
}

fn log_file(table: u8, version: u64) -> Option<Path> {
    let directory = match table {
        b'b' => "bronze/t",
        b'f' => "facts",
        b'c' => "control",
        _ => return None,
    };
    Some(Path::from(format!("lake/{directory}/_delta_log/{version:020}.json")))
}

fn commits(text: &str) -> BTreeMap<Path, Vec<String>> {
    let mut commits: BTreeMap<Path, Vec<String>> = BTreeMap::new();
    let newest = |table: u8| {
        (0..).take_while(|version| lake().contains_key(&log_file(table, *version).unwrap())).count()
    };
    let mut added: BTreeMap<u8, u64> = BTreeMap::new();
    let mut last = None;
    for line in text.lines().take(LINES_MAX) {
        let [table, place, ..] = line.as_bytes() else {
            continue;
        };
        let Some(action) = line.get(2..).map(action) else {
            continue;
        };
        if log_file(*table, 0).is_none() {
            continue;
        }
        let path = match place {
            b'+' => {
                let next = added.entry(*table).or_insert_with(|| newest(*table) as u64);
                *next += 1;
                log_file(*table, *next - 1)
            }
            b'0'..=b'9' => log_file(*table, u64::from(place - b'0')),
            _ => last.clone(),
        };
        if let Some(path) = path {
            commits.entry(path.clone()).or_default().push(action);
            last = Some(path);
        }
    }
    commits
}

fn action(text: &str) -> String {
    let entry = text.strip_prefix('t').and_then(|rest| rest.rsplit_once(' '));
    if let Some((name, number)) = entry
        && let Ok(number) = number.parse::<i64>()
    {
        let id = if name == "facts" { "cdc/t#facts".into() } else { format!("cdc/t/{name}") };
        return json!({"txn": {"appId": id, "version": number, "lastUpdated": 1}}).to_string();
    }
    match text.strip_prefix('m') {
        Some(text) => json!({"commitInfo": {"timestamp": 1, "userMetadata": text}}).to_string(),
        None => text.to_owned(),
    }
}

/// Whatever others committed: reading writes nothing; the mark is the one that the log's newest
/// entries say, or there is an error that stops and names its place; and who could attach commits
/// on top of that mark.
async fn check(lake: BTreeMap<Path, Bytes>) {
    let store: Store = Arc::new(InMemory::new());
    for (path, bytes) in &lake {
        store.put(path, bytes.clone().into()).await.unwrap();
    }
    let sink = sink(&store, 2);
    let seen = sink.inspect(&spec()).await;
    assert_eq!(files(&store).await, lake, "an inspection wrote");
    let attached = sink.attach(&spec()).await;
    let state = match (&seen, attached) {
        (Ok(Some(state)), Ok(attached)) => {
            assert_eq!(attached.state, *state);
            told(&lake, state);
            follow(&sink, attached.table, state).await;
            return;
        }
        (Ok(None), Ok(_)) => panic!("the table has disappeared"),
        (Err(error), Ok(_)) => panic!("only an attach succeeds: {}", error.report()),
        (Ok(state), Err(error)) => {
            stops(&error);
            state
        }
        (Err(error), Err(other)) => {
            stops(error);
            stops(&other);
            return;
        }
    };
    if let Some(state) = state {
        told(&lake, state);
    }
}

/// An error that stops the table and says where the damage is.
fn stops(error: &Error) {
    let kind = error.kind();
    let allowed = matches!(
        kind,
        ErrorKind::InvalidData
            | ErrorKind::Config
            | ErrorKind::Unsupported
            | ErrorKind::SchemaChanged
    );
    assert!(allowed, "{kind}: {}", error.report());
    let placed = ["path", "table"].iter().any(|key| error.context(key).is_some());
    assert!(placed, "{}", error.report());
}

/// The mark is what the newest entries of the log say, by their JSON alone.
fn told(lake: &BTreeMap<Path, Bytes>, state: &TargetState) {
    let mut entries: BTreeMap<String, i64> = BTreeMap::new();
    for version in 0.. {
        let Some(bytes) = lake.get(&log_file(b'b', version).unwrap()) else {
            break;
        };
        let mut here = BTreeSet::new();
        for line in bytes.split(|byte| *byte == b'\n') {
            let Ok(action) = serde_json::from_slice::<Value>(line) else {
                continue;
            };
            let id = action.pointer("/txn/appId").and_then(Value::as_str);
            let number = action.pointer("/txn/version").and_then(Value::as_i64);
            let (Some(id), Some(number)) = (id, number) else {
                continue;
            };
            if !here.insert(id.to_owned()) {
                // Two of one name in one commit are no Delta log, and either may count.
                return;
            }
            entries.insert(id.to_owned(), number);
        }
    }
    let expected = cdc_delta::fuzzing::mark_of(TABLE, &entries);
    assert_eq!(expected.unwrap(), state.mark);
}

/// The next batch lands on the mark that was read, and is read back.
async fn follow(
    sink: &DeltaSink,
    mut table: Box<dyn cdc_core::port::TableSink>,
    state: &TargetState,
) {
    let Some(before) = state.mark else {
        return;
    };
    let (Some(sequence), end) = (before.sequence.checked_add(1), before.end.increment()) else {
        return;
    };
    let mark = Mark { sequence, end, ..before };
    let facts = BatchFacts::begun(Timestamp::from_micros(1));
    let committed: Result<_> = table.commit(Commit { mark, facts, events: Vec::new() }).await;
    match committed {
        Ok(_) => {
            let now = sink.inspect(&spec()).await.unwrap().unwrap();
            assert_eq!(now.mark, Some(mark));
        }
        // The log holds 63-bit numbers.
        Err(error) => assert!(sequence > i64::MAX as u64, "{}", error.report()),
    }
}
