//! One bronze table in the hands of the runner that owns it.

use std::{cmp::Ordering, sync::Arc};

use async_trait::async_trait;
use cdc_core::{
    Column, Commit, Committed, Error, ErrorKind, Mark, Result, Retry, TableBatch, TableSpec,
    Verdict,
    mark::next_sequence,
    planted::{self, Planted},
    port::{TableSink, TargetState},
};
use delta_kernel::snapshot::SnapshotRef;

use crate::{
    align::align,
    bronze::{self, Owned},
    commit::DataFile,
    control, facts,
    log::{Change, Layout, Log, Outcome},
    mark::Names,
    migration::crowded,
    schema::{captured_field, missing, needs_mapping},
    sink::Inner,
    staging::Staging,
};

pub(crate) struct DeltaTable {
    inner: Arc<Inner>,
    log: Log,
    name: String,
    names: Names,
    /// The number of this runner.
    fence: i64,
    /// The newest snapshot in which the fence was this runner's.
    snapshot: SnapshotRef,
    layout: Layout,
    mark: Option<Mark>,
    verdict: Option<Verdict>,
    staging: Staging,
    mapped: bool,
}

/// Where a runner stands in a snapshot of its table.
enum Standing {
    /// Its fence is the newest. With the durable mark.
    Owner(Option<Mark>),
    /// A newer runner attached. With the mark that is durable there.
    Fenced { error: Error, mark: Option<Mark> },
}

impl DeltaTable {
    pub(crate) async fn new(
        inner: Arc<Inner>,
        log: Log,
        spec: &TableSpec,
        owned: Owned,
        state: TargetState,
    ) -> Result<Self> {
        let layout = log.layout(&owned.snapshot).await?;
        Ok(Self {
            staging: Staging::new(inner.shared.clone(), log.place.clone()),
            mapped: crate::migration::properties(&owned.snapshot)
                .get("delta.columnMapping.mode")
                .is_some_and(|mode| mode != "none"),
            inner,
            log,
            name: spec.name.clone(),
            names: Names::new(&spec.name),
            fence: owned.fence,
            snapshot: owned.snapshot,
            layout,
            mark: owned.mark,
            verdict: state.verdict,
        })
    }

    /// Reads the log again, and gives the durable mark. The fence must still be this runner's,
    /// and staged files must still fit the columns.
    async fn reload(&mut self) -> Result<Option<Mark>> {
        match self.look().await? {
            Standing::Owner(mark) => Ok(mark),
            Standing::Fenced { error, .. } => Err(error),
        }
    }

    /// Reads the log again.
    async fn look(&mut self) -> Result<Standing> {
        let snapshot = self.log.refresh(&self.snapshot).await?;
        if snapshot.version() == self.snapshot.version() {
            return Ok(Standing::Owner(self.mark));
        }
        self.adopt(snapshot).await
    }

    /// Goes on with a newer snapshot when this runner's fence is the newest in it.
    async fn adopt(&mut self, snapshot: SnapshotRef) -> Result<Standing> {
        let entries = bronze::entries(&self.log, &snapshot, &self.names).await?;
        let mark = self.names.mark(&entries)?;
        let fence = entries.get(&self.names.fence()).copied().unwrap_or(0);
        match fence.cmp(&self.fence) {
            Ordering::Equal => {}
            Ordering::Greater if planted::is(Planted::FenceIgnored) => {}
            Ordering::Greater => {
                let error = Error::new(ErrorKind::Fenced, "a newer runner attached")
                    .with("table", &self.name)
                    .with("own_number", self.fence)
                    .with("newest_number", fence);
                return Ok(Standing::Fenced { error, mark });
            }
            Ordering::Less => return Err(self.moved()),
        }
        let layout = self.log.layout(&snapshot).await?;
        if !bronze::keeps(&self.layout, &layout) {
            return Err(Error::new(
                ErrorKind::SchemaChanged,
                "another writer changed the target's columns",
            )
            .with("table", &self.name)
            .with("path", &self.log.place)
            .remedy("attach again; a removed or changed column needs a new target"));
        }
        self.snapshot = snapshot;
        self.layout = layout;
        Ok(Standing::Owner(mark))
    }

    /// Makes sure that the versions which the next one stands on are there: the put of the next
    /// one would not notice a table that was deleted or rewound meanwhile, nor a cleanup behind
    /// somebody's newer checkpoint. After a cleanup the put would fill a gap that nobody reads.
    async fn confirm(&mut self) -> Result<()> {
        if self.log.has(&self.snapshot).await? {
            return Ok(());
        }
        let newest = match self.log.open().await {
            Ok(newest) if newest.version() >= self.snapshot.version() => newest,
            Ok(_) => return Err(self.moved()),
            Err(error) if error.kind().retry() == Retry::Stop => {
                return Err(self.moved().caused_by(error));
            }
            Err(error) => return Err(error),
        };
        match self.adopt(newest).await? {
            Standing::Owner(mark) if mark == self.mark => Ok(()),
            Standing::Owner(_) => Err(self.moved()),
            Standing::Fenced { error, .. } => Err(error),
        }
    }

    fn moved(&self) -> Error {
        Error::new(
            ErrorKind::InvalidData,
            "the target was deleted or rewound while it was attached",
        )
        .with("table", &self.name)
        .with("path", &self.log.place)
        .remedy("bring the target back to its newest state and start again")
    }

    /// Where a mark stands against the durable one.
    fn order(&self, mark: &Mark) -> Result<Committed> {
        let bug = |message: &str| {
            let durable = self.mark.as_ref();
            Error::bug(message)
                .with("table", &self.name)
                .with("sequence", mark.sequence)
                .with("durable_sequence", durable.map_or(0, |mark| mark.sequence))
                .with("end", mark.end)
        };
        if let Some(durable) = &self.mark {
            if mark.sequence == durable.sequence {
                return if mark.end == durable.end {
                    Ok(Committed::Before)
                } else {
                    Err(bug("a durable mark has another end"))
                };
            }
            if mark.generation < durable.generation
                || (mark.generation == durable.generation && mark.end < durable.end)
            {
                return Err(bug("a mark's end goes back"));
            }
        }
        if mark.sequence != next_sequence(self.mark.as_ref()) {
            return Err(bug("a mark's sequence is neither the durable one nor the next"));
        }
        Ok(Committed::Now)
    }

    /// Puts files and mark into the log. `named` is true after a failure when the log may name the
    /// files, or may do so later.
    async fn land(
        &mut self,
        files: &[DataFile],
        mark: Mark,
        text: &str,
        named: &mut bool,
    ) -> Result<()> {
        let mut entries = self.names.entries(&mark)?;
        // With the fence, so that one commit tells everything of the table.
        entries.extend(self.names.owner(self.fence, self.log.shared.runner));
        let attempts = self.log.shared.config.commit_attempts_max;
        let mut doubt = None;
        // The version that a put met another commit at, perhaps its own twin, until it was seen.
        let mut taken = None;
        for attempt in 0..=attempts {
            if attempt > 0 {
                self.log.shared.pause(attempt).await;
                let durable = match self.look().await? {
                    Standing::Owner(durable) => durable,
                    Standing::Fenced { error, mark: durable } => {
                        // A put may have met its own twin before the newer fence.
                        let reached = durable.map_or(0, |durable| durable.sequence);
                        *named |= reached >= mark.sequence;
                        return Err(error);
                    }
                };
                let failed = planted::is(Planted::LostReplyTakenAsFailure) && doubt.is_some();
                let blind = failed || planted::is(Planted::FenceIgnored);
                if durable == Some(mark) && !blind {
                    // Under this fence nobody else wrote it: it was an attempt in doubt.
                    return Ok(());
                }
                if durable != self.mark && !blind {
                    return Err(self.moved());
                }
                taken = taken.filter(|version| *version > self.snapshot.version());
            }
            if attempt == attempts {
                break;
            }
            let add = files.to_vec();
            #[cfg(feature = "planted-bugs")]
            let add = if planted::is(Planted::LostReplyTakenAsFailure) && doubt.is_some() {
                crate::planted::written_anew(&self.log, add).await?
            } else {
                add
            };
            let change = Change {
                operation: "WRITE",
                add,
                entries: entries.clone(),
                user_metadata: Some(text.to_owned()),
                ..Change::default()
            };
            match self.log.commit(&self.snapshot, change).await? {
                Outcome::Landed(snapshot) => {
                    self.snapshot = snapshot;
                    return Ok(());
                }
                Outcome::Taken => taken = Some(self.snapshot.version().saturating_add(1)),
                Outcome::Unknown(error) => {
                    *named = true;
                    doubt = Some(error);
                }
            }
        }
        *named |= taken.is_some();
        Err(doubt.unwrap_or_else(|| crowded(&self.log)))
    }

    /// The fields to add for the columns that the table lacks.
    fn new_fields(&self, columns: &[Column]) -> Result<Vec<delta_kernel::schema::StructField>> {
        let missing = missing(&self.name, &self.layout.logical, columns)?;
        if let Some(column) = missing.iter().find(|column| needs_mapping(&column.name))
            && !self.mapped
        {
            return Err(Error::new(
                ErrorKind::SchemaChanged,
                "the target takes the column's name only with column mapping",
            )
            .with("table", &self.name)
            .with("column", &column.name)
            .remedy(format!(
                "ALTER TABLE delta.`{}` SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', \
                 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')",
                self.log.place
            )));
        }
        missing.into_iter().map(captured_field).collect()
    }
}

#[async_trait]
impl TableSink for DeltaTable {
    async fn evolve(&mut self, columns: &[Column]) -> Result<()> {
        let attempts = self.log.shared.config.commit_attempts_max;
        let mut doubt = None;
        for attempt in 0..=attempts {
            if attempt > 0 {
                self.log.shared.pause(attempt).await;
                if self.reload().await? != self.mark {
                    return Err(self.moved());
                }
            }
            let fields = self.new_fields(columns)?;
            if fields.is_empty() {
                return Ok(());
            }
            if attempt == attempts {
                break;
            }
            self.confirm().await?;
            let fields = self.new_fields(columns)?;
            if fields.is_empty() {
                return Ok(());
            }
            // A file has one set of columns.
            self.staging.roll().await?;
            let change = Change {
                operation: "ADD COLUMNS",
                columns: fields,
                // Said again, so that the commit belongs to a runner.
                entries: self.names.owner(self.fence, self.log.shared.runner).to_vec(),
                ..Change::default()
            };
            match self.log.commit(&self.snapshot, change).await? {
                // What was committed may be followed by a newer fence already.
                Outcome::Landed(_) => {
                    self.reload().await?;
                    return Ok(());
                }
                Outcome::Taken => {}
                Outcome::Unknown(error) => doubt = Some(error),
            }
        }
        Err(doubt.unwrap_or_else(|| crowded(&self.log)))
    }

    async fn stage(&mut self, batch: TableBatch) -> Result<()> {
        #[cfg(feature = "planted-bugs")]
        let batch = crate::planted::staged(batch)?;
        let (name, layout) = (self.name.clone(), self.layout.clone());
        let sequence = next_sequence(self.mark.as_ref());
        let calls = self.log.shared.config.kernel_calls;
        let rows = crate::kernel::blocking(calls, move || align(&name, &layout, &batch, sequence));
        let rows = rows.await??;
        self.staging.write(&self.layout, rows).await
    }

    async fn commit(&mut self, commit: Commit) -> Result<Committed> {
        let mark = commit.mark;
        if self.order(&mark)? == Committed::Before {
            self.forget().await;
            return Ok(Committed::Before);
        }
        let record = facts::record(&self.name, &commit);
        let text = record.text()?;
        if let Err(error) = self.confirm().await {
            self.forget().await;
            return Err(error);
        }
        let files = self.staging.take().await?;
        #[cfg(feature = "planted-bugs")]
        let files = self.inner.given_up.and(&self.name, files);
        let mut named = false;
        #[cfg(feature = "planted-bugs")]
        if planted::is(Planted::MarkBeforeRows) {
            self.land(&[], mark, &text, &mut named).await?;
        }
        if let Err(error) = self.land(&files, mark, &text, &mut named).await {
            let refused = matches!(error.kind(), ErrorKind::Fenced | ErrorKind::Conflict);
            let surely = refused && !named;
            if surely || planted::is(Planted::StagingRemovedInDoubt) {
                // Every attempt met another commit, so none names the files.
                self.staging.restore(files);
                self.forget().await;
            }
            return Err(error);
        }
        self.mark = Some(mark);
        let sequence = i64::try_from(mark.sequence).unwrap_or(i64::MAX);
        let now = self.log.shared.clock.now();
        let rows = Box::new(move |layout: &Layout| record.rows(layout, now));
        self.inner.facts.append(self.names.facts(), sequence, rows).await?;
        self.snapshot = self.log.checkpoint(Arc::clone(&self.snapshot)).await;
        Ok(Committed::Now)
    }

    async fn discard(&mut self) -> Result<()> {
        #[cfg(feature = "planted-bugs")]
        if planted::is(Planted::AbortedStagingVisible) {
            self.inner.given_up.keep(&self.name, self.staging.take().await?);
        }
        self.staging.discard().await
    }

    async fn publish(&mut self, verdict: Verdict) -> Result<Verdict> {
        let beyond = || Error::bug("verdict is beyond the durable mark").with("table", &self.name);
        let mark = self.mark.ok_or_else(beyond)?;
        let stored = self.verdict.and_then(|verdict| verdict.finalized_until);
        let covered = verdict.end.position <= mark.end
            && verdict.finalized_until <= stored.max(mark.commit_time);
        if !covered && !planted::is(Planted::VerdictBeforeCommit) {
            return Err(beyond().with("position", verdict.end.position));
        }
        self.reload().await?;
        let sequence = i64::try_from(mark.sequence).unwrap_or(i64::MAX);
        let stored =
            control::store(&self.inner.control, &self.names, &self.name, sequence, verdict).await?;
        self.verdict = Some(stored);
        Ok(stored)
    }

    async fn close(mut self: Box<Self>) -> Result<()> {
        self.staging.discard().await
    }
}

impl DeltaTable {
    /// Discards what was staged; what cannot be removed stays invisible.
    async fn forget(&mut self) {
        if self.staging.is_empty() {
            return;
        }
        if let Err(error) = self.staging.discard().await {
            tracing::debug!(table = self.name, error = %error.report(), "staged files stay behind");
        }
    }
}
