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
use tokio::sync::{Mutex, MutexGuard};

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
    /// All entries of the log as of the snapshot, once they were read.
    seen: Option<BTreeMap<String, i64>>,
}

impl Ledger {
    pub(crate) fn new(log: Log, kind: Kind) -> Self {
        Self { log, kind, head: Mutex::new(None), waiting: sync::Mutex::default() }
    }

    fn waiting(&self) -> sync::MutexGuard<'_, Vec<Arc<Append>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest snapshot, read through `log`, which is the ledger's; none when there is no table
    /// yet. Writes nothing.
    pub(crate) async fn look(&self, log: &Log) -> Result<Option<SnapshotRef>> {
        let mut guard = self.head.lock().await;
        if let Some(head) = guard.as_mut() {
            self.refresh(head).await?;
            return Ok(Some(Arc::clone(&head.snapshot)));
        }
        drop(guard);
        look(log, self.kind).await
    }

    /// An entry of the newest snapshot. Writes nothing.
    pub(crate) async fn number(&self, id: &str) -> Result<Option<i64>> {
        let mut guard = self.head.lock().await;
        if let Some(head) = guard.as_mut() {
            self.refresh(head).await?;
            return Ok(self.seen(head).await?.get(id).copied());
        }
        drop(guard);
        let log = self.log.recalling();
        match look(&log, self.kind).await? {
            None => Ok(None),
            Some(snapshot) => Ok(log.entries(&snapshot, vec![id.to_owned()]).await?.remove(id)),
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
            let log = self.log.recalling();
            if let Some(snapshot) = look(&log, self.kind).await? {
                let snapshot = migrate(&log, snapshot, self.kind).await?;
                let seen = match self.kind {
                    Kind::Facts => Some(log.all_entries(&snapshot).await?),
                    _ => None,
                };
                return self.head(snapshot, seen).await;
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
                    return self.head(snapshot, Some(BTreeMap::new())).await;
                }
                Outcome::Taken | Outcome::Unknown(_) => self.log.shared.pause(attempt).await,
            }
        }
        Err(crowded(&self.log))
    }

    async fn head(
        &self,
        snapshot: SnapshotRef,
        seen: Option<BTreeMap<String, i64>>,
    ) -> Result<Head> {
        let layout = self.log.layout(&snapshot).await?;
        Ok(Head { snapshot, layout, seen })
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
        let newer = self.log.refresh(&head.snapshot).await?;
        if newer.version() != head.snapshot.version() {
            head.snapshot = newer;
            // First, so that an error leaves nothing that is no longer so.
            head.seen = None;
            head.layout = self.log.layout(&head.snapshot).await?;
        }
        Ok(())
    }

    /// All entries as of the head's snapshot.
    async fn seen<'h>(&self, head: &'h mut Head) -> Result<&'h mut BTreeMap<String, i64>> {
        let seen = match head.seen.take() {
            Some(seen) => seen,
            None => self.log.recalling().all_entries(&head.snapshot).await?,
        };
        Ok(head.seen.insert(seen))
    }

    /// Appends rows once: nothing happens when entry `id` has reached `number` already. Appends
    /// that wait for each other go into one commit.
    pub(crate) async fn append(&self, id: String, number: i64, rows: Rows) -> Result<()> {
        let append = Arc::new(Append { id, number, rows, done: AtomicBool::new(false) });
        self.waiting().push(Arc::clone(&append));
        let place = Place { ledger: self, append };
        let mut guard = self.lock().await?;
        let Some(head) = guard.as_mut() else {
            return Ok(());
        };
        // Each turn ends those that wait longest, so this one's comes.
        while !place.append.is_done() {
            let group: Vec<_> = self.waiting().iter().take(GROUP_MAX).cloned().collect();
            self.write(head, &group, &place.append).await?;
            self.waiting().retain(|append| !append.is_done());
        }
        Ok(())
    }

    /// Writes a group's rows in one commit. Rows of others that cannot be made are left to them.
    async fn write(&self, head: &mut Head, group: &[Arc<Append>], own: &Arc<Append>) -> Result<()> {
        let mut doubt = None;
        let mut taken = None;
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
            // The commit that took the version was not its twin, or the entry would be there.
            if let Some(path) = taken.take() {
                self.remove(&path).await;
            }
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
                        seen.extend(due.entries);
                    }
                    due.appends.iter().for_each(|done| done.done.store(true, Ordering::Release));
                    return Ok(());
                }
                Outcome::Taken => taken = Some(path),
                Outcome::Unknown(error) => doubt = Some(error),
            }
        }
        Err(doubt.unwrap_or_else(|| crowded(&self.log)))
    }

    /// What of a group is not in the table yet. What is, is marked as done.
    async fn due(&self, head: &mut Head, group: &[Arc<Append>], own: &Arc<Append>) -> Result<Due> {
        let layout = head.layout.clone();
        let seen = self.seen(head).await?;
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

    /// Removes a file that surely no commit names.
    pub(crate) async fn remove(&self, path: &object_store::path::Path) {
        use object_store::ObjectStoreExt as _;
        if let Err(error) = self.log.place.store.delete(path).await {
            tracing::debug!(%path, %error, "a staged file stays behind; no table names it");
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
mod tests {
    use std::time::Duration;

    use arrow_array::new_null_array;
    use cdc_core::{
        ErrorKind, Timestamp,
        port::{Clock, Entropy},
    };
    use futures_util::{FutureExt, future::BoxFuture};
    use object_store::memory::InMemory;

    use super::*;
    use crate::{DeltaConfig, DeltaSink, KernelCalls};

    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(1_790_000_000_000_000)
        }

        fn sleep(&self, _pause: Duration) -> BoxFuture<'static, ()> {
            std::future::ready(()).boxed()
        }
    }

    #[derive(Default)]
    struct Counted(std::sync::atomic::AtomicU64);

    impl Entropy for Counted {
        fn next_u64(&self) -> u64 {
            self.0.fetch_add(1, Ordering::Relaxed)
        }
    }

    fn sink() -> DeltaSink {
        let mut config = DeltaConfig::new("memory:///lake/");
        config.kernel_calls = KernelCalls::InPlace;
        let root = "memory:///lake/".parse().expect("a URL");
        let (clock, entropy) = (Arc::new(Still), Arc::new(Counted::default()));
        DeltaSink::with_store(config, root, Arc::new(InMemory::new()), clock, entropy)
            .expect("the settings are right")
    }

    /// One row without a value.
    fn row() -> Rows {
        Box::new(|layout: &Layout| {
            let fields = layout.physical.fields();
            let columns = fields.iter().map(|field| new_null_array(field.data_type(), 1));
            RecordBatch::try_new(Arc::clone(&layout.physical), columns.collect())
                .map_err(|error| Error::bug("no row").caused_by(error))
        })
    }

    fn refused() -> Rows {
        Box::new(|_: &Layout| Err(Error::new(ErrorKind::InvalidData, "no such row")))
    }

    async fn version(ledger: &Ledger) -> u64 {
        let guard = ledger.lock().await.expect("opens");
        guard.as_ref().map_or(0, |head| head.snapshot.version())
    }

    #[tokio::test]
    async fn appends_that_wait_for_each_other_are_one_commit_and_each_is_there() {
        let sink = sink();
        let facts = &sink.inner.facts;
        let before = version(facts).await;
        let busy = facts.lock().await.expect("opens");
        let mut waiting: Vec<_> = (0..GROUP_MAX + 10)
            .map(|table| Box::pin(facts.append(format!("t{table}"), 1, row())))
            .collect();
        for append in &mut waiting {
            assert!(append.now_or_never().is_none(), "the ledger is busy");
        }
        drop(busy);
        for append in waiting {
            append.await.expect("written");
        }
        assert_eq!(version(facts).await, before + 2);
        for table in [0, GROUP_MAX - 1, GROUP_MAX + 9] {
            assert_eq!(facts.number(&format!("t{table}")).await.expect("read"), Some(1));
        }
        // The same again writes nothing.
        facts.append("t0".into(), 1, row()).await.expect("done before");
        assert_eq!(version(facts).await, before + 2);
        assert!(facts.waiting().is_empty());
    }

    #[tokio::test]
    async fn rows_that_cannot_be_made_fail_their_own_append_alone() {
        let sink = sink();
        let facts = &sink.inner.facts;
        let busy = facts.lock().await.expect("opens");
        let mut bad = Box::pin(facts.append("bad".into(), 1, refused()));
        let mut good = Box::pin(facts.append("good".into(), 1, row()));
        assert!((&mut bad).now_or_never().is_none() && (&mut good).now_or_never().is_none());
        drop(busy);
        assert_eq!(bad.await.expect_err("refused").kind(), ErrorKind::InvalidData);
        good.await.expect("written");
        assert_eq!(facts.number("good").await.expect("read"), Some(1));
        assert_eq!(facts.number("bad").await.expect("read"), None);
    }

    #[tokio::test]
    async fn an_append_that_is_given_up_leaves_nothing_to_others() {
        let sink = sink();
        let facts = &sink.inner.facts;
        let before = version(facts).await;
        let busy = facts.lock().await.expect("opens");
        let mut lost = Box::pin(facts.append("lost".into(), 1, row()));
        assert!((&mut lost).now_or_never().is_none());
        drop(lost);
        drop(busy);
        facts.append("kept".into(), 1, row()).await.expect("written");
        assert_eq!(version(facts).await, before + 1);
        assert_eq!(facts.number("lost").await.expect("read"), None);
    }
}
