//! Statements that change the shape of tables.

use cdc_core::{SqlType, TableName, Timestamp};

use crate::{
    database::{DatabaseState, FakeDatabase},
    ddl::alteration::{alter, refuse_rename, replicated},
    index::IndexDefinition,
    isolation::Waiting,
    locks::Tried,
    log::{DdlEffect, LogEvent, LogRecord, TableId},
    sql_error::{SqlError, SqlResult, number},
    table::{CheckDefinition, ColumnDefinition, DefaultDefinition, Table, TableDefinition},
    transaction::{TransactionHandle, TransactionId},
    value::Value,
};

/// A statement that changes the shape of a table.
#[derive(Clone, Debug)]
pub enum SchemaChange {
    /// `CREATE TABLE`.
    CreateTable(TableDefinition),
    /// `DROP TABLE`, with the table's capture instances.
    DropTable(TableName),
    /// `ALTER TABLE ADD`: existing rows read the fill, the default where there is none, or NULL.
    AddColumn {
        /// The table.
        table: TableName,
        /// The column.
        column: ColumnDefinition,
        /// What existing rows read.
        fill: Option<Value>,
    },
    /// `ALTER TABLE DROP COLUMN`.
    DropColumn {
        /// The table.
        table: TableName,
        /// The column.
        column: String,
    },
    /// `ALTER TABLE ALTER COLUMN`.
    AlterColumn {
        /// The table.
        table: TableName,
        /// The column.
        column: String,
        /// Its new type.
        to: SqlType,
        /// Whether it takes NULL from now on; none leaves that as it is.
        nullable: Option<bool>,
    },
    /// `sp_rename` of a column.
    RenameColumn {
        /// The table.
        table: TableName,
        /// The column.
        from: String,
        /// Its new name.
        to: String,
    },
    /// `sp_rename` of a table.
    RenameTable {
        /// The table.
        from: TableName,
        /// Its new name in the same schema.
        to: String,
    },
    /// `CREATE INDEX`, or a key or unique constraint that is added.
    AddIndex {
        /// The table.
        table: TableName,
        /// The index.
        index: IndexDefinition,
    },
    /// `DROP INDEX`.
    DropIndex {
        /// The table.
        table: TableName,
        /// The index.
        name: String,
    },
    /// `ALTER TABLE ADD CHECK`.
    AddCheck {
        /// The table.
        table: TableName,
        /// The check.
        check: CheckDefinition,
    },
    /// `ALTER TABLE ADD DEFAULT FOR`.
    AddDefault {
        /// The table.
        table: TableName,
        /// The column.
        column: String,
        /// The default.
        default: DefaultDefinition,
    },
    /// `ALTER TABLE DROP CONSTRAINT`.
    DropConstraint {
        /// The table.
        table: TableName,
        /// The constraint.
        name: String,
    },
}

impl SchemaChange {
    /// The table that it is about.
    #[must_use]
    pub const fn table(&self) -> &TableName {
        match self {
            Self::CreateTable(definition) => &definition.name,
            Self::DropTable(table)
            | Self::RenameTable { from: table, .. }
            | Self::AddColumn { table, .. }
            | Self::DropColumn { table, .. }
            | Self::AlterColumn { table, .. }
            | Self::RenameColumn { table, .. }
            | Self::AddIndex { table, .. }
            | Self::DropIndex { table, .. }
            | Self::AddCheck { table, .. }
            | Self::AddDefault { table, .. }
            | Self::DropConstraint { table, .. } => table,
        }
    }

    /// The statement as the history of a captured table records it; none for one that it leaves
    /// out.
    fn text(&self) -> Option<String> {
        let head = format!("ALTER TABLE [{}].[{}]", self.table().schema, self.table().name);
        Some(match self {
            Self::AddColumn { column, .. } => format!(
                "{head} ADD [{}] {} {}",
                column.name,
                column.sql_type,
                if column.nullable { "NULL" } else { "NOT NULL" }
            ),
            Self::DropColumn { column, .. } => format!("{head} DROP COLUMN [{column}]"),
            Self::AlterColumn { column, to, .. } => format!("{head} ALTER COLUMN [{column}] {to}"),
            _ => return None,
        })
    }
}

impl FakeDatabase {
    /// Runs a statement that changes the shape of a table, in a transaction of its own.
    ///
    /// # Errors
    /// 208, 2714, 2705, 207, 515, 1222 while another transaction holds the table, 4922 for a
    /// column that something needs, 4928 for a captured one, and what the statement is otherwise
    /// refused for.
    pub fn change_schema(&self, change: SchemaChange) -> SqlResult<()> {
        self.change_schema_in(None, &Waiting::refuse(), &change)
    }

    /// Runs such a statement in a transaction, which may roll it back, and waits for who holds
    /// the table.
    ///
    /// # Errors
    /// As for [`FakeDatabase::change_schema`].
    pub fn change_schema_in(
        &self,
        transaction: Option<&TransactionHandle>,
        waiting: &Waiting,
        change: &SchemaChange,
    ) -> SqlResult<()> {
        let now = self.now();
        let who = transaction.map(|handle| handle.id);
        self.attempt(who, waiting, |state| state.change_schema(who, change, None, now))
    }

    /// Adds a column. Existing rows read `fill`, or NULL; capture instances stay as they are.
    ///
    /// # Errors
    /// 2705 for a name that is there, 4901 for a column that takes no NULL and has no `fill`.
    pub fn add_column(
        &self,
        table: &TableName,
        column: ColumnDefinition,
        fill: Option<Value>,
    ) -> SqlResult<()> {
        self.change_schema(SchemaChange::AddColumn { table: table.clone(), column, fill })
    }

    /// Drops a column. Instances keep it captured and read NULL from then on.
    ///
    /// # Errors
    /// 207 for an unknown column, 4922 for one that a key, an index, a default, a check or a
    /// computed column needs.
    pub fn drop_column(&self, table: &TableName, name: &str) -> SqlResult<()> {
        let (table, column) = (table.clone(), name.into());
        self.change_schema(SchemaChange::DropColumn { table, column })
    }

    /// Gives a column another type and converts its values. Once capture has processed it, the
    /// captured column has the type too and its change rows are converted.
    ///
    /// # Errors
    /// 207, 4922 for a column that something needs as it is, 4928 for the key of a captured table,
    /// and what the conversion of a value is refused for.
    pub fn alter_column(&self, table: &TableName, name: &str, to: SqlType) -> SqlResult<()> {
        let (table, column) = (table.clone(), name.into());
        self.change_schema(SchemaChange::AlterColumn { table, column, to, nullable: None })
    }

    /// Renames a column that no instance captures; no history records it.
    ///
    /// # Errors
    /// 207 for an unknown column, 4928 for a captured one, 2705 for a name that is there.
    pub fn rename_column(&self, table: &TableName, from: &str, to: &str) -> SqlResult<()> {
        let (table, from, to) = (table.clone(), from.into(), to.into());
        self.change_schema(SchemaChange::RenameColumn { table, from, to })
    }

    /// Renames a table; no history records it, and instances keep their names.
    ///
    /// # Errors
    /// 208 for an unknown table, 2714 for a name that is taken.
    pub fn rename_table(&self, from: &TableName, to: &str) -> SqlResult<()> {
        self.change_schema(SchemaChange::RenameTable { from: from.clone(), to: to.into() })
    }

    /// Drops a table and, with it, its capture instances.
    ///
    /// # Errors
    /// 208 for an unknown table, 1222.
    pub fn drop_table(&self, table: &TableName) -> SqlResult<()> {
        self.change_schema(SchemaChange::DropTable(table.clone()))
    }

    /// Removes every row of a table that is not captured.
    ///
    /// # Errors
    /// 4711 for a captured table, 208, 1222.
    pub fn truncate_table(&self, table: &TableName) -> SqlResult<()> {
        self.transact(|transaction| transaction.truncate(table)).map(|_| ())
    }
}

impl DatabaseState {
    /// Refuses to truncate a captured table.
    pub(crate) fn refuse_truncate(&self, table: TableId) -> SqlResult<()> {
        if self.instances_of(table).next().is_none() {
            return Ok(());
        }
        let name = &self.table(table)?.name;
        Err(SqlError::new(
            number::TRUNCATE_REFUSED,
            format!(
                "Cannot truncate table '{name}' because it is published for replication or \
                 enabled for Change Data Capture."
            ),
        ))
    }

    /// Changes the shape of a table: all of it, or nothing. `statement` is the text as the client
    /// wrote it.
    pub(crate) fn change_schema(
        &mut self,
        who: Option<TransactionId>,
        change: &SchemaChange,
        statement: Option<&str>,
        now: Timestamp,
    ) -> Tried<()> {
        if let SchemaChange::CreateTable(definition) = change {
            return self.create_table(who, definition, now);
        }
        let id = self.table_id(change.table())?;
        self.check_schema(who, id)?;
        self.keep_schema(who, id)?;
        let time = self.zone.reading(now);
        match change {
            SchemaChange::DropTable(name) => {
                let gone = self.instances_of(id).map(|instance| instance.name.clone());
                let gone: Vec<_> = gone.collect();
                for instance in gone {
                    self.permissions.forget(&TableName::new("cdc", format!("{instance}_CT")));
                }
                self.permissions.forget(name);
                self.tables.remove(&id);
                self.instances.retain(|_, instance| instance.table != id);
                return Ok(());
            }
            SchemaChange::RenameTable { from, to } => {
                let name = TableName::new(from.schema.clone(), to.clone());
                if self.find_table(&name).is_some_and(|(other, _)| other != id) {
                    return Err(exists(&name).into());
                }
                self.permissions.rename_table(from, &name);
                self.table_mut(id)?.name = name;
            }
            SchemaChange::RenameColumn { from, to, .. } => self.rename_column(id, from, to)?,
            SchemaChange::AlterColumn { column, .. } if self.is_captured_key(id, column)? => {
                return Err(replicated(column).into());
            }
            _ => {
                let mut numbers = self.next_id;
                let former = self.table(id)?.clone();
                let table = self.table_mut(id)?;
                let mut new_id = || {
                    numbers += 1;
                    numbers
                };
                match alter(table, change, &mut new_id, now) {
                    Ok(effect) => {
                        self.next_id = numbers;
                        self.note_change(who, id, change, statement, effect, now);
                    }
                    Err(error) => {
                        *table = former;
                        return Err(error.into());
                    }
                }
            }
        }
        if let Ok(table) = self.table_mut(id) {
            table.modified = time;
        }
        Ok(())
    }

    fn create_table(
        &mut self,
        who: Option<TransactionId>,
        definition: &TableDefinition,
        now: Timestamp,
    ) -> Tried<()> {
        if self.find_table(&definition.name).is_some() {
            return Err(exists(&definition.name).into());
        }
        let id = TableId(self.new_id());
        let (collation, created) = (self.collation, self.zone.reading(now));
        let mut numbers = self.next_id;
        let table = Table::new(definition.clone(), collation, created, || {
            numbers += 1;
            numbers
        })?;
        self.next_id = numbers;
        self.tables.insert(id, table);
        self.note_created(who, id);
        Ok(())
    }

    fn is_captured_key(&self, id: TableId, column: &str) -> SqlResult<bool> {
        let table = self.table(id)?;
        let captured = self.instances_of(id).next().is_some();
        Ok(captured && table.key.contains(&table.slot(column)?))
    }

    fn rename_column(&mut self, id: TableId, from: &str, to: &str) -> SqlResult<()> {
        let slot = self.table(id)?.slot(from)?;
        let column_id = self.table(id)?.definition(slot)?.column.id;
        let captured = self
            .instances_of(id)
            .any(|instance| instance.columns.iter().any(|column| column.id == column_id));
        if captured {
            return Err(replicated(from));
        }
        refuse_rename(self.table(id)?, slot, from)?;
        let definition = self.table_mut(id)?;
        if definition.slot(to).is_ok_and(|other| other != slot) {
            return Err(SqlError::new(
                number::DUPLICATE_COLUMN,
                format!(
                    "Column names in each table must be unique. Column name '{to}' in table '{}' \
                     is specified more than once.",
                    definition.name
                ),
            ));
        }
        if let Some(column) = definition.columns.get_mut(slot) {
            column.column.name = to.into();
        }
        // A rule of the server's own goes with its column, whatever that is called.
        for of in definition.checks.iter_mut().filter_map(|check| check.definition.of.as_mut()) {
            if of.eq_ignore_ascii_case(from) {
                to.clone_into(of);
            }
        }
        Ok(())
    }

    /// Puts a change of a captured table into the log.
    fn note_change(
        &mut self,
        who: Option<TransactionId>,
        table: TableId,
        change: &SchemaChange,
        statement: Option<&str>,
        effect: DdlEffect,
        now: Timestamp,
    ) {
        if self.instances_of(table).next().is_none() {
            return;
        }
        let Some(text) = change.text() else { return };
        let statement = statement.map_or(text, str::to_owned);
        let event = LogEvent::Ddl { table, statement, effect };
        if let Some(event) = self.keep_schema_event(who, event) {
            self.log_schema_event(event, now);
        }
    }

    pub(crate) fn log_schema_event(&mut self, event: LogEvent, now: Timestamp) {
        let lsn = self.log.commit_lsn();
        let local = self.zone.reading(now);
        if let LogEvent::Enable(id) = &event
            && let Some(instance) = self.instances.get_mut(id)
        {
            instance.start = lsn;
        }
        self.append(LogRecord { lsn, time: now, local, event });
    }
}

fn exists(name: &TableName) -> SqlError {
    SqlError::new(
        number::OBJECT_EXISTS,
        format!("There is already an object named '{}' in the database.", name.name),
    )
}
