//! Each mistake that can be planted in the sink changes what its tables hold or refuse: the same
//! story is told without it and with it.

use cdc_conformance::{Cell, Feed};
use cdc_core::{
    ErrorKind, Result, Stamp, Verdict,
    planted::{Planted, with},
    port::{Sink, TableSink},
};
use futures_util::TryStreamExt;
use object_store::ObjectStore;

use crate::{
    store::{Fault, Watched},
    support::{
        block_on, cells, column, commit, delta, ints, mark, open, order, orders, place, read, rows,
        settings,
    },
};

/// What a story comes to, and what it comes to with the mistake.
fn both<T>(planted: Planted, story: impl AsyncFn() -> T) -> [T; 2] {
    [None, Some(planted)].map(|planted| with(planted, || block_on(story())))
}

async fn ids(store: &Watched) -> Vec<Cell> {
    column(&store.process().dynamic(), &place("bronze/orders"), "id").await
}

/// The first batch, by a sink that is new to the table.
async fn first_batch(store: &Watched, seed: u64) -> Result<Box<dyn TableSink>> {
    let spec = orders();
    let mut table = open(&store.dynamic(), settings(), seed).attach(&spec).await?.table;
    table.stage(rows(&spec, 1)).await?;
    table.commit(commit(1)).await?;
    Ok(table)
}

/// The number of the request that puts the first batch's commit: the upload of its rows comes right
/// before it.
async fn put_of_commit() -> u64 {
    let store = Watched::default();
    let spec = orders();
    let mut table = open(&store.dynamic(), settings(), 1).attach(&spec).await.unwrap().table;
    table.stage(rows(&spec, 1)).await.unwrap();
    let before = store.effects().len();
    table.commit(commit(1)).await.unwrap();
    store.effects()[before + 1]
}

#[test]
fn a_mark_has_a_version_of_its_own_when_it_is_put_before_the_rows() {
    let versions = both(Planted::MarkBeforeRows, async || {
        let store = Watched::default();
        first_batch(&store, 1).await.unwrap();
        delta(&store.dynamic(), &place("bronze/orders")).await.version()
    });
    assert_eq!(versions, [Some(1), Some(2)]);
}

#[test]
fn rows_are_there_twice_when_a_lost_reply_is_taken_for_a_failure() {
    let held = both(Planted::LostReplyTakenAsFailure, async || {
        let store = Watched::default();
        store.fail_at(put_of_commit().await, Fault::ReplyLost);
        first_batch(&store, 1).await.unwrap();
        ids(&store).await
    });
    assert_eq!(held, [ints([1]), ints([1, 1])]);
}

/// A runner stages, a newer one attaches and commits, and the first commits the same batch.
async fn two_runners() -> (std::result::Result<(), ErrorKind>, Vec<Cell>) {
    let store = Watched::default();
    let spec = orders();
    let mut older = open(&store.dynamic(), settings(), 1).attach(&spec).await.unwrap().table;
    older.stage(rows(&spec, 1)).await.unwrap();
    let mut newer = first_batch(&store, 2).await.unwrap();
    newer.stage(rows(&spec, 2)).await.unwrap();
    newer.commit(commit(2)).await.unwrap();
    let outcome = older.commit(commit(1)).await.map(drop).map_err(|error| error.kind());
    (outcome, ids(&store).await)
}

#[test]
fn two_runners_write_the_same_rows_when_the_fence_is_ignored() {
    let [right, wrong] = both(Planted::FenceIgnored, two_runners);
    assert_eq!(right, (Err(ErrorKind::Fenced), ints([1, 2])));
    assert_eq!(wrong, (Ok(()), ints([1, 1, 2])));
}

#[test]
fn a_stale_runner_blames_the_target_when_the_fence_is_not_raised() {
    let [right, wrong] = both(Planted::FenceNotRaised, two_runners);
    assert_eq!(right.0, Err(ErrorKind::Fenced));
    assert_eq!(wrong.0, Err(ErrorKind::InvalidData));
}

#[test]
fn rows_of_a_batch_that_was_given_up_are_there_when_its_files_are_kept() {
    let held = both(Planted::AbortedStagingVisible, async || {
        let store = Watched::default();
        let spec = orders();
        let sink = open(&store.dynamic(), settings(), 1);
        let mut table = sink.attach(&spec).await.unwrap().table;
        table.stage(rows(&spec, 1)).await.unwrap();
        table.discard().await.unwrap();
        let mut again = sink.attach(&spec).await.unwrap().table;
        again.stage(rows(&spec, 1)).await.unwrap();
        again.commit(commit(1)).await.unwrap();
        ids(&store).await
    });
    assert_eq!(held, [ints([1]), ints([1, 1])]);
}

#[test]
fn the_old_key_stays_when_its_delete_is_dropped() {
    let operations = both(Planted::KeyDeleteLost, async || {
        let store = Watched::default();
        let spec = orders();
        let mut table = open(&store.dynamic(), settings(), 1).attach(&spec).await.unwrap().table;
        let moved = Feed::new(&spec.columns).delete(10, order(1)).insert(10, order(2));
        table.stage(moved.changes().unwrap()).await.unwrap();
        table.commit(commit(1)).await.unwrap();
        column(&store.dynamic(), &place("bronze/orders"), "_operation").await
    });
    assert_eq!(operations, [ints([1, 2]), ints([2])]);
}

#[test]
fn the_files_of_a_commit_are_gone_when_they_are_removed_in_doubt() {
    let files = both(Planted::StagingRemovedInDoubt, async || {
        let put = put_of_commit().await;
        let store = Watched::default();
        store.fail_at(put, Fault::ReplyLost);
        store.fail_at(put + 1, Fault::Lost);
        let error = first_batch(&store, 1).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.report());
        let dir = object_store::path::Path::from("lake/bronze/orders");
        let all: Vec<_> = store.dynamic().list(Some(&dir)).try_collect().await.unwrap();
        let data = |name: &str| name.ends_with(".parquet");
        let files = all.iter().filter(|file| data(file.location.as_ref())).count();
        let named = delta(&store.dynamic(), &place("bronze/orders")).await;
        assert_eq!(named.snapshot().unwrap().log_data().num_files(), 1);
        files
    });
    assert_eq!(files, [1, 0]);
}

#[test]
fn a_batch_has_no_facts_when_an_attach_does_not_repair_them() {
    let batches = both(Planted::FactsNotRepaired, async || {
        let store = Watched::default();
        store.fail_at(put_of_commit().await, Fault::DeadAfter);
        first_batch(&store, 1).await.map(drop).unwrap_err();
        let store = store.process().dynamic();
        open(&store, settings(), 2).attach(&orders()).await.unwrap();
        cells(&read(&store, &place("facts")).await, "batch_id")
    });
    assert_eq!(batches, [ints([1]), ints([])]);
}

#[test]
fn a_verdict_beyond_the_mark_is_taken_when_it_comes_before_its_commit() {
    let taken = both(Planted::VerdictBeforeCommit, async || {
        let mut table = first_batch(&Watched::default(), 1).await.unwrap();
        let end = Stamp { position: mark(2).end, commit_time: mark(2).commit_time };
        let verdict = Verdict { finalized_until: end.commit_time, end };
        table.publish(verdict).await.map_err(|error| error.kind())
    });
    assert_eq!(taken[0], Err(ErrorKind::Bug));
    assert!(taken[1].is_ok());
}
