//! Sessions of a server: who is connected, and ending one.

use std::{
    collections::BTreeMap,
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

    /// Notes what the session is doing.
    pub fn update(&self, change: impl FnOnce(&mut SessionInfo)) {
        if let Some(known) = self.server.sessions().known().get_mut(&self.id) {
            change(&mut known.info);
        }
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
        known.insert(id, Known { info, killed: Arc::clone(&killed) });
        drop(known);
        SessionHandle { id, killed, server: self.clone() }
    }

    /// Who is connected, by id.
    #[must_use]
    pub fn session_list(&self) -> Vec<SessionInfo> {
        self.sessions().known().values().map(|known| known.info.clone()).collect()
    }

    /// Ends a session: its next step fails, and its connection closes.
    ///
    /// # Errors
    /// 6106 for an id that no session has.
    pub fn kill(&self, id: i32) -> SqlResult<()> {
        let known = self.sessions().known();
        let found = known.get(&id).ok_or_else(|| {
            SqlError::new(
                number::KILL_UNKNOWN,
                format!("Process ID {id} is not an active process ID."),
            )
        })?;
        found.killed.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::Timestamp;

    use super::*;
    use crate::{VirtualClock, Zone};

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
}
