//! One table of an in-memory sink, as its runner holds it.

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_core::{
    Column, Commit, Committed, Error, ErrorKind, Mark, Result, TableBatch, Verdict,
    mark::next_sequence, port::TableSink,
};

use super::{MemoryCommit, MemoryTarget, Stored, rows};

/// One runner's hold on a table. What it has staged is nowhere else.
pub(super) struct MemoryTable {
    target: MemoryTarget,
    name: String,
    owner: u64,
    staged: Vec<RecordBatch>,
    staged_bytes: u64,
}

impl MemoryTable {
    pub(super) const fn new(target: MemoryTarget, name: String, owner: u64) -> Self {
        Self { target, name, owner, staged: Vec::new(), staged_bytes: 0 }
    }

    /// Runs `step` on what is durable, unless a newer runner owns it.
    fn owned<T>(&self, step: impl FnOnce(&mut Stored) -> Result<T>) -> Result<T> {
        let mut tables = self.target.lock();
        let stored = tables
            .get_mut(&self.name)
            .ok_or_else(|| Error::bug("attached table is gone").with("table", &self.name))?;
        if stored.owner != self.owner {
            return Err(Error::new(ErrorKind::Fenced, "a newer runner attached the table")
                .with("table", &self.name));
        }
        step(stored)
    }

    fn clear(&mut self) {
        self.staged = Vec::new();
        self.staged_bytes = 0;
    }

    fn unsupported(&self, what: &str) -> Error {
        Error::new(ErrorKind::Unsupported, what).with("table", &self.name)
    }
}

#[async_trait]
impl TableSink for MemoryTable {
    async fn evolve(&mut self, columns: &[Column]) -> Result<()> {
        if !self.target.0.capabilities.add_columns {
            return Err(self.unsupported("the target's columns are fixed"));
        }
        self.owned(|stored| {
            // Checked as a whole before the first is added.
            let mut after = stored.columns.clone();
            for column in columns {
                match stored.column(&column.name) {
                    Some(own) => rows::fits(&self.name, column, own)?,
                    None => {
                        column.field().map_err(|error| error.with("table", &self.name))?;
                        let folded = column.name.to_lowercase();
                        if !after.iter().any(|own| own.name.to_lowercase() == folded) {
                            after.push(column.clone());
                        }
                    }
                }
            }
            stored.columns = after;
            Ok(())
        })
    }

    async fn stage(&mut self, batch: TableBatch) -> Result<()> {
        let rows = self.owned(|stored| rows::stored(&self.name, &stored.columns, &batch))?;
        let bytes = u64::try_from(rows.get_array_memory_size()).unwrap_or(u64::MAX);
        let total = self.staged_bytes.saturating_add(bytes);
        if total > self.target.0.staged_bytes_max {
            return Err(Error::new(ErrorKind::Config, "a commit is larger than the sink's memory")
                .with("table", &self.name)
                .with("setting", "staged_bytes_max")
                .with("value", self.target.0.staged_bytes_max)
                .remedy("raise staged_bytes_max, or use a sink that stages outside memory"));
        }
        self.staged_bytes = total;
        self.staged.push(rows);
        Ok(())
    }

    async fn commit(&mut self, commit: Commit) -> Result<Committed> {
        let staged = std::mem::take(&mut self.staged);
        self.staged_bytes = 0;
        self.owned(|stored| {
            if follows(&self.name, stored.state.mark.as_ref(), &commit.mark)? == Committed::Before {
                return Ok(Committed::Before);
            }
            stored.state.mark = Some(commit.mark);
            stored.commits.push(MemoryCommit {
                mark: commit.mark,
                facts: commit.facts,
                events: commit.events,
                rows: staged.iter().map(RecordBatch::num_rows).sum(),
                batches: staged,
            });
            Ok(Committed::Now)
        })
    }

    async fn discard(&mut self) -> Result<()> {
        self.clear();
        Ok(())
    }

    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict> {
        if !self.target.0.capabilities.stores_verdict {
            return Err(self.unsupported("the target stores no verdict"));
        }
        self.owned(|stored| {
            let before = stored.state.verdict.and_then(|old| old.finalized_until);
            let reached = stored.state.mark.and_then(|mark| mark.commit_time);
            let ahead = verdict.finalized_until > before.max(reached);
            let past = stored.state.mark.is_none_or(|mark| verdict.end.position > mark.end);
            if ahead || past {
                return Err(Error::bug("verdict is beyond the durable mark")
                    .with("table", &self.name)
                    .with("position", verdict.end.position));
            }
            let kept =
                Verdict { finalized_until: before.max(verdict.finalized_until), end: verdict.end };
            stored.state.verdict = Some(kept);
            Ok(kept)
        })
    }

    async fn close(mut self: Box<Self>) -> Result<()> {
        self.clear();
        Ok(())
    }
}

/// What a commit of `mark` does behind the durable one, or why it may not follow.
fn follows(table: &str, durable: Option<&Mark>, mark: &Mark) -> Result<Committed> {
    let bug = |message: &str| {
        Error::bug(message)
            .with("table", table)
            .with("position", mark.end)
            .with("sequence", mark.sequence)
            .with("durable", durable.map_or(0, |durable| durable.sequence))
    };
    if let Some(durable) = durable.filter(|durable| durable.sequence == mark.sequence) {
        return if durable.end == mark.end && durable.generation == mark.generation {
            Ok(Committed::Before)
        } else {
            Err(bug("another mark with this sequence is durable"))
        };
    }
    if mark.sequence != next_sequence(durable) {
        return Err(bug("mark does not follow the durable one"));
    }
    match durable {
        Some(durable) if mark.generation < durable.generation => {
            Err(bug("generation of the mark goes back"))
        }
        Some(durable) if mark.generation == durable.generation && mark.end < durable.end => {
            Err(bug("end of the mark goes back"))
        }
        _ => Ok(Committed::Now),
    }
}
