//! The gate: the one place that every call of a faulty handle goes through.

use std::{
    future::{Future, poll_fn},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
};

use cdc_core::{Error, ErrorKind, Result, port::BatchStream};
use futures_util::{StreamExt, stream::unfold};

use super::{Fault, FaultPlan, Operation, TraceEntry};

/// One process's way to the plan.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    plan: FaultPlan,
    handle: u32,
    dead: Arc<AtomicBool>,
}

impl Gate {
    pub(super) fn new(plan: &FaultPlan) -> Self {
        Self { plan: plan.clone(), handle: plan.enlist(), dead: Arc::default() }
    }

    pub(super) const fn handle(&self) -> u32 {
        self.handle
    }

    /// True once the process died.
    pub(super) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Makes one call, or what the plan makes of it.
    pub(super) async fn call<T>(
        &self,
        operation: Operation,
        work: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        let fault = self.meet(operation).await;
        let result = self.act(operation, fault, work).await;
        self.record(operation, fault, result.as_ref().err().map(Error::kind));
        result
    }

    /// Opens a stream whose batches go through the gate as `batch`.
    pub(super) async fn open(
        &self,
        operation: Operation,
        batch: Operation,
        work: impl Future<Output = Result<BatchStream>> + Send,
    ) -> Result<BatchStream> {
        let fault = self.meet(operation).await;
        let (fault_now, breaks) = match fault {
            Some(Fault::BreakStream(batches, kind)) => (None, Some((batches, kind))),
            other => (other, None),
        };
        let result = self.act(operation, fault_now, work).await;
        self.record(operation, fault, result.as_ref().err().map(Error::kind));
        Ok(self.stream(batch, result?, breaks))
    }

    fn stream(
        &self,
        operation: Operation,
        inner: BatchStream,
        breaks: Option<(u64, ErrorKind)>,
    ) -> BatchStream {
        struct Reading {
            gate: Gate,
            inner: BatchStream,
            breaks: Option<(u64, ErrorKind)>,
        }
        let start = Some(Reading { gate: self.clone(), inner, breaks });
        Box::pin(unfold(start, move |reading| async move {
            let mut reading = reading?;
            let broken = match &mut reading.breaks {
                Some((0, kind)) => Some(*kind),
                Some((left, _)) => {
                    *left -= 1;
                    None
                }
                None => None,
            };
            let inner = &mut reading.inner;
            let next = reading.gate.call(operation, async {
                match broken {
                    Some(kind) => Err(planted(operation, kind)),
                    None => inner.next().await.transpose(),
                }
            });
            match next.await {
                Ok(None) => None,
                Ok(Some(batch)) => Some((Ok(batch), Some(reading))),
                // The error is the last item.
                Err(error) => Some((Err(error), None)),
            }
        }))
    }

    async fn meet(&self, operation: Operation) -> Option<Fault> {
        if self.is_dead() {
            return Some(Fault::Crash);
        }
        if self.plan.yields() {
            yield_once().await;
        }
        let fault = self.plan.next(operation);
        if let Some(watcher) = self.plan.watcher() {
            watcher.begun(self.handle, operation, fault);
        }
        fault
    }

    async fn act<T>(
        &self,
        operation: Operation,
        fault: Option<Fault>,
        work: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        match fault {
            None | Some(Fault::Pass) => work.await,
            Some(Fault::Refuse(kind) | Fault::BreakStream(_, kind)) => {
                Err(planted(operation, kind))
            }
            Some(Fault::Slow(pause)) => {
                self.plan.clock().sleep(pause).await;
                self.alive(operation).await?;
                work.await
            }
            Some(Fault::Hold) => {
                self.plan.hold(operation).await;
                self.alive(operation).await?;
                work.await
            }
            Some(Fault::LoseReply) => {
                work.await?;
                let lost = Error::new(ErrorKind::Unavailable, "reply was lost");
                Err(lost.with("operation", format!("{operation:?}")))
            }
            Some(Fault::Crash) => {
                self.die();
                self.alive(operation).await?;
                work.await
            }
            Some(Fault::CrashAfter) => {
                let result = work.await;
                self.die();
                self.alive(operation).await?;
                result
            }
        }
    }

    fn die(&self) {
        let alive = !self.dead.swap(true, Ordering::SeqCst);
        if let Some(watcher) = self.plan.watcher().filter(|_| alive) {
            watcher.died(self.handle);
        }
    }

    /// Fails once the process died, or never returns when processes vanish.
    async fn alive(&self, operation: Operation) -> Result<()> {
        if !self.is_dead() {
            return Ok(());
        }
        if self.plan.watcher().is_some() {
            std::future::pending::<()>().await;
        }
        Err(Error::new(ErrorKind::Cancelled, "process of this handle died")
            .with("operation", format!("{operation:?}")))
    }

    fn record(&self, operation: Operation, fault: Option<Fault>, error: Option<ErrorKind>) {
        self.plan.record(TraceEntry { handle: self.handle, operation, fault, error });
    }
}

/// Lets whoever else is ready run first.
async fn yield_once() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn planted(operation: Operation, kind: ErrorKind) -> Error {
    Error::new(kind, "planted failure").with("operation", format!("{operation:?}"))
}
