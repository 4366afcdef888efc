//! `cdc demo`: the main job on real rows, with a crash half-way, and a proof at the end.

mod crash;
mod place;
mod proof;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use cdc_core::{
    Engine, Error, ErrorKind, Position, Result, RunReport, Settings, StartAt, TableConfig,
    TableRef, Timestamp,
    port::{Clock, Entropy, Observer, Shutdown, ShutdownHandle, Sink},
};
use cdc_delta::{DeltaConfig, DeltaSink};

use self::{crash::CrashingSink, place::Place, proof::Proof};
use crate::{
    args::DemoArgs,
    clock::OsEntropy,
    config::{Data, FakeConfig},
    exit::Exit,
    logging::LogObserver,
    parts::Observers,
    progress::Progress,
    report::Report,
    sample::{Sample, TABLES},
    signals,
};

/// The command's name in reports.
pub(crate) const NAME: &str = "demo";

/// Most change rows of a batch: small, so that a short demonstration has many batches.
const ROWS_MAX: u64 = 4_000;
/// Pieces that a full batch is staged in, so that there is a middle to be killed in.
const PIECES: u64 = 8;
/// Transactions of the live workload between two breaths of the runtime.
const STEPS_A_BREATH: usize = 25;
/// The breath: the engine reads meanwhile.
const BREATH: Duration = Duration::from_millis(2);

/// Runs the command.
pub(crate) fn demo(args: &DemoArgs, json: bool, progress: &Progress) -> Report {
    let runtime = match crate::parts::runtime() {
        Ok(runtime) => runtime,
        Err(error) => return Report::failed(NAME, error.into()),
    };
    match runtime.block_on(play(args, json, progress)) {
        Ok(report) => report,
        Err(error) => Report::failed(NAME, error.into()),
    }
}

async fn play(args: &DemoArgs, json: bool, progress: &Progress) -> Result<Report> {
    let shutdown = signals::watch(NAME, json).map_err(crate::parts::no_runtime)?;
    // The rows are read before anything is written or removed.
    let config = FakeConfig {
        data: args.data.clone().map_or(Data::Builtin, Data::Directory),
        seed: args.seed,
        ..FakeConfig::default()
    };
    let sample = Sample::with_flights_max(&config, args.rows)?;
    let place = Place::take(&args.dir, args.overwrite)?;
    let begun = Instant::now();
    let drawing = progress.draw();
    let mut stage = Stage::new(sample, place, progress, args.seed)?;
    let crash = stage.crash(&shutdown).await?;
    let caught = stage.resume(&shutdown).await?;
    let proof = stage.prove().await?;
    drop(drawing);
    let seconds = begun.elapsed().as_secs_f64();
    stage.sample_stops();
    Ok(told(args, &stage, &caught, crash, &proof, seconds))
}

/// The server, the place of the tables, and what every part of the demonstration shares.
struct Stage {
    sample: Option<Sample>,
    place: Place,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    observer: Arc<dyn Observer>,
    seed: u64,
    half: usize,
    steps: usize,
    flights: u64,
}

/// A clock that shows the server's present, plus the machine's time since the demonstration
/// began: lags are told in the server's time, durations in the machine's.
struct StageClock {
    server: cdc_fake::VirtualClock,
    begun: Instant,
}

impl Clock for StageClock {
    fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.begun.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.server.time().plus_micros(passed)
    }

    fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    fn sleep(&self, pause: Duration) -> futures_util::future::BoxFuture<'static, ()> {
        crate::clock::RealClock.sleep(pause)
    }
}

impl Stage {
    fn new(sample: Sample, place: Place, progress: &Progress, seed: u64) -> Result<Self> {
        let (steps, flights) = (sample.steps(), sample.flights());
        let clock = StageClock { server: sample.clock(), begun: Instant::now() };
        Ok(Self {
            sample: Some(sample),
            place,
            clock: Arc::new(clock),
            entropy: Arc::new(OsEntropy::default()),
            observer: Arc::new(Observers(vec![Arc::new(LogObserver), Arc::new(progress.clone())])),
            seed,
            // Half-way, somewhere in the middle tenth of the history.
            half: steps * 45 / 100 + usize::try_from(seed % 97).unwrap_or(0) * steps / 970,
            steps,
            flights,
        })
    }

    fn sample(&mut self) -> Result<&mut Sample> {
        self.sample.as_mut().ok_or_else(|| Error::bug("the simulated server is elsewhere"))
    }

    fn sample_stops(&mut self) {
        self.sample = None;
    }

    /// A new sink over the same place: nothing of an older one is known to it.
    fn sink(&self) -> Result<DeltaSink> {
        let config = DeltaConfig::new(self.place.root());
        DeltaSink::new(config, Arc::clone(&self.clock), Arc::clone(&self.entropy))
    }

    /// Most rows of a batch: even the first half of a few flights makes more than one.
    fn rows_max(&self) -> u64 {
        (self.flights / 8).clamp(PIECES, ROWS_MAX)
    }

    /// Most rows of a piece of a batch.
    fn piece_rows(&self) -> u64 {
        self.rows_max() / PIECES
    }

    fn engine(&mut self, sink: Arc<dyn Sink>) -> Result<Engine> {
        let mut settings = Settings { poll_interval: BREATH * 10, ..Settings::default() };
        settings.limits.rows_max = positive(self.rows_max())?;
        settings.batch_rows = positive(usize::try_from(self.piece_rows()).unwrap_or(1))?;
        settings.progress_interval = Duration::from_secs(1);
        // The history jumps over hours in which no flight departs.
        settings.silence_max = Duration::from_secs(30 * 86_400);
        let source = Arc::new(self.sample()?.source()?);
        let (clock, entropy) = (Arc::clone(&self.clock), Arc::clone(&self.entropy));
        let engine = Engine::new(source, sink, clock, entropy, settings);
        Ok(engine.observed_by(Arc::clone(&self.observer)))
    }

    /// The first half of the history, copied until a batch is staged in part; then the engine's
    /// future is dropped and everything in memory forgotten, as a kill would.
    async fn crash(&mut self, shutdown: &Shutdown) -> Result<Crash> {
        let half = self.half;
        let sample = self.sample()?;
        for _ in 0..half {
            sample.next()?;
        }
        // Capture reads the log some seconds behind.
        let now = sample.now();
        sample.pass_until(now.plus_micros(10_000_000))?;
        // About half of what the first half inserts, and behind the first batch, unless one
        // commit is larger than a batch.
        let pieces = self.flights / 4 / self.piece_rows().max(1);
        let after = pieces.max(PIECES + 2) + self.seed % 5;
        let sink = Arc::new(CrashingSink::new(self.sink()?, "flights", after));
        let engine = self.engine(Arc::clone(&sink) as Arc<dyn Sink>)?;
        let run = tokio::select! {
            () = sink.crashed() => None,
            run = engine.run_once(tables(), shutdown) => Some(run),
        };
        drop((engine, sink));
        let killed = run.is_none();
        if let Some(run) = run {
            // Too few rows to be hit in the middle, or an error.
            checked(run, shutdown)?;
            tracing::warn!("the first half was copied without a crash: too few rows");
        } else {
            tracing::warn!("killed in the middle of a staged batch; starting again");
        }
        let table = flights();
        let spec = proof::spec(self.sample()?.source()?, &table).await?;
        let state = self.sink()?.inspect(&spec).await?;
        Ok(Crash { killed, resumed_at: state.and_then(|state| state.mark).map(|mark| mark.end) })
    }

    /// New objects go on from what is durable, while the second half of the history happens.
    /// Then everything that is left is copied.
    async fn resume(&mut self, shutdown: &Shutdown) -> Result<Caught> {
        let (handle, finished) = ShutdownHandle::new();
        let live = self.engine(Arc::new(self.sink()?))?;
        let mut sample = self.sample.take().ok_or_else(|| Error::bug("no server"))?;
        let outer = shutdown.clone();
        let history = tokio::spawn(async move {
            let mut played = Result::Ok(());
            let mut count = 0_usize;
            while !outer.is_requested() {
                match sample.next() {
                    Ok(true) => count += 1,
                    Ok(false) => break,
                    Err(error) => {
                        played = Err(error);
                        break;
                    }
                }
                if count.is_multiple_of(STEPS_A_BREATH) {
                    tokio::time::sleep(BREATH).await;
                }
            }
            handle.request();
            (sample, played)
        });
        let first = live.run(tables(), &finished).await;
        let (sample, played) = history
            .await
            .map_err(|error| Error::bug("the history has broken off").caused_by(error))?;
        self.sample = Some(sample);
        played?;
        let first = checked(first, shutdown)?;
        let rest = self.engine(Arc::new(self.sink()?))?.run_once(tables(), shutdown).await;
        Ok(Caught { first, last: checked(rest, shutdown)? })
    }

    async fn prove(&mut self) -> Result<Proof> {
        let sink = self.sink()?;
        let sample = self.sample()?;
        proof::prove(sample, &sink)
    }
}

/// What became of the crash.
#[derive(Clone, Copy)]
struct Crash {
    /// The copy was hit in the middle of a staged batch.
    killed: bool,
    /// The mark that the next runner finds for the table that was to be hit.
    resumed_at: Option<Position>,
}

impl Crash {
    /// The crash for people.
    fn text(self) -> String {
        let at = self.resumed_at.map_or_else(|| "the begin".into(), |at| format!("mark {at}"));
        if self.killed {
            format!("killed half-way in the middle of a staged batch, resumed at {at}")
        } else {
            format!("not killed: too few rows for a crash half-way; went on at {at}")
        }
    }
}

/// What the runs after the crash did.
struct Caught {
    first: RunReport,
    last: RunReport,
}

fn positive<T, N: TryFrom<T>>(number: T) -> Result<N> {
    N::try_from(number).map_err(|_| Error::bug("a limit is zero"))
}

fn tables() -> Vec<TableConfig> {
    let config = |name: &str| TableConfig {
        source: TableRef::Table(cdc_core::TableName::new("dbo", name)),
        target: name.to_owned(),
        start: StartAt::Earliest,
    };
    TABLES.iter().map(|table| config(table.name)).collect()
}

fn flights() -> TableConfig {
    TableConfig {
        source: TableRef::Table(crate::sample::FLIGHTS.table_name()),
        target: crate::sample::FLIGHTS.name.to_owned(),
        start: StartAt::Earliest,
    }
}

/// A run without errors, or its first error. A stop that only ends the live part is none.
fn checked(mut run: RunReport, shutdown: &Shutdown) -> Result<RunReport> {
    shutdown.check().map_err(|error| {
        error.remedy("start the demonstration again with --overwrite; it does not go on")
    })?;
    for table in &mut run.tables {
        match table.error.take() {
            Some(error) if error.kind() == ErrorKind::Cancelled => {}
            Some(error) => return Err(error),
            None => {}
        }
    }
    Ok(run)
}

fn told(
    args: &DemoArgs,
    stage: &Stage,
    caught: &Caught,
    crash: Crash,
    proof: &Proof,
    seconds: f64,
) -> Report {
    let exit = if proof.is_equal() { Exit::Done } else { Exit::Failed };
    let mut report = Report::new(NAME, exit).with_run(&caught.last);
    for line in report.tables.iter_mut().flatten() {
        if let Some(found) = proof.tables.iter().find(|found| found.table == line.table) {
            // Rows of the whole demonstration, not of its last run only.
            line.rows = found.bronze_rows;
        }
        if let Some(first) = caught.first.tables.iter().find(|first| first.table == line.table) {
            line.batches += first.batches;
        }
    }
    report.seconds = seconds;
    report.target = Some(stage.place.root());
    report.error = proof.failure();
    let rows: u64 = proof.tables.iter().map(|table| table.bronze_rows).sum();
    #[allow(clippy::cast_precision_loss, reason = "a figure to look at")]
    let pace = rows as f64 / seconds.max(0.001);
    report.tell("resumed_at", crash.resumed_at.map(|at| at.to_string()), crash.text());
    let live: u64 = caught.first.tables.iter().map(|table| table.rows).sum();
    report.tell(
        "rows_after_crash",
        live + caught.last.tables.iter().map(|table| table.rows).sum::<u64>(),
        format!("transactions at the server: {}", stage.steps),
    );
    let counted = format!(
        "{rows} change rows in {seconds:.1} s: {pace:.0} rows/s; an update counts as two, its \
         images before and after"
    );
    report.tell("rows", rows, counted);
    report.more.insert("rows_per_second".into(), pace.round().into());
    report.more.insert("seed".into(), args.seed.into());
    report.more.insert("proof".into(), serde_json::to_value(&proof.tables).unwrap_or_default());
    for table in &proof.tables {
        report.lines.push(table.to_string());
    }
    report
}
