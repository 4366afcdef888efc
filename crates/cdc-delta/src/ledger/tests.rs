//! Appends that wait, fail or are given up, and a table that changes under its ledger.

use std::time::Duration;

use arrow_array::new_null_array;
use cdc_core::{
    ErrorKind, Timestamp,
    port::{Clock, Entropy},
};
use futures_util::{FutureExt, future::BoxFuture};
use object_store::memory::InMemory;

use super::*;
use crate::{DeltaConfig, DeltaSink, KernelCalls};

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_790_000_000_000_000)
    }

    fn sleep(&self, _pause: Duration) -> BoxFuture<'static, ()> {
        std::future::ready(()).boxed()
    }
}

#[derive(Default)]
struct Counted(std::sync::atomic::AtomicU64);

impl Entropy for Counted {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

fn sink() -> DeltaSink {
    let mut config = DeltaConfig::new("memory:///lake/");
    config.kernel_calls = KernelCalls::InPlace;
    let root = "memory:///lake/".parse().expect("a URL");
    let (clock, entropy) = (Arc::new(Still), Arc::new(Counted::default()));
    DeltaSink::with_store(config, root, Arc::new(InMemory::new()), clock, entropy)
        .expect("the settings are right")
}

/// One row without a value.
fn row() -> Rows {
    Box::new(|layout: &Layout| {
        let fields = layout.physical.fields();
        let columns = fields.iter().map(|field| new_null_array(field.data_type(), 1));
        RecordBatch::try_new(Arc::clone(&layout.physical), columns.collect())
            .map_err(|error| Error::bug("no row").caused_by(error))
    })
}

fn refused() -> Rows {
    Box::new(|_: &Layout| Err(Error::new(ErrorKind::InvalidData, "no such row")))
}

async fn version(ledger: &Ledger) -> u64 {
    ledger.lock().await.expect("opens").snapshot.version()
}

#[tokio::test]
async fn appends_that_wait_for_each_other_are_one_commit_and_each_is_there() {
    let sink = sink();
    let facts = &sink.inner.facts;
    let before = version(facts).await;
    let busy = facts.lock().await.expect("opens");
    let mut waiting: Vec<_> = (0..GROUP_MAX + 10)
        .map(|table| Box::pin(facts.append(format!("t{table}"), 1, row())))
        .collect();
    for append in &mut waiting {
        assert!(append.now_or_never().is_none(), "the ledger is busy");
    }
    drop(busy);
    for append in waiting {
        append.await.expect("written");
    }
    assert_eq!(version(facts).await, before + 2);
    for table in [0, GROUP_MAX - 1, GROUP_MAX + 9] {
        assert_eq!(facts.number(&format!("t{table}")).await.expect("read"), Some(1));
    }
    // The same again writes nothing.
    facts.append("t0".into(), 1, row()).await.expect("done before");
    assert_eq!(version(facts).await, before + 2);
    assert!(facts.waiting().is_empty());
}

#[tokio::test]
async fn rows_that_cannot_be_made_fail_their_own_append_alone() {
    let sink = sink();
    let facts = &sink.inner.facts;
    let busy = facts.lock().await.expect("opens");
    let mut bad = Box::pin(facts.append("bad".into(), 1, refused()));
    let mut good = Box::pin(facts.append("good".into(), 1, row()));
    assert!((&mut bad).now_or_never().is_none() && (&mut good).now_or_never().is_none());
    drop(busy);
    assert_eq!(bad.await.expect_err("refused").kind(), ErrorKind::InvalidData);
    good.await.expect("written");
    assert_eq!(facts.number("good").await.expect("read"), Some(1));
    assert_eq!(facts.number("bad").await.expect("read"), None);
}

#[tokio::test]
async fn an_append_that_is_given_up_leaves_nothing_to_others() {
    let sink = sink();
    let facts = &sink.inner.facts;
    let before = version(facts).await;
    let busy = facts.lock().await.expect("opens");
    let mut lost = Box::pin(facts.append("lost".into(), 1, row()));
    assert!((&mut lost).now_or_never().is_none());
    drop(lost);
    drop(busy);
    facts.append("kept".into(), 1, row()).await.expect("written");
    assert_eq!(version(facts).await, before + 1);
    assert_eq!(facts.number("lost").await.expect("read"), None);
}

#[test]
fn appends_that_fail_hold_up_nobody_however_many_they_are() {
    // On a thread of its own, so that an endless turn fails the test.
    let (done, waits) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let sink = sink();
            let facts = &sink.inner.facts;
            let busy = facts.lock().await.expect("opens");
            let mut bad: Vec<_> = (0..GROUP_MAX + 10)
                .map(|table| Box::pin(facts.append(format!("t{table}"), 1, refused())))
                .collect();
            for append in &mut bad {
                assert!(append.now_or_never().is_none(), "the ledger is busy");
            }
            let mut good = Box::pin(facts.append("good".into(), 1, row()));
            assert!((&mut good).now_or_never().is_none());
            drop(busy);
            // The lock is given in the order of coming; its holders ask for nothing else.
            for append in bad {
                assert_eq!(append.await.expect_err("refused").kind(), ErrorKind::InvalidData);
            }
            good.await.expect("written");
            assert_eq!(facts.number("good").await.expect("read"), Some(1));
        });
        done.send(()).expect("somebody waits");
    });
    waits.recv_timeout(Duration::from_secs(60)).expect("an end");
}

/// Puts a commit above the newest as another writer would.
async fn foreign(ledger: &Ledger, content: &str) {
    let next = version(ledger).await + 1;
    let path = ledger.log.place.file("_delta_log").join(format!("{next:020}.json"));
    ledger.log.place.store.put(&path, content.to_owned().into()).await.expect("in memory");
}

#[tokio::test]
async fn a_newer_version_that_cannot_be_followed_leaves_the_head_where_it_was() {
    let sink = sink();
    let facts = &sink.inner.facts;
    facts.append("t".into(), 1, row()).await.expect("written");
    let before = version(facts).await;
    let protocol = r#"{"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["unheardOf"]}}"#;
    foreign(facts, protocol).await;
    for _ in 0..2 {
        let mut head = facts.lock().await.expect("open");
        assert!(facts.refresh(&mut head).await.is_err());
        assert_eq!(head.snapshot.version(), before);
    }
}

async fn remove(ledger: &Ledger, versions: impl Fn(&str) -> bool) {
    use futures_util::TryStreamExt;
    let place = &ledger.log.place;
    let all: Vec<_> = place.store.list(Some(&place.path)).try_collect().await.expect("listed");
    for file in all {
        if versions(file.location.as_ref()) {
            place.store.delete(&file.location).await.expect("in memory");
        }
    }
}

#[tokio::test]
async fn a_table_that_went_or_went_back_is_looked_at_as_by_a_process_that_begins() {
    let sink = sink();
    let facts = &sink.inner.facts;
    for number in 1..=3 {
        facts.append("t".into(), number, row()).await.expect("written");
    }
    let newest = format!("{:020}.json", version(facts).await);
    remove(facts, |path| path.ends_with(&newest)).await;
    assert_eq!(facts.number("t").await.expect("read"), Some(2));
    drop(facts.lock().await.expect("opens"));
    assert!(facts.look(&facts.log).await.expect("read").is_some());
    remove(facts, |_| true).await;
    assert!(facts.look(&facts.log).await.expect("read").is_none());
    assert_eq!(facts.number("t").await.expect("read"), None);
    facts.append("t".into(), 4, row()).await.expect("created again");
    assert_eq!(facts.number("t").await.expect("read"), Some(4));
}

#[tokio::test]
async fn another_file_in_the_place_of_the_newest_version_is_not_that_version() {
    let sink = sink();
    let facts = &sink.inner.facts;
    facts.append("t".into(), 1, row()).await.expect("written");
    let snapshot = Arc::clone(&facts.lock().await.expect("open").snapshot);
    assert!(facts.log.has(&snapshot).await.expect("asked"));
    let path = facts.log.place.file("_delta_log");
    let path = path.join(format!("{:020}.json", snapshot.version()));
    let put = facts.log.place.store.put(&path, r#"{"commitInfo":{}}"#.into()).await;
    put.expect("in memory");
    assert!(!facts.log.has(&snapshot).await.expect("asked"));
    assert_eq!(facts.number("t").await.expect("read"), None);
}
