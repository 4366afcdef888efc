//! A table that all tables of a root share: facts or control.
//!
//! One snapshot serves the whole process, so that its tables do not race one another; other
//! processes are met by put-if-absent and a new attempt.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use cdc_core::Result;
use delta_kernel::snapshot::SnapshotRef;
use tokio::sync::{Mutex, MutexGuard};

use crate::{
    log::{Birth, Change, Layout, Log, Outcome},
    migration::{Kind, check, crowded, migrate, occupied},
    schema::{CONTROL, CONTROL_COMMENT, FACTS, FACTS_COMMENT, own_schema},
    store::Content,
};

pub(crate) struct Ledger {
    pub(crate) log: Log,
    kind: Kind,
    head: Mutex<Option<Head>>,
}

/// The newest known state of the shared table.
pub(crate) struct Head {
    pub(crate) snapshot: SnapshotRef,
    pub(crate) layout: Layout,
    /// Entries of the log as of the snapshot.
    pub(crate) seen: BTreeMap<String, i64>,
}

impl Ledger {
    pub(crate) fn new(log: Log, kind: Kind) -> Self {
        Self { log, kind, head: Mutex::new(None) }
    }

    /// The newest snapshot; none when there is no table yet. Writes nothing.
    pub(crate) async fn look(&self) -> Result<Option<SnapshotRef>> {
        match self.log.place.content().await? {
            Content::Nothing => Ok(None),
            Content::Files => Err(occupied(&self.log, "holds files that are no Delta table")),
            Content::Table => {
                let snapshot = self.log.open().await?;
                check(&self.log, &snapshot, self.kind)?;
                Ok(Some(snapshot))
            }
        }
    }

    /// The wanted entries of the newest snapshot. Writes nothing.
    pub(crate) async fn entries(&self, wanted: Vec<String>) -> Result<BTreeMap<String, i64>> {
        match self.look().await? {
            None => Ok(BTreeMap::new()),
            Some(snapshot) => self.log.entries(&snapshot, wanted).await,
        }
    }

    /// The table, opened or created, for one caller at a time.
    pub(crate) async fn lock(&self) -> Result<MutexGuard<'_, Option<Head>>> {
        let mut head = self.head.lock().await;
        if head.is_none() {
            *head = Some(self.open().await?);
        }
        Ok(head)
    }

    async fn open(&self) -> Result<Head> {
        for attempt in 1..=self.log.shared.config.commit_attempts_max {
            if let Some(snapshot) = self.look().await? {
                let snapshot = migrate(&self.log, snapshot, self.kind).await?;
                return self.head(snapshot).await;
            }
            let (columns, comment) = match self.kind {
                Kind::Control => (CONTROL.as_slice(), CONTROL_COMMENT),
                _ => (FACTS.as_slice(), FACTS_COMMENT),
            };
            let birth = Birth {
                schema: own_schema(columns)?,
                comment: comment.into(),
                properties: self.kind.properties(),
                entries: Vec::new(),
            };
            match self.log.create(birth).await? {
                Outcome::Landed(snapshot) => return self.head(snapshot).await,
                Outcome::Taken | Outcome::Unknown(_) => self.log.shared.pause(attempt).await,
            }
        }
        Err(crowded(&self.log))
    }

    async fn head(&self, snapshot: SnapshotRef) -> Result<Head> {
        let layout = self.log.layout(&snapshot).await?;
        Ok(Head { snapshot, layout, seen: BTreeMap::new() })
    }

    /// Moves the head to the newest snapshot when its own version is no longer in the log. A
    /// cleanup behind somebody's newer checkpoint leaves a gap, where a commit would meet nobody
    /// and nobody would read it.
    pub(crate) async fn confirm(&self, head: &mut Head) -> Result<()> {
        if !self.log.has(&head.snapshot).await? {
            *head = self.open().await?;
        }
        Ok(())
    }

    /// Moves the head to the newest snapshot.
    pub(crate) async fn refresh(&self, head: &mut Head) -> Result<()> {
        head.snapshot = self.log.refresh(&head.snapshot).await?;
        head.layout = self.log.layout(&head.snapshot).await?;
        head.seen.clear();
        Ok(())
    }

    /// An entry as of the head's snapshot.
    pub(crate) async fn entry(&self, head: &mut Head, id: &str) -> Result<Option<i64>> {
        if let Some(number) = head.seen.get(id) {
            return Ok(Some(*number));
        }
        let found = self.log.entries(&head.snapshot, vec![id.to_owned()]).await?;
        let number = found.get(id).copied();
        head.seen.extend(found);
        Ok(number)
    }

    /// Appends rows once: nothing happens when entry `id` has reached `number` already.
    pub(crate) async fn append(
        &self,
        id: &str,
        number: i64,
        rows: impl Fn(&Layout) -> Result<RecordBatch> + Send + Sync,
    ) -> Result<()> {
        let mut guard = self.lock().await?;
        let Some(head) = guard.as_mut() else {
            return Ok(());
        };
        let mut doubt = None;
        let mut taken = None;
        self.confirm(head).await?;
        for attempt in 0..=self.log.shared.config.commit_attempts_max {
            if attempt > 0 {
                self.log.shared.pause(attempt).await;
                self.refresh(head).await?;
            }
            if self.entry(head, id).await? >= Some(number) {
                return Ok(());
            }
            // The commit that took the version was not its twin, or the entry would be there.
            if let Some(path) = taken.take() {
                self.remove(&path).await;
            }
            if attempt == self.log.shared.config.commit_attempts_max {
                break;
            }
            // A new file each time: an attempt in doubt may still put the last one into the log.
            let file = self.log.small_file(&head.layout, rows(&head.layout)?).await?;
            let path = self.log.place.file(&file.name);
            let change = Change {
                operation: "WRITE",
                add: vec![file],
                entries: vec![(id.to_owned(), number)],
                ..Change::default()
            };
            match self.log.commit(&head.snapshot, change).await? {
                Outcome::Landed(snapshot) => {
                    head.snapshot = self.log.checkpoint(snapshot).await;
                    head.seen.insert(id.to_owned(), number);
                    return Ok(());
                }
                Outcome::Taken => taken = Some(path),
                Outcome::Unknown(error) => doubt = Some(error),
            }
        }
        Err(doubt.unwrap_or_else(|| crowded(&self.log)))
    }

    /// Removes a file that surely no commit names.
    pub(crate) async fn remove(&self, path: &object_store::path::Path) {
        use object_store::ObjectStoreExt as _;
        if let Err(error) = self.log.place.store.delete(path).await {
            tracing::debug!(%path, %error, "a staged file stays behind; no table names it");
        }
    }
}
