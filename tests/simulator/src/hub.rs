//! The processes of a simulation on one thread: which of them runs next is drawn, and one of them
//! may let the others run in the middle of a call that does not wait.

use std::{
    collections::BTreeMap,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::future::BoxFuture;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The number of a process.
pub type ProcessId = u32;

struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

struct Slot {
    /// Gone while it is being polled, and at its end.
    future: Option<BoxFuture<'static, ()>>,
    ready: Arc<Ready>,
    crashed: bool,
    done: bool,
}

struct Inner {
    slots: BTreeMap<ProcessId, Slot>,
    next: ProcessId,
    crashes: u64,
    random: ChaCha8Rng,
}

/// The processes. Clones are the same hub.
#[derive(Clone)]
pub struct Hub(Arc<Mutex<Inner>>);

impl Hub {
    /// No process yet; `seed` decides who runs next.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let random = ChaCha8Rng::seed_from_u64(seed ^ 0x4855_4221);
        Self(Arc::new(Mutex::new(Inner { slots: BTreeMap::new(), next: 1, crashes: 0, random })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new process.
    #[must_use]
    pub fn reserve(&self) -> ProcessId {
        let mut inner = self.inner();
        inner.next += 1;
        inner.next - 1
    }

    /// Starts a process.
    pub fn start(&self, id: ProcessId, work: impl Future<Output = ()> + Send + 'static) {
        let ready = Arc::new(Ready(AtomicBool::new(true)));
        let slot = Slot { future: Some(Box::pin(work)), ready, crashed: false, done: false };
        self.inner().slots.insert(id, slot);
    }

    /// Ends a process where it stands. It makes no further step.
    pub fn crash(&self, id: ProcessId) {
        let mut inner = self.inner();
        if let Some(slot) = inner.slots.get_mut(&id) {
            slot.crashed = true;
        }
        inner.crashes += 1;
    }

    /// True once the process was ended.
    #[must_use]
    pub fn is_crashed(&self, id: ProcessId) -> bool {
        self.inner().slots.get(&id).is_some_and(|slot| slot.crashed)
    }

    /// True once any process was ended where it stood.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.inner().crashes > 0
    }

    /// How many processes have not come to an end.
    #[must_use]
    pub fn alive(&self) -> usize {
        self.inner().slots.values().filter(|slot| !slot.done && !slot.crashed).count()
    }

    /// Drops what ended.
    fn sweep(&self) {
        let gone: Vec<_> = {
            let mut inner = self.inner();
            let ended = inner.slots.values_mut().filter(|slot| slot.crashed);
            ended.filter_map(|slot| slot.future.take()).collect()
        };
        drop(gone);
    }

    /// Ends every process.
    pub fn end(&self) {
        self.inner().slots.values_mut().for_each(|slot| slot.crashed = true);
        self.sweep();
    }

    /// Forgets the processes that came to an end.
    pub fn forget(&self) {
        self.sweep();
        self.inner().slots.retain(|_, slot| !slot.done && !slot.crashed);
    }

    /// Lets one process that is ready make a step. False when none is.
    pub fn step(&self) -> bool {
        self.sweep();
        let Some((id, mut future, ready)) = self.pick() else { return false };
        let waker = Waker::from(Arc::clone(&ready));
        let done = Pin::new(&mut future).poll(&mut Context::from_waker(&waker));
        let mut inner = self.inner();
        let Some(slot) = inner.slots.get_mut(&id) else { return true };
        match done {
            Poll::Ready(()) => slot.done = true,
            Poll::Pending => slot.future = Some(future),
        }
        drop(inner);
        self.sweep();
        true
    }

    fn pick(&self) -> Option<(ProcessId, BoxFuture<'static, ()>, Arc<Ready>)> {
        let mut inner = self.inner();
        let ready: Vec<ProcessId> = inner
            .slots
            .iter()
            .filter(|(_, slot)| slot.future.is_some() && slot.ready.0.load(Ordering::SeqCst))
            .map(|(id, _)| *id)
            .collect();
        if ready.is_empty() {
            return None;
        }
        let at = inner.random.random_range(0..ready.len());
        let id = ready.get(at).copied()?;
        let slot = inner.slots.get_mut(&id)?;
        slot.ready.0.store(false, Ordering::SeqCst);
        Some((id, slot.future.take()?, Arc::clone(&slot.ready)))
    }

    /// Lets the others make at most so many steps while the caller, itself in the middle of one,
    /// waits. Returns how many they made.
    pub fn others(&self, steps: u32) -> u32 {
        (0..steps).take_while(|_| self.step()).count().try_into().unwrap_or(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_process_lets_another_run_in_the_middle_of_its_own_step() {
        let hub = Hub::new(1);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (first, second) = (hub.reserve(), hub.reserve());
        let (inner, order) = (hub.clone(), Arc::clone(&seen));
        hub.start(first, async move {
            order.lock().expect("whole").push("begin");
            let other = Arc::clone(&order);
            inner.start(second, async move { other.lock().expect("whole").push("other") });
            assert_eq!(inner.others(5), 1);
            order.lock().expect("whole").push("end");
        });
        while hub.step() {}
        assert_eq!(*seen.lock().expect("whole"), ["begin", "other", "end"]);
        assert_eq!(hub.alive(), 0);
    }

    #[test]
    fn a_crashed_process_is_dropped_and_makes_no_further_step() {
        let hub = Hub::new(1);
        let id = hub.reserve();
        let alive = Arc::new(());
        let (inner, held) = (hub.clone(), Arc::clone(&alive));
        hub.start(id, async move {
            inner.crash(id);
            std::future::pending::<()>().await;
            drop(held);
        });
        assert!(hub.step());
        assert_eq!(Arc::strong_count(&alive), 1);
        assert!(hub.is_crashed(id));
        assert!(!hub.step());
    }
}
