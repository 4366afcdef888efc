//! What schema `cdc` lists.

use cdc_fake::{InstanceInfo, SqlResult};

use crate::{
    model::{
        Names,
        change_table::lsn_value,
        shape::row,
        view::{View, column},
    },
    relation::Row,
};

pub(super) const VIEWS: &[View] = &[
    View::guarded(
        "cdc",
        "change_tables",
        "object_id int; version int?; source_object_id int?; capture_instance sysname; \
         start_lsn binary(10)?; end_lsn binary(10)?; supports_net_changes bit?; \
         has_drop_pending bit?; role_name sysname?; index_name sysname?; \
         filegroup_name sysname?; create_date datetime?; partition_switch bit",
        change_tables,
    ),
    View::guarded(
        "cdc",
        "captured_columns",
        "object_id int; column_name sysname; column_id int?; column_type sysname; \
         column_ordinal int; is_computed bit?; masking_function nvarchar(4000)?",
        captured_columns,
    ),
    View::guarded(
        "cdc",
        "index_columns",
        "object_id int; column_name sysname; index_ordinal tinyint; column_id int",
        index_columns,
    ),
    View::guarded(
        "cdc",
        "ddl_history",
        "source_object_id int?; object_id int; required_column_update bit?; \
         ddl_command nvarchar(max)?; ddl_lsn binary(10); ddl_time datetime?",
        ddl_history,
    ),
    View::public("cdc", "lsn_time_mapping", super::super::change_table::MAPPING, mapping),
    View::guarded(
        "dbo",
        "cdc_jobs",
        "database_id int; job_type nvarchar(20); job_id uniqueidentifier?; maxtrans int?; \
         maxscans int?; continuous bit?; pollinginterval bigint?; retention bigint?; \
         threshold bigint?",
        jobs,
    ),
];

fn instances(names: &Names<'_>) -> Vec<InstanceInfo> {
    names.database.instances()
}

fn change_tables(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(instances(names)
        .iter()
        .map(|info| {
            row![
                info.object_id,
                0,
                info.source_object_id,
                info.name.as_str(),
                lsn_value(info.start),
                (),
                info.net_changes,
                false,
                info.role.as_ref(),
                info.index_name.as_ref(),
                (),
                info.created,
                false
            ]
        })
        .collect())
}

fn captured_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for info in instances(names) {
        for (at, captured) in info.columns.iter().enumerate() {
            rows.push(row![
                info.object_id,
                &captured.name,
                captured.id,
                column::type_name(&captured.sql_type),
                i32::try_from(at + 1).unwrap_or(i32::MAX),
                captured.computed,
                ()
            ]);
        }
    }
    Ok(rows)
}

fn index_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for info in instances(names) {
        for (at, name) in info.key.iter().enumerate() {
            let id = info.columns.iter().find(|column| column.name == *name);
            rows.push(row![
                info.object_id,
                name,
                i32::try_from(at + 1).unwrap_or(i32::MAX),
                id.map_or(0, |column| column.id)
            ]);
        }
    }
    Ok(rows)
}

fn ddl_history(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for info in instances(names) {
        for entry in &info.ddl {
            rows.push(row![
                info.source_object_id,
                info.object_id,
                entry.captured_column_changed,
                &entry.statement,
                lsn_value(entry.lsn),
                entry.time
            ]);
        }
    }
    Ok(rows)
}

/// The mapping has a relation of its own, which seeks; this lists it whole.
fn mapping(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    use crate::relation::{Relation, Scan};
    super::super::change_table::Mapping::new(names.database, None).scan(&Scan::default())?.collect()
}

fn jobs(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows = Vec::new();
    for database in names.server.databases().iter().filter(|database| database.has_cdc()) {
        let jobs = database.jobs();
        let id = database.id();
        if jobs.capture {
            rows.push(row![
                id,
                "capture",
                super::super::job_id(database, true),
                jobs.max_transactions,
                jobs.max_scans,
                jobs.continuous,
                jobs.polling_interval,
                0_i64,
                0_i64
            ]);
        }
        if jobs.cleanup {
            let job = super::super::job_id(database, false);
            rows.push(row![id, "cleanup", job, 0, 0, false, 0_i64, jobs.retention, jobs.threshold]);
        }
    }
    Ok(rows)
}
