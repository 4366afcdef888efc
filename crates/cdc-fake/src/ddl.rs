//! Enabling and disabling capture, and the history of a captured table's columns.

use cdc_core::{Column, InstanceName, Lsn, TableName};

use crate::{
    database::{DatabaseState, FakeDatabase, unknown_instance},
    instance::{DdlEntry, EnableOptions, Instance},
    locks::Refusal,
    log::{InstanceId, LogEvent, LogRecord, TableId},
    sql_error::{SqlError, SqlResult, number},
    table::Table,
};

mod alteration;
mod change;

pub use change::SchemaChange;

/// Capture instances that a table may have.
const INSTANCES_A_TABLE: usize = 2;

impl FakeDatabase {
    /// Enables a table for capture, as `sys.sp_cdc_enable_table` does. Returns the instance's
    /// name. It is listed at once, with its start: the commit of this statement. Its low position
    /// is unknown until capture has processed that.
    ///
    /// # Errors
    /// 22901 without capture on the database, 22962 for a third instance, 22926 for a name that
    /// is taken, 22942 for an index over columns that take NULL or are not captured, 207, 208, and
    /// 1222 while an open transaction has written to the table: the statement waits for it.
    pub fn enable_table(
        &self,
        table: &TableName,
        options: EnableOptions,
    ) -> SqlResult<InstanceName> {
        let now = self.now();
        let mut state = self.state();
        if !state.cdc {
            return Err(SqlError::new(
                number::CDC_NOT_ENABLED,
                format!(
                    "The database '{}' is not enabled for Change Data Capture. Ensure that the \
                     correct database context is set and retry the operation.",
                    self.name()
                ),
            ));
        }
        let id = state.table_id(table)?;
        match state.check_schema(None, id) {
            Err(Refusal::Held(_)) => return Err(SqlError::lock_timeout()),
            Err(Refusal::Failed(error)) => return Err(error),
            Ok(()) => {}
        }
        let name =
            options.name.clone().unwrap_or_else(|| format!("{}_{}", table.schema, table.name));
        let name = InstanceName::new(&name);
        state.check_new_instance(id, &name)?;
        let definition = state.table(id)?;
        let columns = captured_columns(definition, options.columns.as_deref())?;
        let key = index_columns(definition, &columns, options.index.as_deref())?;
        let lsn = state.log.commit_lsn();
        let created = state.zone.reading(now);
        let objects = [state.new_id(), state.new_id(), state.new_id()];
        let instance = InstanceId(state.new_id());
        state.instances.insert(
            instance,
            Instance {
                id: instance,
                name: name.clone(),
                table: id,
                start: lsn,
                low: None,
                columns,
                key,
                role: options.role,
                index_name: options.index_name,
                net_changes: options.net_changes,
                created,
                objects,
                entries: crate::change_entries::ChangeEntries::default(),
                ddl: Vec::new(),
            },
        );
        if !state.jobs.capture && !state.jobs.cleanup {
            (state.jobs.capture, state.jobs.cleanup) = (true, true);
        }
        state.capture.create(now);
        let local = state.zone.reading(now);
        state.append(LogRecord { lsn, time: now, local, event: LogEvent::Enable(instance) });
        Ok(name)
    }

    /// Disables an instance: its change table and its history of schema changes are gone at once.
    ///
    /// # Errors
    /// 22960 for an unknown instance.
    pub fn disable_instance(&self, name: &InstanceName) -> SqlResult<()> {
        let mut state = self.state();
        let id = state
            .instance(name)
            .map(|instance| instance.id)
            .ok_or_else(|| unknown_instance(name))?;
        state.instances.remove(&id);
        state.permissions.forget(&TableName::new("cdc", format!("{name}_CT")));
        Ok(())
    }

    /// The history of schema changes of an instance, as far as capture has got.
    ///
    /// # Errors
    /// 22960 for an unknown instance.
    pub fn ddl_history(&self, instance: &InstanceName) -> SqlResult<Vec<DdlEntry>> {
        let state = self.state();
        let found = state.instance(instance);
        found.map(|instance| instance.ddl.clone()).ok_or_else(|| unknown_instance(instance))
    }

    /// The first position of an instance: its start, its low watermark once capture has got
    /// there, and its columns.
    ///
    /// # Errors
    /// 22960 for an unknown instance.
    pub fn instance(&self, instance: &InstanceName) -> SqlResult<InstanceState> {
        let state = self.state();
        let found = state.instance(instance).ok_or_else(|| unknown_instance(instance))?;
        Ok(InstanceState {
            start: found.start,
            low: found.low,
            columns: found.columns.clone(),
            rows: found.entries.rows(),
        })
    }
}

/// What an instance is like at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstanceState {
    /// The commit that enabled it.
    pub start: Lsn,
    /// The low watermark; none until capture has processed the enable.
    pub low: Option<Lsn>,
    /// The captured columns.
    pub columns: Vec<Column>,
    /// Rows of its change table.
    pub rows: usize,
}

impl DatabaseState {
    fn check_new_instance(&self, table: TableId, name: &InstanceName) -> SqlResult<()> {
        if self.instances_of(table).count() >= INSTANCES_A_TABLE {
            return Err(SqlError::new(
                number::TWO_INSTANCES,
                "Could not create a capture instance because the table has two capture instances already. \
             A table can have at most two.",
            ));
        }
        let taken = self
            .instances
            .values()
            .any(|other| other.name.as_str().eq_ignore_ascii_case(name.as_str()));
        if taken {
            return Err(SqlError::new(
                number::INSTANCE_NAME_TAKEN,
                format!(
                    "Could not create a capture instance because the capture instance name \
                     '{name}' already exists in the current database."
                ),
            ));
        }
        Ok(())
    }
}

fn captured_columns(table: &Table, wanted: Option<&[String]>) -> SqlResult<Vec<Column>> {
    let Some(wanted) = wanted else {
        return Ok(table.live_columns().cloned().collect());
    };
    let mut slots = wanted.iter().map(|name| table.slot(name)).collect::<SqlResult<Vec<_>>>()?;
    // Captured in the table's order, whatever the order of the list.
    slots.sort_unstable();
    slots.dedup();
    slots.into_iter().map(|slot| Ok(table.definition(slot)?.column.clone())).collect()
}

fn index_columns(
    table: &Table,
    captured: &[Column],
    wanted: Option<&[String]>,
) -> SqlResult<Vec<String>> {
    let slots = match wanted {
        Some(names) => names.iter().map(|name| table.slot(name)).collect::<SqlResult<Vec<_>>>()?,
        None => table.key.clone(),
    };
    let mut key = Vec::with_capacity(slots.len());
    for slot in slots {
        let column = &table.definition(slot)?.column;
        if column.nullable || !captured.iter().any(|other| other.id == column.id) {
            return Err(SqlError::new(
                number::INDEX_UNFIT,
                format!("index column {} must be captured and not allow nulls", column.name),
            ));
        }
        key.push(column.name.clone());
    }
    Ok(key)
}
