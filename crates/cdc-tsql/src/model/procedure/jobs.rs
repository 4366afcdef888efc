//! Procedures about the jobs of capture and cleanup.

use cdc_core::{Length, SqlType};
use cdc_fake::{JobChange, JobKind, SqlError, SqlResult};

use super::{
    Arguments, ProcedureInfo, ProcedureOutput, Typed,
    capture::{require_capture, require_owner},
    give, may, must, tell,
};
use crate::model::{Names, job_id, shape::row};

const KIND: SqlType = SqlType::NVarChar(Length::Limited(20));

pub(super) const PROCEDURES: &[ProcedureInfo] = &[
    ProcedureInfo { schema: "sys", name: "sp_cdc_help_jobs", parameters: &[], run: help },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_add_job",
        parameters: &[
            must("@job_type", KIND),
            may("@start_job", SqlType::Bit),
            may("@maxtrans", SqlType::Int),
            may("@maxscans", SqlType::Int),
            may("@continuous", SqlType::Bit),
            may("@pollinginterval", SqlType::BigInt),
            may("@retention", SqlType::BigInt),
            may("@threshold", SqlType::BigInt),
            may("@check_for_logreader", SqlType::Bit),
        ],
        run: add,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_change_job",
        parameters: &[
            may("@job_type", KIND),
            may("@maxtrans", SqlType::Int),
            may("@maxscans", SqlType::Int),
            may("@continuous", SqlType::Bit),
            may("@pollinginterval", SqlType::BigInt),
            may("@retention", SqlType::BigInt),
            may("@threshold", SqlType::BigInt),
        ],
        run: change,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_drop_job",
        parameters: &[must("@job_type", KIND)],
        run: drop_job,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_start_job",
        parameters: &[may("@job_type", KIND)],
        run: start,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_stop_job",
        parameters: &[may("@job_type", KIND)],
        run: stop,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_cdc_scan",
        parameters: &[
            may("@maxtrans", SqlType::Int),
            may("@maxscans", SqlType::Int),
            may("@continuous", SqlType::Bit),
            may("@pollinginterval", SqlType::BigInt),
            may("@is_from_job", SqlType::Int),
        ],
        run: scan,
    },
];

fn kind(name: Option<String>) -> SqlResult<JobKind> {
    match name.as_deref().unwrap_or("capture").to_ascii_lowercase().as_str() {
        "capture" => Ok(JobKind::Capture),
        "cleanup" => Ok(JobKind::Cleanup),
        other => Err(SqlError::new(
            22_891,
            format!("The job type '{other}' must be either 'capture' or 'cleanup'."),
        )),
    }
}

fn missing() -> SqlError {
    SqlError::new(
        22_836,
        "Could not update the metadata for the Change Data Capture job: the specified job does \
         not exist in the current database. Use sys.sp_cdc_add_job to create it.",
    )
}

fn name_of(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Capture => "capture",
        JobKind::Cleanup => "cleanup",
    }
}

fn exists(names: &Names<'_>, kind: JobKind) -> bool {
    let jobs = names.database.jobs();
    match kind {
        JobKind::Capture => jobs.capture,
        JobKind::Cleanup => jobs.cleanup,
    }
}

fn help(
    names: &Names<'_>,
    _: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_capture(names)?;
    require_owner(names)?;
    let jobs = names.database.jobs();
    let name = names.database.name();
    let mut rows = Vec::new();
    let zero = 0_i64;
    if jobs.capture {
        rows.push(row![
            job_id(names.database, true),
            "capture",
            format!("cdc.{name}_capture"),
            jobs.max_transactions,
            jobs.max_scans,
            jobs.continuous,
            jobs.polling_interval,
            zero,
            zero
        ]);
    }
    if jobs.cleanup {
        rows.push(row![
            job_id(names.database, false),
            "cleanup",
            format!("cdc.{name}_cleanup"),
            0,
            0,
            false,
            zero,
            jobs.retention,
            jobs.threshold
        ]);
    }
    let columns = "job_id uniqueidentifier; job_type nvarchar(20); job_name sysname; \
        maxtrans int?; maxscans int?; continuous bit?; pollinginterval bigint?; \
        retention bigint?; threshold bigint?";
    give(output, columns, rows)
}

/// The settings of a call whose first is at this place.
fn settings(arguments: &Arguments<'_>, first: usize) -> JobChange {
    let small = |at| arguments.integer(at).map(|number| i32::try_from(number).unwrap_or(i32::MAX));
    JobChange {
        max_transactions: small(first),
        max_scans: small(first + 1),
        continuous: arguments.flag(first + 2),
        polling_interval: arguments.integer(first + 3),
        retention: arguments.integer(first + 4),
        threshold: arguments.integer(first + 5),
    }
}

/// Refuses settings of the other kind of job.
fn check_settings(kind: JobKind, change: &JobChange) -> SqlResult<()> {
    let capture = change.max_transactions.is_some()
        || change.max_scans.is_some()
        || change.continuous.is_some()
        || change.polling_interval.is_some();
    let cleanup = change.retention.is_some() || change.threshold.is_some();
    match kind {
        JobKind::Capture if cleanup => Err(SqlError::new(
            22_861,
            "The parameters @retention and @threshold can only be given for the cleanup job.",
        )),
        JobKind::Cleanup if capture => Err(SqlError::new(
            22_862,
            "The parameters @maxtrans, @maxscans, @continuous and @pollinginterval can only be \
             given for the capture job.",
        )),
        _ => Ok(()),
    }
}

fn add(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    require_owner(names)?;
    require_capture(names)?;
    let kind = kind(arguments.text(0))?;
    if exists(names, kind) {
        return Err(SqlError::new(
            22_835,
            format!("The Change Data Capture {} job already exists.", name_of(kind)),
        ));
    }
    let change = settings(&arguments, 2);
    check_settings(kind, &change)?;
    names.database.change_jobs(change)?;
    let starts = arguments.flag(1).unwrap_or(true);
    names.database.set_job(kind, true);
    if kind == JobKind::Capture && !starts {
        names.database.stop_capture();
    }
    started(names, kind, output);
    Ok(0)
}

fn started(names: &Names<'_>, kind: JobKind, output: &mut dyn ProcedureOutput) {
    let name = names.database.name();
    let text = format!("Job 'cdc.{name}_{}' started successfully.", name_of(kind));
    tell(output, 22_803, "sp_cdc_add_job", text);
}

fn change(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    require_owner(names)?;
    require_capture(names)?;
    let kind = kind(arguments.text(0))?;
    if !exists(names, kind) {
        return Err(missing());
    }
    let change = settings(&arguments, 1);
    check_settings(kind, &change)?;
    names.database.change_jobs(change)?;
    Ok(0)
}

fn drop_job(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_owner(names)?;
    require_capture(names)?;
    let kind = kind(Arguments(arguments).text(0))?;
    if !exists(names, kind) {
        return Err(missing());
    }
    names.database.set_job(kind, false);
    Ok(0)
}

fn start(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_owner(names)?;
    require_capture(names)?;
    let kind = kind(Arguments(arguments).text(0))?;
    if !exists(names, kind) {
        return Err(missing());
    }
    if !names.server.agent_runs() {
        return Err(SqlError::new(
            22_022,
            "SQLServerAgent is not currently running so it cannot be notified of this action.",
        ));
    }
    match kind {
        JobKind::Capture => names.database.start_capture(),
        // The cleanup job runs once and is done.
        JobKind::Cleanup => {
            names.database.cleanup();
        }
    }
    started(names, kind, output);
    Ok(0)
}

fn stop(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_owner(names)?;
    require_capture(names)?;
    let kind = kind(Arguments(arguments).text(0))?;
    if !exists(names, kind) {
        return Err(missing());
    }
    if kind == JobKind::Capture {
        names.database.stop_capture();
    }
    let name = names.database.name();
    let text = format!("Job 'cdc.{name}_{}' stopped successfully.", name_of(kind));
    tell(output, 22_804, "sp_cdc_stop_job", text);
    Ok(0)
}

fn scan(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    require_owner(names)?;
    require_capture(names)?;
    if names.database.capture_runs() && names.database.jobs().capture {
        return Err(SqlError::new(
            22_903,
            "Another connection is already running 'sp_replcmds' for Change Data Capture in the \
             current database.",
        ));
    }
    let transactions = arguments.integer(0).unwrap_or(500).max(1);
    let scans = arguments.integer(1).unwrap_or(10).max(1);
    let records = usize::try_from(transactions.saturating_mul(scans)).unwrap_or(usize::MAX);
    names.database.capture_next(records);
    Ok(0)
}
