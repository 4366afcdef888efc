//! The thread of a connection: it logs in, runs one request after the other, and makes the
//! replies. It blocks wherever the session does.

use std::{
    ops::ControlFlow,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use cdc_tsql::talk::{
    Cancel, Change, Conversation, KnownProcedure, Message, Procedure, Replies, Service,
    TransactionRequest, VERSION,
};
use tokio::sync::mpsc::{Receiver, Sender, WeakSender};

use crate::{
    cache::{self, QUESTION_BYTES_MAX, Question, ReplyCache},
    column::Dialect,
    fault::Fault,
    login::Login,
    packet::{self, Incoming, PacketKind, status},
    reply::{ReplyWriter, Shape},
    request, token,
};

/// What reaches the thread from the connection.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// A message.
    Message(Incoming),
    /// What followed could not be read; nothing comes behind it.
    Broken(Fault),
    /// Another session has killed this one.
    Killed,
}

/// The flag that ends a running call, once there is a session.
pub(crate) type CancelSlot = Arc<OnceLock<Cancel>>;

/// What the thread of a connection needs.
pub(crate) struct SessionStart {
    pub(crate) service: Arc<dyn Service>,
    pub(crate) login: Login,
    pub(crate) cache: Arc<ReplyCache>,
    /// The greatest packet that may be agreed on.
    pub(crate) packet_bytes_max: u16,
    pub(crate) inbox: Receiver<Inbound>,
    /// The other end of `inbox`, for as long as the connection reads.
    pub(crate) requests: WeakSender<Inbound>,
    pub(crate) packets: Sender<Vec<u8>>,
    pub(crate) cancel: CancelSlot,
}

/// Runs a connection to its end. Dropping the sender of packets closes it.
pub(crate) fn run(start: SessionStart) {
    let SessionStart { service, login, cache, packet_bytes_max, .. } = start;
    let (packets, mut inbox) = (start.packets, start.inbox);
    let conversation = match log_in(&*service, &login) {
        Ok(conversation) => conversation,
        Err(message) => return refuse(&packets, &message),
    };
    let cancel = conversation.cancel();
    let _ = start.cancel.set(cancel.clone());
    let requests = start.requests;
    conversation.when_killed(Box::new(move || {
        // A session with requests waiting finds out with the next one.
        if let Some(requests) = requests.upgrade() {
            let _ = requests.try_send(Inbound::Killed);
        }
    }));
    let greeting = conversation.greeting();
    let packet_size = login.packet_size.min(packet_bytes_max).max(packet::SIZE_MIN);
    let dialect = Dialect { collation: greeting.collation, utf8: login.utf8 };
    let replies_in = |packets: Sender<Vec<u8>>, size| {
        ReplyWriter::new(packets, size, cancel.clone(), greeting.server.clone(), dialect)
    };
    // What the login is told still travels in packets of the size that all begin with.
    let mut hello = replies_in(packets.clone(), packet::DEFAULT_SIZE);
    greet(&mut hello, &login, &greeting, packet_size);
    drop(hello);
    let mut session = Session {
        conversation,
        replies: replies_in(packets, packet_size),
        cache,
        user: login.request.user.as_str().into(),
        database: greeting.database.as_str().into(),
        utf8: login.utf8,
        history: 0,
    };
    while let Some(inbound) = inbox.blocking_recv() {
        if session.take(inbound).is_break() {
            return;
        }
    }
}

fn log_in(service: &dyn Service, login: &Login) -> Result<Box<dyn Conversation>, Box<Message>> {
    if login.integrated {
        return Err(Box::new(Message {
            number: 18_452,
            state: 1,
            class: 14,
            text: "login failed: this server knows no windows logins; use a sql login".into(),
            procedure: String::new(),
            line: 1,
        }));
    }
    service.log_in(&login.request)
}

/// Tells why there is no session.
fn refuse(packets: &Sender<Vec<u8>>, message: &Message) {
    // A client that is gone needs no answer.
    let _ = packets.blocking_send(refusal(message));
}

/// The packets that tell why there is no session.
pub(crate) fn refusal(message: &Message) -> Vec<u8> {
    let mut tokens = Vec::new();
    token::message(message, "", &mut tokens);
    let other = cdc_tsql::talk::StatementKind::Other;
    token::end(token::End::Statement, token::done::ERROR, other, None, &mut tokens);
    let mut framer = packet::Framer::new(PacketKind::Reply, packet::DEFAULT_SIZE);
    framer.write(&tokens);
    framer.finish()
}

/// Numbers of what a login is told: the database and the language that it begins with.
const DATABASE_CONTEXT: i32 = 5701;
const LANGUAGE_SETTING: i32 = 5703;

fn greet(
    replies: &mut ReplyWriter,
    login: &Login,
    greeting: &cdc_tsql::talk::Greeting,
    packet_size: u16,
) {
    let information = |number, state, text| Message {
        number,
        state,
        class: 0,
        text,
        procedure: String::new(),
        line: 1,
    };
    let (database, language) = (&greeting.database, &greeting.language);
    replies.begin(None);
    let change = Change::Database(database.clone(), "master".into());
    let _ = replies.changed(&change);
    let text = format!("Changed database context to '{database}'.");
    let _ = replies.message(&information(DATABASE_CONTEXT, 2, text));
    replies.raw(|out| token::collation(greeting.collation, out));
    let _ = replies.changed(&Change::Language(language.clone(), String::new()));
    let text = format!("Changed language setting to {language}.");
    let _ = replies.message(&information(LANGUAGE_SETTING, 1, text));
    replies.raw(|out| token::login_ack(login.version, VERSION.wire(), out));
    replies.raw(|out| token::packet_size(packet_size, packet::DEFAULT_SIZE, out));
    if login.federated || login.utf8 {
        replies.raw(|out| token::features_ack(login.federated, login.utf8, out));
    }
    replies.end_batch();
    replies.finish(None);
}

struct Session {
    conversation: Box<dyn Conversation>,
    replies: ReplyWriter,
    cache: Arc<ReplyCache>,
    user: Arc<str>,
    database: Arc<str>,
    utf8: bool,
    /// What could have set something that replies depend on: every batch that the session did not
    /// declare to be a mere read. What a call sets ends with the call.
    history: u64,
}

impl Session {
    fn take(&mut self, inbound: Inbound) -> ControlFlow<()> {
        match inbound {
            Inbound::Message(message) => self.message(message),
            Inbound::Killed => ControlFlow::Break(()),
            Inbound::Broken(fault) => {
                // It has ended what ran; the client is still to be told why.
                self.replies.clear_cancel();
                self.refuse(&fault);
                ControlFlow::Break(())
            }
        }
    }

    fn message(&mut self, message: Incoming) -> ControlFlow<()> {
        if message.kind == PacketKind::Attention {
            self.replies.acknowledge_attention();
            return self.go_on();
        }
        if message.status & status::IGNORE != 0 {
            // The client took its request back while it was still sending it.
            self.replies.begin(None);
            self.replies.end_batch();
            self.replies.finish(None);
            return self.go_on();
        }
        let keeps = message.status & status::RESET_KEEPING_TRANSACTION != 0;
        let reset = keeps || message.status & status::RESET != 0;
        if reset {
            self.conversation.reset(keeps);
            self.history = 0;
            self.database = self.conversation.greeting().database.as_str().into();
        }
        match self.run(message, reset) {
            Ok(()) => {}
            Err(fault) => {
                self.refuse(&fault);
                if fault.message().class >= crate::fault::FATAL_CLASS {
                    return ControlFlow::Break(());
                }
            }
        }
        if let Some(database) = self.replies.take_database() {
            self.database = database.into();
        }
        self.go_on()
    }

    fn go_on(&self) -> ControlFlow<()> {
        if self.replies.is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn refuse(&mut self, fault: &Fault) {
        self.replies.begin(None);
        self.replies.shape(Shape::Batch);
        self.replies.fault(fault);
        self.replies.end_batch();
        self.replies.finish(None);
    }

    fn run(&mut self, message: Incoming, reset: bool) -> Result<(), Fault> {
        let Incoming { kind, body, .. } = message;
        match kind {
            PacketKind::Batch | PacketKind::Call => {}
            PacketKind::Transaction => return self.transaction(&body, reset),
            PacketKind::BulkLoad => return Err(Fault::Unsupported("a bulk load".into())),
            _ => return Err(Fault::Malformed("a message of this type has no place here")),
        }
        let question = self.question(kind, body)?;
        let keeps = !reset && !self.cache.is_off() && question.body.len() <= QUESTION_BYTES_MAX;
        if keeps && let Some(tokens) = self.cache.get(&question, self.conversation.version()) {
            self.replies.again(&tokens);
            return Ok(());
        }
        let calls = match kind {
            PacketKind::Batch => Vec::new(),
            _ => request::calls(&question.body)?,
        };
        let keeps = keeps && calls.iter().all(|call| !is_of_the_session(&call.procedure));
        let text = match kind {
            PacketKind::Batch => Some(request::batch(&question.body)?),
            _ => None,
        };
        self.begin(keeps.then(|| Arc::clone(&self.cache)).as_ref(), reset);
        match text {
            Some(text) => {
                self.replies.shape(Shape::Batch);
                self.conversation.batch(&text, &mut self.replies);
                self.replies.end_batch();
            }
            None => self.calls(calls),
        }
        let version = self.conversation.repeatable();
        if version.is_none() && kind == PacketKind::Batch {
            self.history = cache::history(self.history, &question.body);
        }
        self.replies.finish(version.filter(|_| keeps).map(|version| (question, version)));
        Ok(())
    }

    fn begin(&mut self, cache: Option<&Arc<ReplyCache>>, reset: bool) {
        self.replies.begin(cache);
        if reset {
            let _ = self.replies.changed(&Change::Reset);
        }
    }

    fn calls(&mut self, calls: Vec<request::ProcedureCall>) {
        self.replies.shape(Shape::Call);
        let mut calls = calls.into_iter().peekable();
        while let Some(call) = calls.next() {
            self.conversation.call(&call.procedure, call.arguments, &mut self.replies);
            let more = calls.peek().is_some() && !self.replies.is_stopped();
            self.replies.end_call(more);
            if !more {
                return;
            }
        }
        // Every call of the message was one not to be run.
        self.replies.shape(Shape::Batch);
        self.replies.end_batch();
    }

    fn transaction(&mut self, body: &[u8], reset: bool) -> Result<(), Fault> {
        let body = request::without_headers(body)?;
        let request = request::transaction(body)?;
        if matches!(request, TransactionRequest::Begin { isolation: Some(_), .. }) {
            // The level outlasts the transaction.
            self.history = cache::history(self.history, body);
        }
        self.begin(None, reset);
        self.replies.shape(Shape::Batch);
        self.conversation.transaction(request, &mut self.replies);
        self.replies.end_batch();
        self.replies.finish(None);
        Ok(())
    }

    fn question(&self, kind: PacketKind, body: Vec<u8>) -> Result<Question, Fault> {
        let rest = request::without_headers(&body)?.len();
        let headers = body.len().saturating_sub(rest);
        Ok(Question {
            user: Arc::clone(&self.user),
            database: Arc::clone(&self.database),
            kind: kind.number(),
            utf8: self.utf8,
            history: self.history,
            body: Bytes::from(body).slice(headers..),
        })
    }
}

/// True for a procedure whose arguments mean something to this session alone: a handle of what it
/// has prepared.
fn is_of_the_session(procedure: &Procedure) -> bool {
    match procedure {
        Procedure::Known(KnownProcedure::ExecuteSql) => false,
        Procedure::Known(_) => true,
        Procedure::Named(name) => {
            let name = name.name.to_ascii_lowercase();
            name.starts_with("sp_prep")
                || name.starts_with("sp_cursor")
                || name == "sp_execute"
                || name == "sp_unprepare"
        }
    }
}
