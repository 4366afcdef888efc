//! The log of one Delta table: snapshots, `txn` entries, commits, checkpoints.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use arrow_schema::SchemaRef as ArrowSchema;
use cdc_core::{
    Error, ErrorKind, Result,
    port::{Clock, Entropy},
};
use delta_kernel::{
    DeltaResult, Engine, FilteredEngineData, Snapshot,
    actions::LOG_TXN_SCHEMA,
    engine::{arrow_conversion::TryIntoArrow, arrow_data::ArrowEngineData},
    schema::{SchemaRef, StructField},
    snapshot::SnapshotRef,
    transaction::{CommitResult, Transaction, create_table::create_table},
};
use object_store::{ObjectStore, ObjectStoreExt};

use crate::{
    commit::{DataFile, Frame, LogFile, added},
    config::DeltaConfig,
    fault,
    kernel::{Kernel, blocking},
    mark::for_each_entry,
    migration::occupied,
    recall::Recall,
    staging::Staging,
    store::{Content, Place},
};

/// How commits name their writer.
pub(crate) const ENGINE: &str = concat!("cdc/", env!("CARGO_PKG_VERSION"));

/// What a sink's tables share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) config: Arc<DeltaConfig>,
    pub(crate) kernel: Kernel,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// The number that this sink drew to be told from others.
    pub(crate) runner: i64,
}

impl Shared {
    /// Milliseconds since 1970-01-01.
    pub(crate) fn now_ms(&self) -> i64 {
        self.clock.now().as_micros().div_euclid(1_000)
    }

    /// Waits before attempt `attempt` (from 1) of something that others do at the same time:
    /// anywhere between nothing and the full pause, so that they do not meet again.
    pub(crate) async fn pause(&self, attempt: u32) {
        let full = self
            .config
            .commit_pause_ms
            .saturating_mul(1 << attempt.saturating_sub(1).min(16))
            .min(self.config.commit_pause_ms_max);
        let part = self.entropy.next_u64() % full.saturating_add(1);
        self.clock.sleep(Duration::from_millis(part)).await;
    }
}

/// What a commit does.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) operation: &'static str,
    pub(crate) add: Vec<DataFile>,
    pub(crate) remove: Vec<FilteredEngineData>,
    /// Columns to append to the schema. A commit that has some takes no files.
    pub(crate) columns: Vec<StructField>,
    pub(crate) entries: Vec<(String, i64)>,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) user_metadata: Option<String>,
}

/// How a new table begins.
pub(crate) struct Birth {
    pub(crate) schema: SchemaRef,
    pub(crate) comment: String,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) entries: Vec<(String, i64)>,
}

/// What became of a commit.
pub(crate) enum Outcome {
    /// It is in the log. The snapshot is the one it made.
    Landed(SnapshotRef),
    /// A commit has its version: somebody else's, or its own twin, when the store's client sent
    /// the put again by itself after an answer that was lost.
    Taken,
    /// It may have happened or may still happen.
    Unknown(Error),
}

/// What a data file of a table must look like.
#[derive(Clone)]
pub(crate) struct Layout {
    /// The columns by the names that readers see.
    pub(crate) logical: ArrowSchema,
    /// The columns by the names that files hold, in the same order.
    pub(crate) physical: ArrowSchema,
    /// File names of the columns that statistics are kept of.
    pub(crate) measured: Arc<BTreeSet<String>>,
}

/// The log of one table.
#[derive(Clone)]
pub(crate) struct Log {
    pub(crate) shared: Shared,
    pub(crate) place: Place,
    /// Commits between two checkpoints.
    interval: u64,
}

impl Log {
    pub(crate) fn new(shared: Shared, place: Place) -> Self {
        let interval = shared.config.checkpoint_interval;
        Self { shared, place, interval }
    }

    /// The same log for one step, which reads each of its commits once.
    pub(crate) fn recalling(&self) -> Self {
        let store: Arc<dyn ObjectStore> = Arc::new(Recall::new(Arc::clone(&self.place.store)));
        let mut log = self.clone();
        log.shared.kernel = self.shared.kernel.over(Arc::clone(&store));
        log.place.store = store;
        log
    }

    /// With checkpoints at least every `commits` commits.
    pub(crate) fn checkpointed_every(mut self, commits: u64) -> Self {
        self.interval = self.interval.min(commits);
        self
    }

    fn fault(&self, error: delta_kernel::Error) -> Error {
        fault::kernel(error, &self.place)
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<dyn Engine>) -> DeltaResult<T> + Send + 'static,
    ) -> Result<T> {
        let result = self.shared.kernel.run(work).await?;
        result.map_err(|error| self.fault(error))
    }

    /// The newest snapshot; none when there is no table yet. Writes nothing.
    ///
    /// # Errors
    /// `Config` when the directory holds something else.
    pub(crate) async fn find(&self) -> Result<Option<SnapshotRef>> {
        // What the directory holds is asked only when it is not a table as a rule.
        if let Ok(snapshot) = self.open().await {
            return Ok(Some(snapshot));
        }
        match self.place.content().await? {
            Content::Nothing => Ok(None),
            Content::Files => Err(occupied(self, "holds files that are no Delta table")),
            // Somebody may have created it in between; or the second error is as true.
            Content::Table => self.open().await.map(Some),
        }
    }

    /// The newest snapshot of an existing table.
    pub(crate) async fn open(&self) -> Result<SnapshotRef> {
        let url = self.place.url.clone();
        self.run(move |engine| Snapshot::builder_for(url).build(engine.as_ref())).await
    }

    /// The snapshot of a version that a commit made. Commits may stand above it already.
    async fn open_at(&self, made: &SnapshotRef) -> Result<SnapshotRef> {
        let (url, version) = (self.place.url.clone(), made.version());
        self.run(move |engine| {
            Snapshot::builder_for(url).at_version(version).build(engine.as_ref())
        })
        .await
    }

    /// The newest snapshot, starting from an older one.
    pub(crate) async fn refresh(&self, old: &SnapshotRef) -> Result<SnapshotRef> {
        let old = Arc::clone(old);
        self.run(move |engine| Snapshot::builder_from(old).build(engine.as_ref())).await
    }

    /// The newest versions of the wanted `txn` entries. The log is read from its end, no further
    /// than to the last of them.
    pub(crate) async fn entries(
        &self,
        snapshot: &SnapshotRef,
        wanted: Vec<String>,
    ) -> Result<BTreeMap<String, i64>> {
        self.entries_until(snapshot, wanted, |_| false).await
    }

    /// As [`Log::entries`], but no further than to where `enough` holds.
    pub(crate) async fn entries_until(
        &self,
        snapshot: &SnapshotRef,
        wanted: Vec<String>,
        enough: impl Fn(&BTreeMap<String, i64>) -> bool + Send + 'static,
    ) -> Result<BTreeMap<String, i64>> {
        let snapshot = Arc::clone(snapshot);
        self.run(move |engine| {
            let mut open: BTreeSet<String> = wanted.into_iter().collect();
            let mut found = BTreeMap::new();
            let batches =
                snapshot.log_segment().read_actions(engine.as_ref(), LOG_TXN_SCHEMA.clone())?;
            for batch in batches {
                if open.is_empty() || enough(&found) {
                    break;
                }
                let data = ArrowEngineData::try_from_engine_data(batch?.actions)?;
                for_each_entry(data.record_batch(), |id, number| {
                    if open.remove(id) {
                        found.insert(id.to_owned(), number);
                    }
                });
            }
            Ok(found)
        })
        .await
    }

    /// The newest versions of all `txn` entries: as many as there were ever names.
    pub(crate) async fn all_entries(
        &self,
        snapshot: &SnapshotRef,
    ) -> Result<BTreeMap<String, i64>> {
        let snapshot = Arc::clone(snapshot);
        self.run(move |engine| {
            let mut found = BTreeMap::new();
            let batches =
                snapshot.log_segment().read_actions(engine.as_ref(), LOG_TXN_SCHEMA.clone())?;
            for batch in batches {
                let data = ArrowEngineData::try_from_engine_data(batch?.actions)?;
                for_each_entry(data.record_batch(), |id, number| {
                    if !found.contains_key(id) {
                        found.insert(id.to_owned(), number);
                    }
                });
            }
            Ok(found)
        })
        .await
    }

    /// Writes one small data file. It may be named by a commit afterwards.
    pub(crate) async fn small_file(
        &self,
        layout: &Layout,
        rows: arrow_array::RecordBatch,
    ) -> Result<DataFile> {
        let mut staging = Staging::new(self.shared.clone(), self.place.clone());
        staging.write(layout, rows).await?;
        let mut files = staging.take().await?;
        match (files.pop(), files.pop()) {
            (Some(file), None) => Ok(file),
            _ => Err(Error::bug("a few rows did not make one file")),
        }
    }

    /// How data files of the table look.
    pub(crate) async fn layout(&self, snapshot: &SnapshotRef) -> Result<Layout> {
        let snapshot = Arc::clone(snapshot);
        self.run(move |engine| {
            let transaction = snapshot
                .clone()
                .transaction(Box::new(LogFile(Frame::default())), engine.as_ref())?;
            let state = transaction.write_state()?;
            let context = state.unpartitioned_write_context()?;
            let arrow = |schema: &SchemaRef| -> DeltaResult<ArrowSchema> {
                let schema: arrow_schema::Schema = schema.as_ref().try_into_arrow()?;
                Ok(Arc::new(schema))
            };
            Ok(Layout {
                logical: arrow(context.logical_schema())?,
                physical: arrow(context.physical_schema())?,
                measured: Arc::new(
                    context
                        .stats_columns()
                        .iter()
                        .filter_map(|column| match column.path() {
                            [name] => Some(name.clone()),
                            _ => None,
                        })
                        .collect(),
                ),
            })
        })
        .await
    }

    fn frame(&self) -> Frame {
        Frame {
            at_ms: self.shared.now_ms(),
            id: self.shared.entropy.next_u64(),
            ..Frame::default()
        }
    }

    /// Creates the table. Nothing else may be in its directory; the caller looked.
    pub(crate) async fn create(&self, birth: Birth) -> Result<Outcome> {
        let mut frame = self.frame();
        frame.comment = Some(birth.comment);
        self.make_directory().await?;
        let url = self.place.url.clone();
        let result = self
            .shared
            .kernel
            .run(move |engine| {
                let transaction = create_table(url.as_str(), birth.schema, ENGINE)
                    .with_table_properties(birth.properties)
                    .build(engine.as_ref(), Box::new(LogFile(frame)))?;
                with_entries(transaction, birth.entries).commit(engine.as_ref())
            })
            .await?;
        match self.outcome(result) {
            // The kernel's own refusal when somebody created the table meanwhile.
            Err(_) if self.place.content().await? == Content::Table => Ok(Outcome::Taken),
            // The kernel did not see the comment, and would drop it with the next column.
            Ok(Outcome::Landed(made)) => Ok(Outcome::Landed(self.open_at(&made).await?)),
            other => other,
        }
    }

    /// Makes the directory of a local table, which the kernel wants to find.
    async fn make_directory(&self) -> Result<()> {
        let Ok(path) = self.place.url.to_file_path() else {
            return Ok(());
        };
        let made = blocking(self.shared.config.kernel_calls, move || std::fs::create_dir_all(path));
        made.await?.map_err(|error| {
            Error::new(ErrorKind::Config, "the target's directory cannot be made")
                .with("path", &self.place)
                .caused_by(error)
                .remedy("let the run write to the named path, or correct the setting root")
        })
    }

    /// Commits a change right after `snapshot`.
    pub(crate) async fn commit(&self, snapshot: &SnapshotRef, change: Change) -> Result<Outcome> {
        let mut frame = self.frame();
        frame.user_metadata = change.user_metadata.clone();
        frame.properties = change.properties.clone();
        frame.stats =
            change.add.iter().map(|file| (file.name.clone(), file.stats.clone())).collect();
        let snapshot = Arc::clone(snapshot);
        if change.columns.is_empty() {
            let rewrites = !frame.properties.is_empty();
            let result = self
                .shared
                .kernel
                .run(move |engine| append(snapshot, change, frame, engine.as_ref()))
                .await?;
            let outcome = self.outcome(result)?;
            return match outcome {
                // The kernel did not see the properties that the file holds.
                Outcome::Landed(made) if rewrites => {
                    Ok(Outcome::Landed(self.open_at(&made).await?))
                }
                other => Ok(other),
            };
        }
        let result = self
            .shared
            .kernel
            .run(move |engine| alter(snapshot, change, frame, engine.as_ref()))
            .await?;
        match self.outcome(result)? {
            Outcome::Landed(made) => Ok(Outcome::Landed(self.open_at(&made).await?)),
            other => Ok(other),
        }
    }

    /// Whether the log still has the file of a snapshot's version, as it was read or written. It is
    /// gone after a deletion or a rewind of the table, and after a cleanup behind somebody's newer
    /// checkpoint; another one is there when a rewound table was written again. Files are told
    /// apart by their lengths, which costs no more than asking for the file: a rewound table that
    /// was written up to the same version with a file of the same length is not told from the old
    /// one. Nothing but the operator rewinds a table, and the next attach compares what rests on
    /// the mark with the mark.
    ///
    /// # Errors
    /// `Unavailable` and the like when the store does not tell.
    pub(crate) async fn has(&self, snapshot: &SnapshotRef) -> Result<bool> {
        let name = format!("{:020}.json", snapshot.version());
        let path = self.place.path.clone().join("_delta_log").join(name);
        let known = snapshot.log_segment().listed.latest_commit_file.as_ref();
        let known = known.filter(|file| file.version == snapshot.version());
        match self.place.store.head(&path).await {
            Ok(found) => Ok(known.is_none_or(|known| known.location.size == found.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(fault::store(error, &path)),
        }
    }

    fn outcome<S>(&self, result: DeltaResult<CommitResult<S>>) -> Result<Outcome> {
        let error = match result {
            Ok(CommitResult::CommittedTransaction(done)) => match done.post_commit_snapshot() {
                Some(snapshot) => return Ok(Outcome::Landed(Arc::clone(snapshot))),
                None => return Err(Error::bug("a commit made no snapshot")),
            },
            Ok(CommitResult::ConflictedTransaction(_)) => return Ok(Outcome::Taken),
            Ok(CommitResult::RetryableTransaction(again)) => again.error,
            Err(error) => error,
        };
        let error = self.fault(error);
        match error.kind() {
            ErrorKind::Unavailable => Ok(Outcome::Unknown(error)),
            _ => Err(error),
        }
    }

    /// Writes a checkpoint when enough commits follow the last one. The table is as good without
    /// it, so a failure is a warning. Returns the snapshot to go on with.
    pub(crate) async fn checkpoint(&self, snapshot: SnapshotRef) -> SnapshotRef {
        let behind = snapshot
            .version()
            .saturating_sub(snapshot.log_segment().checkpoint_version.unwrap_or(0));
        if behind < self.interval {
            return snapshot;
        }
        let old = Arc::clone(&snapshot);
        match self.run(move |engine| old.checkpoint(engine.as_ref(), None)).await {
            Ok((_, newer)) => newer,
            Err(error) => {
                tracing::warn!(
                    path = %self.place,
                    version = snapshot.version(),
                    error = %error.report(),
                    "the log's checkpoint was not written; it is tried again after the next commit"
                );
                snapshot
            }
        }
    }
}

fn append(
    snapshot: SnapshotRef,
    change: Change,
    frame: Frame,
    engine: &dyn Engine,
) -> DeltaResult<CommitResult> {
    let mut transaction = snapshot
        .transaction(Box::new(LogFile(frame)), engine)?
        .with_engine_info(ENGINE)
        .with_operation(change.operation.into())
        .with_data_change(true);
    if !change.add.is_empty() {
        transaction.add_files(Box::new(added(&change.add)?));
    }
    for files in change.remove {
        transaction.remove_files(files);
    }
    with_entries(transaction, change.entries).commit(engine)
}

fn alter(
    snapshot: SnapshotRef,
    change: Change,
    frame: Frame,
    engine: &dyn Engine,
) -> DeltaResult<CommitResult<delta_kernel::transaction::AlterTable>> {
    let mut columns = change.columns.into_iter();
    let Some(first) = columns.next() else {
        return Err(delta_kernel::Error::generic("no column to add"));
    };
    let mut builder = snapshot.alter_table().add_column(first);
    for column in columns {
        builder = builder.add_column(column);
    }
    let transaction = builder.build(engine, Box::new(LogFile(frame)))?.with_engine_info(ENGINE);
    with_entries(transaction, change.entries).commit(engine)
}

fn with_entries<S>(mut transaction: Transaction<S>, entries: Vec<(String, i64)>) -> Transaction<S> {
    for (id, number) in entries {
        transaction = transaction.with_transaction_id(id, number);
    }
    transaction
}
