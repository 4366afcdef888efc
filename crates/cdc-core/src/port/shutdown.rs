//! The request to stop: asked once, seen by every part.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use futures_channel::oneshot;
use futures_util::future::{FutureExt, Shared};

use crate::error::{Error, ErrorKind, Result};

/// Asks the engine to stop: by [`ShutdownHandle::request`], or by going away.
#[derive(Debug)]
pub struct ShutdownHandle {
    asked: Arc<AtomicBool>,
    sender: Mutex<Option<oneshot::Sender<()>>>,
}

/// Sees the request to stop. Clones see the same request.
#[derive(Clone, Debug)]
pub struct Shutdown {
    asked: Arc<AtomicBool>,
    receiver: Shared<oneshot::Receiver<()>>,
}

impl ShutdownHandle {
    /// A handle and the view of it that the engine takes.
    #[must_use]
    pub fn new() -> (Self, Shutdown) {
        let (sender, receiver) = oneshot::channel();
        let asked = Arc::new(AtomicBool::new(false));
        let handle = Self { asked: Arc::clone(&asked), sender: Mutex::new(Some(sender)) };
        (handle, Shutdown { asked, receiver: receiver.shared() })
    }

    /// Asks to stop. The batch in hand is finished or discarded, never left half.
    pub fn request(&self) {
        self.asked.store(true, Ordering::SeqCst);
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Drop for ShutdownHandle {
    fn drop(&mut self) {
        // Nobody could ask any more: the run ends rather than going on for ever.
        self.request();
    }
}

impl Shutdown {
    /// A view of a request that never comes.
    #[must_use]
    pub fn never() -> Self {
        let (sender, receiver) = oneshot::channel();
        // Forgotten on purpose: a dropped sender would read as a request.
        std::mem::forget(sender);
        Self { asked: Arc::new(AtomicBool::new(false)), receiver: receiver.shared() }
    }

    /// True once the stop was asked for.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Ends when the stop is asked for, or when the handle is gone.
    pub async fn requested(&self) {
        let _ = self.receiver.clone().map(|_| ()).await;
    }

    /// The error of a stop that was asked for.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`] once the stop was asked for.
    pub fn check(&self) -> Result<()> {
        if self.is_requested() {
            return Err(Error::new(ErrorKind::Cancelled, "stop was asked for"));
        }
        Ok(())
    }
}
