//! How the source is: every question that [`cdc_core::diagnosis`] needs an answer to, each asked on
//! its own, so that one right that is missing hides one answer.

use std::collections::BTreeMap;

use async_trait::async_trait;
use cdc_core::{
    CaptureInstance, Error, ErrorKind, Result, TableName, TableRef, Timestamp,
    diagnosis::{
        Access, CaptureErrors, CaptureJob, CaptureScan, CleanupJob, Commits, DatabaseState,
        Diagnosis, Edition, InstanceState, JobActivity, Jobs, Observations, Observed, Reader,
        ServerState, TableState, Unlisted, diagnose,
    },
    port::{Bound, Catalog, Diagnose, PositionLog},
};

use super::{Answer, MssqlSource};
use crate::{
    config::{Encryption, Trust},
    driver::Statement,
    fault::{Fault, number},
    name::{Identifier, ObjectName},
    sql::{diagnosis as sql, position},
};

/// `EngineEdition` of Azure SQL Database, and of Managed Instance.
const AZURE_DATABASE: i64 = 5;
const MANAGED_INSTANCE: i64 = 8;

#[async_trait]
impl Diagnose for MssqlSource {
    async fn diagnose(&self, tables: &[TableRef], now: Timestamp) -> Result<Vec<Diagnosis>> {
        Ok(diagnose(&self.observe(tables, now).await?))
    }
}

/// A right, and the statement that gives it.
struct Right {
    needs: &'static str,
    statement: String,
}

impl MssqlSource {
    async fn observe(&self, tables: &[TableRef], now: Timestamp) -> Result<Observations> {
        let (server, user, login) = self.server_state().await?;
        let rights = Rights { user: user.as_ref(), login: login.as_ref() };
        let database = self.database_state().await?;
        let in_group = database.seen().is_some_and(|database| database.in_group);
        let primary = if in_group {
            let asked = self.ask(sql::is_primary()).await;
            observed(asked, &rights.server_state(), |answer| {
                Ok(answer.first().map_or(Ok(None), |row| row.bit(0))?.unwrap_or(true))
            })?
        } else {
            Observed::Seen(true)
        };
        let state = rights.database_state();
        let jobs = observed(self.ask(sql::jobs()).await, &rights.owner(), jobs)?;
        let [capture_activity, cleanup_activity] = self.activity(server.edition, &rights).await?;
        let zone = match self.zone().await {
            Ok(zone) => Some(zone),
            Err(error) if error.kind() == ErrorKind::Config => None,
            Err(error) => return Err(error),
        };
        Ok(Observations {
            now,
            reader: Reader {
                isolation: self.config.isolation,
                encrypted: self.config.encryption != Encryption::Off,
                any_certificate: self.config.trust == Trust::Any,
                zone,
                read_only_intent: self.config.read_only_intent,
                user: user.clone(),
            },
            agent: self.looked_at(sql::agent(), &rights.server_state(), number_of_first).await?,
            scans: self.looked_at(sql::scans(), &state, scans).await?,
            errors: self.looked_at(sql::errors(), &state, errors).await?,
            log_used: self
                .looked_at(sql::log_used(), &rights.server_state(), number_of_first)
                .await?,
            text_limit: self.text_limit().await?,
            commits: self.looked_at(sql::commits(), &rights.user(), commits).await?,
            tables: self.table_states(tables).await?,
            server,
            database,
            primary,
            jobs,
            capture_activity,
            cleanup_activity,
        })
    }

    async fn looked_at<T>(
        &self,
        statement: Statement,
        right: &Right,
        read: impl FnOnce(&Answer) -> Result<T>,
    ) -> Result<Observed<T>> {
        observed(self.ask(statement).await, right, read)
    }

    /// The server, the login's user and the login.
    async fn server_state(&self) -> Result<(ServerState, Option<String>, Option<String>)> {
        let answer = self.ask(sql::server()).await?;
        let row = answer.first().ok_or_else(|| Error::bug("the server says nothing of itself"))?;
        let edition = match row.int(1)? {
            Some(AZURE_DATABASE) => Edition::AzureDatabase,
            Some(MANAGED_INSTANCE) => Edition::ManagedInstance,
            _ => Edition::Server,
        };
        let clock = || Error::bug("the server does not tell the time");
        let server = ServerState {
            version: row.int(0)?,
            edition,
            utc: row.moment(2)?.ok_or_else(clock)?,
            reading: row.reading(3)?.ok_or_else(clock)?,
        };
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok((server, owned(row.text(4)?), owned(row.text(5)?)))
    }

    async fn database_state(&self) -> Result<Observed<DatabaseState>> {
        let right = Right {
            needs: "a row of sys.databases for this database",
            statement: "GRANT VIEW ANY DATABASE TO public".into(),
        };
        let asked = self.ask(sql::database()).await;
        let seen = observed(asked, &right, |answer| {
            let Some(row) = answer.first() else { return Ok(None) };
            let flag = |at| Ok::<_, Error>(row.bit(at)?.unwrap_or(false));
            Ok(Some(DatabaseState {
                name: row.some_text(0)?.to_owned(),
                captured: flag(1)?,
                snapshot_isolation: row.int(2)?.unwrap_or(0),
                read_committed_snapshot: flag(3)?,
                log_reuse_wait: row.text(4)?.unwrap_or_default().to_owned(),
                published: flag(5)?,
                in_group: row.int(6)? == Some(1),
                writable: row.int(7)? == Some(1),
            }))
        })?;
        Ok(match seen {
            Observed::Seen(Some(state)) => Observed::Seen(state),
            Observed::Seen(None) => right.hidden(),
            Observed::Hidden { needs, statement } => Observed::Hidden { needs, statement },
        })
    }

    /// What Agent says of the capture and of the cleanup job.
    async fn activity(
        &self,
        edition: Edition,
        rights: &Rights<'_>,
    ) -> Result<[Observed<Option<JobActivity>>; 2]> {
        if edition == Edition::AzureDatabase {
            // There is no Agent, and no other database can be named.
            return Ok([Observed::Seen(None), Observed::Seen(None)]);
        }
        let seen = self.looked_at(sql::activity(), &rights.agent_tables(), activities).await?;
        Ok(["capture", "cleanup"].map(|kind| match &seen {
            Observed::Seen(jobs) => Observed::Seen(jobs.get(kind).cloned()),
            Observed::Hidden { needs, statement } => {
                Observed::Hidden { needs: needs.clone(), statement: statement.clone() }
            }
        }))
    }

    async fn text_limit(&self) -> Result<Observed<i64>> {
        let right = Right {
            needs: "a row of sys.configurations for max text repl size",
            statement: "EXEC sys.sp_configure N'max text repl size'".into(),
        };
        Ok(match self.looked_at(sql::text_limit(), &right, number_of_first).await? {
            Observed::Seen(Some(bytes)) => Observed::Seen(bytes),
            Observed::Seen(None) => right.hidden(),
            Observed::Hidden { needs, statement } => Observed::Hidden { needs, statement },
        })
    }

    async fn table_states(&self, tables: &[TableRef]) -> Result<Vec<TableState>> {
        let roles = match self.ask(sql::roles()).await {
            Ok(answer) => roles(&answer)?,
            Err(fault) if fault.error.kind() == ErrorKind::Unavailable => return Err(fault.into()),
            Err(_) => BTreeMap::new(),
        };
        let mut states = Vec::with_capacity(tables.len());
        for reference in tables {
            states.push(self.table_state(reference, &roles).await?);
        }
        Ok(states)
    }

    async fn table_state(
        &self,
        reference: &TableRef,
        roles: &BTreeMap<String, String>,
    ) -> Result<TableState> {
        let instances = match self.instances(reference).await {
            Ok(instances) => {
                let mut states = Vec::with_capacity(instances.len());
                for instance in instances {
                    let role = roles.get(instance.name.as_str()).cloned();
                    states.push(self.instance_state(instance, role).await?);
                }
                Ok(states)
            }
            Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
            Err(error) => Err(self.unlisted(reference, &error).await?),
        };
        let mut state = TableState {
            reference: reference.clone(),
            instances,
            columns: Observed::hidden("SELECT on the table"),
        };
        if let Some(name) = state.name() {
            state.columns = match self.table_columns(&name).await {
                Ok(columns) => {
                    Observed::Seen(columns.into_iter().map(|column| column.column).collect())
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => return Err(error),
                Err(error) => Observed::Hidden {
                    needs: "SELECT on the table".into(),
                    statement: error.context("grant").map(str::to_owned),
                },
            };
        }
        Ok(state)
    }

    async fn instance_state(
        &self,
        instance: CaptureInstance,
        role: Option<String>,
    ) -> Result<InstanceState> {
        let objects =
            [ObjectName::of_table(&instance.table)?, ObjectName::of_changes(&instance.name)?];
        let access = self.access(&objects).await?;
        let low = self.low(std::slice::from_ref(&instance.name)).await?;
        let low = low.into_iter().next().unwrap_or(Bound::Null);
        let low_reading = match low {
            Bound::At(at) => {
                let entry = self.ask(position::entry_until(cdc_core::Lsn::try_from(at)?)).await;
                match entry {
                    Ok(answer) => answer.first().map_or(Ok(None), |row| row.reading(1))?,
                    Err(fault) if fault.is(&[number::INVALID_OBJECT]) => None,
                    Err(fault) => return Err(fault.into()),
                }
            }
            Bound::Null | Bound::Zero => None,
        };
        let at = |place: usize| access.get(place).copied().unwrap_or(Access::Missing);
        Ok(InstanceState { table: at(0), changes: at(1), instance, role, low, low_reading })
    }

    /// Why a table's instances are not listed, as far as the login can find out.
    async fn unlisted(&self, reference: &TableRef, error: &Error) -> Result<Unlisted> {
        let mut unlisted = Unlisted::of(error);
        let TableRef::Table(name) = reference else { return Ok(unlisted) };
        let (Ok(table), Ok(changes)) = (ObjectName::of_table(name), default_changes(name)) else {
            return Ok(unlisted);
        };
        let access = self.access(&[table.clone(), changes]).await?;
        if let [own, of_changes] = access.as_slice() {
            (unlisted.table, unlisted.changes) = (*own, *of_changes);
        }
        match self.ask(sql::role_of(&table)).await {
            Ok(answer) => unlisted.role = answer.first_text()?,
            Err(fault) if fault.error.kind() == ErrorKind::Unavailable => return Err(fault.into()),
            Err(_) => {}
        }
        Ok(unlisted)
    }
}

/// The change table of the instance that a table has when nobody names one.
fn default_changes(table: &TableName) -> Result<ObjectName> {
    let instance = cdc_core::InstanceName::new(&format!("{}_{}", table.schema, table.name));
    ObjectName::of_changes(&instance)
}

/// What is granted, and to whom.
struct Rights<'a> {
    user: Option<&'a String>,
    login: Option<&'a String>,
}

impl Rights<'_> {
    fn quoted(name: Option<&String>, place: &str) -> String {
        let quoted = name.and_then(|name| Identifier::new(name).ok());
        quoted.map_or_else(|| place.to_owned(), |name| name.to_string())
    }

    fn of_user(&self) -> String {
        Self::quoted(self.user, "[the login's user]")
    }

    fn of_login(&self) -> String {
        Self::quoted(self.login, "[the login]")
    }

    /// It covers what SQL Server 2022 calls VIEW SERVER PERFORMANCE STATE and SECURITY STATE.
    fn server_state(&self) -> Right {
        let statement = format!("USE master; GRANT VIEW SERVER STATE TO {}", self.of_login());
        Right { needs: "VIEW SERVER STATE", statement }
    }

    fn database_state(&self) -> Right {
        let statement = format!("GRANT VIEW DATABASE STATE TO {}", self.of_user());
        Right { needs: "VIEW DATABASE STATE", statement }
    }

    fn owner(&self) -> Right {
        let statement = format!("ALTER ROLE db_owner ADD MEMBER {}", self.of_user());
        Right { needs: "membership in db_owner", statement }
    }

    fn user(&self) -> Right {
        let statement = format!("CREATE USER {0} FOR LOGIN {0}", self.of_login());
        Right { needs: "a user in a database that captures changes", statement }
    }

    fn agent_tables(&self) -> Right {
        let login = self.of_login();
        let grants: Vec<_> = ["cdc_jobs", "sysjobs", "sysjobactivity", "sysjobservers"]
            .iter()
            .map(|table| format!("GRANT SELECT ON dbo.{table} TO {login}"))
            .collect();
        Right {
            needs: "SELECT on cdc_jobs, sysjobs, sysjobactivity and sysjobservers in msdb",
            statement: format!(
                "USE msdb; CREATE USER {login} FOR LOGIN {login}; {}",
                grants.join("; ")
            ),
        }
    }
}

impl Right {
    fn hidden<T>(&self) -> Observed<T> {
        Observed::Hidden { needs: self.needs.into(), statement: Some(self.statement.clone()) }
    }
}

/// An answer as an observation. A server that cannot be reached is an error; one that refuses to
/// answer has hidden something.
fn observed<T>(
    asked: std::result::Result<Answer, Fault>,
    right: &Right,
    read: impl FnOnce(&Answer) -> Result<T>,
) -> Result<Observed<T>> {
    let fault = match asked {
        Ok(answer) => return read(&answer).map(Observed::Seen),
        Err(fault) => fault,
    };
    match (fault.error.kind(), fault.number) {
        (ErrorKind::Unavailable, _) | (_, None) => Err(fault.into()),
        (ErrorKind::Unauthorized, _) => Ok(right.hidden()),
        (_, Some(number::NOT_CAPTURING)) => Ok(Observed::Hidden {
            needs: "a database that captures changes".into(),
            statement: Some("EXEC sys.sp_cdc_enable_db".into()),
        }),
        (_, Some(number)) => Ok(Observed::hidden(format!(
            "{}: this server answers with error {number}",
            right.needs
        ))),
    }
}

fn number_of_first(answer: &Answer) -> Result<Option<i64>> {
    answer.first_int()
}

fn jobs(answer: &Answer) -> Result<Jobs> {
    let mut jobs = Jobs::default();
    for row in answer.rows() {
        let number = |at| Ok::<_, Error>(row.int(at)?.unwrap_or(0));
        match row.some_text(0)?.trim_end() {
            "capture" => {
                jobs.capture = Some(CaptureJob {
                    max_transactions: number(1)?,
                    max_scans: number(2)?,
                    continuous: row.bit(3)?.unwrap_or(false),
                    polling_seconds: number(4)?,
                });
            }
            "cleanup" => {
                jobs.cleanup =
                    Some(CleanupJob { retention_minutes: number(5)?, threshold: number(6)? });
            }
            _ => {}
        }
    }
    Ok(jobs)
}

fn activities(answer: &Answer) -> Result<BTreeMap<String, JobActivity>> {
    /// `last_run_outcome` before the first run.
    const NEVER_RAN: i64 = 5;
    let mut jobs = BTreeMap::new();
    for row in answer.rows() {
        let job = JobActivity {
            name: row.some_text(1)?.to_owned(),
            enabled: row.int(2)? == Some(1),
            running: row.int(3)? == Some(1),
            last_outcome: row.int(4)?.filter(|outcome| *outcome != NEVER_RAN),
        };
        jobs.insert(row.some_text(0)?.trim_end().to_owned(), job);
    }
    Ok(jobs)
}

fn scans(answer: &Answer) -> Result<Option<CaptureScan>> {
    let Some(row) = answer.first() else { return Ok(None) };
    let number = |at| Ok::<_, Error>(row.int(at)?.unwrap_or(0));
    let (latency_seconds, failed, empty) = (number(0)?, number(1)?, number(2)?);
    Ok(Some(CaptureScan { latency_seconds, failed, empty }))
}

fn errors(answer: &Answer) -> Result<CaptureErrors> {
    let Some(row) = answer.first() else { return Ok(CaptureErrors::default()) };
    let count = row.int(0)?.unwrap_or(0);
    Ok(CaptureErrors { count, number: row.int(1)?, at: row.reading(2)? })
}

fn commits(answer: &Answer) -> Result<Option<Commits>> {
    let Some(row) = answer.first() else { return Ok(None) };
    let longest_pause_seconds = row.int(1)?;
    Ok(row.reading(0)?.map(|newest| Commits { newest, longest_pause_seconds }))
}

fn roles(answer: &Answer) -> Result<BTreeMap<String, String>> {
    let mut roles = BTreeMap::new();
    for row in answer.rows() {
        if let Some(role) = row.text(1)? {
            roles.insert(row.some_text(0)?.to_owned(), role.to_owned());
        }
    }
    Ok(roles)
}
