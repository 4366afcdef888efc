//! A session that knows a handful of words, and a server with it on a port of its own.

use std::{
    net::SocketAddr,
    ops::ControlFlow,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use cdc_core::{Length, ServerTime, SqlType};
use cdc_fake::Value;
use cdc_tds::Settings;
use cdc_tsql::{
    kind::{Collation, Kind, Typed},
    talk::{
        Argument, Cancel, Change, Conversation, Done, Greeting, LoginRequest, Message, Procedure,
        Replies, ResultColumn, Service, StatementKind, TransactionRequest,
    },
};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

pub(crate) const LATIN: Collation = Collation {
    name: "SQL_Latin1_General_CP1_CI_AS",
    lcid: 0x409,
    flags: 0x0D,
    sort_id: 52,
    code_page: 1252,
    ignores_case: true,
    ignores_accents: false,
    binary: false,
};
pub(crate) const GREEK: Collation =
    Collation { name: "Greek_CI_AS", lcid: 0x408, sort_id: 0, code_page: 1253, ..LATIN };
pub(crate) const UTF8: Collation =
    Collation { name: "Latin1_General_100_CI_AS_SC_UTF8", sort_id: 0, code_page: 65001, ..LATIN };

/// What the sessions of a server share, and what they count.
#[derive(Default)]
pub(crate) struct Stub {
    /// The data's version.
    pub(crate) version: AtomicU64,
    /// Batches and calls that were run, not answered from what was kept.
    pub(crate) runs: AtomicU64,
}

struct Front(Arc<Stub>);

impl Service for Front {
    fn log_in(&self, login: &LoginRequest) -> Result<Box<dyn Conversation>, Box<Message>> {
        if login.user != "sa" || login.password != "P\u{e4}ss1!" {
            let text = format!("Login failed for user '{}'.", login.user);
            return Err(Box::new(message(18_456, 14, &text)));
        }
        Ok(Box::new(Session {
            stub: Arc::clone(&self.0),
            cancel: Cancel::default(),
            database: match login.database.as_str() {
                "" => "master".into(),
                name => name.into(),
            },
            resets: 0,
            repeatable: false,
        }))
    }
}

pub(crate) fn message(number: i32, class: u8, text: &str) -> Message {
    let procedure = String::new();
    Message { number, state: 1, class, text: text.into(), procedure, line: 1 }
}

struct Session {
    stub: Arc<Stub>,
    cancel: Cancel,
    database: String,
    resets: i64,
    repeatable: bool,
}

pub(crate) fn column(name: &str, sql_type: SqlType, nullable: bool) -> ResultColumn {
    let kind = Kind::new(sql_type, nullable);
    ResultColumn { name: name.into(), kind, identity: false, computed: false }
}

fn done(statement: StatementKind, rows: Option<u64>) -> Done {
    Done { rows, statement, failed: false, in_procedure: false }
}

/// Every type with a value at its edge.
pub(crate) fn every_type() -> Vec<(ResultColumn, Value)> {
    use SqlType as T;
    let greek = |mut column: ResultColumn, collation| {
        column.kind.collation = Some(collation);
        column
    };
    let long = "\u{3b1}\u{1F600}x".repeat(5_000);
    vec![
        (column("bit", T::Bit, false), Value::Bit(true)),
        (column("tinyint", T::TinyInt, false), Value::Int(255)),
        (column("smallint", T::SmallInt, true), Value::Int(-32_768)),
        (column("int", T::Int, false), Value::Int(-2_147_483_648)),
        (column("bigint", T::BigInt, true), Value::Int(i64::MIN)),
        (column("real", T::Real, true), Value::Real(1.5)),
        (column("float", T::Float, false), Value::Float(-1.0e300)),
        (
            column("dec", T::Decimal { precision: 38, scale: 38 }, true),
            Value::decimal(-(10_i128.pow(38) - 1)),
        ),
        (column("money", T::Money, true), Value::decimal(-9_223_372_036_854_775_808)),
        (column("smallmoney", T::SmallMoney, true), Value::decimal(-1)),
        (column("date", T::Date, false), Value::Date(2_932_896)),
        (column("datetime", T::DateTime, true), Value::DateTime(ServerTime::from_ticks(-1))),
        (column("smalldatetime", T::SmallDateTime, true), Value::DateTime2(600_000_000)),
        (column("datetime2", T::DateTime2 { scale: 7 }, true), Value::DateTime2(-1)),
        (
            column("offset", T::DateTimeOffset { scale: 7 }, true),
            Value::DateTimeOffset { utc: 1, offset_minutes: -90 },
        ),
        (column("time", T::Time { scale: 7 }, true), Value::Time(863_999_999_999)),
        (column("char", T::Char(4), false), Value::text("\u{e4}b  ")),
        (
            greek(column("varchar", T::VarChar(Length::Limited(9)), true), GREEK),
            Value::text("\u{3b1}\u{3b2}"),
        ),
        (
            greek(column("utf8", T::VarChar(Length::Limited(40)), true), UTF8),
            Value::text("\u{1F600}\u{3b1}"),
        ),
        (column("nchar", T::NChar(3), true), Value::text("\u{1F600} ")),
        (column("nvarchar", T::NVarChar(Length::Limited(9)), true), Value::text("")),
        (column("nvarcharmax", T::NVarChar(Length::Max), true), Value::text(&long)),
        (column("varcharmax", T::VarChar(Length::Max), true), Value::text("max")),
        (column("varbinarymax", T::VarBinary(Length::Max), true), Value::bytes(&[7; 70_000])),
        (column("text", T::Text, true), Value::text("old")),
        (column("ntext", T::NText, true), Value::text("\u{3b1}")),
        (column("image", T::Image, true), Value::bytes(&[1, 2])),
        (column("xml", T::Xml, true), Value::text("<a/>")),
        (
            column("uuid", T::UniqueIdentifier, true),
            Value::Uuid([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
        ),
        (column("binary", T::Binary(3), false), Value::bytes(&[1, 2, 3])),
        (column("rowversion", T::RowVersion, false), Value::bytes(&[0, 0, 0, 0, 0, 0, 7, 209])),
        (column("null", T::Int, true), Value::Null),
    ]
}

/// The columns of a change table with five columns of data: some 130 bytes a row.
pub(crate) fn change_columns() -> Vec<ResultColumn> {
    use SqlType as T;
    vec![
        column("__$start_lsn", T::Binary(10), false),
        column("__$seqval", T::Binary(10), false),
        column("__$operation", T::Int, false),
        column("__$command_id", T::Int, true),
        column("id", T::Int, true),
        column("name", T::NVarChar(Length::Limited(60)), true),
        column("amount", T::Decimal { precision: 18, scale: 4 }, true),
        column("updated_at", T::DateTime2 { scale: 7 }, true),
        column("note", T::VarChar(Length::Limited(40)), true),
    ]
}

/// A row of [`change_columns`].
pub(crate) fn change_row(number: i64) -> Vec<Value> {
    let mut lsn = [0, 0, 0, 42, 0, 0, 0, 0, 0, 1];
    lsn[4..8].copy_from_slice(&u32::try_from(number).unwrap().to_be_bytes());
    vec![
        Value::bytes(&lsn),
        Value::bytes(&lsn),
        Value::Int(2),
        Value::Int(1),
        Value::Int(number),
        Value::text("a customer name of 26 chars"),
        Value::decimal(123_456_789),
        Value::DateTime2(16_000_000_000_000_000 + number),
        Value::text("note"),
    ]
}

impl Session {
    fn rows(&mut self, count: i64, replies: &mut dyn Replies) -> ControlFlow<()> {
        self.repeatable = true;
        replies.columns(&change_columns())?;
        let row = change_row(7);
        for _ in 0..count {
            replies.row(&row)?;
        }
        replies.done(done(StatementKind::Select, u64::try_from(count).ok()))
    }

    fn types(&mut self, replies: &mut dyn Replies) -> ControlFlow<()> {
        let (columns, row): (Vec<_>, Vec<_>) = every_type().into_iter().unzip();
        replies.columns(&columns)?;
        replies.row(&row)?;
        replies.done(done(StatementKind::Select, Some(1)))
    }

    fn one(number: i64, replies: &mut dyn Replies) -> ControlFlow<()> {
        replies.columns(&[column("", SqlType::BigInt, true)])?;
        replies.row(&[Value::Int(number)])?;
        replies.done(done(StatementKind::Select, Some(1)))
    }

    fn run(&mut self, text: &str, replies: &mut dyn Replies) -> ControlFlow<()> {
        self.stub.runs.fetch_add(1, Ordering::Relaxed);
        self.repeatable = false;
        let words = text.split_whitespace().collect::<Vec<_>>();
        match words.as_slice() {
            ["rows", count] => self.rows(count.parse().unwrap(), replies),
            ["types"] => self.types(replies),
            ["version"] => {
                self.repeatable = true;
                let version = self.stub.version.load(Ordering::Relaxed);
                Self::one(i64::try_from(version).unwrap(), replies)
            }
            ["resets"] => Self::one(self.resets, replies),
            ["two"] => {
                Self::one(1, replies)?;
                Self::one(2, replies)
            }
            ["use", name] => {
                let old = std::mem::replace(&mut self.database, (*name).into());
                replies.changed(&Change::Database((*name).into(), old))?;
                replies.message(&message(5701, 0, "Changed database context."))?;
                replies.done(done(StatementKind::Other, None))
            }
            ["fail"] => {
                replies.message(&message(208, 16, "Invalid object name 'x'."))?;
                replies.done(Done { failed: true, ..done(StatementKind::Select, None) })
            }
            ["fatal"] => replies.message(&message(596, 21, "Cannot continue the execution.")),
            ["misfit"] => {
                replies.columns(&[column("c", SqlType::Int, false)])?;
                replies.row(&[Value::Int(1)])?;
                replies.row(&[Value::Null])
            }
            ["exec"] => {
                replies.columns(&[column("a", SqlType::Int, true)])?;
                replies.row(&[Value::Int(1)])?;
                replies
                    .done(Done { in_procedure: true, ..done(StatementKind::Select, Some(1)) })?;
                replies.return_status(3)?;
                replies.done(done(StatementKind::Execute, None))
            }
            ["wait"] => {
                replies.columns(&[column("a", SqlType::Int, true)])?;
                while !self.cancel.is_set() {
                    thread::sleep(Duration::from_millis(1));
                }
                ControlFlow::Break(())
            }
            ["endless"] => {
                replies.columns(&change_columns())?;
                let row = change_row(7);
                loop {
                    replies.row(&row)?;
                }
            }
            ["nothing"] => ControlFlow::Continue(()),
            _ => replies.done(done(StatementKind::Set, None)),
        }
    }

    fn echo(arguments: &[Argument], replies: &mut dyn Replies) -> ControlFlow<()> {
        let columns = arguments.iter().enumerate().map(|(at, argument)| ResultColumn {
            name: argument.name.clone().unwrap_or_else(|| format!("p{at}")),
            kind: argument.typed.kind.clone(),
            identity: false,
            computed: true,
        });
        replies.columns(&columns.collect::<Vec<_>>())?;
        let row = arguments.iter().map(|argument| argument.typed.value.clone());
        replies.row(&row.collect::<Vec<_>>())?;
        replies.done(done(StatementKind::Select, Some(1)))
    }
}

impl Conversation for Session {
    fn greeting(&self) -> Greeting {
        Greeting {
            database: self.database.clone(),
            language: "us_english".into(),
            server: "STUB".into(),
            collation: LATIN,
        }
    }

    fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    fn batch(&mut self, text: &str, replies: &mut dyn Replies) {
        let _ = self.run(text, replies);
    }

    fn call(&mut self, procedure: &Procedure, arguments: Vec<Argument>, replies: &mut dyn Replies) {
        let _ = match (procedure, arguments.as_slice()) {
            // The parameters' values stand behind the statement and their declaration.
            (Procedure::Known(_), [statement, _, values @ ..]) if !values.is_empty() => {
                match &statement.typed.value {
                    Value::Text(text) if &**text == "echo" => Self::echo(values, replies),
                    _ => self.run("", replies),
                }
            }
            (Procedure::Known(_), [statement, ..]) => match &statement.typed.value {
                Value::Text(text) => {
                    let text = text.to_string();
                    self.run(&text, replies)
                }
                _ => self.run("", replies),
            },
            _ => self.run(" ", replies),
        };
        for (place, argument) in arguments.iter().enumerate() {
            if argument.output {
                let typed = Typed::new(SqlType::Int, Value::Int(42));
                let name = argument.name.as_deref().unwrap_or_default();
                let _ = replies.return_value(u16::try_from(place).unwrap(), name, &typed);
            }
        }
        let _ = replies.return_status(0);
    }

    fn transaction(&mut self, request: TransactionRequest, replies: &mut dyn Replies) {
        let _ = match request {
            TransactionRequest::Begin { .. } => replies.changed(&Change::TransactionBegan(5)),
            TransactionRequest::Commit { .. } => replies.changed(&Change::TransactionCommitted(5)),
            TransactionRequest::Rollback { .. } => {
                replies.changed(&Change::TransactionRolledBack(5))
            }
            TransactionRequest::Save { .. } => ControlFlow::Continue(()),
        };
    }

    fn reset(&mut self, keep_transaction: bool) {
        self.resets += if keep_transaction { 100 } else { 1 };
    }

    fn repeatable(&self) -> Option<u64> {
        self.repeatable.then(|| self.version())
    }

    fn version(&self) -> u64 {
        self.stub.version.load(Ordering::Relaxed)
    }
}

/// A running server; it stops when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) stub: Arc<Stub>,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<std::io::Result<()>>>,
}

impl Server {
    pub(crate) async fn start(settings: Settings) -> Self {
        let stub = Arc::new(Stub::default());
        let service = Arc::new(Front(Arc::clone(&stub)));
        Self { stub, ..Self::start_with(settings, service).await }
    }

    /// A server with other sessions than the stub's.
    pub(crate) async fn start_with(settings: Settings, service: Arc<dyn Service>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(cdc_tds::serve(listener, service, settings, async move {
            let _ = stopped.await;
        }));
        Self { address, stub: Arc::default(), stop: Some(stop), running: Some(running) }
    }

    /// Stops the server and waits for its end.
    pub(crate) async fn stop(mut self) {
        drop(self.stop.take());
        self.running.take().unwrap().await.unwrap().unwrap();
    }

    /// How the server ends by itself.
    pub(crate) async fn end(mut self) -> std::io::Result<()> {
        self.running.take().unwrap().await.unwrap()
    }

    pub(crate) fn runs(&self) -> u64 {
        self.stub.runs.load(Ordering::Relaxed)
    }
}
