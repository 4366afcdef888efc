//! What the server is told: encryption, certificate, and a limit for everything that could grow.

use std::{fmt, io, time::Duration};

use crate::packet;

/// Whether clients may or must use TLS inside of the older protocol. A client that begins with
/// TLS (the strict mode of TDS 8) is served unless it is [`Encryption::Off`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// No TLS. A client that demands it is refused.
    Off,
    /// As the client likes: all of it, the login alone, or none.
    #[default]
    Offered,
    /// All of it. A client that cannot is refused.
    Required,
}

/// The server's certificate with its key, both in PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate, then those that lead to its root.
    pub chain: String,
    /// The private key. Never logged.
    pub key: String,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("chain", &self.chain).finish_non_exhaustive()
    }
}

impl Certificate {
    /// A new certificate that is its own root, for these host names and addresses.
    ///
    /// # Errors
    /// A name that is neither a host name nor an address.
    pub fn self_made(names: &[&str]) -> io::Result<Self> {
        let names = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let made = rcgen::generate_simple_self_signed(names)
            .map_err(|error| io::Error::other(format!("cannot make a certificate: {error}")))?;
        Ok(Self { chain: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }
}

/// How the server behaves, and its limits.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether clients may or must use TLS.
    pub encryption: Encryption,
    /// The certificate; without one, the server makes one for `localhost` at its start.
    pub certificate: Option<Certificate>,
    /// The greatest packet that a client may agree on, 512 to 32,767 bytes. A reply waits in
    /// whole packets, so it also bounds what a connection holds.
    pub packet_bytes_max: u16,
    /// Connections at once; further ones are closed at once. Each has a thread.
    pub connections_max: usize,
    /// From the connection to the last byte of the login. Who does not log in leaves.
    pub login_timeout: Duration,
    /// A request with all its packets. It is held in memory whole before it runs.
    pub request_bytes_max: usize,
    /// Replies kept in their encoded form for who asks the same again; 0 keeps none. Replies that
    /// are being kept while they are made count apart, up to the same number.
    pub reply_cache_bytes_max: usize,
    /// How long running requests may take to notice that the server stops.
    pub stop_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            encryption: Encryption::default(),
            certificate: None,
            packet_bytes_max: packet::SIZE_MAX,
            connections_max: 1_000,
            login_timeout: Duration::from_secs(15),
            request_bytes_max: 64 << 20,
            reply_cache_bytes_max: 256 << 20,
            stop_timeout: Duration::from_secs(5),
        }
    }
}
