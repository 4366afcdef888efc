//! Connections that nobody uses. One is kept only when its last answer was read to its end.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A few idle connections, the latest used first.
#[derive(Debug)]
pub(crate) struct Pool<C> {
    idle: Mutex<Vec<C>>,
    most: usize,
}

impl<C> Pool<C> {
    /// A pool that keeps at most so many.
    pub(crate) const fn new(most: usize) -> Self {
        Self { idle: Mutex::new(Vec::new()), most }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<C>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Option<C> {
        self.idle().pop()
    }

    /// Keeps a connection, or closes it when there are enough.
    pub(crate) fn put(&self, connection: C) {
        let mut idle = self.idle();
        if idle.len() < self.most {
            idle.push(connection);
        }
    }

    pub(crate) fn clear(&self) {
        self.idle().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_is_taken_first_and_no_more_are_kept_than_allowed() {
        let pool = Pool::new(2);
        for connection in 1..=3 {
            pool.put(connection);
        }
        assert_eq!((pool.take(), pool.take(), pool.take()), (Some(2), Some(1), None));
        pool.put(4);
        pool.clear();
        assert_eq!(pool.take(), None);
    }
}
