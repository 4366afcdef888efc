//! What the server tells of its own health: jobs, scans, log, replicas, settings. Each question
//! stands alone, since a login may be allowed one and not the next.

use super::{
    Parameters, bit_column, lsn_column, number_column, question, reading_column, text_column,
};
use crate::{
    driver::{Form, Matching, ResultColumn, Statement},
    name::ObjectName,
};
use cdc_core::SqlType;

/// Neighbours of the mapping that are looked at for the longest pause between two.
const ENTRIES: usize = 100;

fn asked(text: impl Into<String>, columns: Vec<ResultColumn>) -> Statement {
    question(text.into(), Parameters::default(), columns, Matching::Place)
}

/// The server's version and kind, its clock in UTC and as it shows it, and who asks. Everybody may.
pub(crate) fn server() -> Statement {
    asked(
        "SELECT CAST(SERVERPROPERTY('ProductMajorVersion') AS int) AS version, \
         CAST(SERVERPROPERTY('EngineEdition') AS int) AS edition, SYSUTCDATETIME() AS utc, \
         GETDATE() AS shown, USER_NAME() AS user_name, SUSER_SNAME() AS login_name",
        vec![
            number_column("version"),
            number_column("edition"),
            ResultColumn::new("utc", Form::Sql(SqlType::DateTime2 { scale: 7 })),
            reading_column("shown"),
            text_column("user_name"),
            text_column("login_name"),
        ],
    )
}

/// The settings of the database that the connection is in: `sys.databases` shows it to whoever may
/// connect to it. A readable secondary takes no writes, though it is not `is_read_only`.
pub(crate) fn database() -> Statement {
    asked(
        "SELECT d.name, d.is_cdc_enabled, d.snapshot_isolation_state, \
         d.is_read_committed_snapshot_on, d.log_reuse_wait_desc, d.is_published, \
         CASE WHEN d.replica_id IS NULL THEN 0 ELSE 1 END AS in_group, \
         CASE WHEN CAST(DATABASEPROPERTYEX(d.name, 'Updateability') AS nvarchar(128)) \
         = N'READ_WRITE' THEN 1 ELSE 0 END AS writable \
         FROM sys.databases AS d WHERE d.database_id = DB_ID()",
        vec![
            text_column("name"),
            bit_column("is_cdc_enabled"),
            number_column("snapshot_isolation_state"),
            bit_column("is_read_committed_snapshot_on"),
            text_column("log_reuse_wait_desc"),
            bit_column("is_published"),
            number_column("in_group"),
            number_column("writable"),
        ],
    )
}

/// Whether this replica of the database is the primary; needs VIEW SERVER STATE.
pub(crate) fn is_primary() -> Statement {
    asked(
        "SELECT sys.fn_hadr_is_primary_replica(DB_NAME()) AS is_primary",
        vec![bit_column("is_primary")],
    )
}

/// The state of SQL Server Agent (4 runs); no row where none is listed. Needs VIEW SERVER STATE.
pub(crate) fn agent() -> Statement {
    asked(
        "SELECT s.status FROM sys.dm_server_services AS s \
         WHERE s.servicename LIKE N'SQL Server Agent%'",
        vec![number_column("status")],
    )
}

/// The settings of the jobs of capture; needs `db_owner`, error 22904 otherwise.
pub(crate) fn jobs() -> Statement {
    question(
        "EXEC sys.sp_cdc_help_jobs".into(),
        Parameters::default(),
        vec![
            text_column("job_type"),
            number_column("maxtrans"),
            number_column("maxscans"),
            bit_column("continuous"),
            number_column("pollinginterval"),
            number_column("retention"),
            number_column("threshold"),
        ],
        Matching::Name,
    )
}

/// What Agent says of the jobs of this database's capture: the activity of its latest session, and
/// how the last run ended. Needs SELECT on the four tables in `msdb`.
pub(crate) fn activity() -> Statement {
    asked(
        "SELECT c.job_type, j.name, j.enabled, \
         CASE WHEN a.start_execution_date IS NOT NULL AND a.stop_execution_date IS NULL \
         THEN 1 ELSE 0 END AS running, s.last_run_outcome \
         FROM msdb.dbo.cdc_jobs AS c INNER JOIN msdb.dbo.sysjobs AS j ON j.job_id = c.job_id \
         LEFT JOIN msdb.dbo.sysjobactivity AS a ON a.job_id = j.job_id AND a.session_id = \
         (SELECT MAX(l.session_id) FROM msdb.dbo.sysjobactivity AS l) \
         LEFT JOIN msdb.dbo.sysjobservers AS s ON s.job_id = j.job_id \
         WHERE c.database_id = DB_ID()",
        vec![
            text_column("job_type"),
            text_column("name"),
            number_column("enabled"),
            number_column("running"),
            number_column("last_run_outcome"),
        ],
    )
}

/// The scans of the log since the server started, summed up in session 0. Needs VIEW DATABASE
/// STATE.
pub(crate) fn scans() -> Statement {
    asked(
        "SELECT s.latency, s.failed_sessions_count, s.empty_scan_count \
         FROM sys.dm_cdc_log_scan_sessions AS s WHERE s.session_id = 0",
        vec![
            number_column("latency"),
            number_column("failed_sessions_count"),
            number_column("empty_scan_count"),
        ],
    )
}

/// How many errors the latest scans met, and the number and the time of the newest. Their texts are
/// not asked for: they quote values. Needs VIEW DATABASE STATE.
pub(crate) fn errors() -> Statement {
    asked(
        "SELECT COUNT_BIG(*) AS errors, \
         (SELECT TOP (1) n.error_number FROM sys.dm_cdc_errors AS n \
         ORDER BY n.entry_time DESC) AS error_number, MAX(e.entry_time) AS entry_time \
         FROM sys.dm_cdc_errors AS e",
        vec![number_column("errors"), number_column("error_number"), reading_column("entry_time")],
    )
}

/// How much of the log is in use; needs VIEW SERVER STATE.
pub(crate) fn log_used() -> Statement {
    asked(
        "SELECT CAST(u.used_log_space_in_percent AS int) AS used \
         FROM sys.dm_db_log_space_usage AS u",
        vec![number_column("used")],
    )
}

/// `max text repl size` as it is in use. Everybody may.
pub(crate) fn text_limit() -> Statement {
    asked(
        "SELECT CAST(c.value_in_use AS bigint) AS bytes FROM sys.configurations AS c \
         WHERE c.configuration_id = 1536",
        vec![number_column("bytes")],
    )
}

/// The newest reading of the mapping and the longest pause between two neighbours among the newest
/// entries; NULL twice before capture wrote one. Everybody with a user in the database may.
pub(crate) fn commits() -> Statement {
    asked(
        format!(
            "SELECT (SELECT TOP (1) n.tran_end_time FROM cdc.lsn_time_mapping AS n \
             ORDER BY n.start_lsn DESC) AS newest, MAX(p.pause) AS pause FROM \
             (SELECT DATEDIFF(second, LAG(m.tran_end_time) OVER (ORDER BY m.start_lsn), \
             m.tran_end_time) AS pause FROM (SELECT TOP ({ENTRIES}) e.start_lsn, \
             e.tran_end_time FROM cdc.lsn_time_mapping AS e ORDER BY e.start_lsn DESC) AS m) AS p"
        ),
        vec![reading_column("newest"), number_column("pause")],
    )
}

/// The gating role of each instance that the login is shown.
pub(crate) fn roles() -> Statement {
    question(
        "EXEC sys.sp_cdc_help_change_data_capture".into(),
        Parameters::default(),
        vec![text_column("capture_instance"), text_column("role_name")],
        Matching::Name,
    )
}

/// The gating roles of a table's instances, from the table that lists them; needs SELECT on it.
pub(crate) fn role_of(table: &ObjectName) -> Statement {
    let mut parameters = Parameters::default();
    let table = parameters.text(&table.to_string());
    question(
        format!(
            "SELECT TOP (1) t.role_name, t.start_lsn FROM cdc.change_tables AS t \
             WHERE t.source_object_id = OBJECT_ID({table}) AND t.role_name IS NOT NULL \
             ORDER BY t.start_lsn DESC"
        ),
        parameters,
        vec![text_column("role_name"), lsn_column("start_lsn")],
        Matching::Place,
    )
}
