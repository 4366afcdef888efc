//! What a commit costs, counted in requests and bytes, and what staging holds in memory.

use std::sync::Arc;

use cdc_conformance::Cell;
use cdc_core::port::Sink;
use object_store::{ObjectStore, memory::InMemory};

use crate::{
    store::Watched,
    support::{block_on, column, commit, delta, mark, open, orders, place, rows, settings},
};

#[test]
fn the_cost_of_a_commit_does_not_grow_with_the_history() {
    let store = Watched::default();
    let mut config = settings();
    config.checkpoint_interval = 20;
    let sink = open(&store.dynamic(), config, 1);
    let spec = orders();
    let costs: Vec<(u64, u64)> = block_on(async {
        let mut table = sink.attach(&spec).await.unwrap().table;
        let mut costs = Vec::new();
        for sequence in 1..=200 {
            let before = (store.requests(), store.bytes());
            table.stage(rows(&spec, sequence)).await.unwrap();
            table.commit(commit(sequence)).await.unwrap();
            costs.push((store.requests() - before.0, store.bytes() - before.1));
        }
        costs
    });
    // For bronze and facts each a data file, a file of the log, and a look whether the log is
    // still there.
    let usual = costs.iter().filter(|(requests, _)| *requests == 6).count();
    assert!(usual >= 175, "{costs:?}");
    let plain: Vec<_> = costs.iter().filter(|(requests, _)| *requests == 6).collect();
    let (least, most) = (plain[0].1, plain[plain.len() - 1].1);
    assert!(most < least + least / 20, "{least} -> {most} bytes");
    // A checkpoint reads the log since the last one, in both tables.
    let greatest = |part: &[(u64, u64)]| part.iter().map(|cost| cost.0).max().unwrap();
    let (first, second) = (greatest(&costs[..100]), greatest(&costs[100..]));
    assert!(second <= first && first <= 2 * (20 + 20), "{first} -> {second} requests");
}

#[test]
fn an_attach_reads_no_more_after_many_checkpoints() {
    let store = Watched::default();
    let mut config = settings();
    config.checkpoint_interval = 10;
    let spec = orders();
    block_on(async {
        let sink = open(&store.dynamic(), config.clone(), 1);
        let mut table = sink.attach(&spec).await.unwrap().table;
        let mut costs = Vec::new();
        for sequence in 1..=100 {
            table.stage(rows(&spec, sequence)).await.unwrap();
            table.commit(commit(sequence)).await.unwrap();
            if sequence == 20 || sequence == 100 {
                let process = store.process();
                let newer = open(&process.dynamic(), config.clone(), 2);
                newer.inspect(&spec).await.unwrap();
                costs.push(process.requests());
            }
        }
        assert!(costs[1] <= costs[0] + 2, "{costs:?}");
    });
}

#[test]
fn an_attach_reads_each_log_once_and_asks_little_else() {
    let store = Watched::default();
    let mut config = settings();
    config.checkpoint_interval = 10;
    let spec = orders();
    block_on(async {
        let sink = open(&store.dynamic(), config.clone(), 1);
        let mut table = sink.attach(&spec).await.unwrap().table;
        for sequence in 1..=27 {
            table.stage(rows(&spec, sequence)).await.unwrap();
            table.commit(commit(sequence)).await.unwrap();
        }
        let end = cdc_core::Stamp { position: mark(27).end, commit_time: None };
        let verdict = cdc_core::Verdict { finalized_until: None, end };
        table.publish(verdict).await.unwrap();
        let process = store.process();
        let newer = open(&process.dynamic(), config, 2);
        drop(newer.attach(&spec).await.unwrap());
        let said = process.said();
        for dir in ["bronze/orders", "facts", "control"] {
            let of: Vec<_> = said.iter().filter(|said| said.contains(dir)).collect();
            let is_log = |said: &str| said.contains("/_delta_log") && !said.starts_with("put ");
            let (log, others): (Vec<_>, Vec<_>) = of.into_iter().partition(|said| is_log(said));
            let mut once = log.clone();
            once.sort();
            once.dedup();
            assert_eq!(log.len(), once.len(), "{dir} is read again: {log:?}");
            // The fence; the data file of the verdict, in three parts.
            let most = [("bronze/orders", 1), ("facts", 0), ("control", 3)];
            assert!(most.contains(&(dir, others.len())), "{dir}: {others:?}");
        }
    });
}

#[test]
fn a_huge_commit_is_one_version_of_several_files() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let mut config = settings();
    config.file_bytes_max = 20_000;
    config.row_group_bytes = 4_000;
    config.upload_part_bytes = 5_000;
    let sink = open(&store, config, 1);
    let spec = orders();
    block_on(async {
        let mut table = sink.attach(&spec).await.unwrap().table;
        let version = |table: &deltalake::DeltaTable| table.version().unwrap();
        let before = version(&delta(&store, &place("bronze/orders")).await);
        for batch in 0..40i64 {
            let mut feed = cdc_conformance::Feed::new(&spec.columns);
            for row in 0..100 {
                // Text that does not compress.
                let id = batch * 100 + row;
                let name = format!("{:x}", (id as u128 + 7).wrapping_pow(40));
                feed = feed.insert(10, vec![Cell::Int(id), Cell::text(name)]);
            }
            table.stage(feed.changes().unwrap()).await.unwrap();
            let seen = delta(&store, &place("bronze/orders")).await;
            assert_eq!(version(&seen), before, "staged rows are invisible");
        }
        table.commit(commit(1)).await.unwrap();
        let seen = delta(&store, &place("bronze/orders")).await;
        assert_eq!(version(&seen), before + 1);
        let files = seen.snapshot().unwrap().log_data().num_files();
        assert!(files > 2, "{files} files");
        let ids = column(&store, &place("bronze/orders"), "id").await;
        assert_eq!(ids, crate::support::ints(0..4000));
    });
}

#[test]
fn staging_holds_a_row_group_and_the_parts_on_their_way_and_no_more() {
    let store = Watched::default();
    let mut config = settings();
    config.row_group_bytes = 64 << 10;
    config.row_group_rows = 4_000;
    config.upload_part_bytes = 16 << 10;
    config.upload_parts = 2;
    let held_max = (config.row_group_bytes + 3 * config.upload_part_bytes) as u64;
    let sink = open(&store.dynamic(), config, 1);
    let spec = orders();
    block_on(async {
        let mut table = sink.attach(&spec).await.unwrap().table;
        let before = store.bytes();
        for batch in 0..60i64 {
            let mut feed = cdc_conformance::Feed::new(&spec.columns);
            for row in 0..1_000 {
                let id = batch * 1_000 + row;
                let name = format!("{:x}", (id as u128 + 7).wrapping_pow(41));
                feed = feed.insert(10, vec![Cell::Int(id), Cell::text(name)]);
            }
            table.stage(feed.changes().unwrap()).await.unwrap();
        }
        let staged = store.bytes() - before;
        table.commit(commit(1)).await.unwrap();
        let all = store.bytes() - before;
        assert!(all > 10 * held_max, "{all} bytes prove little");
        // What came with the commit: the rest of the file, its footer, two versions, facts.
        let held = all - staged;
        assert!(held <= held_max + (32 << 10), "{held} of {all} bytes were held");
    });
}

#[test]
fn what_is_discarded_leaves_no_file() {
    use futures_util::TryStreamExt;
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let mut config = settings();
    config.file_bytes_max = 1;
    let sink = open(&store, config, 1);
    let spec = orders();
    block_on(async {
        let mut table = sink.attach(&spec).await.unwrap().table;
        let files = async || {
            let all: Vec<_> = store.list(None).try_collect().await.unwrap();
            all.into_iter().filter(|meta| meta.location.as_ref().ends_with(".parquet")).count()
        };
        table.stage(rows(&spec, 1)).await.unwrap();
        table.stage(rows(&spec, 1)).await.unwrap();
        assert_eq!(files().await, 2);
        table.discard().await.unwrap();
        assert_eq!(files().await, 0);
    });
}
