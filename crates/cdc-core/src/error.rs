//! The error that every port and the engine return: a kind that says what to do, a message, and
//! where it happened.
//!
//! A message names table, column, position and setting; it never carries a cell's value or a
//! secret.

use std::{error::Error as StdError, fmt, time::Duration};

/// What went wrong, by what the caller or the operator does about it.
///
/// The list is short on purpose; a new kind needs a decision record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The other side does not answer or asked to come back later. Retried with backoff.
    Unavailable,
    /// Somebody else committed first. The state is read again and the step repeated.
    Conflict,
    /// A newer runner owns the table. This one stops.
    Fenced,
    /// The source no longer holds changes that were not read yet.
    DataLoss,
    /// The saved position belongs to another log: a restored or different database.
    LineageBroken,
    /// The source's columns changed in a way the target cannot follow.
    SchemaChanged,
    /// A value or a stored record is not what its type or format promises.
    InvalidData,
    /// A right is missing; the error names the grant.
    Unauthorized,
    /// A setting is wrong; the error names it.
    Config,
    /// A table, column or type that cannot be copied.
    Unsupported,
    /// The caller asked to stop.
    Cancelled,
    /// A contract of this library was broken.
    Bug,
}

/// What the engine does after an error of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Wait with growing, jittered pauses, then repeat the step.
    Backoff,
    /// Read the target's state again at once, then repeat the step.
    Reload,
    /// Stop the table; a person or a policy decides.
    Stop,
}

impl ErrorKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 12] = [
        Self::Unavailable,
        Self::Conflict,
        Self::Fenced,
        Self::DataLoss,
        Self::LineageBroken,
        Self::SchemaChanged,
        Self::InvalidData,
        Self::Unauthorized,
        Self::Config,
        Self::Unsupported,
        Self::Cancelled,
        Self::Bug,
    ];

    /// The one place that says, for each kind, its name, what the engine does, and what the
    /// operator does.
    const fn policy(self) -> (&'static str, Retry, &'static str) {
        match self {
            Self::Unavailable => (
                "unavailable",
                Retry::Backoff,
                "check that the server or store is reachable; the run resumes from its mark",
            ),
            Self::Conflict => (
                "conflict",
                Retry::Reload,
                "another writer is committing to the same table; run one writer a table",
            ),
            Self::Fenced => (
                "fenced",
                Retry::Stop,
                "a newer runner took this table over and goes on; start this one again only when \
                 the other is gone",
            ),
            Self::DataLoss => (
                "data_loss",
                Retry::Stop,
                "copy the table into a new target (another name or root), starting at earliest; \
                 the old copy stays as it was, complete until its verdict",
            ),
            Self::LineageBroken => (
                "lineage_broken",
                Retry::Stop,
                "point the run at the database the target was filled from; if that one was \
                 restored, copy its tables into new targets (another name or root)",
            ),
            Self::SchemaChanged => (
                "schema_changed",
                Retry::Stop,
                "create a new capture instance for the changed columns or widen the target's type",
            ),
            Self::InvalidData => (
                "invalid_data",
                Retry::Stop,
                "the named table, column or file holds something its type does not allow; \
                 repair it at its origin",
            ),
            Self::Unauthorized => {
                ("unauthorized", Retry::Stop, "grant the named right to the run's login")
            }
            Self::Config => ("config", Retry::Stop, "correct the named setting"),
            Self::Unsupported => (
                "unsupported",
                Retry::Stop,
                "leave the named table, column or type out of the configuration",
            ),
            Self::Cancelled => ("cancelled", Retry::Stop, "start again; nothing was lost"),
            Self::Bug => (
                "bug",
                Retry::Stop,
                "report it with the message and the log; the target was left at its last mark",
            ),
        }
    }

    /// The kind's name as logs, metrics and JSON print it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.policy().0
    }

    /// What the engine does after an error of this kind.
    #[must_use]
    pub const fn retry(self) -> Retry {
        self.policy().1
    }

    /// What the operator does when the engine stopped with this kind.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        self.policy().2
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The cause below an [`Error`].
pub type Cause = Box<dyn StdError + Send + Sync + 'static>;

/// An error with its kind, a message, and the place as `key=value` pairs.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    message: String,
    context: Vec<(&'static str, String)>,
    remedy: Option<String>,
    retry_after: Option<Duration>,
    cause: Option<Cause>,
}

/// A result with the library's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`; `message` starts in lower case and ends without a full stop.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            context: Vec::new(),
            remedy: None,
            retry_after: None,
            cause: None,
        }))
    }

    /// A broken contract of this library.
    #[must_use]
    pub fn bug(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Bug, message)
    }

    /// Adds where it happened: `table`, `column`, `instance`, `position`, `setting`, `path`.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.0.context.push((key, value.to_string()));
        self
    }

    /// Replaces the kind's general advice by a precise one (a statement to run, a value to set).
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.0.remedy = Some(remedy.into());
        self
    }

    /// Keeps the cause. Its text must not carry a cell's value or a secret.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<Cause>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// Asks for at least this pause before a retry. Only [`ErrorKind::Unavailable`] uses it.
    #[must_use]
    pub fn retry_after(mut self, pause: Duration) -> Self {
        self.0.retry_after = Some(pause);
        self
    }

    /// What the caller does about it.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without its context.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The value given for a context key, when there is one.
    #[must_use]
    pub fn context(&self, key: &str) -> Option<&str> {
        self.0.context.iter().find(|(k, _)| *k == key).map(|(_, v)| v.as_str())
    }

    /// What to do: the error's own remedy, or its kind's advice.
    #[must_use]
    pub fn advice(&self) -> &str {
        self.0.remedy.as_deref().unwrap_or_else(|| self.kind().advice())
    }

    /// The least pause before a retry, when the other side asked for one.
    #[must_use]
    pub fn pause(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// The message, its context, and every cause, on one line.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let below = error.to_string();
            // Libraries repeat a cause in the text of what it caused.
            if !text.contains(&below) {
                text.push_str(": ");
                text.push_str(&below);
            }
            cause = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        for (key, value) in &self.0.context {
            write!(f, " {key}={value}")?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed_once_with_a_name_and_advice() {
        let mut names: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorKind::ALL.len());
        assert!(ErrorKind::ALL.iter().all(|kind| !kind.advice().is_empty()));
    }

    #[test]
    fn only_a_dead_peer_and_a_lost_race_are_retried() {
        let retried: Vec<_> =
            ErrorKind::ALL.into_iter().filter(|kind| kind.retry() != Retry::Stop).collect();
        assert_eq!(retried, [ErrorKind::Unavailable, ErrorKind::Conflict]);
    }

    #[test]
    fn the_text_puts_the_place_after_the_message() {
        let error = Error::new(ErrorKind::DataLoss, "range was purged")
            .with("table", "dbo.orders")
            .with("position", "0x01")
            .caused_by("low mark moved");
        assert_eq!(error.to_string(), "range was purged table=dbo.orders position=0x01");
        assert_eq!(
            error.report(),
            "range was purged table=dbo.orders position=0x01: low mark moved"
        );
        assert_eq!(error.context("table"), Some("dbo.orders"));
    }
}
