//! The machine's clock and randomness, behind the engine's ports.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use cdc_core::{
    Timestamp,
    port::{Clock, Entropy},
};
use futures_util::{FutureExt, future::BoxFuture};

/// The wall clock; sleeps on the tokio runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let micros = |passed: Duration| i64::try_from(passed.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => micros(since),
            Err(before) => micros(before.duration()).saturating_neg(),
        })
    }

    fn elapsed(&self) -> Duration {
        static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGUN.elapsed()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        async move { tokio::time::sleep(pause).await }.boxed()
    }
}

/// A clock that shows the machine's time moved by a fixed distance: a simulated server's present
/// lies elsewhere, but passes as fast.
#[derive(Clone, Copy, Debug)]
pub struct ShiftedClock {
    ahead_micros: i64,
}

impl ShiftedClock {
    /// A clock that shows `moment` now.
    #[must_use]
    pub fn showing(moment: Timestamp) -> Self {
        Self { ahead_micros: moment.micros_since(RealClock.now()) }
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> Timestamp {
        RealClock.now().plus_micros(self.ahead_micros)
    }

    fn elapsed(&self) -> Duration {
        RealClock.elapsed()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        RealClock.sleep(pause)
    }
}

/// Numbers seeded once by the operating system. For jitter, not for secrets.
#[derive(Debug)]
pub struct OsEntropy {
    seed: RandomState,
    asked: AtomicU64,
}

impl Default for OsEntropy {
    fn default() -> Self {
        Self { seed: RandomState::new(), asked: AtomicU64::new(0) }
    }
}

impl Entropy for OsEntropy {
    fn next_u64(&self) -> u64 {
        // A keyed hash of a counter: the key is the operating system's.
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64(self.asked.fetch_add(1, Ordering::Relaxed));
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_clock_moves_on_while_it_sleeps() {
        let before = RealClock.now();
        RealClock.sleep(Duration::from_millis(2)).await;
        assert!(RealClock.now().micros_since(before) >= 2_000);
        // After 2020 and before 2200: microseconds since 1970.
        assert!((1_577_836_800_000_000..7_258_118_400_000_000).contains(&before.as_micros()));
    }

    #[test]
    fn a_shifted_clock_shows_the_moment_it_was_given() {
        let moment = Timestamp::from_micros(1_383_458_400_000_000);
        let passed = ShiftedClock::showing(moment).now().micros_since(moment);
        assert!((0..10_000_000).contains(&passed), "{passed}");
    }

    #[test]
    fn numbers_differ_from_call_to_call_and_from_process_part_to_part() {
        let (a, b) = (OsEntropy::default(), OsEntropy::default());
        let numbers: std::collections::HashSet<_> =
            (0..100).flat_map(|_| [a.next_u64(), b.next_u64()]).collect();
        assert_eq!(numbers.len(), 200);
    }
}
