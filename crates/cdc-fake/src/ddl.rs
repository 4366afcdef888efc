//! Enabling and disabling capture, and the history of a captured table's columns.

use cdc_core::{Column, InstanceName, Lsn, TableName, Timestamp};

use crate::{
    database::{DatabaseState, FakeDatabase, unknown_instance},
    instance::{DdlEntry, EnableOptions, Instance},
    isolation::Waiting,
    locks::{TableLock, Tried},
    log::{InstanceId, LogEvent, TableId},
    sql_error::{SqlError, SqlResult, number},
    table::Table,
    transaction::{TransactionHandle, TransactionId},
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
        self.enable_table_in(None, &Waiting::refuse(), table, &options)
    }

    /// Enables a table in a transaction, which may roll it back, and waits for who holds it.
    ///
    /// # Errors
    /// As for [`FakeDatabase::enable_table`].
    pub fn enable_table_in(
        &self,
        transaction: Option<&TransactionHandle>,
        waiting: &Waiting,
        table: &TableName,
        options: &EnableOptions,
    ) -> SqlResult<InstanceName> {
        let now = self.now();
        let who = transaction.map(|handle| handle.id);
        self.attempt(who, waiting, |state| {
            if !state.cdc {
                return Err(SqlError::new(
                    number::CDC_NOT_ENABLED,
                    format!(
                        "The database '{}' is not enabled for Change Data Capture. Ensure that \
                         the correct database context is set and retry the operation.",
                        state.name
                    ),
                )
                .into());
            }
            state.enable(who, table, options, now)
        })
    }

    /// Disables an instance: its change table and its history of schema changes are gone at once.
    ///
    /// # Errors
    /// 22960 for an unknown instance.
    pub fn disable_instance(&self, name: &InstanceName) -> SqlResult<()> {
        self.disable_instance_in(None, &Waiting::refuse(), name)
    }

    /// Disables an instance in a transaction, which may roll it back.
    ///
    /// # Errors
    /// As for [`FakeDatabase::disable_instance`].
    pub fn disable_instance_in(
        &self,
        transaction: Option<&TransactionHandle>,
        waiting: &Waiting,
        name: &InstanceName,
    ) -> SqlResult<()> {
        let who = transaction.map(|handle| handle.id);
        self.attempt(who, waiting, |state| {
            let found = state.instance(name).map(|instance| (instance.id, instance.table));
            let (id, table) = found.ok_or_else(|| unknown_instance(name))?;
            state.keep_schema(who, table)?;
            state.instances.remove(&id);
            state.permissions.forget(&TableName::new("cdc", format!("{name}_CT")));
            Ok(())
        })
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
    fn enable(
        &mut self,
        who: Option<TransactionId>,
        table: &TableName,
        options: &EnableOptions,
        now: Timestamp,
    ) -> Tried<InstanceName> {
        let id = self.table_id(table)?;
        self.check_schema(who, id)?;
        let name =
            options.name.clone().unwrap_or_else(|| format!("{}_{}", table.schema, table.name));
        let name = InstanceName::new(&name);
        self.check_new_instance(id, &name)?;
        let definition = self.table(id)?;
        let columns = captured_columns(definition, options.columns.as_deref())?;
        let key = index_columns(definition, &columns, options.index.as_deref())?;
        if let Some(who) = who {
            self.lock_table(who, id, TableLock::Exclusive)?;
        }
        let objects = [self.new_id(), self.new_id(), self.new_id()];
        let instance = InstanceId(self.new_id());
        let made = Instance {
            id: instance,
            name: name.clone(),
            table: id,
            // Until its commit it starts behind everything.
            start: Lsn::MAX,
            low: None,
            columns,
            key,
            role: options.role.clone(),
            index_name: options.index_name.clone(),
            net_changes: options.net_changes,
            created: self.zone.reading(now),
            objects,
            entries: crate::change_entries::ChangeEntries::default(),
            ddl: Vec::new(),
        };
        self.instances.insert(instance, made);
        if !self.jobs.capture && !self.jobs.cleanup {
            (self.jobs.capture, self.jobs.cleanup) = (true, true);
        }
        self.capture.create(now);
        self.note_enabled(who, instance);
        if let Some(event) = self.keep_schema_event(who, LogEvent::Enable(instance)) {
            self.log_schema_event(event, now);
        }
        Ok(name)
    }

    fn check_new_instance(&self, table: TableId, name: &InstanceName) -> SqlResult<()> {
        if self.instances_of(table).count() >= INSTANCES_A_TABLE {
            return Err(SqlError::new(
                number::TWO_INSTANCES,
                "Could not create a capture instance because the table has two capture instances \
                 already. A table can have at most two.",
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
