//! Capture and cleanup: the jobs, whether they run, and how far they are.

use super::{Check, Diagnosis, Edition, JobActivity, Observations, Observed, statement};

/// The longest distance that idle entries of the mapping had, in seconds.
const IDLE_SECONDS: i64 = 305;
/// An older newest entry means that capture stands still: three times the idle entries' distance,
/// so that one late scan is no alarm.
pub(super) const STALLED_SECONDS: i64 = 3 * IDLE_SECONDS;
/// A copy whose verdict moves less often than this has a note about heartbeats.
const HEARTBEAT_SECONDS: i64 = 60;
/// Capture that is this far behind its log is worth a warning: it is slower than the writers.
const LATENCY_SECONDS: i64 = 300;
/// A capture job that waits longer between scans delays every change noticeably.
const POLLING_SECONDS: i64 = 60;
/// Less retention than a day loses data in one night's outage.
pub(super) const RETENTION_LEAST_MINUTES: i64 = 24 * 60;
/// The server's default, three days, outlives a weekend.
pub(super) const RETENTION_GOOD_MINUTES: i64 = 72 * 60;
/// Cleanup runs once a day by default: this much more than the retention may be left over.
const CLEANUP_SLACK_MINUTES: i64 = 48 * 60;
/// `status` of a service that runs.
const RUNNING: i64 = 4;

fn hidden<T>(check: Check, observed: &Observed<T>) -> Option<Diagnosis> {
    match observed {
        Observed::Seen(_) => None,
        Observed::Hidden { needs, statement } => {
            Some(Diagnosis::unknown(check, needs, statement.as_ref()))
        }
    }
}

/// The age of the newest entry in seconds, where there is one.
fn age(seen: &Observations) -> Option<i64> {
    let commits = seen.commits.seen()?.as_ref()?;
    Some(seen.server.reading.seconds_since(commits.newest))
}

/// Whether capture stands still; none when nobody can tell.
pub(super) fn stalled(seen: &Observations) -> Option<bool> {
    age(seen).map(|age| age > STALLED_SECONDS)
}

/// True where the jobs are not this server's to run.
fn runs_elsewhere(seen: &Observations) -> bool {
    let secondary = seen.primary.seen() == Some(&false);
    let unwritable =
        seen.database.seen().is_some_and(|database| database.in_group && !database.writable);
    secondary || unwritable
}

fn published(seen: &Observations) -> bool {
    seen.database.seen().is_some_and(|database| database.published)
}

pub(super) fn agent(seen: &Observations) -> Diagnosis {
    let check = Check::Agent;
    if seen.server.edition == Edition::AzureDatabase {
        return Diagnosis::fine(check, "Azure SQL Database runs capture and cleanup itself")
            .with("edition", "Azure SQL Database");
    }
    if let Some(unknown) = hidden(check, &seen.agent) {
        return unknown;
    }
    match seen.agent.seen().copied().flatten() {
        Some(RUNNING) => Diagnosis::fine(check, "SQL Server Agent runs").with("status", RUNNING),
        Some(status) => Diagnosis::failure(
            check,
            "SQL Server Agent does not run: no change is captured, and the log cannot be reused",
        )
        .with("status", status)
        .advise(
            "start the service SQL Server Agent at the server's operating system, and let it start \
             by itself",
        ),
        None => Diagnosis::unknown(check, "a server that lists its SQL Server Agent", None),
    }
}

pub(super) fn capture_job(seen: &Observations) -> Diagnosis {
    let check = Check::CaptureJob;
    if let Some(unknown) = hidden(check, &seen.jobs) {
        return unknown;
    }
    let Some(job) = seen.jobs.seen().and_then(|jobs| jobs.capture) else {
        return no_capture_job(seen);
    };
    let shown = |diagnosis: Diagnosis| {
        diagnosis
            .with("continuous", job.continuous)
            .with("pollinginterval_seconds", job.polling_seconds)
            .with("maxtrans", job.max_transactions)
            .with("maxscans", job.max_scans)
    };
    // Azure SQL Database shows zeros: its scheduler has no such settings.
    if seen.server.edition == Edition::AzureDatabase {
        return shown(Diagnosis::fine(check, "the service's scheduler captures"));
    }
    let again = "EXEC sys.sp_cdc_stop_job @job_type = N'capture'; \
                 EXEC sys.sp_cdc_start_job @job_type = N'capture'";
    if !job.continuous {
        return shown(Diagnosis::warning(
            check,
            "the capture job ends after each scan: changes wait until something starts it again",
        ))
        .run(format!(
            "EXEC sys.sp_cdc_change_job @job_type = N'capture', @continuous = 1; {again}"
        ));
    }
    if job.polling_seconds > POLLING_SECONDS {
        return shown(Diagnosis::warning(
            check,
            "the capture job waits long between scans: every change is late by so much",
        ))
        .run(format!(
            "EXEC sys.sp_cdc_change_job @job_type = N'capture', @pollinginterval = 5; {again}"
        ));
    }
    shown(Diagnosis::fine(check, "the capture job exists and scans continuously"))
}

fn no_capture_job(seen: &Observations) -> Diagnosis {
    let check = Check::CaptureJob;
    if seen.server.edition == Edition::AzureDatabase {
        return Diagnosis::fine(check, "the service's scheduler captures").with("job", "none");
    }
    if published(seen) {
        return Diagnosis::note(
            check,
            "the database is published: the log reader of replication fills the change tables",
        )
        .with("job", "none")
        .with("is_published", true);
    }
    if runs_elsewhere(seen) {
        return Diagnosis::note(check, "the capture job belongs to the primary replica")
            .with("job", "none");
    }
    Diagnosis::failure(
        check,
        "there is no capture job: no change is captured, and the log cannot be reused. After a \
         failover of an availability group it has to be made on the new primary",
    )
    .with("job", "none")
    .run("EXEC sys.sp_cdc_add_job @job_type = N'capture'")
}

pub(super) fn capture_activity(seen: &Observations) -> Diagnosis {
    let check = Check::CaptureActivity;
    if seen.server.edition == Edition::AzureDatabase {
        return Diagnosis::fine(check, "Azure SQL Database runs capture itself")
            .with("edition", "Azure SQL Database");
    }
    if let Some(unknown) = hidden(check, &seen.capture_activity) {
        return unknown;
    }
    let Some(job) = seen.capture_activity.seen().and_then(Option::as_ref) else {
        let without = published(seen) || runs_elsewhere(seen);
        return if without {
            Diagnosis::note(check, "no capture job runs here").with("job", "none")
        } else {
            Diagnosis::failure(check, "SQL Server Agent knows no capture job of the database")
                .with("job", "none")
                .run("EXEC sys.sp_cdc_add_job @job_type = N'capture'")
        };
    };
    let shown = |diagnosis: Diagnosis| job_shown(diagnosis, job);
    if !job.enabled {
        return shown(Diagnosis::failure(
            check,
            "the capture job is disabled: it does not start again with SQL Server Agent",
        ))
        .run(format!(
            "EXEC msdb.dbo.sp_update_job @job_name = {}, @enabled = 1; \
             EXEC sys.sp_cdc_start_job @job_type = N'capture'",
            statement::literal(&job.name)
        ));
    }
    if !job.running {
        return shown(Diagnosis::failure(
            check,
            "the capture job does not run: no change is captured, and the log cannot be reused",
        ))
        .run("EXEC sys.sp_cdc_start_job @job_type = N'capture'");
    }
    shown(Diagnosis::fine(check, "the capture job runs"))
}

fn job_shown(diagnosis: Diagnosis, job: &JobActivity) -> Diagnosis {
    let diagnosis =
        diagnosis.with("job", &job.name).with("enabled", job.enabled).with("running", job.running);
    match job.last_outcome {
        Some(outcome) => diagnosis.with("last_run_outcome", outcome),
        None => diagnosis,
    }
}

/// The age of the newest entry: it needs no right beyond a user in the database.
pub(super) fn progress(seen: &Observations) -> Diagnosis {
    let check = Check::CaptureProgress;
    if let Some(unknown) = hidden(check, &seen.commits) {
        return unknown;
    }
    let start = "EXEC sys.sp_cdc_start_job @job_type = N'capture'";
    let Some(age) = age(seen) else {
        return Diagnosis::warning(
            check,
            "capture has never written to this database: right after it was enabled that is as it \
             should be, later it means that the capture job does not run",
        )
        .with("newest_entry", "none")
        .run(start);
    };
    let newest = seen.commits.seen().and_then(Option::as_ref).map(|commits| commits.newest);
    let shown = |diagnosis: Diagnosis| {
        let diagnosis = diagnosis.with("age_seconds", age);
        match newest {
            Some(newest) => diagnosis.with("newest_entry", newest),
            None => diagnosis,
        }
    };
    if age > STALLED_SECONDS {
        return shown(Diagnosis::failure(
            check,
            "capture stands still: even a database without changes gets an entry about every five \
             minutes. Changes wait in the log, which cannot be reused meanwhile",
        ))
        .run(start);
    }
    if age < -STALLED_SECONDS {
        return shown(Diagnosis::note(
            check,
            "the newest entry lies ahead of the server's clock: the clock was put back",
        ));
    }
    shown(Diagnosis::fine(check, "capture writes entries"))
}

pub(super) fn scans(seen: &Observations) -> Diagnosis {
    let check = Check::CaptureLatency;
    if let Some(unknown) = hidden(check, &seen.scans) {
        return unknown;
    }
    let Some(scan) = seen.scans.seen().and_then(Option::as_ref) else {
        return Diagnosis::note(
            check,
            "no scan of the log is known since the server started: on a secondary replica that is \
             always so",
        )
        .with("scans", "none");
    };
    let shown = |diagnosis: Diagnosis| {
        diagnosis
            .with("latency_seconds", scan.latency_seconds)
            .with("empty_scan_count", scan.empty)
            .with("failed_sessions_count", scan.failed)
    };
    if scan.latency_seconds > LATENCY_SECONDS {
        return shown(Diagnosis::warning(
            check,
            "capture is behind its log: it takes in less than is written",
        ))
        .run(
            "EXEC sys.sp_cdc_change_job @job_type = N'capture', @maxtrans = 5000, \
             @maxscans = 100; EXEC sys.sp_cdc_stop_job @job_type = N'capture'; \
             EXEC sys.sp_cdc_start_job @job_type = N'capture'",
        );
    }
    shown(Diagnosis::fine(check, "capture keeps up with its log"))
}

pub(super) fn errors(seen: &Observations) -> Diagnosis {
    let check = Check::CaptureErrors;
    if let Some(unknown) = hidden(check, &seen.errors) {
        return unknown;
    }
    let errors = seen.errors.seen().copied().unwrap_or_default();
    let mut found = if errors.count == 0 {
        Diagnosis::fine(check, "the latest scans met no error")
    } else {
        Diagnosis::warning(
            check,
            "capture met errors in its latest scans; 2628 and 8115 mean that a change no longer \
             fits its change table",
        )
        .run(
            "SELECT entry_time, error_number, error_message FROM sys.dm_cdc_errors \
             ORDER BY entry_time DESC",
        )
    };
    found = found.with("errors", errors.count);
    if let Some(number) = errors.number {
        found = found.with("error_number", number);
    }
    match errors.at {
        Some(at) => found.with("entry_time", at),
        None => found,
    }
}

pub(super) fn cleanup_job(seen: &Observations) -> Diagnosis {
    let check = Check::CleanupJob;
    if let Some(unknown) = hidden(check, &seen.jobs) {
        return unknown;
    }
    match seen.jobs.seen().and_then(|jobs| jobs.cleanup) {
        Some(job) => Diagnosis::fine(check, "the cleanup job exists")
            .with("retention_minutes", job.retention_minutes)
            .with("threshold", job.threshold),
        None if seen.server.edition == Edition::AzureDatabase || runs_elsewhere(seen) => {
            Diagnosis::note(check, "cleanup is not run here").with("job", "none")
        }
        None => Diagnosis::warning(
            check,
            "there is no cleanup job: nothing is lost, but the change tables grow without end",
        )
        .with("job", "none")
        .run("EXEC sys.sp_cdc_add_job @job_type = N'cleanup'"),
    }
}

pub(super) fn retention(seen: &Observations) -> Diagnosis {
    let check = Check::Retention;
    if let Some(mut unknown) = hidden(check, &seen.jobs) {
        unknown.advice = Some("the windows of the instances show what cleanup has left".into());
        return unknown;
    }
    let Some(minutes) =
        seen.jobs.seen().and_then(|jobs| jobs.cleanup).map(|job| job.retention_minutes)
    else {
        return Diagnosis::note(check, "without a cleanup job every change is kept")
            .with("job", "none");
    };
    let shown = |diagnosis: Diagnosis| diagnosis.with("retention_minutes", minutes);
    if minutes < RETENTION_LEAST_MINUTES {
        return shown(Diagnosis::failure(
            check,
            "changes are kept for less than a day: a copy that is stopped longer loses them",
        ))
        .run(statement::retain(RETENTION_GOOD_MINUTES));
    }
    if minutes < RETENTION_GOOD_MINUTES {
        return shown(Diagnosis::warning(
            check,
            "changes are kept for less than three days: a copy that stands still over a weekend \
             loses them",
        ))
        .run(statement::retain(RETENTION_GOOD_MINUTES));
    }
    shown(Diagnosis::fine(check, "changes are kept for three days or longer"))
}

pub(super) fn cleanup_progress(seen: &Observations) -> Diagnosis {
    let check = Check::CleanupProgress;
    let activity = seen.cleanup_activity.seen().and_then(Option::as_ref);
    if let Some(job) = activity
        && job.last_outcome == Some(0)
    {
        return job_shown(
            Diagnosis::warning(
                check,
                "the cleanup job failed in its last run: the change tables grow, and its next run \
                 deletes more at once",
            ),
            job,
        )
        .run(format!(
            "EXEC msdb.dbo.sp_help_jobhistory @job_name = {}, @mode = N'FULL'",
            statement::literal(&job.name)
        ));
    }
    let window = oldest_window_minutes(seen);
    let minutes = seen.jobs.seen().and_then(|jobs| jobs.cleanup).map(|job| job.retention_minutes);
    match (window, minutes) {
        (Some(window), Some(minutes)) => {
            let found = if window > minutes.saturating_add(CLEANUP_SLACK_MINUTES) {
                Diagnosis::warning(
                    check,
                    "cleanup is behind its retention: the change tables grow, and its next run \
                     deletes more at once",
                )
                .run("EXEC sys.sp_cdc_start_job @job_type = N'cleanup'")
            } else {
                Diagnosis::fine(check, "cleanup follows its retention")
            };
            found.with("oldest_change_minutes", window).with("retention_minutes", minutes)
        }
        _ => hidden(check, &seen.cleanup_activity)
            .or_else(|| hidden(check, &seen.jobs))
            .or_else(|| hidden(check, &seen.commits))
            .unwrap_or_else(|| {
                Diagnosis::note(check, "nothing is left to clean up yet")
                    .with("oldest_change", "none")
            }),
    }
}

/// Minutes from the oldest low position to the newest entry, over all instances.
fn oldest_window_minutes(seen: &Observations) -> Option<i64> {
    let newest = seen.commits.seen()?.as_ref()?.newest;
    let listed = seen.tables.iter().filter_map(|state| state.instances.as_ref().ok()).flatten();
    let oldest = listed.filter_map(|instance| instance.low_reading).min()?;
    Some(newest.seconds_since(oldest) / 60)
}

pub(super) fn heartbeat(seen: &Observations) -> Diagnosis {
    let check = Check::Heartbeat;
    if let Some(unknown) = hidden(check, &seen.commits) {
        return unknown;
    }
    let pause = seen.commits.seen().and_then(|commits| commits.as_ref()?.longest_pause_seconds);
    let Some(pause) = pause else {
        return Diagnosis::note(check, "too few entries to tell how often something commits")
            .with("longest_pause", "none");
    };
    if pause <= HEARTBEAT_SECONDS {
        return Diagnosis::fine(check, "something is captured at least once a minute")
            .with("longest_pause_seconds", pause);
    }
    Diagnosis::note(
        check,
        "in quiet times the copy's verdict moves with the idle entries alone, about every five \
         minutes. A captured table of one row that a job updates every ten seconds would move it",
    )
    .with("longest_pause_seconds", pause)
    .run(
        "CREATE TABLE dbo.cdc_heartbeat (id tinyint NOT NULL PRIMARY KEY, beat_at datetime2(3) NOT \
         NULL); INSERT dbo.cdc_heartbeat VALUES (1, SYSUTCDATETIME()); \
         EXEC sys.sp_cdc_enable_table @source_schema = N'dbo', @source_name = N'cdc_heartbeat', \
         @role_name = NULL, @supports_net_changes = 0; \
         /* in a job of SQL Server Agent, every ten seconds: \
         UPDATE dbo.cdc_heartbeat SET beat_at = SYSUTCDATETIME() */",
    )
}
