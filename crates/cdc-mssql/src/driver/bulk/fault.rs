//! What the errors of `mssql-tds` mean.

use cdc_core::{Error, ErrorKind};
use mssql_tds::error::Error as Driver;

use crate::fault::Fault;

impl From<Driver> for Fault {
    fn from(error: Driver) -> Self {
        match error {
            Driver::SqlServerError { diagnostics } => match diagnostics.errors.first() {
                Some(first) => {
                    let class = u8::try_from(first.class).unwrap_or(u8::MAX);
                    Self::server(first.number, first.state, class)
                }
                None => not_understood("an error without a number"),
            },
            Driver::Io(error) => Self::lost(format!("the connection failed: {}", error.kind())),
            Driver::ConnectionClosed(_)
            | Driver::ConnectionError(_)
            | Driver::SessionRecoveryFailed { .. }
            | Driver::SessionNotRecoverable(_) => Self::lost("the connection failed"),
            Driver::TimeoutError(_) | Driver::OperationCancelledError(_) => {
                Self::lost("the server does not answer in time")
            }
            Driver::Redirection { .. } => {
                Self::lost("the server keeps sending the login elsewhere")
            }
            Driver::TlsError(error) | Driver::TlsHandshakeError { source: error, .. } => {
                tls(&error)
            }
            // Their words may quote a value.
            Driver::ProtocolError(_) => not_understood("the protocol"),
            Driver::UnimplementedFeature { .. } => {
                not_understood("an unknown part of the protocol")
            }
            Driver::TypeConversionError(_) => not_understood("a value"),
            _ => not_understood("the driver"),
        }
    }
}

fn not_understood(what: &str) -> Fault {
    Fault::permanent(
        Error::new(ErrorKind::InvalidData, "the server's answer cannot be understood")
            .with("fails", what)
            .remedy("set source.bulk_reader = \"tiberius\" to read with the other driver"),
    )
}

/// A connection that was lost within the handshake, or one that must not be.
fn tls(error: &(dyn std::error::Error + 'static)) -> Fault {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let lost = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>()).next();
    match lost {
        Some(lost) => Fault::lost(format!("the connection failed: {}", lost.kind())),
        None => Fault::tls(&error.to_string()),
    }
}
