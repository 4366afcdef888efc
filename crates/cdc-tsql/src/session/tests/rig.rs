//! A server with a session, and what the session tells.

use std::{ops::ControlFlow, time::Duration};

use cdc_core::{SqlType, Timestamp};
use cdc_fake::{FakeServer, Value, VirtualClock, Zone};

use crate::{
    Server, ServerSettings, Session,
    kind::Typed,
    relation::ObjectName,
    talk::{
        Argument, Change, Conversation, Done, LoginRequest, Message, Procedure, Replies,
        ResultColumn, Service, StatementKind,
    },
};

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    Columns(Vec<String>),
    Row(Vec<Value>),
    Done(Done),
    Message(Message),
    Changed(Change),
    Status(i32),
    Returned(u16, String, Value),
}

/// Keeps every reply in order.
#[derive(Debug, Default)]
pub(super) struct Recording(pub(super) Vec<Reply>);

impl Replies for Recording {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        self.0.push(Reply::Columns(columns.iter().map(|column| column.name.clone()).collect()));
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value]) -> ControlFlow<()> {
        self.0.push(Reply::Row(row.to_vec()));
        ControlFlow::Continue(())
    }

    fn done(&mut self, done: Done) -> ControlFlow<()> {
        self.0.push(Reply::Done(done));
        ControlFlow::Continue(())
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        self.0.push(Reply::Message(message.clone()));
        ControlFlow::Continue(())
    }

    fn changed(&mut self, change: &Change) -> ControlFlow<()> {
        self.0.push(Reply::Changed(change.clone()));
        ControlFlow::Continue(())
    }

    fn return_status(&mut self, status: i32) -> ControlFlow<()> {
        self.0.push(Reply::Status(status));
        ControlFlow::Continue(())
    }

    fn return_value(&mut self, place: u16, name: &str, value: &Typed) -> ControlFlow<()> {
        self.0.push(Reply::Returned(place, name.into(), value.value.clone()));
        ControlFlow::Continue(())
    }
}

impl Recording {
    pub(super) fn rows(&self) -> Vec<Vec<Value>> {
        let row = |reply: &Reply| match reply {
            Reply::Row(row) => Some(row.clone()),
            _ => None,
        };
        self.0.iter().filter_map(row).collect()
    }

    /// Numbers of the errors, in order.
    pub(super) fn errors(&self) -> Vec<i32> {
        let number = |reply: &Reply| match reply {
            Reply::Message(message) if message.class > 10 => Some(message.number),
            _ => None,
        };
        self.0.iter().filter_map(number).collect()
    }

    pub(super) fn messages(&self) -> Vec<&Message> {
        let message = |reply: &'_ Reply| matches!(reply, Reply::Message(_));
        self.0
            .iter()
            .filter(|reply| message(reply))
            .map(|reply| match reply {
                Reply::Message(message) => message,
                _ => unreachable!(),
            })
            .collect()
    }

    /// Statement kinds and counts of the ends.
    pub(super) fn counts(&self) -> Vec<(StatementKind, Option<u64>)> {
        let done = |reply: &Reply| match reply {
            Reply::Done(done) => Some((done.statement, done.rows)),
            _ => None,
        };
        self.0.iter().filter_map(done).collect()
    }
}

pub(super) struct Rig {
    pub(super) server: Server,
    pub(super) session: Session,
}

impl Rig {
    /// A server at 2024-03-01 12:00 UTC with an empty database `shop`, and its owner's session.
    pub(super) fn new() -> Self {
        let clock = VirtualClock::manual(Timestamp::from_micros(1_709_294_400_000_000));
        let fake = FakeServer::new(clock, Zone::UTC);
        let server = Server::new(fake, ServerSettings { waits_move_clock: true });
        let mut rig = Self { session: server.owner_session("master").expect("opens"), server };
        rig.run("CREATE DATABASE shop");
        rig.run("USE shop");
        rig
    }

    pub(super) fn tell(&mut self, text: &str) -> Recording {
        let mut recording = Recording::default();
        self.session.batch(text, &mut recording);
        recording
    }

    /// Runs a batch that has to succeed.
    pub(super) fn run(&mut self, text: &str) -> Recording {
        let recording = self.tell(text);
        let errors: Vec<_> =
            recording.messages().into_iter().filter(|message| message.class > 10).collect();
        assert!(errors.is_empty(), "{text}: {errors:?}");
        recording
    }

    /// The rows of a batch that has to succeed.
    pub(super) fn rows(&mut self, text: &str) -> Vec<Vec<Value>> {
        self.run(text).rows()
    }

    /// The single value of a batch that has to succeed.
    pub(super) fn one(&mut self, text: &str) -> Value {
        let rows = self.rows(text);
        let [row] = &rows[..] else { panic!("{text}: {rows:?}") };
        row[0].clone()
    }

    /// The numbers of a column of a batch that has to succeed.
    pub(super) fn ints(&mut self, text: &str) -> Vec<i64> {
        self.rows(text).iter().map(|row| row[0].as_int().expect("a number")).collect()
    }

    /// The number of the error that a batch fails with.
    pub(super) fn error(&mut self, text: &str) -> i32 {
        let recording = self.tell(text);
        *recording.errors().first().unwrap_or_else(|| panic!("{text}: {recording:?}"))
    }

    pub(super) fn call(&mut self, name: &str, arguments: Vec<Argument>) -> Recording {
        let mut recording = Recording::default();
        let name = ObjectName { database: None, schema: None, name: name.into() };
        self.session.call(&Procedure::Named(name), arguments, &mut recording);
        recording
    }

    /// Another session, in `shop`.
    pub(super) fn other(&self) -> Self {
        let session = self.server.owner_session("shop").expect("opens");
        Self { server: self.server.clone(), session }
    }

    /// A session of a login, in `shop`.
    pub(super) fn log_in(&self, user: &str, password: &str) -> Box<dyn Conversation> {
        let request = LoginRequest {
            user: user.into(),
            password: password.into(),
            database: "shop".into(),
            ..LoginRequest::default()
        };
        match self.server.log_in(&request) {
            Ok(session) => session,
            Err(message) => panic!("{message:?}"),
        }
    }

    pub(super) fn advance(&self, seconds: u64) {
        self.server.fake().clock().advance(Duration::from_secs(seconds));
    }
}

/// An argument by place.
pub(super) fn text(text: &str) -> Argument {
    let sql_type = SqlType::NVarChar(cdc_core::Length::Limited(4000));
    Argument {
        name: None,
        typed: Typed::new(sql_type, Value::text(text)),
        output: false,
        default: false,
    }
}

pub(super) fn int(number: i64) -> Argument {
    Argument {
        name: None,
        typed: Typed::new(SqlType::Int, Value::Int(number)),
        output: false,
        default: false,
    }
}

pub(super) fn output(argument: Argument) -> Argument {
    Argument { output: true, ..argument }
}

pub(super) fn named(name: &str, argument: Argument) -> Argument {
    Argument { name: Some(name.into()), ..argument }
}
