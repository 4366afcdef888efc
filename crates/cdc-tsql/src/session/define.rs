//! CREATE, ALTER and DROP.

use cdc_core::TableName;
use cdc_fake::{
    FakeDatabase, IndexDefinition, IndexKind, Permission, SchemaChange, Securable, SqlError,
    SqlResult,
};
use sqlparser::ast;

use super::{
    failure::{Failure, Run},
    frame::Frame,
    runner::Runner,
    target::{Home, Place},
};
use crate::{
    kind::Kind,
    query,
    relation::ObjectName,
    scalar,
    syntax::{AlterTable, Constraint, DatabaseOption, Definition, Index, TableBody, unsupported},
};

impl Runner<'_> {
    /// The kind that a type's name means, in a declaration.
    pub(super) fn kind_of(
        &self,
        data_type: &ast::DataType,
        collation: Option<&ast::ObjectName>,
    ) -> SqlResult<Kind> {
        query::kind_of(data_type, collation).map_err(|error| match error.number {
            243 => SqlError::new(2715, format!("Cannot find data type {data_type}.")),
            _ => error,
        })
    }

    pub(super) fn define(&mut self, definition: &Definition, frame: &Frame) -> Run<()> {
        match definition {
            Definition::CreateDatabase { name, collation } => {
                self.create_database(name, collation.as_ref())
            }
            Definition::DropDatabases { names, if_exists } => {
                for name in names {
                    self.drop_database(name, *if_exists)?;
                }
                Ok(())
            }
            Definition::AlterDatabase { name, option } => {
                self.alter_database(name.as_deref(), option)
            }
            Definition::CreateSchema { name, owner } => {
                self.require_owner("CREATE SCHEMA")?;
                Ok(self.core.database.create_schema(name, owner.as_deref())?)
            }
            Definition::DropSchema { name, if_exists } => {
                self.require_owner("DROP SCHEMA")?;
                let there = self
                    .core
                    .database
                    .schemas()
                    .iter()
                    .any(|(other, _)| other.eq_ignore_ascii_case(name));
                if *if_exists && !there {
                    return Ok(());
                }
                Ok(self.core.database.drop_schema(name)?)
            }
            Definition::CreateType { .. } => Err(unsupported("CREATE TYPE").into()),
            Definition::DropType { .. } => Err(unsupported("DROP TYPE").into()),
            tables => self.writing(frame, |runner, frame| runner.define_table(tables, frame)),
        }
    }

    fn define_table(&mut self, definition: &Definition, frame: &Frame) -> Run<()> {
        match definition {
            Definition::CreateTable { name, table } => self.create_table(name, table, frame),
            Definition::DropTables { names, if_exists } => {
                for name in names {
                    self.drop_table(name, *if_exists, frame)?;
                }
                Ok(())
            }
            Definition::AlterTable { name, action, text } => {
                let place = self.altered(name, frame)?;
                self.alter_table(&place, action, text, frame)
            }
            Definition::CreateIndex { name, table, index } => {
                let place = self.altered(table, frame).map_err(|failure| match failure {
                    Failure::Error(error) if error.number == 4902 => {
                        Failure::Error(SqlError::new(1088, error.message))
                    }
                    other => other,
                })?;
                let index = index_definition(name, index);
                let change = SchemaChange::AddIndex { table: place.table.clone(), index };
                Ok(self.change_schema(&place.database, &change, None)?)
            }
            Definition::DropIndex { name, table, if_exists } => {
                let place = self.altered(table, frame)?;
                let there = place.database.table_info(&place.table).is_some_and(|info| {
                    info.indexes.iter().any(|index| index.name.eq_ignore_ascii_case(name))
                });
                if *if_exists && !there {
                    return Ok(());
                }
                let change =
                    SchemaChange::DropIndex { table: place.table.clone(), name: name.clone() };
                Ok(self.change_schema(&place.database, &change, None)?)
            }
            _ => Ok(()),
        }
    }

    fn create_table(&mut self, name: &ObjectName, body: &TableBody, frame: &Frame) -> Run<()> {
        let (database, table, _) = self.resolve(name, frame)?;
        self.require_create(&database, &table)?;
        let definition = self.table_definition(table.clone(), body, frame)?;
        self.change_schema(&database, &SchemaChange::CreateTable(definition), None)?;
        self.created(name, &table);
        Ok(())
    }

    /// Notes a temporary table that was created.
    pub(super) fn created(&mut self, name: &ObjectName, table: &TableName) {
        if name.name.starts_with('#') {
            self.core.temporary.note(table);
        }
    }

    /// Refuses a table that the login may not create, or whose schema is not there.
    ///
    /// # Errors
    /// 262 without the right, 2760 without the schema.
    pub(super) fn require_create(&self, database: &FakeDatabase, table: &TableName) -> Run<()> {
        if table.name.starts_with('#') {
            return Ok(());
        }
        let rights = &self.core.account.rights;
        if !database.permits(rights, Permission::CreateTable, &Securable::Database) {
            return Err(SqlError::new(
                262,
                format!("CREATE TABLE permission denied in database '{}'.", database.name()),
            )
            .into());
        }
        let there =
            database.schemas().iter().any(|(name, _)| name.eq_ignore_ascii_case(&table.schema));
        if there {
            return Ok(());
        }
        Err(SqlError::new(
            2760,
            format!(
                "The specified schema name \"{}\" either does not exist or you do not have \
                 permission to use it.",
                table.schema
            ),
        )
        .into())
    }

    fn drop_table(&mut self, name: &ObjectName, if_exists: bool, frame: &Frame) -> Run<()> {
        let (database, table, home) = self.resolve(name, frame)?;
        let relation = self.place(name, frame);
        let may = home != Home::Database
            || database.permits(
                &self.core.account.rights,
                Permission::Control,
                &Securable::Object(table.clone()),
            );
        match relation {
            Ok(_) if may => {}
            Err(error) if !matches!(error.number, 208 | 229) => return Err(error.into()),
            _ if if_exists => return Ok(()),
            _ => {
                return Err(SqlError::new(
                    3701,
                    format!(
                        "Cannot drop the table '{}', because it does not exist or you do not have \
                         permission.",
                        super::scope::shown(name)
                    ),
                )
                .into());
            }
        }
        self.change_schema(&database, &SchemaChange::DropTable(table.clone()), None)?;
        if home == Home::Temporary {
            self.core.temporary.forget(&table);
        }
        Ok(())
    }

    /// A table that a schema statement changes.
    fn altered(&mut self, name: &ObjectName, frame: &Frame) -> Run<Place> {
        let unknown = || {
            SqlError::new(
                4902,
                format!(
                    "Cannot find the object \"{}\" because it does not exist or you do not have \
                     permissions.",
                    super::scope::shown(name)
                ),
            )
        };
        let place = match self.place(name, frame) {
            Ok(place) => place,
            Err(error) if matches!(error.number, 208 | 229) => return Err(unknown().into()),
            Err(error) => return Err(error.into()),
        };
        let permitted = place.home != Home::Database
            || place.database.permits(
                &self.core.account.rights,
                Permission::Alter,
                &place.securable(),
            );
        if permitted { Ok(place) } else { Err(unknown().into()) }
    }

    fn alter_table(
        &mut self,
        place: &Place,
        action: &AlterTable,
        text: &str,
        frame: &Frame,
    ) -> Run<()> {
        let table = place.table.clone();
        let mut changes = Vec::new();
        match action {
            AlterTable::Add(body) => changes = self.additions(place, body, frame)?,
            AlterTable::AddDefault { name, column, value } => {
                let (_, found) = place.column(column)?;
                let default =
                    self.default_definition(name.clone(), value, &found.kind.clone(), frame)?;
                changes.push(SchemaChange::AddDefault {
                    table,
                    column: found.name.clone(),
                    default,
                });
            }
            AlterTable::AlterColumn(column) => {
                let Some(data_type) = &column.data_type else {
                    return Err(unsupported("ALTER COLUMN of a computed column").into());
                };
                let kind = self.kind_of(data_type, column.collation.as_ref())?;
                if column.collation.is_some() {
                    return Err(unsupported("ALTER COLUMN with COLLATE").into());
                }
                let (_, found) = place.column(&column.name)?;
                changes.push(SchemaChange::AlterColumn {
                    table,
                    column: found.name.clone(),
                    to: kind.sql_type,
                    nullable: Some(column.nullable.unwrap_or(true)),
                });
            }
            AlterTable::DropColumns { names, if_exists } => {
                for name in names {
                    changes.extend(drop_column(place, name, *if_exists)?);
                }
            }
            AlterTable::DropConstraints { names, if_exists } => {
                for name in names {
                    if *if_exists && !has_constraint(place, name) {
                        continue;
                    }
                    changes.push(SchemaChange::DropConstraint {
                        table: table.clone(),
                        name: name.clone(),
                    });
                }
            }
        }
        for change in &changes {
            self.change_schema(&place.database, change, Some(text))?;
        }
        Ok(())
    }

    fn additions(
        &mut self,
        place: &Place,
        body: &TableBody,
        frame: &Frame,
    ) -> Run<Vec<SchemaChange>> {
        let mut changes = Vec::new();
        let table = || place.table.clone();
        for column in &body.columns {
            let definition = self.column_definition(column, &place.columns, &place.table, frame)?;
            // Rows that are there read the default only where NULL may not stand, or on request.
            let fill = match &definition.default {
                Some(default) if column.with_values || !definition.nullable => {
                    Some((default.rule)(self.core.server.clock().time())?)
                }
                _ => None,
            };
            changes.push(SchemaChange::AddColumn { table: table(), column: definition, fill });
            let check = self.computed_check(column, &place.columns, &place.table, frame)?;
            changes.extend(check.map(|check| SchemaChange::AddCheck { table: table(), check }));
        }
        for constraint in &body.constraints {
            let index = constraint_definition(constraint);
            changes.push(SchemaChange::AddIndex { table: table(), index });
        }
        for (name, condition) in &body.checks {
            let check = self.check_definition(
                name.clone(),
                condition,
                &place.columns,
                &place.table,
                frame,
            )?;
            changes.push(SchemaChange::AddCheck { table: table(), check });
        }
        Ok(changes)
    }

    pub(super) fn declare_table(&mut self, name: &str, body: &TableBody, frame: &Frame) -> Run<()> {
        let table = self.core.temporary.new_variable();
        let definition = self.table_definition(table.clone(), body, frame)?;
        self.core.temporary.variables.create_table(definition)?;
        frame
            .tables
            .borrow_mut()
            .insert(name.to_lowercase(), super::temporary::TableVariable { table });
        Ok(())
    }

    fn create_database(&mut self, name: &str, collation: Option<&ast::ObjectName>) -> Run<()> {
        self.require_alone("CREATE DATABASE")?;
        self.require_owner("CREATE DATABASE")?;
        let collation = collation.map(|name| {
            let name = name.to_string();
            scalar::collation(&name)
                .ok_or_else(|| SqlError::new(448, format!("Invalid collation '{name}'.")))
        });
        let collation = collation.transpose()?;
        let database = self.core.server.create_database(name)?;
        if let Some(collation) = collation {
            database.set_options(|options| collation.name.clone_into(&mut options.collation));
        }
        Ok(())
    }

    fn drop_database(&mut self, name: &str, if_exists: bool) -> Run<()> {
        self.require_alone("DROP DATABASE")?;
        self.require_owner("DROP DATABASE")?;
        if if_exists && self.core.server.find_database(name).is_none() {
            return Ok(());
        }
        let in_use = self
            .core
            .server
            .session_list()
            .iter()
            .any(|session| session.database.eq_ignore_ascii_case(name));
        if in_use {
            return Err(SqlError::new(
                3702,
                format!("Cannot drop database \"{name}\" because it is currently in use."),
            )
            .into());
        }
        Ok(self.core.server.drop_database(name)?)
    }

    fn alter_database(&mut self, name: Option<&str>, option: &DatabaseOption) -> Run<()> {
        self.require_alone("ALTER DATABASE")?;
        self.require_owner("ALTER DATABASE")?;
        let database = match name {
            Some(name) => self.core.open_database(name)?,
            None => self.core.database.clone(),
        };
        let recovery = |name: &str| match name {
            "FULL" => Ok(1),
            "BULK_LOGGED" => Ok(2),
            "SIMPLE" => Ok(3),
            _ => Err(unsupported("this recovery model")),
        };
        match option {
            DatabaseOption::AllowSnapshotIsolation(on) => {
                database.set_options(|options| options.allow_snapshot_isolation = *on);
            }
            DatabaseOption::ReadCommittedSnapshot(on) => {
                database.set_options(|options| options.read_committed_snapshot = *on);
            }
            DatabaseOption::Recovery(name) => {
                let number = recovery(name)?;
                database.set_options(|options| options.recovery = number);
            }
            DatabaseOption::Compatibility(level) => {
                let level = u8::try_from(*level)
                    .ok()
                    .filter(|level| [100, 110, 120, 130, 140, 150, 160].contains(level));
                let Some(level) = level else {
                    return Err(SqlError::new(
                        15_048,
                        "Valid values of the database compatibility level are 100, 110, 120, 130, \
                         140, 150 or 160.",
                    )
                    .into());
                };
                database.set_options(|options| options.compatibility_level = level);
            }
            DatabaseOption::Collation(_) => {
                return Err(unsupported("ALTER DATABASE COLLATE").into());
            }
            DatabaseOption::Harmless => {}
        }
        Ok(())
    }

    /// Refuses a statement that may not stand in a transaction.
    fn require_alone(&self, statement: &str) -> Run<()> {
        if self.core.transactions.count == 0 {
            return Ok(());
        }
        Err(SqlError::new(
            226,
            format!("{statement} statement not allowed within multi-statement transaction."),
        )
        .into())
    }
}

/// Drops a column; none when there is none and that is fine.
fn drop_column(place: &Place, name: &str, if_exists: bool) -> Run<Option<SchemaChange>> {
    match place.column(name) {
        Ok((_, column)) => Ok(Some(SchemaChange::DropColumn {
            table: place.table.clone(),
            column: column.name.clone(),
        })),
        Err(_) if if_exists => Ok(None),
        Err(_) => Err(SqlError::new(
            4924,
            format!(
                "ALTER TABLE DROP COLUMN failed because column '{name}' does not exist in table \
                 '{}'.",
                place.table.name
            ),
        )
        .into()),
    }
}

fn has_constraint(place: &Place, name: &str) -> bool {
    place.database.table_info(&place.table).is_some_and(|info| {
        let same = |other: &str| other.eq_ignore_ascii_case(name);
        info.indexes.iter().any(|index| same(&index.name))
            || info.checks.iter().any(|check| same(&check.name))
            || info
                .columns
                .iter()
                .any(|column| column.default.as_ref().is_some_and(|default| same(&default.name)))
    })
}

/// An index of CREATE INDEX.
pub(super) fn index_definition(name: &str, index: &Index) -> IndexDefinition {
    IndexDefinition {
        name: Some(name.to_owned()),
        columns: index.columns.clone(),
        included: index.included.clone(),
        kind: if index.unique { IndexKind::Unique } else { IndexKind::Plain },
        clustered: index.clustered,
    }
}

/// The index behind a key.
pub(super) fn constraint_definition(constraint: &Constraint) -> IndexDefinition {
    IndexDefinition {
        name: constraint.name.clone(),
        columns: constraint.columns.clone(),
        included: Vec::new(),
        kind: if constraint.primary { IndexKind::PrimaryKey } else { IndexKind::UniqueConstraint },
        clustered: constraint.clustered.unwrap_or(constraint.primary),
    }
}
