//! The errors a SQL Server raises, by number, and the one table from numbers to error kinds.

use cdc_core::{Error, ErrorKind};

/// An error as the server raises it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (error {number})")]
pub struct SqlError {
    /// The server's number; [`number::CONNECTION_RESET`] for a connection that died.
    pub number: i32,
    /// The message, in the server's words as far as a client may rely on them.
    pub message: String,
    /// Errors that the server tells before this one, which sums them up.
    pub earlier: Vec<SqlError>,
}

/// A result of the server.
pub type SqlResult<T> = Result<T, SqlError>;

/// Numbers of the errors that the fake raises or that a test may plant.
#[allow(missing_docs, reason = "the names say what the server says")]
pub mod number {
    pub const TIMEOUT: i32 = -2;
    pub const CANCELLED: i32 = 3617;
    pub const OPERAND_CLASH: i32 = 206;
    pub const INVALID_COLUMN: i32 = 207;
    pub const INVALID_OBJECT: i32 = 208;
    pub const PERMISSION_DENIED: i32 = 229;
    pub const COLUMN_COUNT: i32 = 213;
    pub const COLUMN_TWICE: i32 = 264;
    pub const COMPUTED_COLUMN: i32 = 271;
    pub const TIMESTAMP_WRITE: i32 = 272;
    pub const TIMESTAMP_INSERT: i32 = 273;
    pub const INSUFFICIENT_ARGUMENTS: i32 = 313;
    pub const INVALID_COLLATION: i32 = 448;
    pub const NOT_NULL: i32 = 515;
    /// A column without NULL and without a default, for a table with rows.
    pub const NO_ROOM_FOR_COLUMN: i32 = 4901;
    pub const IDENTITY_INSERT_OFF: i32 = 544;
    pub const IDENTITY_INSERT_MISSING: i32 = 545;
    pub const CONSTRAINT_CONFLICT: i32 = 547;
    pub const SESSION_KILLED: i32 = 596;
    pub const ROW_MOVED: i32 = 601;
    pub const SAVE_WITHOUT_TRANSACTION: i32 = 628;
    pub const NO_DATABASE: i32 = 911;
    pub const NO_DATABASE_ACCESS: i32 = 916;
    pub const DEADLOCK: i32 = 1205;
    pub const LOCK_TIMEOUT: i32 = 1222;
    pub const KEY_NOT_UNIQUE: i32 = 1505;
    pub const DATABASE_EXISTS: i32 = 1801;
    pub const INDEX_EXISTS: i32 = 1913;
    pub const DUPLICATE_INDEX_KEY: i32 = 2601;
    pub const TRUNCATED: i32 = 2628;
    pub const DUPLICATE_KEY: i32 = 2627;
    pub const OBJECT_EXISTS: i32 = 2714;
    pub const DUPLICATE_COLUMN: i32 = 2705;
    pub const CANNOT_DROP: i32 = 3701;
    pub const CONSTRAINT_UNKNOWN: i32 = 3728;
    pub const SNAPSHOT_NOT_ALLOWED: i32 = 3952;
    pub const SNAPSHOT_CONFLICT: i32 = 3960;
    pub const COLUMN_IN_USE: i32 = 4922;
    pub const COLUMN_HAS_DEPENDENT: i32 = 5074;
    pub const RENAME_ENFORCED: i32 = 15336;
    pub const KILL_UNKNOWN: i32 = 6106;
    pub const SAVEPOINT_UNKNOWN: i32 = 6401;
    pub const IDENTITY_UPDATE: i32 = 8102;
    pub const NULLABLE_KEY: i32 = 8111;
    pub const PRINCIPAL_EXISTS: i32 = 15023;
    pub const LOGIN_EXISTS: i32 = 15025;
    pub const PRINCIPAL_UNKNOWN: i32 = 15151;
    pub const LOGIN_FAILED: i32 = 18456;
    pub const NOT_SUPPORTED: i32 = 50_000;
    pub const TRUNCATE_REFUSED: i32 = 4711;
    pub const ALTER_REPLICATED: i32 = 4928;
    pub const NO_TRANSACTION: i32 = 3902;
    pub const OVERFLOW: i32 = 8115;
    pub const LOG_FULL: i32 = 9002;
    pub const CONNECTION_RESET: i32 = 10054;
    pub const DATABASE_UNAVAILABLE: i32 = 40613;
    pub const CDC_NOT_ENABLED: i32 = 22901;
    pub const INSTANCE_NAME_TAKEN: i32 = 22926;
    pub const INDEX_UNFIT: i32 = 22942;
    pub const TWO_INSTANCES: i32 = 22962;
    pub const LOW_ENDPOINT: i32 = 22964;
    pub const INSTANCE_UNKNOWN: i32 = 22960;
}

impl SqlError {
    /// An error with its number.
    #[must_use]
    pub fn new(number: i32, message: impl Into<String>) -> Self {
        Self { number, message: message.into(), earlier: Vec::new() }
    }

    /// The same, behind errors that it sums up.
    #[must_use]
    pub fn behind(self, earlier: Vec<Self>) -> Self {
        Self { earlier, ..self }
    }

    /// A transaction chosen as the victim of a deadlock.
    #[must_use]
    pub fn deadlock() -> Self {
        Self::new(
            number::DEADLOCK,
            "Transaction was deadlocked on lock resources with another process and has been chosen \
             as the deadlock victim. Rerun the transaction.",
        )
    }

    /// A lock that another transaction holds.
    #[must_use]
    pub fn lock_timeout() -> Self {
        Self::new(number::LOCK_TIMEOUT, "Lock request time out period exceeded.")
    }

    /// A connection that was killed.
    #[must_use]
    pub fn killed() -> Self {
        Self::new(number::CONNECTION_RESET, "connection was forcibly closed")
    }

    /// A right that is missing, with the statement that grants it.
    #[must_use]
    pub fn denied(grant: &str) -> Self {
        Self::new(number::PERMISSION_DENIED, grant)
    }

    /// An object that does not exist.
    #[must_use]
    pub fn invalid_object(name: &str) -> Self {
        Self::new(number::INVALID_OBJECT, format!("Invalid object name '{name}'."))
    }

    /// A column that does not exist.
    #[must_use]
    pub fn invalid_column(name: &str) -> Self {
        Self::new(number::INVALID_COLUMN, format!("Invalid column name '{name}'."))
    }

    /// What a client does about the error.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self.number {
            number::TIMEOUT
            | number::SESSION_KILLED
            | number::DEADLOCK
            | number::LOCK_TIMEOUT
            | number::SNAPSHOT_CONFLICT
            | number::LOG_FULL
            | number::CONNECTION_RESET
            | number::DATABASE_UNAVAILABLE => ErrorKind::Unavailable,
            number::PERMISSION_DENIED => ErrorKind::Unauthorized,
            number::INVALID_COLUMN
            | number::INVALID_OBJECT
            | number::CDC_NOT_ENABLED
            | number::INSTANCE_UNKNOWN => ErrorKind::Config,
            number::OPERAND_CLASH | number::TRUNCATED | number::OVERFLOW | number::NOT_NULL => {
                ErrorKind::InvalidData
            }
            number::INSUFFICIENT_ARGUMENTS => ErrorKind::DataLoss,
            _ => ErrorKind::Bug,
        }
    }
}

impl From<SqlError> for Error {
    fn from(error: SqlError) -> Self {
        let kind = error.kind();
        let made = match kind {
            ErrorKind::Unauthorized => Error::new(kind, "a right is missing")
                .remedy(format!("run: {}", error.message))
                .with("grant", &error.message),
            _ => Error::new(kind, error.message.clone()),
        };
        made.with("error", error.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_the_kind_that_a_client_acts_on() {
        for (number, kind) in [
            (number::TIMEOUT, ErrorKind::Unavailable),
            (number::DEADLOCK, ErrorKind::Unavailable),
            (number::LOCK_TIMEOUT, ErrorKind::Unavailable),
            (number::SNAPSHOT_CONFLICT, ErrorKind::Unavailable),
            (number::SESSION_KILLED, ErrorKind::Unavailable),
            (number::CONNECTION_RESET, ErrorKind::Unavailable),
            (number::DATABASE_UNAVAILABLE, ErrorKind::Unavailable),
            (number::LOG_FULL, ErrorKind::Unavailable),
            (number::PERMISSION_DENIED, ErrorKind::Unauthorized),
            (number::INVALID_OBJECT, ErrorKind::Config),
            (number::INVALID_COLUMN, ErrorKind::Config),
            (number::CDC_NOT_ENABLED, ErrorKind::Config),
            (number::INSTANCE_UNKNOWN, ErrorKind::Config),
            (number::OPERAND_CLASH, ErrorKind::InvalidData),
            (number::TRUNCATED, ErrorKind::InvalidData),
            (number::OVERFLOW, ErrorKind::InvalidData),
            (number::NOT_NULL, ErrorKind::InvalidData),
            (number::INSUFFICIENT_ARGUMENTS, ErrorKind::DataLoss),
            (number::DUPLICATE_KEY, ErrorKind::Bug),
        ] {
            assert_eq!(SqlError::new(number, "x").kind(), kind, "{number}");
        }
    }

    #[test]
    fn a_missing_right_names_the_grant() {
        let error = Error::from(SqlError::denied("GRANT SELECT ON cdc.[dbo_t_CT] TO [reader]"));
        assert_eq!(error.kind(), ErrorKind::Unauthorized);
        assert!(error.advice().contains("GRANT SELECT ON cdc.[dbo_t_CT] TO [reader]"));
    }
}
