//! What happens to which call, and what happened.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
    time::Duration,
};

use cdc_core::{ErrorKind, port::Clock};
use futures_util::future::poll_fn;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Fault, Operation};

/// How likely each fault is, from 0 to 1. What they leave of 1 is no fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Odds {
    /// [`Fault::Refuse`], with one of [`Odds::kinds`].
    pub refuse: f64,
    /// [`Fault::LoseReply`].
    pub lose_reply: f64,
    /// [`Fault::Slow`], for [`Odds::pause`].
    pub slow: f64,
    /// [`Fault::Hold`].
    pub hold: f64,
    /// Others run first. That is no fault, but shuffles the order of calls.
    pub yields: f64,
    /// [`Fault::BreakStream`], for calls that open a stream.
    pub break_stream: f64,
    /// [`Fault::Crash`] and [`Fault::CrashAfter`], each as often as the other.
    pub crash: f64,
    /// The kinds to choose from, each as likely as any other.
    pub kinds: Vec<ErrorKind>,
    /// How long a slow call takes.
    pub pause: Duration,
    /// Most batches before a stream breaks.
    pub batches_max: u64,
}

impl Odds {
    /// One call in ten meets a fault that a retry heals; no crashes.
    #[must_use]
    pub fn transient() -> Self {
        Self {
            refuse: 0.05,
            lose_reply: 0.03,
            slow: 0.02,
            hold: 0.0,
            yields: 0.0,
            break_stream: 0.1,
            crash: 0.0,
            kinds: vec![ErrorKind::Unavailable],
            pause: Duration::from_secs(1),
            batches_max: 3,
        }
    }

    /// The same, with this chance of a crash at each call.
    #[must_use]
    pub fn with_crash(mut self, crash: f64) -> Self {
        self.crash = crash;
        self
    }
}

/// One call that went through the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// The handle that made it, counted from 1 in the order of wrapping.
    pub handle: u32,
    /// The call.
    pub operation: Operation,
    /// What was planned for it.
    pub fault: Option<Fault>,
    /// How it ended: none for success.
    pub error: Option<ErrorKind>,
}

/// How often an operation was called and met a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Calls that ended.
    pub calls: u64,
    /// Calls among them that met a fault.
    pub faults: u64,
    /// Calls among them that failed.
    pub errors: u64,
}

/// Looks on while calls go through the gate.
pub trait Watcher: Send + Sync {
    /// A call of a handle is about to be made, and will meet `fault`.
    fn begun(&self, handle: u32, operation: Operation, fault: Option<Fault>);

    /// The process of a handle has died, in the middle of a call.
    fn died(&self, handle: u32);

    /// A call has ended. A call of a process that vanished never does.
    fn ended(&self, entry: TraceEntry);
}

/// What happens to the calls of all handles that share the plan. Clones are the same plan.
#[derive(Clone)]
pub struct FaultPlan(Arc<Shared>);

struct Shared {
    clock: Arc<dyn Clock>,
    watcher: Option<Arc<dyn Watcher>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    scripts: BTreeMap<Operation, VecDeque<Fault>>,
    odds: Option<(Odds, ChaCha8Rng)>,
    holds: BTreeMap<Operation, Holds>,
    trace: VecDeque<TraceEntry>,
    coverage: BTreeMap<Operation, Coverage>,
    handles: u32,
    waiters: u64,
}

#[derive(Default)]
struct Holds {
    released: u64,
    waiting: BTreeMap<u64, Option<Waker>>,
}

impl FaultPlan {
    /// Most entries that the trace keeps; older ones go first. A million calls are more than a
    /// simulation makes, and 40 MB.
    pub const TRACE_MAX: usize = 1_000_000;

    /// A plan without faults. Slow calls take their time on `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Arc::new(Shared { clock, watcher: None, state: Mutex::default() }))
    }

    /// A plan that tells a watcher of every call. The process of a handle that meets a crash
    /// vanishes: its calls never return, and whoever drives it drops it.
    #[must_use]
    pub fn watched(clock: Arc<dyn Clock>, watcher: Arc<dyn Watcher>) -> Self {
        Self(Arc::new(Shared { clock, watcher: Some(watcher), state: Mutex::default() }))
    }

    /// Appends a fault to the operation's script: each call takes the next one. A scripted fault
    /// comes before what chance would bring.
    pub fn script(&self, operation: Operation, fault: Fault) {
        self.state().scripts.entry(operation).or_default().push_back(fault);
    }

    /// Lets chance decide for the calls that no script is left for. The same seed and the same
    /// order of calls bring the same faults.
    pub fn chance(&self, seed: u64, odds: Odds) {
        self.state().odds = Some((odds, ChaCha8Rng::seed_from_u64(seed)));
    }

    /// No more faults: forgets scripts and chance, and releases what is held.
    pub fn calm(&self) {
        let mut state = self.state();
        state.scripts.clear();
        state.odds = None;
        drop(state);
        for operation in Operation::ALL {
            self.release(operation);
        }
    }

    /// Lets every call of the operation go on that is held now.
    pub fn release(&self, operation: Operation) {
        let wakers = {
            let mut state = self.state();
            let holds = state.holds.entry(operation).or_default();
            holds.released = holds.released.saturating_add(1);
            std::mem::take(&mut holds.waiting)
        };
        wakers.into_values().flatten().for_each(Waker::wake);
    }

    /// Lets every call go on that is held now. Returns how many there were.
    pub fn release_all(&self) -> usize {
        let held: Vec<_> = {
            let state = self.state();
            let held = state.holds.iter().filter(|(_, holds)| !holds.waiting.is_empty());
            held.map(|(operation, holds)| (*operation, holds.waiting.len())).collect()
        };
        held.iter().for_each(|(operation, _)| self.release(*operation));
        held.iter().map(|(_, waiting)| waiting).sum()
    }

    /// How many calls of the operation are held.
    #[must_use]
    pub fn held(&self, operation: Operation) -> usize {
        self.state().holds.get(&operation).map_or(0, |holds| holds.waiting.len())
    }

    /// Every call so far in the order in which they ended, at most [`FaultPlan::TRACE_MAX`].
    #[must_use]
    pub fn trace(&self) -> Vec<TraceEntry> {
        self.state().trace.iter().copied().collect()
    }

    /// How often each operation was called and met a fault, by operation.
    #[must_use]
    pub fn coverage(&self) -> BTreeMap<Operation, Coverage> {
        let state = self.state();
        let count = |operation| state.coverage.get(&operation).copied().unwrap_or_default();
        Operation::ALL.into_iter().map(|one| (one, count(one))).collect()
    }

    pub(super) fn watcher(&self) -> Option<&Arc<dyn Watcher>> {
        self.0.watcher.as_ref()
    }

    /// True when the next call lets others run first.
    pub(super) fn yields(&self) -> bool {
        let mut state = self.state();
        state
            .odds
            .as_mut()
            .is_some_and(|(odds, random)| odds.yields > 0.0 && random.random::<f64>() < odds.yields)
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        self.0.clock.as_ref()
    }

    /// The number of a new handle.
    pub(super) fn enlist(&self) -> u32 {
        let mut state = self.state();
        state.handles = state.handles.saturating_add(1);
        state.handles
    }

    /// What happens to the next call of the operation.
    pub(super) fn next(&self, operation: Operation) -> Option<Fault> {
        let mut state = self.state();
        let scripted = state.scripts.get_mut(&operation).and_then(VecDeque::pop_front);
        // Drawn for each call, so that a script does not shift what chance brings later.
        let drawn = state.odds.as_mut().and_then(|(odds, random)| odds.draw(random, operation));
        match scripted {
            Some(Fault::Pass) => None,
            Some(fault) => Some(fault),
            None => drawn,
        }
    }

    pub(super) fn record(&self, entry: TraceEntry) {
        if let Some(watcher) = self.watcher() {
            watcher.ended(entry);
        }
        let mut state = self.state();
        let coverage = state.coverage.entry(entry.operation).or_default();
        coverage.calls += 1;
        coverage.faults += u64::from(entry.fault.is_some());
        coverage.errors += u64::from(entry.error.is_some());
        if state.trace.len() >= Self::TRACE_MAX {
            state.trace.pop_front();
        }
        state.trace.push_back(entry);
    }

    /// Waits for the next release of the operation.
    pub(super) async fn hold(&self, operation: Operation) {
        let (number, since) = {
            let mut state = self.state();
            state.waiters = state.waiters.saturating_add(1);
            let number = state.waiters;
            let holds = state.holds.entry(operation).or_default();
            holds.waiting.insert(number, None);
            (number, holds.released)
        };
        let _waiting = Waiting { plan: self, operation, number };
        poll_fn(|context| {
            let mut state = self.state();
            let holds = state.holds.entry(operation).or_default();
            if holds.released > since {
                return Poll::Ready(());
            }
            holds.waiting.insert(number, Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("FaultPlan")
            .field("scripts", &state.scripts)
            .field("odds", &state.odds.as_ref().map(|(odds, _)| odds))
            .finish_non_exhaustive()
    }
}

/// A held call; no longer counted once its future is gone.
struct Waiting<'a> {
    plan: &'a FaultPlan,
    operation: Operation,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(holds) = self.plan.state().holds.get_mut(&self.operation) {
            holds.waiting.remove(&self.number);
        }
    }
}

impl Odds {
    /// Always as many draws, whatever comes out.
    fn draw(&self, random: &mut ChaCha8Rng, operation: Operation) -> Option<Fault> {
        let mut chance: f64 = random.random();
        let pick: u64 = random.random();
        let opens = matches!(operation, Operation::Changes | Operation::Rows);
        let mut hit = |odds: f64| {
            let hit = chance < odds;
            chance -= odds;
            hit
        };
        let kind = usize::try_from(pick)
            .unwrap_or_default()
            .checked_rem(self.kinds.len())
            .and_then(|at| self.kinds.get(at).copied())
            .unwrap_or(ErrorKind::Unavailable);
        if hit(self.refuse) {
            Some(Fault::Refuse(kind))
        } else if hit(self.lose_reply) {
            Some(Fault::LoseReply)
        } else if hit(self.slow) {
            Some(Fault::Slow(self.pause))
        } else if hit(self.hold) {
            Some(Fault::Hold)
        } else if hit(self.crash) {
            let before = pick.is_multiple_of(2);
            Some(if before { Fault::Crash } else { Fault::CrashAfter })
        } else if opens && hit(self.break_stream) {
            let batches = pick.checked_rem(self.batches_max.saturating_add(1));
            Some(Fault::BreakStream(batches.unwrap_or_default(), kind))
        } else {
            None
        }
    }
}
