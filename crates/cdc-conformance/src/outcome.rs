//! How a case ended, and the checks that end one.

use std::fmt;

use cdc_core::{Error, ErrorKind};

/// How a case ended that found nothing wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every check held.
    Passed,
    /// The harness cannot bring the case about; holds what it would have to be able to do.
    Skipped(String),
}

/// What a case found wrong. Prints as its text, also where a test prints it as `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(String);

/// The result of a case.
pub type CaseResult = Result<Outcome, Failure>;

impl Failure {
    /// A failure that says what was expected and what was found.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The same failure, with what the case was doing put before it.
    #[must_use]
    pub fn during(self, step: &str) -> Self {
        Self(format!("{step}: {}", self.0))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(format!("unexpected {} error: {}", error.kind(), error.report()))
    }
}

impl From<arrow_schema::ArrowError> for Failure {
    fn from(error: arrow_schema::ArrowError) -> Self {
        Self(format!("arrow refused the test's own data: {error}"))
    }
}

/// Fails unless `held`.
pub(crate) fn check(held: bool, rule: impl Into<String>) -> Result<(), Failure> {
    if held { Ok(()) } else { Err(Failure::new(rule)) }
}

/// Fails unless both are equal.
pub(crate) fn same<T: fmt::Debug + PartialEq>(
    what: &str,
    found: T,
    expected: T,
) -> Result<(), Failure> {
    if found == expected {
        return Ok(());
    }
    Err(Failure::new(format!("{what}: expected {expected:?}, found {found:?}")))
}

/// Fails unless the call was refused with `kind`; returns the error.
pub(crate) fn refused<T>(
    what: &str,
    result: cdc_core::Result<T>,
    kind: ErrorKind,
) -> Result<Error, Failure> {
    match result {
        Err(error) if error.kind() == kind => Ok(error),
        Err(error) => Err(Failure::new(format!(
            "{what}: expected a {kind} error, found {}: {}",
            error.kind(),
            error.report()
        ))),
        Ok(_) => Err(Failure::new(format!("{what}: expected a {kind} error, found success"))),
    }
}

/// Fails unless the error names `name`, in any case, somewhere in its report.
pub(crate) fn names(error: &Error, name: &str) -> Result<(), Failure> {
    check(
        error.report().to_lowercase().contains(&name.to_lowercase()),
        format!("the error does not name {name}: {}", error.report()),
    )
}
