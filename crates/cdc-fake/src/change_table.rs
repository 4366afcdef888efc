//! A look into change tables past every right and every join, for tests that compare with it.

use cdc_core::{Column, InstanceName, Lsn, change::Operation};

use crate::{
    database::{FakeDatabase, unknown_instance},
    sql_error::SqlResult,
    value::Value,
};

/// A row of a change table.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeRow {
    /// `__$start_lsn`.
    pub commit: Lsn,
    /// `__$command_id`.
    pub command: i32,
    /// `__$seqval`.
    pub seqval: Lsn,
    /// `__$operation`.
    pub operation: Operation,
    /// The captured columns.
    pub values: Vec<Value>,
}

impl FakeDatabase {
    /// The rows of a change table, in change order.
    ///
    /// # Errors
    /// 22960 for an unknown instance.
    pub fn change_rows(&self, instance: &InstanceName) -> SqlResult<Vec<ChangeRow>> {
        let state = self.state();
        let found = state.instance(instance).ok_or_else(|| unknown_instance(instance))?;
        let mut rows = Vec::new();
        for entry in found.entries.iter() {
            for operation in entry.operations() {
                let cell = |column: &Column| entry.cell(*operation, &column.into()).clone();
                rows.push(ChangeRow {
                    commit: entry.commit,
                    command: entry.command,
                    seqval: entry.seqval,
                    operation: *operation,
                    values: found.columns.iter().map(cell).collect(),
                });
            }
        }
        Ok(rows)
    }
}
