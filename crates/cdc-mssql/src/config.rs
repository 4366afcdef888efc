//! How the server is reached: address, login, encryption, limits.

use std::time::Duration;

use cdc_core::{Error, ErrorKind, Result, Secret, diagnosis::RowIsolation, time::ServerZone};

/// Who logs in, and how it is proved. Windows logins (Kerberos, NTLM) need C libraries and are not
/// built in.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Login {
    /// A SQL login.
    Password {
        /// Its name.
        user: String,
        /// Its password.
        password: Secret,
    },
    /// An access token of Entra ID.
    Token(Secret),
    /// A command that prints an access token of Entra ID: the program, and its arguments. It runs
    /// again for every connection, since tokens expire.
    TokenCommand(Vec<String>),
}

/// How much of the traffic is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// TLS before the protocol begins (TDS 8).
    Strict,
    /// TLS for everything; a server that cannot is refused.
    #[default]
    Required,
    /// None. For a server on the same machine.
    Off,
}

/// Whose certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those that the system trusts.
    #[default]
    System,
    /// Those too that these authorities signed: certificates in PEM.
    Authority(Vec<u8>),
    /// Any. Whoever is on the way can read and change everything.
    Any,
}

/// Which driver reads the rows of tables and of changes. Everything else is asked through tiberius.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BulkReader {
    /// Microsoft's `mssql-tds`: several times faster, with OpenSSL for TLS. In builds with the
    /// feature `mssql-tds`.
    MssqlTds,
    /// The driver of everything else.
    Tiberius,
}

/// What is done about errors that may pass, on new connections, before the engine hears of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// Tries of one statement, the first one included; at least 1.
    pub attempts_max: u32,
    /// The first pause; each following one is about twice as long.
    pub pause_first: Duration,
    /// The longest pause.
    pub pause_max: Duration,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self {
            attempts_max: 4,
            pause_first: Duration::from_millis(200),
            pause_max: Duration::from_secs(5),
        }
    }
}

/// How a SQL Server is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MssqlConfig {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The database with change data capture.
    pub database: String,
    /// Who logs in.
    pub login: Login,
    /// How much is encrypted.
    pub encryption: Encryption,
    /// Whose certificates are believed.
    pub trust: Trust,
    /// The name that the certificate has to bear, when it is not the host's.
    pub certificate_name: Option<String>,
    /// The zone of the server's clock; none asks the server: SQL Server 2022 and Azure tell it.
    pub zone: Option<ServerZone>,
    /// The name that the server's views show for the sessions.
    pub application: String,
    /// How rows of the tables themselves are read. Change tables are always read committed: what
    /// capture wrote never changes.
    pub isolation: RowIsolation,
    /// The longest that a read of a table's rows waits for a lock, in whole milliseconds; error
    /// 1222 then, which is tried again. None waits as long as `silence_max`.
    pub lock_timeout: Option<Duration>,
    /// Asks an availability group for a secondary that takes reads (`ApplicationIntent`).
    pub read_only_intent: bool,
    /// Tries every address of the host at once, and takes the first that answers.
    pub multi_subnet_failover: bool,
    /// The longest that a connection may take, login included.
    pub connect_timeout: Duration,
    /// The longest that the server may say nothing while an answer is awaited.
    pub silence_max: Duration,
    /// Connections that are kept for the next statement; more are closed after use.
    pub idle_connections_max: usize,
    /// Bytes of a packet, 512 to 32767; with TLS at most 16383.
    pub packet_bytes: u32,
    /// The longest that a command may take to print an access token.
    pub token_timeout: Duration,
    /// What is done about errors that may pass.
    pub retry: RetryBudget,
    /// Which driver reads the rows of tables and of changes; none leaves the choice to
    /// [`MssqlConfig::reader`].
    pub bulk_reader: Option<BulkReader>,
}

impl MssqlConfig {
    /// A server with the defaults for everything else.
    #[must_use]
    pub fn new(host: impl Into<String>, database: impl Into<String>, login: Login) -> Self {
        Self {
            host: host.into(),
            port: 1433,
            database: database.into(),
            login,
            encryption: Encryption::default(),
            trust: Trust::default(),
            certificate_name: None,
            zone: None,
            application: "cdc".into(),
            isolation: RowIsolation::default(),
            // Longer than an ordinary transaction lasts. Writers queue up behind a read that waits,
            // so it must not wait for as long as `silence_max`.
            lock_timeout: Some(Duration::from_secs(30)),
            read_only_intent: false,
            multi_subnet_failover: false,
            connect_timeout: Duration::from_secs(15),
            // Long enough for the sort of a large range before its first row.
            silence_max: Duration::from_secs(600),
            idle_connections_max: 4,
            packet_bytes: 16_383,
            // Commands of clouds ask a service first, and refresh what has expired.
            token_timeout: Duration::from_secs(60),
            retry: RetryBudget::default(),
            bulk_reader: None,
        }
    }

    /// The bulk reader that these settings come to: the one that they name, or else `mssql-tds`
    /// where nothing stands in its way, or else tiberius.
    ///
    /// # Errors
    /// `Config` when they name `mssql-tds`, and something stands in its way.
    pub fn reader(&self) -> Result<BulkReader> {
        match (self.bulk_reader, self.hindrance()) {
            (Some(BulkReader::Tiberius), _) | (None, Some(_)) => Ok(BulkReader::Tiberius),
            (_, None) => Ok(BulkReader::MssqlTds),
            (Some(BulkReader::MssqlTds), Some(reason)) => {
                Err(Error::new(ErrorKind::Config, "the bulk reader mssql-tds cannot be used")
                    .with("setting", "source.bulk_reader")
                    .with("reason", reason)
                    .remedy("leave source.bulk_reader out, or give \"tiberius\""))
            }
        }
    }

    /// What stands in the way of `mssql-tds`.
    fn hindrance(&self) -> Option<&'static str> {
        if !cfg!(feature = "mssql-tds") {
            return Some("this program is built without it");
        }
        match (self.encryption, &self.trust) {
            (Encryption::Off, _) => None,
            (_, Trust::Authority(_)) => Some(
                "it trusts the system's authorities alone, and source.tls_ca_file gives others",
            ),
            (Encryption::Strict, Trust::Any) => Some(
                "it checks strict encryption's certificates, whatever source.tls_trust_any says",
            ),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(
        wanted: Option<BulkReader>,
        encryption: Encryption,
        trust: Trust,
    ) -> Result<BulkReader> {
        let mut config = MssqlConfig::new("h", "d", Login::Token(Secret::new("t")));
        (config.bulk_reader, config.encryption, config.trust) = (wanted, encryption, trust);
        config.reader()
    }

    #[test]
    fn the_fast_reader_is_taken_where_it_can_and_never_where_it_would_trust_otherwise() {
        use BulkReader::{MssqlTds, Tiberius};
        let able = cfg!(feature = "mssql-tds");
        let authority = || Trust::Authority(Vec::new());
        for (encryption, trust, fits) in [
            (Encryption::Required, Trust::System, able),
            (Encryption::Required, Trust::Any, able),
            (Encryption::Required, authority(), false),
            (Encryption::Strict, Trust::System, able),
            (Encryption::Strict, Trust::Any, false),
            (Encryption::Strict, authority(), false),
            (Encryption::Off, authority(), able),
        ] {
            let chosen = reader(None, encryption, trust.clone()).expect("one fits");
            assert_eq!(chosen, if fits { MssqlTds } else { Tiberius }, "{encryption:?} {trust:?}");
            let named = reader(Some(MssqlTds), encryption, trust.clone());
            assert_eq!(named.is_ok(), fits, "{encryption:?} {trust:?}");
            if let Err(error) = named {
                assert_eq!(error.context("setting"), Some("source.bulk_reader"));
            }
            assert_eq!(reader(Some(Tiberius), encryption, trust).expect("always fits"), Tiberius);
        }
    }
}
