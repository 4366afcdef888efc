//! The Delta sink without an engine before it: batches from memory, staged and committed.

use std::{path::Path, sync::Arc};

use arrow_array::RecordBatch;
use cdc_core::{
    BatchFacts, Commit, Committed, InstanceName, Mark, Origin, Stamp, TableBatch, TableSpec,
    Verdict,
    mark::next_sequence,
    port::{Clock, Sink, TableSink},
};
use cdc_delta::{DeltaConfig, DeltaSink, KernelCalls};
use cdc_fake::SeededEntropy;

use crate::{Outcome, machine::RealClock};

/// A sink on local files, as another process would open it: a seed for each.
pub(crate) fn sink(root: &Path, calls: KernelCalls, seed: u64) -> Outcome<DeltaSink> {
    let mut config = DeltaConfig::new(root.to_string_lossy());
    config.kernel_calls = calls;
    Ok(DeltaSink::new(config, Arc::new(RealClock), Arc::new(SeededEntropy::new(seed)))?)
}

/// A table in the hands of its one writer.
pub(crate) struct Feeder {
    table: Box<dyn TableSink>,
    instance: InstanceName,
    mark: Option<Mark>,
    rows: u64,
}

impl Feeder {
    /// Attaches the table.
    pub(crate) async fn attach(sink: &dyn Sink, spec: &TableSpec) -> Outcome<Self> {
        let attached = sink.attach(spec).await?;
        let instance = InstanceName::new(&format!("dbo_{}", spec.name));
        Ok(Self { table: attached.table, instance, mark: attached.state.mark, rows: 0 })
    }

    /// Stages change rows.
    pub(crate) async fn stage(&mut self, records: &RecordBatch) -> Outcome<()> {
        self.rows += records.num_rows() as u64;
        let (instance, records) = (self.instance.clone(), records.clone());
        Ok(self.table.stage(TableBatch { instance, origin: Origin::Changes, records }).await?)
    }

    /// Commits what is staged with the next mark, which ends at `end`.
    pub(crate) async fn commit(&mut self, end: Stamp) -> Outcome<()> {
        let sequence = next_sequence(self.mark.as_ref());
        let mark = Mark {
            sequence,
            end: end.position,
            commit_time: end.commit_time,
            entry_time: end.commit_time,
            generation: 0,
        };
        let mut facts = BatchFacts::begun(RealClock.now());
        facts.counts.rows = std::mem::take(&mut self.rows);
        let done = self.table.commit(Commit { mark, facts, events: Vec::new() }).await?;
        if done != Committed::Now {
            return Err("a new mark was taken for an old one".into());
        }
        self.mark = Some(mark);
        Ok(())
    }

    /// Publishes what the last mark makes final.
    pub(crate) async fn publish(&mut self) -> Outcome<()> {
        let mark = self.mark.ok_or("nothing was committed")?;
        let end = Stamp { position: mark.end, commit_time: mark.commit_time };
        self.table.publish(Verdict { finalized_until: mark.commit_time, end }).await?;
        Ok(())
    }

    /// The commits of the table that had a mark.
    pub(crate) fn sequence(&self) -> u64 {
        self.mark.map_or(0, |mark| mark.sequence)
    }
}
