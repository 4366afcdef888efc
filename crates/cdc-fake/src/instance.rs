//! Capture instances: a table's captured columns, the change table with its rows, and the history
//! of schema changes.

use cdc_core::{Column, InstanceName, Lsn, ServerTime, change::Operation, table::NullMeaning};

use crate::{
    change_entries::ChangeEntries,
    log::{InstanceId, RowChange, TableId},
    sql_error::SqlResult,
    table::with_slot,
    value::Value,
};

static NULL: Value = Value::Null;

/// How a table is enabled for capture; the default captures every column.
#[derive(Clone, Debug, Default)]
pub struct EnableOptions {
    /// The instance's name; `<schema>_<table>` when none is given.
    pub name: Option<String>,
    /// The captured columns; all when none are given.
    pub columns: Option<Vec<String>>,
    /// The columns of the unique index; the primary key's when none are given.
    pub index: Option<Vec<String>>,
    /// The gating role.
    pub role: Option<String>,
    /// The name of the unique index, for the catalogue.
    pub index_name: Option<String>,
    /// True to support net changes.
    pub net_changes: bool,
}

impl EnableOptions {
    /// Sets the name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.into()), ..Self::default() }
    }

    /// Sets the captured columns.
    #[must_use]
    pub fn columns(mut self, columns: &[&str]) -> Self {
        self.columns = Some(columns.iter().map(|name| (*name).into()).collect());
        self
    }

    /// Sets the gating role.
    #[must_use]
    pub fn role(mut self, role: &str) -> Self {
        self.role = Some(role.into());
        self
    }

    /// Sets the columns of the unique index.
    #[must_use]
    pub fn index(mut self, columns: &[&str]) -> Self {
        self.index = Some(columns.iter().map(|name| (*name).into()).collect());
        self
    }
}

/// A row operation in a change table: one row, or the two images of an update.
#[derive(Clone, Debug)]
pub(crate) struct ChangeEntry {
    pub(crate) commit: Lsn,
    pub(crate) seqval: Lsn,
    pub(crate) command: i32,
    pub(crate) change: RowChange,
}

impl ChangeEntry {
    /// How many rows of the change table the entry is.
    pub(crate) const fn rows(&self) -> usize {
        match self.change {
            RowChange::Update(..) => 2,
            _ => 1,
        }
    }

    /// The operations of the entry's rows, in order.
    pub(crate) const fn operations(&self) -> &'static [Operation] {
        match self.change {
            RowChange::Delete(_) => &[Operation::Delete],
            RowChange::Insert(_) => &[Operation::Insert],
            RowChange::Update(..) => &[Operation::UpdateBefore, Operation::UpdateAfter],
        }
    }

    /// What capture wrote into a column of the row with this operation.
    pub(crate) fn cell(&self, operation: Operation, column: &CapturedCell) -> &Value {
        let slot = column.slot;
        let (row, after) = match (&self.change, operation) {
            (RowChange::Delete(row) | RowChange::Insert(row), _) => (row, None),
            (RowChange::Update(before, after), Operation::UpdateBefore) => (before, Some(after)),
            (RowChange::Update(_, after), _) => (after, None),
        };
        let value = row.get(slot).unwrap_or(&NULL);
        let known = match column.meaning {
            NullMeaning::Null => true,
            NullMeaning::Unknown => false,
            NullMeaning::UnknownBefore => {
                !matches!(operation, Operation::Delete | Operation::UpdateBefore)
            }
            NullMeaning::UnknownUnchanged => {
                after.is_none_or(|after| after.get(slot).unwrap_or(&NULL) != value)
            }
        };
        if known { value } else { &NULL }
    }
}

/// Where a captured column's cells are, and which of them capture leaves out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedCell {
    slot: usize,
    meaning: NullMeaning,
}

impl From<&Column> for CapturedCell {
    fn from(column: &Column) -> Self {
        Self { slot: slot_of(column), meaning: column.null_meaning() }
    }
}

/// The slot of a column in rows.
pub(crate) fn slot_of(column: &Column) -> usize {
    usize::try_from(column.id).unwrap_or(0).wrapping_sub(1)
}

/// A row of the history of schema changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DdlEntry {
    /// `ddl_lsn`: its own place in the log, no commit.
    pub lsn: Lsn,
    /// `ddl_command`.
    pub statement: String,
    /// `ddl_time`: the server's clock in whole minutes.
    pub time: ServerTime,
    /// `required_column_update`: a captured column's type changed.
    pub captured_column_changed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Instance {
    pub(crate) id: InstanceId,
    pub(crate) name: InstanceName,
    pub(crate) table: TableId,
    pub(crate) start: Lsn,
    /// None until capture has processed the enable.
    pub(crate) low: Option<Lsn>,
    pub(crate) columns: Vec<Column>,
    pub(crate) key: Vec<String>,
    pub(crate) role: Option<String>,
    pub(crate) index_name: Option<String>,
    pub(crate) net_changes: bool,
    pub(crate) created: ServerTime,
    /// The numbers behind the object ids of the change table, of its function for all changes and
    /// of the one for net changes.
    pub(crate) objects: [u32; 3],
    pub(crate) entries: ChangeEntries,
    pub(crate) ddl: Vec<DdlEntry>,
}

impl Instance {
    /// True when an operation leaves a row in this change table: an update that leaves every
    /// captured column as it was does not.
    pub(crate) fn records(&self, change: &RowChange) -> bool {
        match change {
            RowChange::Update(before, after) => self.columns.iter().any(|column| {
                let slot = slot_of(column);
                !column.computed
                    && before.get(slot).unwrap_or(&NULL) != after.get(slot).unwrap_or(&NULL)
            }),
            _ => true,
        }
    }

    /// The index of the first entry behind `(commit, command)`.
    pub(crate) fn index_behind(&self, commit: Lsn, command: i32) -> usize {
        self.entries.partition_point(|entry| (entry.commit, entry.command) <= (commit, command))
    }

    /// The index of the first entry at or after `commit`.
    pub(crate) fn index_from(&self, commit: Lsn) -> usize {
        self.entries.partition_point(|entry| entry.commit < commit)
    }

    /// True when a row lies in `[from, to]`.
    pub(crate) fn has_rows(&self, from: Lsn, to: Lsn) -> bool {
        self.entries.get(self.index_from(from)).is_some_and(|entry| entry.commit <= to)
    }

    /// Removes at most `limit` rows below `low`, whole operations. Returns how many rows went.
    pub(crate) fn remove_below(&mut self, low: Lsn, limit: usize) -> usize {
        let mut removed = 0;
        while removed < limit {
            match self.entries.front() {
                Some(entry) if entry.commit < low => removed += entry.rows(),
                _ => break,
            }
            self.entries.pop_front();
        }
        removed
    }

    /// Rewrites one column of every row after its type was altered.
    pub(crate) fn convert(
        &mut self,
        slot: usize,
        change: impl Fn(&Value) -> SqlResult<Value>,
    ) -> SqlResult<()> {
        for entry in self.entries.iter_mut() {
            match &mut entry.change {
                RowChange::Delete(row) | RowChange::Insert(row) => {
                    *row = with_slot(row, slot, &change)?;
                }
                RowChange::Update(before, after) => {
                    *before = with_slot(before, slot, &change)?;
                    *after = with_slot(after, slot, &change)?;
                }
            }
        }
        Ok(())
    }
}
