//! The Delta kernel's engine on any runtime: its calls block, so they run beside the tasks, and
//! each of its futures is driven by the thread that waits for it.

use std::{
    future::Future,
    num::NonZero,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::Thread,
};

use cdc_core::{Error, Result};
use delta_kernel::{DeltaResult, Engine};
use delta_kernel_engine::{DefaultEngineBuilder, executor::TaskExecutor};
use futures_util::future::BoxFuture;
use object_store::ObjectStore;

use crate::{checkpoint::CheckpointEngine, config::KernelCalls};

/// Files of the log that are read ahead: enough to hide a store's latency, few enough that a
/// look-up which ends early wastes little.
const READ_AHEAD: NonZero<usize> = match NonZero::new(8) {
    Some(files) => files,
    None => NonZero::<usize>::MIN,
};

/// The kernel's engine over one store.
#[derive(Clone)]
pub(crate) struct Kernel {
    engine: Arc<dyn Engine>,
    calls: KernelCalls,
}

impl Kernel {
    pub(crate) fn new(store: Arc<dyn ObjectStore>, calls: KernelCalls) -> Self {
        let engine = DefaultEngineBuilder::new(Arc::clone(&store))
            .with_task_executor(Arc::new(ThisThread))
            .with_buffer_size(READ_AHEAD)
            .build();
        Self { engine: Arc::new(CheckpointEngine::new(engine, store)), calls }
    }

    /// The same over another store.
    pub(crate) fn over(&self, store: Arc<dyn ObjectStore>) -> Self {
        Self::new(store, self.calls)
    }

    /// Runs blocking work. Dropping the future does not end it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<dyn Engine>) -> T + Send + 'static,
    ) -> Result<T> {
        let engine = Arc::clone(&self.engine);
        blocking(self.calls, move || work(&engine)).await
    }
}

/// Runs work that blocks or computes for long.
pub(crate) async fn blocking<T: Send + 'static>(
    calls: KernelCalls,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    match calls {
        KernelCalls::InPlace => Ok(work()),
        KernelCalls::Pool => tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| Error::bug("a blocking step ended early").caused_by(error)),
    }
}

/// Starts work that computes for long and tells of its end in its own way. In place, it is
/// done at the return.
pub(crate) fn start(calls: KernelCalls, work: impl FnOnce() + Send + 'static) {
    match calls {
        KernelCalls::InPlace => work(),
        KernelCalls::Pool => drop(tokio::task::spawn_blocking(work)),
    }
}

/// Drives a future on the thread that waits for it. It may be entered again from inside.
pub(crate) struct ThisThread;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Drives a future on this thread.
pub(crate) fn wait<T>(task: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    // A task that used up its turn would wait for its scheduler, which waits for this thread.
    let mut task = pin!(tokio::task::unconstrained(task));
    loop {
        if let Poll::Ready(output) = task.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::park();
    }
}

impl TaskExecutor for ThisThread {
    type Guard<'a> = ();

    fn block_on<T>(&self, task: T) -> T::Output
    where
        T: Future + Send + 'static,
        T::Output: Send + 'static,
    {
        wait(task)
    }

    fn spawn<F>(&self, task: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // The engine's read and write paths start nothing in the background.
        self.block_on(task);
    }

    fn spawn_blocking<T, R>(&self, task: T) -> BoxFuture<'_, DeltaResult<R>>
    where
        T: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Box::pin(async move { Ok(task()) })
    }

    fn enter(&self) -> Self::Guard<'_> {}
}
