//! The session's transaction: one to the client, one in each database that it touches.

use std::collections::BTreeMap;

use cdc_fake::{FakeDatabase, SessionLink, SqlError, SqlResult, Transaction, TransactionHandle};

use super::options::Options;
use crate::talk::Cancel;

/// The open transaction of a session, if any.
pub(super) struct Transactions {
    /// Whose it is, for a KILL to find it.
    session: SessionLink,
    /// `@@TRANCOUNT`.
    pub(super) count: u32,
    /// The name of the outermost BEGIN.
    name: String,
    /// What the protocol calls it by.
    pub(super) descriptor: u64,
    next_descriptor: u64,
    /// By database.
    open: BTreeMap<String, Transaction>,
    savepoints: Vec<Saved>,
    /// Where the statement that runs began.
    mark: Option<BTreeMap<String, cdc_fake::Savepoint>>,
    /// True when an error has left nothing but to roll back (`XACT_STATE()` of -1).
    pub(super) doomed: bool,
}

/// A savepoint: what to go back to in each database that was touched before it.
struct Saved {
    name: String,
    places: BTreeMap<String, cdc_fake::Savepoint>,
}

/// Begins the part of a transaction in one database.
fn begin_in(database: &FakeDatabase, options: &Options, cancel: &Cancel) -> Transaction {
    database.begin_at(options.isolation, waiting(options, cancel))
}

/// How statements wait for others' locks.
pub(super) fn waiting(options: &Options, cancel: &Cancel) -> cdc_fake::Waiting {
    let cancel = cancel.clone();
    cdc_fake::Waiting::limited(options.lock_timeout).until(move || cancel.is_set())
}

impl Transactions {
    /// None yet.
    pub(super) const fn of(session: SessionLink) -> Self {
        Self {
            session,
            count: 0,
            name: String::new(),
            descriptor: 0,
            next_descriptor: 0,
            open: BTreeMap::new(),
            savepoints: Vec::new(),
            mark: None,
            doomed: false,
        }
    }

    /// `BEGIN TRAN`. True when it is the outermost.
    pub(super) fn begin(&mut self, name: &str) -> bool {
        self.count += 1;
        if self.count > 1 {
            return false;
        }
        self.next_descriptor += 1;
        self.descriptor = self.next_descriptor;
        name.clone_into(&mut self.name);
        true
    }

    /// The transaction's part in a database, begun when it is not.
    pub(super) fn part(
        &mut self,
        database: &FakeDatabase,
        options: &Options,
        cancel: &Cancel,
    ) -> &mut Transaction {
        let name = database.name();
        if !self.open.contains_key(name) {
            self.open.insert(name.to_owned(), begin_in(database, options, cancel));
            self.session.holds(self.handles());
        }
        let begin = || begin_in(database, options, cancel);
        let part = self.open.entry(name.to_owned()).or_insert_with(begin);
        part.set_waiting(waiting(options, cancel));
        part
    }

    /// The handles of the parts that are open.
    pub(super) fn handles(&self) -> Vec<TransactionHandle> {
        self.open.values().map(Transaction::handle).collect()
    }

    /// Takes a new isolation level over to the parts that are open.
    pub(super) fn set_isolation(&mut self, isolation: cdc_fake::Isolation) {
        for part in self.open.values_mut() {
            part.set_isolation(isolation);
        }
    }

    /// `COMMIT`. True when everything is committed.
    ///
    /// # Errors
    /// 3902 when there is no transaction, 3930 when it can only be rolled back.
    pub(super) fn commit(&mut self) -> SqlResult<bool> {
        if self.count == 0 {
            return Err(SqlError::new(
                3902,
                "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.",
            ));
        }
        if self.doomed {
            return Err(doomed());
        }
        self.count -= 1;
        if self.count > 0 {
            return Ok(false);
        }
        self.savepoints.clear();
        let parts = std::mem::take(&mut self.open);
        for part in parts.into_values() {
            part.commit()?;
        }
        Ok(true)
    }

    /// `ROLLBACK` of everything.
    ///
    /// # Errors
    /// 3903 when there is no transaction.
    pub(super) fn rollback(&mut self) -> SqlResult<()> {
        if self.count == 0 {
            return Err(SqlError::new(
                3903,
                "The ROLLBACK TRANSACTION request has no corresponding BEGIN TRANSACTION.",
            ));
        }
        self.abandon();
        Ok(())
    }

    /// Leaves nothing of the transaction, if there is one.
    pub(super) fn abandon(&mut self) {
        self.mark = None;
        self.savepoints.clear();
        self.open.clear();
        self.count = 0;
        self.doomed = false;
    }

    /// Sets a savepoint; one of the same name hides the older.
    ///
    /// # Errors
    /// 628 when there is no transaction, 3931 when it is doomed.
    pub(super) fn save(&mut self, name: &str) -> SqlResult<()> {
        if self.count == 0 {
            return Err(SqlError::new(
                628,
                "Cannot issue SAVE TRANSACTION when there is no active transaction.",
            ));
        }
        if self.doomed {
            return Err(SqlError::new(
                3931,
                "The current transaction cannot be committed and cannot be rolled back to a \
                 savepoint. Roll back the entire transaction.",
            ));
        }
        let mut places = BTreeMap::new();
        for (database, part) in &mut self.open {
            places.insert(database.clone(), part.savepoint()?);
        }
        self.savepoints.push(Saved { name: name.to_lowercase(), places });
        Ok(())
    }

    /// Marks where a statement begins.
    ///
    /// # Errors
    /// 628 when the server has ended the transaction.
    pub(super) fn mark(&mut self) -> SqlResult<()> {
        let mut places = BTreeMap::new();
        for (database, part) in &mut self.open {
            places.insert(database.clone(), part.savepoint()?);
        }
        self.mark = Some(places);
        Ok(())
    }

    /// Forgets the mark.
    pub(super) fn unmark(&mut self) {
        self.mark = None;
    }

    /// Takes back what the statement did.
    ///
    /// # Errors
    /// 6401 when the server has ended the transaction.
    pub(super) fn rollback_to_mark(&mut self) -> SqlResult<()> {
        let Some(places) = self.mark.take() else {
            return Ok(());
        };
        for (database, part) in &mut self.open {
            if let Some(place) = places.get(database) {
                part.rollback_to(place)?;
            }
        }
        // A part that the statement began has nothing but the statement in it.
        self.open.retain(|database, _| places.contains_key(database));
        Ok(())
    }

    /// True for the name of the transaction itself.
    pub(super) fn is_named(&self, name: &str) -> bool {
        !self.name.is_empty() && self.name == name
    }

    /// Goes back to a savepoint. The transaction stays open, and so do its locks.
    ///
    /// # Errors
    /// 6401 for a savepoint that is not there, 3931 when the transaction is doomed.
    pub(super) fn rollback_to(&mut self, name: &str) -> SqlResult<()> {
        let lower = name.to_lowercase();
        let Some(at) = self.savepoints.iter().rposition(|saved| saved.name == lower) else {
            return Err(SqlError::new(
                6401,
                format!(
                    "Cannot roll back {name}. No transaction or savepoint of that name was found."
                ),
            ));
        };
        if self.doomed {
            return Err(SqlError::new(
                3931,
                "The current transaction cannot be committed and cannot be rolled back to a \
                 savepoint. Roll back the entire transaction.",
            ));
        }
        self.savepoints.truncate(at + 1);
        let Some(saved) = self.savepoints.last() else {
            return Ok(());
        };
        // A part that began after the savepoint goes altogether.
        self.open.retain(|database, _| saved.places.contains_key(database));
        for (database, part) in &mut self.open {
            if let Some(place) = saved.places.get(database) {
                part.rollback_to(place)?;
            }
        }
        Ok(())
    }

    /// True when the server itself has ended a part: as a deadlock's victim, for instance.
    pub(super) fn was_ended(&self) -> bool {
        self.open.values().any(|part| !part.is_open())
    }

    /// Refuses to change anything in a transaction that can only be rolled back.
    pub(super) fn require_writable(&self) -> SqlResult<()> {
        if self.doomed { Err(doomed()) } else { Ok(()) }
    }
}

fn doomed() -> SqlError {
    SqlError::new(
        3930,
        "The current transaction cannot be committed and cannot support operations that write to \
         the log file. Roll back the transaction.",
    )
}
