//! What the engine does after an error: by kind, with a budget, with growing pauses.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};

use crate::{
    error::{Error, Retry},
    port::Entropy,
    time::Timestamp,
};

/// What is done after errors that may pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetrySettings {
    /// Failures in a row after which a table stops. A success starts the count again.
    pub attempts_max: u32,
    /// The first pause; each following one is twice as long.
    pub pause_first: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            attempts_max: 10,
            pause_first: Duration::from_millis(500),
            pause_max: Duration::from_secs(60),
        }
    }
}

/// Failures in a row, and when the next try is due.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempts {
    failed: u32,
    due: Option<(Timestamp, Duration)>,
}

impl Attempts {
    /// Counts a failure. The pause before the next try, or none when the error is final.
    pub(super) fn failed(
        &mut self,
        error: &Error,
        settings: &RetrySettings,
        now: Timestamp,
        entropy: &dyn Entropy,
    ) -> Option<Duration> {
        self.failed = self.failed.saturating_add(1);
        if error.kind().retry() == Retry::Stop || self.failed >= settings.attempts_max {
            return None;
        }
        let pause = match error.kind().retry() {
            Retry::Reload if self.failed == 1 => Duration::ZERO,
            _ => backoff(self.failed, settings, entropy.next_u64()),
        };
        let pause = pause.max(error.pause().unwrap_or_default()).min(settings.pause_max);
        // Whole milliseconds: a clock that is coarser than the pause must still reach its end.
        let pause = Duration::from_millis(millis(pause));
        self.due = Some((now, pause));
        Some(pause)
    }

    /// Failures in a row.
    pub(super) fn count(&self) -> u32 {
        self.failed
    }

    /// Forgets the failures after a success.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// How long until the next try is due. A clock that jumped back does not lengthen it.
    pub(super) fn wait(&self, now: Timestamp) -> Duration {
        let Some((since, pause)) = self.due else {
            return Duration::ZERO;
        };
        match u64::try_from(now.micros_since(since)) {
            Ok(passed) => pause.saturating_sub(Duration::from_micros(passed)),
            Err(_) => Duration::ZERO,
        }
    }
}

/// Whole milliseconds of a pause.
pub(super) fn millis(pause: Duration) -> u64 {
    u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
}

fn backoff(failed: u32, settings: &RetrySettings, seed: u64) -> Duration {
    ExponentialBuilder::new()
        .with_min_delay(settings.pause_first)
        .with_max_delay(settings.pause_max)
        .without_max_times()
        .with_jitter()
        .with_jitter_seed(seed)
        .build()
        .nth(failed.saturating_sub(1) as usize)
        .unwrap_or(settings.pause_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, port::MockEntropy};

    fn entropy() -> MockEntropy {
        let mut entropy = MockEntropy::new();
        entropy.expect_next_u64().return_const(7u64);
        entropy
    }

    #[test]
    fn only_errors_that_may_pass_are_tried_again_and_not_for_ever() {
        let settings = RetrySettings::default();
        let now = Timestamp::from_micros(0);
        for kind in ErrorKind::ALL {
            let mut attempts = Attempts::default();
            let pause = attempts.failed(&Error::new(kind, "x"), &settings, now, &entropy());
            assert_eq!(pause.is_some(), kind.retry() != Retry::Stop, "{kind}");
        }
        let mut attempts = Attempts::default();
        let error = Error::new(ErrorKind::Unavailable, "x");
        let pauses: Vec<_> =
            std::iter::from_fn(|| attempts.failed(&error, &settings, now, &entropy())).collect();
        assert_eq!(pauses.len(), 9);
        assert!(pauses.iter().all(|pause| *pause <= settings.pause_max));
        assert!(pauses[8] > pauses[0]);
    }

    #[test]
    fn the_other_sides_wish_is_kept_and_a_clock_that_jumps_back_does_not_hang() {
        let settings = RetrySettings::default();
        let mut attempts = Attempts::default();
        let error = Error::new(ErrorKind::Unavailable, "x").retry_after(Duration::from_secs(20));
        let now = Timestamp::from_micros(1_000_000);
        let pause = attempts.failed(&error, &settings, now, &entropy()).expect("retried");
        assert_eq!(pause, Duration::from_secs(20));
        assert_eq!(attempts.wait(now.plus_micros(5_000_000)), Duration::from_secs(15));
        assert_eq!(attempts.wait(now.plus_micros(-1)), Duration::ZERO);
        attempts.succeeded();
        assert_eq!(attempts.count(), 0);
    }
}
