//! Control flow, variables, messages: the statements that steer others.

use cdc_fake::{SqlError, Value};

use super::{
    failure::{Failure, Raised, Run},
    frame::{Frame, undeclared},
    runner::{Runner, go_on, kind},
};
use crate::{
    kind::{Kind, Typed},
    query, scalar,
    syntax::{Body, Declaration, Label, RaisError, SetOption, Statement},
    talk::{Change, Message, StatementKind},
};

/// Where a statement leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
    /// Leaves the batch or the procedure, with its status.
    Return(i32),
}

impl Runner<'_> {
    /// Runs what a statement is.
    pub(super) fn body(&mut self, body: &Body, frame: &Frame) -> Run<Flow> {
        match body {
            Body::Block(statements) => return self.list(statements, frame),
            Body::If { .. } => return self.branch(body, frame),
            Body::While { condition, body } => return self.repeat(condition, body, frame),
            Body::Break => return Ok(Flow::Break),
            Body::Continue => return Ok(Flow::Continue),
            Body::Return(status) => {
                let status = match status {
                    Some(status) => self.whole_number(status, frame)?,
                    None => 0,
                };
                return Ok(Flow::Return(status));
            }
            Body::TryCatch { body, handler } => return self.try_catch(body, handler, frame),
            Body::Query(query, levels) => self.query(query, *levels, frame)?,
            Body::Insert(insert) => self.insert(insert, frame)?,
            Body::Update(update) => self.update(update, frame)?,
            Body::Delete(delete) => self.delete(delete, frame)?,
            Body::Merge(merge) => self.merge(merge, frame)?,
            Body::Execute(call) => {
                self.repeatable = false;
                self.execute(call, frame)?;
            }
            Body::ExecuteText(text) => {
                self.repeatable = false;
                self.execute_text(text, frame)?;
            }
            other => {
                self.repeatable = false;
                self.plain(other, frame)?;
            }
        }
        Ok(Flow::Next)
    }

    /// Statements that lead nowhere else and give no rows.
    fn plain(&mut self, body: &Body, frame: &Frame) -> Run<()> {
        match body {
            Body::Throw(thrown) => return Err(self.throw(thrown.as_ref(), frame)),
            Body::RaisError(raise) => self.raiserror(raise, frame)?,
            Body::Print(text) => self.print(text, frame)?,
            Body::Wait(wait) => self.wait(wait, frame)?,
            Body::Declare(declarations) => return self.declare(declarations, frame),
            Body::SetVariable { name, value } => {
                let value = self.value(value, frame)?;
                self.scoped(frame, |scope, _| {
                    frame.set(name, &value.value, &value.kind, &scope.facts())
                })?;
                self.core.last.rows = 1;
                return Ok(());
            }
            Body::Set(options) => self.set(options, frame)?,
            Body::Use(name) => self.use_database(name, frame)?,
            Body::Begin(label) => {
                let name = self.label(label.as_ref(), frame)?;
                self.begin_implicitly()?;
                self.begin(&name)?;
            }
            Body::Commit(_) => self.commit(frame)?,
            Body::Rollback(label) => self.rollback(label.as_ref(), frame)?,
            Body::Save(label) => {
                let name = self.label(Some(label), frame)?;
                self.touch();
                self.core.transactions.save(&name)?;
            }
            Body::Truncate(name) => self.truncate(name, frame)?,
            Body::Definition(definition) => self.define(definition, frame)?,
            Body::Right(right) => self.right(right, frame)?,
            Body::Kill(session) => {
                let id = self.whole_number(session, frame)?;
                self.require_owner("KILL")?;
                if id == self.core.handle.id() {
                    let text = "Cannot use KILL to kill your own process.";
                    return Err(SqlError::new(6104, text).into());
                }
                self.core.server.kill(id)?;
            }
            _ => {}
        }
        self.done(None, kind(body), false, frame)
    }

    /// Runs the branch that its condition chooses. A chain of ELSE IF is walked in a loop.
    fn branch(&mut self, body: &Body, frame: &Frame) -> Run<Flow> {
        self.repeatable = false;
        let mut body = body;
        while let Body::If { condition, then, otherwise } = body {
            let holds = self.scoped(frame, |_, context| query::condition(condition, context))?;
            if holds == Some(true) {
                return self.statement(then, frame);
            }
            match otherwise.as_deref() {
                None => return Ok(Flow::Next),
                Some(next) if matches!(next.body, Body::If { .. }) => {
                    frame.line.set(next.line);
                    body = &next.body;
                }
                Some(next) => return self.statement(next, frame),
            }
        }
        Ok(Flow::Next)
    }

    fn repeat(
        &mut self,
        condition: &sqlparser::ast::Expr,
        body: &Statement,
        frame: &Frame,
    ) -> Run<Flow> {
        self.repeatable = false;
        loop {
            if self.core.cancel.is_set() {
                return Err(Failure::Gone);
            }
            let holds = self.scoped(frame, |_, context| query::condition(condition, context))?;
            if holds != Some(true) {
                return Ok(Flow::Next);
            }
            match self.statement(body, frame)? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Next),
                leave @ Flow::Return(_) => return Ok(leave),
            }
        }
    }

    fn try_catch(&mut self, body: &[Statement], handler: &[Statement], frame: &Frame) -> Run<Flow> {
        self.repeatable = false;
        frame.tries.set(frame.tries.get() + 1);
        let result = self.list(body, frame);
        frame.tries.set(frame.tries.get() - 1);
        match result {
            Err(Failure::Raised(raised)) if raised.class < 20 => {
                self.core.last.error = raised.number;
                frame.caught.borrow_mut().push(raised);
                let result = self.list(handler, frame);
                frame.caught.borrow_mut().pop();
                result
            }
            other => other,
        }
    }

    fn throw(&mut self, thrown: Option<&[sqlparser::ast::Expr; 3]>, frame: &Frame) -> Failure {
        let Some([number, text, state]) = thrown else {
            return match frame.caught.borrow().last() {
                Some(raised) => Failure::Raised(raised.clone()),
                None => Failure::Error(SqlError::new(
                    10_704,
                    "To rethrow an error, a THROW statement must be used inside a CATCH block.",
                )),
            };
        };
        match self.thrown(number, text, state, frame) {
            Ok(raised) => Failure::Raised(raised),
            Err(failure) => failure,
        }
    }

    fn thrown(
        &mut self,
        number: &sqlparser::ast::Expr,
        text: &sqlparser::ast::Expr,
        state: &sqlparser::ast::Expr,
        frame: &Frame,
    ) -> Run<Raised> {
        let number = self.whole_number(number, frame)?;
        if number < 50_000 {
            return Err(SqlError::new(
                35_100,
                "Error number in the THROW statement is outside the valid range. Specify an error \
                 number in the valid range of 50000 to 2147483647.",
            )
            .into());
        }
        let text = self.text(text, frame)?;
        let state = u8::try_from(self.whole_number(state, frame)?).unwrap_or(1);
        let (line, procedure) = (frame.line.get(), frame.procedure.clone());
        Ok(Raised { number, text, class: 16, state, line, procedure, earlier: Vec::new() })
    }

    fn raiserror(&mut self, raise: &RaisError, frame: &Frame) -> Run<()> {
        let message = self.value(&raise.message, frame)?;
        let severity = self.whole_number(&raise.severity, frame)?;
        let state = self.whole_number(&raise.state, frame)?;
        let mut arguments = Vec::with_capacity(raise.arguments.len());
        for argument in &raise.arguments {
            arguments.push(self.text(argument, frame)?);
        }
        let (number, text) = match message.value {
            Value::Int(number) => {
                let number = i32::try_from(number).unwrap_or(50_000);
                (number, format!("Error {number}, severity {severity}, state {state} was raised."))
            }
            Value::Text(text) => (50_000, formatted(&text, &arguments)),
            _ => (50_000, String::new()),
        };
        let class = u8::try_from(severity.clamp(0, 25)).unwrap_or(16);
        let state = u8::try_from(state.clamp(0, 255)).unwrap_or(1);
        let (line, procedure) = (frame.line.get(), frame.procedure.clone());
        let raised = Raised { number, text, class, state, line, procedure, earlier: Vec::new() };
        if class > 10 {
            return Err(Failure::Raised(raised));
        }
        self.core.last.error = if raise.set_error { number } else { 0 };
        self.tell(&raised.message())
    }

    fn print(&mut self, text: &sqlparser::ast::Expr, frame: &Frame) -> Run<()> {
        let text = self.text(text, frame)?;
        let message = Message {
            number: 0,
            state: 1,
            class: 0,
            text: text.chars().take(8000).collect(),
            procedure: frame.procedure.clone(),
            line: frame.line.get(),
        };
        self.tell(&message)
    }

    fn declare(&mut self, declarations: &[Declaration], frame: &Frame) -> Run<()> {
        for declaration in declarations {
            match declaration {
                Declaration::Table { name, table } => self.declare_table(name, table, frame)?,
                Declaration::Scalar { name, data_type, value } => {
                    let kind = self.kind_of(data_type, None)?;
                    // In a loop the variable is there already, and keeps its value.
                    if frame.get(name).is_none() {
                        frame.declare(name, Typed { kind, value: Value::Null });
                    }
                    if let Some(value) = value {
                        let value = self.value(value, frame)?;
                        self.scoped(frame, |scope, _| {
                            frame.set(name, &value.value, &value.kind, &scope.facts())
                        })?;
                    }
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, options: &[SetOption], frame: &Frame) -> Run<()> {
        for option in options {
            self.set_option(option, frame)?;
        }
        let (isolation, lock_timeout) =
            (self.core.options.isolation, self.core.options.lock_timeout_ms());
        self.core.handle.update(|info| {
            info.isolation = isolation;
            info.lock_timeout = lock_timeout;
        });
        Ok(())
    }

    fn use_database(&mut self, name: &str, frame: &Frame) -> Run<()> {
        let database = self.core.open_database(name)?;
        let new = database.name().to_owned();
        let old = self.core.database.name().to_owned();
        self.core.database = database;
        self.core.handle.update(|info| new.clone_into(&mut info.database));
        go_on(self.replies.changed(&Change::Database(new.clone(), old)))?;
        let collation = self.core.collation();
        go_on(self.replies.changed(&Change::Collation(collation)))?;
        self.tell(&Message {
            number: 5701,
            state: 2,
            class: 0,
            text: format!("Changed database context to '{new}'."),
            procedure: String::new(),
            line: frame.line.get(),
        })
    }

    /// Commits one level.
    pub(super) fn commit(&mut self, frame: &Frame) -> Run<()> {
        let _ = frame;
        let descriptor = self.core.transactions.descriptor;
        if self.core.transactions.commit()? {
            go_on(self.replies.changed(&Change::TransactionCommitted(descriptor)))?;
        }
        Ok(())
    }

    fn rollback(&mut self, label: Option<&Label>, frame: &Frame) -> Run<()> {
        let name = self.label(label, frame)?;
        self.rollback_named(&name)
    }

    /// Rolls back to a savepoint, or everything.
    pub(super) fn rollback_named(&mut self, name: &str) -> Run<()> {
        if !name.is_empty() && !self.core.transactions.is_named(name) {
            self.core.transactions.rollback_to(name)?;
            return Ok(());
        }
        let descriptor = self.core.transactions.descriptor;
        self.core.transactions.rollback()?;
        go_on(self.replies.changed(&Change::TransactionRolledBack(descriptor)))
    }

    fn label(&mut self, label: Option<&Label>, frame: &Frame) -> Run<String> {
        match label {
            None => Ok(String::new()),
            Some(Label::Name(name)) => Ok(name.clone()),
            Some(Label::Variable(name)) => {
                let typed = frame.get(name).ok_or_else(|| undeclared(name))?;
                match typed.value {
                    Value::Text(text) => Ok(text.to_string()),
                    _ => Err(SqlError::new(
                        3999,
                        format!("the variable {name} holds no name of a transaction"),
                    )
                    .into()),
                }
            }
        }
    }

    /// The value of an expression as an `int`.
    pub(super) fn whole_number(
        &mut self,
        expression: &sqlparser::ast::Expr,
        frame: &Frame,
    ) -> Run<i32> {
        let value = self.converted(expression, &Kind::new(cdc_core::SqlType::Int, true), frame)?;
        Ok(value.as_int().and_then(|number| i32::try_from(number).ok()).unwrap_or(0))
    }

    /// The value of an expression as a text; NULL is empty.
    pub(super) fn text(&mut self, expression: &sqlparser::ast::Expr, frame: &Frame) -> Run<String> {
        let kind = Kind::new(cdc_core::SqlType::NVarChar(cdc_core::Length::Max), true);
        match self.converted(expression, &kind, frame)? {
            Value::Text(text) => Ok(text.to_string()),
            _ => Ok(String::new()),
        }
    }

    fn converted(
        &mut self,
        expression: &sqlparser::ast::Expr,
        kind: &Kind,
        frame: &Frame,
    ) -> Run<Value> {
        let typed = self.value(expression, frame)?;
        let value = self.scoped(frame, |scope, _| {
            scalar::convert(&typed.value, &typed.kind, kind, None, true, &scope.facts())
        })?;
        Ok(value)
    }

    /// Tells that a statement of no rows has ended.
    pub(super) fn plain_done(&mut self, statement: StatementKind, frame: &Frame) -> Run<()> {
        self.done(None, statement, false, frame)
    }
}

/// The text of RAISERROR with its arguments: `%s`, `%d`, `%i`, `%u`, `%x`, `%%`, with widths.
fn formatted(text: &str, arguments: &[String]) -> String {
    let mut arguments = arguments.iter();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut width = String::new();
        while let Some(flag) = rest.next_if(|c| c.is_ascii_digit() || "-+ #.*".contains(*c)) {
            width.push(flag);
        }
        // Sizes: `I64` is the only one that the server knows besides `h` and `l`.
        while rest.next_if(|c| matches!(c, 'h' | 'l' | 'I' | '6' | '4')).is_some() {}
        match rest.next() {
            Some('%') => out.push('%'),
            Some('s' | 'd' | 'i' | 'u') => out.push_str(&padded(arguments.next(), &width)),
            Some('x') => {
                let number = arguments.next().and_then(|text| text.parse::<i64>().ok());
                out.push_str(&number.map_or_else(|| "(null)".into(), |n| format!("{n:x}")));
            }
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

fn padded(text: Option<&String>, width: &str) -> String {
    let text = text.map_or("(null)", String::as_str);
    let (left, digits) = match width.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, width),
    };
    let size = digits.split('.').next().and_then(|digits| digits.parse::<usize>().ok());
    let size = size.unwrap_or(0).min(2047);
    if left { format!("{text:<size$}") } else { format!("{text:>size$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raiserror_puts_its_arguments_where_the_text_says() {
        let arguments = ["a".to_owned(), "7".to_owned()];
        assert_eq!(formatted("%s has %d", &arguments), "a has 7");
        assert_eq!(formatted("[%-3s] [%3d] 100%%", &arguments), "[a  ] [  7] 100%");
        assert_eq!(formatted("%s %s %s", &arguments), "a 7 (null)");
    }
}
