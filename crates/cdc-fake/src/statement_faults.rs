//! Trouble planted for statements: errors, slowness, connections that end in mid-result.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::sql_error::SqlError;

/// What waits to happen to statements of a server.
#[derive(Debug, Default)]
pub struct StatementFaults(Mutex<Planted>);

#[derive(Debug, Default)]
struct Planted {
    errors: VecDeque<PlantedError>,
    kills: VecDeque<u64>,
    pause: Option<Duration>,
}

#[derive(Clone, Debug)]
struct PlantedError {
    /// The first words of the statements it happens to, in upper case; empty for all.
    statement: String,
    error: SqlError,
    left: u64,
}

/// What a statement meets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatementEncounter {
    /// It fails so, and does nothing.
    pub error: Option<SqlError>,
    /// It takes this long on the server's clock first.
    pub pause: Option<Duration>,
    /// Its connection ends after so many rows of its result.
    pub kill_after_rows: Option<u64>,
}

impl StatementFaults {
    fn planted(&self) -> MutexGuard<'_, Planted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next `times` statements fail whose kind (`SELECT`, `INSERT`, `EXECUTE`, ...) is
    /// this; empty for any kind.
    pub fn inject(&self, statement: &str, error: SqlError, times: u64) {
        let statement = statement.trim().to_uppercase();
        self.planted().errors.push_back(PlantedError { statement, error, left: times });
    }

    /// Ends the connection of the next statement with a result after so many rows.
    pub fn kill_after_rows(&self, rows: u64) {
        self.planted().kills.push_back(rows);
    }

    /// Makes every statement take this long from now on; none for no pause.
    pub fn slow(&self, pause: Option<Duration>) {
        self.planted().pause = pause.filter(|pause| !pause.is_zero());
    }

    /// True when no trouble waits.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        let planted = self.planted();
        planted.errors.is_empty() && planted.kills.is_empty() && planted.pause.is_none()
    }

    /// Forgets what was planted and has not happened.
    pub fn clear(&self) {
        *self.planted() = Planted::default();
    }

    /// What a statement of this kind meets now.
    #[must_use]
    pub fn meet(&self, statement: &str, has_result: bool) -> StatementEncounter {
        let mut planted = self.planted();
        let found = planted.errors.iter_mut().find(|planted| {
            planted.left > 0
                && (planted.statement.is_empty()
                    || planted.statement.eq_ignore_ascii_case(statement))
        });
        let error = found.map(|planted| {
            planted.left -= 1;
            planted.error.clone()
        });
        planted.errors.retain(|planted| planted.left > 0);
        let kill_after_rows =
            if has_result && error.is_none() { planted.kills.pop_front() } else { None };
        StatementEncounter { error, pause: planted.pause, kill_after_rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_error_meets_its_kind_of_statement_as_often_as_told() {
        let faults = StatementFaults::default();
        faults.inject("select", SqlError::deadlock(), 2);
        assert_eq!(faults.meet("INSERT", false).error, None);
        assert_eq!(faults.meet("SELECT", true).error, Some(SqlError::deadlock()));
        assert_eq!(faults.meet("Select", true).error, Some(SqlError::deadlock()));
        assert_eq!(faults.meet("SELECT", true).error, None);
    }

    #[test]
    fn a_kill_waits_for_a_statement_with_a_result() {
        let faults = StatementFaults::default();
        faults.kill_after_rows(3);
        assert_eq!(faults.meet("UPDATE", false).kill_after_rows, None);
        assert_eq!(faults.meet("SELECT", true).kill_after_rows, Some(3));
        assert_eq!(faults.meet("SELECT", true).kill_after_rows, None);
    }
}
