//! Availability groups: the replicas of a database.

use cdc_fake::{FakeDatabase, ReplicaRole, SqlResult};

use super::database::database_guid;
use crate::{
    model::{Names, shape::row, view::View},
    relation::Row,
};

pub(super) const VIEWS: &[View] = &[View::public(
    "sys",
    "dm_hadr_database_replica_states",
    "database_id int; group_id uniqueidentifier; replica_id uniqueidentifier; \
     group_database_id uniqueidentifier; is_local bit?; is_primary_replica bit?; \
     synchronization_state tinyint?; synchronization_state_desc nvarchar(60)?; \
     is_commit_participant bit?; synchronization_health tinyint?; \
     synchronization_health_desc nvarchar(60)?; database_state tinyint?; \
     database_state_desc nvarchar(60)?; is_suspended bit?; suspend_reason tinyint?; \
     suspend_reason_desc nvarchar(60)?; recovery_lsn decimal(25,0)?; \
     truncation_lsn decimal(25,0)?; last_sent_lsn decimal(25,0)?; last_sent_time datetime?; \
     last_received_lsn decimal(25,0)?; last_received_time datetime?; \
     last_hardened_lsn decimal(25,0)?; last_hardened_time datetime?; \
     last_redone_lsn decimal(25,0)?; last_redone_time datetime?; log_send_queue_size bigint?; \
     log_send_rate bigint?; redo_queue_size bigint?; redo_rate bigint?; \
     filestream_send_rate bigint?; end_of_log_lsn decimal(25,0)?; \
     last_commit_lsn decimal(25,0)?; last_commit_time datetime?; \
     low_water_mark_for_ghosts bigint?; secondary_lag_seconds bigint?",
    replicas,
)];

fn replicas(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    names.require_server_state()?;
    let zero = 0_i64;
    let row = |database: &FakeDatabase| {
        let role = database.options().replica?;
        let primary = role == ReplicaRole::Primary;
        let cells = row![
            database.id(),
            database_guid(database, 16),
            database_guid(database, 17),
            database_guid(database, 18),
            true,
            primary,
            2,
            "SYNCHRONIZED",
            true,
            2,
            "HEALTHY",
            0,
            "ONLINE",
            false,
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            (),
            zero,
            zero,
            zero,
            zero,
            zero,
            (),
            (),
            (),
            zero,
            zero
        ];
        Some(cells)
    };
    Ok(super::database::seen(names).iter().filter_map(row).collect())
}
