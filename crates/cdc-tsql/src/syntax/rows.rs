//! Queries, and the statements that change rows: INSERT, UPDATE, DELETE, MERGE.

use sqlparser::{
    ast::{self, helpers::attached_token::AttachedToken},
    keywords::Keyword,
    parser::Parser,
    tokenizer::Token,
};

use super::{
    Assignment, Body, Delete, Insert, InsertSource, Output, Target, Update, extent,
    reader::{Read, Reader},
    unsupported,
};
use crate::relation::ObjectName;

/// Query hints that change how a server finds rows, not which: none has a meaning here.
const QUERY_HINTS: [&str; 20] = [
    "CONCAT",
    "EXPAND",
    "FAST",
    "FORCE",
    "HASH",
    "IGNORE_NONCLUSTERED_COLUMNSTORE_INDEX",
    "KEEP",
    "KEEPFIXED",
    "LABEL",
    "LOOP",
    "MAX_GRANT_PERCENT",
    "MAXDOP",
    "MERGE",
    "MIN_GRANT_PERCENT",
    "NO_PERFORMANCE_SPOOL",
    "OPTIMIZE",
    "ORDER",
    "QUERYTRACEON",
    "RECOMPILE",
    "USE",
];

impl Reader {
    pub(super) fn rows_statement(&mut self) -> Read<Body> {
        let levels = self.drop_options()?;
        if self.peek_word().is_some_and(|word| word == "WITH") && self.changes_rows() {
            let with = self.common_tables()?;
            let verb = self.peek_word().unwrap_or_default();
            return self.change(&verb, Some(with));
        }
        match self.peek_word().unwrap_or_default().as_str() {
            verb @ ("INSERT" | "UPDATE" | "DELETE" | "MERGE") => self.change(verb, None),
            _ => self.query().map(|query| Body::Query(query, levels)),
        }
    }

    /// A query up to the statement's end.
    pub(super) fn query(&mut self) -> Read<Box<ast::Query>> {
        let end = self.statement_end();
        let query = self.parsed_until(end, Parser::parse_query)?;
        if self.at < end { Err(self.unexpected()) } else { Ok(query) }
    }

    /// True when a statement with common table expressions is no query.
    fn changes_rows(&self) -> bool {
        let mut depth = 0_usize;
        for token in self.tokens_until(self.statement_end()) {
            match &token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                token if depth == 0 => match extent::word(token).as_deref() {
                    Some("INSERT" | "UPDATE" | "DELETE" | "MERGE") => return true,
                    Some("SELECT") => return false,
                    _ => {}
                },
                _ => {}
            }
        }
        false
    }

    fn common_tables(&mut self) -> Read<ast::With> {
        let end = self.statement_end();
        self.parsed_until(end, |parser| {
            let with_token = AttachedToken(parser.expect_keyword(Keyword::WITH)?);
            let cte_tables = parser.parse_comma_separated(Parser::parse_cte)?;
            Ok(ast::With { with_token, recursive: false, cte_tables })
        })
    }

    /// Takes `OPTION (...)` away from the statement's end. Gives its `MAXRECURSION`.
    fn drop_options(&mut self) -> Read<Option<u16>> {
        let end = self.statement_end();
        let tokens = self.tokens_until(end);
        let mut depth = 0_usize;
        let mut found = None;
        for (at, token) in tokens.iter().enumerate() {
            match &token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                token if depth == 0 && extent::word(token).is_some_and(|word| word == "OPTION") => {
                    found = Some(at);
                }
                _ => {}
            }
        }
        let Some(found) = found else {
            return Ok(None);
        };
        let mut levels = None;
        let (begin, start) = (self.at, self.at + found);
        self.at = start + 1;
        self.expect_token(&Token::LParen)?;
        while self.peek() != Some(&Token::RParen) {
            if self.take("MAXRECURSION") {
                levels = u16::try_from(self.integer()?).ok();
            } else {
                self.query_hint()?;
            }
            self.take_token(&Token::Comma);
        }
        self.expect_token(&Token::RParen)?;
        let count = self.at - start;
        self.at = begin;
        self.remove(start, count);
        Ok(levels)
    }

    fn query_hint(&mut self) -> Read<()> {
        let word = self.peek_word().unwrap_or_default();
        if !QUERY_HINTS.contains(&&*word) {
            return Err(self.error(unsupported("this query hint")));
        }
        while !matches!(self.peek(), None | Some(Token::Comma | Token::RParen)) {
            if self.peek() == Some(&Token::LParen) {
                self.skip_parentheses()?;
            } else {
                self.at += 1;
            }
        }
        Ok(())
    }

    fn change(&mut self, verb: &str, with: Option<ast::With>) -> Read<Body> {
        self.at += 1;
        let body = match verb {
            "INSERT" => self.insert(with)?,
            "UPDATE" => self.update(with)?,
            "DELETE" => self.delete(with)?,
            _ => self.merge(with)?,
        };
        if self.at_end() { Ok(body) } else { Err(self.unexpected()) }
    }

    pub(super) fn top(&mut self) -> Read<Option<ast::Top>> {
        if !self.take("TOP") {
            return Ok(None);
        }
        let end = self.statement_end();
        self.parsed_until(end, Parser::parse_top).map(Some)
    }

    /// The table of a change, with its hints and, where one may stand, its alias.
    pub(super) fn target(&mut self, alias: bool) -> Read<Target> {
        let name = self.target_name()?;
        let mut target = Target { name, alias: None, hints: Vec::new() };
        if alias {
            self.target_alias(&mut target)?;
        }
        if self.take("WITH") {
            target.hints = self.parenthesised(Self::expression)?;
        }
        if alias && target.alias.is_none() {
            self.target_alias(&mut target)?;
        }
        Ok(target)
    }

    fn target_alias(&mut self, target: &mut Target) -> Read<()> {
        let explicit = self.take("AS");
        let stops = ["WITH", "USING"];
        let implied = matches!(self.peek(), Some(Token::Word(_)))
            && !self.peek_word().is_some_and(|word| stops.contains(&&*word));
        if explicit || implied {
            target.alias = Some(self.name()?);
        }
        Ok(())
    }

    /// A table or a table variable.
    fn target_name(&mut self) -> Read<ObjectName> {
        if self.peeks_variable() {
            let name = self.variable()?;
            return Ok(ObjectName { database: None, schema: None, name });
        }
        self.object()
    }

    fn insert(&mut self, with: Option<ast::With>) -> Read<Body> {
        let top = self.top()?;
        self.take("INTO");
        let target = self.target(false)?;
        let mut columns = Vec::new();
        let list = self.peek() == Some(&Token::LParen)
            && !matches!(self.peek_word_at(1).as_deref(), Some("SELECT" | "WITH"))
            && self.peek_at(1) != Some(&Token::LParen);
        if list {
            columns = self.parenthesised(Self::column)?;
        }
        let output = self.output()?;
        let source = self.insert_source()?;
        Ok(Body::Insert(Box::new(Insert { with, top, target, columns, output, source })))
    }

    /// A column's name, maybe behind its table's.
    pub(super) fn column(&mut self) -> Read<String> {
        self.object().map(|name| name.name)
    }

    fn insert_source(&mut self) -> Read<InsertSource> {
        match self.peek_word().unwrap_or_default().as_str() {
            "DEFAULT" => {
                self.at += 1;
                self.must("VALUES")?;
                Ok(InsertSource::DefaultValues)
            }
            "VALUES" => {
                self.at += 1;
                self.value_rows().map(InsertSource::Values)
            }
            "EXEC" | "EXECUTE" => match self.execute_statement()? {
                Body::Execute(call) => Ok(InsertSource::Execute(call)),
                Body::ExecuteText(text) => Ok(InsertSource::ExecuteText(text)),
                _ => Err(self.unexpected()),
            },
            _ => self.query().map(InsertSource::Query),
        }
    }

    /// `(1, DEFAULT), (2, 'b')`.
    fn value_rows(&mut self) -> Read<Vec<Vec<Option<ast::Expr>>>> {
        let end = self.statement_end();
        self.parsed_until(end, |parser| {
            parser.parse_comma_separated(|parser| {
                parser.expect_token(&Token::LParen)?;
                let row = parser.parse_comma_separated(default_or_expression)?;
                parser.expect_token(&Token::RParen)?;
                Ok(row)
            })
        })
    }

    pub(super) fn output(&mut self) -> Read<Option<Output>> {
        if !self.take("OUTPUT") {
            return Ok(None);
        }
        let end =
            self.end_before(&["INTO", "VALUES", "SELECT", "EXEC", "DEFAULT", "FROM", "WHERE"]);
        let items = self.parsed_until(end, Parser::parse_projection)?;
        let mut into = None;
        if self.take("INTO") {
            let table = self.target_name()?;
            let mut columns = Vec::new();
            if self.peek() == Some(&Token::LParen) {
                columns = self.parenthesised(Self::column)?;
            }
            into = Some((table, columns));
        }
        Ok(Some(Output { items, into }))
    }

    /// The place of the first of these words outside parentheses, or the statement's end.
    pub(super) fn end_before(&self, words: &[&str]) -> usize {
        let end = self.statement_end();
        let mut depth = 0_usize;
        for (at, token) in self.tokens_until(end).iter().enumerate() {
            match &token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                token
                    if depth == 0
                        && extent::word(token).is_some_and(|word| words.contains(&&*word)) =>
                {
                    return self.at + at;
                }
                _ => {}
            }
        }
        end
    }

    fn update(&mut self, with: Option<ast::With>) -> Read<Body> {
        if self.peek_word().is_some_and(|word| word == "STATISTICS") {
            return Err(self.error(unsupported("UPDATE STATISTICS")));
        }
        let top = self.top()?;
        let target = self.target(false)?;
        self.must("SET")?;
        let assignments = self.list(Self::assignment)?;
        let output = self.output()?;
        let from = self.from()?;
        let selection = self.selection()?;
        let update = Update { with, top, target, assignments, output, from, selection };
        Ok(Body::Update(Box::new(update)))
    }

    fn delete(&mut self, with: Option<ast::With>) -> Read<Body> {
        let top = self.top()?;
        self.take("FROM");
        let target = self.target(false)?;
        let output = self.output()?;
        let from = self.from()?;
        let selection = self.selection()?;
        Ok(Body::Delete(Box::new(Delete { with, top, target, output, from, selection })))
    }

    fn from(&mut self) -> Read<Vec<ast::TableWithJoins>> {
        if !self.take("FROM") {
            return Ok(Vec::new());
        }
        let end = self.statement_end();
        self.parsed_until(end, |parser| parser.parse_comma_separated(Parser::parse_table_and_joins))
    }

    fn selection(&mut self) -> Read<Option<ast::Expr>> {
        if !self.take("WHERE") {
            return Ok(None);
        }
        if self.peek_word().is_some_and(|word| word == "CURRENT") {
            return Err(self.error(unsupported("WHERE CURRENT OF")));
        }
        self.expression().map(Some)
    }

    pub(super) fn assignment(&mut self) -> Read<Assignment> {
        let mut variable = None;
        if self.peeks_variable() {
            let name = self.variable()?;
            if self.peek() == Some(&Token::Eq) && self.assigns_column() {
                self.at += 1;
                variable = Some(name);
            } else {
                let value = self.assigned(&name)?;
                return Ok(Assignment { variable: Some(name), column: None, value });
            }
        }
        let column = self.object()?;
        if column.name.eq_ignore_ascii_case("write") && self.peek() == Some(&Token::LParen) {
            return Err(self.error(unsupported(".WRITE")));
        }
        let value = self.assigned(&column.name)?;
        Ok(Assignment { variable, column: Some(column.name), value })
    }

    /// True for `= column = value`.
    fn assigns_column(&self) -> bool {
        matches!(self.peek_at(1), Some(Token::Word(_)))
            && !self.peek_word_at(1).is_some_and(|word| word.starts_with('@'))
            && self.peek_at(2) == Some(&Token::Eq)
    }

    /// The value behind `=`, `+=` and the like; none for `DEFAULT`.
    fn assigned(&mut self, name: &str) -> Read<Option<ast::Expr>> {
        let operator = self.compound_operator();
        self.expect_token(&Token::Eq)?;
        if operator.is_none() && self.take("DEFAULT") {
            return Ok(None);
        }
        let value = self.expression()?;
        Ok(Some(match operator {
            None => value,
            Some(op) => compound(name, op, value),
        }))
    }

    /// The operator of `+=` and the like, when it is ahead.
    pub(super) fn compound_operator(&mut self) -> Option<ast::BinaryOperator> {
        if self.peek_at(1) != Some(&Token::Eq) {
            return None;
        }
        let operator = match self.peek()? {
            Token::Plus => ast::BinaryOperator::Plus,
            Token::Minus => ast::BinaryOperator::Minus,
            Token::Mul => ast::BinaryOperator::Multiply,
            Token::Div => ast::BinaryOperator::Divide,
            Token::Mod => ast::BinaryOperator::Modulo,
            Token::Ampersand => ast::BinaryOperator::BitwiseAnd,
            Token::Pipe => ast::BinaryOperator::BitwiseOr,
            Token::Caret => ast::BinaryOperator::BitwiseXor,
            _ => return None,
        };
        self.at += 1;
        Some(operator)
    }
}

fn default_or_expression(
    parser: &mut Parser<'static>,
) -> Result<Option<ast::Expr>, sqlparser::parser::ParserError> {
    if parser.parse_keyword(Keyword::DEFAULT) {
        return Ok(None);
    }
    parser.parse_expr().map(Some)
}

/// `name operator (value)`.
pub(super) fn compound(name: &str, op: ast::BinaryOperator, value: ast::Expr) -> ast::Expr {
    let quote = if name.starts_with('@') { None } else { Some('[') };
    let name = ast::Ident { value: name.into(), quote_style: quote, span: no_span() };
    ast::Expr::BinaryOp {
        left: Box::new(ast::Expr::Identifier(name)),
        op,
        right: Box::new(ast::Expr::Nested(Box::new(value))),
    }
}

fn no_span() -> sqlparser::tokenizer::Span {
    sqlparser::tokenizer::Span::empty()
}
