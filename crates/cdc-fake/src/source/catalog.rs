//! What is captured, how its columns changed, and what stands in the way of copying it.

use std::collections::BTreeSet;

use async_trait::async_trait;
use cdc_core::{
    CaptureInstance, ClosedRange, InstanceName, Result, TableName, TableRef,
    port::{Catalog, Finding, FindingLevel, SchemaChange},
};

use super::{FakeSource, lsns, not_captured, positions::moment, unknown};
use crate::{
    database::DatabaseState,
    injection::Call,
    instance::Instance,
    permissions::{change_table_grant, table_grant},
};

/// The longest statement that a schema change tells.
const STATEMENT_CHARACTERS: usize = 500;

#[async_trait]
impl Catalog for FakeSource {
    async fn instances(&self, table: &TableRef) -> Result<Vec<CaptureInstance>> {
        self.ask(Call::Instances, |state| self.listed(state, table)).await
    }

    async fn schema_changes(
        &self,
        instance: &InstanceName,
        range: ClosedRange,
    ) -> Result<Vec<SchemaChange>> {
        let (from, to) = lsns(range)?;
        self.ask(Call::SchemaChanges, |state| {
            let found = state
                .instance(instance)
                .filter(|found| self.sees(state, found))
                .ok_or_else(|| unknown(instance))?;
            let inside = found.ddl.iter().filter(|entry| from <= entry.lsn && entry.lsn <= to);
            Ok(inside
                .map(|entry| SchemaChange {
                    at: self.position(entry.lsn),
                    time: state
                        .mapping
                        .at_or_before(entry.lsn)
                        .map(|commit| moment(state, self.zone, commit)),
                    statement: entry.statement.chars().take(STATEMENT_CHARACTERS).collect(),
                    captured_column_changed: entry.captured_column_changed,
                })
                .collect())
        })
        .await
    }

    async fn preflight(&self, tables: &[TableRef]) -> Result<Vec<Finding>> {
        self.ask(Call::Preflight, |state| {
            let mut findings = Vec::new();
            if state.high().is_none() {
                findings.push(Finding::new(
                    FindingLevel::Warning,
                    None,
                    "capture has never written to this database",
                    "check that the capture job and SQL Server Agent run",
                ));
            }
            for table in tables {
                match self.listed(state, table) {
                    Ok(instances) => self.look_at(state, &instances, &mut findings),
                    Err(error) => findings.push(Finding::new(
                        FindingLevel::Failure,
                        None,
                        error.to_string(),
                        error.advice(),
                    )),
                }
            }
            Ok(findings)
        })
        .await
    }
}

impl FakeSource {
    /// The instances of a table that the login sees, oldest first.
    pub(super) fn listed(
        &self,
        state: &DatabaseState,
        table: &TableRef,
    ) -> Result<Vec<CaptureInstance>> {
        let visible: Vec<(&Instance, &TableName)> = state
            .instances
            .values()
            .filter(|instance| self.sees(state, instance))
            .filter_map(|instance| Some((instance, &state.table(instance.table).ok()?.name)))
            .collect();
        let names: Vec<String> = visible
            .iter()
            .map(|(instance, name)| match table {
                TableRef::Table(_) => name.to_string(),
                TableRef::Instance(_) => instance.name.to_string(),
            })
            .collect();
        let wanted = table.to_string();
        let chosen = choose(&names, &wanted).ok_or_else(|| {
            let alike: Vec<_> =
                names.iter().filter(|name| resembles(name, &wanted)).cloned().collect();
            not_captured(table, &alike)
        })?;
        let id = visible
            .iter()
            .zip(&names)
            .find(|(_, name)| **name == chosen)
            .map(|((instance, _), _)| instance.table);
        let mut found: Vec<_> =
            visible.into_iter().filter(|(instance, _)| Some(instance.table) == id).collect();
        found.sort_by_key(|(instance, _)| instance.start);
        Ok(found
            .into_iter()
            .map(|(instance, name)| CaptureInstance {
                name: instance.name.clone(),
                table: name.clone(),
                start: self.position(instance.start),
                columns: instance.columns.clone(),
                key: instance.key.clone(),
            })
            .collect())
    }

    fn look_at(
        &self,
        state: &DatabaseState,
        instances: &[CaptureInstance],
        findings: &mut Vec<Finding>,
    ) {
        for instance in instances {
            let table = Some(&instance.table);
            if !state.permissions.may_select_changes(&self.login, &instance.name) {
                findings.push(Finding::new(
                    FindingLevel::Failure,
                    table,
                    format!("login may not read the change table of {}", instance.name),
                    format!("run: {}", change_table_grant(&self.login, &instance.name)),
                ));
            }
            if !state.permissions.may_select(&self.login, &instance.table) {
                findings.push(Finding::new(
                    FindingLevel::Failure,
                    table,
                    "login may not read the table",
                    format!("run: {}", table_grant(&self.login, &instance.table)),
                ));
            }
            findings.extend(Finding::of_instance(instance));
        }
    }
}

/// The exact name, or else the only one that differs in case alone.
fn choose(names: &[String], wanted: &str) -> Option<String> {
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
