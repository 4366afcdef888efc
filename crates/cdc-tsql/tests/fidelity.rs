//! What SQL Server 2022 answers, statement by statement: every file of `tests/fidelity` is a
//! conversation with a fresh server, and each statement has to give the rows, types and errors
//! that are written below it.
//!
//! A line of a file is one of:
//!
//! * `# ...`, a remark;
//! * `=> a | b`, a row that is expected, text in quotes;
//! * `:> int null, varchar(3)`, the types of the result's columns;
//! * `!> 8134`, an error's number;
//! * anything else is T-SQL; a blank line or a mark ends the statement. `@name` in front of it
//!   names another session; one whose name begins with `login_` is that login's.
//!
//! A statement without marks has to give neither a row nor an error; the reports of `EXEC fake.*`
//! are left out.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use std::{collections::HashMap, fmt::Write as _, fs, ops::ControlFlow, path::Path};

use cdc_core::{SqlType, Timestamp};
use cdc_fake::{FakeServer, Value, VirtualClock, Zone};
use cdc_tsql::{
    Server, ServerSettings,
    kind::{Kind, Typed},
    talk::{
        Change, Conversation, Done, LoginRequest, Message, Replies, ResultColumn, Service as _,
    },
};
use chrono::{Duration, NaiveDateTime};

/// Keeps what is told, as the marks of a file say it.
#[derive(Default)]
struct Heard {
    kinds: Vec<Kind>,
    lines: Vec<String>,
    texts: Vec<String>,
}

impl Replies for Heard {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        self.kinds = columns.iter().map(|column| column.kind.clone()).collect();
        let kinds: Vec<_> = self.kinds.iter().map(kind_text).collect();
        self.lines.push(format!(":> {}", kinds.join(", ")));
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value]) -> ControlFlow<()> {
        let cells: Vec<_> =
            row.iter().zip(&self.kinds).map(|(cell, kind)| cell_text(cell, kind)).collect();
        self.lines.push(format!("=> {}", cells.join(" | ")));
        ControlFlow::Continue(())
    }

    fn done(&mut self, _: Done) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        if message.class > 10 {
            self.lines.push(format!("!> {}", message.number));
            self.texts.push(message.text.clone());
        }
        ControlFlow::Continue(())
    }

    fn changed(&mut self, _: &Change) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn return_status(&mut self, _: i32) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn return_value(&mut self, _: u16, _: &str, _: &Typed) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn kind_text(kind: &Kind) -> String {
    format!("{}{}", kind.sql_type, if kind.nullable { " null" } else { "" })
}

fn cell_text(cell: &Value, kind: &Kind) -> String {
    let scale = match kind.sql_type {
        SqlType::Decimal { scale, .. }
        | SqlType::DateTime2 { scale }
        | SqlType::DateTimeOffset { scale }
        | SqlType::Time { scale } => usize::from(scale),
        SqlType::Money | SqlType::SmallMoney => 4,
        _ => 0,
    };
    match cell {
        Value::Null => "NULL".into(),
        Value::Bit(bit) => u8::from(*bit).to_string(),
        Value::Int(number) => number.to_string(),
        Value::Real(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Decimal(digits) => decimal_text(i128::from(*digits), scale),
        Value::Date(days) => {
            (NaiveDateTime::default() + Duration::days((*days).into())).date().to_string()
        }
        Value::DateTime(time) => {
            let wall = time.wall().unwrap() + Duration::microseconds(500);
            wall.format("%Y-%m-%d %H:%M:%S%.3f").to_string()
        }
        Value::DateTime2(ticks) => ticks_text(*ticks, "%Y-%m-%d %H:%M:%S", scale),
        Value::Time(ticks) => ticks_text(*ticks, "%H:%M:%S", scale),
        Value::DateTimeOffset { utc, offset_minutes } => {
            let wall = *utc + i64::from(*offset_minutes) * 600_000_000;
            let sign = if *offset_minutes < 0 { '-' } else { '+' };
            let (hours, minutes) = (offset_minutes.abs() / 60, offset_minutes.abs() % 60);
            let wall = ticks_text(wall, "%Y-%m-%d %H:%M:%S", scale);
            format!("{wall} {sign}{hours:02}:{minutes:02}")
        }
        Value::Text(text) => format!("'{text}'"),
        Value::Bytes(bytes) => hex(bytes, "0x"),
        Value::Uuid(bytes) => hex(bytes, ""),
    }
}

fn decimal_text(digits: i128, scale: usize) -> String {
    let padded = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    let point = if scale == 0 { "" } else { "." };
    format!("{}{whole}{point}{fraction}", if digits < 0 { "-" } else { "" })
}

fn ticks_text(ticks: i64, format: &str, scale: usize) -> String {
    let wall = NaiveDateTime::default() + Duration::microseconds(ticks.div_euclid(10));
    let fraction = format!("{:07}", ticks.rem_euclid(10_000_000));
    let point = if scale == 0 { "" } else { "." };
    format!("{}{point}{}", wall.format(format), &fraction[..scale])
}

fn hex(bytes: &[u8], start: &str) -> String {
    bytes.iter().fold(start.to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// A server of its own, and its sessions by name.
struct Stage {
    server: Server,
    sessions: HashMap<String, Box<dyn Conversation>>,
}

impl Stage {
    fn new() -> Self {
        let clock = VirtualClock::manual(Timestamp::from_micros(1_709_294_400_000_000));
        let fake = FakeServer::new(clock, Zone::UTC);
        let server = Server::new(fake, ServerSettings { waits_move_clock: true });
        let mut stage = Self { server, sessions: HashMap::new() };
        stage.tell("setup", "master", "CREATE DATABASE shop");
        stage
    }

    fn tell(&mut self, session: &str, database: &str, text: &str) -> Heard {
        if text == "DISCONNECT" {
            self.sessions.remove(session);
            return Heard::default();
        }
        let server = &self.server;
        let conversation = self.sessions.entry(session.to_owned()).or_insert_with(|| {
            if !session.starts_with("login_") {
                return Box::new(server.owner_session(database).expect("opens"));
            }
            let request = LoginRequest {
                user: session.into(),
                password: "Secret-1".into(),
                database: database.into(),
                ..LoginRequest::default()
            };
            server.log_in(&request).unwrap_or_else(|message| panic!("{session}: {message:?}"))
        });
        let mut heard = Heard::default();
        conversation.batch(text, &mut heard);
        heard
    }
}

/// A statement of a file.
#[derive(Default)]
struct Case {
    line: usize,
    session: String,
    text: String,
    expected: Vec<String>,
}

fn cases(file: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let mut open = false;
    for (number, line) in file.lines().enumerate() {
        let is_mark = ["=> ", ":> ", "!> "].iter().any(|mark| line.starts_with(mark));
        match cases.last_mut() {
            _ if line.starts_with('#') => {}
            _ if line.is_empty() => open = false,
            Some(case) if is_mark => {
                case.expected.push(line.trim_end().to_owned());
                open = false;
            }
            Some(case) if open => {
                case.text.push('\n');
                case.text.push_str(line);
            }
            _ => {
                let named = line.strip_prefix('@').and_then(|rest| rest.split_once(' '));
                let (session, text) = named.unwrap_or(("a", line));
                cases.push(Case {
                    line: number + 1,
                    session: session.into(),
                    text: text.into(),
                    expected: Vec::new(),
                });
                open = true;
            }
        }
    }
    cases
}

/// What differs from the file; empty when nothing does.
fn differences(path: &Path) -> String {
    let file = fs::read_to_string(path).expect("a readable file");
    let mut stage = Stage::new();
    let mut out = String::new();
    for case in cases(&file) {
        let heard = stage.tell(&case.session, "shop", &case.text);
        let with_types = case.expected.iter().any(|line| line.starts_with(":>"));
        let reports = case.text.starts_with("EXEC fake.");
        let counts = |line: &String| match line.as_bytes().first() {
            Some(b':') => with_types,
            Some(b'=') => !reports,
            _ => true,
        };
        let lines: Vec<_> = heard.lines.into_iter().filter(counts).collect();
        if lines != case.expected {
            let _ = writeln!(
                out,
                "{}:{}\n  {}\n  expected {:?}\n  got      {:?} {:?}",
                path.file_name().unwrap().to_string_lossy(),
                case.line,
                case.text.replace('\n', "\n  "),
                case.expected,
                lines,
                heard.texts,
            );
        }
    }
    out
}

#[test]
fn every_statement_answers_as_the_server_does() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fidelity");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no file of statements");
    let only = std::env::var("FIDELITY_FILE").ok();
    let wanted = |path: &&std::path::PathBuf| {
        only.as_ref().is_none_or(|name| path.to_string_lossy().ends_with(name.as_str()))
    };
    let differing: String = paths.iter().filter(wanted).map(|path| differences(path)).collect();
    assert!(differing.is_empty(), "\n{differing}");
}
