//! The catalogue over `cdc-fake`: tables, change tables, views, procedures and functions.

use std::{sync::Arc, time::Duration};

use cdc_fake::{
    FakeDatabase, FakeServer, Isolation, Login, ReadOptions, SqlError, SqlResult,
    TransactionHandle, Value, Waiting,
};

use crate::{
    kind::{Collation, Kind, Typed},
    relation::{Catalogue, Moment, ObjectName, Relation, RelationColumn, Settings},
    talk::Cancel,
};

mod procedure;

pub(crate) use procedure::{Parameter, ProcedureInfo, ProcedureOutput, procedure};

/// Who asks, and how its statements read.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The rights that the login comes with: all of a `sysadmin`, else those of its users.
    pub(crate) rights: Login,
    /// The login's name.
    pub(crate) login: String,
    /// `@@SPID`.
    pub(crate) session: i32,
    /// The client's host and program.
    pub(crate) host: String,
    /// The client's program.
    pub(crate) application: String,
    /// The isolation level.
    pub(crate) isolation: Isolation,
    /// `SET LOCK_TIMEOUT`; none waits for ever.
    pub(crate) lock_timeout: Option<Duration>,
    /// The open transactions of the session, one a database.
    pub(crate) transactions: Vec<TransactionHandle>,
    /// Ends a wait.
    pub(crate) cancel: Cancel,
    /// The moment that the statement takes for now.
    pub(crate) now: Moment,
    /// The session's settings.
    pub(crate) settings: Settings,
}

impl Access {
    /// How statements wait for locks.
    pub(crate) fn waiting(&self) -> Waiting {
        let cancel = self.cancel.clone();
        Waiting::limited(self.lock_timeout).until(move || cancel.is_set())
    }

    /// How statements read a database.
    pub(crate) fn reading(&self, database: &FakeDatabase) -> ReadOptions {
        ReadOptions {
            isolation: self.isolation,
            waiting: self.waiting(),
            transaction: self
                .transactions
                .iter()
                .find(|handle| handle.database().is_same(database))
                .cloned(),
            ..ReadOptions::default()
        }
    }
}

/// What names mean in a database, without variables.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) server: &'a FakeServer,
    pub(crate) database: &'a FakeDatabase,
    pub(crate) access: &'a Access,
}

impl<'a> Names<'a> {
    /// The names of a database, as a session sees them.
    pub(crate) const fn new(
        server: &'a FakeServer,
        database: &'a FakeDatabase,
        access: &'a Access,
    ) -> Self {
        Self { server, database, access }
    }
}
