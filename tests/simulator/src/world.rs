//! Plays a script: its steps, its runs on one thread and one clock, and the rest at the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use cdc_core::{
    Position, Timestamp,
    port::{Shutdown, ShutdownHandle},
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    compare,
    invariant::{Invariant, Violation},
    judge,
    script::{Act, Run, Script, Start, Step, Trouble},
    stage,
    yard::Yard,
};

/// A run that ends by itself takes no longer than this on the virtual clock.
const RUN_MAX: Duration = Duration::from_secs(24 * 3600);
/// A run that was asked to stop takes no longer than this; what happens at the source meanwhile may
/// let hours pass.
const STOP_MAX: Duration = Duration::from_secs(12 * 3600);
/// Steps of processes that one run makes at most.
const STEPS_MAX: u64 = 3_000_000;
/// Rounds in which everything comes to rest.
const ROUNDS: u32 = 3;
/// Longer than capture's lag, its interval, and the distance of idle entries.
const REST: Duration = Duration::from_secs(700);

/// What became of a script.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The first broken invariant.
    pub violation: Option<Violation>,
    /// The hash of all events.
    pub hash: u64,
    /// How many events there were.
    pub events: u64,
    /// Steps of the script that were played.
    pub steps: u64,
    /// What was met, and how often.
    pub counts: BTreeMap<String, u64>,
    /// The last events.
    pub lines: Vec<String>,
}

/// Plays a script to its end or to the first broken invariant.
#[must_use]
pub fn play(script: &Script) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    match (Yard::new(script), runtime) {
        (Ok(yard), Ok(runtime)) => {
            let mut world = World {
                random: ChaCha8Rng::seed_from_u64(script.seed ^ 0x574F_524C),
                yard,
                timeline: Vec::new(),
                runs: 0,
                ended: BTreeSet::new(),
                steps: 0,
                resting: false,
            };
            runtime.block_on(world.play(script));
            world.outcome()
        }
        (Err(why), _) => unplayable(why),
        (_, Err(error)) => unplayable(error.to_string()),
    }
}

fn unplayable(detail: String) -> Outcome {
    let violation = Some(Violation { invariant: Invariant::RunEnds, detail });
    Outcome { violation, ..Outcome::default() }
}

struct World {
    yard: Arc<Yard>,
    random: ChaCha8Rng,
    /// What happens so long after the next run begins.
    timeline: Vec<(Duration, Act)>,
    runs: u64,
    /// Tables that stopped for good, rightly.
    ended: BTreeSet<String>,
    steps: u64,
    /// Nothing happens at the source, whatever is called.
    resting: bool,
}

impl World {
    async fn play(&mut self, script: &Script) {
        if script.world.start == Start::Before {
            self.run(&Run::CALM).await;
            let all = self.ended.is_empty();
            self.yard.record.check(all, Invariant::StopKind, || "the first run stopped".into());
        }
        for step in &script.steps {
            if self.yard.record.is_broken() {
                return;
            }
            self.steps += 1;
            self.step(step).await;
        }
        self.settle(script).await;
    }

    async fn step(&mut self, step: &Step) {
        let stage = &self.yard.stage;
        match step {
            Step::Now(act) => {
                self.yard.record.note(format!("act {}", stage::name(act)));
                stage.act(act);
            }
            Step::At { call, skip, act } => stage.plant(*call, *skip, act.clone()),
            Step::After { millis, act } => {
                self.timeline.push((Duration::from_millis((*millis).into()), act.clone()));
            }
            Step::Kill(rows) => {
                self.yard.database.kill_after_rows(cdc_fake::Call::Changes, (*rows).into());
            }
            Step::Run(run) => self.run(run).await,
        }
    }

    async fn run(&mut self, run: &Run) {
        self.runs += 1;
        self.yard.stage.run_begins();
        let begin = self.yard.clock.time();
        let (handle, shutdown) = match run.seconds {
            Some(_) => {
                let (handle, shutdown) = ShutdownHandle::new();
                (Some(handle), shutdown)
            }
            None => (None, Shutdown::never()),
        };
        self.yard.prepare(run, self.runs, &shutdown);
        self.yard.record.note(format!("run {} begins: {run:?}", self.runs));
        self.yard.start("the begin");
        if run.two {
            self.yard.start("the begin");
        }
        self.drive(run, begin, handle).await;
        self.yard.stage.quiet(true);
        let (reports, started) = self.yard.reports();
        let mut ended = judge::judge(&self.yard, run, begin, &reports, started);
        self.ended.append(&mut ended);
        self.yard.hub.forget();
        self.yard.stage.quiet(self.resting);
    }

    /// Lets the processes run until all have come to an end.
    async fn drive(&mut self, run: &Run, begin: Timestamp, mut handle: Option<ShutdownHandle>) {
        let mut timeline: Vec<(Timestamp, Act)> = std::mem::take(&mut self.timeline)
            .into_iter()
            .map(|(after, act)| (begin.plus_micros(micros(after)), act))
            .collect();
        timeline.sort_by_key(|(due, _)| std::cmp::Reverse(*due));
        let stop = run.seconds.map(|seconds| begin.plus_micros(i64::from(seconds) * 1_000_000));
        let limit = run.seconds.map_or(RUN_MAX, |seconds| {
            Duration::from_secs(seconds.into()).saturating_add(STOP_MAX)
        });
        let mut passed = Duration::ZERO;
        let mut last = begin;
        for step in 0_u64.. {
            if self.yard.record.is_broken() {
                break;
            }
            let now = self.yard.clock.time();
            passed += Duration::from_micros(u64::try_from(now.micros_since(last)).unwrap_or(0));
            last = now;
            if passed > limit || step > STEPS_MAX {
                let detail = format!("run {} goes on after {passed:?}, {step} steps", self.runs);
                self.yard.record.broken(Invariant::RunEnds, detail);
                break;
            }
            if stop.is_some_and(|stop| now >= stop)
                && let Some(handle) = handle.take()
            {
                self.yard.record.note("stop is asked for");
                handle.request();
            }
            while timeline.last().is_some_and(|(due, _)| *due <= now) {
                if let Some((_, act)) = timeline.pop() {
                    self.yard.record.note(format!("act {} in the run", stage::name(&act)));
                    self.yard.stage.act(&act);
                }
            }
            if self.yard.hub.step() {
                continue;
            }
            // Uploads in parts run beside the processes.
            tokio::task::yield_now().await;
            tokio::task::yield_now().await;
            if self.yard.hub.step() {
                continue;
            }
            if self.yard.hub.alive() == 0 {
                break;
            }
            let stop = stop.filter(|_| handle.is_some());
            let next = [timeline.last().map(|(due, _)| *due), stop];
            if !self.wake(next.into_iter().flatten().min()) {
                let detail = format!("run {} stands still", self.runs);
                self.yard.record.broken(Invariant::RunEnds, detail);
                break;
            }
        }
        // What did not happen in this run happens now.
        for (_, act) in timeline.into_iter().rev() {
            self.yard.stage.act(&act);
        }
        if self.yard.record.is_broken() {
            self.yard.hub.end();
        }
    }

    /// Moves what stands still: time, or what is held.
    fn wake(&mut self, next: Option<Timestamp>) -> bool {
        let sleeper = self.yard.clock.next_deadline();
        let due = [sleeper, next].into_iter().flatten().min();
        if (due.is_none() || self.random.random_range(0..4) == 0) && self.yard.release() > 0 {
            return true;
        }
        match due {
            Some(due) => {
                self.yard.clock.advance_to(due);
                true
            }
            None => false,
        }
    }

    /// Lets everything come to rest, then compares every table with its source.
    async fn settle(&mut self, script: &Script) {
        let yard = Arc::clone(&self.yard);
        yard.bucket.set_trouble(0, Trouble::NONE);
        yard.bucket.land_all();
        for _ in 0..ROUNDS {
            self.mend();
            yard.clock.advance(REST);
            self.run(&Run::CALM).await;
        }
        self.rest().await;
        let compared = |world: &Self, whole: bool| {
            if !world.yard.record.is_broken() {
                compare::compare(&world.yard, &script.world, &world.ended, whole);
            }
        };
        compared(self, false);
        self.wake_up();
        // Every row has an image from the newest instance now.
        for table in 0..u8::try_from(script.world.tables.len()).unwrap_or_default() {
            stage::touch(table).iter().for_each(|act| yard.stage.act(act));
        }
        self.rest().await;
        compared(self, true);
        self.followed();
        if !self.yard.record.is_broken() {
            self.yard.auditor.reread().await;
        }
    }

    /// Capture runs without a lag, and the login has its rights.
    fn mend(&self) {
        let stage = &self.yard.stage;
        stage.act(&Act::StartCapture);
        stage.act(&Act::Lag(0));
        (0..4).for_each(|table| stage.act(&Act::Grant(table)));
    }

    /// A calm run of a source at which nothing happens, until [`World::wake_up`]: what compares the
    /// two calls the source as well.
    async fn rest(&mut self) {
        if self.yard.record.is_broken() {
            return;
        }
        self.wake_up();
        self.mend();
        self.yard.clock.advance(REST);
        self.resting = true;
        self.yard.stage.quiet(true);
        self.run(&Run::CALM).await;
    }

    fn wake_up(&mut self) {
        self.resting = false;
        self.yard.stage.quiet(false);
    }

    fn followed(&self) {
        let mapping = self.yard.database.mapping();
        let Some(newest) = mapping.last() else { return };
        for table in self.yard.stage.tables() {
            if !self.ended.contains(*table) && !self.yard.record.is_broken() {
                self.yard.auditor.settled(table, Position::from(newest.lsn), newest.moment);
            }
        }
    }

    fn outcome(self) -> Outcome {
        let record = &self.yard.record;
        for (act, times) in self.yard.stage.acts() {
            (0..times).for_each(|_| record.count(format!("act:{act}")));
        }
        Outcome {
            violation: record.violation(),
            hash: record.hash(),
            events: record.events(),
            steps: self.steps,
            counts: record.counts(),
            lines: record.lines(),
        }
    }
}

fn micros(pause: Duration) -> i64 {
    i64::try_from(pause.as_micros()).unwrap_or(i64::MAX)
}
