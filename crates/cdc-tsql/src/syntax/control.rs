//! Control flow, variables, messages and transactions.

use sqlparser::{ast, tokenizer::Token};

use super::{
    Body, Declaration, Execute, Label, ProcedureName, RaisError, Statement, Wait,
    reader::{Read, Reader},
    unsupported,
};
use crate::relation::ObjectName;

/// Branches of one chain of ELSE IF, after which the next counts as nested.
const MAX_BRANCHES: usize = 1000;

impl Reader {
    pub(super) fn control_statement(&mut self, verb: &str) -> Read<Body> {
        self.at += 1;
        match verb {
            "BEGIN" => self.begin(),
            "IF" => self.if_statement(),
            "WHILE" => {
                let condition = self.expression()?;
                let body = Box::new(self.statement()?);
                Ok(Body::While { condition, body })
            }
            "BREAK" => Ok(Body::Break),
            "CONTINUE" => Ok(Body::Continue),
            "RETURN" => {
                if self.at_end() {
                    return Ok(Body::Return(None));
                }
                self.expression().map(|status| Body::Return(Some(status)))
            }
            "THROW" => self.throw(),
            "RAISERROR" => self.raiserror(),
            "PRINT" => self.expression().map(Body::Print),
            "WAITFOR" => self.wait(),
            "DECLARE" => self.list(Self::declaration).map(Body::Declare),
            "USE" => self.name().map(Body::Use),
            "COMMIT" | "ROLLBACK" | "SAVE" => self.transaction_end(verb),
            "KILL" => self.expression().map(Body::Kill),
            "RECONFIGURE" => Ok(self.reconfigure()),
            _ => {
                if !self.at_end() {
                    self.integer()?;
                }
                Ok(Body::Checkpoint)
            }
        }
    }

    /// `RECONFIGURE [WITH OVERRIDE]`: the server does it as it does a procedure's work.
    fn reconfigure(&mut self) -> Body {
        self.take_all(&["WITH", "OVERRIDE"]);
        let name =
            ObjectName { database: None, schema: Some("sys".into()), name: "reconfigure".into() };
        Body::Execute(Execute {
            status: None,
            procedure: ProcedureName::Name(name),
            arguments: Vec::new(),
        })
    }

    fn begin(&mut self) -> Read<Body> {
        if self.take("TRAN") || self.take("TRANSACTION") {
            let name = self.label()?;
            if self.take("WITH") {
                return Err(self.error(unsupported("BEGIN TRANSACTION WITH MARK")));
            }
            return Ok(Body::Begin(name));
        }
        if self.take("DISTRIBUTED") || self.take("DIALOG") || self.take("CONVERSATION") {
            return Err(self.error(unsupported("this BEGIN")));
        }
        if self.take("TRY") {
            let body = self.block_until("TRY")?;
            self.skip_semicolons();
            if !self.take_all(&["BEGIN", "CATCH"]) {
                return Err(self.unexpected());
            }
            let handler = self.block_until("CATCH")?;
            return Ok(Body::TryCatch { body, handler });
        }
        if self.take("ATOMIC") {
            return Err(self.error(unsupported("BEGIN ATOMIC")));
        }
        let statements = self.block_until("")?;
        if statements.is_empty() {
            return Err(self.unexpected());
        }
        Ok(Body::Block(statements))
    }

    /// Statements up to END, or END with a word.
    fn block_until(&mut self, word: &str) -> Read<Vec<Statement>> {
        let mut statements = Vec::new();
        loop {
            self.between(statements.is_empty())?;
            if self.take("END") {
                if !word.is_empty() {
                    self.must(word)?;
                }
                return Ok(statements);
            }
            if self.peek().is_none() {
                return Err(self.unexpected());
            }
            statements.push(self.statement()?);
        }
    }

    /// IF with its branches. A chain of ELSE IF is read in a loop: it is no nesting to people.
    fn if_statement(&mut self) -> Read<Body> {
        let mut branches = Vec::new();
        let mut last = None;
        loop {
            let line = self.line();
            let condition = self.expression()?;
            branches.push((line, condition, Box::new(self.statement()?)));
            // A semicolon may end a branch.
            let begin = self.at;
            self.skip_semicolons();
            if !self.take("ELSE") {
                self.at = begin;
                break;
            }
            if branches.len() >= MAX_BRANCHES || !self.take("IF") {
                last = Some(Box::new(self.statement()?));
                break;
            }
        }
        let mut body = None;
        for (line, condition, then) in branches.into_iter().rev() {
            let otherwise = match body.take() {
                Some((line, body)) => Some(Box::new(Statement { line, body })),
                None => last.take(),
            };
            body = Some((line, Body::If { condition, then, otherwise }));
        }
        body.map(|(_, body)| body).ok_or_else(|| self.unexpected())
    }

    fn throw(&mut self) -> Read<Body> {
        if self.at_end() {
            return Ok(Body::Throw(None));
        }
        let number = self.expression()?;
        self.expect_token(&Token::Comma)?;
        let text = self.expression()?;
        self.expect_token(&Token::Comma)?;
        let state = self.expression()?;
        Ok(Body::Throw(Some([number, text, state])))
    }

    fn raiserror(&mut self) -> Read<Body> {
        self.expect_token(&Token::LParen)?;
        let mut parts = self.list(Self::expression)?.into_iter();
        self.expect_token(&Token::RParen)?;
        let (Some(message), Some(severity), Some(state)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(self.unexpected());
        };
        let mut set_error = false;
        if self.take("WITH") {
            for option in self.list(Self::name)? {
                match option.to_ascii_uppercase().as_str() {
                    "NOWAIT" | "LOG" => {}
                    "SETERROR" => set_error = true,
                    _ => return Err(self.unexpected()),
                }
            }
        }
        let arguments = parts.collect();
        Ok(Body::RaisError(RaisError { message, severity, state, arguments, set_error }))
    }

    fn wait(&mut self) -> Read<Body> {
        if self.take("DELAY") {
            return self.expression().map(|time| Body::Wait(Wait::Delay(time)));
        }
        if self.take("TIME") {
            return self.expression().map(|time| Body::Wait(Wait::Time(time)));
        }
        Err(self.error(unsupported("this WAITFOR")))
    }

    fn declaration(&mut self) -> Read<Declaration> {
        let name = self.variable()?;
        self.note_declaration(&name)?;
        self.take("AS");
        if self.take("TABLE") {
            let table = self.table_body()?;
            return Ok(Declaration::Table { name, table });
        }
        if self.peek_word().is_some_and(|word| word == "CURSOR") {
            return Err(self.error(unsupported("CURSOR")));
        }
        let data_type = self.data_type()?;
        let value = if self.take_token(&Token::Eq) { Some(self.expression()?) } else { None };
        Ok(Declaration::Scalar { name, data_type, value })
    }

    fn transaction_end(&mut self, verb: &str) -> Read<Body> {
        let worded = self.take("TRAN") || self.take("TRANSACTION");
        if verb == "SAVE" {
            return match self.label()? {
                Some(label) if worded => Ok(Body::Save(label)),
                _ => Err(self.unexpected()),
            };
        }
        if !worded {
            self.take("WORK");
        }
        let label = if worded { self.label()? } else { None };
        if self.take("WITH") {
            let options = self.parenthesised(|reader| {
                reader.must("DELAYED_DURABILITY")?;
                reader.expect_token(&Token::Eq)?;
                reader.on_off()
            })?;
            let _ = options;
        }
        Ok(if verb == "COMMIT" { Body::Commit(label) } else { Body::Rollback(label) })
    }

    /// A transaction's name, in words or in a variable.
    fn label(&mut self) -> Read<Option<Label>> {
        if self.at_end() || self.peek_word().is_some_and(|word| word == "WITH") {
            return Ok(None);
        }
        if self.peeks_variable() {
            return self.variable().map(|name| Some(Label::Variable(name)));
        }
        self.name().map(|name| Some(Label::Name(name)))
    }

    /// A constant expression of a definition, for its text.
    pub(super) fn constant(&mut self) -> Read<ast::Expr> {
        self.expression()
    }
}
