//! Virtual time: a clock that moves when a test says so, or when everybody sleeps.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use cdc_core::{Timestamp, port::Clock};
use futures_core::future::BoxFuture;

/// How often the earliest sleeper lets others run before time moves on, when time moves itself.
const YIELDS: u32 = 8;
/// After this many polls a later sleeper no longer waits for an earlier one: that one is held by a
/// task which is not being polled.
const PATIENCE: u32 = 1024;

/// A clock whose time is a number. Clones share the time.
///
/// Sleepers wake in the order of their deadlines. With `auto` the earliest sleeper moves the time
/// to its own deadline, so that code which sleeps runs at full speed.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    now: Timestamp,
    auto: bool,
    next_sleeper: u64,
    // Deadline, then the order of going to sleep.
    sleepers: BTreeMap<(Timestamp, u64), Option<Waker>>,
}

impl State {
    fn move_to(&mut self, moment: Timestamp) {
        while let Some(entry) = self.sleepers.first_entry() {
            if entry.key().0 > moment {
                break;
            }
            let ((deadline, _), waker) = entry.remove_entry();
            self.now = self.now.max(deadline);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        self.now = self.now.max(moment);
    }
}

impl VirtualClock {
    /// A clock that moves only by [`VirtualClock::advance`].
    #[must_use]
    pub fn manual(now: Timestamp) -> Self {
        Self::new(now, false)
    }

    /// A clock that also moves by itself to the next deadline when somebody sleeps.
    #[must_use]
    pub fn auto(now: Timestamp) -> Self {
        Self::new(now, true)
    }

    fn new(now: Timestamp, auto: bool) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                now,
                auto,
                next_sleeper: 0,
                sleepers: BTreeMap::new(),
            })),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time by this clock.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.state().now
    }

    /// Moves the time on, waking each sleeper at its deadline. Returns the new time.
    pub fn advance(&self, pause: Duration) -> Timestamp {
        let mut state = self.state();
        let target = state.now.plus_micros(micros(pause));
        state.move_to(target);
        target
    }

    /// Moves the time on to `moment`; a moment in the past changes nothing.
    pub fn advance_to(&self, moment: Timestamp) {
        self.state().move_to(moment);
    }

    /// Puts the clock back, as an operator or a time service does. Whoever sleeps, sleeps longer.
    pub fn set_back(&self, by: Duration) {
        let mut state = self.state();
        state.now = state.now.plus_micros(micros(by).saturating_neg());
    }

    /// When the first sleeper wakes.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Timestamp> {
        self.state().sleepers.keys().next().map(|(deadline, _)| *deadline)
    }

    /// How many sleep.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.state().sleepers.len()
    }
}

fn micros(pause: Duration) -> i64 {
    i64::try_from(pause.as_micros()).unwrap_or(i64::MAX)
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.time()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        let mut state = self.state();
        let deadline = state.now.plus_micros(micros(pause));
        let id = state.next_sleeper;
        state.next_sleeper += 1;
        if deadline > state.now {
            state.sleepers.insert((deadline, id), None);
        }
        Box::pin(Sleep { clock: self.clone(), key: (deadline, id), polls: 0 })
    }
}

struct Sleep {
    clock: VirtualClock,
    key: (Timestamp, u64),
    polls: u32,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.polls = self.polls.saturating_add(1);
        let mut state = self.clock.state();
        if state.now >= self.key.0 {
            state.sleepers.remove(&self.key);
            return Poll::Ready(());
        }
        if state.auto {
            let first = state.sleepers.keys().next() == Some(&self.key);
            if self.polls > PATIENCE || (first && self.polls > YIELDS) {
                state.sleepers.remove(&self.key);
                state.move_to(self.key.0);
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
        }
        state.sleepers.insert(self.key, Some(context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.state().sleepers.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, future::join_all};

    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_manual_clock_wakes_a_sleeper_no_earlier_than_its_deadline() {
        let clock = VirtualClock::manual(at(0));
        let mut sleep = clock.sleep(ms(5));
        assert_eq!((&mut sleep).now_or_never(), None);
        assert_eq!(clock.next_deadline(), Some(at(5_000)));
        clock.advance(ms(4));
        assert_eq!((&mut sleep).now_or_never(), None);
        clock.advance(ms(1));
        assert_eq!((&mut sleep).now_or_never(), Some(()));
        assert_eq!(clock.sleepers(), 0);
    }

    #[test]
    fn dropping_a_sleep_ends_the_wait() {
        let clock = VirtualClock::manual(at(0));
        drop(clock.sleep(ms(5)));
        assert_eq!(clock.sleepers(), 0);
    }

    #[tokio::test]
    async fn an_automatic_clock_wakes_in_deadline_order_without_real_time() {
        let clock = VirtualClock::auto(at(0));
        let woken = Arc::new(Mutex::new(Vec::new()));
        let naps = [3_000_000, 1_000, 2_000_000].map(|nap| {
            let (clock, woken) = (clock.clone(), Arc::clone(&woken));
            async move {
                clock.sleep(ms(nap)).await;
                woken.lock().expect("healthy").push((nap, clock.time()));
            }
        });
        join_all(naps).await;
        let expected: Vec<_> = [1_000, 2_000_000, 3_000_000]
            .map(|nap: i64| (u64::try_from(nap).expect("positive"), at(nap * 1000)))
            .into();
        assert_eq!(*woken.lock().expect("healthy"), expected);
    }

    #[tokio::test]
    async fn a_sleeper_that_nobody_polls_does_not_stop_the_others() {
        let clock = VirtualClock::auto(at(0));
        let held = clock.sleep(ms(1));
        clock.sleep(ms(10)).await;
        assert_eq!(clock.time(), at(10_000));
        held.await;
        assert_eq!(clock.time(), at(10_000));
    }
}
