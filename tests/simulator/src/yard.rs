//! The yard: everything that processes share, and how another runner is started in it.

use std::{
    collections::BTreeMap,
    num::{NonZeroU64, NonZeroUsize},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
    time::Duration,
};

use cdc_core::{
    Engine, ErrorKind, RunReport, Settings, StartAt, TableConfig, TableRef, Timestamp,
    port::{Clock, Entropy, Observer, Shutdown, Sink},
};
use cdc_delta::{DeltaConfig, DeltaSink, KernelCalls};
use cdc_fake::{
    FakeDatabase, FakeSource, Login, SeededEntropy, VirtualClock,
    faults::{Fault, FaultPlan, FaultySource, Odds, Operation, TraceEntry, Watcher},
};
use object_store::memory::InMemory;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use url::Url;

use crate::{
    audit::Auditor,
    hub::{Hub, ProcessId},
    record::Record,
    script::{Aim, GRANULARITY, Mishap, Run, Script, Start, Target},
    stage::{LOGIN, Stage, source_name},
    store::Bucket,
    watch::{Allowance, WatchedSink},
    witness::Witness,
};

/// Runners that one run may see.
const RUNNERS_MAX: usize = 4;
/// Bytes of an upload's part where uploads go in parts.
const PART_BYTES: usize = 700;
/// Bytes after which a file ends where uploads go in parts: half as much again as its writer keeps
/// back before an upload begins.
const FILE_BYTES: u64 = 14_000;
/// Rows of a row group where uploads go in parts: few, so that an upload begins long before its
/// file's end, and may be given up.
const GROUP_ROWS: usize = 3;
/// How long a slow call takes.
const PAUSE: Duration = Duration::from_secs(17);
/// Batches before a stream breaks, at most.
const BATCHES_MAX: u64 = 3;
/// Calls of a kind that a run's aim may meet.
const AIMED_MAX: u32 = 200;
/// Parts of an upload on their way at the same time.
const PARTS: usize = 2;

/// What is the same for every run of a simulation.
pub struct Yard {
    pub(crate) clock: VirtualClock,
    pub(crate) database: FakeDatabase,
    pub(crate) stage: Stage,
    pub(crate) hub: Hub,
    pub(crate) bucket: Bucket,
    pub(crate) auditor: Auditor,
    pub(crate) record: Record,
    script: Arc<Script>,
    now: Mutex<Option<Now>>,
}

/// What belongs to the present run.
struct Now {
    run: Run,
    plan: FaultPlan,
    shutdown: Shutdown,
    handles: BTreeMap<u32, ProcessId>,
    reports: Vec<(ProcessId, RunReport)>,
    random: ChaCha8Rng,
}

/// Tells the yard of what happens at the ports.
struct Ear(Weak<Yard>);

impl Watcher for Ear {
    fn begun(&self, handle: u32, operation: Operation, fault: Option<Fault>) {
        if let Some(yard) = self.0.upgrade() {
            yard.begun(handle, operation, fault);
        }
    }

    fn died(&self, handle: u32) {
        if let Some(yard) = self.0.upgrade() {
            let process = yard.process(handle);
            yard.record.note(format!("p{process} died"));
            yard.hub.crash(process);
        }
    }

    fn ended(&self, entry: TraceEntry) {
        if let Some(yard) = self.0.upgrade() {
            let process = yard.process(entry.handle);
            if entry.operation == Operation::High {
                yard.auditor.asked(process);
            }
            let end = entry.error.map_or_else(|| "ok".to_owned(), |kind| kind.to_string());
            yard.record.note(format!("p{process} {:?} {end}", entry.operation));
        }
    }
}

/// The name of a fault, for counts.
#[must_use]
pub const fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::Pass => "Pass",
        Fault::Refuse(_) => "Refuse",
        Fault::LoseReply => "LoseReply",
        Fault::Hold => "Hold",
        Fault::Slow(_) => "Slow",
        Fault::BreakStream(..) => "BreakStream",
        Fault::Crash => "Crash",
        Fault::CrashAfter => "CrashAfter",
    }
}

impl Yard {
    /// The yard of a script, with its tables captured and nothing copied.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn new(script: &Script) -> Result<Arc<Self>, String> {
        let clock = VirtualClock::manual(script.world.place.begin());
        let server = cdc_fake::FakeServer::new(clock.clone(), script.world.place.zone());
        let database = server.database("sales");
        database.keep_archive();
        let record = Record::new(&clock);
        let stage = Stage::new(&database, &script.world).map_err(|error| error.to_string())?;
        clock.advance(Duration::from_secs(60));
        let hub = Hub::new(script.seed);
        let objects = Arc::new(InMemory::new());
        let auditor = Auditor::new(Arc::clone(&objects), &database, &stage, &record);
        let yard: Arc<OnceLock<Weak<Self>>> = Arc::default();
        let later = Arc::clone(&yard);
        let starter = move || {
            if let Some(yard) = later.get().and_then(Weak::upgrade) {
                return yard.start("a request of the store");
            }
            false
        };
        let looks = auditor.clone();
        let audit = move |process, path: &_, bytes: bytes::Bytes| looks.look(process, path, &bytes);
        let bucket =
            Bucket::new(objects, &hub, &clock, &record, Arc::new(audit), Arc::new(starter));
        let built = Arc::new(Self {
            clock,
            database,
            stage,
            hub,
            bucket,
            auditor,
            record,
            script: Arc::new(script.clone()),
            now: Mutex::new(None),
        });
        let _ = yard.set(Arc::downgrade(&built));
        Ok(built)
    }

    fn now(&self) -> MutexGuard<'_, Option<Now>> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn process(&self, handle: u32) -> ProcessId {
        self.now().as_ref().and_then(|now| now.handles.get(&handle).copied()).unwrap_or_default()
    }

    fn begun(self: &Arc<Self>, handle: u32, operation: Operation, fault: Option<Fault>) {
        self.record.count(format!("call:{operation:?}"));
        if let Some(fault) = fault {
            let name = fault_name(fault);
            let process = self.process(handle);
            self.record.note(format!("p{process} {operation:?} meets {fault:?}"));
            self.record.count(format!("port:{operation:?}:{name}"));
        }
        let second = self.now().as_mut().is_some_and(|now| {
            let trouble = now.run.trouble;
            let aimed = trouble.aim.filter(|aim| aim.what == Mishap::Second);
            let aimed = aimed.filter(|aim| match aim.at {
                Target::Port(call) => Operation::from(call) == operation,
                Target::Store(_) => false,
            });
            let odds = trouble.second.max(aimed.map_or(0, |aim| aim.chance));
            odds > 0 && now.random.random_range(0..10_000) < odds
        });
        if second && self.start("a call") {
            self.record.count(format!("port:{operation:?}:Second"));
        }
    }

    /// The tables of the script, as they are configured.
    #[must_use]
    pub fn tables(&self) -> Vec<TableConfig> {
        let start = match (self.script.world.start, self.script.world.since()) {
            (_, Some(moment)) => StartAt::Since(moment),
            (Start::Latest, None) => StartAt::Latest,
            _ => StartAt::Earliest,
        };
        let config = |name: &&'static str| TableConfig {
            source: TableRef::Table(source_name(name)),
            target: (*name).to_owned(),
            start,
        };
        self.stage.tables().iter().map(config).collect()
    }

    /// The moment that the copies begin at, where they begin at a moment.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.script.world.since()
    }

    /// A source that meets no faults and sees everything.
    ///
    /// # Errors
    /// For a zone that the rules of time do not know.
    pub fn source(&self) -> Result<FakeSource, String> {
        FakeSource::new(&self.database, Login::Owner).map_err(|error| error.report())
    }

    fn runners_source(&self) -> Option<FakeSource> {
        FakeSource::new(&self.database, Login::named(LOGIN)).ok()
    }

    /// Prepares a run; no runner yet.
    pub fn prepare(self: &Arc<Self>, run: &Run, number: u64, shutdown: &Shutdown) {
        let seed = self.script.seed.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(number);
        let ear = Arc::new(Ear(Arc::downgrade(self)));
        let plan = FaultPlan::watched(Arc::new(self.clock.clone()), ear);
        plan.chance(seed, odds(run));
        aim(&plan, seed, run);
        self.bucket.set_trouble(seed, run.trouble);
        // The last, short one is sent beside the others.
        self.bucket.set_parts_max(u32::try_from(PARTS + 1).unwrap_or(u32::MAX));
        // A late write of an earlier run has that run's limit.
        let lates = self.bucket.has_late() || run.trouble.lates();
        let commits = run.commits_max.filter(|_| !lates);
        self.auditor.run_begins(self.clock.time(), commits, lates);
        *self.now() = Some(Now {
            run: run.clone(),
            plan,
            shutdown: shutdown.clone(),
            handles: BTreeMap::new(),
            reports: Vec::new(),
            random: ChaCha8Rng::seed_from_u64(seed ^ 0x5345_434F),
        });
    }

    /// Starts a runner, unless there were enough in this run.
    pub fn start(self: &Arc<Self>, why: &str) -> bool {
        let process = self.hub.reserve();
        let Some((engine, shutdown, ends)) = self.runner(process) else { return false };
        self.record.note(format!("p{process} starts at {why}"));
        self.record.count("engine:runner-started");
        if self.hub.has_crashed() {
            self.record.count("engine:restarted");
        }
        let (yard, tables) = (Arc::downgrade(self), self.tables());
        self.hub.start(process, async move {
            let report = if ends {
                engine.run_once(tables, &shutdown).await
            } else {
                engine.run(tables, &shutdown).await
            };
            if let Some(yard) = yard.upgrade()
                && let Some(now) = yard.now().as_mut()
            {
                now.reports.push((process, report));
            }
        });
        true
    }

    fn runner(self: &Arc<Self>, process: ProcessId) -> Option<(Engine, Shutdown, bool)> {
        let clock: Arc<dyn Clock> = Arc::new(self.clock.clone());
        let seed = self.script.seed.wrapping_mul(31).wrapping_add(u64::from(process));
        let entropy = || -> Arc<dyn Entropy> { Arc::new(SeededEntropy::new(seed)) };
        let source = self.runners_source()?;
        let sink = self.sink(process, Arc::clone(&clock), entropy())?;
        let mut now = self.now();
        let now = now.as_mut()?;
        if now.handles.len() >= RUNNERS_MAX {
            return None;
        }
        let source = FaultySource::new(Arc::new(source), &now.plan);
        now.handles.insert(source.handle(), process);
        let allowance = Allowance {
            batch_rows: now.run.batch_rows.into(),
            rows_max: now.run.rows_max,
            tables_at_once: usize::try_from(now.run.tables_at_once).unwrap_or(1),
        };
        let sink: Arc<dyn Sink> = Arc::new(source.sink(sink));
        let sink = WatchedSink::new(sink, &self.record, allowance);
        let settings = settings(&now.run);
        let ends = now.run.seconds.is_none();
        let silence = (!ends).then_some(settings.silence_max);
        let witness = Witness::new(process, &self.record, &self.auditor, silence);
        let engine = Engine::new(Arc::new(source), Arc::new(sink), clock, entropy(), settings)
            .observed_by(Arc::new(witness) as Arc<dyn Observer>);
        Some((engine, now.shutdown.clone(), ends))
    }

    fn sink(
        &self,
        process: ProcessId,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Option<Arc<dyn Sink>> {
        let mut config = DeltaConfig::new("memory:///lake/");
        config.kernel_calls = KernelCalls::InPlace;
        config.checkpoint_interval = self.script.world.checkpoints;
        config.upload_parts = PARTS;
        if self.script.world.parts {
            config.upload_part_bytes = PART_BYTES;
            config.file_bytes_max = FILE_BYTES;
            config.row_group_rows = GROUP_ROWS;
        }
        let root = Url::parse("memory:///lake/").ok()?;
        let store = self.bucket.of(process);
        let sink = DeltaSink::with_store(config, root, store, clock, entropy).ok()?;
        Some(Arc::new(sink))
    }

    /// Lets every held call go on. Returns how many there were.
    pub fn release(&self) -> usize {
        let plan = self.now().as_ref().map(|now| now.plan.clone());
        plan.map_or(0, |plan| plan.release_all())
    }

    /// The reports of the runners that came to an end, and how many were started.
    pub fn reports(&self) -> (Vec<(ProcessId, RunReport)>, usize) {
        match self.now().take() {
            Some(now) => (now.reports, now.handles.len()),
            None => (Vec::new(), 0),
        }
    }
}

fn settings(run: &Run) -> Settings {
    let mut settings = Settings { granularity: GRANULARITY, ..Settings::default() };
    let one = NonZeroUsize::MIN;
    let count = |number: u32| usize::try_from(number).ok().and_then(NonZeroUsize::new);
    settings.limits.rows_max = NonZeroU64::new(run.rows_max).unwrap_or(NonZeroU64::MIN);
    settings.limits.commits_max = run.commits_max.and_then(NonZeroU64::new);
    settings.batch_rows = count(run.batch_rows).unwrap_or(one);
    settings.tables_at_once = count(run.tables_at_once).unwrap_or(one);
    settings
}

fn odds(run: &Run) -> Odds {
    let trouble = run.trouble;
    let chance = |number: u16| f64::from(number) / 10_000.0;
    Odds {
        refuse: chance(trouble.refuse),
        lose_reply: chance(trouble.lose),
        slow: chance(trouble.slow),
        hold: chance(trouble.hold),
        yields: chance(trouble.yields),
        break_stream: chance(trouble.break_stream),
        crash: chance(trouble.crash),
        kinds: vec![ErrorKind::Unavailable, ErrorKind::Conflict],
        pause: PAUSE,
        batches_max: BATCHES_MAX,
    }
}

/// What is aimed at one kind of call: by chance, for the first calls of the run.
fn aim(plan: &FaultPlan, seed: u64, run: &Run) {
    let Some(Aim { at: Target::Port(call), what, chance, .. }) = run.trouble.aim else { return };
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ 0x0041_494D);
    for _ in 0..AIMED_MAX {
        let hit = random.random_range(0..10_000) < chance;
        let kind = if random.random() { ErrorKind::Unavailable } else { ErrorKind::Conflict };
        let fault = match what {
            Mishap::Refuse => Fault::Refuse(kind),
            Mishap::Lose => Fault::LoseReply,
            Mishap::Slow => Fault::Slow(PAUSE),
            Mishap::Hold => Fault::Hold,
            Mishap::Crash => Fault::Crash,
            Mishap::CrashAfter => Fault::CrashAfter,
            Mishap::Break => Fault::BreakStream(random.random_range(0..=BATCHES_MAX), kind),
            Mishap::Second | Mishap::Late => return,
        };
        plan.script(call.into(), if hit { fault } else { Fault::Pass });
    }
}
