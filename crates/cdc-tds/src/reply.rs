//! A reply while it is made: what the session tells becomes tokens, tokens become packets, packets
//! go to the connection.

use std::{ops::ControlFlow, sync::Arc};

use bytes::Bytes;
use cdc_fake::Value;
use cdc_tsql::{
    kind::Typed,
    talk::{Cancel, Change, Done, Message, Replies, ResultColumn, StatementKind},
};
use tokio::sync::mpsc::Sender;

use crate::{
    cache::{Keeping, Question, ReplyCache},
    column::Dialect,
    fault::{FATAL_CLASS, Fault},
    packet::{Framer, PacketKind},
    row::{RowEncoder, RowFault},
    token::{self, End, done},
};

/// Tokens that are collected before they become packets, and packets before they are sent. Larger
/// pieces cost cache misses, smaller ones wake the connection more often.
const PIECE_BYTES: usize = 64 << 10;
/// Room beyond a piece, so that a row seldom makes it grow.
const SPARE_BYTES: usize = 8 << 10;

/// Whether a request is a batch or calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A batch, or a request of the transaction manager.
    Batch,
    /// A call.
    Call,
}

/// Why the session is told to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The client has cancelled.
    Cancelled,
    /// The client is gone.
    Gone,
    /// The session gave what cannot be written.
    Faulty,
}

/// Makes the replies of one connection, one after the other.
pub(crate) struct ReplyWriter {
    tokens: Vec<u8>,
    framer: Framer,
    packets: Sender<Vec<u8>>,
    cancel: Cancel,
    /// The server's name in messages.
    server: String,
    dialect: Dialect,
    shape: Shape,
    rows: Option<RowEncoder>,
    /// The last statement's end, until it is known whether more follows.
    ended: Option<(End, Done)>,
    status: Option<i32>,
    values: Vec<u8>,
    failed: bool,
    fatal: bool,
    stop: Option<Stop>,
    keeping: Option<Keeping>,
    changed: bool,
    /// The database, whenever it has changed.
    database: Option<String>,
}

impl ReplyWriter {
    /// Replies in packets of `packet_size` bytes to `packets`.
    pub(crate) fn new(
        packets: Sender<Vec<u8>>,
        packet_size: u16,
        cancel: Cancel,
        server: String,
        dialect: Dialect,
    ) -> Self {
        Self {
            tokens: Vec::with_capacity(PIECE_BYTES.saturating_add(SPARE_BYTES)),
            framer: Framer::new(PacketKind::Reply, packet_size),
            packets,
            cancel,
            server,
            dialect,
            shape: Shape::Batch,
            rows: None,
            ended: None,
            status: None,
            values: Vec::new(),
            failed: false,
            fatal: false,
            stop: None,
            keeping: None,
            changed: false,
            database: None,
        }
    }

    /// Begins a reply. What it holds is kept for the cache when there is one.
    pub(crate) fn begin(&mut self, cache: Option<&Arc<ReplyCache>>) {
        self.tokens.clear();
        (self.rows, self.ended, self.status) = (None, None, None);
        (self.failed, self.changed, self.stop) = (false, false, None);
        self.values.clear();
        self.keeping = cache.map(Keeping::new);
    }

    /// Says what the statements that follow belong to.
    pub(crate) fn shape(&mut self, shape: Shape) {
        self.shape = shape;
    }

    /// Appends tokens of another's making.
    pub(crate) fn raw(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.settle();
        write(&mut self.tokens);
    }

    /// Tells a fault of the request.
    pub(crate) fn fault(&mut self, fault: &Fault) {
        let message = fault.message();
        let _ = self.message(&message);
    }

    /// True when the connection has to end.
    pub(crate) fn is_over(&self) -> bool {
        self.fatal || self.stop == Some(Stop::Gone)
    }

    /// True when the session was told to stop.
    pub(crate) const fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// The database that the session has changed to since the last look.
    pub(crate) fn take_database(&mut self) -> Option<String> {
        self.database.take()
    }

    /// Ends a call: its status, its output arguments and its end. `more` when another follows.
    pub(crate) fn end_call(&mut self, more: bool) {
        let last = match self.ended.take() {
            // A session may end the call itself; the protocol wants status and values before.
            Some((End::Procedure, last)) => Some(last),
            other => {
                self.ended = other;
                None
            }
        };
        self.settle();
        if let Some(status) = self.status.take() {
            token::return_status(status, &mut self.tokens);
        }
        self.tokens.append(&mut self.values);
        let failed = self.failed || self.stop.is_some() || last.is_some_and(|last| last.failed);
        let end = Done {
            rows: last.and_then(|last| last.rows),
            statement: StatementKind::Execute,
            failed,
            in_procedure: false,
        };
        self.write_end(End::Procedure, end, more);
        self.failed = false;
    }

    /// Ends a batch.
    pub(crate) fn end_batch(&mut self) {
        if self.ended.is_none() {
            // A session that saw the client's wish itself has nothing more to tell.
            let _ = self.open();
        }
        match self.ended.take() {
            Some((End::InProcedure, last)) => self.write_end(End::InProcedure, last, true),
            Some((end, last)) if self.stop.is_none() => return self.write_end(end, last, false),
            Some((end, last)) => self.write_end(end, last, true),
            None => {}
        }
        let end = Done {
            rows: None,
            statement: StatementKind::Other,
            failed: self.failed || self.stop.is_some(),
            in_procedure: false,
        };
        self.write_end(End::Statement, end, false);
    }

    /// Sends what is left. The reply is kept when the data has a `version` to keep it under.
    pub(crate) fn finish(&mut self, keep: Option<(Question, u64)>) {
        self.pass_on();
        let last = self.framer.finish();
        // Before the client has the end of it: whoever asks the same from then on is given it.
        let keeping = self.keeping.take();
        if let (Some(keeping), Some((question, version)), None, false) =
            (keeping, keep, self.stop, self.changed)
        {
            keeping.keep(question, version);
        }
        self.send(last);
    }

    /// Sends a reply that was kept.
    pub(crate) fn again(&mut self, tokens: &[Bytes]) {
        self.begin(None);
        for part in tokens {
            // A part ends where a token ends.
            if self.open().is_break() {
                self.end_batch();
                break;
            }
            self.framer.write(part);
            self.send_packets();
        }
        self.finish(None);
    }

    /// Forgets that the running call was to end.
    pub(crate) fn clear_cancel(&self) {
        self.cancel.clear();
    }

    /// Answers an attention: the running call, if any, has ended.
    pub(crate) fn acknowledge_attention(&mut self) {
        self.begin(None);
        token::end(End::Statement, done::ATTENTION, StatementKind::Other, None, &mut self.tokens);
        self.cancel.clear();
        self.finish(None);
    }

    /// Writes the last statement's end, now that more follows.
    fn settle(&mut self) {
        if let Some((end, last)) = self.ended.take() {
            self.write_end(end, last, true);
        }
    }

    fn write_end(&mut self, end: End, last: Done, more: bool) {
        let status = if more { done::MORE } else { 0 } | if last.failed { done::ERROR } else { 0 };
        token::end(end, status, last.statement, last.rows, &mut self.tokens);
        self.rows = None;
    }

    /// Whether to go on, after tokens were appended.
    #[inline]
    fn go_on(&mut self) -> ControlFlow<()> {
        if self.tokens.len() >= PIECE_BYTES {
            self.pass_on();
        }
        match self.stop {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    }

    /// Whether tokens may be appended at all.
    #[inline]
    fn open(&mut self) -> ControlFlow<()> {
        if self.stop.is_none() && self.cancel.is_set() {
            self.stop = Some(Stop::Cancelled);
        }
        match self.stop {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    }

    /// Makes packets of the tokens so far.
    fn pass_on(&mut self) {
        self.framer.write(&self.tokens);
        if let Some(keeping) = &mut self.keeping {
            let tokens = if self.tokens.len() < PIECE_BYTES / 2 {
                let tokens = Bytes::copy_from_slice(&self.tokens);
                self.tokens.clear();
                tokens
            } else {
                let spare = Vec::with_capacity(PIECE_BYTES.saturating_add(SPARE_BYTES));
                std::mem::replace(&mut self.tokens, spare).into()
            };
            if !keeping.add(tokens) {
                self.keeping = None;
            }
        } else {
            self.tokens.clear();
        }
        self.send_packets();
    }

    fn send_packets(&mut self) {
        if let Some(packets) = self.framer.packets(PIECE_BYTES) {
            self.send(packets);
        }
    }

    fn send(&mut self, packets: Vec<u8>) {
        if self.packets.blocking_send(packets).is_err() {
            self.stop = Some(Stop::Gone);
        }
    }

    fn fault_of_row(&mut self, fault: &RowFault) {
        let column = &fault.column;
        let text = format!("the statement gave {} in column '{column}'", fault.found);
        self.fault(&Fault::Unsupported(text));
        self.stop = self.stop.or(Some(Stop::Faulty));
    }
}

impl Replies for ReplyWriter {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        self.open()?;
        self.settle();
        match RowEncoder::begin(columns, self.dialect, &mut self.tokens) {
            Ok(rows) => self.rows = Some(rows),
            Err(fault) => {
                self.fault(&fault);
                self.stop = self.stop.or(Some(Stop::Faulty));
            }
        }
        self.go_on()
    }

    #[inline]
    fn row(&mut self, row: &[Value]) -> ControlFlow<()> {
        self.open()?;
        let written = match &self.rows {
            Some(rows) => rows.row(row, &mut self.tokens),
            None => Err(RowFault { column: String::new(), found: "a row before its columns" }),
        };
        if let Err(fault) = written {
            self.fault_of_row(&fault);
        }
        self.go_on()
    }

    fn done(&mut self, last: Done) -> ControlFlow<()> {
        self.open()?;
        self.settle();
        let end = match (self.shape, last.in_procedure, last.statement) {
            (_, false, StatementKind::Execute) => End::Procedure,
            (Shape::Call, _, _) | (_, true, _) => End::InProcedure,
            (Shape::Batch, false, _) => End::Statement,
        };
        self.failed = match self.shape {
            // The end of the batch tells of its last statement alone.
            Shape::Batch => false,
            Shape::Call => self.failed || last.failed,
        };
        self.ended = Some((end, last));
        self.go_on()
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        // Why the connection ends is told even to a call that was made to end.
        if message.class < FATAL_CLASS {
            self.open()?;
        }
        self.settle();
        token::message(message, &self.server, &mut self.tokens);
        self.failed |= message.class > 10;
        self.fatal |= message.class >= FATAL_CLASS;
        self.go_on()
    }

    fn changed(&mut self, change: &Change) -> ControlFlow<()> {
        // The client has to know, even when it has cancelled.
        self.changed = true;
        match change {
            Change::Database(new, _) => self.database = Some(new.clone()),
            Change::Collation(new) => self.dialect.collation = *new,
            _ => {}
        }
        self.settle();
        token::changed(change, &mut self.tokens);
        self.go_on()
    }

    fn return_status(&mut self, status: i32) -> ControlFlow<()> {
        self.open()?;
        if self.shape == Shape::Call {
            self.status = Some(status);
        } else {
            self.settle();
            token::return_status(status, &mut self.tokens);
        }
        self.go_on()
    }

    fn return_value(&mut self, place: u16, name: &str, value: &Typed) -> ControlFlow<()> {
        self.open()?;
        match token::return_value(place, name, value, self.dialect, &mut self.values) {
            Ok(Ok(())) => {}
            Ok(Err(misfit)) => {
                self.fault_of_row(&RowFault { column: name.to_owned(), found: misfit.0 });
            }
            Err(fault) => self.fault(&fault),
        }
        self.go_on()
    }
}
