//! Runs statements: what each does to the session, what the client is told of it, and how far an
//! error reaches.

use std::ops::ControlFlow;

use cdc_fake::{FakeDatabase, FakeServer, SessionHandle, SqlError, SqlResult, StatementEncounter};

use super::{
    failure::{Failure, Raised, Reach, Run, reach},
    flow::Flow,
    frame::Frame,
    options::Options,
    prepared::PreparedTexts,
    scope::Scope,
    server::Account,
    temporary::Temporary,
    transactions::Transactions,
};
use crate::{
    query::{self, Context},
    syntax::{Body, Statement},
    talk::{Cancel, Change, Done, Message, Replies, StatementKind},
};

/// What a session keeps between its calls.
pub(super) struct Core {
    pub(super) server: FakeServer,
    pub(super) account: Account,
    pub(super) handle: SessionHandle,
    pub(super) database: FakeDatabase,
    /// The database that the session began in.
    pub(super) home: FakeDatabase,
    pub(super) options: Options,
    pub(super) transactions: Transactions,
    pub(super) temporary: Temporary,
    pub(super) prepared: PreparedTexts,
    pub(super) cancel: Cancel,
    pub(super) waits_move_clock: bool,
    pub(super) last: Last,
    /// The table of `SET IDENTITY_INSERT ON`: its database and its name in lower case.
    pub(super) identity_insert: Option<(String, String)>,
}

/// What `@@` functions tell of the last statement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    pub(super) error: i32,
    pub(super) rows: i64,
    pub(super) identity: Option<i64>,
}

/// Runs the statements of one call.
pub(super) struct Runner<'a> {
    pub(super) core: &'a mut Core,
    pub(super) replies: &'a mut dyn Replies,
    /// True while every statement only read, and depended on nothing but text and data.
    pub(super) repeatable: bool,
}

impl Runner<'_> {
    /// Runs a list of statements until one leaves it.
    pub(super) fn list(&mut self, statements: &[Statement], frame: &Frame) -> Run<Flow> {
        for statement in statements {
            match self.statement(statement, frame)? {
                Flow::Next => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Next)
    }

    /// Runs a statement; tells its error, or gives it to the TRY that it is in.
    pub(super) fn statement(&mut self, statement: &Statement, frame: &Frame) -> Run<Flow> {
        frame.line.set(statement.line);
        self.check_alive(frame)?;
        if self.core.options.no_exec && !matches!(statement.body, Body::Set(_)) {
            return Ok(Flow::Next);
        }
        let run =
            self.planted(&statement.body, frame).and_then(|()| self.body(&statement.body, frame));
        if run.is_err() && self.core.handle.is_killed() {
            // Whatever it failed with came of that.
            self.check_alive(frame)?;
        }
        match run {
            Ok(flow) => {
                if !keeps_error(&statement.body) {
                    self.core.last.error = 0;
                }
                Ok(flow)
            }
            Err(Failure::Error(error)) => {
                let raised = Raised::new(error, statement.line, &frame.procedure);
                self.failed(raised, &statement.body, frame)
            }
            Err(Failure::Raised(raised)) => self.failed(raised, &statement.body, frame),
            Err(other) => Err(other),
        }
    }

    /// Ends the call of a session that was killed or cancelled.
    pub(super) fn check_alive(&self, frame: &Frame) -> Run<()> {
        if self.core.handle.is_killed() {
            let error = SqlError::new(
                596,
                "Cannot continue the execution because the session is in the kill state.",
            );
            return Err(Failure::Raised(Raised::new(error, frame.line.get(), &frame.procedure)));
        }
        if self.core.cancel.is_set() { Err(Failure::Gone) } else { Ok(()) }
    }

    /// The trouble that waits for this statement.
    fn planted(&mut self, body: &Body, frame: &Frame) -> Run<()> {
        let Some(verb) = verb(body) else {
            return Ok(());
        };
        // A query takes its own, with the rows that it may give.
        if verb == "SELECT" {
            return Ok(());
        }
        let met = self.core.server.faults().meet(verb, false);
        self.encounter(&met, frame)
    }

    /// A planted pause, then a planted error.
    pub(super) fn encounter(&mut self, met: &StatementEncounter, frame: &Frame) -> Run<()> {
        if let Some(pause) = met.pause {
            self.repeatable = false;
            self.pause(pause, frame)?;
        }
        match &met.error {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    /// Deals with an error that a statement ended with.
    fn failed(&mut self, raised: Raised, body: &Body, frame: &Frame) -> Run<Flow> {
        self.repeatable = false;
        self.core.last.error = raised.number;
        self.core.last.rows = 0;
        let mut reaches = reach(&raised);
        // `XACT_ABORT` leaves alone what RAISERROR raised, and a call that was out of balance.
        let strict = self.core.options.xact_abort
            && !matches!(body, Body::RaisError(_))
            && raised.number != 266;
        if strict || matches!(body, Body::Throw(_)) {
            let least = if strict { Reach::Transaction } else { Reach::Batch };
            reaches = reaches.max(least);
        }
        let ended = self.core.transactions.was_ended();
        if frame.tries.get() > 0 && reaches < Reach::Connection {
            if ended {
                self.rolled_back();
            } else if reaches >= Reach::Transaction && self.core.transactions.count > 0 {
                self.core.transactions.doomed = true;
            }
            return Err(Failure::Raised(raised));
        }
        for message in raised.messages() {
            self.tell(&message)?;
        }
        if ended || (reaches >= Reach::Transaction && self.core.transactions.count > 0) {
            self.rolled_back();
        }
        self.done(None, kind(body), true, frame)?;
        if reaches >= Reach::Batch { Err(Failure::Ended) } else { Ok(Flow::Next) }
    }

    /// Rolls everything back, and says so.
    pub(super) fn rolled_back(&mut self) {
        let descriptor = self.core.transactions.descriptor;
        let open = self.core.transactions.count > 0;
        self.core.transactions.abandon();
        if open {
            let _ = self.replies.changed(&Change::TransactionRolledBack(descriptor));
        }
    }

    /// Tells a message.
    pub(super) fn tell(&mut self, message: &Message) -> Run<()> {
        go_on(self.replies.message(message))
    }

    /// Tells the end of a statement.
    pub(super) fn done(
        &mut self,
        rows: Option<u64>,
        statement: StatementKind,
        failed: bool,
        frame: &Frame,
    ) -> Run<()> {
        let rows = rows.filter(|_| !self.core.options.no_count);
        let in_procedure = frame.in_procedure;
        go_on(self.replies.done(Done { rows, statement, failed, in_procedure }))
    }

    /// Tells the end of a statement that counted rows.
    pub(super) fn counted(
        &mut self,
        rows: u64,
        statement: StatementKind,
        frame: &Frame,
    ) -> Run<()> {
        self.core.last.rows = i64::try_from(rows).unwrap_or(i64::MAX);
        self.done(Some(rows), statement, false, frame)
    }

    /// Runs something that may name objects, variables and functions.
    pub(super) fn scoped<T>(
        &mut self,
        frame: &Frame,
        work: impl FnOnce(&Scope<'_>, &Context<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        self.touch();
        let scope = Scope::new(self.core, frame);
        let context = Context { catalogue: &scope, cancel: &self.core.cancel };
        work(&scope, &context)
    }

    /// Begins the transaction's part in the session's database, so that reads are in it.
    pub(super) fn touch(&mut self) {
        if self.core.transactions.count > 0 {
            let database = self.core.database.clone();
            self.core.transactions.part(&database, &self.core.options, &self.core.cancel);
        }
    }

    /// The value of an expression without rows.
    pub(super) fn value(
        &mut self,
        expression: &sqlparser::ast::Expr,
        frame: &Frame,
    ) -> SqlResult<crate::kind::Typed> {
        self.scoped(frame, |_, context| query::scalar(expression, context))
    }

    /// Runs a statement that writes: in the open transaction, or in one of its own. It has its
    /// whole effect or none.
    pub(super) fn writing<T>(
        &mut self,
        frame: &Frame,
        work: impl FnOnce(&mut Self, &Frame) -> Run<T>,
    ) -> Run<T> {
        self.repeatable = false;
        self.core.transactions.require_writable()?;
        self.begin_implicitly()?;
        let own = self.core.transactions.count == 0;
        if own {
            self.core.transactions.begin("");
        }
        self.core.transactions.mark()?;
        let result = work(self, frame);
        let ended = self.core.transactions.was_ended();
        match result {
            Ok(value) if own => {
                self.core.transactions.commit()?;
                Ok(value)
            }
            Ok(value) => {
                self.core.transactions.unmark();
                Ok(value)
            }
            Err(failure) => {
                if own {
                    self.core.transactions.abandon();
                } else if !ended {
                    self.core.transactions.rollback_to_mark()?;
                }
                Err(failure)
            }
        }
    }

    /// Begins a transaction for a statement that wants one, with `IMPLICIT_TRANSACTIONS ON`.
    pub(super) fn begin_implicitly(&mut self) -> Run<()> {
        if self.core.options.implicit_transactions && self.core.transactions.count == 0 {
            self.begin("")?;
        }
        Ok(())
    }

    /// Begins a transaction, and announces the outermost.
    pub(super) fn begin(&mut self, name: &str) -> Run<()> {
        if self.core.transactions.begin(name) {
            let began = Change::TransactionBegan(self.core.transactions.descriptor);
            go_on(self.replies.changed(&began))?;
        }
        Ok(())
    }
}

/// Whether the client is still there.
pub(super) fn go_on(flow: ControlFlow<()>) -> Run<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Failure::Gone),
    }
}

/// The statement's verb, as faults are planted for it; none for what only controls others.
fn verb(body: &Body) -> Option<&'static str> {
    Some(match body {
        Body::Query(..) => "SELECT",
        Body::Insert(_) => "INSERT",
        Body::Update(_) => "UPDATE",
        Body::Delete(_) => "DELETE",
        Body::Merge(_) => "MERGE",
        Body::Truncate(_) => "TRUNCATE",
        Body::Definition(_) => "DEFINITION",
        Body::Begin(_) => "BEGIN",
        Body::Commit(_) => "COMMIT",
        Body::Rollback(_) => "ROLLBACK",
        // The control procedures have to stay reachable.
        Body::Execute(call) if !call.is_control() => "EXECUTE",
        _ => return None,
    })
}

/// The protocol's number of a statement.
pub(super) fn kind(body: &Body) -> StatementKind {
    match body {
        Body::Query(..) => StatementKind::Select,
        Body::Insert(_) => StatementKind::Insert,
        Body::Update(_) => StatementKind::Update,
        Body::Delete(_) => StatementKind::Delete,
        Body::Merge(_) => StatementKind::Merge,
        Body::Begin(_) => StatementKind::Begin,
        Body::Commit(_) => StatementKind::Commit,
        Body::Rollback(_) => StatementKind::Rollback,
        Body::Set(_) => StatementKind::Set,
        _ => StatementKind::Other,
    }
}

/// Statements that leave `@@ERROR` as it is: they hold others, or declare only.
const fn keeps_error(body: &Body) -> bool {
    matches!(
        body,
        Body::Block(_)
            | Body::If { .. }
            | Body::While { .. }
            | Body::TryCatch { .. }
            | Body::Declare(_)
            | Body::Execute(_)
            | Body::ExecuteText(_)
            | Body::RaisError(_)
    )
}
