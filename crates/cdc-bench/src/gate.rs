//! A clock that lets the engine's pauses end on request, so that cycles are measured one by one.

use std::{sync::Arc, time::Duration};

use cdc_core::{Timestamp, port::Clock};
use futures_util::future::BoxFuture;
use tokio::sync::Semaphore;

use crate::machine::RealClock;

/// The engine rests at the gate after each cycle that found nothing more to do.
#[derive(Clone)]
pub(crate) struct Gate {
    /// A permit for each rest that has begun.
    resting: Arc<Semaphore>,
    /// A permit for each rest that may end.
    passing: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { resting: Arc::new(Semaphore::new(0)), passing: Arc::new(Semaphore::new(0)) }
    }

    /// Ends when the engine has come to rest.
    pub(crate) async fn rested(&self) {
        if let Ok(permit) = self.resting.acquire().await {
            permit.forget();
        }
    }

    /// Lets the rest end.
    pub(crate) fn pass(&self) {
        self.passing.add_permits(1);
    }
}

impl Clock for Gate {
    fn now(&self) -> Timestamp {
        RealClock.now()
    }

    fn elapsed(&self) -> Duration {
        RealClock.elapsed()
    }

    fn sleep(&self, _pause: Duration) -> BoxFuture<'static, ()> {
        let gate = self.clone();
        Box::pin(async move {
            gate.resting.add_permits(1);
            if let Ok(permit) = gate.passing.acquire().await {
                permit.forget();
            }
        })
    }
}
