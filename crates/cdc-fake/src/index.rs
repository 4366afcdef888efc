//! Indexes of a table: what they are over, and the keys of those that are unique.

use std::collections::BTreeMap;

use crate::{
    key::{SortKey, sort_key_of},
    table::Table,
    value::Value,
};

static NULL: Value = Value::Null;

/// What an index is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// `CREATE INDEX`.
    Plain,
    /// `CREATE UNIQUE INDEX`.
    Unique,
    /// `UNIQUE` as a constraint.
    UniqueConstraint,
    /// `PRIMARY KEY`.
    PrimaryKey,
}

impl IndexKind {
    /// True when no two rows may have the same key.
    #[must_use]
    pub const fn is_unique(self) -> bool {
        !matches!(self, Self::Plain)
    }
}

/// An index as `CREATE INDEX` or a constraint declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDefinition {
    /// Its name; the server makes one up for a constraint without a name.
    pub name: Option<String>,
    /// The key columns, and whether each is in descending order.
    pub columns: Vec<(String, bool)>,
    /// Columns that are only carried along.
    pub included: Vec<String>,
    /// What it is for.
    pub kind: IndexKind,
    /// True when the table is stored in its order.
    pub clustered: bool,
}

impl IndexDefinition {
    /// An index over columns in ascending order.
    #[must_use]
    pub fn new(kind: IndexKind, columns: &[&str]) -> Self {
        Self {
            name: None,
            columns: columns.iter().map(|name| ((*name).into(), false)).collect(),
            included: Vec::new(),
            kind,
            clustered: kind == IndexKind::PrimaryKey,
        }
    }

    /// The same with a name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// An index of a table.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// `index_id`: 1 for a clustered one, from 2 on otherwise.
    pub(crate) id: i32,
    /// The number that a constraint's object id comes from.
    pub(crate) object: u32,
    pub(crate) name: String,
    pub(crate) named_by_server: bool,
    pub(crate) slots: Vec<(usize, bool)>,
    pub(crate) included: Vec<usize>,
    pub(crate) kind: IndexKind,
    pub(crate) clustered: bool,
    /// The committed keys and the rows they name; kept for unique ones beside the primary key,
    /// whose keys are the places of the rows themselves.
    pub(crate) keys: BTreeMap<SortKey, SortKey>,
}

impl Index {
    /// The key of a row.
    pub(crate) fn key_of(&self, row: &[Value], table: &Table) -> SortKey {
        sort_key_of(
            self.slots
                .iter()
                .map(|(slot, _)| (row.get(*slot).unwrap_or(&NULL), table.order_of(*slot))),
        )
    }

    /// True when its keys are kept here.
    pub(crate) const fn keeps_keys(&self) -> bool {
        self.kind.is_unique() && !matches!(self.kind, IndexKind::PrimaryKey)
    }

    /// Takes over what a transaction did to the keys.
    pub(crate) fn publish(&mut self, keys: BTreeMap<SortKey, Option<SortKey>>) {
        for (key, row) in keys {
            match row {
                Some(row) => self.keys.insert(key, row),
                None => self.keys.remove(&key),
            };
        }
    }

    /// Fills the keys from the table's rows again. False when two rows have the same.
    pub(crate) fn fill(&mut self, table: &Table) -> bool {
        let mut keys = BTreeMap::new();
        if self.keeps_keys() {
            for (place, row) in &table.rows {
                if keys.insert(self.key_of(row, table), place.clone()).is_some() {
                    return false;
                }
            }
        }
        self.keys = keys;
        true
    }

    pub(crate) fn covers(&self, slot: usize) -> bool {
        self.slots.iter().any(|(other, _)| *other == slot) || self.included.contains(&slot)
    }
}
