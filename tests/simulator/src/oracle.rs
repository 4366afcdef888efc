//! What the source really committed, as far as a copy may hold it.

use std::{collections::BTreeMap, sync::Arc};

use cdc_conformance::cell::Cell;
use cdc_core::{Lsn, Position, Timestamp, change::Operation};
use cdc_fake::{ArchivedCommit, Value};

use crate::stage::{BASE, source_name};

/// A change of the source's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// The commit.
    pub commit: Lsn,
    /// The change's place in the log.
    pub seqval: Lsn,
    /// What the row says.
    pub operation: Operation,
    /// The columns that every instance captures.
    pub cells: BTreeMap<String, Cell>,
    /// The true moment.
    pub moment: Timestamp,
    /// False for an update that an instance with few columns leaves out.
    pub required: bool,
}

impl Truth {
    /// What tells the change from all others.
    #[must_use]
    pub const fn identity(&self) -> (Lsn, Lsn, i32) {
        (self.commit, self.seqval, self.operation.code())
    }
}

/// The changes of a table in `(after, to]`, in change order.
#[must_use]
pub fn changes(
    archive: &[Arc<ArchivedCommit>],
    table: &str,
    after: Position,
    to: Position,
) -> Vec<Truth> {
    let name = source_name(table);
    let mut truths = Vec::new();
    for commit in archive {
        let position = Position::from(commit.lsn);
        if position <= after || position > to {
            continue;
        }
        let own: Vec<_> = commit.changes.iter().filter(|change| change.table == name).collect();
        for (index, change) in own.iter().enumerate() {
            let cells = base(&change.cells);
            let other = match change.operation {
                Operation::UpdateBefore => own.get(index + 1),
                Operation::UpdateAfter => index.checked_sub(1).and_then(|at| own.get(at)),
                _ => None,
            };
            truths.push(Truth {
                commit: commit.lsn,
                seqval: change.seqval,
                operation: change.operation,
                required: other.is_none_or(|other| base(&other.cells) != cells),
                cells,
                moment: commit.moment,
            });
        }
    }
    truths
}

fn base(cells: &BTreeMap<String, Value>) -> BTreeMap<String, Cell> {
    let cell = |name: &str| match cells.get(name) {
        Some(Value::Int(number)) => Cell::Int(*number),
        Some(Value::Text(text)) => Cell::Text(text.to_string()),
        _ => Cell::Null,
    };
    BASE.iter().map(|name| ((*name).to_owned(), cell(name))).collect()
}
