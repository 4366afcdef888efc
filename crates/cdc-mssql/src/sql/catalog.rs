//! What is captured and what tables look like: the documented procedures and `sys.columns`, which
//! show a login what it may read.

use cdc_core::InstanceName;

use super::{Parameters, bit_column, lsn_column, number_column, question, text_column};
use crate::{
    driver::{Matching, Statement},
    name::ObjectName,
};

/// Every capture instance that the login may read.
pub(crate) fn instances() -> Statement {
    question(
        "EXEC sys.sp_cdc_help_change_data_capture".into(),
        Parameters::default(),
        vec![
            text_column("source_schema"),
            text_column("source_table"),
            text_column("capture_instance"),
            lsn_column("start_lsn"),
            text_column("index_column_list"),
        ],
        Matching::Name,
    )
}

/// The captured columns of an instance; error 22981 when the login may not read it.
pub(crate) fn captured_columns(instance: &InstanceName) -> Statement {
    let mut parameters = Parameters::default();
    let instance = parameters.text(instance.as_str());
    question(
        format!("EXEC sys.sp_cdc_get_captured_columns @capture_instance = {instance}"),
        parameters,
        vec![
            text_column("column_name"),
            number_column("column_id"),
            number_column("column_ordinal"),
            text_column("data_type"),
            number_column("character_maximum_length"),
            number_column("numeric_precision"),
            number_column("numeric_scale"),
            number_column("datetime_precision"),
        ],
        Matching::Name,
    )
}

/// The changes of an instance's columns; error 22981 when the login may not read it.
pub(crate) fn ddl_history(instance: &InstanceName) -> Statement {
    let mut parameters = Parameters::default();
    let instance = parameters.text(instance.as_str());
    question(
        format!("EXEC sys.sp_cdc_get_ddl_history @capture_instance = {instance}"),
        parameters,
        vec![
            bit_column("required_column_update"),
            text_column("ddl_command"),
            lsn_column("ddl_lsn"),
        ],
        Matching::Name,
    )
}

/// The columns of a table as they are now; no row when it does not exist or the login may not know
/// of it. Alias types are told by the type they stand for, CLR types by their own name.
pub(crate) fn table_columns(table: &ObjectName) -> Statement {
    let mut parameters = Parameters::default();
    let table = parameters.text(&table.to_string());
    question(
        format!(
            "SELECT c.column_id, c.name, COALESCE(t.name, TYPE_NAME(c.user_type_id)) AS type_name, \
             c.max_length, c.precision, c.scale, c.is_nullable, c.is_computed, c.collation_name \
             FROM sys.columns AS c \
             LEFT JOIN sys.types AS t ON t.user_type_id = c.system_type_id \
             WHERE c.object_id = OBJECT_ID({table}) ORDER BY c.column_id"
        ),
        parameters,
        vec![
            number_column("column_id"),
            text_column("name"),
            text_column("type_name"),
            number_column("max_length"),
            number_column("precision"),
            number_column("scale"),
            bit_column("is_nullable"),
            bit_column("is_computed"),
            text_column("collation_name"),
        ],
        Matching::Place,
    )
}

/// Whether the server can name the zone of its clock: SQL Server 2022 and later, Azure SQL Database
/// (engine edition 5) and Managed Instance (8).
pub(crate) fn names_its_zone() -> Statement {
    question(
        "SELECT CASE WHEN CAST(SERVERPROPERTY('ProductMajorVersion') AS int) >= 16 \
         OR CAST(SERVERPROPERTY('EngineEdition') AS int) IN (5, 8) THEN 1 ELSE 0 END AS able"
            .into(),
        Parameters::default(),
        vec![number_column("able")],
        Matching::Place,
    )
}

/// The Windows name of the zone of the server's clock. Older servers do not even compile it.
pub(crate) fn zone() -> Statement {
    question(
        "SELECT CURRENT_TIMEZONE_ID() AS zone".into(),
        Parameters::default(),
        vec![text_column("zone")],
        Matching::Place,
    )
}
