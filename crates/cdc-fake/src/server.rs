//! The server: what its databases share.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use cdc_core::ServerTime;

use crate::{
    agent::Switches,
    clock::VirtualClock,
    collation::{Collation, DEFAULT_COLLATION},
    database::{Backup, FakeDatabase},
    permissions::Login,
    sessions::Sessions,
    sql_error::{SqlError, SqlResult, number},
    statement_faults::StatementFaults,
    zone::Zone,
};

/// What a server's databases share.
#[derive(Clone, Debug)]
pub(crate) struct ServerSettings {
    pub(crate) name: String,
    pub(crate) clock: VirtualClock,
    pub(crate) zone: Zone,
    pub(crate) collation: Collation,
    pub(crate) switches: Arc<Switches>,
}

/// Who may log in to the server.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerLogin {
    /// `principal_id`.
    pub id: i32,
    /// The name.
    pub name: String,
    password: String,
    /// True for a member of `sysadmin`, who may do everything everywhere.
    pub sysadmin: bool,
    /// True when it may not log in.
    pub disabled: bool,
    /// The database it is in after logging in.
    pub default_database: String,
    /// When it was created, on the server's clock.
    pub created: ServerTime,
}

impl fmt::Debug for ServerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLogin").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct ServerState {
    databases: BTreeMap<String, FakeDatabase>,
    // By name in lower case.
    logins: BTreeMap<String, ServerLogin>,
    // By name, as a shelf of tapes.
    backups: BTreeMap<String, Backup>,
    next_database: i32,
    next_login: i32,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<ServerState>,
    sessions: Sessions,
    faults: StatementFaults,
    version: AtomicU64,
    started: ServerTime,
}

/// An instance of SQL Server in memory. Clones are the same server.
#[derive(Clone, Debug)]
pub struct FakeServer {
    settings: ServerSettings,
    inner: Arc<Inner>,
}

/// The first id of a database that is not the server's own.
const FIRST_DATABASE: i32 = 5;
/// The first id of a login that is not the server's own.
const FIRST_LOGIN: i32 = 257;

impl FakeServer {
    /// A server whose own clock shows `zone`.
    #[must_use]
    pub fn new(clock: VirtualClock, zone: Zone) -> Self {
        let started = zone.reading(clock.time());
        let state = ServerState {
            next_database: FIRST_DATABASE,
            next_login: FIRST_LOGIN,
            ..ServerState::default()
        };
        let server = Self {
            settings: ServerSettings {
                name: "fake".into(),
                clock,
                zone,
                collation: DEFAULT_COLLATION,
                switches: Arc::default(),
            },
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                sessions: Sessions::default(),
                faults: StatementFaults::default(),
                version: AtomicU64::new(0),
                started,
            }),
        };
        let sa = ServerLogin {
            id: 1,
            name: "sa".into(),
            password: String::new(),
            sysadmin: true,
            disabled: true,
            default_database: "master".into(),
            created: started,
        };
        server.state().logins.insert("sa".into(), sa);
        server
    }

    /// Sets how texts compare in databases that are created from now on.
    #[must_use]
    pub const fn with_collation(mut self, collation: Collation) -> Self {
        self.settings.collation = collation;
        self
    }

    /// Sets the name that the server tells of itself.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.settings.name = name.into();
        self
    }

    /// The name that the server tells of itself.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> &VirtualClock {
        &self.settings.clock
    }

    /// The zone of the server's clock.
    #[must_use]
    pub const fn zone(&self) -> Zone {
        self.settings.zone
    }

    /// When the server started, on its clock.
    #[must_use]
    pub fn started(&self) -> ServerTime {
        self.inner.started
    }

    /// The trouble that waits for statements.
    #[must_use]
    pub fn faults(&self) -> &StatementFaults {
        &self.inner.faults
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.inner.sessions
    }

    pub(crate) fn switches(&self) -> &Switches {
        &self.settings.switches
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that changes whenever a read of any database could see something else, or logins
    /// or databases came or went.
    #[must_use]
    pub fn data_version(&self) -> u64 {
        let databases: Vec<_> = self.databases();
        let own = self.inner.version.load(Ordering::Acquire);
        databases.iter().fold(own, |sum, database| sum.wrapping_add(database.data_version()))
    }

    /// Gives the data another version: what was read depended on more than the data, as on who is
    /// connected.
    pub fn touch(&self) {
        self.inner.version.fetch_add(1, Ordering::AcqRel);
    }

    /// The database of this name, created with capture turned on when there is none.
    #[must_use]
    pub fn database(&self, name: &str) -> FakeDatabase {
        self.open(name, true)
    }

    /// The database of this name, created without capture when there is none.
    #[must_use]
    pub fn database_without_cdc(&self, name: &str) -> FakeDatabase {
        self.open(name, false)
    }

    fn open(&self, name: &str, cdc: bool) -> FakeDatabase {
        let mut state = self.state();
        if let Some(database) = state.databases.get(name) {
            return database.clone();
        }
        let id = match name {
            "master" => 1,
            "tempdb" => 2,
            "model" => 3,
            "msdb" => 4,
            _ => {
                state.next_database += 1;
                state.next_database - 1
            }
        };
        let database = FakeDatabase::new(name, id, self.settings.clone(), cdc);
        state.databases.insert(name.into(), database.clone());
        drop(state);
        self.touch();
        database
    }

    /// The database of a name, without regard to case; none when there is none.
    #[must_use]
    pub fn find_database(&self, name: &str) -> Option<FakeDatabase> {
        let state = self.state();
        let alike = || state.databases.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        state.databases.get(name).or_else(|| alike().map(|(_, found)| found)).cloned()
    }

    /// Every database, by id.
    #[must_use]
    pub fn databases(&self) -> Vec<FakeDatabase> {
        let mut all: Vec<_> = self.state().databases.values().cloned().collect();
        all.sort_by_key(FakeDatabase::id);
        all
    }

    /// Creates a database without capture.
    ///
    /// # Errors
    /// 1801 when the name is taken.
    pub fn create_database(&self, name: &str) -> SqlResult<FakeDatabase> {
        if self.find_database(name).is_some() {
            return Err(SqlError::new(
                number::DATABASE_EXISTS,
                format!("Database '{name}' already exists. Choose a different database name."),
            ));
        }
        Ok(self.database_without_cdc(name))
    }

    /// Drops a database.
    ///
    /// # Errors
    /// 3701 when there is none.
    pub fn drop_database(&self, name: &str) -> SqlResult<()> {
        let Some(found) = self.find_database(name).filter(|found| found.id() >= FIRST_DATABASE)
        else {
            return Err(SqlError::new(
                number::CANNOT_DROP,
                format!(
                    "Cannot drop the database '{name}', because it does not exist or you do not \
                     have permission."
                ),
            ));
        };
        self.state().databases.remove(found.name());
        self.touch();
        Ok(())
    }

    /// Creates `master`, `tempdb`, `model` and `msdb`.
    pub fn create_system_databases(&self) {
        for name in ["master", "tempdb", "model", "msdb"] {
            let database = self.database_without_cdc(name);
            let snapshots = name == "master" || name == "msdb";
            database.set_options(|options| {
                options.allow_snapshot_isolation = snapshots;
                options.recovery = 3;
            });
        }
    }

    /// Keeps a backup under a name; one of the same name is replaced.
    pub fn keep_backup(&self, name: &str, backup: Backup) {
        self.state().backups.insert(name.into(), backup);
    }

    /// The backup of a name.
    #[must_use]
    pub fn kept_backup(&self, name: &str) -> Option<Backup> {
        self.state().backups.get(name).cloned()
    }

    /// Creates a login.
    ///
    /// # Errors
    /// 15025 when the name is taken.
    pub fn create_login(&self, name: &str, password: &str) -> SqlResult<()> {
        let created = self.settings.zone.reading(self.settings.clock.time());
        let mut state = self.state();
        let key = name.to_lowercase();
        if state.logins.contains_key(&key) {
            return Err(SqlError::new(
                number::LOGIN_EXISTS,
                format!("The server principal '{name}' already exists."),
            ));
        }
        let id = state.next_login;
        state.next_login += 1;
        let login = ServerLogin {
            id,
            name: name.into(),
            password: password.into(),
            sysadmin: false,
            disabled: false,
            default_database: "master".into(),
            created,
        };
        state.logins.insert(key, login);
        drop(state);
        self.touch();
        Ok(())
    }

    /// Changes a login; a given password replaces the old one.
    ///
    /// # Errors
    /// 15151 when there is none.
    pub fn alter_login(
        &self,
        name: &str,
        password: Option<&str>,
        change: impl FnOnce(&mut ServerLogin),
    ) -> SqlResult<()> {
        let mut state = self.state();
        let login = state.logins.get_mut(&name.to_lowercase());
        let login = login.ok_or_else(|| unknown_login("alter", name))?;
        if let Some(password) = password {
            password.clone_into(&mut login.password);
        }
        change(login);
        drop(state);
        self.touch();
        Ok(())
    }

    /// Sets the password of `sa`, which may log in from then on.
    pub fn set_sa_password(&self, password: &str) {
        if let Some(sa) = self.state().logins.get_mut("sa") {
            password.clone_into(&mut sa.password);
            sa.disabled = false;
        }
    }

    /// Drops a login. Its users stay in their databases.
    ///
    /// # Errors
    /// 15151 when there is none.
    pub fn drop_login(&self, name: &str) -> SqlResult<()> {
        let removed = self.state().logins.remove(&name.to_lowercase());
        removed.ok_or_else(|| unknown_login("drop", name))?;
        self.touch();
        Ok(())
    }

    /// The logins, by id.
    #[must_use]
    pub fn logins(&self) -> Vec<ServerLogin> {
        let mut all: Vec<_> = self.state().logins.values().cloned().collect();
        all.sort_by_key(|login| login.id);
        all
    }

    /// The login of a name.
    #[must_use]
    pub fn login(&self, name: &str) -> Option<ServerLogin> {
        self.state().logins.get(&name.to_lowercase()).cloned()
    }

    /// The login of a user and its password, or without a user of an access token.
    ///
    /// # Errors
    /// 18456, which never tells what of the two was wrong.
    pub fn authenticate(&self, user: &str, password: &str) -> SqlResult<ServerLogin> {
        let (name, proved) = match user {
            "" => (self.switches().login_of(password), true),
            user => (Some(user.to_owned()), false),
        };
        let found = name.and_then(|name| self.login(&name)).filter(|login| !login.disabled);
        found.filter(|login| proved || login.password == password).ok_or_else(|| {
            SqlError::new(number::LOGIN_FAILED, format!("Login failed for user '{user}'."))
        })
    }
}

impl ServerLogin {
    /// The rights that it comes with: all, or those of its users.
    #[must_use]
    pub fn rights(&self) -> Login {
        if self.sysadmin { Login::Owner } else { Login::Named(self.name.clone()) }
    }
}

fn unknown_login(verb: &str, name: &str) -> SqlError {
    SqlError::new(
        number::PRINCIPAL_UNKNOWN,
        format!(
            "Cannot {verb} the login '{name}', because it does not exist or you do not have \
             permission."
        ),
    )
}

#[cfg(test)]
mod tests {
    use cdc_core::Timestamp;

    use super::*;

    fn server() -> FakeServer {
        FakeServer::new(VirtualClock::manual(Timestamp::from_micros(0)), Zone::UTC)
    }

    #[test]
    fn a_login_opens_with_its_password_alone() {
        let server = server();
        assert!(server.authenticate("sa", "").is_err(), "disabled until it has a password");
        server.create_login("reader", "secret").expect("new");
        assert_eq!(server.create_login("READER", "x").expect_err("taken").number, 15025);
        assert!(server.authenticate("Reader", "secret").is_ok());
        let error = server.authenticate("reader", "Secret").expect_err("wrong");
        assert_eq!(error, SqlError::new(18456, "Login failed for user 'reader'."));
        assert!(!format!("{:?}", server.logins()).contains("secret"));
    }

    #[test]
    fn the_version_moves_with_every_change_and_with_nothing_else() {
        let server = server();
        let database = server.database("shop");
        let before = server.data_version();
        assert_eq!(server.data_version(), before);
        drop(database.begin());
        assert_eq!(server.data_version(), before, "a transaction without effects");
        let definition = crate::TableDefinition::new("t").column("id", cdc_core::SqlType::Int);
        database.create_table(definition).expect("new");
        assert_ne!(server.data_version(), before);
    }
}
