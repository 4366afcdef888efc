//! What operators and jobs do at the source.

use std::time::Duration;

use cdc_core::{InstanceName, Lsn, SqlType};
use cdc_fake::{Cleanup, ColumnDefinition, EnableOptions, SqlResult, Value};

use super::{
    BASE, Fork, Inner, LOGIN, Stage,
    changes::{EVERY, set},
    source_name,
};
use crate::script::Act;

/// Rows that one delete of cleanup removes.
const CLEANUP_ROWS: usize = 3;

/// Does at most so many steps of a cleanup. True when it did any.
fn clean(mut cleanup: Cleanup, steps: usize) -> bool {
    std::iter::from_fn(|| cleanup.step()).take(steps).count() > 0
}

impl Stage {
    /// Does what an operator or a job does. True when something is different now.
    pub(super) fn operate(&self, inner: &mut Inner, act: &Act) -> SqlResult<bool> {
        let database = &self.database;
        Ok(match act {
            Act::Pass(millis) => {
                database.clock().advance(Duration::from_millis((*millis).into()));
                *millis > 0
            }
            // Together with a restore it can make another log look like the same one.
            Act::SetBack(_) if !inner.forks.is_empty() => false,
            Act::SetBack(millis) => {
                let now = database.clock().time();
                inner.clock_max = inner.clock_max.max(Some(now));
                database.clock().set_back(Duration::from_millis((*millis).into()));
                *millis > 0
            }
            Act::Idle => database.write_idle_entry().is_some(),
            Act::Cleanup => clean(database.begin_cleanup(CLEANUP_ROWS), usize::MAX),
            Act::CleanupSteps(steps) => {
                clean(database.begin_cleanup(CLEANUP_ROWS), (*steps).into())
            }
            Act::CleanupNewest(table) => self.cleanup_newest(inner, self.table(*table))?,
            Act::Revoke(table) => self.revoke(inner, self.table(*table)),
            Act::Lockout(table) => {
                let revoked = self.revoke(inner, self.table(*table));
                clean(database.begin_cleanup(CLEANUP_ROWS), usize::MAX);
                revoked
            }
            Act::Grant(table) => self.grant(inner, self.table(*table)),
            Act::StopCapture => {
                let ran = database.capture_runs();
                database.stop_capture();
                ran
            }
            Act::StartCapture => {
                let ran = database.capture_runs();
                database.start_capture();
                !ran
            }
            Act::Lag(seconds) => {
                self.lag(*seconds);
                std::mem::replace(&mut inner.lag, *seconds) != *seconds
            }
            Act::Backup => {
                let newest = database.newest_record();
                inner.backup = Some((database.backup(), inner.state.clone(), newest));
                true
            }
            Act::Restore if inner.clock_max.is_none() => self.restore(inner),
            _ => return self.define(inner, act),
        })
    }

    fn revoke(&self, inner: &mut Inner, table: &str) -> bool {
        self.database.revoke_select(LOGIN, &source_name(table));
        inner.state.revoked.insert(table.into())
    }

    fn grant(&self, inner: &mut Inner, table: &str) -> bool {
        self.database.grant_select(LOGIN, &source_name(table));
        let again = inner.state.revoked.remove(table);
        if again {
            let run = inner.run;
            inner.hidden_in.insert(table.into(), run);
        }
        again
    }

    fn cleanup_newest(&self, inner: &Inner, table: &str) -> SqlResult<bool> {
        let newest = inner.state.instances.get(table).and_then(|instances| instances.last());
        let (Some(newest), Some(high)) = (newest, self.database.max_lsn()) else {
            return Ok(false);
        };
        let name = InstanceName::new(newest);
        let low = |stage: &Self| stage.database.instance(&name).map(|state| state.low);
        let before = low(self)?;
        self.database.cleanup_instance(&name, high)?;
        Ok(low(self)? != before)
    }

    fn define(&self, inner: &mut Inner, act: &Act) -> SqlResult<bool> {
        let database = &self.database;
        match act {
            Act::AddColumn(table) => {
                let table = self.table(*table);
                inner.names += 1;
                let column = format!("c{}", inner.names);
                let definition = ColumnDefinition::nullable(&column, SqlType::Int);
                let fill = inner.names.is_multiple_of(2).then_some(Value::Int(7));
                database.add_column(&source_name(table), definition, fill)?;
                inner.state.columns.entry(table.into()).or_default().push(column);
            }
            Act::DropColumn(table) => {
                let table = self.table(*table);
                let columns = inner.state.columns.entry(table.into()).or_default();
                if columns.len() <= BASE.len() {
                    return Ok(false);
                }
                database.drop_column(&source_name(table), &columns.remove(BASE.len()))?;
            }
            Act::AlterColumn(table) => {
                let table = self.table(*table);
                let columns = inner.state.columns.get(table);
                let Some(column) = columns.and_then(|columns| columns.last()) else {
                    return Ok(false);
                };
                database.alter_column(&source_name(table), column, SqlType::BigInt)?;
                inner.altered.insert(table.into());
            }
            Act::SecondInstance(table) => {
                let table = self.table(*table);
                if inner.state.instances.get(table).is_none_or(|instances| instances.len() > 1) {
                    return Ok(false);
                }
                self.enable(inner, table)?;
            }
            Act::DropOldInstance(table) => {
                let table = self.table(*table);
                let instances = inner.state.instances.entry(table.into()).or_default();
                if instances.len() < 2 {
                    return Ok(false);
                }
                database.disable_instance(&InstanceName::new(&instances.remove(0)))?;
            }
            Act::Recapture(table) => {
                let table = self.table(*table);
                let instances = inner.state.instances.entry(table.into()).or_default();
                for instance in std::mem::take(instances) {
                    database.disable_instance(&InstanceName::new(&instance))?;
                }
                // Nobody captures this one.
                self.rows(|open| set(open, table, EVERY, 77))?;
                self.enable(inner, table)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn enable(&self, inner: &mut Inner, table: &str) -> SqlResult<()> {
        inner.names += 1;
        let instance = format!("i{}_{table}", inner.names);
        self.database.enable_table(&source_name(table), EnableOptions::named(&instance))?;
        self.database.grant_changes(LOGIN, &InstanceName::new(&instance));
        inner.state.instances.entry(table.into()).or_default().push(instance);
        Ok(())
    }

    fn restore(&self, inner: &mut Inner) -> bool {
        let Some((backup, state, newest)) = inner.backup.take() else { return false };
        let archive = self.database.archive(0);
        let held = inner.state.instances.iter();
        let held = held.map(|(table, names)| (table.clone(), self.held(names))).collect();
        let mapping = self.database.mapping();
        let entries = mapping.iter().map(|entry| (entry.lsn, entry.moment)).collect();
        self.database.restore(&backup);
        // Nobody commits in the same instant on both sides of a restore.
        let moment = self.database.clock().advance(Duration::from_millis(61_237));
        // Rights are the database's, and go back with it.
        let run = inner.run;
        for table in inner.state.revoked.difference(&state.revoked) {
            inner.hidden_in.insert(table.clone(), run);
        }
        inner.state = state;
        let kept = newest.unwrap_or(Lsn::ZERO);
        inner.forks.push(Fork { kept, moment, archive, held, entries });
        true
    }
}
