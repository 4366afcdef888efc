//! Sessions of a server: who is connected, and ending one.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use cdc_core::ServerTime;

use crate::{
    isolation::Isolation,
    server::FakeServer,
    sql_error::{SqlError, SqlResult, number},
    transaction::TransactionHandle,
};

/// What the server knows of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// `session_id`; set by the server.
    pub id: i32,
    /// The login.
    pub login: String,
    /// The client's host.
    pub host: String,
    /// The client's program.
    pub program: String,
    /// The client's process.
    pub process: u32,
    /// The database it is in.
    pub database: String,
    /// When it logged in, on the server's clock.
    pub logged_in: ServerTime,
    /// When its last request began.
    pub last_request: ServerTime,
    /// True while a request runs.
    pub running: bool,
    /// Its isolation level.
    pub isolation: Isolation,
    /// Its lock timeout in milliseconds; -1 for none.
    pub lock_timeout: i32,
    /// Its open transactions.
    pub open_transactions: i32,
}

/// The first id of a session of a user; lower ones are the server's own.
const FIRST_SESSION: i32 = 51;

/// The sessions of a server.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<i32, Known>>);

#[derive(Debug)]
struct Known {
    info: SessionInfo,
    killed: Arc<AtomicBool>,
    /// What a `KILL` rolls back.
    transactions: Vec<TransactionHandle>,
    /// Who is told of a `KILL`.
    hooks: Vec<Hook>,
}

/// Told of a `KILL`, on the thread of who kills.
#[derive(Clone)]
struct Hook(Arc<dyn Fn() + Send + Sync>);

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

impl Sessions {
    fn known(&self) -> MutexGuard<'_, BTreeMap<i32, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session. Dropped, it is logged out.
#[derive(Debug)]
pub struct SessionHandle {
    id: i32,
    killed: Arc<AtomicBool>,
    server: FakeServer,
}

impl SessionHandle {
    /// `@@SPID`.
    #[must_use]
    pub const fn id(&self) -> i32 {
        self.id
    }

    /// True once somebody ended it with `KILL`.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// The flag behind [`SessionHandle::is_killed`].
    #[must_use]
    pub fn killed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.killed)
    }

    /// Calls `hook` once the session is killed, on the thread of who kills: it may set a flag or
    /// send a message, and must not wait.
    pub fn when_killed(&self, hook: impl Fn() + Send + Sync + 'static) {
        if let Some(known) = self.server.sessions().known().get_mut(&self.id) {
            known.hooks.push(Hook(Arc::new(hook)));
        }
    }

    /// A name of the session, to note its transactions under.
    #[must_use]
    pub fn link(&self) -> SessionLink {
        SessionLink { id: self.id, killed: self.killed(), server: self.server.clone() }
    }

    /// Notes what the session is doing.
    pub fn update(&self, change: impl FnOnce(&mut SessionInfo)) {
        if let Some(known) = self.server.sessions().known().get_mut(&self.id) {
            change(&mut known.info);
        }
    }
}

/// Names a session, to note the transactions that a `KILL` of it rolls back.
#[derive(Clone, Debug)]
pub struct SessionLink {
    id: i32,
    killed: Arc<AtomicBool>,
    server: FakeServer,
}

impl SessionLink {
    /// Notes the transactions that the session has open, instead of those noted before. Of a
    /// session that was killed they are rolled back at once.
    pub fn holds(&self, transactions: Vec<TransactionHandle>) {
        let mut known = self.server.sessions().known();
        if !self.killed.load(Ordering::Acquire) {
            let own = known.get_mut(&self.id).filter(|own| Arc::ptr_eq(&own.killed, &self.killed));
            if let Some(own) = own {
                own.transactions = transactions;
            }
            return;
        }
        drop(known);
        transactions.iter().for_each(TransactionHandle::end);
    }
}

impl Drop for SessionHandle {
    fn drop(&mut self) {
        self.server.sessions().known().remove(&self.id);
    }
}

impl FakeServer {
    /// Starts a session under the least free id.
    #[must_use]
    pub fn open_session(&self, login: &str, database: &str) -> SessionHandle {
        let now = self.zone().reading(self.clock().time());
        let killed = Arc::new(AtomicBool::new(false));
        let mut known = self.sessions().known();
        let mut id = FIRST_SESSION;
        while known.contains_key(&id) {
            id += 1;
        }
        let info = SessionInfo {
            id,
            login: login.into(),
            host: String::new(),
            program: String::new(),
            process: 0,
            database: database.into(),
            logged_in: now,
            last_request: now,
            running: false,
            isolation: Isolation::default(),
            lock_timeout: -1,
            open_transactions: 0,
        };
        let one = Known {
            info,
            killed: Arc::clone(&killed),
            transactions: Vec::new(),
            hooks: Vec::new(),
        };
        known.insert(id, one);
        drop(known);
        SessionHandle { id, killed, server: self.clone() }
    }

    /// Who is connected, by id. One that was killed is there until what it runs has noticed.
    #[must_use]
    pub fn session_list(&self) -> Vec<SessionInfo> {
        let known = self.sessions().known();
        known.values().filter(|known| known.is_there()).map(|known| known.info.clone()).collect()
    }

    /// Ends a session: its transactions are rolled back and their locks free when this returns,
    /// what it runs or waits for ends, its next step fails, and its connection closes.
    ///
    /// # Errors
    /// 6106 for an id that no session has.
    pub fn kill(&self, id: i32) -> SqlResult<()> {
        let mut known = self.sessions().known();
        let found = known.get_mut(&id).filter(|found| found.is_there()).ok_or_else(|| {
            SqlError::new(
                number::KILL_UNKNOWN,
                format!("Process ID {id} is not an active process ID."),
            )
        })?;
        found.killed.store(true, Ordering::Release);
        let transactions = std::mem::take(&mut found.transactions);
        let hooks = found.hooks.clone();
        drop(known);
        // What runs is told first: it must not go on in a transaction that has ended.
        hooks.iter().for_each(|hook| hook.0());
        transactions.iter().for_each(TransactionHandle::end);
        Ok(())
    }
}

impl Known {
    fn is_there(&self) -> bool {
        self.info.running || !self.killed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::Timestamp;

    use super::*;
    use crate::{TableDefinition, VirtualClock, Zone};

    #[test]
    fn a_session_has_the_least_free_id_until_it_is_dropped() {
        let server = FakeServer::new(VirtualClock::manual(Timestamp::from_micros(0)), Zone::UTC);
        let first = server.open_session("a", "master");
        let second = server.open_session("b", "master");
        assert_eq!((first.id(), second.id()), (51, 52));
        drop(first);
        assert_eq!(server.open_session("c", "master").id(), 51);
        server.kill(52).expect("connected");
        assert!(second.is_killed());
        assert_eq!(server.kill(99).expect_err("unknown").number, 6106);
    }

    #[test]
    fn a_kill_rolls_back_at_once_and_tells_who_asked() {
        let server = FakeServer::new(VirtualClock::manual(Timestamp::from_micros(0)), Zone::UTC);
        let database = server.database("shop");
        let table = TableDefinition::new("t").column("id", cdc_core::SqlType::Int);
        database.create_table(table.primary_key(&["id"])).expect("new");
        let name = cdc_core::TableName::new("dbo", "t");
        let session = server.open_session("a", "shop");
        let told = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&told);
        session.when_killed(move || flag.store(true, Ordering::Release));

        let mut open = database.begin();
        open.insert(&name, vec![1.into()]).expect("free");
        session.link().holds(vec![open.handle()]);
        let insert = || database.transact(|tx| tx.insert(&name, vec![1.into()]));
        assert_eq!(insert().expect_err("held").number, 1222);
        server.kill(session.id()).expect("connected");
        assert!(told.load(Ordering::Acquire));
        assert!(insert().is_ok());
        assert!(open.commit().is_err());

        let late = database.begin();
        session.link().holds(vec![late.handle()]);
        assert!(!late.is_open());
        assert_eq!(server.session_list(), []);
        assert_eq!(server.kill(session.id()).expect_err("gone").number, 6106);
    }
}
