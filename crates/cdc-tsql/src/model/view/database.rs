//! Databases and what the server says of itself.

use cdc_fake::{FakeDatabase, SqlResult, Value};

use crate::{
    model::{Names, guid, shape::row, view::View},
    relation::Row,
};

pub(super) const VIEWS: &[View] = &[
    View::public(
        "sys",
        "databases",
        "name sysname; database_id int; source_database_id int?; owner_sid varbinary(85)?; \
         create_date datetime; compatibility_level tinyint; collation_name sysname?; \
         user_access tinyint?; user_access_desc nvarchar(60)?; is_read_only bit?; \
         is_auto_close_on bit; is_auto_shrink_on bit?; state tinyint?; state_desc nvarchar(60)?; \
         is_in_standby bit?; is_cleanly_shutdown bit?; is_supplemental_logging_enabled bit?; \
         snapshot_isolation_state tinyint?; snapshot_isolation_state_desc nvarchar(60)?; \
         is_read_committed_snapshot_on bit?; recovery_model tinyint?; \
         recovery_model_desc nvarchar(60)?; page_verify_option tinyint?; \
         page_verify_option_desc nvarchar(60)?; is_auto_create_stats_on bit?; \
         is_auto_create_stats_incremental_on bit?; is_auto_update_stats_on bit?; \
         is_auto_update_stats_async_on bit?; is_ansi_null_default_on bit?; is_ansi_nulls_on bit?; \
         is_ansi_padding_on bit?; is_ansi_warnings_on bit?; is_arithabort_on bit?; \
         is_concat_null_yields_null_on bit?; is_numeric_roundabort_on bit?; \
         is_quoted_identifier_on bit?; is_recursive_triggers_on bit?; \
         is_cursor_close_on_commit_on bit?; is_local_cursor_default bit?; \
         is_fulltext_enabled bit?; is_trustworthy_on bit?; is_db_chaining_on bit?; \
         is_parameterization_forced bit?; is_master_key_encrypted_by_server bit; \
         is_query_store_on bit?; is_published bit; is_subscribed bit; is_merge_published bit; \
         is_distributor bit; is_sync_with_backup bit; service_broker_guid uniqueidentifier; \
         is_broker_enabled bit; log_reuse_wait tinyint?; log_reuse_wait_desc nvarchar(60)?; \
         is_date_correlation_on bit; is_cdc_enabled bit; is_encrypted bit?; \
         is_honor_broker_priority_on bit?; replica_id uniqueidentifier?; \
         group_database_id uniqueidentifier?; resource_pool_id int?; \
         default_language_lcid smallint?; default_language_name nvarchar(128)?; \
         default_fulltext_language_lcid int?; default_fulltext_language_name nvarchar(128)?; \
         is_nested_triggers_on bit?; is_transform_noise_words_on bit?; \
         two_digit_year_cutoff smallint?; containment tinyint?; containment_desc nvarchar(60)?; \
         target_recovery_time_in_seconds int?; delayed_durability int?; \
         delayed_durability_desc nvarchar(60)?; is_memory_optimized_elevate_to_snapshot_on bit?; \
         is_federation_member bit?; is_remote_data_archive_enabled bit?; \
         is_mixed_page_allocation_on bit?; is_temporal_history_retention_enabled bit?; \
         catalog_collation_type int?; catalog_collation_type_desc nvarchar(60)?; \
         physical_database_name nvarchar(128)?; is_result_set_caching_on bit?; \
         is_accelerated_database_recovery_on bit?; is_tempdb_spill_to_remote_store bit?; \
         is_stale_page_detection_on bit?; is_memory_optimized_enabled bit?; \
         is_data_retention_enabled bit?; is_ledger_on bit?; is_change_feed_enabled bit?",
        databases,
    ),
    View::public(
        "sys",
        "sysdatabases",
        "name sysname?; dbid smallint; sid varbinary(85)?; mode smallint; status int?; \
         status2 int?; crdate datetime; reserved datetime?; category int?; cmptlevel tinyint; \
         filename nvarchar(260)?; version smallint?",
        sysdatabases,
    ),
    View::public(
        "sys",
        "database_recovery_status",
        "database_id int; database_guid uniqueidentifier?; family_guid uniqueidentifier?; \
         last_log_backup_lsn decimal(25,0)?; recovery_fork_guid uniqueidentifier?; \
         first_recovery_fork_guid uniqueidentifier?; fork_point_lsn decimal(25,0)?",
        recovery,
    ),
    View::public(
        "sys",
        "database_files",
        "file_id int; file_guid uniqueidentifier?; type tinyint; type_desc nvarchar(60)?; \
         data_space_id int; name sysname; physical_name nvarchar(260)?; state tinyint?; \
         state_desc nvarchar(60)?; size int; max_size int; growth int; is_media_read_only bit; \
         is_read_only bit; is_sparse bit; is_percent_growth bit; is_name_reserved bit",
        files,
    ),
    View::public(
        "sys",
        "configurations",
        "configuration_id int; name nvarchar(35); value int?; minimum int?; maximum int?; \
         value_in_use int?; description nvarchar(255); is_dynamic bit; is_advanced bit",
        configurations,
    ),
    View::public(
        "sys",
        "servers",
        "server_id int; name sysname; product sysname; provider sysname; \
         data_source nvarchar(4000)?; is_linked bit",
        servers,
    ),
];

/// A GUID of a database that stays with it: from its name, its number and what it is for.
pub(in crate::model) fn database_guid(database: &FakeDatabase, purpose: u64) -> Value {
    guid(&[database.name().as_bytes(), &database.id().to_be_bytes(), &purpose.to_be_bytes()])
}

/// The databases that a login may see: those it may open, and the server's own.
pub(in crate::model) fn seen(names: &Names<'_>) -> Vec<FakeDatabase> {
    let all = names.server.databases();
    all.into_iter().filter(|database| database.id() < 5 || names.opens(database)).collect()
}

fn databases(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(seen(names).iter().map(database_row).collect())
}

fn database_row(database: &FakeDatabase) -> Row {
    let options = database.options();
    let recovery = match options.recovery {
        1 => "FULL",
        2 => "BULK_LOGGED",
        _ => "SIMPLE",
    };
    let snapshot = options.allow_snapshot_isolation;
    let mut cells = row![
        database.name(),
        database.id(),
        (),
        Value::bytes(&[1]),
        database.created(),
        i32::from(options.compatibility_level),
        &options.collation,
        0,
        "MULTI_USER",
        options.read_only,
        false,
        false,
        0,
        "ONLINE",
        false,
        false,
        false,
        i32::from(snapshot),
        if snapshot { "ON" } else { "OFF" },
        options.read_committed_snapshot,
        i32::from(options.recovery),
        recovery,
        2,
        "CHECKSUM",
        true,
        false,
        true,
        false
    ]
    .to_vec();
    // ANSI defaults to replication: all off.
    cells.extend(std::iter::repeat_n(Value::Bit(false), 22));
    cells.extend(service_cells(database));
    cells.into()
}

/// The cells from the service broker on.
fn service_cells(database: &FakeDatabase) -> Vec<Value> {
    // What capture has not read keeps the log, in every recovery model.
    let waits = database.has_cdc() && database.pending_records() > 0;
    let in_group = database.options().replica.is_some();
    let replica = |purpose| {
        if in_group { database_guid(database, purpose) } else { Value::Null }
    };
    row![
        database_guid(database, 3),
        false,
        if waits { 6 } else { 0 },
        if waits { "REPLICATION" } else { "NOTHING" },
        false,
        database.has_cdc(),
        false,
        false,
        replica(17),
        replica(18),
        (),
        (),
        (),
        (),
        (),
        (),
        (),
        (),
        0,
        "NONE",
        60,
        0,
        "DISABLED",
        false,
        false,
        false,
        false,
        true,
        0,
        "DATABASE_DEFAULT",
        database.name(),
        false,
        false,
        false,
        false,
        true,
        false,
        false,
        false
    ]
    .to_vec()
}

fn sysdatabases(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |database: &FakeDatabase| {
        let level = i32::from(database.options().compatibility_level);
        row![
            database.name(),
            database.id(),
            Value::bytes(&[1]),
            0,
            65_536,
            1_627_389_952,
            database.created(),
            (),
            0,
            level,
            (),
            957
        ]
    };
    Ok(seen(names).iter().map(row).collect())
}

fn recovery(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |database: &FakeDatabase| {
        // A restore begins another branch of the log.
        let fork = u64::from(database.lineage()) << 8;
        row![
            database.id(),
            database_guid(database, 0),
            database_guid(database, 1),
            (),
            database_guid(database, fork | 2),
            (fork > 256).then(|| database_guid(database, 256 | 2)),
            ()
        ]
    };
    Ok(seen(names).iter().map(row).collect())
}

fn files(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let name = names.database.name();
    let (data, log) = (format!("/var/opt/mssql/data/{name}.mdf"), format!("{name}_log"));
    let log_path = format!("/var/opt/mssql/data/{log}.ldf");
    let data_guid = database_guid(names.database, 4);
    let log_guid = database_guid(names.database, 5);
    Ok(vec![
        row![
            1, data_guid, 0, "ROWS", 1, name, data, 0, "ONLINE", 1024, -1, 8192, false, false,
            false, false, false
        ],
        row![
            2,
            log_guid,
            1,
            "LOG",
            0,
            log,
            log_path,
            0,
            "ONLINE",
            1024,
            268_435_456,
            8192,
            false,
            false,
            false,
            false,
            false
        ],
    ])
}

fn configurations(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |id: i32, name: &str, value: i32, maximum: i32, advanced: bool| {
        row![id, name, value, 0, maximum, value, name, true, advanced]
    };
    let (configured, used) = names.server.text_limit();
    let text_limit = "max text repl size (B)";
    Ok(vec![
        row![
            1536,
            text_limit,
            configured,
            -1,
            i32::MAX,
            used,
            "Maximum size of a text field in replication.",
            true,
            false
        ],
        row(103, "user connections", 0, 32_767, true),
        row(518, "show advanced options", 0, 1, false),
        row(1534, "user options", 0, 32_767, false),
        row(1539, "max degree of parallelism", 0, 32_767, true),
        row(1544, "max server memory (MB)", 2_147_483_647, 2_147_483_647, true),
        row(1568, "default trace enabled", 1, 1, true),
        row(16_384, "Agent XPs", 1, 1, true),
    ])
}

fn servers(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let name = names.server.name();
    Ok(vec![row![0, name, "SQL Server", "MSOLEDBSQL", name, false]])
}
