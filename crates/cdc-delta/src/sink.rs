//! The sink: one root, its shared tables, and the attach of a table.

use std::sync::Arc;

use async_trait::async_trait;
use cdc_core::{
    Result, TableSpec,
    planted::{self, Planted},
    port::{Attached, Clock, Entropy, Sink, SinkCapabilities, TargetState},
};
use object_store::ObjectStore;
use url::Url;

use crate::{
    bronze,
    config::DeltaConfig,
    control, facts,
    kernel::Kernel,
    ledger::Ledger,
    log::{Layout, Log, Shared},
    mark::Names,
    migration::Kind,
    store::Place,
    table::DeltaTable,
};

/// Commits of control between two checkpoints: its files are few and it is replayed at every
/// verdict.
const CONTROL_INTERVAL: u64 = 10;

/// A root directory of Delta tables, local or in an object store.
///
/// Cheap to clone; clones share their state. A root may be written by any number of processes;
/// each table by one runner at a time.
#[derive(Clone)]
pub struct DeltaSink {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shared: Shared,
    root: Place,
    pub(crate) facts: Ledger,
    pub(crate) control: Ledger,
    /// Files of batches that were given up.
    #[cfg(feature = "planted-bugs")]
    pub(crate) given_up: crate::planted::GivenUp,
}

impl std::fmt::Debug for DeltaSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeltaSink")
            .field("root", &self.inner.root.url.as_str())
            .finish_non_exhaustive()
    }
}

impl DeltaSink {
    /// A sink over the store that belongs to the root's URL. Nothing is read or written yet.
    ///
    /// # Errors
    /// `Config` for a setting outside its range or a root that no known store serves.
    pub fn new(
        config: DeltaConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self> {
        config.check()?;
        let root = Place::of_config(&config)?;
        Ok(Self::over(root, config, clock, entropy))
    }

    /// A sink over a given store, whose paths are the paths of `root`: for stores with faults or
    /// counters, for tests and simulations. The setting `root` is not read.
    ///
    /// # Errors
    /// `Config` as for [`DeltaSink::new`].
    pub fn with_store(
        config: DeltaConfig,
        root: Url,
        store: Arc<dyn ObjectStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self> {
        config.check()?;
        let root = Place::new(store, root)?;
        Ok(Self::over(root, config, clock, entropy))
    }

    fn over(
        root: Place,
        config: DeltaConfig,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let shared = Shared {
            kernel: Kernel::new(Arc::clone(&root.store), config.kernel_calls),
            config: Arc::new(config),
            clock,
            // Half of the numbers, so that it fits the log.
            runner: i64::try_from(entropy.next_u64() >> 1).unwrap_or(i64::MAX),
            entropy,
        };
        let log = |dir: &str| Log::new(shared.clone(), root.below(dir));
        let facts = Ledger::new(log(&shared.config.facts_dir), Kind::Facts);
        let control = log(&shared.config.control_dir).checkpointed_every(CONTROL_INTERVAL);
        let control = Ledger::new(control, Kind::Control);
        let inner = Inner {
            shared,
            root,
            facts,
            control,
            #[cfg(feature = "planted-bugs")]
            given_up: crate::planted::GivenUp::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Where the bronze table of `table` lies: a path for local files, else a URL.
    #[must_use]
    pub fn bronze_location(&self, table: &str) -> String {
        let dir = crate::store::directory_name(table);
        let config = &self.inner.shared.config;
        self.inner.root.below(&config.bronze_dir).below(&dir).to_string()
    }

    /// Where the facts table lies.
    #[must_use]
    pub fn facts_location(&self) -> String {
        self.inner.facts.log.place.to_string()
    }

    /// Where the control table lies.
    #[must_use]
    pub fn control_location(&self) -> String {
        self.inner.control.log.place.to_string()
    }
}

impl Inner {
    /// What facts and control say of a table: the greatest sequence that either rests on, the
    /// last batch with facts, and the verdict. Writes nothing.
    async fn recorded(&self, spec: &TableSpec, names: &Names) -> Result<Recorded> {
        let facts = self.facts.number(&names.facts()).await?;
        let control = self.control.log.recalling();
        let stored = match self.control.look(&control).await? {
            Some(snapshot) => control::stored(&control, &snapshot, names, &spec.name).await?,
            None => None,
        };
        Ok(Recorded { facts, stored })
    }

    /// Writes the facts of the batches whose own write did not happen before the runner ended.
    async fn repair_facts(
        &self,
        log: &Log,
        owned: &bronze::Owned,
        spec: &TableSpec,
        names: &Names,
        known: i64,
    ) -> Result<()> {
        let Some(mark) = &owned.mark else {
            return Ok(());
        };
        let sequence = i64::try_from(mark.sequence).unwrap_or(i64::MAX);
        if known >= sequence || planted::is(Planted::FactsNotRepaired) {
            return Ok(());
        }
        let record = match bronze::record(log, &owned.snapshot, mark.sequence).await? {
            Some(record) => record,
            None => {
                tracing::warn!(
                    table = spec.name,
                    batch = mark.sequence,
                    "the log no longer tells the facts of a batch; its row has the mark only"
                );
                facts::bare(&spec.name, mark)
            }
        };
        if sequence.saturating_sub(known) > 1 {
            tracing::warn!(
                table = spec.name,
                from = known.saturating_add(1),
                to = sequence - 1,
                "facts of earlier batches are missing and stay so"
            );
        }
        let now = self.shared.clock.now();
        let rows = Box::new(move |layout: &Layout| record.rows(layout, now));
        self.facts.append(names.facts(), sequence, rows).await
    }
}

struct Recorded {
    facts: Option<i64>,
    stored: Option<control::Stored>,
}

impl Recorded {
    fn sequence(&self) -> i64 {
        let stored = self.stored.as_ref().map(|stored| stored.sequence);
        self.facts.max(stored).unwrap_or(0)
    }
}

#[async_trait]
impl Sink for DeltaSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities::least().with_add_columns().with_verdict()
    }

    async fn attach(&self, spec: &TableSpec) -> Result<Attached> {
        let inner = &self.inner;
        let names = Names::new(&spec.name);
        let log = bronze::log_of(&inner.shared, &inner.root, spec);
        // Facts and verdict follow the mark, so they are read before it.
        let recorded = inner.recorded(spec, &names).await?;
        let known = recorded.sequence();
        let recalling = log.recalling();
        let found = bronze::find(&recalling, spec, &names).await?;
        let before = match &found {
            Some(found) => names.mark(&found.entries)?,
            None => None,
        };
        let reached = before.map_or(0, |mark| i64::try_from(mark.sequence).unwrap_or(i64::MAX));
        if reached < known {
            return Err(bronze::rewound(&log, spec, found.is_some(), before.as_ref(), known));
        }
        let owned = bronze::own(&recalling, spec, &names, found).await?;
        drop(inner.facts.lock().await?);
        drop(inner.control.lock().await?);
        inner.repair_facts(&log, &owned, spec, &names, recorded.facts.unwrap_or(0)).await?;
        let state =
            TargetState { mark: owned.mark, verdict: recorded.stored.map(|stored| stored.verdict) };
        let table = DeltaTable::new(Arc::clone(inner), log, spec, owned, state).await?;
        Ok(Attached { table: Box::new(table), state })
    }

    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>> {
        let inner = &self.inner;
        let names = Names::new(&spec.name);
        let log = bronze::log_of(&inner.shared, &inner.root, spec);
        let recorded = inner.recorded(spec, &names).await?;
        let log = log.recalling();
        let Some(snapshot) = bronze::look(&log, spec).await? else {
            return Ok(None);
        };
        let mark = names.mark(&bronze::entries(&log, &snapshot, &names).await?)?;
        Ok(Some(TargetState { mark, verdict: recorded.stored.map(|stored| stored.verdict) }))
    }

    async fn is_superseded(&self, spec: &TableSpec) -> Result<bool> {
        let inner = &self.inner;
        let names = Names::new(&spec.name);
        let log = bronze::log_of(&inner.shared, &inner.root, spec);
        let log = log.recalling();
        let Some(snapshot) = bronze::look(&log, spec).await? else {
            return Ok(false);
        };
        let entries = bronze::entries(&log, &snapshot, &names).await?;
        Ok(entries.get(&names.runner()).is_some_and(|runner| *runner != inner.shared.runner))
    }
}
