//! Locks: what one transaction holds against another, who waits for whom, and who gives way when
//! they wait in a circle.

use std::time::Duration;

use cdc_core::Timestamp;

use crate::{
    database::{DatabaseState, FakeDatabase, StateGuard},
    isolation::Waiting,
    key::SortKey,
    log::TableId,
    sql_error::{SqlError, SqlResult, number},
    transaction::{TransactionId, no_transaction},
};

/// How often a waiting statement looks again at the clock and for a cancellation. Whatever frees
/// a lock wakes it at once. So many looks as fill its time end a wait too, because the server's
/// clock may stand still.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Why an attempt did not succeed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Another transaction holds what is needed.
    Held(TransactionId),
    /// An error that no wait helps.
    Failed(SqlError),
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        Self::Failed(error)
    }
}

/// The outcome of an attempt.
pub(crate) type Tried<T> = Result<T, Refusal>;

/// A lock on a whole table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLock {
    /// Others may read it, but not write (`TABLOCK` with `HOLDLOCK`, serializable reads).
    Shared,
    /// Others may do nothing with it (`TABLOCKX`, schema statements).
    Exclusive,
}

impl FakeDatabase {
    /// Tries until it succeeds, fails, or has waited long enough for what others hold.
    pub(crate) fn attempt<T>(
        &self,
        who: Option<TransactionId>,
        waiting: &Waiting,
        mut work: impl FnMut(&mut StateGuard<'_>) -> Tried<T>,
    ) -> SqlResult<T> {
        let mut deadline: Option<Timestamp> = None;
        let mut waited = Duration::ZERO;
        let mut state = self.look();
        loop {
            let outcome = match state.victim(who) {
                Some(error) => Err(error),
                None => match work(&mut state) {
                    Ok(done) => Ok(Some(done)),
                    Err(Refusal::Failed(error)) => Err(error),
                    Err(Refusal::Held(_)) if waiting.limit() == Some(Duration::ZERO) => {
                        Err(SqlError::lock_timeout())
                    }
                    Err(Refusal::Held(_)) if waiting.is_cancelled() => Err(cancelled()),
                    Err(Refusal::Held(holder)) => {
                        if who.is_some_and(|who| state.quiet().wait_for(who, holder)) {
                            self.shared.changed.notify_all();
                        }
                        Ok(None)
                    }
                },
            };
            match outcome {
                Ok(Some(done)) => {
                    state.quiet().stop_waiting(who);
                    return Ok(done);
                }
                Err(error) => {
                    state.quiet().stop_waiting(who);
                    if let Some(victim) = who.filter(|_| state.victim(who).is_some()) {
                        state.close(victim);
                        self.shared.changed.notify_all();
                    }
                    return Err(error);
                }
                Ok(None) => {}
            }
            let now = self.now();
            let until = deadline.get_or_insert_with(|| end_of(now, waiting.limit()));
            if now >= *until || waiting.limit().is_some_and(|limit| waited >= limit) {
                state.quiet().stop_waiting(who);
                return Err(SqlError::lock_timeout());
            }
            let (again, idle) = self.wait(state, LOOK_AGAIN);
            state = again;
            if idle {
                waited = waited.saturating_add(LOOK_AGAIN);
            }
        }
    }
}

fn end_of(now: Timestamp, limit: Option<Duration>) -> Timestamp {
    let micros =
        limit.map_or(i64::MAX, |limit| i64::try_from(limit.as_micros()).unwrap_or(i64::MAX));
    now.plus_micros(micros)
}

fn cancelled() -> SqlError {
    SqlError::new(number::CANCELLED, "The statement was cancelled while it waited for a lock.")
}

impl DatabaseState {
    /// The error of a transaction that another statement chose as a deadlock's victim.
    fn victim(&self, who: Option<TransactionId>) -> Option<SqlError> {
        let open = self.open.get(&who?)?;
        open.victim.then(SqlError::deadlock)
    }

    fn stop_waiting(&mut self, who: Option<TransactionId>) {
        if let Some(who) = who {
            self.waits.remove(&who);
        }
    }

    /// Notes that one waits for another. Of a circle the youngest transaction gives way: true when
    /// one has to.
    fn wait_for(&mut self, who: TransactionId, holder: TransactionId) -> bool {
        self.waits.insert(who, holder);
        let mut circle = vec![who];
        let mut at = holder;
        while at != who {
            if circle.contains(&at) {
                return false;
            }
            circle.push(at);
            match self.waits.get(&at) {
                Some(next) => at = *next,
                None => return false,
            }
        }
        let victim = circle.into_iter().max();
        let open = victim.and_then(|victim| self.open.get_mut(&victim));
        open.map(|open| open.victim = true).is_some()
    }

    /// Refuses to write a row that another transaction wrote, read to keep, or locked with its
    /// table.
    pub(crate) fn check_write(
        &self,
        who: TransactionId,
        table: TableId,
        key: &SortKey,
    ) -> Tried<()> {
        for (other, open) in &self.open {
            if *other != who
                && (open.holds(table, key)
                    || open.table_locks.contains_key(&table)
                    || open.shared.get(&table).is_some_and(|keys| keys.contains(key)))
            {
                return Err(Refusal::Held(*other));
            }
        }
        Ok(())
    }

    /// Refuses to read a table that another transaction has to itself.
    pub(crate) fn check_read(&self, who: Option<TransactionId>, table: TableId) -> Tried<()> {
        for (other, open) in &self.open {
            if Some(*other) != who && open.table_locks.get(&table) == Some(&TableLock::Exclusive) {
                return Err(Refusal::Held(*other));
            }
        }
        Ok(())
    }

    /// Refuses to change the shape of a table that another transaction wrote, holds or locked.
    pub(crate) fn check_schema(&self, who: Option<TransactionId>, table: TableId) -> Tried<()> {
        for (other, open) in &self.open {
            if Some(*other) != who
                && (open.wrote(table)
                    || open.table_locks.contains_key(&table)
                    || open.shared.get(&table).is_some_and(|keys| !keys.is_empty()))
            {
                return Err(Refusal::Held(*other));
            }
        }
        Ok(())
    }

    /// Locks a whole table to the end of a transaction.
    pub(crate) fn lock_table(
        &mut self,
        who: TransactionId,
        table: TableId,
        lock: TableLock,
    ) -> Tried<()> {
        for (other, open) in &self.open {
            if *other == who {
                continue;
            }
            let held = open.table_locks.get(&table);
            let against = match lock {
                TableLock::Shared => open.wrote(table) || held == Some(&TableLock::Exclusive),
                TableLock::Exclusive => {
                    open.wrote(table)
                        || held.is_some()
                        || open.shared.get(&table).is_some_and(|keys| !keys.is_empty())
                }
            };
            if against {
                return Err(Refusal::Held(*other));
            }
        }
        let open = self.open.get_mut(&who).ok_or_else(no_transaction)?;
        let held = open.table_locks.entry(table).or_insert(lock);
        *held = (*held).max(lock);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
