//! What happens at the source of a simulation: changes, columns, instances, cleanup, restores.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use cdc_core::{InstanceName, Lsn, SqlType, TableName};
use cdc_fake::{
    Backup, Call, ColumnDefinition, EnableOptions, FakeDatabase, Side, TableDefinition, Value,
};
use proptest::prelude::*;

/// The tables, all in schema `dbo`.
pub(super) const TABLES: [&str; 2] = ["left", "right"];
/// The columns that every instance captures and nobody drops.
pub(super) const BASE: [&str; 3] = ["id", "a", "b"];

/// Something that happens at the source.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Put {
        table: &'static str,
        first: i64,
        rows: i64,
        value: i64,
    },
    Set {
        table: &'static str,
        first: i64,
        rows: i64,
        value: i64,
    },
    Remove {
        table: &'static str,
        first: i64,
        rows: i64,
    },
    /// One transaction over both tables.
    Both {
        first: i64,
        rows: i64,
        value: i64,
    },
    Pass(u64),
    Idle,
    SetBack(u64),
    Cleanup,
    StopCapture,
    StartCapture,
    AddColumn(&'static str),
    DropColumn(&'static str),
    AlterColumn(&'static str),
    SecondInstance(&'static str),
    DropOldInstance(&'static str),
    Backup,
    Restore,
}

impl Act {
    /// Changes every row.
    pub(super) const fn touch(table: &'static str) -> Self {
        Self::Set { table, first: 0, rows: i64::MAX, value: 4_711 }
    }
}

pub(super) fn acts() -> impl Strategy<Value = Act> {
    let table = || prop::sample::select(TABLES.to_vec());
    let keys = || (0i64..30, prop_oneof![9 => 1i64..6, 1 => Just(60i64)], 0i64..1_000);
    prop_oneof![
        10 => (table(), keys()).prop_map(|(table, (first, rows, value))| {
            Act::Put { table, first, rows, value }
        }),
        8 => (table(), keys()).prop_map(|(table, (first, rows, value))| {
            Act::Set { table, first, rows, value }
        }),
        4 => (table(), keys()).prop_map(|(table, (first, rows, _))| {
            Act::Remove { table, first, rows }
        }),
        3 => keys().prop_map(|(first, rows, value)| Act::Both { first, rows, value }),
        6 => (1u64..900_000).prop_map(Act::Pass),
        1 => (1u64..4_000_000).prop_map(Act::Pass),
        1 => Just(Act::Idle),
        1 => (1u64..1_200_000).prop_map(Act::SetBack),
        3 => Just(Act::Cleanup),
        1 => Just(Act::StopCapture),
        1 => Just(Act::StartCapture),
        2 => table().prop_map(Act::AddColumn),
        1 => table().prop_map(Act::DropColumn),
        1 => prop_oneof![4 => Just(None), 1 => table().prop_map(Some)].prop_map(|table| {
            table.map_or(Act::Idle, Act::AlterColumn)
        }),
        2 => table().prop_map(Act::SecondInstance),
        1 => table().prop_map(Act::DropOldInstance),
        2 => Just(Act::Backup),
        2 => Just(Act::Restore),
    ]
}

#[derive(Clone, Default)]
struct State {
    columns: BTreeMap<String, Vec<String>>,
    instances: BTreeMap<String, Vec<String>>,
}

#[derive(Default)]
struct Inner {
    state: State,
    names: u32,
    quiet: bool,
    backup: Option<(Backup, State, Option<Lsn>)>,
    restored_to: Option<Lsn>,
    altered: BTreeSet<String>,
}

/// What the simulation knows of its source. Clones are the same.
#[derive(Clone, Default)]
pub(super) struct Stage(Arc<Mutex<Inner>>);

impl Stage {
    /// Two tables, each captured once.
    pub(super) fn new(database: &FakeDatabase) -> Self {
        let mut state = State::default();
        for name in TABLES {
            let definition = TableDefinition::new(name)
                .column("id", SqlType::Int)
                .nullable("a", SqlType::Int)
                .nullable("b", SqlType::Int)
                .primary_key(&["id"]);
            database.create_table(definition).expect("new");
            let first = format!("first_{name}");
            let options = EnableOptions::named(&first);
            database.enable_table(&TableName::new("dbo", name), options).expect("new");
            state.columns.insert(name.into(), BASE.map(str::to_owned).to_vec());
            state.instances.insert(name.into(), vec![first]);
        }
        database.set_retention_minutes(12);
        Self(Arc::new(Mutex::new(Inner { state, ..Inner::default() })))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Inner) -> T) -> T {
        work(&mut self.0.lock().expect("whole"))
    }

    /// While quiet, what is planted does not happen.
    pub(super) fn quiet(&self, quiet: bool) {
        self.with(|inner| inner.quiet = quiet);
    }

    pub(super) fn columns(&self, table: &str) -> Vec<String> {
        self.with(|inner| inner.state.columns[table].clone())
    }

    /// True when a column's type was changed, whatever a restore did since.
    pub(super) fn altered(&self, table: &str) -> bool {
        self.with(|inner| inner.altered.contains(table))
    }

    /// The least LSN that a restore went back to.
    pub(super) fn restored_to(&self) -> Option<Lsn> {
        self.with(|inner| inner.restored_to)
    }

    /// Lets something happen at the call of this kind after `skip` others.
    pub(super) fn plant(&self, database: &FakeDatabase, call: Call, skip: usize, what: Act) {
        let stage = self.clone();
        database.on_next(call, Side::Before, move |database| match skip.checked_sub(1) {
            Some(skip) => stage.plant(database, call, skip, what),
            None => act(database, &stage, &what),
        });
    }
}

/// Does something at the source.
pub(super) fn act(database: &FakeDatabase, stage: &Stage, what: &Act) {
    stage.with(|inner| {
        if !inner.quiet {
            inner.act(database, what);
        }
    });
}

impl Inner {
    fn act(&mut self, database: &FakeDatabase, what: &Act) {
        match what {
            Act::Put { table, first, rows, value } => {
                self.put(database, &[*table], *first, *rows, *value);
            }
            Act::Both { first, rows, value } => {
                self.put(database, &TABLES, *first, *rows, *value);
            }
            Act::Set { table, first, rows, value } => set(database, table, *first, *rows, *value),
            Act::Remove { table, first, rows } => {
                let keys = *first..first.saturating_add(*rows);
                let name = TableName::new("dbo", *table);
                database
                    .transact(|open| {
                        open.delete_where(&name, |row| keys.contains(&row.int("id"))).map(|_| ())
                    })
                    .expect("a delete");
            }
            Act::Pass(millis) => {
                database.clock().advance(Duration::from_millis(*millis));
            }
            Act::SetBack(millis) => database.clock().set_back(Duration::from_millis(*millis)),
            Act::Idle => {
                database.write_idle_entry();
            }
            Act::Cleanup => {
                database.cleanup();
            }
            Act::StopCapture => database.stop_capture(),
            Act::StartCapture => database.start_capture(),
            Act::Backup => {
                self.backup = Some((database.backup(), self.state.clone(), database.max_lsn()));
            }
            Act::Restore => self.restore(database),
            _ => self.define(database, what),
        }
    }

    fn put(&self, database: &FakeDatabase, tables: &[&str], first: i64, rows: i64, value: i64) {
        let keys = first..first.saturating_add(rows);
        database
            .transact(|open| {
                for table in tables {
                    let name = TableName::new("dbo", *table);
                    let width = self.state.columns[*table].len();
                    open.delete_where(&name, |row| keys.contains(&row.int("id")))?;
                    let row = |id: i64| {
                        let mut row = vec![Value::Int(id)];
                        row.resize(width, Value::Int(value));
                        row
                    };
                    open.insert_many(&name, keys.clone().map(row).collect())?;
                }
                Ok(())
            })
            .expect("a transaction");
    }

    fn define(&mut self, database: &FakeDatabase, what: &Act) {
        match what {
            Act::AddColumn(table) => {
                self.names += 1;
                let column = format!("c{}", self.names);
                let definition = ColumnDefinition::nullable(&column, SqlType::Int);
                let fill = self.names.is_multiple_of(2).then_some(Value::Int(7));
                let name = TableName::new("dbo", *table);
                database.add_column(&name, definition, fill).expect("a new column");
                self.state.columns.entry((*table).into()).or_default().push(column);
            }
            Act::DropColumn(table) => {
                let columns = self.state.columns.entry((*table).into()).or_default();
                if columns.len() > BASE.len() {
                    let column = columns.remove(BASE.len());
                    let name = TableName::new("dbo", *table);
                    database.drop_column(&name, &column).expect("there");
                }
            }
            Act::AlterColumn(table) => {
                let column = self.state.columns[*table].last().cloned().expect("columns");
                let name = TableName::new("dbo", *table);
                database.alter_column(&name, &column, SqlType::BigInt).expect("wider");
                self.altered.insert((*table).into());
            }
            Act::SecondInstance(table) => {
                let instances = self.state.instances.entry((*table).into()).or_default();
                if instances.len() < 2 {
                    self.names += 1;
                    let instance = format!("i{}_{table}", self.names);
                    let options = EnableOptions::named(&instance);
                    let name = TableName::new("dbo", *table);
                    database.enable_table(&name, options).expect("nothing is open");
                    instances.push(instance);
                }
            }
            Act::DropOldInstance(table) => {
                let instances = self.state.instances.entry((*table).into()).or_default();
                if instances.len() > 1 {
                    let old = instances.remove(0);
                    database.disable_instance(&InstanceName::new(&old)).expect("there");
                }
            }
            _ => {}
        }
    }

    fn restore(&mut self, database: &FakeDatabase) {
        let Some((backup, state, newest)) = self.backup.take() else { return };
        database.restore(&backup);
        // Nobody commits in the same instant on both sides of a restore.
        database.clock().advance(Duration::from_millis(61_237));
        self.state = state;
        let kept = newest.expect("captured before");
        self.restored_to = Some(self.restored_to.map_or(kept, |before| before.min(kept)));
    }
}

fn set(database: &FakeDatabase, table: &str, first: i64, rows: i64, value: i64) {
    let keys = first..first.saturating_add(rows);
    let name = TableName::new("dbo", table);
    let column = if value % 2 == 0 { "a" } else { "b" };
    database
        .transact(|open| {
            let within = |row: &cdc_fake::RowView<'_>| keys.contains(&row.int("id"));
            open.update_where(&name, within, |row| row.set(column, Value::Int(value))).map(|_| ())
        })
        .expect("an update");
}
