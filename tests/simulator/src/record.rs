//! What a simulation writes down: the trace with its hash, the counts of what was met, and the
//! first broken invariant.

use std::{
    collections::{BTreeMap, VecDeque, hash_map::DefaultHasher},
    fmt::Write as _,
    hash::{Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use cdc_fake::VirtualClock;

use crate::invariant::{Invariant, Violation};

/// Lines that the trace keeps; all of them count for the hash.
const LINES_KEPT: usize = 100_000;

#[derive(Default)]
struct Inner {
    hash: DefaultHasher,
    lines: VecDeque<String>,
    events: u64,
    counts: BTreeMap<String, u64>,
    violation: Option<Violation>,
}

/// The record of one simulation. Clones are the same record.
#[derive(Clone)]
pub struct Record {
    clock: VirtualClock,
    inner: Arc<Mutex<Inner>>,
}

impl Record {
    /// An empty record by a clock.
    #[must_use]
    pub fn new(clock: &VirtualClock) -> Self {
        Self { clock: clock.clone(), inner: Arc::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an event down.
    pub fn note(&self, line: impl AsRef<str>) {
        let mut text = String::new();
        let _ = write!(text, "{} {}", self.clock.time(), line.as_ref());
        let mut inner = self.inner();
        text.hash(&mut inner.hash);
        inner.events += 1;
        if inner.lines.len() >= LINES_KEPT {
            inner.lines.pop_front();
        }
        inner.lines.push_back(text);
    }

    /// Lets something count for the hash that no line of the trace tells.
    pub fn mix(&self, what: &impl Hash) {
        what.hash(&mut self.inner().hash);
    }

    /// Counts that something was met.
    pub fn count(&self, what: impl Into<String>) {
        *self.inner().counts.entry(what.into()).or_default() += 1;
    }

    /// Notes that an invariant is broken; the first one counts.
    pub fn broken(&self, invariant: Invariant, detail: impl Into<String>) {
        let violation = Violation { invariant, detail: detail.into() };
        self.note(format!("BROKEN {violation}"));
        self.inner().violation.get_or_insert(violation);
    }

    /// Breaks the invariant unless it holds.
    pub fn check(&self, holds: bool, invariant: Invariant, detail: impl FnOnce() -> String) {
        if !holds {
            self.broken(invariant, detail());
        }
    }

    /// The first broken invariant.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.inner().violation.clone()
    }

    /// True once an invariant is broken.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.inner().violation.is_some()
    }

    /// The hash of all events.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.inner().hash.finish()
    }

    /// How many events there were.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.inner().events
    }

    /// The counts.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.inner().counts.clone()
    }

    /// The last events.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.inner().lines.iter().cloned().collect()
    }
}
