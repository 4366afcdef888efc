//! What the source really committed, as far as a copy may hold it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cdc_conformance::cell::Cell;
use cdc_core::{Lsn, Position, Timestamp, change::Operation};
use cdc_fake::{ArchivedCommit, Value};

use crate::stage::source_name;

/// A change of the source's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// The commit.
    pub commit: Lsn,
    /// The change's place in the log.
    pub seqval: Lsn,
    /// What the row says.
    pub operation: Operation,
    /// The columns that there were.
    pub cells: BTreeMap<String, Cell>,
    /// The true moment.
    pub moment: Timestamp,
    /// False for an update of columns that the instance does not capture.
    pub required: bool,
}

impl Truth {
    /// What tells the change from all others.
    #[must_use]
    pub const fn identity(&self) -> (Lsn, Lsn, i32) {
        (self.commit, self.seqval, self.operation.code())
    }
}

/// The changes of a table in `(after, to]`, in change order. `captured` tells which columns the
/// instance captures that a commit is read from.
#[must_use]
pub fn changes(
    archive: &[Arc<ArchivedCommit>],
    table: &str,
    after: Position,
    to: Position,
    captured: &dyn Fn(Lsn) -> BTreeSet<String>,
) -> Vec<Truth> {
    let name = source_name(table);
    let mut truths = Vec::new();
    for commit in archive {
        let position = Position::from(commit.lsn);
        if position <= after || position > to {
            continue;
        }
        let own: Vec<_> = commit.changes.iter().filter(|change| change.table == name).collect();
        let captured = captured(commit.lsn);
        for (index, change) in own.iter().enumerate() {
            let other = match change.operation {
                Operation::UpdateBefore => own.get(index + 1),
                Operation::UpdateAfter => index.checked_sub(1).and_then(|at| own.get(at)),
                _ => None,
            };
            truths.push(Truth {
                commit: commit.lsn,
                seqval: change.seqval,
                operation: change.operation,
                required: other.is_none_or(|other| {
                    captured.iter().any(|name| other.cells.get(name) != change.cells.get(name))
                }),
                cells: change
                    .cells
                    .iter()
                    .map(|(name, value)| (name.clone(), cell(value)))
                    .collect(),
                moment: commit.moment,
            });
        }
    }
    truths
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Int(number) => Cell::Int(*number),
        Value::Text(text) => Cell::Text(text.to_string()),
        _ => Cell::Null,
    }
}
