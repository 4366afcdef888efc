//! What was really committed, kept past every cleanup: what tests compare copies with.
//!
//! No server has it. It is part of the database's state, so a restore takes it back too.

use std::{collections::BTreeMap, sync::Arc};

use cdc_core::{Lsn, TableName, Timestamp, change::Operation};

use crate::{
    database::{DatabaseState, FakeDatabase},
    log::{LogChange, RowChange},
    value::{Row, Value},
};

/// A committed transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedCommit {
    /// Its commit LSN.
    pub lsn: Lsn,
    /// The true moment.
    pub moment: Timestamp,
    /// Its changes, in the order of their commands.
    pub changes: Vec<ArchivedChange>,
}

/// A change of one row; an update is two.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedChange {
    /// The table.
    pub table: TableName,
    /// The record's place in the log.
    pub seqval: Lsn,
    /// What the row says.
    pub operation: Operation,
    /// The columns that existed, with their values.
    pub cells: BTreeMap<String, Value>,
}

/// The commits so far, in log order; nothing while nobody asked for them.
pub(crate) type Archive = Option<Vec<Arc<ArchivedCommit>>>;

impl FakeDatabase {
    /// Keeps every commit from now on.
    pub fn keep_archive(&self) {
        self.state().archive.get_or_insert_default();
    }

    /// The commits that were kept, behind the first `skip`, in log order.
    #[must_use]
    pub fn archive(&self, skip: usize) -> Vec<Arc<ArchivedCommit>> {
        let state = self.state();
        let kept = state.archive.iter().flatten();
        kept.skip(skip).map(Arc::clone).collect()
    }
}

impl DatabaseState {
    /// Keeps a commit, when commits are kept.
    pub(crate) fn keep(&mut self, lsn: Lsn, moment: Timestamp, changes: &[LogChange]) {
        if self.archive.is_none() {
            return;
        }
        let mut kept = Vec::new();
        for change in changes {
            let Ok(table) = self.table(change.table) else { continue };
            let cells = |row: &Row| {
                let live = table.columns.iter().enumerate().filter(|(_, column)| !column.dropped);
                live.map(|(slot, column)| {
                    (column.column.name.clone(), row.get(slot).cloned().unwrap_or(Value::Null))
                })
                .collect()
            };
            let rows: Vec<(Operation, &Row)> = match &change.change {
                RowChange::Delete(row) => vec![(Operation::Delete, row)],
                RowChange::Insert(row) => vec![(Operation::Insert, row)],
                RowChange::Update(before, after) => {
                    vec![(Operation::UpdateBefore, before), (Operation::UpdateAfter, after)]
                }
            };
            kept.extend(rows.into_iter().map(|(operation, row)| ArchivedChange {
                table: table.name.clone(),
                seqval: change.seqval,
                operation,
                cells: cells(row),
            }));
        }
        if let Some(archive) = &mut self.archive {
            archive.push(Arc::new(ArchivedCommit { lsn, moment, changes: kept }));
        }
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::SqlType;

    use super::*;
    use crate::{FakeServer, TableDefinition, VirtualClock, Zone};

    #[test]
    fn the_archive_outlives_cleanup_and_follows_a_restore() {
        let clock = VirtualClock::manual(Timestamp::from_micros(0));
        let database = FakeServer::new(clock, Zone::UTC).database("shop");
        database.keep_archive();
        let table = TableName::new("dbo", "t");
        let definition = TableDefinition::new("t").column("id", SqlType::Int);
        database.create_table(definition.primary_key(&["id"])).expect("new");
        let insert = |id: i64| {
            database.transact(|tx| tx.insert(&table, vec![Value::Int(id)])).expect("free").lsn
        };
        let first = insert(1);
        let backup = database.backup();
        insert(2);
        assert_eq!(database.archive(0).len(), 2);
        database.restore(&backup);
        let kept = database.archive(0);
        assert_eq!(kept.iter().map(|commit| commit.lsn).collect::<Vec<_>>(), [first]);
        let change = kept.first().and_then(|commit| commit.changes.first()).expect("a change");
        assert_eq!(change.operation, Operation::Insert);
        assert_eq!(change.cells.get("id"), Some(&Value::Int(1)));
        assert_eq!(database.archive(1), []);
    }
}
