//! The checks, by the names that reports and the guide use.

use std::fmt;

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Check {
    /// Whether the database captures changes at all.
    CaptureEnabled,
    /// Whether the connection is encrypted, and whose certificate is believed.
    Encryption,
    /// SQL Server Agent, which runs the jobs.
    Agent,
    /// The capture job and its settings.
    CaptureJob,
    /// Whether the capture job runs.
    CaptureActivity,
    /// The age of the newest entry of the mapping: idle lag, or a capture that stands still.
    CaptureProgress,
    /// How far capture was behind in its last scans.
    CaptureLatency,
    /// Errors that capture met.
    CaptureErrors,
    /// The cleanup job.
    CleanupJob,
    /// How long changes are kept.
    Retention,
    /// Whether cleanup follows its retention.
    CleanupProgress,
    /// Whether something commits often enough for the copy's verdict to move.
    Heartbeat,
    /// What keeps the log from being reused.
    LogReuse,
    /// Whether rows can be read under snapshot isolation.
    SnapshotIsolation,
    /// The role in an availability group.
    AvailabilityGroup,
    /// The largest value that may be written to a captured large object.
    TextLimit,
    /// The zone of the server's clock.
    ClockZone,
    /// The server's clock beside this machine's.
    ClockSkew,
    /// Whether the table is captured.
    Instance,
    /// The role that gates an instance.
    GatingRole,
    /// The right to read the table.
    TableRight,
    /// The right to read the change table.
    ChangeTableRight,
    /// What the instance can still serve.
    Window,
    /// Captured columns that change rows do not fill, or that have no form in the copy.
    Columns,
    /// Columns of the table that nothing captures.
    Drift,
}

impl Check {
    /// Every check.
    pub const ALL: [Self; 25] = [
        Self::CaptureEnabled,
        Self::Encryption,
        Self::Agent,
        Self::CaptureJob,
        Self::CaptureActivity,
        Self::CaptureProgress,
        Self::CaptureLatency,
        Self::CaptureErrors,
        Self::CleanupJob,
        Self::Retention,
        Self::CleanupProgress,
        Self::Heartbeat,
        Self::LogReuse,
        Self::SnapshotIsolation,
        Self::AvailabilityGroup,
        Self::TextLimit,
        Self::ClockZone,
        Self::ClockSkew,
        Self::Instance,
        Self::GatingRole,
        Self::TableRight,
        Self::ChangeTableRight,
        Self::Window,
        Self::Columns,
        Self::Drift,
    ];

    /// The name in reports and in the guide.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CaptureEnabled => "capture_enabled",
            Self::Encryption => "encryption",
            Self::Agent => "agent",
            Self::CaptureJob => "capture_job",
            Self::CaptureActivity => "capture_activity",
            Self::CaptureProgress => "capture_progress",
            Self::CaptureLatency => "capture_latency",
            Self::CaptureErrors => "capture_errors",
            Self::CleanupJob => "cleanup_job",
            Self::Retention => "retention",
            Self::CleanupProgress => "cleanup_progress",
            Self::Heartbeat => "heartbeat",
            Self::LogReuse => "log_reuse",
            Self::SnapshotIsolation => "snapshot_isolation",
            Self::AvailabilityGroup => "availability_group",
            Self::TextLimit => "text_limit",
            Self::ClockZone => "clock_zone",
            Self::ClockSkew => "clock_skew",
            Self::Instance => "instance",
            Self::GatingRole => "gating_role",
            Self::TableRight => "table_right",
            Self::ChangeTableRight => "change_table_right",
            Self::Window => "window",
            Self::Columns => "columns",
            Self::Drift => "drift",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
