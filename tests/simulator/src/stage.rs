//! What happens at the source of a simulation: changes, columns, instances, jobs, restores.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cdc_core::{InstanceName, Length, Lsn, SqlType, TableName, Timestamp};
use cdc_fake::{
    ArchivedCommit, Backup, CaptureSchedule, ColumnDefinition, EnableOptions, FakeDatabase,
    RowView, Side, SqlResult, TableDefinition, Transaction, Value,
};

use crate::script::{Act, CallName, Key, Keys, Place, Shape};

/// The names of tables, by number.
pub const TABLES: [&str; 4] = ["orders", "lines", "stock", "notes"];
/// The columns that every instance captures and nobody drops.
pub const BASE: [&str; 4] = ["id", "k", "a", "b"];
/// Who the runners are to the server: a login with the least rights.
pub const LOGIN: &str = "cdc_reader";
/// Keys above all that are drawn, for rows that get out of the way.
const AWAY: i64 = 1_000;

/// The columns and instances of every table.
#[derive(Clone, Default)]
struct State {
    columns: BTreeMap<String, Vec<String>>,
    instances: BTreeMap<String, Vec<String>>,
}

/// A log that a restore replaced.
#[derive(Clone)]
pub struct Fork {
    /// The newest LSN that the restored backup had captured.
    pub kept: Lsn,
    /// When the restore happened.
    pub moment: Timestamp,
    /// The commits of the replaced log.
    pub archive: Vec<Arc<ArchivedCommit>>,
}

#[derive(Default)]
struct Inner {
    state: State,
    names: u32,
    quiet: bool,
    backup: Option<(Backup, State, Option<Lsn>)>,
    forks: Vec<Fork>,
    altered: BTreeSet<String>,
    recaptured: BTreeSet<String>,
    revoked: BTreeSet<String>,
    /// The greatest time that the clock showed before it was put back.
    clock_max: Option<Timestamp>,
    acts: BTreeMap<&'static str, u64>,
}

/// What the simulation knows of its source. Clones are the same.
#[derive(Clone)]
pub struct Stage {
    database: FakeDatabase,
    tables: Arc<[&'static str]>,
    place: Place,
    inner: Arc<Mutex<Inner>>,
}

/// The name of a table at the source.
#[must_use]
pub fn source_name(table: &str) -> TableName {
    TableName::new("dbo", table)
}

impl Stage {
    /// The tables of a shape, each captured once.
    ///
    /// # Errors
    /// What the server refuses.
    pub fn new(database: &FakeDatabase, shape: &Shape) -> SqlResult<Self> {
        let tables: Arc<[&'static str]> = TABLES.into_iter().take(shape.tables.len()).collect();
        let mut state = State::default();
        for (name, key) in tables.iter().zip(&shape.tables) {
            let definition = TableDefinition::new(name)
                .column("id", SqlType::Int)
                .column("k", SqlType::NVarChar(Length::Limited(20)))
                .nullable("a", SqlType::Int)
                .nullable("b", SqlType::Int);
            database.create_table(match key {
                Key::Number => definition.primary_key(&["id"]),
                Key::Text => definition.primary_key(&["k"]),
                Key::Both => definition.primary_key(&["k", "id"]),
                Key::Heap => definition,
            })?;
            let first = format!("first_{name}");
            database.enable_table(&source_name(name), EnableOptions::named(&first))?;
            database.grant_select(LOGIN, &source_name(name));
            database.grant_changes(LOGIN, &InstanceName::new(&first));
            state.columns.insert((*name).into(), BASE.map(str::to_owned).to_vec());
            state.instances.insert((*name).into(), vec![first]);
        }
        database.set_retention_minutes(shape.retention);
        let inner = Inner { state, ..Inner::default() };
        let stage = Self {
            database: database.clone(),
            tables,
            place: shape.place,
            inner: Arc::new(Mutex::new(inner)),
        };
        stage.lag(shape.lag);
        Ok(stage)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tables' names.
    #[must_use]
    pub fn tables(&self) -> &[&'static str] {
        &self.tables
    }

    /// While quiet, nothing happens.
    pub fn quiet(&self, quiet: bool) {
        self.inner().quiet = quiet;
    }

    /// The columns that a table has.
    #[must_use]
    pub fn columns(&self, table: &str) -> Vec<String> {
        self.inner().state.columns.get(table).cloned().unwrap_or_default()
    }

    /// The instances that exist.
    #[must_use]
    pub fn instances(&self) -> Vec<InstanceName> {
        let inner = self.inner();
        inner.state.instances.values().flatten().map(|name| InstanceName::new(name)).collect()
    }

    /// The instances of a table that exist.
    #[must_use]
    pub fn instances_of(&self, table: &str) -> Vec<InstanceName> {
        let inner = self.inner();
        let names = inner.state.instances.get(table).into_iter().flatten();
        names.map(|name| InstanceName::new(name)).collect()
    }

    /// True when a column's type was changed, whatever a restore did since.
    #[must_use]
    pub fn altered(&self, table: &str) -> bool {
        self.inner().altered.contains(table)
    }

    /// True when the login lost its right to the table for a while.
    #[must_use]
    pub fn revoked(&self, table: &str) -> bool {
        self.inner().revoked.contains(table)
    }

    /// True when capture of the table ended for a while.
    #[must_use]
    pub fn recaptured(&self, table: &str) -> bool {
        self.inner().recaptured.contains(table)
    }

    /// The logs that restores replaced, oldest first.
    #[must_use]
    pub fn forks(&self) -> Vec<Fork> {
        self.inner().forks.clone()
    }

    /// What the clock showed at most before it was put back.
    #[must_use]
    pub fn clock_max(&self) -> Option<Timestamp> {
        self.inner().clock_max
    }

    /// The length of the interval that the server's clock shows twice.
    #[must_use]
    pub const fn repeated_micros(&self) -> i64 {
        self.place.repeated_micros()
    }

    /// How much earlier than the moment a commit may read.
    #[must_use]
    pub const fn early_micros(&self) -> i64 {
        self.place.early_micros()
    }

    /// How often each kind of act happened.
    #[must_use]
    pub fn acts(&self) -> BTreeMap<&'static str, u64> {
        self.inner().acts.clone()
    }

    /// Lets something happen at the call of this kind after `skip` others.
    pub fn plant(&self, call: CallName, skip: u8, act: Act) {
        let stage = self.clone();
        self.database.on_next(call.into(), Side::Before, move |_| match skip.checked_sub(1) {
            Some(skip) => stage.plant(call, skip, act),
            None => {
                stage.act(&act);
            }
        });
    }

    fn lag(&self, seconds: u32) {
        self.database.set_capture(CaptureSchedule::Every {
            interval: Duration::from_secs(5),
            lag: Duration::from_secs(seconds.into()),
        });
    }

    /// Does something at the source. What the server refuses leaves nothing, as for any client.
    pub fn act(&self, act: &Act) {
        let mut inner = self.inner();
        if inner.quiet {
            return;
        }
        *inner.acts.entry(name(act)).or_default() += 1;
        let refused = self.change(&mut inner, act).err();
        drop(inner);
        // A client is told; keys that are taken are refused at any server.
        let _ = refused;
    }

    fn table(&self, number: u8) -> &'static str {
        let at = usize::from(number).checked_rem(self.tables.len()).unwrap_or_default();
        self.tables.get(at).copied().unwrap_or("orders")
    }

    fn change(&self, inner: &mut Inner, act: &Act) -> SqlResult<()> {
        let database = &self.database;
        match act {
            Act::Put { table, keys, value } => {
                let chosen: Vec<_> = match table {
                    Some(table) => vec![self.table(*table)],
                    None => self.tables.to_vec(),
                };
                let work = |open: &mut Transaction| {
                    chosen.iter().try_for_each(|name| put(open, inner, name, *keys, *value))
                };
                database.transact(work).map(drop)
            }
            Act::Set { table, keys, value } => {
                let name = self.table(*table);
                database.transact(|open| set(open, name, *keys, *value)).map(drop)
            }
            Act::SetLast { table, keys, value } => {
                let name = self.table(*table);
                let columns = inner.state.columns.get(name);
                let Some(column) = columns.and_then(|columns| columns.get(BASE.len()..)?.last())
                else {
                    return Ok(());
                };
                let change = |row: &mut cdc_fake::RowEdit<'_>| row.set(column, Value::Int(*value));
                let work = |open: &mut Transaction| {
                    open.update_where(&source_name(name), within(*keys), change).map(drop)
                };
                database.transact(work).map(drop)
            }
            Act::Merge { table, keys, value } => {
                let name = source_name(self.table(*table));
                let change = |row: &mut cdc_fake::RowEdit<'_>| row.set("a", Value::Int(*value));
                database
                    .transact(|open| open.merge_where(&name, within(*keys), change).map(drop))
                    .map(drop)
            }
            Act::Swap { table, one, other } => self.swap(self.table(*table), *one, *other),
            Act::Move { table, keys } => {
                let name = source_name(self.table(*table));
                let change = |row: &mut cdc_fake::RowEdit<'_>| {
                    let id = row.view().int("id").rem_euclid(AWAY).saturating_add(AWAY);
                    row.set("id", Value::Int(id))?;
                    row.set("k", Value::text(&text_key(id)))
                };
                database
                    .transact(|open| open.update_where(&name, within(*keys), change).map(drop))
                    .map(drop)
            }
            Act::Remove { table, keys } => {
                let name = source_name(self.table(*table));
                database
                    .transact(|open| open.delete_where(&name, within(*keys)).map(drop))
                    .map(drop)
            }
            Act::Busy { table, statements } => {
                let name = self.table(*table);
                let work = |open: &mut Transaction| {
                    (0..i64::from(*statements)).try_for_each(|number| {
                        let keys = Keys { first: number % 7, count: 3 };
                        match number % 3 {
                            0 => put(open, inner, name, keys, number),
                            1 => set(open, name, keys, number),
                            _ => open.delete_where(&source_name(name), within(keys)).map(drop),
                        }
                    })
                };
                database.transact(work).map(drop)
            }
            Act::Empty => database.transact(|_| Ok(())).map(drop),
            Act::Rollback { table } => {
                let mut open = database.begin();
                let done = put(&mut open, inner, self.table(*table), EVERY, 13);
                open.rollback();
                done
            }
            _ => self.operate(inner, act),
        }
    }

    fn swap(&self, name: &str, one: i64, other: i64) -> SqlResult<()> {
        let name = source_name(name);
        let picked = move |row: &RowView<'_>| [one, other].contains(&row.int("id"));
        let change = move |row: &mut cdc_fake::RowEdit<'_>| {
            let id = if row.view().int("id") == one { other } else { one };
            row.set("id", Value::Int(id))?;
            row.set("k", Value::text(&text_key(id)))
        };
        let work = |open: &mut Transaction| open.update_where(&name, picked, change).map(drop);
        self.database.transact(work).map(drop)
    }

    /// What operators and jobs do.
    fn operate(&self, inner: &mut Inner, act: &Act) -> SqlResult<()> {
        let database = &self.database;
        match act {
            Act::Pass(millis) => {
                database.clock().advance(Duration::from_millis((*millis).into()));
            }
            // Together with a restore it can make another log look like the same one.
            Act::SetBack(_) if !inner.forks.is_empty() => {}
            Act::SetBack(millis) => {
                let now = database.clock().time();
                inner.clock_max = inner.clock_max.max(Some(now));
                database.clock().set_back(Duration::from_millis((*millis).into()));
            }
            Act::Idle => {
                database.write_idle_entry();
            }
            Act::Cleanup => {
                database.cleanup();
            }
            Act::CleanupSteps(steps) => {
                let mut cleanup = database.begin_cleanup(3);
                for _ in 0..*steps {
                    cleanup.step();
                }
            }
            Act::CleanupNewest(table) => self.cleanup_newest(inner, self.table(*table))?,
            Act::Revoke(table) => self.revoke(inner, self.table(*table)),
            Act::Lockout(table) => {
                self.revoke(inner, self.table(*table));
                database.cleanup();
            }
            Act::Grant(table) => database.grant_select(LOGIN, &source_name(self.table(*table))),
            Act::StopCapture => database.stop_capture(),
            Act::StartCapture => database.start_capture(),
            Act::Lag(seconds) => self.lag(*seconds),
            Act::Backup => {
                inner.backup = Some((database.backup(), inner.state.clone(), database.max_lsn()));
            }
            Act::Restore if inner.clock_max.is_none() => self.restore(inner),
            _ => return self.define(inner, act),
        }
        Ok(())
    }

    fn revoke(&self, inner: &mut Inner, table: &str) {
        self.database.revoke_select(LOGIN, &source_name(table));
        inner.revoked.insert(table.into());
    }

    fn cleanup_newest(&self, inner: &Inner, table: &str) -> SqlResult<()> {
        let newest = inner.state.instances.get(table).and_then(|instances| instances.last());
        if let (Some(newest), Some(high)) = (newest, self.database.max_lsn()) {
            self.database.cleanup_instance(&InstanceName::new(newest), high)?;
        }
        Ok(())
    }

    fn define(&self, inner: &mut Inner, act: &Act) -> SqlResult<()> {
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
                if columns.len() > BASE.len() {
                    database.drop_column(&source_name(table), &columns.remove(BASE.len()))?;
                }
            }
            Act::AlterColumn(table) => {
                let table = self.table(*table);
                let columns = inner.state.columns.get(table);
                if let Some(column) = columns.and_then(|columns| columns.last()) {
                    database.alter_column(&source_name(table), column, SqlType::BigInt)?;
                    inner.altered.insert(table.into());
                }
            }
            Act::SecondInstance(table) => {
                let table = self.table(*table);
                if inner.state.instances.get(table).is_some_and(|instances| instances.len() < 2) {
                    self.enable(inner, table)?;
                }
            }
            Act::DropOldInstance(table) => {
                let table = self.table(*table);
                let instances = inner.state.instances.entry(table.into()).or_default();
                if instances.len() > 1 {
                    database.disable_instance(&InstanceName::new(&instances.remove(0)))?;
                }
            }
            Act::Recapture(table) => {
                let table = self.table(*table);
                let instances = inner.state.instances.entry(table.into()).or_default();
                for instance in std::mem::take(instances) {
                    database.disable_instance(&InstanceName::new(&instance))?;
                }
                inner.recaptured.insert(table.into());
                // Nobody captures this one.
                database.transact(|open| set(open, table, EVERY, 77))?;
                self.enable(inner, table)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn enable(&self, inner: &mut Inner, table: &str) -> SqlResult<()> {
        inner.names += 1;
        let instance = format!("i{}_{table}", inner.names);
        self.database.enable_table(&source_name(table), EnableOptions::named(&instance))?;
        self.database.grant_changes(LOGIN, &InstanceName::new(&instance));
        inner.state.instances.entry(table.into()).or_default().push(instance);
        Ok(())
    }

    fn restore(&self, inner: &mut Inner) {
        let Some((backup, state, newest)) = inner.backup.take() else { return };
        let archive = self.database.archive(0);
        self.database.restore(&backup);
        // Nobody commits in the same instant on both sides of a restore.
        let moment = self.database.clock().advance(Duration::from_millis(61_237));
        inner.state = state;
        inner.forks.push(Fork { kept: newest.unwrap_or(Lsn::ZERO), moment, archive });
    }
}

const EVERY: Keys = Keys { first: 0, count: i64::MAX };

fn text_key(id: i64) -> String {
    format!("K{}-{id}", id.rem_euclid(7))
}

fn within(keys: Keys) -> impl Fn(&RowView<'_>) -> bool {
    let keys = keys.range();
    move |row| keys.contains(&row.int("id"))
}

fn put(
    open: &mut Transaction,
    inner: &Inner,
    table: &str,
    keys: Keys,
    value: i64,
) -> SqlResult<()> {
    let name = source_name(table);
    let width = inner.state.columns.get(table).map_or(BASE.len(), Vec::len);
    let keys = Keys { count: keys.count.min(100), ..keys };
    open.delete_where(&name, within(keys))?;
    let row = |id: i64| {
        let mut row = vec![Value::Int(id), Value::text(&text_key(id))];
        row.resize(width, Value::Int(value));
        row
    };
    open.insert_many(&name, keys.range().map(row).collect()).map(drop)
}

fn set(open: &mut Transaction, table: &str, keys: Keys, value: i64) -> SqlResult<()> {
    let column = if value % 2 == 0 { "a" } else { "b" };
    let change = |row: &mut cdc_fake::RowEdit<'_>| row.set(column, Value::Int(value));
    open.update_where(&source_name(table), within(keys), change).map(drop)
}

/// Changes every row of a table, so that each has an image from the newest instance.
#[must_use]
pub fn touch(table: u8) -> [Act; 2] {
    let of = |value| Act::Set { table, keys: EVERY, value };
    [of(4_711), of(4_712)]
}

/// The act's name, for counts.
#[must_use]
pub const fn name(act: &Act) -> &'static str {
    match act {
        Act::Put { table: Some(_), .. } => "put",
        Act::Put { table: None, .. } => "put-all-tables",
        Act::Set { .. } => "set",
        Act::SetLast { .. } => "set-last",
        Act::Merge { .. } => "merge",
        Act::Swap { .. } => "swap-keys",
        Act::Move { .. } => "move-keys",
        Act::Remove { .. } => "remove",
        Act::Busy { .. } => "busy",
        Act::Empty => "empty",
        Act::Rollback { .. } => "rollback",
        Act::Pass(_) => "pass",
        Act::SetBack(_) => "set-clock-back",
        Act::Idle => "idle-entry",
        Act::Cleanup => "cleanup",
        Act::CleanupSteps(_) => "cleanup-steps",
        Act::CleanupNewest(_) => "cleanup-newest",
        Act::Revoke(_) => "revoke",
        Act::Lockout(_) => "lockout",
        Act::Grant(_) => "grant",
        Act::StopCapture => "stop-capture",
        Act::StartCapture => "start-capture",
        Act::Lag(_) => "lag",
        Act::AddColumn(_) => "add-column",
        Act::DropColumn(_) => "drop-column",
        Act::AlterColumn(_) => "alter-column",
        Act::SecondInstance(_) => "second-instance",
        Act::DropOldInstance(_) => "drop-old-instance",
        Act::Recapture(_) => "recapture",
        Act::Backup => "backup",
        Act::Restore => "restore",
    }
}
