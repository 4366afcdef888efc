//! A database: its state behind one lock, and the handle that tests and sources share.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cdc_core::{InstanceName, Lsn, ServerTime, TableName, Timestamp};

use crate::{
    archive::Archive,
    capture::CaptureJob,
    cleanup::CleanupJob,
    clock::VirtualClock,
    collation::Collation,
    ddl::SchemaChange,
    injection::{Call, Encounter, FaultPlan, Injection, Side},
    instance::Instance,
    jobs::Jobs,
    log::{InstanceId, Log, TableId},
    mapping::{Mapping, MappingEntry},
    options::{DatabaseOptions, Schema},
    permissions::Permissions,
    server::ServerSettings,
    sql_error::{SqlError, SqlResult, number},
    table::{RowView, Table, TableDefinition},
    text_order::folded,
    transaction::{OpenTransaction, TransactionId},
    value::{Row, Value},
};

/// Minutes that cleanup keeps changes, unless told otherwise: three days.
pub const DEFAULT_RETENTION_MINUTES: u32 = 4320;

/// Everything a backup of the database holds.
#[derive(Clone)]
pub(crate) struct DatabaseState {
    pub(crate) name: String,
    /// Changes with everything that a read could see.
    pub(crate) version: u64,
    pub(crate) options: DatabaseOptions,
    pub(crate) created: ServerTime,
    pub(crate) schemas: BTreeMap<String, Schema>,
    pub(crate) jobs: Jobs,
    /// Commits so far that changed something: what snapshots are numbered by.
    pub(crate) commits: u64,
    /// How many read at each commit.
    pub(crate) snapshots: BTreeMap<u64, usize>,
    /// Who waits for whom.
    pub(crate) waits: BTreeMap<TransactionId, TransactionId>,
    pub(crate) collation: Collation,
    pub(crate) cdc: bool,
    pub(crate) retention_minutes: u32,
    pub(crate) tables: BTreeMap<TableId, Table>,
    pub(crate) instances: BTreeMap<InstanceId, Instance>,
    pub(crate) log: Log,
    pub(crate) archive: Archive,
    pub(crate) mapping: Mapping,
    pub(crate) capture: CaptureJob,
    pub(crate) cleanup: Option<CleanupJob>,
    pub(crate) permissions: Permissions,
    pub(crate) row_version: u64,
    pub(crate) next_id: u32,
    /// Counts the forks of the log: a restore starts a new one.
    pub(crate) lineage: u32,
    pub(crate) open: BTreeMap<TransactionId, OpenTransaction>,
    pub(crate) zone: crate::zone::Zone,
}

impl DatabaseState {
    fn new(name: &str, settings: &ServerSettings, cdc: bool, now: Timestamp) -> Self {
        let created = settings.zone.reading(now);
        Self {
            name: name.into(),
            version: 0,
            options: DatabaseOptions {
                collation: settings.collation.name.into(),
                ..DatabaseOptions::default()
            },
            created,
            schemas: BTreeMap::new(),
            jobs: Jobs::default(),
            commits: 0,
            snapshots: BTreeMap::new(),
            waits: BTreeMap::new(),
            collation: settings.collation,
            cdc,
            retention_minutes: DEFAULT_RETENTION_MINUTES,
            tables: BTreeMap::new(),
            instances: BTreeMap::new(),
            log: Log::new(),
            archive: None,
            mapping: Mapping::default(),
            capture: CaptureJob::new(now),
            cleanup: None,
            permissions: Permissions::new(created),
            row_version: 0,
            next_id: 0,
            lineage: 1,
            open: BTreeMap::new(),
            zone: settings.zone,
        }
    }

    pub(crate) fn new_id(&mut self) -> u32 {
        self.next_id += 1;
        self.next_id
    }

    pub(crate) fn table_id(&self, name: &TableName) -> SqlResult<TableId> {
        let found = self.tables.iter().find(|(_, table)| table.name == *name);
        found.map(|(id, _)| *id).ok_or_else(|| SqlError::invalid_object(&name.to_string()))
    }

    /// The table of a name as statements write it: without regard to case, where the database has
    /// none.
    pub(crate) fn find_table(&self, name: &TableName) -> Option<(TableId, &Table)> {
        let exact = self.tables.iter().find(|(_, table)| table.name == *name);
        let alike = || {
            self.tables.iter().find(|(_, table)| {
                self.same(&table.name.name, &name.name)
                    && self.same(&table.name.schema, &name.schema)
            })
        };
        exact.or_else(alike).map(|(id, table)| (*id, table))
    }

    /// True when two names are the same in this database.
    pub(crate) fn same(&self, one: &str, other: &str) -> bool {
        one == other
            || (self.collation.ignores_case
                && folded(one, self.collation) == folded(other, self.collation))
    }

    pub(crate) fn table(&self, id: TableId) -> SqlResult<&Table> {
        self.tables.get(&id).ok_or_else(|| SqlError::invalid_object("of a dropped table"))
    }

    pub(crate) fn table_mut(&mut self, id: TableId) -> SqlResult<&mut Table> {
        self.tables.get_mut(&id).ok_or_else(|| SqlError::invalid_object("of a dropped table"))
    }

    pub(crate) fn instance(&self, name: &InstanceName) -> Option<&Instance> {
        self.instances.values().find(|instance| instance.name == *name)
    }

    pub(crate) fn instance_mut(&mut self, name: &InstanceName) -> SqlResult<&mut Instance> {
        self.instances
            .values_mut()
            .find(|instance| instance.name == *name)
            .ok_or_else(|| unknown_instance(name))
    }

    /// The instances of a table, oldest first.
    pub(crate) fn instances_of(&self, table: TableId) -> impl Iterator<Item = &Instance> {
        self.instances.values().filter(move |instance| instance.table == table)
    }

    /// The newest LSN that capture has processed.
    pub(crate) fn high(&self) -> Option<Lsn> {
        self.mapping.last().map(|entry| entry.lsn)
    }
}

/// The error of a call that names an instance which does not exist.
pub(crate) fn unknown_instance(name: &InstanceName) -> SqlError {
    SqlError::new(number::INSTANCE_UNKNOWN, format!("capture instance {name} does not exist"))
}

pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) id: i32,
    pub(crate) settings: ServerSettings,
    state: Mutex<DatabaseState>,
    injection: Mutex<Injection>,
    /// Told whenever a lock may have become free.
    pub(crate) changed: Condvar,
}

/// The state behind its lock. Whoever changes it through the guard gives the data another
/// version.
pub(crate) struct StateGuard<'a>(MutexGuard<'a, DatabaseState>);

impl StateGuard<'_> {
    /// The state, for changes that no read can see.
    pub(crate) fn quiet(&mut self) -> &mut DatabaseState {
        &mut self.0
    }
}

impl Deref for StateGuard<'_> {
    type Target = DatabaseState;

    fn deref(&self) -> &DatabaseState {
        &self.0
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut DatabaseState {
        self.0.version += 1;
        &mut self.0
    }
}

/// A database. Clones are the same database.
#[derive(Clone)]
pub struct FakeDatabase {
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for FakeDatabase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeDatabase").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

impl FakeDatabase {
    pub(crate) fn new(name: &str, id: i32, settings: ServerSettings, cdc: bool) -> Self {
        let state = DatabaseState::new(name, &settings, cdc, settings.clock.time());
        Self {
            shared: Arc::new(Shared {
                name: name.into(),
                id,
                settings,
                state: Mutex::new(state),
                injection: Mutex::new(Injection::default()),
                changed: Condvar::new(),
            }),
        }
    }

    /// True when both are the same database.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// The database's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The clock that the server reads.
    #[must_use]
    pub fn clock(&self) -> &VirtualClock {
        &self.shared.settings.clock
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock().time()
    }

    /// The state as it is, after the jobs have done what was due by now.
    pub(crate) fn state(&self) -> StateGuard<'_> {
        self.look()
    }

    /// The same, where a statement mostly reads.
    pub(crate) fn look(&self) -> StateGuard<'_> {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.catch_up(self.now());
        StateGuard(state)
    }

    /// Lets go of the state until something changed, or for so long; then takes it again. True
    /// when nothing changed.
    pub(crate) fn wait<'a>(
        &'a self,
        state: StateGuard<'a>,
        pause: Duration,
    ) -> (StateGuard<'a>, bool) {
        let waited = self.shared.changed.wait_timeout(state.0, pause);
        let (mut state, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        state.catch_up(self.now());
        (StateGuard(state), outcome.timed_out())
    }

    /// A number that changes whenever a read of the database could see something else.
    #[must_use]
    pub fn data_version(&self) -> u64 {
        self.look().version
    }

    fn injection(&self) -> MutexGuard<'_, Injection> {
        self.shared.injection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a table.
    ///
    /// # Errors
    /// 2714 when the name is taken, 207, 1919 and 8111 for a key that cannot be.
    pub fn create_table(&self, definition: TableDefinition) -> SqlResult<()> {
        self.change_schema(SchemaChange::CreateTable(definition))
    }

    /// Turns capture on for the database, as `sys.sp_cdc_enable_db` does.
    pub fn enable_cdc(&self) {
        self.state().cdc = true;
    }

    /// Turns capture off for the database, as `sys.sp_cdc_disable_db` does: instances, mapping and
    /// jobs are gone.
    pub fn disable_cdc(&self) {
        let mut state = self.state();
        state.cdc = false;
        let gone: Vec<_> = state.instances.values().map(|other| other.name.clone()).collect();
        for name in gone {
            state.permissions.forget(&TableName::new("cdc", format!("{name}_CT")));
        }
        state.instances.clear();
        state.log.pending.clear();
        state.mapping = Mapping::default();
        state.jobs = Jobs::default();
    }

    /// Minutes that cleanup keeps changes.
    pub fn set_retention_minutes(&self, minutes: u32) {
        self.state().retention_minutes = minutes;
    }

    /// The committed rows of a table in key order: the values of the columns that exist.
    ///
    /// # Errors
    /// 208 for an unknown table.
    pub fn rows(&self, table: &TableName) -> SqlResult<Vec<Vec<Value>>> {
        let state = self.state();
        let table = state.table(state.table_id(table)?)?;
        let slots: Vec<_> = table
            .columns
            .iter()
            .enumerate()
            .filter(|(_, column)| !column.dropped)
            .map(|(slot, _)| slot)
            .collect();
        let project = |row: &Row| {
            slots.iter().map(|slot| row.get(*slot).cloned().unwrap_or(Value::Null)).collect()
        };
        Ok(table.rows.values().map(project).collect())
    }

    /// Calls `look` for each committed row of a table, in key order.
    ///
    /// # Errors
    /// 208 for an unknown table.
    pub fn for_each_row(
        &self,
        table: &TableName,
        mut look: impl FnMut(&RowView<'_>),
    ) -> SqlResult<()> {
        let state = self.state();
        let table = state.table(state.table_id(table)?)?;
        for row in table.rows.values() {
            look(&RowView { table, row });
        }
        Ok(())
    }

    /// How many committed rows a table has.
    ///
    /// # Errors
    /// 208 for an unknown table.
    pub fn row_count(&self, table: &TableName) -> SqlResult<usize> {
        let state = self.state();
        Ok(state.table(state.table_id(table)?)?.rows.len())
    }

    /// The mapping as it stands.
    #[must_use]
    pub fn mapping(&self) -> Vec<MappingEntry> {
        self.state().mapping.entries().copied().collect()
    }

    /// The newest LSN that capture has processed: `sys.fn_cdc_get_max_lsn()`.
    #[must_use]
    pub fn max_lsn(&self) -> Option<Lsn> {
        self.state().high()
    }

    /// Counts the forks of the log, from 1: a restore starts a new one.
    #[must_use]
    pub fn lineage(&self) -> u32 {
        self.state().lineage
    }

    /// Runs a closure before or after the next call of a kind. Several wait in line.
    pub fn on_next(&self, call: Call, side: Side, hook: impl FnOnce(&Self) + Send + 'static) {
        self.injection().hook(call, side, Box::new(hook));
    }

    /// Lets the next `times` calls of a kind fail.
    pub fn fail_next(&self, call: Call, times: usize, error: &SqlError) {
        self.injection().fail(call, times, error);
    }

    /// Kills the connection of the next stream ([`Call::Changes`] or [`Call::Rows`]) after it
    /// gave `rows` rows.
    pub fn kill_after_rows(&self, call: Call, rows: u64) {
        self.injection().kill_after(call, rows);
    }

    /// Makes every call of a kind take this long on the virtual clock.
    pub fn slow(&self, call: Call, pause: Duration) {
        self.injection().slow(call, pause);
    }

    /// Starts or ends random trouble.
    pub fn set_fault_plan(&self, plan: Option<FaultPlan>) {
        self.injection().plan(plan);
    }

    /// How often a call was made.
    #[must_use]
    pub fn calls(&self, call: Call) -> u64 {
        self.injection().count(call)
    }

    /// How often any call was made.
    #[must_use]
    pub fn all_calls(&self) -> u64 {
        self.injection().total()
    }

    /// Counts calls from zero again.
    pub fn forget_calls(&self) {
        self.injection().forget_counts();
    }

    pub(crate) fn meet(&self, call: Call) -> Encounter {
        self.injection().meet(call)
    }

    pub(crate) fn next_kill(&self, call: Call) -> Option<u64> {
        self.injection().next_kill(call)
    }

    /// Runs the next hook of a call, if one waits. No lock is held meanwhile.
    pub(crate) fn run_hook(&self, call: Call, side: Side) {
        let hook = self.injection().take_hook(call, side);
        if let Some(hook) = hook {
            hook(self);
        }
    }

    /// A backup of the database as it is: everything committed, and what capture has done.
    #[must_use]
    pub fn backup(&self) -> Backup {
        let mut state = (*self.look()).clone();
        state.open.clear();
        state.waits.clear();
        for snapshot in std::mem::take(&mut state.snapshots).into_keys() {
            state.snapshots.insert(snapshot, 1);
            state.release_snapshot(Some(snapshot));
        }
        Backup(Box::new(state))
    }

    /// Restores a backup, keeping capture on. The log goes on from the backup's end, so its LSNs
    /// repeat those that the replaced database had handed out: the log is of another lineage.
    /// Open transactions are gone.
    pub fn restore(&self, backup: &Backup) {
        let now = self.now();
        let mut state = self.state();
        let lineage = state.lineage;
        let next_id = state.next_id;
        let cleanup = state.cleanup;
        let (version, commits) = (state.version, state.commits);
        *state = (*backup.0).clone();
        state.version = state.version.max(version) + 1;
        state.commits = state.commits.max(commits) + 1;
        state.name.clone_from(&self.shared.name);
        state.lineage = lineage.max(state.lineage) + 1;
        state.next_id = state.next_id.max(next_id);
        // No job ran while the backup lay in its drawer.
        state.capture.restart(now);
        state.cleanup = cleanup;
        drop(state);
        self.shared.changed.notify_all();
    }
}

/// A copy of a database, to restore later.
#[derive(Clone)]
pub struct Backup(Box<DatabaseState>);

impl std::fmt::Debug for Backup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backup").finish_non_exhaustive()
    }
}
