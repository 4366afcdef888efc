//! What a front and a session say to each other: the front hands over batches and calls, the
//! session tells its replies in the order the protocol wants them.

use std::{
    fmt,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use cdc_fake::Value;

use crate::{
    kind::{Collation, Kind, Typed},
    relation::ObjectName,
};

/// The version that the server calls itself wherever it does: in the protocol, in `@@VERSION` and
/// in `SERVERPROPERTY`. It is that of SQL Server 2022, whose behaviour the model has.
pub const VERSION: ServerVersion =
    ServerVersion { major: 16, minor: 0, build: 4135, revision: 4, level: "RTM", update: "CU13" };

/// A version of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    /// 16 for SQL Server 2022.
    pub major: u8,
    /// The minor version.
    pub minor: u8,
    /// The build.
    pub build: u16,
    /// The revision of the build.
    pub revision: u16,
    /// The product's level.
    pub level: &'static str,
    /// The cumulative update on top of the level.
    pub update: &'static str,
}

impl ServerVersion {
    /// Major, minor, and the build's two bytes, as the protocol tells them.
    #[must_use]
    pub const fn wire(self) -> [u8; 4] {
        let [high, low] = self.build.to_be_bytes();
        [self.major, self.minor, high, low]
    }
}

impl fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, build, revision, .. } = self;
        write!(f, "{major}.{minor}.{build}.{revision}")
    }
}

/// The server that logins arrive at.
pub trait Service: Send + Sync {
    /// Starts a session.
    ///
    /// # Errors
    /// The message the client sees, 18456 for a wrong user or password, 4060 for a database that
    /// cannot be opened. It never tells which of user and password was wrong.
    fn log_in(&self, login: &LoginRequest) -> Result<Box<dyn Conversation>, Box<Message>>;
}

/// Who wants a session, and as what.
#[derive(Clone, Default)]
pub struct LoginRequest {
    /// The SQL login; empty of one that brings an access token.
    pub user: String,
    /// Its password, or the access token. Never logged.
    pub password: String,
    /// The database to open; empty is the login's default.
    pub database: String,
    /// The client's host name.
    pub host: String,
    /// The client's application name.
    pub application: String,
    /// True when the client declared that it only reads (`ApplicationIntent=ReadOnly`).
    pub read_only: bool,
    /// The client's process id.
    pub process: u32,
}

impl fmt::Debug for LoginRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginRequest")
            .field("user", &self.user)
            .field("database", &self.database)
            .field("application", &self.application)
            .finish_non_exhaustive()
    }
}

/// One session. Its calls block: for locks, for the clock, and while replies are taken.
pub trait Conversation: Send {
    /// What the client is told right after it logged in: database, language, packet size aside.
    fn greeting(&self) -> Greeting;

    /// A flag that ends the running call when it is set, and that the front clears afterwards.
    fn cancel(&self) -> Cancel;

    /// Calls `tell` once the session is killed, on another thread: it may send a message, and must
    /// not wait. What runs ends with error 596; a front closes the connection of one that is idle.
    fn when_killed(&self, tell: Box<dyn Fn() + Send + Sync>) {
        // A session that nobody can kill never tells.
        drop(tell);
    }

    /// Runs a batch of statements.
    fn batch(&mut self, text: &str, replies: &mut dyn Replies);

    /// Calls a procedure. Output arguments come back through [`Replies::return_value`].
    fn call(&mut self, procedure: &Procedure, arguments: Vec<Argument>, replies: &mut dyn Replies);

    /// A request of the protocol's transaction manager.
    fn transaction(&mut self, request: TransactionRequest, replies: &mut dyn Replies);

    /// Sets everything back as right after the login (`sp_reset_connection`); an open transaction
    /// is kept when `keep_transaction`.
    fn reset(&mut self, keep_transaction: bool);

    /// A number that changes whenever a read of this session could see something else, when the
    /// last call only read and depended on nothing but its text, its arguments and the data: a
    /// front may then give the same reply again while [`Conversation::version`] gives the number.
    fn repeatable(&self) -> Option<u64>;

    /// The number of the data as it is now; see [`Conversation::repeatable`].
    fn version(&self) -> u64;
}

/// What a session begins with.
#[derive(Clone, Debug)]
pub struct Greeting {
    /// The database.
    pub database: String,
    /// The language, `us_english`.
    pub language: String,
    /// The server's name, in messages.
    pub server: String,
    /// The database's collation.
    pub collation: Collation,
}

/// Ends a running call. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the running call to end.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Forgets the request.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// True when the call is to end.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The procedure of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Procedure {
    /// By name.
    Named(ObjectName),
    /// By the protocol's number of it.
    Known(KnownProcedure),
}

/// Procedures that the protocol has numbers for, with those numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the server's")]
pub enum KnownProcedure {
    Cursor = 1,
    CursorOpen = 2,
    CursorPrepare = 3,
    CursorExecute = 4,
    CursorPrepExec = 5,
    CursorUnprepare = 6,
    CursorFetch = 7,
    CursorOption = 8,
    CursorClose = 9,
    ExecuteSql = 10,
    Prepare = 11,
    Execute = 12,
    PrepExec = 13,
    PrepExecRpc = 14,
    Unprepare = 15,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Argument {
    /// Its name with `@`; none for one by place.
    pub name: Option<String>,
    /// Type and value.
    pub typed: Typed,
    /// True when the procedure may set it.
    pub output: bool,
    /// True when the default is wanted instead of the value.
    pub default: bool,
}

/// A request of the transaction manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransactionRequest {
    /// Begins one; the isolation level is the session's from then on, when given.
    Begin {
        /// 1 read uncommitted, 2 read committed, 3 repeatable read, 4 serializable, 5 snapshot.
        isolation: Option<u8>,
        /// Its name.
        name: String,
    },
    /// Commits, and begins another when `begin`.
    Commit {
        /// Its name.
        name: String,
        /// True to begin another.
        begin: bool,
    },
    /// Rolls back to a savepoint, or all of it, and begins another when `begin`.
    Rollback {
        /// The savepoint's or the transaction's name; empty for all.
        name: String,
        /// True to begin another.
        begin: bool,
    },
    /// Sets a savepoint.
    Save {
        /// Its name.
        name: String,
    },
}

/// What a session tells, in order. Every method says whether to go on: [`ControlFlow::Break`]
/// when the client is gone or has cancelled.
pub trait Replies {
    /// A result begins.
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()>;

    /// A row of the result.
    fn row(&mut self, row: &[Value]) -> ControlFlow<()>;

    /// A statement has ended; also the end of its result.
    fn done(&mut self, done: Done) -> ControlFlow<()>;

    /// An error or an information.
    fn message(&mut self, message: &Message) -> ControlFlow<()>;

    /// Something of the session has changed.
    fn changed(&mut self, change: &Change) -> ControlFlow<()>;

    /// A procedure's return status.
    fn return_status(&mut self, status: i32) -> ControlFlow<()>;

    /// An output argument's value: its place from 0 among the call's arguments, its name, its
    /// value.
    fn return_value(&mut self, place: u16, name: &str, value: &Typed) -> ControlFlow<()>;
}

/// A column of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultColumn {
    /// Its name; empty when it has none.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// True for an `IDENTITY` column.
    pub identity: bool,
    /// True for an expression or a computed column.
    pub computed: bool,
}

/// The end of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Rows that the statement gave or changed; none when it counts none, or with `NOCOUNT`.
    pub rows: Option<u64>,
    /// What the statement was.
    pub statement: StatementKind,
    /// True when it failed.
    pub failed: bool,
    /// True inside a procedure, where the protocol has another token.
    pub in_procedure: bool,
}

/// What a statement was, as the protocol numbers it in a DONE token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the statements' names")]
pub enum StatementKind {
    Other = 0,
    Select = 0xC1,
    Insert = 0xC3,
    Delete = 0xC4,
    Update = 0xC5,
    Merge = 0x117,
    Commit = 0xD5,
    Begin = 0xD4,
    Rollback = 0xD2,
    Set = 0xBE,
    Execute = 0xE0,
}

/// An error or an information, as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The server's number of it.
    pub number: i32,
    /// The state, 1 when nothing tells states apart.
    pub state: u8,
    /// The severity: below 11 an information, from 20 on the connection ends.
    pub class: u8,
    /// The text. It names objects, never a cell's value.
    pub text: String,
    /// The procedure, or empty.
    pub procedure: String,
    /// The line in the batch, from 1.
    pub line: u32,
}

/// A change of the session that the protocol announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Another database: new, old.
    Database(String, String),
    /// Another language: new, old.
    Language(String, String),
    /// Another collation, with another database.
    Collation(Collation),
    /// A transaction began: its descriptor.
    TransactionBegan(u64),
    /// A transaction was committed: its descriptor.
    TransactionCommitted(u64),
    /// A transaction was rolled back: its descriptor.
    TransactionRolledBack(u64),
    /// The session was reset.
    Reset,
}
