//! What happens at the source of a simulation: changes, columns, instances, jobs, restores.

mod changes;
mod operations;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cdc_core::{InstanceName, Length, Lsn, Position, SqlType, TableName, Timestamp};
use cdc_fake::{
    ArchivedCommit, Backup, CaptureSchedule, EnableOptions, FakeDatabase, Side, SqlResult,
    TableDefinition,
};

use crate::script::{Act, CallName, Key, Place, Shape};
use changes::EVERY;

/// The names of tables, by number.
pub const TABLES: [&str; 4] = ["orders", "lines", "stock", "notes"];
/// The columns that every instance captures and nobody drops.
pub const BASE: [&str; 4] = ["id", "k", "a", "b"];
/// Who the runners are to the server: a login with the least rights.
pub const LOGIN: &str = "cdc_reader";

/// The columns and instances of every table, and the tables that the login has no right to.
#[derive(Clone, Default)]
struct State {
    columns: BTreeMap<String, Vec<String>>,
    instances: BTreeMap<String, Vec<String>>,
    revoked: BTreeSet<String>,
}

/// What an instance holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    /// Where it begins.
    pub start: Position,
    /// Its low position; none until capture has reached it.
    pub low: Option<Position>,
}

/// A log that a restore replaced.
#[derive(Clone)]
pub struct Fork {
    /// The newest record that the restored backup's log had, captured or not.
    pub kept: Lsn,
    /// When the restore happened.
    pub moment: Timestamp,
    /// The commits of the replaced log.
    pub archive: Vec<Arc<ArchivedCommit>>,
    /// What the instances of each table held right before.
    pub held: BTreeMap<String, Vec<Held>>,
    /// The entries of its mapping, with their true moments.
    pub entries: BTreeMap<Lsn, Timestamp>,
}

#[derive(Default)]
struct Inner {
    state: State,
    names: u32,
    quiet: bool,
    backup: Option<(Backup, State, Option<Lsn>)>,
    forks: Vec<Fork>,
    altered: BTreeSet<String>,
    /// The run that goes on, or the last one.
    run: u64,
    /// The last run in which the login had no right to a table that it has by now.
    hidden_in: BTreeMap<String, u64>,
    /// Seconds that capture is behind.
    lag: u32,
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
        let inner = Inner { state, lag: shape.lag, ..Inner::default() };
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

    /// A run begins.
    pub fn run_begins(&self) {
        self.inner().run += 1;
    }

    /// True when the login has no right to the table, or had none for a while in the last run.
    #[must_use]
    pub fn is_hidden(&self, table: &str) -> bool {
        let inner = self.inner();
        inner.state.revoked.contains(table) || inner.hidden_in.get(table) == Some(&inner.run)
    }

    /// What the instances of a table hold that exist, in the order of the log.
    #[must_use]
    pub fn held_by(&self, table: &str) -> Vec<Held> {
        let names = self.inner().state.instances.get(table).cloned().unwrap_or_default();
        self.held(&names)
    }

    fn held(&self, instances: &[String]) -> Vec<Held> {
        let look = |name: &String| {
            let state = self.database.instance(&InstanceName::new(name)).ok()?;
            Some(Held { start: state.start.into(), low: state.low.map(Position::from) })
        };
        let mut held: Vec<_> = instances.iter().filter_map(look).collect();
        held.sort_by_key(|one| one.start);
        held
    }

    /// The logs that restores replaced, oldest first.
    #[must_use]
    pub fn forks(&self) -> Vec<Fork> {
        self.inner().forks.clone()
    }

    /// How many restores there were.
    #[must_use]
    pub fn restores(&self) -> usize {
        self.inner().forks.len()
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

    /// How often each kind of act happened and changed something.
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
        // A client is told of a refusal; keys that are taken are refused at any server.
        if let Ok(true) = self.change(&mut inner, act) {
            *inner.acts.entry(name(act)).or_default() += 1;
        }
    }

    fn table(&self, number: u8) -> &'static str {
        let at = usize::from(number).checked_rem(self.tables.len()).unwrap_or_default();
        self.tables.get(at).copied().unwrap_or("orders")
    }
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
