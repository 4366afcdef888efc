//! What is captured, and how its columns changed.

use std::collections::BTreeSet;

use async_trait::async_trait;
use cdc_core::{
    CaptureInstance, ClosedRange, Column, Error, ErrorKind, InstanceName, Lsn, Result, TableName,
    TableRef,
    diagnosis::Access,
    port::{Catalog, Finding, SchemaChange},
};

use super::{Answer, MssqlSource, lsns, unknown};
use crate::{
    fault::number,
    name::{ObjectName, listed},
    sql::{catalog, position},
    type_name::{Described, characters},
};

/// The longest statement that a schema change tells.
const STATEMENT_CHARACTERS: usize = 500;

/// An instance as the listing tells it.
#[derive(Clone, Debug)]
struct Listed {
    name: String,
    table: TableName,
    start: Lsn,
    key: Vec<String>,
}

/// A column of a table as it is now.
#[derive(Clone, Debug)]
pub(super) struct TableColumn {
    pub(super) column: Column,
    pub(super) collation: Option<String>,
}

#[async_trait]
impl Catalog for MssqlSource {
    async fn instances(&self, table: &TableRef) -> Result<Vec<CaptureInstance>> {
        let listed = self.listed().await?;
        let mut chosen = match choose(&listed, table) {
            Ok(chosen) => chosen,
            Err(error) => return Err(self.not_listed(table, error).await),
        };
        chosen.sort_by_key(|instance| instance.start);
        let Some(first) = chosen.first() else { return Ok(Vec::new()) };
        let present = self.table_columns(&first.table).await?;
        let mut instances = Vec::with_capacity(chosen.len());
        for instance in chosen {
            let name = InstanceName::new(&instance.name);
            let columns = self.captured(&name).await?;
            let columns = columns.into_iter().map(|column| completed(column, &present)).collect();
            instances.push(CaptureInstance {
                name,
                table: instance.table,
                start: self.position(instance.start),
                columns,
                key: instance.key,
            });
        }
        Ok(instances)
    }

    async fn schema_changes(
        &self,
        instance: &InstanceName,
        range: ClosedRange,
    ) -> Result<Vec<SchemaChange>> {
        let (from, to) = lsns(range)?;
        let history = match self.ask(catalog::ddl_history(instance)).await {
            Err(fault) if fault.is(&[number::NO_INSTANCE]) => return Err(unknown(instance)),
            other => other.map_err(|fault| Error::from(fault).with("instance", instance))?,
        };
        let mut changes = Vec::new();
        for row in history.rows() {
            let Some(at) = row.lsn(2)?.filter(|at| from <= *at && *at <= to) else { continue };
            let time = self.moment_of(&self.ask(position::entry_until(at)).await?).await?;
            let statement = row.text(1)?.unwrap_or_default();
            changes.push(SchemaChange {
                at: self.position(at),
                time,
                statement: statement.chars().take(STATEMENT_CHARACTERS).collect(),
                captured_column_changed: row.bit(0)?.unwrap_or(false),
            });
        }
        changes.sort_by_key(|change| change.at);
        Ok(changes)
    }

    async fn preflight(&self, tables: &[TableRef]) -> Result<Vec<Finding>> {
        self.look(tables).await
    }
}

impl MssqlSource {
    async fn listed(&self) -> Result<Vec<Listed>> {
        let answer = self.ask(catalog::instances()).await?;
        answer
            .rows()
            .map(|row| {
                Ok(Listed {
                    table: TableName::new(row.some_text(0)?, row.some_text(1)?),
                    name: row.some_text(2)?.to_owned(),
                    start: row.lsn(3)?.unwrap_or_default(),
                    key: listed(row.text(4)?.unwrap_or_default()),
                })
            })
            .collect()
    }

    /// Whether a table that is not listed is one that the login may not read.
    async fn not_listed(&self, table: &TableRef, error: Error) -> Error {
        let TableRef::Table(name) = table else { return error };
        let Ok(object) = ObjectName::of_table(name) else { return error };
        match self.access(std::slice::from_ref(&object)).await.as_deref() {
            Ok([Access::Denied]) => self.hidden_table(name).await,
            _ => error,
        }
    }

    /// The captured columns of an instance, in their order.
    pub(super) async fn captured(&self, instance: &InstanceName) -> Result<Vec<Column>> {
        let answer = match self.ask(catalog::captured_columns(instance)).await {
            Ok(answer) => answer,
            Err(fault) => return Err(self.instance_error(instance, fault).await),
        };
        let mut columns = captured_columns(&answer)?;
        if columns.is_empty() {
            return Err(unknown(instance));
        }
        columns.sort_by_key(|(ordinal, _)| *ordinal);
        Ok(columns.into_iter().map(|(_, column)| column).collect())
    }

    /// The columns of a table as it is now.
    pub(super) async fn table_columns(&self, table: &TableName) -> Result<Vec<TableColumn>> {
        let object = ObjectName::of_table(table).map_err(|error| error.with("table", table))?;
        let answer = match self.ask(catalog::table_columns(&object)).await {
            Ok(answer) => answer,
            Err(fault) => return Err(self.table_error(table, fault).await),
        };
        let columns = table_columns(&answer)?;
        if columns.is_empty() {
            return Err(self.hidden_table(table).await);
        }
        Ok(columns)
    }
}

fn identity(id: Option<i64>) -> Result<i32> {
    let id = id.and_then(|id| i32::try_from(id).ok());
    id.ok_or_else(|| Error::bug("a column has no id"))
}

fn captured_columns(answer: &Answer) -> Result<Vec<(Option<i64>, Column)>> {
    answer
        .rows()
        .map(|row| {
            let described = Described {
                name: row.some_text(3)?,
                length: row.int(4)?,
                precision: row.int(5)?,
                scale: row.int(6)?,
                digits: row.int(7)?,
            };
            let id = identity(row.int(1)?)?;
            Ok((row.int(2)?, Column::new(row.some_text(0)?, id, described.sql_type(), true)))
        })
        .collect()
}

fn table_columns(answer: &Answer) -> Result<Vec<TableColumn>> {
    answer
        .rows()
        .map(|row| {
            let name = row.text(2)?.unwrap_or_default();
            let scale = row.int(5)?;
            let described = Described {
                name,
                length: row.int(3)?.map(|bytes| characters(name, bytes)),
                precision: row.int(4)?,
                scale,
                digits: scale,
            };
            let id = identity(row.int(0)?)?;
            let nullable = row.bit(6)?.unwrap_or(true);
            let mut column = Column::new(row.some_text(1)?, id, described.sql_type(), nullable);
            column.computed = row.bit(7)?.unwrap_or(false);
            Ok(TableColumn { column, collation: row.text(8)?.map(str::to_owned) })
        })
        .collect()
}

/// A captured column with what the table says about it. A column that the table no longer has reads
/// NULL.
fn completed(mut column: Column, present: &[TableColumn]) -> Column {
    if let Some(own) = present.iter().find(|own| own.column.id == column.id) {
        column.nullable = own.column.nullable;
        column.computed = own.column.computed;
    }
    column
}

/// The instances of the table that a reference means.
fn choose(listed: &[Listed], table: &TableRef) -> Result<Vec<Listed>> {
    let shown = |instance: &Listed| match table {
        TableRef::Table(_) => instance.table.to_string(),
        TableRef::Instance(_) => instance.name.clone(),
    };
    let names: Vec<String> = listed.iter().map(shown).collect();
    let wanted = table.to_string();
    let chosen = named(&names, &wanted).and_then(|name| {
        listed.iter().zip(&names).find(|(_, own)| **own == name).map(|(one, _)| one.table.clone())
    });
    let Some(chosen) = chosen else {
        let alike: BTreeSet<_> =
            names.into_iter().filter(|name| resembles(name, &wanted)).collect();
        return Err(not_captured(table, &alike));
    };
    Ok(listed.iter().filter(|instance| instance.table == chosen).cloned().collect())
}

/// The exact name, or else the only one that differs in case alone.
fn named(names: &[String], wanted: &str) -> Option<String> {
    if names.iter().any(|name| name == wanted) {
        return Some(wanted.into());
    }
    let alike: BTreeSet<_> =
        names.iter().filter(|name| name.to_lowercase() == wanted.to_lowercase()).collect();
    let mut alike = alike.into_iter();
    alike.next().filter(|_| alike.next().is_none()).cloned()
}

/// True for names worth suggesting: one contains the other, or they share a long beginning.
fn resembles(name: &str, wanted: &str) -> bool {
    let (name, wanted) = (name.to_lowercase(), wanted.to_lowercase());
    let shared = name.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
    name.contains(&wanted) || wanted.contains(&name) || 2 * shared > name.chars().count()
}

fn not_captured(reference: &TableRef, alike: &BTreeSet<String>) -> Error {
    let error = Error::new(
        ErrorKind::Config,
        "nothing is captured under this name, or the login may not see it",
    )
    .with("table", reference);
    let remedy = "enable the table for capture, or grant SELECT on it and the gating role";
    if alike.is_empty() {
        return error.remedy(remedy);
    }
    let alike: Vec<_> = alike.iter().map(String::as_str).collect();
    error
        .with("alike", alike.join(", "))
        .remedy(format!("did you mean {}? otherwise {remedy}", alike.join(" or ")))
}
