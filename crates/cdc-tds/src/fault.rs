//! What can be wrong with what a client sends.

use cdc_tsql::talk::Message;

/// Why a request cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The bytes are not what the protocol says: nothing that follows can be trusted either.
    #[error("the incoming tabular data stream is incorrect: {0}")]
    Malformed(&'static str),
    /// The bytes are understood, and the server has no such thing.
    #[error("not supported by this server: {0}")]
    Unsupported(String),
    /// More than a setting allows.
    #[error("{what} exceeds {limit} bytes, the setting {setting}; send less, or raise it")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit in bytes.
        limit: usize,
        /// The setting that holds the limit.
        setting: &'static str,
    },
}

/// The server's number of a stream that it cannot read.
const STREAM_UNREADABLE: i32 = 4014;
/// The number of errors that are this server's own.
const OWN: i32 = 50_000;
/// The severity at which a connection ends.
pub(crate) const FATAL_CLASS: u8 = 20;

impl Fault {
    /// The message that the client sees. All but what is merely unsupported end the connection.
    pub(crate) fn message(&self) -> Message {
        let (number, class) = match self {
            Self::Malformed(_) => (STREAM_UNREADABLE, FATAL_CLASS),
            Self::TooLarge { .. } => (OWN, FATAL_CLASS),
            Self::Unsupported(_) => (OWN, 16),
        };
        Message {
            number,
            state: 1,
            class,
            text: self.to_string(),
            procedure: String::new(),
            line: 1,
        }
    }
}

/// A result of reading what a client sent.
pub(crate) type Read<T> = Result<T, Fault>;
