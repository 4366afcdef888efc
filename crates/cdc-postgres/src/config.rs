//! How the server is reached, where the tables go, and the limits.

use std::time::Duration;

use cdc_core::Secret;

/// Whose certificates are believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Those that the system trusts.
    #[default]
    System,
    /// Those that these authorities signed: certificates in PEM.
    Authority(Vec<u8>),
}

/// Whether the traffic is encrypted. A connection through a socket of the file system never is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Always, with a certificate that is checked against the host's name; a server that cannot is
    /// refused.
    Required(Trust),
    /// Never. For a server on the same machine, or behind an encrypted tunnel.
    Off,
}

impl Default for Tls {
    fn default() -> Self {
        Self::Required(Trust::System)
    }
}

/// What is done about U+0000 inside text, which PostgreSQL does not store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NulInText {
    /// The table stops with an error that names the column and the change's position.
    #[default]
    Refuse,
    /// Each becomes U+FFFD, and how many did is logged for each commit. Never inside a key: two
    /// rows could become one.
    Replace,
}

/// How a PostgreSQL is reached, and what the sink does there.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PostgresConfig {
    /// Host name or address, or the directory of a socket (a path that begins with `/`).
    pub host: String,
    /// TCP port, or the number in the socket's name.
    pub port: u16,
    /// The database.
    pub database: String,
    /// Who logs in.
    pub user: String,
    /// The password; none where the server asks for none.
    pub password: Option<Secret>,
    /// The schema of the tables. It is made when it is not there.
    pub schema: String,
    /// Whether the traffic is encrypted.
    pub tls: Tls,
    /// What is done about U+0000 inside text.
    pub nul_in_text: NulInText,
    /// The name that the server's views show for the sessions.
    pub application: String,
    /// Most connections at once. A table holds one while it has rows on the server that are not
    /// committed, so that is also how many tables can have such rows.
    pub connections_max: usize,
    /// The longest that a connection may take to be made, login included, and the longest that
    /// one is waited for while all are in use.
    pub connect_timeout: Duration,
    /// The longest that the server waits for another session's lock before a step is tried again.
    pub lock_timeout: Duration,
    /// The longest that a transaction of a runner that is gone keeps its locks.
    pub idle_transaction_max: Duration,
    /// Bytes of rows, in the form they are sent in, that a table keeps in memory before they go
    /// to its staging table.
    pub stage_bytes_max: usize,
}

impl PostgresConfig {
    /// A server with the defaults for everything else.
    #[must_use]
    pub fn new(
        host: impl Into<String>,
        database: impl Into<String>,
        user: impl Into<String>,
    ) -> Self {
        Self {
            host: host.into(),
            port: 5432,
            database: database.into(),
            user: user.into(),
            password: None,
            schema: "public".into(),
            tls: Tls::default(),
            nul_in_text: NulInText::default(),
            application: "cdc".into(),
            // A server has 100 by default, for everybody.
            connections_max: 16,
            connect_timeout: Duration::from_secs(15),
            lock_timeout: Duration::from_secs(30),
            idle_transaction_max: Duration::from_secs(60),
            stage_bytes_max: 32 << 20,
        }
    }
}
