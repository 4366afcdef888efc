//! A session as a front talks with it: batches, calls, requests of the transaction manager.

use cdc_fake::SqlError;

use super::{
    failure::{Failure, Raised, Run},
    frame::{Frame, undeclared},
    options::{Options, isolation},
    prepared::PreparedTexts,
    runner::{Core, Last, Runner, go_on},
    server::{Account, Server, open_at_login, refusal},
    temporary::Temporary,
    transactions::Transactions,
};
use crate::{
    syntax::{self, FreeVariable},
    talk::{
        Argument, Cancel, Change, Conversation, Greeting, Message, Procedure, Replies,
        StatementKind, TransactionRequest,
    },
};

/// A session of a [`Server`]. Dropped, it is logged out and its open transaction rolled back.
pub struct Session {
    pub(super) server: Server,
    pub(super) core: Core,
    repeatable: Option<u64>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("login", &self.core.account.login).finish_non_exhaustive()
    }
}

impl Session {
    pub(super) fn open(
        server: &Server,
        account: Account,
        database: &str,
        process: u32,
    ) -> Result<Self, Box<Message>> {
        let database =
            open_at_login(&server.fake, &account, database).map_err(|error| refusal(error, 1))?;
        let handle = server.fake.open_session(&account.login, database.name());
        handle.update(|info| {
            account.host.clone_into(&mut info.host);
            account.application.clone_into(&mut info.program);
            info.process = process;
        });
        let cancel = Cancel::default();
        let ends = cancel.clone();
        handle.when_killed(move || ends.set());
        let core = Core {
            temporary: Temporary::new(&server.fake, handle.id()),
            server: server.fake.clone(),
            account,
            transactions: Transactions::of(handle.link()),
            handle,
            home: database.clone(),
            database,
            options: Options::default(),
            prepared: PreparedTexts::default(),
            cancel,
            waits_move_clock: server.settings.waits_move_clock,
            last: Last::default(),
            identity_insert: None,
        };
        Ok(Self { server: server.clone(), core, repeatable: None })
    }

    /// Runs the work of one call, and tells what it ended with.
    fn run(
        &mut self,
        replies: &mut dyn Replies,
        work: impl FnOnce(&mut Runner<'_>, &Frame) -> Run<()>,
    ) {
        let version = self.data_version();
        self.began();
        let mut runner = Runner { core: &mut self.core, replies, repeatable: true };
        let frame = Frame::default();
        let result = work(&mut runner, &frame);
        let repeatable = runner.repeatable && result.is_ok() && runner.core.is_plain();
        runner.finish(result);
        self.repeatable = repeatable.then_some(version);
        self.ended();
    }

    fn began(&mut self) {
        let now = self.core.server.zone().reading(self.core.server.clock().time());
        self.core.handle.update(|info| {
            info.running = true;
            info.last_request = now;
        });
    }

    fn ended(&mut self) {
        let open = i32::try_from(self.core.transactions.count).unwrap_or(i32::MAX);
        self.core.handle.update(|info| {
            info.running = false;
            info.open_transactions = open;
        });
    }

    fn data_version(&self) -> u64 {
        self.core.server.data_version()
    }
}

impl Runner<'_> {
    /// Tells what a call ended with, and rolls back what can only be rolled back.
    fn finish(&mut self, result: Run<()>) {
        match result {
            Ok(()) | Err(Failure::Ended) => {}
            Err(Failure::Gone) => {
                // A cancelled statement is one that failed.
                if self.core.options.xact_abort {
                    self.rolled_back();
                }
                return;
            }
            Err(Failure::Error(error)) => self.tell_last(&Raised::new(error, 1, "")),
            Err(Failure::Raised(raised)) => self.tell_last(&raised),
        }
        if self.core.transactions.doomed {
            let error = SqlError::new(
                3998,
                "Uncommittable transaction is detected at the end of the batch. The transaction \
                 is rolled back.",
            );
            let _ = self.replies.message(&Raised::new(error, 1, "").message());
            self.rolled_back();
        }
    }

    /// Tells an error to a client that may be gone.
    fn tell_last(&mut self, raised: &Raised) {
        for message in raised.messages() {
            let _ = self.replies.message(&message);
        }
    }

    /// Runs the statements of a text.
    pub(super) fn text_of_statements(&mut self, text: &str, frame: &Frame) -> Run<()> {
        let settings = self.core.options.expressions;
        let batch = syntax::parse(text, &settings).map_err(|error| {
            self.core.last.error = error.error.number;
            Failure::Raised(Raised::new(error.error, error.line, &frame.procedure))
        })?;
        if self.core.options.parse_only {
            return Ok(());
        }
        require_declared(&batch.free, |_| false, frame)?;
        self.list(&batch.statements, frame).map(|_| ())
    }
}

/// Refuses a text that uses a variable which neither it nor its parameters declare: nothing of it
/// may run.
pub(super) fn require_declared(
    free: &[FreeVariable],
    is_parameter: impl Fn(&str) -> bool,
    frame: &Frame,
) -> Run<()> {
    let Some(unknown) = free.iter().find(|variable| !is_parameter(&variable.name)) else {
        return Ok(());
    };
    let error = match unknown.table {
        true => {
            SqlError::new(1087, format!("Must declare the table variable \"{}\".", unknown.name))
        }
        false => undeclared(&unknown.name),
    };
    Err(Failure::Raised(Raised::new(error, unknown.line, &frame.procedure)))
}

impl Conversation for Session {
    fn greeting(&self) -> Greeting {
        Greeting {
            database: self.core.database.name().to_owned(),
            language: "us_english".into(),
            server: self.core.server.name().to_owned(),
            collation: self.core.collation(),
        }
    }

    fn cancel(&self) -> Cancel {
        self.core.cancel.clone()
    }

    fn when_killed(&self, tell: Box<dyn Fn() + Send + Sync>) {
        self.core.handle.when_killed(tell);
    }

    fn batch(&mut self, text: &str, replies: &mut dyn Replies) {
        self.run(replies, |runner, frame| runner.text_of_statements(text, frame));
        self.core.temporary.forget_variables();
    }

    fn call(&mut self, procedure: &Procedure, arguments: Vec<Argument>, replies: &mut dyn Replies) {
        self.run(replies, |runner, frame| runner.remote_call(procedure, arguments, frame));
        self.core.temporary.forget_variables();
    }

    fn transaction(&mut self, request: TransactionRequest, replies: &mut dyn Replies) {
        self.run(replies, |runner, frame| {
            runner.repeatable = false;
            runner.manager_request(&request, frame)
        });
    }

    fn reset(&mut self, keep_transaction: bool) {
        if !keep_transaction {
            self.core.transactions.abandon();
        }
        self.core.options = Options::default();
        self.core.database = self.core.home.clone();
        self.core.temporary.clear();
        self.core.prepared = PreparedTexts::default();
        self.core.last = Last::default();
        self.core.identity_insert = None;
        self.repeatable = None;
    }

    fn repeatable(&self) -> Option<u64> {
        self.repeatable
    }

    fn version(&self) -> u64 {
        // Of a session that is to end, and before planted trouble, nothing repeats.
        let faults = !self.core.server.faults().is_clear();
        if faults || self.core.handle.is_killed() || !self.core.is_plain() {
            return u64::MAX - self.server.tick();
        }
        self.data_version()
    }
}

impl Runner<'_> {
    /// A request of the protocol's transaction manager.
    fn manager_request(&mut self, request: &TransactionRequest, frame: &Frame) -> Run<()> {
        self.check_alive(frame)?;
        let (statement, again) = match request {
            TransactionRequest::Begin { isolation: level, name } => {
                if let Some(level) = level.filter(|level| *level != 0) {
                    self.core.options.isolation = isolation(level);
                    self.core.transactions.set_isolation(isolation(level));
                }
                self.begin(name)?;
                (StatementKind::Begin, false)
            }
            TransactionRequest::Commit { begin, .. } => {
                self.commit(frame)?;
                (StatementKind::Commit, *begin)
            }
            TransactionRequest::Rollback { name, begin } => {
                self.rollback_named(name)?;
                (StatementKind::Rollback, *begin)
            }
            TransactionRequest::Save { name } => {
                self.touch();
                self.core.transactions.save(name)?;
                (StatementKind::Other, false)
            }
        };
        if again {
            self.core.transactions.begin("");
            let began = Change::TransactionBegan(self.core.transactions.descriptor);
            go_on(self.replies.changed(&began))?;
        }
        self.plain_done(statement, frame)
    }
}
