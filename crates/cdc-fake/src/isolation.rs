//! What a session sees of others' transactions, and how long it waits for them.

use std::{fmt, sync::Arc, time::Duration};

/// An isolation level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isolation {
    /// Sees what others have not committed.
    ReadUncommitted,
    /// Waits for rows that others wrote, or reads their last committed version where the database
    /// has `READ_COMMITTED_SNAPSHOT`.
    #[default]
    ReadCommitted,
    /// As read committed, and holds what it read to its end.
    RepeatableRead,
    /// As repeatable read, and holds the whole table that it read, so that no row appears.
    Serializable,
    /// Reads everything as it was committed at its first read.
    Snapshot,
}

impl Isolation {
    /// The server's number of the level in `sys.dm_exec_sessions`: 1 to 5.
    #[must_use]
    pub const fn number(self) -> i16 {
        match self {
            Self::ReadUncommitted => 1,
            Self::ReadCommitted => 2,
            Self::RepeatableRead => 3,
            Self::Serializable => 4,
            Self::Snapshot => 5,
        }
    }
}

/// How long a statement waits for a lock, by the server's clock, and what ends the wait.
#[derive(Clone, Default)]
pub struct Waiting {
    limit: Option<Duration>,
    cancelled: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl Waiting {
    /// No wait: a held lock is an error at once (`SET LOCK_TIMEOUT 0`).
    #[must_use]
    pub const fn refuse() -> Self {
        Self { limit: Some(Duration::ZERO), cancelled: None }
    }

    /// Waits until the lock is free (`SET LOCK_TIMEOUT -1`).
    #[must_use]
    pub const fn forever() -> Self {
        Self { limit: None, cancelled: None }
    }

    /// Waits so long at most; none is for ever.
    #[must_use]
    pub const fn limited(limit: Option<Duration>) -> Self {
        Self { limit, cancelled: None }
    }

    /// The same, ended early once `cancelled` is true.
    #[must_use]
    pub fn until(mut self, cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.cancelled = Some(Arc::new(cancelled));
        self
    }

    pub(crate) const fn limit(&self) -> Option<Duration> {
        self.limit
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.as_ref().is_some_and(|cancelled| cancelled())
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").field("limit", &self.limit).finish_non_exhaustive()
    }
}
