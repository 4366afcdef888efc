//! A table that all tables of a root share: facts or control.
//!
//! One snapshot serves the whole process, so that its tables do not race one another; other
//! processes are met by put-if-absent and a new attempt. Rows that several tables of the process
//! append at the same time become one commit.

use std::{
    collections::BTreeMap,
    sync::{
        self, Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use cdc_core::{Error, Result};
use delta_kernel::snapshot::SnapshotRef;
use object_store::{ObjectStoreExt, path::Path};
use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use crate::{
    log::{Birth, Change, Layout, Log, Outcome},
    migration::{Kind, check, crowded, migrate},
    schema::{CONTROL, CONTROL_COMMENT, FACTS, FACTS_COMMENT, own_schema},
};

/// Appends that one commit takes: enough for every table of a cycle, and a file of some ten
/// kilobytes.
const GROUP_MAX: usize = 256;

/// Makes an append's rows in the form of the table.
pub(crate) type Rows = Box<dyn Fn(&Layout) -> Result<RecordBatch> + Send + Sync>;

pub(crate) struct Ledger {
    pub(crate) log: Log,
    kind: Kind,
    head: Mutex<Option<Head>>,
    /// What the last look found, for the opening that follows it.
    sight: sync::Mutex<Option<Sight>>,
    /// Appends that wait for a commit, first come first.
    waiting: sync::Mutex<Vec<Arc<Append>>>,
}

/// Rows that are to be written once.
struct Append {
    id: String,
    number: i64,
    rows: Rows,
    done: AtomicBool,
}

impl Append {
    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }
}

/// An append's place among those that wait; given up with the caller.
struct Place<'a> {
    ledger: &'a Ledger,
    append: Arc<Append>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.ledger.waiting().retain(|other| !Arc::ptr_eq(other, &self.append));
    }
}

/// The newest known state of the shared table.
pub(crate) struct Head {
    pub(crate) snapshot: SnapshotRef,
    pub(crate) layout: Layout,
    /// Entries of the log as of the snapshot, once some were read.
    seen: Option<Seen>,
}

/// A table that was looked at, and the log that remembers what was read.
struct Sight {
    log: Log,
    snapshot: SnapshotRef,
    seen: Option<Seen>,
}

/// Entries of a log as of one snapshot.
#[derive(Default)]
struct Seen {
    numbers: BTreeMap<String, i64>,
    /// The only entry that was asked for; without it, all are here.
    only: Option<String>,
}

impl Seen {
    /// Whether it tells if there is such an entry.
    fn tells(&self, id: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only == id)
    }
}

/// Files of commits that met a commit of the same version: somebody else's, or their own twin. They
/// are deleted once the log was seen to have that version without them.
#[derive(Default)]
pub(crate) struct Refused(Vec<(u64, Path)>);

impl Refused {
    pub(crate) fn add(&mut self, base: &SnapshotRef, file: Path) {
        self.0.push((base.version().saturating_add(1), file));
    }

    /// Those of versions up to the one that was seen. The caller knows that it does not name them.
    fn seen(&mut self, version: u64) -> Vec<Path> {
        let (seen, rest) = std::mem::take(&mut self.0).into_iter().partition(|f| f.0 <= version);
        self.0 = rest;
        let seen: Vec<(u64, Path)> = seen;
        seen.into_iter().map(|(_, file)| file).collect()
    }
}

impl Ledger {
    pub(crate) fn new(log: Log, kind: Kind) -> Self {
        let (head, sight) = (Mutex::new(None), sync::Mutex::new(None));
        Self { log, kind, head, sight, waiting: sync::Mutex::default() }
    }

    fn waiting(&self) -> sync::MutexGuard<'_, Vec<Arc<Append>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sight(&self) -> sync::MutexGuard<'_, Option<Sight>> {
        self.sight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest snapshot, read through `log`, which is the ledger's; none when there is no table
    /// (any more). Writes nothing.
    pub(crate) async fn look(&self, log: &Log) -> Result<Option<SnapshotRef>> {
        let mut guard = self.head.lock().await;
        if let Some(head) = self.follow(&mut guard).await? {
            return Ok(Some(Arc::clone(&head.snapshot)));
        }
        let Some(snapshot) = look(log, self.kind).await? else {
            return Ok(None);
        };
        let (log, seen) = (log.clone(), None);
        *self.sight() = Some(Sight { log, snapshot: Arc::clone(&snapshot), seen });
        Ok(Some(snapshot))
    }

    /// An entry of the newest snapshot. Writes nothing.
    pub(crate) async fn number(&self, id: &str) -> Result<Option<i64>> {
        let mut guard = self.head.lock().await;
        if let Some(head) = self.follow(&mut guard).await? {
            return Ok(self.seen(head, &[id]).await?.numbers.get(id).copied());
        }
        let log = self.log.recalling();
        let Some(snapshot) = look(&log, self.kind).await? else {
            return Ok(None);
        };
        let numbers = log.entries(&snapshot, vec![id.to_owned()]).await?;
        let number = numbers.get(id).copied();
        let seen = Some(Seen { numbers, only: Some(id.to_owned()) });
        *self.sight() = Some(Sight { log, snapshot, seen });
        Ok(number)
    }

    /// The head at the newest snapshot; none when there is none yet, or when the table went or went
    /// back since: what is there then is looked at as by a process that begins.
    async fn follow<'h>(&self, head: &'h mut Option<Head>) -> Result<Option<&'h mut Head>> {
        let Some(known) = head.as_ref() else {
            return Ok(None);
        };
        if !self.log.has(&known.snapshot).await? {
            *head = None;
        }
        let Some(head) = head.as_mut() else {
            return Ok(None);
        };
        self.refresh(head).await?;
        Ok(Some(head))
    }

    /// The table, opened or created, for one caller at a time.
    pub(crate) async fn lock(&self) -> Result<MappedMutexGuard<'_, Head>> {
        let mut head = self.head.lock().await;
        if head.is_none() {
            *head = Some(self.open().await?);
        }
        MutexGuard::try_map(head, Option::as_mut).map_err(|_| Error::bug("a ledger is not open"))
    }

    async fn open(&self) -> Result<Head> {
        for attempt in 1..=self.log.shared.config.commit_attempts_max {
            let sight = self.sight().take();
            let sight = match sight {
                Some(sight) => Some(sight),
                None => {
                    let log = self.log.recalling();
                    let found = look(&log, self.kind).await?;
                    found.map(|snapshot| Sight { log, snapshot, seen: None })
                }
            };
            if let Some(Sight { log, snapshot, seen }) = sight {
                let version = snapshot.version();
                let snapshot = migrate(&log, snapshot, self.kind).await?;
                let seen = seen.filter(|_| snapshot.version() == version);
                let layout = self.log.layout(&snapshot).await?;
                return Ok(Head { snapshot, layout, seen });
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
                Outcome::Landed(snapshot) => {
                    let layout = self.log.layout(&snapshot).await?;
                    return Ok(Head { snapshot, layout, seen: Some(Seen::default()) });
                }
                Outcome::Taken | Outcome::Unknown(_) => self.log.shared.pause(attempt).await,
            }
        }
        Err(crowded(&self.log))
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

    /// Moves the head to the newest snapshot, when that may still be written. An error or a caller
    /// that gives up leaves the head where it was.
    pub(crate) async fn refresh(&self, head: &mut Head) -> Result<()> {
        let snapshot = self.log.refresh(&head.snapshot).await?;
        if snapshot.version() != head.snapshot.version() {
            check(&self.log, &snapshot, self.kind)?;
            let layout = self.log.layout(&snapshot).await?;
            *head = Head { snapshot, layout, seen: None };
        }
        Ok(())
    }

    /// Entries as of the head's snapshot: at least those of `ids`.
    async fn seen<'h>(&self, head: &'h mut Head, ids: &[&str]) -> Result<&'h mut Seen> {
        let seen = match head.seen.take() {
            Some(seen) if ids.iter().all(|id| seen.tells(id)) => seen,
            _ => {
                let numbers = self.log.recalling().all_entries(&head.snapshot).await?;
                Seen { numbers, only: None }
            }
        };
        Ok(head.seen.insert(seen))
    }

    /// Appends rows once: nothing happens when entry `id` has reached `number` already. Appends
    /// that wait for each other go into one commit.
    pub(crate) async fn append(&self, id: String, number: i64, rows: Rows) -> Result<()> {
        let append = Arc::new(Append { id, number, rows, done: AtomicBool::new(false) });
        self.waiting().push(Arc::clone(&append));
        let place = Place { ledger: self, append };
        let mut head = self.lock().await?;
        if !place.append.is_done() {
            let group = self.group(&place.append);
            self.write(&mut head, &group, &place.append).await?;
            self.waiting().retain(|append| !append.is_done());
        }
        Ok(())
    }

    /// An append and those that wait with it, in their order: the oldest, as many as go into one
    /// commit. It is always among them, so that one whose rows cannot be made holds up nobody.
    fn group(&self, own: &Arc<Append>) -> Vec<Arc<Append>> {
        let mut places = GROUP_MAX.saturating_sub(1);
        let mut takes = |append: &&Arc<Append>| {
            let is_other = !Arc::ptr_eq(append, own);
            let is_taken = !is_other || places > 0;
            places = places.saturating_sub(usize::from(is_other));
            is_taken
        };
        self.waiting().iter().filter(|append| takes(append)).cloned().collect()
    }

    /// Writes a group's rows in one commit. Rows of others that cannot be made are left to them.
    async fn write(&self, head: &mut Head, group: &[Arc<Append>], own: &Arc<Append>) -> Result<()> {
        let mut doubt = None;
        let mut refused = Refused::default();
        self.confirm(head).await?;
        for attempt in 0..=self.log.shared.config.commit_attempts_max {
            if attempt > 0 {
                self.log.shared.pause(attempt).await;
                self.refresh(head).await?;
            }
            let due = self.due(head, group, own).await?;
            let Some(rows) = due.rows else {
                return Ok(());
            };
            // A commit that took a version was no twin, or the entry would be there.
            self.remove_seen(&mut refused, head).await;
            if attempt == self.log.shared.config.commit_attempts_max {
                break;
            }
            // A new file each time: an attempt in doubt may still put the last one into the log.
            let file = self.log.small_file(&head.layout, rows).await?;
            let path = self.log.place.file(&file.name);
            let change = Change {
                operation: "WRITE",
                add: vec![file],
                entries: due.entries.clone().into_iter().collect(),
                ..Change::default()
            };
            match self.log.commit(&head.snapshot, change).await? {
                Outcome::Landed(snapshot) => {
                    head.snapshot = self.log.checkpoint(snapshot).await;
                    if let Some(seen) = &mut head.seen {
                        seen.numbers.extend(due.entries);
                    }
                    due.appends.iter().for_each(|done| done.done.store(true, Ordering::Release));
                    return Ok(());
                }
                Outcome::Taken => refused.add(&head.snapshot, path),
                Outcome::Unknown(error) => doubt = Some(error),
            }
        }
        Err(doubt.unwrap_or_else(|| crowded(&self.log)))
    }

    /// What of a group is not in the table yet. What is, is marked as done.
    async fn due(&self, head: &mut Head, group: &[Arc<Append>], own: &Arc<Append>) -> Result<Due> {
        let layout = head.layout.clone();
        let ids: Vec<_> = group.iter().map(|append| append.id.as_str()).collect();
        let seen = &self.seen(head, &ids).await?.numbers;
        let mut due = Due::default();
        let mut parts = Vec::new();
        for append in group {
            let reached = due.entries.get(&append.id).or_else(|| seen.get(&append.id));
            if reached.is_some_and(|reached| *reached >= append.number) {
                if due.entries.contains_key(&append.id) {
                    // The same rows again, in the same commit.
                    due.appends.push(Arc::clone(append));
                } else {
                    append.done.store(true, Ordering::Release);
                }
                continue;
            }
            match (append.rows)(&layout) {
                Ok(rows) => parts.push(rows),
                Err(error) if Arc::ptr_eq(append, own) => return Err(error),
                Err(_) => continue,
            }
            due.entries.insert(append.id.clone(), append.number);
            due.appends.push(Arc::clone(append));
        }
        if !parts.is_empty() {
            let rows = concat_batches(&layout.physical, &parts)
                .map_err(|error| Error::bug("rows of facts do not fit").caused_by(error))?;
            due.rows = Some(rows);
        }
        Ok(due)
    }

    /// Removes the files of refused commits whose versions the head has, without them.
    pub(crate) async fn remove_seen(&self, refused: &mut Refused, head: &Head) {
        for path in refused.seen(head.snapshot.version()) {
            if let Err(error) = self.log.place.store.delete(&path).await {
                tracing::debug!(%path, %error, "a staged file stays behind; no table names it");
            }
        }
    }
}

/// What one commit takes.
#[derive(Default)]
struct Due {
    appends: Vec<Arc<Append>>,
    entries: BTreeMap<String, i64>,
    rows: Option<RecordBatch>,
}

/// The newest snapshot; none when there is no table yet. Writes nothing.
async fn look(log: &Log, kind: Kind) -> Result<Option<SnapshotRef>> {
    let snapshot = log.find().await?;
    if let Some(snapshot) = &snapshot {
        check(log, snapshot, kind)?;
    }
    Ok(snapshot)
}

#[cfg(test)]
mod tests;
