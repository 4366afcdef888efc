//! A sink that keeps its tables in memory.
//!
//! A [`MemoryTarget`] stands for what would be durable: it outlives the sinks that are opened on
//! it, and fences their tables like any other target. Every committed batch is kept, so that a
//! test can look at each version a reader could have seen.

mod latest;
mod rows;
mod table;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_core::{
    BatchEvent, BatchFacts, Column, Error, ErrorKind, Mark, Result, TableName, TableSpec,
    port::{Attached, Sink, SinkCapabilities, TargetState},
};
use table::MemoryTable;

/// One durable commit of a table.
#[derive(Clone, Debug)]
pub struct MemoryCommit {
    /// The mark that became durable.
    pub mark: Mark,
    /// What the batch was and how it went.
    pub facts: BatchFacts,
    /// What happened at the source inside the batch.
    pub events: Vec<BatchEvent>,
    /// Rows that became visible.
    pub rows: usize,
    batches: Vec<RecordBatch>,
}

/// What is durable of one table.
#[derive(Debug)]
struct Stored {
    source: TableName,
    columns: Vec<Column>,
    key: Vec<String>,
    /// Counts the attaches; the last one owns the table.
    owner: u64,
    /// The sink through which the last attach came; 0 before the first.
    handle: u64,
    state: TargetState,
    commits: Vec<MemoryCommit>,
}

#[derive(Debug)]
struct Inner {
    capabilities: SinkCapabilities,
    staged_bytes_max: u64,
    tables: Mutex<BTreeMap<String, Stored>>,
    /// Counts the sinks that were opened, from 1.
    handles: AtomicU64,
}

/// A place in memory that keeps tables and their marks. Clones are the same place.
#[derive(Clone, Debug)]
pub struct MemoryTarget(Arc<Inner>);

/// A sink on a [`MemoryTarget`], as one process opens it.
#[derive(Clone, Debug)]
pub struct MemorySink {
    target: MemoryTarget,
    handle: u64,
}

impl Default for MemoryTarget {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryTarget {
    /// Most bytes that one table stages by default: more than any test means to.
    pub const STAGED_BYTES_MAX: u64 = 1 << 30;

    /// An empty history with every capability.
    #[must_use]
    pub fn new() -> Self {
        Self::with_capabilities(SinkCapabilities::least().with_add_columns().with_verdict())
    }

    /// An empty target with these capabilities. It refuses what is not among them.
    #[must_use]
    pub fn with_capabilities(capabilities: SinkCapabilities) -> Self {
        Self(Arc::new(Inner {
            capabilities,
            staged_bytes_max: Self::STAGED_BYTES_MAX,
            tables: Mutex::default(),
            handles: AtomicU64::new(1),
        }))
    }

    /// An empty target like this one whose tables stage at most `bytes` for one commit; a larger
    /// commit is refused as `Config`, since memory is all this sink has.
    #[must_use]
    pub fn with_staged_bytes_max(&self, bytes: u64) -> Self {
        Self(Arc::new(Inner {
            capabilities: self.0.capabilities,
            staged_bytes_max: bytes,
            tables: Mutex::default(),
            handles: AtomicU64::new(1),
        }))
    }

    /// A sink on this target.
    #[must_use]
    pub fn open(&self) -> MemorySink {
        let handle = self.0.handles.fetch_add(1, Ordering::Relaxed);
        MemorySink { target: self.clone(), handle }
    }

    /// The names of the tables that were attached, in order.
    #[must_use]
    pub fn tables(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
    }

    /// What is durable of a table; none when it was never attached.
    #[must_use]
    pub fn state(&self, table: &str) -> Option<TargetState> {
        self.lock().get(table).map(|stored| stored.state)
    }

    /// The table's columns in the order in which they were added.
    #[must_use]
    pub fn columns(&self, table: &str) -> Vec<Column> {
        self.lock().get(table).map(|stored| stored.columns.clone()).unwrap_or_default()
    }

    /// Every durable commit of a table, oldest first.
    #[must_use]
    pub fn commits(&self, table: &str) -> Vec<MemoryCommit> {
        self.lock().get(table).map(|stored| stored.commits.clone()).unwrap_or_default()
    }

    /// How many commits a table has: the version that a reader sees now.
    #[must_use]
    pub fn version(&self, table: &str) -> usize {
        self.lock().get(table).map_or(0, |stored| stored.commits.len())
    }

    /// What a reader sees of a table now. See [`MemoryTarget::rows_at`].
    ///
    /// # Errors
    /// As for [`MemoryTarget::rows_at`].
    pub fn rows(&self, table: &str) -> Result<Vec<RecordBatch>> {
        self.rows_at(table, usize::MAX)
    }

    /// What a reader saw after the first `version` commits, with the columns that the table has
    /// now. A history shows the leading columns of bronze, then the captured ones; one row a key
    /// shows the captured ones alone. Nothing for a table that was never attached.
    ///
    /// # Errors
    /// `Bug` when stored rows do not fit their own table.
    pub fn rows_at(&self, table: &str, version: usize) -> Result<Vec<RecordBatch>> {
        let tables = self.lock();
        let Some(stored) = tables.get(table) else {
            return Ok(Vec::new());
        };
        let commits = stored.commits.iter().take(version);
        let batches: Vec<_> = commits.flat_map(|commit| &commit.batches).collect();
        if self.0.capabilities.keeps_history {
            let schema = rows::table_schema(&stored.columns)?;
            let whole = batches.into_iter();
            return whole.map(|batch| rows::widen(batch, &schema)).collect();
        }
        Ok(vec![latest::latest(&batches, &stored.columns, &stored.key)?])
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Stored>> {
        self.0.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Sink for MemorySink {
    fn capabilities(&self) -> SinkCapabilities {
        self.target.0.capabilities
    }

    async fn attach(&self, spec: &TableSpec) -> Result<Attached> {
        // Every column has a form before anything is written.
        rows::table_schema(&spec.columns)?;
        if !self.capabilities().keeps_history && spec.key.is_empty() {
            return Err(Error::new(ErrorKind::Unsupported, "one row a key needs a key")
                .with("table", &spec.name)
                .remedy("name the key columns in the table's settings"));
        }
        let mut tables = self.target.lock();
        let stored = tables.entry(spec.name.clone()).or_insert_with(|| Stored::new(spec));
        stored.admit(spec)?;
        stored.owner = stored.owner.saturating_add(1);
        stored.handle = self.handle;
        Ok(Attached {
            table: Box::new(MemoryTable::new(self.target.clone(), spec.name.clone(), stored.owner)),
            state: stored.state,
        })
    }

    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>> {
        let tables = self.target.lock();
        let Some(stored) = tables.get(&spec.name) else {
            return Ok(None);
        };
        stored.belongs_to(spec)?;
        Ok(Some(stored.state))
    }

    async fn is_superseded(&self, spec: &TableSpec) -> Result<bool> {
        let tables = self.target.lock();
        Ok(tables.get(&spec.name).is_some_and(|stored| stored.handle != self.handle))
    }
}

impl Stored {
    fn new(spec: &TableSpec) -> Self {
        Self {
            source: spec.source.clone(),
            columns: spec.columns.clone(),
            key: spec.key.clone(),
            owner: 0,
            handle: 0,
            state: TargetState::default(),
            commits: Vec::new(),
        }
    }

    fn belongs_to(&self, spec: &TableSpec) -> Result<()> {
        if self.source == spec.source {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Config, "the target holds another source table")
            .with("table", &spec.name)
            .with("source", &spec.source)
            .with("found", &self.source)
            .remedy("give each source table a target of its own"))
    }

    /// Fails when the table belongs to something else or cannot take the spec's values.
    fn admit(&self, spec: &TableSpec) -> Result<()> {
        self.belongs_to(spec)?;
        for column in &spec.columns {
            if let Some(own) = self.column(&column.name) {
                rows::fits(&spec.name, column, own)?;
            }
        }
        Ok(())
    }

    fn column(&self, name: &str) -> Option<&Column> {
        let folded = name.to_lowercase();
        self.columns.iter().find(|column| column.name.to_lowercase() == folded)
    }
}
