//! How the source is: what the server's views and procedures would show this login, observed in the
//! state of the database.

use async_trait::async_trait;
use cdc_core::{
    CaptureInstance, Error, InstanceName, Result, ServerTime, TableName, TableRef, Timestamp,
    diagnosis::{
        Access, CaptureErrors, CaptureJob, CaptureScan, CleanupJob, Commits,
        DatabaseState as Database, Diagnosis, Edition, InstanceState, JobActivity, Jobs,
        Observations, Observed, Reader, RowIsolation, ServerState, TableState, Unlisted, diagnose,
    },
    port::{Bound, Diagnose},
};

use super::FakeSource;
use crate::{
    database::DatabaseState,
    injection::Call,
    options::ReplicaRole,
    permissions::{Permission, Securable},
};

/// Neighbours of the mapping that are looked at for the longest pause between two.
const ENTRIES: usize = 100;
/// `last_run_outcome` of a job that never ran.
const NEVER_RAN: u8 = 5;

#[async_trait]
impl Diagnose for FakeSource {
    async fn diagnose(&self, tables: &[TableRef], now: Timestamp) -> Result<Vec<Diagnosis>> {
        self.ask(Call::Preflight, |state| Ok(diagnose(&self.observe(state, tables, now)))).await
    }
}

impl FakeSource {
    fn observe(&self, state: &DatabaseState, tables: &[TableRef], now: Timestamp) -> Observations {
        let switches = &self.database.shared.settings.switches;
        let shown = switches.shows_its_state_to(&self.login);
        let rights = &state.permissions;
        let owner = rights.is_member(&self.login, "db_owner");
        let looks = shown
            || rights.permits(&self.login, Permission::ViewDatabaseState, &Securable::Database);
        let server = |needed: bool| Right("VIEW SERVER STATE", needed);
        let utc = self.database.now();
        Observations {
            now,
            reader: Reader {
                user: rights.user_name(&self.login),
                isolation: RowIsolation::default(),
                encrypted: true,
                any_certificate: false,
                zone: Some(self.zone),
                read_only_intent: false,
            },
            server: ServerState {
                version: Some(16),
                edition: Edition::Server,
                utc,
                reading: state.zone.reading(utc),
            },
            database: Observed::Seen(self.database_state(state)),
            primary: match state.options.replica {
                None => Observed::Seen(true),
                Some(role) => server(shown).sees(|| role == ReplicaRole::Primary),
            },
            agent: server(shown).sees(|| Some(if switches.agent_runs() { 4 } else { 1 })),
            jobs: Right("membership in db_owner", owner).sees(|| jobs(state)),
            capture_activity: Right("SELECT on the jobs in msdb", owner)
                .sees(|| self.activity(state, true)),
            cleanup_activity: Right("SELECT on the jobs in msdb", owner)
                .sees(|| self.activity(state, false)),
            scans: Right("VIEW DATABASE STATE", looks).sees(|| scan(state)),
            errors: Right("VIEW DATABASE STATE", looks).sees(|| errors(state)),
            log_used: server(shown).sees(|| None),
            text_limit: Observed::Seen(switches.text_limit().1),
            commits: Observed::Seen(commits(state)),
            tables: tables.iter().map(|table| self.table_state(state, table)).collect(),
        }
    }

    fn database_state(&self, state: &DatabaseState) -> Database {
        let options = &state.options;
        let waits = state.cdc && !state.log.pending.is_empty();
        Database {
            name: self.database.name().into(),
            captured: state.cdc,
            snapshot_isolation: options.allow_snapshot_isolation.into(),
            read_committed_snapshot: options.read_committed_snapshot,
            log_reuse_wait: if waits { "REPLICATION" } else { "NOTHING" }.into(),
            published: false,
            in_group: options.replica.is_some(),
            writable: !options.read_only && options.replica != Some(ReplicaRole::Secondary),
        }
    }

    fn activity(&self, state: &DatabaseState, capture: bool) -> Option<JobActivity> {
        let jobs = &state.jobs;
        let (kind, exists) =
            if capture { ("capture", jobs.capture) } else { ("cleanup", jobs.cleanup) };
        let agent = self.database.shared.settings.switches.agent_runs();
        exists.then(|| JobActivity {
            name: format!("cdc.{}_{kind}", self.database.name()),
            enabled: !capture || jobs.capture_enabled,
            running: capture && agent && state.capture.runs(),
            last_outcome: (!capture && jobs.cleanup_outcome != NEVER_RAN)
                .then(|| jobs.cleanup_outcome.into()),
        })
    }

    fn table_state(&self, state: &DatabaseState, reference: &TableRef) -> TableState {
        let instances = match self.listed(state, reference) {
            Ok(listed) => {
                Ok(listed.into_iter().map(|one| self.instance_state(state, one)).collect())
            }
            Err(error) => Err(self.unlisted(state, reference, &error)),
        };
        let hidden = || Observed::hidden("SELECT on the table");
        let mut found = TableState { reference: reference.clone(), instances, columns: hidden() };
        let Some(name) = found.name() else { return found };
        if let Some((_, table)) = state.find_table(&name)
            && state.permissions.may_see(&self.login, &table.name)
        {
            let own = table.columns.iter().filter(|column| !column.dropped);
            let plain = |column: &crate::table::TableColumn| {
                let computed = column.computed.is_some();
                cdc_core::Column { computed, ..column.column.clone() }
            };
            found.columns = Observed::Seen(own.map(plain).collect());
        }
        found
    }

    fn access(&self, state: &DatabaseState, object: &TableName, exists: bool) -> Access {
        match (exists, state.permissions.may_select(&self.login, object)) {
            (false, _) => Access::Missing,
            (true, true) => Access::Allowed,
            (true, false) => Access::Denied,
        }
    }

    fn changes_access(&self, state: &DatabaseState, instance: &InstanceName) -> Access {
        let changes = TableName::new("cdc", format!("{instance}_CT"));
        self.access(state, &changes, state.instance(instance).is_some())
    }

    fn instance_state(&self, state: &DatabaseState, instance: CaptureInstance) -> InstanceState {
        let found = state.instance(&instance.name);
        let low = found.and_then(|found| found.low);
        let entry = low.and_then(|low| state.mapping.at_or_before(low));
        InstanceState {
            role: found.and_then(|found| found.role.clone()),
            table: self.access(state, &instance.table, true),
            changes: self.changes_access(state, &instance.name),
            low: low.map_or(Bound::Zero, |low| Bound::At(self.position(low))),
            low_reading: entry.map(|entry| entry.time),
            instance,
        }
    }

    fn unlisted(&self, state: &DatabaseState, reference: &TableRef, error: &Error) -> Unlisted {
        let mut unlisted = Unlisted::of(error);
        let TableRef::Table(name) = reference else { return unlisted };
        let found = state.find_table(name);
        unlisted.table = self.access(state, name, found.is_some());
        let default = InstanceName::new(&format!("{}_{}", name.schema, name.name));
        unlisted.changes = self.changes_access(state, &default);
        let listing = TableName::new("cdc", "change_tables");
        if state.permissions.may_select(&self.login, &listing) {
            let mut own = state
                .instances
                .values()
                .filter(|instance| found.is_some_and(|(id, _)| instance.table == id));
            unlisted.role = own.find_map(|instance| instance.role.clone());
        }
        unlisted
    }
}

/// A right, and whether the login has it.
struct Right(&'static str, bool);

impl Right {
    fn sees<T>(&self, look: impl FnOnce() -> T) -> Observed<T> {
        if self.1 { Observed::Seen(look()) } else { Observed::hidden(self.0) }
    }
}

fn jobs(state: &DatabaseState) -> Jobs {
    let jobs = &state.jobs;
    Jobs {
        capture: jobs.capture.then(|| CaptureJob {
            continuous: jobs.continuous,
            polling_seconds: jobs.polling_interval,
            max_transactions: jobs.max_transactions.into(),
            max_scans: jobs.max_scans.into(),
        }),
        cleanup: jobs.cleanup.then(|| CleanupJob {
            retention_minutes: state.retention_minutes.into(),
            threshold: jobs.threshold,
        }),
    }
}

fn scan(state: &DatabaseState) -> Option<CaptureScan> {
    let failed = i64::try_from(state.jobs.scan_errors.len()).unwrap_or(i64::MAX);
    let latency_seconds = state.capture.latency_seconds(state.mapping.last());
    state.cdc.then_some(CaptureScan { latency_seconds, failed, empty: 0 })
}

fn errors(state: &DatabaseState) -> CaptureErrors {
    let errors = &state.jobs.scan_errors;
    let newest = errors.last();
    CaptureErrors {
        count: i64::try_from(errors.len()).unwrap_or(i64::MAX),
        number: newest.map(|error| error.number.into()),
        at: newest.map(|error| error.at),
    }
}

fn commits(state: &DatabaseState) -> Option<Commits> {
    let newest = state.mapping.last()?.time;
    let second = |time: ServerTime| time.as_ticks().div_euclid(ServerTime::TICKS_A_SECOND);
    let latest = state.mapping.latest(ENTRIES);
    let pauses = latest.iter().zip(latest.iter().skip(1));
    let longest = pauses.map(|(one, next)| second(next.time) - second(one.time)).max();
    Some(Commits { newest, longest_pause_seconds: longest })
}
