//! Schema statements: enabling and disabling capture, and what happens to a captured table's
//! columns.

use cdc_core::{Column, InstanceName, Lsn, SqlType, TableName};

use crate::{
    database::{DatabaseState, FakeDatabase, unknown_instance},
    instance::{DdlEntry, EnableOptions, Instance},
    log::{DdlEffect, InstanceId, LogEvent, LogRecord, TableId},
    sql_error::{SqlError, SqlResult, number},
    table::{ColumnDefinition, Table},
    value::Value,
};

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
                "database is not enabled for change data capture",
            ));
        }
        let id = state.table_id(table)?;
        state.check_schema_lock(id)?;
        let name =
            options.name.clone().unwrap_or_else(|| format!("{}_{}", table.schema, table.name));
        let name = InstanceName::new(&name);
        state.check_new_instance(id, &name)?;
        let definition = state.table(id)?;
        let columns = captured_columns(definition, options.columns.as_deref())?;
        let key = index_columns(definition, &columns, options.index.as_deref())?;
        let lsn = state.log.commit_lsn();
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
                entries: std::collections::VecDeque::new(),
                ddl: Vec::new(),
            },
        );
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
        Ok(())
    }

    /// Adds a column. Existing rows read `fill`, or NULL; capture instances stay as they are.
    ///
    /// # Errors
    /// 2705 for a name that is there, 515 for a column that takes no NULL and has no `fill`.
    pub fn add_column(
        &self,
        table: &TableName,
        column: ColumnDefinition,
        fill: Option<Value>,
    ) -> SqlResult<()> {
        let statement = format!(
            "ALTER TABLE [{}].[{}] ADD [{}] {} {}",
            table.schema,
            table.name,
            column.name,
            column.sql_type,
            if column.nullable { "NULL" } else { "NOT NULL" }
        );
        self.alter(table, &statement, |definition| {
            let fill = match fill {
                Some(fill) => Some(fill.stored(&column.sql_type)?),
                None if column.nullable || definition.rows.is_empty() => None,
                None => {
                    return Err(SqlError::new(
                        number::NOT_NULL,
                        format!("column {} does not allow nulls", column.name),
                    ));
                }
            };
            let computed = column.computed.is_some();
            let name = column.name.clone();
            definition.add_column(column)?;
            let slot = definition.slot(&name)?;
            if let Some(fill) = fill {
                definition.rewrite(slot, |_| Ok(fill.clone()))?;
            }
            if computed {
                definition.recompute();
            }
            Ok(DdlEffect::None)
        })
    }

    /// Drops a column. Instances keep it captured and read NULL from then on.
    ///
    /// # Errors
    /// 207 for an unknown column, 4928 for a key column.
    pub fn drop_column(&self, table: &TableName, name: &str) -> SqlResult<()> {
        let statement =
            format!("ALTER TABLE [{}].[{}] DROP COLUMN [{name}]", table.schema, table.name);
        self.alter(table, &statement, |definition| {
            let slot = definition.slot(name)?;
            refuse_key_column(definition, slot, name)?;
            definition.rewrite(slot, |_| Ok(Value::Null))?;
            definition.drop_slot(slot);
            Ok(DdlEffect::None)
        })
    }

    /// Gives a column another type and converts its values. Once capture has processed it, the
    /// captured column has the type too and its change rows are converted.
    ///
    /// # Errors
    /// 207, 4928 for a key column, and what the conversion of a value is refused for.
    pub fn alter_column(&self, table: &TableName, name: &str, to: SqlType) -> SqlResult<()> {
        let statement =
            format!("ALTER TABLE [{}].[{}] ALTER COLUMN [{name}] {to}", table.schema, table.name);
        self.alter(table, &statement, |definition| {
            let slot = definition.slot(name)?;
            refuse_key_column(definition, slot, name)?;
            let column = &definition.definition(slot)?.column;
            let (column_id, from) = (column.id, column.sql_type.clone());
            definition.rewrite(slot, |value| value.converted(&from, &to))?;
            if let Some(column) = definition.columns.get_mut(slot) {
                column.column.sql_type = to.clone();
            }
            Ok(DdlEffect::Alter { column_id, from, to })
        })
    }

    /// Renames a column that no instance captures; no history records it.
    ///
    /// # Errors
    /// 207 for an unknown column, 4928 for a captured one, 2705 for a name that is there.
    pub fn rename_column(&self, table: &TableName, from: &str, to: &str) -> SqlResult<()> {
        let mut state = self.state();
        let id = state.table_id(table)?;
        state.check_schema_lock(id)?;
        let slot = state.table(id)?.slot(from)?;
        let column_id = state.table(id)?.definition(slot)?.column.id;
        let captured = state
            .instances_of(id)
            .any(|instance| instance.columns.iter().any(|column| column.id == column_id));
        if captured {
            return Err(replicated(from));
        }
        let definition = state.table_mut(id)?;
        if definition.slot(to).is_ok() {
            return Err(SqlError::new(
                number::DUPLICATE_COLUMN,
                format!("column {to} exists already"),
            ));
        }
        if let Some(column) = definition.columns.get_mut(slot) {
            column.column.name = to.into();
        }
        Ok(())
    }

    /// Renames a table; no history records it, and instances keep their names.
    ///
    /// # Errors
    /// 208 for an unknown table, 2714 for a name that is taken.
    pub fn rename_table(&self, from: &TableName, to: &str) -> SqlResult<()> {
        let mut state = self.state();
        let id = state.table_id(from)?;
        state.check_schema_lock(id)?;
        let name = TableName::new(from.schema.clone(), to);
        if state.table_id(&name).is_ok() {
            return Err(SqlError::new(
                number::OBJECT_EXISTS,
                format!("there is already an object named {name}"),
            ));
        }
        state.permissions.rename_table(from, &name);
        state.table_mut(id)?.name = name;
        Ok(())
    }

    /// Drops a table and, with it, its capture instances.
    ///
    /// # Errors
    /// 208 for an unknown table, 1222.
    pub fn drop_table(&self, table: &TableName) -> SqlResult<()> {
        let mut state = self.state();
        let id = state.table_id(table)?;
        state.check_schema_lock(id)?;
        state.tables.remove(&id);
        state.instances.retain(|_, instance| instance.table != id);
        Ok(())
    }

    /// Removes every row of a table that is not captured.
    ///
    /// # Errors
    /// 4711 for a captured table, 208, 1222.
    pub fn truncate_table(&self, table: &TableName) -> SqlResult<()> {
        let mut state = self.state();
        let id = state.table_id(table)?;
        if state.instances_of(id).next().is_some() {
            return Err(SqlError::new(
                number::TRUNCATE_REFUSED,
                format!("cannot truncate table {table} because it is enabled for capture"),
            ));
        }
        state.check_schema_lock(id)?;
        state.table_mut(id)?.rows.clear();
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
            rows: found.entries.iter().map(|entry| entry.rows()).sum(),
        })
    }

    /// Runs a schema statement: refused while another transaction has written to the table, all
    /// or nothing, recorded in the log of a captured table.
    fn alter(
        &self,
        table: &TableName,
        statement: &str,
        change: impl FnOnce(&mut Table) -> SqlResult<DdlEffect>,
    ) -> SqlResult<()> {
        let now = self.now();
        let mut state = self.state();
        let id = state.table_id(table)?;
        state.check_schema_lock(id)?;
        let effect = change(state.table_mut(id)?)?;
        if state.instances_of(id).next().is_none() {
            return Ok(());
        }
        let lsn = state.log.commit_lsn();
        let local = state.zone.reading(now);
        state.append(LogRecord {
            lsn,
            time: now,
            local,
            event: LogEvent::Ddl { table: id, statement: statement.into(), effect },
        });
        Ok(())
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
    /// Refuses while an open transaction has written to the table.
    fn check_schema_lock(&self, table: TableId) -> SqlResult<()> {
        if self.open.values().any(|open| open.wrote(table)) {
            return Err(SqlError::lock_timeout());
        }
        Ok(())
    }

    fn check_new_instance(&self, table: TableId, name: &InstanceName) -> SqlResult<()> {
        if self.instances_of(table).count() >= INSTANCES_A_TABLE {
            return Err(SqlError::new(
                number::TWO_INSTANCES,
                "two capture instances already exist for the table",
            ));
        }
        let taken = self
            .instances
            .values()
            .any(|other| other.name.as_str().eq_ignore_ascii_case(name.as_str()));
        if taken {
            return Err(SqlError::new(
                number::INSTANCE_NAME_TAKEN,
                format!("capture instance name {name} already exists"),
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

fn refuse_key_column(table: &Table, slot: usize, name: &str) -> SqlResult<()> {
    if table.key.contains(&slot) {
        return Err(replicated(name));
    }
    Ok(())
}

fn replicated(column: &str) -> SqlError {
    SqlError::new(
        number::ALTER_REPLICATED,
        format!("cannot alter column {column} because it is replicated"),
    )
}
