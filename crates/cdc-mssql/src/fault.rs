//! What went wrong at the server or on the way to it, and the one table from error numbers to what
//! is done about them.

use cdc_core::{Error, ErrorKind};

mod tls;

/// Numbers that the source itself looks at.
pub(crate) mod number {
    /// A name that is no object.
    pub(crate) const INVALID_OBJECT: u32 = 208;
    /// No right on an object, on a column.
    pub(crate) const PERMISSION_DENIED: [u32; 2] = [229, 230];
    /// The login is refused.
    pub(crate) const LOGIN_FAILED: u32 = 18_456;
    /// The database does not capture changes.
    pub(crate) const NOT_CAPTURING: u32 = 22_901;
    /// "The object does not exist or access is denied."
    pub(crate) const NO_INSTANCE: u32 = 22_981;
}

/// A row of the table: the number, the kind, whether a new connection may help, and the words.
///
/// The server's own texts are not used: they come in the server's language, and some of them quote
/// a value.
type Known = (u32, ErrorKind, bool, &'static str);

/// Errors that are known. Transient ones are tried again on a new connection.
const KNOWN: &[Known] = {
    use ErrorKind::{Config, DataLoss, InvalidData, Unauthorized, Unavailable};
    &[
        // Permanent.
        (102, ErrorKind::Bug, false, "the server does not understand a statement"),
        (156, ErrorKind::Bug, false, "the server does not understand a statement"),
        (207, Config, false, "a column does not exist"),
        (208, Config, false, "an object does not exist"),
        (229, Unauthorized, false, "the right to read an object is missing"),
        (230, Unauthorized, false, "the right to read a column is missing"),
        (241, InvalidData, false, "a text is no date or time"),
        (244, InvalidData, false, "a value does not fit the type"),
        (245, InvalidData, false, "a value cannot be converted"),
        (262, Unauthorized, false, "a right in the database is missing"),
        (297, Unauthorized, false, "a right is missing"),
        (300, Unauthorized, false, "a right on the server is missing"),
        (313, DataLoss, false, "the range is outside of what the server still holds"),
        (911, Config, false, "the database does not exist"),
        (916, Unauthorized, false, "the login has no user in the database"),
        (2714, ErrorKind::Bug, false, "an object exists already"),
        (3952, Config, false, "the database does not allow snapshot isolation"),
        (8114, InvalidData, false, "a value cannot be converted"),
        (8115, InvalidData, false, "a value does not fit the type"),
        (8134, InvalidData, false, "a division by zero in a computed column"),
        (18_452, Unauthorized, false, "the server refuses the login: it is of another domain"),
        (18_456, Unauthorized, false, "the server refuses the login"),
        (18_470, Unauthorized, false, "the server refuses the login: the account is disabled"),
        (18_486, Unauthorized, false, "the server refuses the login: the account is locked"),
        (18_487, Unauthorized, false, "the server refuses the login: the password has expired"),
        (18_488, Unauthorized, false, "the server refuses the login: its password must be changed"),
        (22_901, Config, false, "the database is not enabled for change data capture"),
        (22_904, Unauthorized, false, "the right to ask about change data capture is missing"),
        (22_981, Config, false, "an object does not exist, or the login may not see it"),
        (22_985, Config, false, "an object does not exist, or the login may not see it"),
        (40_615, Unauthorized, false, "the server's firewall refuses this address"),
        (40_914, Unauthorized, false, "the server's firewall refuses this network"),
        // A server that is not there yet, not there any more, or busy.
        (20, Unavailable, true, "the server does not support encryption now"),
        (64, Unavailable, true, "the connection was lost"),
        (121, Unavailable, true, "the connection timed out"),
        (233, Unavailable, true, "the connection was lost"),
        (596, Unavailable, true, "the session was ended"),
        (601, Unavailable, true, "rows moved while they were read"),
        (605, Unavailable, true, "a page moved while it was read"),
        (615, Unavailable, true, "the database was reopened meanwhile"),
        (617, Unavailable, true, "the server lost track of a table"),
        (669, Unavailable, true, "the server lost track of a row"),
        (701, Unavailable, true, "the server is out of memory"),
        (802, Unavailable, true, "the server is out of buffers"),
        (847, Unavailable, true, "the server waited too long for a page"),
        (921, Unavailable, true, "the database is being recovered"),
        (922, Unavailable, true, "the database is being recovered"),
        (924, Unavailable, true, "the database is in single-user mode"),
        (926, Unavailable, true, "the database is being recovered"),
        (927, Unavailable, true, "the database is being restored"),
        (942, Unavailable, true, "the database is offline"),
        (945, Unavailable, true, "the database cannot be opened now"),
        (952, Unavailable, true, "the database is in transition"),
        (976, Unavailable, true, "the replica does not take reads now"),
        (978, Unavailable, true, "the replica takes read-only connections alone"),
        (979, Unavailable, true, "the replica takes no reads"),
        (982, Unavailable, true, "no replica takes reads now"),
        (983, Unavailable, true, "the replica is changing its role"),
        (1203, Unavailable, true, "the server lost a lock"),
        (1204, Unavailable, true, "the server is out of locks"),
        (1205, Unavailable, true, "the statement was the victim of a deadlock"),
        (1221, Unavailable, true, "a lock was given back too early"),
        (1222, Unavailable, true, "a lock was not granted in time"),
        (1807, Unavailable, true, "the server waits for a lock on a database"),
        (3928, Unavailable, true, "the session's transaction was ended"),
        (3935, Unavailable, true, "a version of a row could not be kept"),
        (3957, Unavailable, true, "the row changed its form during a snapshot"),
        (3960, Unavailable, true, "the row changed during a snapshot"),
        (3961, Unavailable, true, "the table changed its form during a snapshot"),
        (3966, Unavailable, true, "the version store has no room"),
        // A misspelt database, but also one that a failover has not opened yet: worth a few tries,
        // and then it is a setting.
        (4060, Config, true, "the database cannot be opened with this login"),
        (4221, Unavailable, true, "the replica waits for versions of rows"),
        (5120, Unavailable, true, "the server cannot open a file"),
        (6005, Unavailable, true, "the server is shutting down"),
        (8628, Unavailable, true, "the server waited too long for memory"),
        (8645, Unavailable, true, "the server waited too long for memory"),
        (8651, Unavailable, true, "the server is out of memory"),
        (9002, Unavailable, true, "the log is full"),
        (9515, Unavailable, true, "an object changed while it was read"),
        (10_053, Unavailable, true, "the connection was lost"),
        (10_054, Unavailable, true, "the connection was lost"),
        (10_060, Unavailable, true, "the server does not answer"),
        (10_922, Unavailable, true, "a statement could not be carried out now"),
        (10_928, Unavailable, true, "the resource's limit of requests is reached"),
        (10_929, Unavailable, true, "the server is too busy"),
        (10_936, Unavailable, true, "the pool's limit of requests is reached"),
        (11_001, Unavailable, true, "the server's name is not known now"),
        (17_142, Unavailable, true, "the server is paused"),
        (17_197, Unavailable, true, "the login timed out"),
        (18_401, Unavailable, true, "the server is being upgraded"),
        (40_143, Unavailable, true, "the service met an error"),
        (40_197, Unavailable, true, "the service met an error"),
        (40_501, Unavailable, true, "the service is busy"),
        (40_540, Unavailable, true, "the service met an error"),
        (40_613, Unavailable, true, "the database is not available now"),
        (41_301, Unavailable, true, "a transaction that this one depends on was ended"),
        (41_302, Unavailable, true, "the row changed during the transaction"),
        (41_305, Unavailable, true, "the row changed during the transaction"),
        (41_325, Unavailable, true, "the row changed during the transaction"),
        (41_839, Unavailable, true, "too many transactions depend on one another"),
        (42_108, Unavailable, true, "the pool is paused"),
        (42_109, Unavailable, true, "the pool is warming up"),
        (49_918, Unavailable, true, "the service has no resources for the request"),
        (49_919, Unavailable, true, "the service has too many requests"),
        (49_920, Unavailable, true, "the service has too many requests"),
        (49_983, Unavailable, true, "the service is preparing the database"),
    ]
};

/// The class from which an error ends the session or the server: resources, files, hardware.
const CLASS_OF_THE_SERVER: u8 = 17;

/// A failure below the source, on its way to an [`Error`].
#[derive(Debug)]
pub(crate) struct Fault {
    /// The server's number, when the server spoke.
    pub(crate) number: Option<u32>,
    /// True when the same statement may succeed on a new connection.
    pub(crate) transient: bool,
    /// What the caller is told.
    pub(crate) error: Error,
}

impl Fault {
    /// An error that the server raised.
    pub(crate) fn server(number: u32, state: u8, class: u8) -> Self {
        let known = KNOWN.iter().find(|known| known.0 == number);
        let (kind, transient, words) = match known {
            Some((_, kind, transient, words)) => (*kind, *transient, *words),
            None if class >= CLASS_OF_THE_SERVER => {
                (ErrorKind::Unavailable, true, "the server met an error")
            }
            None => (ErrorKind::Bug, false, "the server refuses a statement"),
        };
        let error =
            Error::new(kind, words).with("error", number).with("state", state).with("class", class);
        let error = match number {
            18_456 => error.remedy("check source.user and its password"),
            4060 | 911 => {
                error.remedy("check source.database, and that the login has a user in it")
            }
            916 => {
                error.remedy("run in the database: CREATE USER [the login] FOR LOGIN [the login]")
            }
            22_901 => error.remedy("run in the database: EXEC sys.sp_cdc_enable_db"),
            _ => error,
        };
        Self { number: Some(number), transient, error }
    }

    /// A connection that could not be made, or was lost.
    pub(crate) fn lost(message: impl Into<String>) -> Self {
        Self { number: None, transient: true, error: Error::new(ErrorKind::Unavailable, message) }
    }

    /// The server said nothing for too long.
    pub(crate) fn silence() -> Self {
        let mut fault = Self::lost("the server is silent");
        fault.error = fault.error.with("setting", "source.silence_max");
        fault
    }

    /// TLS does not come about: for a certificate, or for want of a common version.
    pub(crate) fn tls(message: &str) -> Self {
        Self::permanent(tls::error(message))
    }

    /// Something that trying again does not change.
    pub(crate) fn permanent(error: Error) -> Self {
        Self { number: None, transient: false, error }
    }

    /// True when the server said so with one of these numbers.
    pub(crate) fn is(&self, numbers: &[u32]) -> bool {
        self.number.is_some_and(|number| numbers.contains(&number))
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        fault.error
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::permanent(error)
    }
}

impl From<tiberius::error::Error> for Fault {
    fn from(error: tiberius::error::Error) -> Self {
        use tiberius::error::Error as Driver;
        match error {
            Driver::Server(token) => Self::server(token.code(), token.state(), token.class()),
            Driver::Io { kind, message } => match tls::cause(&message) {
                // The authorities are read where the driver reports it like a lost connection.
                Some(error) => Self::permanent(error),
                None => Self::lost(format!("the connection failed: {kind}")).with_detail(&message),
            },
            Driver::Routing { .. } => Self::lost("the server keeps sending the login elsewhere"),
            Driver::Tls(message) => Self::tls(&message),
            Driver::Protocol(message) => {
                Self::permanent(tls::cause(&message).unwrap_or_else(|| {
                    Error::new(ErrorKind::InvalidData, "the server's answer cannot be understood")
                        .with("protocol", message)
                }))
            }
            // What is left quotes values.
            _ => Self::permanent(Error::new(
                ErrorKind::InvalidData,
                "a value of the server cannot be understood",
            )),
        }
    }
}

impl Fault {
    fn with_detail(mut self, detail: &str) -> Self {
        self.error = self.error.with("cause", detail);
        self
    }
}

#[cfg(test)]
mod tests;
