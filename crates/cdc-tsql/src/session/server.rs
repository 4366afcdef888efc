//! The server that logins arrive at.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use cdc_fake::{FakeServer, Login, SqlError, SqlResult};

use super::{conversation::Session, failure::Raised};
use crate::talk::{Conversation, LoginRequest, Message, Service};

/// How a server behaves.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    /// True when a `WAITFOR` moves the clock to where it waits for: for a clock that nothing else
    /// moves. False when something does; then the statement waits until it has.
    pub waits_move_clock: bool,
}

/// A SQL Server that speaks through [`crate::talk`], over the databases of a [`FakeServer`].
/// Clones are the same server.
#[derive(Clone, Debug)]
pub struct Server {
    pub(super) fake: FakeServer,
    pub(super) settings: ServerSettings,
    moves: Arc<AtomicU64>,
}

/// Who a session belongs to.
#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) login: String,
    pub(super) rights: Login,
    pub(super) host: String,
    pub(super) application: String,
}

impl Server {
    /// The server of a model's databases. `master`, `tempdb`, `model` and `msdb` are created where
    /// they are missing, so that logins have a database to be in.
    #[must_use]
    pub fn new(fake: FakeServer, settings: ServerSettings) -> Self {
        for name in ["master", "tempdb", "model", "msdb"] {
            let _ = fake.database_without_cdc(name);
        }
        Self { fake, settings, moves: Arc::default() }
    }

    /// The model that it serves.
    #[must_use]
    pub const fn fake(&self) -> &FakeServer {
        &self.fake
    }

    /// A session of the owner of everything, without a password: for scripts and tests.
    ///
    /// # Errors
    /// 4060 when there is no such database.
    pub fn owner_session(&self, database: &str) -> Result<Session, Box<Message>> {
        let account = Account {
            login: "sa".into(),
            rights: Login::Owner,
            host: String::new(),
            application: "script".into(),
        };
        Session::open(self, account, database, 0)
    }

    /// A number that is never given twice: for what has to differ each time.
    pub(super) fn tick(&self) -> u64 {
        self.moves.fetch_add(1, Ordering::AcqRel)
    }
}

impl Service for Server {
    fn log_in(&self, login: &LoginRequest) -> Result<Box<dyn Conversation>, Box<Message>> {
        let found = self.fake.authenticate(&login.user, &login.password);
        let found = found.map_err(|error| refusal(error, 1))?;
        let account = Account {
            rights: found.rights(),
            login: found.name,
            host: login.host.clone(),
            application: login.application.clone(),
        };
        let database = match login.database.is_empty() {
            true => found.default_database,
            false => login.database.clone(),
        };
        let session = Session::open(self, account, &database, login.process)?;
        Ok(Box::new(session))
    }
}

/// The message of a login that is refused.
pub(super) fn refusal(error: SqlError, line: u32) -> Box<Message> {
    Box::new(Raised::new(error, line, "").message())
}

/// The database that a login may open.
///
/// # Errors
/// 4060, whether there is none or the login has no user in it.
pub(super) fn open_at_login(
    fake: &FakeServer,
    account: &Account,
    name: &str,
) -> SqlResult<cdc_fake::FakeDatabase> {
    let found = fake.find_database(name).filter(|found| may_enter(found, account));
    found.ok_or_else(|| {
        SqlError::new(
            4060,
            format!("Cannot open database \"{name}\" requested by the login. The login failed."),
        )
    })
}

/// True when an account has a user in a database, or is a guest of a system database.
pub(super) fn may_enter(database: &cdc_fake::FakeDatabase, account: &Account) -> bool {
    account.rights == Login::Owner
        || ["master", "tempdb", "msdb"].contains(&database.name())
        || database.user_name(&account.rights).is_some()
}
