//! What was seen of a source, before anybody says what it means.

use crate::{
    error::{Error, ErrorKind},
    port::Bound,
    table::{CaptureInstance, Column, TableName, TableRef},
    time::{ServerTime, ServerZone, Timestamp},
};

/// Something that was looked at, or could not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observed<T> {
    /// What was seen.
    Seen(T),
    /// It was not shown.
    Hidden {
        /// What is needed to see it: a right, a version.
        needs: String,
        /// The statement that gives it.
        statement: Option<String>,
    },
}

impl<T> Observed<T> {
    /// What could not be looked at.
    #[must_use]
    pub fn hidden(needs: impl Into<String>) -> Self {
        Self::Hidden { needs: needs.into(), statement: None }
    }

    /// What was seen, if anything.
    #[must_use]
    pub const fn seen(&self) -> Option<&T> {
        match self {
            Self::Seen(seen) => Some(seen),
            Self::Hidden { .. } => None,
        }
    }
}

/// Everything that was seen of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observations {
    /// This machine's clock.
    pub now: Timestamp,
    /// Who reads, and how.
    pub reader: Reader,
    /// The server.
    pub server: ServerState,
    /// The database.
    pub database: Observed<DatabaseState>,
    /// Whether this is the primary replica; looked at in an availability group alone.
    pub primary: Observed<bool>,
    /// The state of SQL Server Agent as the server numbers it (4 runs); none when none is listed.
    pub agent: Observed<Option<i64>>,
    /// The settings of the jobs.
    pub jobs: Observed<Jobs>,
    /// What Agent says of the capture job; none when it does not know it.
    pub capture_activity: Observed<Option<JobActivity>>,
    /// What Agent says of the cleanup job; none when it does not know it.
    pub cleanup_activity: Observed<Option<JobActivity>>,
    /// The scans of the log; none before the first.
    pub scans: Observed<Option<CaptureScan>>,
    /// The errors of the scans.
    pub errors: Observed<CaptureErrors>,
    /// How much of the log is in use, in percent.
    pub log_used: Observed<Option<i64>>,
    /// `max text repl size` in bytes; -1 for no limit.
    pub text_limit: Observed<i64>,
    /// The newest entries of the mapping; none before capture wrote one.
    pub commits: Observed<Option<Commits>>,
    /// Each table that was asked about.
    pub tables: Vec<TableState>,
}

/// How rows of the tables themselves are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowIsolation {
    /// A read waits for rows that an open transaction wrote.
    #[default]
    ReadCommitted,
    /// A read sees the last committed versions, and waits for nobody.
    Snapshot,
}

/// Who reads, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reader {
    /// The login's user in the database; none when it could not be asked.
    pub user: Option<String>,
    /// How rows of the tables are read.
    pub isolation: RowIsolation,
    /// True when everything on the way is encrypted.
    pub encrypted: bool,
    /// True when any certificate is believed.
    pub any_certificate: bool,
    /// The zone that commit times are read in; none when nobody tells it.
    pub zone: Option<ServerZone>,
    /// A secondary that takes reads was asked for.
    pub read_only_intent: bool,
}

/// What kind of server it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edition {
    /// SQL Server: Agent runs the jobs.
    Server,
    /// Azure SQL Database: the service runs capture and cleanup itself.
    AzureDatabase,
    /// Azure SQL Managed Instance.
    ManagedInstance,
}

/// The server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerState {
    /// Its major version: 16 for SQL Server 2022.
    pub version: Option<i64>,
    /// Its kind.
    pub edition: Edition,
    /// Its clock in UTC.
    pub utc: Timestamp,
    /// Its clock as it shows it.
    pub reading: ServerTime,
}

/// The database, as `sys.databases` shows it to everybody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseState {
    /// Its name.
    pub name: String,
    /// Change data capture is on.
    pub captured: bool,
    /// `snapshot_isolation_state`: 0 off, 1 on, 2 going off, 3 going on.
    pub snapshot_isolation: i64,
    /// `READ_COMMITTED_SNAPSHOT` is on.
    pub read_committed_snapshot: bool,
    /// `log_reuse_wait_desc`.
    pub log_reuse_wait: String,
    /// It is published: the log reader of replication feeds capture.
    pub published: bool,
    /// It belongs to an availability group.
    pub in_group: bool,
    /// It takes writes.
    pub writable: bool,
}

/// The capture job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureJob {
    /// It runs on; otherwise it ends after each scan.
    pub continuous: bool,
    /// Seconds between scans.
    pub polling_seconds: i64,
    /// Transactions of a scan.
    pub max_transactions: i64,
    /// Scans of a cycle.
    pub max_scans: i64,
}

/// The cleanup job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupJob {
    /// Minutes that changes are kept, counted from the newest captured commit.
    pub retention_minutes: i64,
    /// Rows of one delete.
    pub threshold: i64,
}

/// The jobs that exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jobs {
    /// The capture job.
    pub capture: Option<CaptureJob>,
    /// The cleanup job.
    pub cleanup: Option<CleanupJob>,
}

/// What Agent says of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobActivity {
    /// Its name.
    pub name: String,
    /// It may run.
    pub enabled: bool,
    /// It runs now.
    pub running: bool,
    /// `last_run_outcome`: 0 failed, 1 succeeded, 3 cancelled; none before its first run.
    pub last_outcome: Option<i64>,
}

/// The scans of the log, summed up since the server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureScan {
    /// Seconds from a commit to the end of the scan that captured it, the last time it was not 0.
    pub latency_seconds: i64,
    /// Scans that failed.
    pub failed: i64,
    /// Scans in a row that found nothing.
    pub empty: i64,
}

/// The errors of the latest scans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureErrors {
    /// How many.
    pub count: i64,
    /// The number of the newest.
    pub number: Option<i64>,
    /// When the newest happened, on the server's clock.
    pub at: Option<ServerTime>,
}

/// The newest entries of the mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commits {
    /// The reading of the newest.
    pub newest: ServerTime,
    /// The longest time between two neighbours among the newest, in seconds; none with one entry.
    pub longest_pause_seconds: Option<i64>,
}

/// What the login may do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It may read it.
    Allowed,
    /// It may not read it.
    Denied,
    /// There is none, or the login may not know of it.
    Missing,
}

/// One table that was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableState {
    /// As it was asked for.
    pub reference: TableRef,
    /// Its instances, oldest first, or why they are not listed.
    pub instances: Result<Vec<InstanceState>, Unlisted>,
    /// Its columns as they are now.
    pub columns: Observed<Vec<Column>>,
}

/// Why a table's instances are not listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlisted {
    /// The kind of the error.
    pub kind: ErrorKind,
    /// What was said.
    pub message: String,
    /// What to do about it.
    pub advice: String,
    /// What the login may do with the table.
    pub table: Access,
    /// What the login may do with the change table of the table's default instance.
    pub changes: Access,
    /// The gating role, where the login is shown it.
    pub role: Option<String>,
}

impl Unlisted {
    /// What an error says, before anything of the rights is known.
    #[must_use]
    pub fn of(error: &Error) -> Self {
        Self {
            kind: error.kind(),
            message: error.message().to_owned(),
            advice: error.advice().to_owned(),
            table: Access::Missing,
            changes: Access::Missing,
            role: None,
        }
    }
}

/// One capture instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceState {
    /// What it captures.
    pub instance: CaptureInstance,
    /// The role that gates it.
    pub role: Option<String>,
    /// What the login may do with the table.
    pub table: Access,
    /// What the login may do with the change table.
    pub changes: Access,
    /// The first position that it can still serve.
    pub low: Bound,
    /// The reading of the last entry at or before `low`.
    pub low_reading: Option<ServerTime>,
}

impl TableState {
    /// The table's name, where it is known.
    #[must_use]
    pub fn name(&self) -> Option<TableName> {
        match (&self.instances, &self.reference) {
            (Ok(instances), TableRef::Instance(_)) => {
                instances.first().map(|state| state.instance.table.clone())
            }
            (Err(_), TableRef::Instance(_)) => None,
            (_, TableRef::Table(name)) => Some(name.clone()),
        }
    }
}
