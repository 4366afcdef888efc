//! What a database contains, as its catalogue tells it.

use cdc_core::{Column, InstanceName, Lsn, ServerTime, TableName};

use crate::{
    database::{DatabaseState, FakeDatabase},
    index::{Index, IndexKind},
    instance::{DdlEntry, Instance, slot_of},
    log::TableId,
    object::object_id,
    table::{Table, TableColumn},
};

/// A table.
#[derive(Clone, Debug)]
pub struct TableInfo {
    /// `object_id`.
    pub object_id: i32,
    /// Schema and name.
    pub name: TableName,
    /// When it was created, on the server's clock.
    pub created: ServerTime,
    /// When its shape last changed.
    pub modified: ServerTime,
    /// The columns, in `column_id` order.
    pub columns: Vec<ColumnInfo>,
    /// The indexes, by `index_id`.
    pub indexes: Vec<IndexInfo>,
    /// The checks.
    pub checks: Vec<ConstraintInfo>,
    /// The places in `columns` of the columns that rows stand in order of; empty for a heap.
    pub key: Vec<usize>,
    /// Committed rows.
    pub rows: u64,
    /// True when something captures it.
    pub captured: bool,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct ColumnInfo {
    /// Name, id and type.
    pub column: Column,
    /// The identity, when it is one.
    pub identity: Option<IdentityInfo>,
    /// The default.
    pub default: Option<ConstraintInfo>,
    /// The name of its collation, of a text.
    pub collation: Option<String>,
    /// The text of a computed column's expression.
    pub expression: Option<String>,
    /// True when a computed column is stored.
    pub persisted: bool,
}

/// The state of an identity column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityInfo {
    /// The first value.
    pub seed: i64,
    /// The step.
    pub increment: i64,
    /// The last value that was handed out.
    pub last: Option<i64>,
}

/// A constraint with a text.
#[derive(Clone, Debug)]
pub struct ConstraintInfo {
    /// `object_id`.
    pub object_id: i32,
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// An index.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// `index_id`.
    pub id: i32,
    /// The object id of the constraint that it enforces.
    pub object_id: i32,
    /// Its name.
    pub name: String,
    /// What it is for.
    pub kind: IndexKind,
    /// True when the table is stored in its order.
    pub clustered: bool,
    /// True when the server made its name up.
    pub named_by_server: bool,
    /// The key columns' ids, and whether each is in descending order.
    pub columns: Vec<(i32, bool)>,
    /// The included columns' ids.
    pub included: Vec<i32>,
}

/// A capture instance.
#[derive(Clone, Debug)]
pub struct InstanceInfo {
    /// The object id of the change table.
    pub object_id: i32,
    /// The object ids of its functions for all and for net changes.
    pub functions: [i32; 2],
    /// Its name.
    pub name: InstanceName,
    /// The captured table.
    pub table: TableName,
    /// The captured table's object id.
    pub source_object_id: i32,
    /// `start_lsn`: the commit that enabled it.
    pub start: Lsn,
    /// The low watermark; none until capture has processed the enable.
    pub low: Option<Lsn>,
    /// The captured columns, in order.
    pub columns: Vec<Column>,
    /// The name of each captured column's collation, of a text.
    pub collations: Vec<Option<String>>,
    /// The columns of the unique index.
    pub key: Vec<String>,
    /// The gating role.
    pub role: Option<String>,
    /// The name of the unique index.
    pub index_name: Option<String>,
    /// True when net changes may be asked for.
    pub net_changes: bool,
    /// When it was created, on the server's clock.
    pub created: ServerTime,
    /// Rows of the change table.
    pub rows: u64,
    /// The history of schema changes.
    pub ddl: Vec<DdlEntry>,
    /// True for a captured column that the table has no more.
    pub lost_columns: bool,
}

impl FakeDatabase {
    /// True when capture is turned on.
    #[must_use]
    pub fn has_cdc(&self) -> bool {
        self.look().cdc
    }

    /// The tables, by object.
    #[must_use]
    pub fn tables(&self) -> Vec<TableInfo> {
        let state = self.look();
        state.tables.iter().map(|(id, table)| state.table_info(*id, table)).collect()
    }

    /// A table by its name, without regard to case where the database has none.
    #[must_use]
    pub fn table_info(&self, name: &TableName) -> Option<TableInfo> {
        let state = self.look();
        state.find_table(name).map(|(id, table)| state.table_info(id, table))
    }

    /// The capture instances, by object.
    #[must_use]
    pub fn instances(&self) -> Vec<InstanceInfo> {
        let state = self.look();
        state.instances.values().map(|instance| state.instance_info(instance)).collect()
    }

    /// A capture instance by its name, without regard to case where the database has none.
    #[must_use]
    pub fn instance_info(&self, name: &str) -> Option<InstanceInfo> {
        let state = self.look();
        let found = state.instances.values().find(|other| state.same(other.name.as_str(), name));
        found.map(|instance| state.instance_info(instance))
    }

    /// True when two names are the same in this database.
    #[must_use]
    pub fn same_name(&self, one: &str, other: &str) -> bool {
        self.look().same(one, other)
    }

    /// The last row version that was handed out: `@@DBTS`.
    #[must_use]
    pub fn last_row_version(&self) -> u64 {
        self.look().row_version
    }

    /// Open transactions: their numbers, when each began on the server's clock, and whether it
    /// has written.
    #[must_use]
    pub fn open_transactions(&self) -> Vec<(i64, ServerTime, bool)> {
        let state = self.look();
        let one = |(id, open): (
            &crate::transaction::TransactionId,
            &crate::transaction::OpenTransaction,
        )| {
            (i64::from(id.0), state.zone.reading(open.began), open.has_written())
        };
        state.open.iter().map(one).collect()
    }
}

impl DatabaseState {
    fn table_info(&self, id: TableId, table: &Table) -> TableInfo {
        let live = || table.columns.iter().enumerate().filter(|(_, column)| !column.dropped);
        let places: Vec<usize> = live().map(|(slot, _)| slot).collect();
        let place = |slot: &usize| places.iter().position(|other| other == slot);
        TableInfo {
            object_id: object_id(id.0),
            name: table.name.clone(),
            created: table.created,
            modified: table.modified,
            columns: live().map(|(_, column)| column_info(column)).collect(),
            indexes: table.indexes.iter().map(index_info).collect(),
            checks: table
                .checks
                .iter()
                .filter(|check| !check.definition.text.is_empty())
                .map(|check| ConstraintInfo {
                    object_id: object_id(check.object),
                    name: check.name.clone(),
                    text: check.definition.text.clone(),
                })
                .collect(),
            key: table.key.iter().filter_map(place).collect(),
            rows: count(table.rows.len()),
            captured: self.instances_of(id).next().is_some(),
        }
    }

    fn instance_info(&self, instance: &Instance) -> InstanceInfo {
        let table = self.tables.get(&instance.table);
        let [changes, all, net] = instance.objects;
        let lost = |column: &Column| {
            table.is_none_or(|table| table.live_columns().all(|other| other.id != column.id))
        };
        let collation = |column: &Column| {
            let captured = table?.columns.get(slot_of(column))?;
            captured.collation().map(str::to_owned)
        };
        InstanceInfo {
            object_id: object_id(changes),
            functions: [object_id(all), object_id(net)],
            name: instance.name.clone(),
            table: table.map_or_else(|| TableName::new("dbo", ""), |table| table.name.clone()),
            source_object_id: object_id(instance.table.0),
            start: instance.start,
            low: instance.low,
            columns: instance.columns.clone(),
            collations: instance.columns.iter().map(collation).collect(),
            key: instance.key.clone(),
            role: instance.role.clone(),
            index_name: instance.index_name.clone(),
            net_changes: instance.net_changes,
            created: instance.created,
            rows: count(instance.entries.rows()),
            ddl: instance.ddl.clone(),
            lost_columns: instance.columns.iter().any(lost),
        }
    }
}

fn count(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

fn column_info(column: &TableColumn) -> ColumnInfo {
    ColumnInfo {
        column: column.column.clone(),
        identity: column.identity.map(|identity| IdentityInfo {
            seed: identity.seed,
            increment: identity.increment,
            last: identity.last,
        }),
        default: column.default.as_ref().map(|default| ConstraintInfo {
            object_id: object_id(default.object),
            name: default.name.clone(),
            text: default.definition.text.clone(),
        }),
        collation: column.collation().map(str::to_owned),
        expression: column.expression.clone(),
        persisted: column.persisted,
    }
}

fn index_info(index: &Index) -> IndexInfo {
    let id = |slot: usize| i32::try_from(slot + 1).unwrap_or(i32::MAX);
    IndexInfo {
        id: index.id,
        object_id: object_id(index.object),
        name: index.name.clone(),
        kind: index.kind,
        clustered: index.clustered,
        named_by_server: index.named_by_server,
        columns: index.slots.iter().map(|(slot, descending)| (id(*slot), *descending)).collect(),
        included: index.included.iter().map(|slot| id(*slot)).collect(),
    }
}
