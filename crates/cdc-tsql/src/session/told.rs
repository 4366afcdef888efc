//! What a procedure of the catalogue tells, on its way to the client.

use std::ops::ControlFlow;

use cdc_fake::Value;

use crate::{
    model::ProcedureOutput,
    talk::{Done, Message, Replies, ResultColumn, StatementKind},
};

/// What a procedure of the catalogue tells, as replies.
pub(super) struct Told<'a> {
    pub(super) replies: &'a mut dyn Replies,
    /// Rows of the result that is open.
    pub(super) rows: Option<u64>,
    pub(super) no_count: bool,
    pub(super) gone: bool,
    pub(super) procedure: &'static str,
    pub(super) line: u32,
}

impl Told<'_> {
    /// Ends the result that is open.
    pub(super) fn end(&mut self) -> ControlFlow<()> {
        let Some(rows) = self.rows.take() else {
            return ControlFlow::Continue(());
        };
        self.replies.done(Done {
            rows: (!self.no_count).then_some(rows),
            statement: StatementKind::Select,
            failed: false,
            in_procedure: true,
        })
    }

    fn noted(&mut self, flow: ControlFlow<()>) -> ControlFlow<()> {
        self.gone |= flow.is_break();
        flow
    }
}

impl ProcedureOutput for Told<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        let ended = self.end();
        self.noted(ended)?;
        self.rows = Some(0);
        let flow = self.replies.columns(columns);
        self.noted(flow)
    }

    fn row(&mut self, row: &[Value]) -> ControlFlow<()> {
        self.rows = self.rows.map(|rows| rows + 1);
        let flow = self.replies.row(row);
        self.noted(flow)
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        let ended = self.end();
        self.noted(ended)?;
        let procedure = match message.procedure.is_empty() {
            true => self.procedure.to_owned(),
            false => message.procedure.clone(),
        };
        let message = Message { procedure, line: self.line.max(1), ..message.clone() };
        let flow = self.replies.message(&message);
        self.noted(flow)
    }
}
