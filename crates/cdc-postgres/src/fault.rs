//! Faults of the server and of the way to it as the library's errors.
//!
//! The server's words are never shown: they quote values and come in its language. Its number says
//! what happened; names of constraints, tables and columns say where.

use std::error::Error as StdError;

use cdc_core::{Error, ErrorKind};

/// What a number of the server means: a class of two characters, or a whole number of five.
struct Meaning {
    code: &'static str,
    kind: ErrorKind,
    words: &'static str,
    remedy: Option<&'static str>,
}

const fn meaning(code: &'static str, kind: ErrorKind, words: &'static str) -> Meaning {
    Meaning { code, kind, words, remedy: None }
}

const fn remedied(
    code: &'static str,
    kind: ErrorKind,
    words: &'static str,
    remedy: &'static str,
) -> Meaning {
    Meaning { code, kind, words, remedy: Some(remedy) }
}

/// The longest code that matches counts; whole numbers stand before their class.
static MEANINGS: &[Meaning] = &[
    meaning("08", ErrorKind::Unavailable, "the connection to the server failed"),
    remedied(
        "25006",
        ErrorKind::Unavailable,
        "the server takes no writes",
        "connect to the primary; a standby, and a server in recovery, only reads",
    ),
    meaning("25P03", ErrorKind::Unavailable, "the server ended a transaction that stood still"),
    meaning("25", ErrorKind::Bug, "a transaction was in a state that the step does not allow"),
    remedied(
        "28",
        ErrorKind::Unauthorized,
        "the server refused the login",
        "correct user and password, or let the user in by a line of pg_hba.conf",
    ),
    remedied(
        "3D000",
        ErrorKind::Config,
        "the server has no database of that name",
        "create the database, or correct the setting database",
    ),
    meaning("3F000", ErrorKind::Config, "the server has no schema of that name"),
    meaning("40", ErrorKind::Conflict, "another session won a race"),
    remedied(
        "42501",
        ErrorKind::Unauthorized,
        "a right is missing",
        "GRANT USAGE, CREATE on the schema and TEMPORARY on the database to the user; the user has \
         to own the tables",
    ),
    meaning("42P07", ErrorKind::Conflict, "another session made the same table"),
    meaning("42710", ErrorKind::Conflict, "another session made the same object"),
    remedied(
        "42P01",
        ErrorKind::InvalidData,
        "a table of the target is gone",
        "restore it, or drop what is left of the target together with its row of cdc_control",
    ),
    remedied(
        "42703",
        ErrorKind::InvalidData,
        "a column of the target is gone",
        "restore it, or drop the target together with its row of cdc_control",
    ),
    remedied(
        "42P10",
        ErrorKind::InvalidData,
        "the target's key is gone",
        "restore the primary key or unique index of the target's key columns",
    ),
    remedied(
        "42809",
        ErrorKind::Config,
        "something else than a table has the target's name",
        "give the table another target",
    ),
    meaning("42", ErrorKind::Bug, "the server refused a statement"),
    meaning("22", ErrorKind::InvalidData, "a value does not fit its column"),
    remedied(
        "23",
        ErrorKind::InvalidData,
        "a row breaks a constraint of the target",
        "drop the named constraint; the target takes what the source holds",
    ),
    remedied(
        "53100",
        ErrorKind::Unavailable,
        "the server's disk is full",
        "free space on the server; the run resumes from its mark",
    ),
    remedied(
        "53300",
        ErrorKind::Unavailable,
        "the server has no free connection",
        "raise max_connections of the server, or lower connections_max",
    ),
    meaning("53", ErrorKind::Unavailable, "the server lacks a resource"),
    remedied(
        "54",
        ErrorKind::InvalidData,
        "a row is larger than the server stores, or its key than an index holds",
        "leave the large column out; a key has at most 2,704 bytes",
    ),
    meaning("55P03", ErrorKind::Unavailable, "another session holds a lock for too long"),
    meaning("55006", ErrorKind::Unavailable, "another session uses the object"),
    meaning("57014", ErrorKind::Unavailable, "the server cancelled a statement"),
    remedied(
        "57P04",
        ErrorKind::Config,
        "the database was dropped",
        "restore the database, or correct the setting database",
    ),
    meaning("57", ErrorKind::Unavailable, "the server is shutting down or starting"),
    meaning("58", ErrorKind::Unavailable, "the server's system failed"),
    meaning("0A", ErrorKind::Unsupported, "the server does not have what the step needs"),
    meaning("0L", ErrorKind::Unauthorized, "a right is missing"),
    meaning("0P", ErrorKind::Unauthorized, "the role does not exist"),
    meaning("XX001", ErrorKind::InvalidData, "the server found a damaged page"),
    meaning("XX002", ErrorKind::InvalidData, "the server found a damaged index"),
];

/// What a number means that no line knows.
static UNKNOWN: Meaning = meaning("", ErrorKind::Unavailable, "the server refused a step");

fn look_up(code: &str) -> &'static Meaning {
    let matching = MEANINGS.iter().filter(|meaning| code.starts_with(meaning.code));
    matching.max_by_key(|meaning| meaning.code.len()).unwrap_or(&UNKNOWN)
}

/// A fault of the driver: what the server said, or that it was not reached.
pub(crate) fn driver(error: &tokio_postgres::Error) -> Error {
    if let Some(said) = error.as_db_error() {
        let found = look_up(said.code().code());
        let mut made = Error::new(found.kind, found.words).with("sqlstate", said.code().code());
        for (key, name) in [
            ("relation", said.table()),
            ("column", said.column()),
            ("constraint", said.constraint()),
        ] {
            if let Some(name) = name {
                made = made.with(key, name);
            }
        }
        return match found.remedy {
            Some(remedy) => made.remedy(remedy),
            None => made,
        };
    }
    reached(error)
}

/// A fault below the protocol: a certificate that is not believed stays wrong, the rest passes.
fn reached(error: &tokio_postgres::Error) -> Error {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
            return tls_refused(tls);
        }
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            let inner = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            if let Some(tls) = inner {
                return tls_refused(tls);
            }
            return Error::new(ErrorKind::Unavailable, "the server cannot be reached")
                .with("reason", io.kind());
        }
        next = cause.source();
    }
    if error.is_closed() {
        return Error::new(ErrorKind::Unavailable, "the connection to the server was closed");
    }
    // Only the driver's own words are left, which name no value: how far it came.
    Error::new(ErrorKind::Unavailable, "the connection to the server failed")
        .with("step", error.to_string())
}

fn tls_refused(error: &rustls::Error) -> Error {
    Error::new(ErrorKind::Config, "the server's certificate is not believed")
        .with("reason", error)
        .remedy("give the authority that signed it in tls_ca_file, and the host by the name in it")
}

/// The pool gave no connection.
pub(crate) fn pool(error: deadpool_postgres::PoolError) -> Error {
    use deadpool_postgres::{PoolError as P, TimeoutType};
    match error {
        P::Backend(error) => driver(&error),
        P::Timeout(TimeoutType::Wait) => {
            Error::new(ErrorKind::Unavailable, "every connection is in use")
                .with("setting", "connections_max")
                .remedy("raise connections_max, or lower tables_at_once")
        }
        P::Timeout(_) => Error::new(ErrorKind::Unavailable, "the server does not answer in time")
            .with("setting", "connect_timeout"),
        P::Closed | P::NoRuntimeSpecified | P::PostCreateHook(_) => {
            Error::bug("the pool of connections cannot be used")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_its_kind() {
        use ErrorKind as K;
        for (code, kind) in [
            ("08006", K::Unavailable),
            ("25006", K::Unavailable),
            ("25P02", K::Bug),
            ("25P03", K::Unavailable),
            ("28P01", K::Unauthorized),
            ("28000", K::Unauthorized),
            ("3D000", K::Config),
            ("3F000", K::Config),
            ("40001", K::Conflict),
            ("40P01", K::Conflict),
            ("42501", K::Unauthorized),
            ("42P07", K::Conflict),
            ("42710", K::Conflict),
            ("42P01", K::InvalidData),
            ("42703", K::InvalidData),
            ("42P10", K::InvalidData),
            ("42809", K::Config),
            ("42601", K::Bug),
            ("22021", K::InvalidData),
            ("22003", K::InvalidData),
            ("23502", K::InvalidData),
            ("23505", K::InvalidData),
            ("53100", K::Unavailable),
            ("53300", K::Unavailable),
            ("53200", K::Unavailable),
            ("54000", K::InvalidData),
            ("55P03", K::Unavailable),
            ("55006", K::Unavailable),
            ("57014", K::Unavailable),
            ("57P01", K::Unavailable),
            ("57P02", K::Unavailable),
            ("57P03", K::Unavailable),
            ("57P04", K::Config),
            ("58030", K::Unavailable),
            ("0A000", K::Unsupported),
            ("0LP01", K::Unauthorized),
            ("0P000", K::Unauthorized),
            ("XX001", K::InvalidData),
            ("XX002", K::InvalidData),
            ("XX000", K::Unavailable),
            ("99999", K::Unavailable),
        ] {
            assert_eq!(look_up(code).kind, kind, "{code}");
        }
    }

    #[test]
    fn every_line_is_reached_by_its_own_code() {
        for line in MEANINGS {
            assert_eq!(look_up(line.code).code, line.code);
        }
    }
}
