//! What goes wrong in a statement, and how far it reaches: the statement, the batch, the
//! transaction, or the connection.

use cdc_fake::SqlError;

use crate::talk::Message;

/// An error as TRY and the client see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raised {
    pub(super) number: i32,
    pub(super) text: String,
    pub(super) class: u8,
    pub(super) state: u8,
    pub(super) line: u32,
    pub(super) procedure: String,
    /// What the client is told before it; TRY sees the error alone.
    pub(super) earlier: Vec<Message>,
}

impl Raised {
    /// An error of the server at a line.
    pub(super) fn new(error: SqlError, line: u32, procedure: &str) -> Self {
        let (class, state) = severity(error.number);
        let told = |error: SqlError| Self::new(error, line, procedure).message();
        let earlier = error.earlier.into_iter().map(told).collect();
        Self {
            number: error.number,
            text: error.message,
            class,
            state,
            line,
            procedure: procedure.to_owned(),
            earlier,
        }
    }

    /// What the client is told, in order.
    pub(super) fn messages(&self) -> impl Iterator<Item = Message> {
        self.earlier.iter().cloned().chain(std::iter::once(self.message()))
    }

    pub(super) fn message(&self) -> Message {
        Message {
            number: self.number,
            state: self.state,
            class: self.class,
            text: self.text.clone(),
            procedure: self.procedure.clone(),
            line: self.line,
        }
    }
}

/// What an error ends besides its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Nothing: the batch goes on.
    Statement,
    /// The batch.
    Batch,
    /// The batch, and the transaction is rolled back.
    Transaction,
    /// The connection.
    Connection,
}

/// How far an error reaches with `XACT_ABORT OFF`.
pub(super) fn reach(error: &Raised) -> Reach {
    if error.class >= 20 {
        return Reach::Connection;
    }
    match error.number {
        // A deadlock and an update conflict end the transaction; a conversion that fails does,
        // too.
        1205 | 3960 | 241 | 242 | 244 | 245 | 248 | 235 | 293 | 295 | 3935 => Reach::Transaction,
        // Names that are bound when the statement is reached.
        208 | 207 | 209 | 4104 | 137 | 102 | 105 | 156 | 191 | 195 | 319 | 336 | 4145 | 4121
        | 1087 | 2715 | 911 | 3930 | 213 | 109 | 110 | 120 | 121 | 206 | 257 | 402 | 529 | 8120
        | 8115 | 4060 => {
            match error.number {
                // An overflow ends its statement alone.
                8115 | 206 | 257 | 402 | 529 if error.number == 8115 => Reach::Statement,
                _ => Reach::Batch,
            }
        }
        _ => Reach::Statement,
    }
}

/// Severity and state of the server's errors.
fn severity(number: i32) -> (u8, u8) {
    match number {
        // The protocol knows no errors of clients; a dead connection is one of severity 20.
        -2 => (11, 0),
        596 | 10_054 => (21, 1),
        102 | 105 | 113 | 137 | 134 | 156 | 174 | 178 | 191 | 195 | 319 | 336 | 1018 | 4145
        | 10_713 => (15, 1),
        8632 => (17, 2),
        229 | 230 | 262 | 297 | 916 => (14, 5),
        300 => (14, 1),
        18_456 => (14, 1),
        2601 | 2627 => (14, 1),
        515 => (16, 2),
        1205 => (13, 51),
        1222 => (16, 51),
        2812 => (16, 62),
        8134 => (16, 1),
        911 | 4060 => (11, 1),
        9002 => (17, 2),
        40_613 => (20, 1),
        _ => (16, 1),
    }
}

/// How a statement ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// An error that nobody was told yet.
    Error(SqlError),
    /// An error with its own severity and state: of RAISERROR, THROW, or one level deeper.
    Raised(Raised),
    /// The batch has ended; the client was told why.
    Ended,
    /// The client is gone, or has cancelled.
    Gone,
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Self {
        Self::Error(error)
    }
}

pub(super) type Run<T> = Result<T, Failure>;
