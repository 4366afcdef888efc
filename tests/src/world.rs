//! A fake server with one database, a target in memory, and runs of the engine between them, all
//! on one virtual clock.

use std::{
    num::NonZeroU64,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_array::RecordBatch;
use cdc_core::{
    Column, Engine, Granularity, Result, RunReport, Settings, StartAt, TableConfig, TableName,
    TableRef, Timestamp,
    port::{
        Catalog, Clock, Entropy, Event, KeyRange, Observer, RowRequest, Shutdown, Sink, Source,
        TableReader,
    },
};
use cdc_fake::{
    CaptureSchedule, FakeDatabase, FakeServer, FakeSource, Login, MemoryTarget, VirtualClock, Zone,
};
use futures_util::{StreamExt, TryStreamExt};

/// Numbers in a row: entropy that a test can repeat.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// The numbers from another one on.
    #[must_use]
    pub const fn starting(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }
}

impl Entropy for Counter {
    fn next_u64(&self) -> u64 {
        self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst)
    }
}

/// Keeps what the engine told, as text.
#[derive(Debug, Default)]
pub struct Log(Mutex<Vec<String>>);

impl Log {
    /// What was told so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Observer for Log {
    fn on(&self, event: &Event<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{event:?}"));
    }
}

/// A fake server, a target in memory, and the clock of both.
pub struct World {
    /// The clock; sleeping moves it.
    pub clock: VirtualClock,
    /// The database.
    pub database: FakeDatabase,
    /// The target.
    pub target: MemoryTarget,
    /// What the engine told.
    pub log: Arc<Log>,
    /// The settings of the next run.
    pub settings: Settings,
}

/// 2026-10-30T12:00:00Z: two days before New York's clocks go back.
pub const BEGIN: Timestamp = Timestamp::from_micros(1_793_361_600_000_000);

impl World {
    /// A database in New York's zone whose capture job runs as it does by default.
    #[must_use]
    pub fn new() -> Self {
        Self::at(BEGIN, Zone::Named(chrono_tz::America::New_York))
    }

    /// The same at another moment, in another zone.
    #[must_use]
    pub fn at(begin: Timestamp, zone: Zone) -> Self {
        let clock = VirtualClock::auto(begin);
        let server = FakeServer::new(clock.clone(), zone);
        let settings = Settings { granularity: Granularity::Minute, ..Settings::default() };
        Self {
            database: server.database("sales"),
            clock,
            target: MemoryTarget::new(),
            log: Arc::default(),
            settings,
        }
    }

    /// The same with capture only where a test asks for it.
    #[must_use]
    pub fn by_hand(self) -> Self {
        self.database.set_capture(CaptureSchedule::Manual);
        self
    }

    /// The same with a limit of rows in a batch.
    #[must_use]
    pub fn rows_max(mut self, rows: u64) -> Self {
        self.settings.limits.rows_max = NonZeroU64::new(rows).unwrap_or(NonZeroU64::MIN);
        self
    }

    /// The source, as the owner.
    ///
    /// # Panics
    /// When the zone is one that the rules of time do not know.
    #[must_use]
    #[allow(clippy::expect_used, reason = "a test's own zone")]
    pub fn source(&self) -> FakeSource {
        FakeSource::new(&self.database, Login::Owner).expect("a known zone")
    }

    /// An engine on this world's source and target.
    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine_on(Arc::new(self.source()), Arc::new(self.target.open()))
    }

    /// An engine on other ports.
    #[must_use]
    pub fn engine_on(&self, source: Arc<dyn Source>, sink: Arc<dyn Sink>) -> Engine {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let entropy = Arc::new(Counter::default());
        Engine::new(source, sink, clock, entropy, self.settings.clone())
            .observed_by(Arc::clone(&self.log) as Arc<dyn Observer>)
    }

    /// Copies everything the source has now.
    pub fn copy(&self, tables: &[TableConfig]) -> RunReport {
        block_on(self.engine().run_once(tables.to_vec(), &Shutdown::never()))
    }

    /// The rows of a table at the source, and its captured columns.
    ///
    /// # Errors
    /// What the source refuses.
    pub fn source_rows(&self, table: &TableName) -> Result<(Vec<RecordBatch>, Vec<Column>)> {
        block_on(async {
            let source = self.source();
            let instances = source.instances(&TableRef::Table(table.clone())).await?;
            let columns = cdc_core::schema::union(&instances)?;
            let request = RowRequest {
                table: table.clone(),
                columns: columns.clone(),
                key: Vec::new(),
                range: KeyRange::default(),
                batch_rows: 1_000,
            };
            let rows = source.rows(request).await?.boxed().try_collect().await?;
            Ok((rows, columns))
        })
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Drives a future to its end on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    futures_executor::block_on(future)
}

/// A table of schema `dbo`, copied from the earliest change under its own name.
#[must_use]
pub fn table(name: &str) -> TableConfig {
    TableConfig {
        source: TableRef::Table(TableName::new("dbo", name)),
        target: name.to_owned(),
        start: StartAt::Earliest,
    }
}
