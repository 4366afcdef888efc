//! Time and randomness as ports, so that a seed replays a run.

use std::time::Duration;

use futures_core::future::BoxFuture;

use crate::time::Timestamp;

/// This side's clock.
///
/// # Contract
/// `now` may jump in either direction, as any wall clock does: durations taken from it are
/// figures to report, never a reason to skip data.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;

    /// The time that has passed since a fixed moment of this process; it never goes back. For
    /// figures about durations. The default is for clocks whose `now` never jumps.
    fn elapsed(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.now().as_micros()).unwrap_or_default())
    }

    /// Ends no earlier than `pause` from now. Dropping the future ends the wait.
    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()>;
}

/// Random numbers, for jitter and names.
///
/// # Contract
/// Not secret, not part of any decision about data.
#[cfg_attr(test, mockall::automock)]
pub trait Entropy: Send + Sync {
    /// Any number, each as likely as any other.
    fn next_u64(&self) -> u64;
}
