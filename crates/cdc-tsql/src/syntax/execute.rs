//! EXEC: a procedure with its arguments, or a text.

use sqlparser::{ast, tokenizer::Token};

use super::{
    Body, Execute, ExecuteArgument, Parameter, ProcedureName,
    reader::{Read, Reader},
    unsupported,
};

impl Reader {
    /// `EXEC p ...`, `EXEC @status = p ...`, `EXEC (text)`.
    pub(super) fn execute_statement(&mut self) -> Read<Body> {
        self.at += 1;
        if self.take("AS") {
            return Err(self.error(unsupported("EXECUTE AS")));
        }
        if self.take_token(&Token::LParen) {
            let text = self.expression()?;
            self.expect_token(&Token::RParen)?;
            if self.take("AT") || self.take("AS") {
                return Err(self.error(unsupported("EXEC of a text elsewhere")));
            }
            return Ok(Body::ExecuteText(text));
        }
        let mut status = None;
        if self.peeks_variable() && self.peek_at(1) == Some(&Token::Eq) {
            status = Some(self.variable()?);
            self.at += 1;
        }
        self.call(status).map(Body::Execute)
    }

    pub(super) fn call(&mut self, status: Option<String>) -> Read<Execute> {
        let procedure = if self.peeks_variable() {
            ProcedureName::Variable(self.variable()?)
        } else {
            ProcedureName::Name(self.object()?)
        };
        let mut arguments = Vec::new();
        if !self.at_end() && self.peek_word().as_deref() != Some("WITH") {
            arguments = self.list(Self::argument)?;
        }
        if self.take("WITH") {
            // Nothing is kept that could be compiled again.
            self.must("RECOMPILE")?;
        }
        Ok(Execute { status, procedure, arguments })
    }

    fn argument(&mut self) -> Read<ExecuteArgument> {
        let mut name = None;
        if self.peeks_variable() && self.peek_at(1) == Some(&Token::Eq) {
            name = Some(self.variable()?);
            self.note_argument_name();
            self.at += 1;
        }
        if self.take("DEFAULT") {
            return Ok(ExecuteArgument { name, value: None, output: None });
        }
        if let Some(word) = self.bare_word() {
            self.at += 1;
            let value = ast::Value::SingleQuotedString(word).with_empty_span();
            return Ok(ExecuteArgument {
                name,
                value: Some(ast::Expr::Value(value)),
                output: None,
            });
        }
        let variable = self.peeks_variable().then(|| match self.peek() {
            Some(Token::Word(word)) => word.value.clone(),
            _ => String::new(),
        });
        let value = self.expression()?;
        let output = (self.take("OUTPUT") || self.take("OUT")).then_some(variable).flatten();
        Ok(ExecuteArgument { name, value: Some(value), output })
    }

    /// An argument that is a word without quotes is a string: `EXEC sp_help orders`.
    fn bare_word(&self) -> Option<String> {
        let Some(Token::Word(word)) = self.peek() else {
            return None;
        };
        let plain = !word.value.starts_with('@') && !word.value.eq_ignore_ascii_case("NULL");
        let alone = !matches!(self.peek_at(1), Some(Token::LParen | Token::Period));
        (plain && alone).then(|| word.value.clone())
    }

    /// The declarations of parameters, to the end of the text.
    pub(super) fn parameters(mut self) -> Read<Vec<Parameter>> {
        if self.peek().is_none() {
            return Ok(Vec::new());
        }
        let parameters = self.list(|reader| {
            let name = reader.variable()?;
            reader.take("AS");
            let data_type = reader.data_type()?;
            let default =
                if reader.take_token(&Token::Eq) { Some(reader.expression()?) } else { None };
            let output = reader.take("OUTPUT") || reader.take("OUT");
            if reader.take("READONLY") {
                return Err(reader.error(unsupported("a table-valued parameter")));
            }
            Ok(Parameter { name, data_type, output, default })
        })?;
        if self.peek().is_some() { Err(self.unexpected()) } else { Ok(parameters) }
    }
}
