//! The statements that a diagnosis offers. They are shown, never run.

use crate::table::{InstanceName, TableName};

/// A name in brackets.
pub(super) fn bracketed(name: &str) -> String {
    format!("[{}]", name.replace(']', "]]"))
}

/// A name as a literal.
pub(super) fn literal(name: &str) -> String {
    format!("N'{}'", name.replace('\'', "''"))
}

/// A user, or a place for its name.
pub(super) fn user(name: Option<&String>) -> String {
    name.map_or_else(|| "[the login's user]".to_owned(), |name| bracketed(name))
}

fn table(name: &TableName) -> String {
    format!("{}.{}", bracketed(&name.schema), bracketed(&name.name))
}

pub(super) fn grant_table(name: &TableName, to: Option<&String>) -> String {
    format!("GRANT SELECT ON {} TO {}", table(name), user(to))
}

pub(super) fn grant_changes(instance: &InstanceName, to: Option<&String>) -> String {
    grant_table(&TableName::new("cdc", format!("{instance}_CT")), to)
}

pub(super) fn join_role(role: &str, member: Option<&String>) -> String {
    format!("ALTER ROLE {} ADD MEMBER {}", bracketed(role), user(member))
}

/// Shows the gating roles of a table.
pub(super) fn show_role(name: &TableName) -> String {
    format!(
        "SELECT capture_instance, role_name FROM cdc.change_tables \
         WHERE source_object_id = OBJECT_ID({})",
        literal(&table(name))
    )
}

/// Enables a table under an instance name of its own, or under the default one.
pub(super) fn enable(name: &TableName, instance: Option<&str>) -> String {
    let instance = instance
        .map(|instance| format!(", @capture_instance = {}", literal(instance)))
        .unwrap_or_default();
    format!(
        "EXEC sys.sp_cdc_enable_table @source_schema = {}, @source_name = {}, \
         @role_name = NULL, @supports_net_changes = 0{instance}",
        literal(&name.schema),
        literal(&name.name)
    )
}

pub(super) fn disable(name: &TableName, instance: &InstanceName) -> String {
    format!(
        "EXEC sys.sp_cdc_disable_table @source_schema = {}, @source_name = {}, \
         @capture_instance = {}",
        literal(&name.schema),
        literal(&name.name),
        literal(instance.as_str())
    )
}

/// Sets the retention. It holds from the job's next run on.
pub(super) fn retain(minutes: i64) -> String {
    format!("EXEC sys.sp_cdc_change_job @job_type = N'cleanup', @retention = {minutes}")
}
