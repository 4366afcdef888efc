//! What the server is doing: sessions, requests, transactions, scans of the log.

use cdc_core::Lsn;
use cdc_fake::{Login, ScanError, SessionInfo, SqlResult, Value};

use crate::{
    model::{Names, shape::row, view::View},
    relation::Row,
};

pub(super) const VIEWS: &[View] = &[
    View::public(
        "sys",
        "dm_exec_sessions",
        "session_id smallint; login_time datetime; host_name nvarchar(128)?; \
         program_name nvarchar(128)?; host_process_id int?; client_version int?; \
         client_interface_name nvarchar(32)?; security_id varbinary(85); \
         login_name nvarchar(128); nt_domain nvarchar(128)?; nt_user_name nvarchar(128)?; \
         status nvarchar(30); context_info varbinary(128)?; cpu_time int; memory_usage int; \
         total_scheduled_time int; total_elapsed_time int; endpoint_id int; \
         last_request_start_time datetime; last_request_end_time datetime?; reads bigint; \
         writes bigint; logical_reads bigint; is_user_process bit; text_size int; \
         language nvarchar(128)?; date_format nvarchar(3)?; date_first smallint; \
         quoted_identifier bit; arithabort bit; ansi_null_dflt_on bit; ansi_defaults bit; \
         ansi_warnings bit; ansi_padding bit; ansi_nulls bit; concat_null_yields_null bit; \
         transaction_isolation_level smallint; lock_timeout int; deadlock_priority int; \
         row_count bigint; prev_error int; original_security_id varbinary(85); \
         original_login_name nvarchar(128); last_successful_logon datetime?; \
         last_unsuccessful_logon datetime?; unsuccessful_logons bigint?; group_id int; \
         database_id smallint; authenticating_database_id int?; open_transaction_count int; \
         page_server_reads bigint; contained_availability_group_id uniqueidentifier?",
        sessions,
    ),
    View::public(
        "sys",
        "dm_exec_connections",
        "session_id int?; most_recent_session_id int?; connect_time datetime; \
         net_transport nvarchar(40); protocol_type nvarchar(40)?; protocol_version int?; \
         endpoint_id int?; encrypt_option nvarchar(40); auth_scheme nvarchar(40); \
         node_affinity smallint; num_reads int?; num_writes int?; last_read datetime?; \
         last_write datetime?; net_packet_size int?; client_net_address varchar(48)?; \
         client_tcp_port int?; local_net_address varchar(48)?; local_tcp_port int?; \
         connection_id uniqueidentifier; parent_connection_id uniqueidentifier?; \
         most_recent_sql_handle varbinary(64)?",
        connections,
    ),
    View::public(
        "sys",
        "dm_exec_requests",
        "session_id smallint; request_id int; start_time datetime; status nvarchar(30); \
         command nvarchar(32); sql_handle varbinary(64)?; database_id smallint; user_id int; \
         blocking_session_id smallint?; wait_type nvarchar(60)?; wait_time int; \
         last_wait_type nvarchar(60); wait_resource nvarchar(256); open_transaction_count int; \
         transaction_id bigint; percent_complete float; cpu_time int; total_elapsed_time int; \
         reads bigint; writes bigint; logical_reads bigint; \
         transaction_isolation_level smallint; lock_timeout int; row_count bigint",
        requests,
    ),
    View::public(
        "sys",
        "dm_exec_session_wait_stats",
        "session_id smallint; wait_type nvarchar(60)?; waiting_tasks_count bigint; \
         wait_time_ms bigint; max_wait_time_ms bigint; signal_wait_time_ms bigint",
        waits,
    ),
    View::public(
        "sys",
        "dm_tran_session_transactions",
        "session_id int; transaction_id bigint; transaction_descriptor binary(8); \
         enlist_count int; is_user_transaction bit; is_local bit; is_enlisted bit; is_bound bit; \
         open_transaction_count int",
        session_transactions,
    ),
    View::guarded(
        "sys",
        "dm_tran_active_transactions",
        "transaction_id bigint; name nvarchar(32); transaction_begin_time datetime; \
         transaction_type int; transaction_state int",
        active_transactions,
    ),
    View::public(
        "sys",
        "dm_tran_current_transaction",
        "transaction_id bigint; transaction_sequence_num bigint; transaction_is_snapshot bit; \
         first_snapshot_sequence_num bigint?; last_transaction_sequence_num bigint?; \
         first_useful_sequence_num bigint?",
        current_transaction,
    ),
    View::public(
        "sys",
        "dm_cdc_log_scan_sessions",
        "session_id int; start_time datetime?; end_time datetime?; duration int; \
         scan_phase nvarchar(200); error_count int; start_lsn nvarchar(23); \
         current_lsn nvarchar(23); end_lsn nvarchar(23); tran_count bigint; \
         last_commit_lsn nvarchar(23); last_commit_time datetime?; log_record_count bigint; \
         schema_change_count int; command_count bigint; first_begin_cdc_lsn nvarchar(23); \
         last_commit_cdc_lsn nvarchar(23); last_commit_cdc_time datetime?; latency int; \
         empty_scan_count int; failed_sessions_count int",
        scans,
    ),
    View::public(
        "sys",
        "dm_cdc_errors",
        "session_id int; phase_number int; entry_time datetime; error_number int; \
         error_severity int; error_state int; error_message nvarchar(1024); \
         start_lsn nvarchar(23); begin_lsn nvarchar(23); sequence_value nvarchar(23)",
        errors,
    ),
    View::public(
        "sys",
        "dm_db_log_space_usage",
        "database_id int?; total_log_size_in_bytes bigint?; used_log_space_in_bytes bigint?; \
         used_log_space_in_percent real?; log_space_in_bytes_since_last_backup bigint?",
        log_space,
    ),
    View::public(
        "sys",
        "dm_os_sys_info",
        "cpu_ticks bigint; ms_ticks bigint; cpu_count int; hyperthread_ratio int; \
         sqlserver_start_time datetime",
        system_info,
    ),
    View::public(
        "sys",
        "dm_os_host_info",
        "host_platform nvarchar(256); host_distribution nvarchar(256); \
         host_release nvarchar(256); host_service_pack_level nvarchar(256); host_sku int?; \
         os_language_version int",
        host_info,
    ),
];

/// The sessions that a login may see: its own, and with rights on the server every one.
fn seen(names: &Names<'_>) -> Vec<SessionInfo> {
    let all = names.access.rights == Login::Owner;
    let sessions = names.server.session_list().into_iter();
    sessions.filter(|session| all || session.id == names.access.session).collect()
}

fn database_id(names: &Names<'_>, name: &str) -> i32 {
    names.server.find_database(name).map_or(1, |database| database.id())
}

fn sessions(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |session: &SessionInfo| {
        let (zero, settings) = (0_i64, &names.access.settings);
        row![
            session.id,
            session.logged_in,
            &session.host,
            &session.program,
            i64::from(session.process),
            7,
            "ODBC",
            Value::bytes(&[1]),
            &session.login,
            "",
            "",
            if session.running { "running" } else { "sleeping" },
            Value::bytes(&[]),
            0,
            4,
            0,
            0,
            4,
            session.last_request,
            session.last_request,
            zero,
            zero,
            zero,
            true,
            2_147_483_647,
            "us_english",
            "mdy",
            i32::from(settings.date_first),
            settings.quoted_identifier,
            settings.arithmetic_errors,
            true,
            false,
            true,
            true,
            settings.ansi_nulls,
            settings.concat_null_yields_null,
            i32::from(session.isolation.number()),
            session.lock_timeout,
            0,
            zero,
            0,
            Value::bytes(&[1]),
            &session.login,
            (),
            (),
            (),
            2,
            database_id(names, &session.database),
            1,
            session.open_transactions,
            zero,
            ()
        ]
    };
    Ok(seen(names).iter().map(row).collect())
}

fn connections(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |session: &SessionInfo| {
        let id = crate::model::guid(&[&session.id.to_be_bytes()]);
        row![
            session.id,
            session.id,
            session.logged_in,
            "TCP",
            "TSQL",
            1_946_157_060,
            4,
            "TRUE",
            "SQL",
            0,
            0,
            0,
            session.last_request,
            session.last_request,
            4096,
            "127.0.0.1",
            (),
            "127.0.0.1",
            1433,
            id,
            (),
            ()
        ]
    };
    Ok(seen(names).iter().map(row).collect())
}

fn requests(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |session: &SessionInfo| {
        let zero = 0_i64;
        row![
            session.id,
            0,
            session.last_request,
            "running",
            "SELECT",
            (),
            database_id(names, &session.database),
            1,
            0,
            (),
            0,
            "MISCELLANEOUS",
            "",
            session.open_transactions,
            zero,
            Value::Float(0.0),
            0,
            0,
            zero,
            zero,
            zero,
            i32::from(session.isolation.number()),
            session.lock_timeout,
            zero
        ]
    };
    Ok(seen(names).iter().filter(|session| session.running).map(row).collect())
}

fn waits(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let zero = 0_i64;
    let row = |session: &SessionInfo| row![session.id, "ASYNC_NETWORK_IO", zero, zero, zero, zero];
    Ok(seen(names).iter().map(row).collect())
}

fn session_transactions(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |handle: &cdc_fake::TransactionHandle| {
        let number = handle.number();
        row![
            names.access.session,
            number,
            Value::bytes(&number.to_be_bytes()),
            0,
            true,
            true,
            false,
            false,
            1
        ]
    };
    Ok(names.access.transactions.iter().map(row).collect())
}

fn active_transactions(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    names.require_database_state()?;
    let open = names.database.open_transactions();
    Ok(open
        .into_iter()
        .map(|(number, began, wrote)| {
            row![number, "user_transaction", began, if wrote { 1 } else { 2 }, 2]
        })
        .collect())
}

fn current_transaction(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let number = names.access.transactions.first().map_or(0, cdc_fake::TransactionHandle::number);
    let snapshot = names.access.isolation == cdc_fake::Isolation::Snapshot;
    Ok(vec![row![number, number, snapshot, (), (), ()]])
}

/// An LSN as the scans' view shows it.
fn lsn_text(lsn: Lsn) -> String {
    let number = lsn.to_u128();
    let (file, block, slot) = (number >> 48, (number >> 16) & 0xffff_ffff, number & 0xffff);
    format!("{file:08X}:{block:08X}:{slot:04X}")
}

fn scans(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    names.require_database_state()?;
    if !names.database.has_cdc() {
        return Ok(Vec::new());
    }
    let mapped = names.database.mapping();
    let last = mapped.last();
    let commits = mapped.iter().filter(|entry| !entry.idle).count();
    let commits = i64::try_from(commits).unwrap_or(i64::MAX);
    let at = lsn_text(last.map_or(Lsn::ZERO, |entry| entry.lsn));
    let (none, zero) = (lsn_text(Lsn::ZERO), 0_i64);
    let started = names.database.created();
    // From the last captured commit to the scan that captured it.
    let captured = mapped.iter().rev().find(|entry| !entry.idle);
    let latency = i32::try_from(names.database.scan_latency_seconds()).unwrap_or(i32::MAX);
    let failed = i32::try_from(names.database.jobs().scan_errors.len()).unwrap_or(i32::MAX);
    // Session 0 sums up all scans since the server started.
    let row = |session: i32| {
        row![
            session,
            started,
            last.map(|entry| entry.time),
            0,
            if session == 0 { "Aggregate" } else { "Done" },
            failed,
            if session == 0 { &none } else { &at },
            &at,
            &at,
            commits,
            &at,
            last.map(|entry| entry.time),
            commits,
            0,
            zero,
            &at,
            &at,
            captured.map(|entry| entry.time),
            latency,
            0,
            failed
        ]
    };
    Ok(if last.is_some() { vec![row(0), row(1)] } else { vec![row(0)] })
}

fn errors(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    names.require_database_state()?;
    let none = lsn_text(Lsn::ZERO);
    let jobs = names.database.jobs();
    let row = |error: &ScanError| {
        row![1, 7, error.at, error.number, 16, 1, &error.message, &none, &none, &none]
    };
    Ok(jobs.scan_errors.iter().map(row).collect())
}

/// Bytes of the log, and how many of them each record takes that capture has not read.
const LOG_BYTES: i64 = 8 << 20;
const RECORD_BYTES: i64 = 256;

fn log_space(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    names.require_server_state()?;
    let pending = i64::try_from(names.database.pending_records()).unwrap_or(i64::MAX);
    let used = pending.saturating_mul(RECORD_BYTES).min(LOG_BYTES);
    #[allow(clippy::cast_precision_loss, reason = "a share to look at")]
    let percent = used as f32 * 100.0 / LOG_BYTES as f32;
    Ok(vec![row![names.database.id(), LOG_BYTES, used, Value::Real(percent), used]])
}

fn system_info(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let ticks = names.access.now.utc_ticks;
    Ok(vec![row![ticks, ticks / 10_000, 4, 1, names.server.started()]])
}

fn host_info(_: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(vec![row!["Linux", "Debian", "12", "", (), 0]])
}
