//! SQL Server Agent: the jobs of capture and cleanup, as `msdb` keeps them, and the services.

use cdc_fake::{FakeDatabase, SqlResult, Value};

use crate::{
    model::{Names, job_id, shape::row, view::View},
    relation::Row,
};

pub(super) const VIEWS: &[View] = &[
    View::guarded(
        "dbo",
        "sysjobs",
        "job_id uniqueidentifier; originating_server_id int; name sysname; enabled tinyint; \
         description nvarchar(512)?; start_step_id int; category_id int; \
         owner_sid varbinary(85); notify_level_eventlog int; notify_level_email int; \
         notify_level_netsend int; notify_level_page int; notify_email_operator_id int; \
         notify_netsend_operator_id int; notify_page_operator_id int; delete_level int; \
         date_created datetime; date_modified datetime; version_number int",
        jobs,
    ),
    View::guarded(
        "dbo",
        "sysjobactivity",
        "session_id int; job_id uniqueidentifier; run_requested_date datetime?; \
         run_requested_source sysname?; queued_date datetime?; start_execution_date datetime?; \
         last_executed_step_id int?; last_executed_step_date datetime?; \
         stop_execution_date datetime?; job_history_id int?; next_scheduled_run_date datetime?",
        activity,
    ),
    View::guarded(
        "dbo",
        "sysjobservers",
        "job_id uniqueidentifier; server_id int; last_run_outcome tinyint; \
         last_outcome_message nvarchar(4000)?; last_run_date int; last_run_time int; \
         last_run_duration int",
        servers,
    ),
    View::public(
        "sys",
        "dm_server_services",
        "servicename nvarchar(256); startup_type int?; startup_type_desc nvarchar(256); \
         status int?; status_desc nvarchar(256); process_id int?; \
         last_startup_time datetimeoffset?; service_account nvarchar(256); \
         filename nvarchar(256); is_clustered nvarchar(1); cluster_nodename nvarchar(256)?; \
         instant_file_initialization_enabled nvarchar(1)",
        services,
    ),
];

/// The number of Agent's session since the server started.
const SESSION: i32 = 1;
/// `last_run_outcome` of a job that runs for the first time.
const UNKNOWN: u8 = 5;

/// The jobs of every database, each with whether it is the capture job.
fn all_jobs(names: &Names<'_>) -> Vec<(FakeDatabase, bool)> {
    let databases = names.server.databases().into_iter().filter(FakeDatabase::has_cdc);
    databases
        .flat_map(|database| {
            let jobs = database.jobs();
            let kinds = [(true, jobs.capture), (false, jobs.cleanup)];
            let there = kinds.into_iter().filter(|(_, exists)| *exists);
            there.map(|(capture, _)| (database.clone(), capture)).collect::<Vec<_>>()
        })
        .collect()
}

fn jobs(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |(database, capture): &(FakeDatabase, bool)| {
        let kind = if *capture { "capture" } else { "cleanup" };
        row![
            job_id(database, *capture),
            0,
            format!("cdc.{}_{kind}", database.name()),
            i32::from(!capture || database.jobs().capture_enabled),
            format!("CDC Log Scan Job ({kind})"),
            1,
            if *capture { 13 } else { 16 },
            Value::bytes(&[1]),
            2,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            database.created(),
            database.created(),
            1
        ]
    };
    Ok(all_jobs(names).iter().map(row).collect())
}

fn activity(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |(database, capture): &(FakeDatabase, bool)| {
        let started = database.created();
        let runs = *capture && names.server.agent_runs() && database.capture_runs();
        let ran = *capture || database.jobs().cleanup_outcome != UNKNOWN;
        let start = ran.then_some(started);
        let stop = (ran && !runs).then_some(started);
        row![SESSION, job_id(database, *capture), (), (), (), start, (), (), stop, (), ()]
    };
    Ok(all_jobs(names).iter().map(row).collect())
}

fn servers(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |(database, capture): &(FakeDatabase, bool)| {
        let outcome = if *capture { UNKNOWN } else { database.jobs().cleanup_outcome };
        row![job_id(database, *capture), 0, i32::from(outcome), (), 0, 0, 0]
    };
    Ok(all_jobs(names).iter().map(row).collect())
}

fn services(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    names.require_server_state()?;
    let now = names.access.now;
    let started = Value::DateTimeOffset { utc: now.utc_ticks, offset_minutes: now.offset_minutes };
    let service = |name: &str, runs: bool| {
        row![
            name,
            2,
            "Automatic",
            if runs { 4 } else { 1 },
            if runs { "Running" } else { "Stopped" },
            (),
            started.clone(),
            "mssql",
            "/opt/mssql/bin/sqlservr",
            "N",
            (),
            "N"
        ]
    };
    Ok(vec![
        service("SQL Server (MSSQLSERVER)", true),
        service("SQL Server Agent (MSSQLSERVER)", names.server.agent_runs()),
    ])
}
