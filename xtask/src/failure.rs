//! Why a task could not be done: one line that says what to do.

use std::{error::Error, fmt};

/// A task that failed, in the words that are printed.
#[derive(Debug)]
pub struct Failure(String);

/// The result of a task.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    /// A failure with its message.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// A failure of `what`, with the error below it.
    #[must_use]
    pub fn caused(what: impl fmt::Display, cause: impl fmt::Display) -> Self {
        Self(format!("{what}: {cause}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Failure {}
