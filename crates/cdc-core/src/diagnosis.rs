//! What a source tells of its health: observations in, one diagnosis a check out, each with its
//! evidence, its meaning, and the statement that a database administrator would run.
//!
//! [`diagnose`] is a pure function. What could not be looked at is an observation too
//! ([`Observed::Hidden`]), and becomes [`Outcome::Unknown`] with the right that is needed, never
//! [`Outcome::Fine`].

mod capture;
mod check;
mod clock;
mod database;
mod observation;
mod statement;
mod table;

use std::fmt;

use crate::table::TableName;

pub use check::Check;
pub use observation::{
    Access, CaptureErrors, CaptureJob, CaptureScan, CleanupJob, Commits, DatabaseState, Edition,
    InstanceState, JobActivity, Jobs, Observations, Observed, Reader, RowIsolation, ServerState,
    TableState, Unlisted,
};

/// How much a diagnosis matters, least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Looked at, and as it should be.
    Fine,
    /// Good to know.
    Note,
    /// It could not be looked at; the diagnosis says what is needed.
    Unknown,
    /// It will hurt later, or leaves little room.
    Warning,
    /// It stops the copy, or loses data.
    Failure,
}

impl Outcome {
    /// Every outcome, least first.
    pub const ALL: [Self; 5] =
        [Self::Fine, Self::Note, Self::Unknown, Self::Warning, Self::Failure];

    /// The word that reports print.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Note => "note",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Failure => "failure",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What one check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// Which check.
    pub check: Check,
    /// How much it matters.
    pub outcome: Outcome,
    /// The table it is about; none for the server or the database.
    pub table: Option<TableName>,
    /// The values that were seen, with their names. Never a cell's value, never a secret.
    pub evidence: Vec<(&'static str, String)>,
    /// What the evidence means for the copy.
    pub meaning: String,
    /// What to do, in words.
    pub advice: Option<String>,
    /// What a database administrator would run at the server.
    pub statement: Option<String>,
}

impl Diagnosis {
    /// A diagnosis without evidence yet.
    #[must_use]
    pub fn new(check: Check, outcome: Outcome, meaning: impl Into<String>) -> Self {
        Self {
            check,
            outcome,
            table: None,
            evidence: Vec::new(),
            meaning: meaning.into(),
            advice: None,
            statement: None,
        }
    }

    /// The same about a table.
    #[must_use]
    pub fn on(mut self, table: &TableName) -> Self {
        self.table = Some(table.clone());
        self
    }

    /// The same with a value that was seen.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl fmt::Display) -> Self {
        self.evidence.push((name, value.to_string()));
        self
    }

    /// The same with what to do in words.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The same with what to run.
    #[must_use]
    pub fn run(mut self, statement: impl Into<String>) -> Self {
        self.statement = Some(statement.into());
        self
    }

    fn fine(check: Check, meaning: impl Into<String>) -> Self {
        Self::new(check, Outcome::Fine, meaning)
    }

    fn note(check: Check, meaning: impl Into<String>) -> Self {
        Self::new(check, Outcome::Note, meaning)
    }

    fn warning(check: Check, meaning: impl Into<String>) -> Self {
        Self::new(check, Outcome::Warning, meaning)
    }

    fn failure(check: Check, meaning: impl Into<String>) -> Self {
        Self::new(check, Outcome::Failure, meaning)
    }

    /// What could not be looked at.
    fn unknown(check: Check, needs: &str, statement: Option<&String>) -> Self {
        let mut unknown = Self::new(check, Outcome::Unknown, format!("unknown, needs {needs}"));
        unknown.statement = statement.cloned();
        unknown
    }
}

/// Every check of a source, each with at least one diagnosis: the server and the database first,
/// then table by table in the order observed.
#[must_use]
pub fn diagnose(seen: &Observations) -> Vec<Diagnosis> {
    let mut found = vec![
        database::enabled(seen),
        database::encryption(seen),
        capture::agent(seen),
        capture::capture_job(seen),
        capture::capture_activity(seen),
        capture::progress(seen),
        capture::scans(seen),
        capture::errors(seen),
        capture::cleanup_job(seen),
        capture::retention(seen),
        capture::cleanup_progress(seen),
        capture::heartbeat(seen),
        database::log_reuse(seen),
        database::snapshot_isolation(seen),
        database::availability_group(seen),
        database::text_limit(seen),
        clock::zone(seen),
        clock::skew(seen),
    ];
    for state in &seen.tables {
        table::look(seen, state, &mut found);
    }
    found
}

#[cfg(test)]
mod tests;
