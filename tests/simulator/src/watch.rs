//! A sink between the engine and the faults that looks at what the engine hands over.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use arrow_array::{Array, FixedSizeBinaryArray};
use async_trait::async_trait;
use cdc_core::{
    Column, Commit, Committed, Result, TableBatch, TableSpec, Verdict,
    change::{ChangeColumns, Operation},
    port::{Attached, Sink, SinkCapabilities, TableSink, TargetState},
};

use crate::{invariant::Invariant, record::Record};

/// What a runner may have in hand at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Rows of a record batch, without the second image of an update.
    pub batch_rows: u64,
    /// Rows of a batch before its last commit.
    pub rows_max: u64,
    /// Tables with staged rows.
    pub tables_at_once: usize,
}

/// A sink that checks what is handed over.
pub struct WatchedSink {
    inner: Arc<dyn Sink>,
    record: Record,
    allowance: Allowance,
    in_hand: Arc<Mutex<BTreeSet<String>>>,
}

impl WatchedSink {
    /// A sink before `inner`.
    #[must_use]
    pub fn new(inner: Arc<dyn Sink>, record: &Record, allowance: Allowance) -> Self {
        Self { inner, record: record.clone(), allowance, in_hand: Arc::default() }
    }
}

#[async_trait]
impl Sink for WatchedSink {
    fn capabilities(&self) -> SinkCapabilities {
        self.inner.capabilities()
    }

    async fn attach(&self, spec: &TableSpec) -> Result<Attached> {
        let attached = self.inner.attach(spec).await?;
        let table = WatchedTable {
            inner: attached.table,
            name: spec.name.clone(),
            record: self.record.clone(),
            allowance: self.allowance,
            hand: Hand { tables: Arc::clone(&self.in_hand), name: spec.name.clone() },
            staged: Staged::default(),
        };
        Ok(Attached { table: Box::new(table), state: attached.state })
    }

    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>> {
        self.inner.inspect(spec).await
    }

    async fn is_superseded(&self, spec: &TableSpec) -> Result<bool> {
        self.inner.is_superseded(spec).await
    }
}

/// The place of one table among those in hand; given back when the table goes.
struct Hand {
    tables: Arc<Mutex<BTreeSet<String>>>,
    name: String,
}

impl Hand {
    fn tables(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> usize {
        let mut tables = self.tables();
        tables.insert(self.name.clone());
        tables.len()
    }

    fn give_back(&self) {
        self.tables().remove(&self.name);
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// What is staged and not committed.
#[derive(Default)]
struct Staged {
    rows: u64,
    /// Rows before the last commit.
    before_last: u64,
    last: Option<Vec<u8>>,
}

impl Staged {
    fn add(&mut self, commits: &FixedSizeBinaryArray) {
        for row in 0..commits.len() {
            let commit = commits.value(row);
            if self.last.as_deref() != Some(commit) {
                self.before_last = self.rows;
                self.last = Some(commit.to_vec());
            }
            self.rows += 1;
        }
    }
}

struct WatchedTable {
    inner: Box<dyn TableSink>,
    name: String,
    record: Record,
    allowance: Allowance,
    hand: Hand,
    staged: Staged,
}

impl WatchedTable {
    fn look(&mut self, batch: &TableBatch) -> Result<()> {
        let columns = ChangeColumns::of(&batch.records)?;
        let operations: Vec<i32> = columns.operations.values().to_vec();
        let whole = pairs_are_whole(&operations);
        self.record.check(whole, Invariant::PairWhole, || {
            format!("{}: staged operations {operations:?}", self.name)
        });
        let rows = batch.records.num_rows() as u64;
        let allowance = self.allowance;
        self.record.check(rows <= allowance.batch_rows + 1, Invariant::Limits, || {
            format!("{}: {rows} rows in a batch of {}", self.name, allowance.batch_rows)
        });
        self.staged.add(columns.commits);
        let before = self.staged.before_last;
        self.record.check(before < allowance.rows_max, Invariant::Limits, || {
            format!("{}: {before} rows and another commit in one batch", self.name)
        });
        let tables = self.hand.take();
        self.record.check(tables <= allowance.tables_at_once, Invariant::Limits, || {
            format!("{tables} tables have staged rows")
        });
        Ok(())
    }

    fn forget(&mut self) {
        self.staged = Staged::default();
        self.hand.give_back();
    }
}

fn pairs_are_whole(operations: &[i32]) -> bool {
    let (before, after) = (Operation::UpdateBefore.code(), Operation::UpdateAfter.code());
    let mut open = false;
    for operation in operations {
        if open != (*operation == after) {
            return false;
        }
        open = *operation == before;
    }
    !open
}

#[async_trait]
impl TableSink for WatchedTable {
    async fn evolve(&mut self, columns: &[Column]) -> Result<()> {
        self.inner.evolve(columns).await
    }

    async fn stage(&mut self, batch: TableBatch) -> Result<()> {
        self.look(&batch)?;
        self.inner.stage(batch).await
    }

    async fn commit(&mut self, commit: Commit) -> Result<Committed> {
        let committed = self.inner.commit(commit).await?;
        self.forget();
        Ok(committed)
    }

    async fn discard(&mut self) -> Result<()> {
        self.forget();
        self.inner.discard().await
    }

    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict> {
        self.inner.publish(verdict).await
    }

    async fn close(self: Box<Self>) -> Result<()> {
        let Self { inner, hand, .. } = *self;
        drop(hand);
        inner.close().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_whole_when_its_images_follow_each_other_in_one_batch() {
        for whole in [&[][..], &[3, 4], &[1, 2, 3, 4, 3, 4, 2]] {
            assert!(pairs_are_whole(whole), "{whole:?}");
        }
        for cut in [&[3][..], &[4], &[3, 2, 4], &[2, 3], &[4, 3], &[3, 3, 4]] {
            assert!(!pairs_are_whole(cut), "{cut:?}");
        }
    }
}
