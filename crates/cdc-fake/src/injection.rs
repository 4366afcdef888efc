//! Planted trouble: errors, killed connections, slow answers, and things that happen at the server
//! just before or after a call.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    database::FakeDatabase,
    sql_error::{SqlError, SqlResult, number},
};

/// A call that a client makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are those of the ports' methods")]
pub enum Call {
    Instances,
    SchemaChanges,
    Preflight,
    High,
    Low,
    CommitTime,
    PositionAt,
    NthCommit,
    HasChanges,
    /// Opens a stream of changes.
    Changes,
    /// Fetches the next batch of such a stream.
    ChangeBatch,
    KeyExtent,
    KeyBound,
    Count,
    /// Opens a stream of rows.
    Rows,
    /// Fetches the next batch of such a stream.
    RowBatch,
}

/// On which side of a call something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Before the server looks at it.
    Before,
    /// After the answer was made.
    After,
}

/// Random trouble, the same for the same seed.
#[derive(Clone, Debug)]
pub struct FaultPlan {
    /// The seed.
    pub seed: u64,
    /// The chance from 0 to 1 that a call fails.
    pub fail: f64,
    /// The chance from 0 to 1 that a call is slow.
    pub slow: f64,
    /// How long a slow call takes, on the virtual clock.
    pub pause: Duration,
    /// The errors to choose from.
    pub errors: Vec<i32>,
}

impl FaultPlan {
    /// A plan in which one call in ten fails with an error worth a retry.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            fail: 0.1,
            slow: 0.0,
            pause: Duration::from_secs(1),
            errors: vec![
                number::DEADLOCK,
                number::LOCK_TIMEOUT,
                number::TIMEOUT,
                number::CONNECTION_RESET,
                number::SESSION_KILLED,
            ],
        }
    }
}

type Hook = Box<dyn FnOnce(&FakeDatabase) + Send>;

/// What is planted in one database.
#[derive(Default)]
pub(crate) struct Injection {
    failures: BTreeMap<Call, VecDeque<SqlError>>,
    hooks: BTreeMap<(Call, Side), VecDeque<Hook>>,
    pauses: BTreeMap<Call, Duration>,
    kills: BTreeMap<Call, VecDeque<u64>>,
    counts: BTreeMap<Call, u64>,
    plan: Option<(FaultPlan, ChaCha8Rng)>,
}

/// What the next call of a kind meets.
pub(crate) struct Encounter {
    pub(crate) pause: Option<Duration>,
    pub(crate) result: SqlResult<()>,
}

impl Injection {
    pub(crate) fn fail(&mut self, call: Call, times: usize, error: &SqlError) {
        let failures = self.failures.entry(call).or_default();
        failures.extend(std::iter::repeat_n(error, times).cloned());
    }

    pub(crate) fn kill_after(&mut self, call: Call, rows: u64) {
        self.kills.entry(call).or_default().push_back(rows);
    }

    /// After how many rows the stream that opens now is killed.
    pub(crate) fn next_kill(&mut self, call: Call) -> Option<u64> {
        self.kills.get_mut(&call)?.pop_front()
    }

    pub(crate) fn slow(&mut self, call: Call, pause: Duration) {
        self.pauses.insert(call, pause);
    }

    pub(crate) fn plan(&mut self, plan: Option<FaultPlan>) {
        self.plan = plan.map(|plan| {
            let random = ChaCha8Rng::seed_from_u64(plan.seed);
            (plan, random)
        });
    }

    pub(crate) fn hook(&mut self, call: Call, side: Side, hook: Hook) {
        self.hooks.entry((call, side)).or_default().push_back(hook);
    }

    pub(crate) fn take_hook(&mut self, call: Call, side: Side) -> Option<Hook> {
        self.hooks.get_mut(&(call, side))?.pop_front()
    }

    pub(crate) fn count(&self, call: Call) -> u64 {
        self.counts.get(&call).copied().unwrap_or_default()
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    pub(crate) fn forget_counts(&mut self) {
        self.counts.clear();
    }

    /// Counts the call and says what it meets.
    pub(crate) fn meet(&mut self, call: Call) -> Encounter {
        *self.counts.entry(call).or_default() += 1;
        let mut pause = self.pauses.get(&call).copied();
        let scripted = self.failures.get_mut(&call).and_then(VecDeque::pop_front);
        let mut failure = scripted;
        if let Some((plan, random)) = &mut self.plan {
            if random.random_bool(plan.slow.clamp(0.0, 1.0)) {
                pause = pause.max(Some(plan.pause));
            }
            let unlucky = random.random_bool(plan.fail.clamp(0.0, 1.0));
            if failure.is_none() && unlucky && !plan.errors.is_empty() {
                let at = random.random_range(0..plan.errors.len());
                failure =
                    plan.errors.get(at).map(|number| SqlError::new(*number, "planted failure"));
            }
        }
        Encounter { pause, result: failure.map_or(Ok(()), Err) }
    }
}
