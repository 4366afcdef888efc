//! SQL Server Agent and the settings of the server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

use crate::{permissions::Login, server::FakeServer, sql_error::SqlResult};

/// `max text repl size` of a new server, in bytes.
const TEXT_LIMIT: i64 = 65_536;

/// What is turned on, and how.
pub(crate) struct Switches {
    agent: AtomicBool,
    /// As it is configured, and as it is in use since the last `RECONFIGURE`.
    text_limit: [AtomicI64; 2],
    /// Logins that were granted VIEW SERVER STATE, in lower case.
    viewers: Mutex<BTreeSet<String>>,
    /// Access tokens that are valid now, and whose they are.
    tokens: Mutex<BTreeMap<String, String>>,
}

impl fmt::Debug for Switches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are not shown.
        f.debug_struct("Switches").field("agent", &self.agent).finish_non_exhaustive()
    }
}

impl Switches {
    fn tokens(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose a token is, while it is valid.
    pub(crate) fn login_of(&self, token: &str) -> Option<String> {
        self.tokens().get(token).cloned()
    }

    fn viewers(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn agent_runs(&self) -> bool {
        self.agent.load(Ordering::Acquire)
    }

    /// `max text repl size`, as it is configured and as it is in use.
    pub(crate) fn text_limit(&self) -> (i64, i64) {
        let [configured, used] = &self.text_limit;
        (configured.load(Ordering::Acquire), used.load(Ordering::Acquire))
    }

    /// True when a login may look at the state of the server.
    pub(crate) fn shows_its_state_to(&self, rights: &Login) -> bool {
        match rights {
            Login::Owner => true,
            Login::Named(name) => self.viewers().contains(&name.to_lowercase()),
        }
    }
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            agent: AtomicBool::new(true),
            text_limit: [AtomicI64::new(TEXT_LIMIT), AtomicI64::new(TEXT_LIMIT)],
            viewers: Mutex::default(),
            tokens: Mutex::default(),
        }
    }
}

impl FakeServer {
    /// True while SQL Server Agent runs.
    #[must_use]
    pub fn agent_runs(&self) -> bool {
        self.switches().agent_runs()
    }

    /// Stops SQL Server Agent, and with it every capture job.
    pub fn stop_agent(&self) {
        self.switches().agent.store(false, Ordering::Release);
        self.databases().iter().for_each(crate::FakeDatabase::stop_capture);
        self.touch();
    }

    /// Starts SQL Server Agent, and with it the capture jobs that are enabled.
    pub fn start_agent(&self) {
        self.switches().agent.store(true, Ordering::Release);
        for database in self.databases() {
            let jobs = database.jobs();
            if jobs.capture && jobs.capture_enabled {
                database.start_capture();
            }
        }
        self.touch();
    }

    /// `max text repl size` in bytes, as it is configured and as it is in use; -1 for no limit.
    #[must_use]
    pub fn text_limit(&self) -> (i64, i64) {
        self.switches().text_limit()
    }

    /// Configures `max text repl size`. It is not in use yet.
    pub fn set_text_limit(&self, bytes: i64) {
        let [configured, _] = &self.switches().text_limit;
        configured.store(bytes, Ordering::Release);
        self.touch();
    }

    /// Takes what is configured into use.
    pub fn reconfigure(&self) {
        let [configured, used] = &self.switches().text_limit;
        used.store(configured.load(Ordering::Acquire), Ordering::Release);
        self.touch();
    }

    /// Lets whoever brings this access token in as a login.
    pub fn accept_token(&self, token: &str, login: &str) {
        self.switches().tokens().insert(token.into(), login.into());
    }

    /// No access token is valid any more.
    pub fn expire_tokens(&self) {
        self.switches().tokens().clear();
    }

    /// True when a login may look at the state of the server.
    #[must_use]
    pub fn shows_its_state_to(&self, rights: &Login) -> bool {
        self.switches().shows_its_state_to(rights)
    }

    /// Lets a login look at the state of the server, or no more.
    ///
    /// # Errors
    /// 15151 for an unknown login.
    pub fn show_state_to(&self, login: &str, shown: bool) -> SqlResult<()> {
        // Whether there is one, in the words of a change.
        self.alter_login(login, None, |_| {})?;
        let mut viewers = self.switches().viewers();
        if shown {
            viewers.insert(login.to_lowercase());
        } else {
            viewers.remove(&login.to_lowercase());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::Timestamp;

    use super::*;
    use crate::{VirtualClock, Zone};

    fn server() -> FakeServer {
        FakeServer::new(VirtualClock::manual(Timestamp::from_micros(0)), Zone::UTC)
    }

    #[test]
    fn the_capture_job_stops_and_starts_with_agent() {
        let server = server();
        let database = server.database("shop");
        database.set_job(crate::JobKind::Capture, true);
        server.stop_agent();
        assert!(!server.agent_runs() && !database.capture_runs());
        server.start_agent();
        assert!(server.agent_runs() && database.capture_runs());
        database.edit_jobs(|jobs| jobs.capture_enabled = false);
        server.stop_agent();
        server.start_agent();
        assert!(!database.capture_runs(), "a disabled job does not start with agent");
    }

    #[test]
    fn a_setting_is_in_use_once_the_server_is_reconfigured() {
        let server = server();
        assert_eq!(server.text_limit(), (65_536, 65_536));
        server.set_text_limit(-1);
        assert_eq!(server.text_limit(), (-1, 65_536));
        server.reconfigure();
        assert_eq!(server.text_limit(), (-1, -1));
    }

    #[test]
    fn the_servers_state_is_for_those_who_were_granted_it() {
        let server = server();
        server.create_login("reader", "x").expect("is new");
        let reader = Login::named("reader");
        assert!(server.shows_its_state_to(&Login::Owner) && !server.shows_its_state_to(&reader));
        server.show_state_to("reader", true).expect("is there");
        assert!(server.shows_its_state_to(&reader));
    }
}
