//! The reader: tokens one by one, and `sqlparser` for the parts it knows.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use cdc_fake::SqlError;
use sqlparser::{
    ast,
    parser::{Parser, ParserError},
    tokenizer::{Location, Token, TokenWithSpan},
};

use super::{
    Batch, Body, FreeVariable, Statement, SyntaxError,
    dialect::DIALECT,
    extent,
    reserved::{ended_behind, is_reserved, misplaced, mistaken_for_hint},
    tokens, unsupported,
};
use crate::relation::ObjectName;

/// Blocks within blocks: above what people write, and well within a thread's stack.
const MAX_DEPTH: usize = 32;
/// Levels of an expression or a subquery.
const MAX_LEVELS: usize = 50;

pub(super) type Read<T> = Result<T, SyntaxError>;

pub(super) struct Reader {
    text: Arc<str>,
    tokens: Vec<TokenWithSpan>,
    pub(super) at: usize,
    depth: usize,
    /// Where words stand that look like variables and are names of arguments.
    argument_names: HashSet<Location>,
    /// Variables by their names in lower case, and where each is declared.
    declared: HashMap<String, Location>,
}

impl Reader {
    pub(super) fn new(text: &str, tokens: Vec<TokenWithSpan>) -> Self {
        Self {
            text: text.into(),
            tokens,
            at: 0,
            depth: 0,
            argument_names: HashSet::new(),
            declared: HashMap::new(),
        }
    }

    /// Notes that the variable just read is the name of an argument.
    pub(super) fn note_argument_name(&mut self) {
        if let Some(place) = self.last_place() {
            self.argument_names.insert(place);
        }
    }

    /// Notes that the variable just read is declared here, and nowhere else in the batch.
    pub(super) fn note_declaration(&mut self, name: &str) -> Read<()> {
        let Some(place) = self.last_place() else { return Ok(()) };
        if *self.declared.entry(name.to_lowercase()).or_insert(place) == place {
            return Ok(());
        }
        let text = format!("The variable name '{name}' has already been declared in the batch.");
        Err(self.error(SqlError::new(134, text)))
    }

    fn last_place(&self) -> Option<Location> {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map(|token| token.span.start)
    }

    /// The variables that are used and not declared before.
    fn free(&self) -> Vec<FreeVariable> {
        let mut free: Vec<FreeVariable> = Vec::new();
        let mut before = String::new();
        for token in &self.tokens {
            let word = extent::word(&token.token);
            let place = token.span.start;
            if let Token::Word(found) = &token.token
                && word.as_ref().is_some_and(|word| is_variable(word))
                && !self.argument_names.contains(&place)
                && self.declared.get(&found.value.to_lowercase()).is_none_or(|at| *at > place)
            {
                free.push(FreeVariable {
                    name: found.value.clone(),
                    line: u32::try_from(place.line).unwrap_or(1),
                    table: matches!(
                        before.as_str(),
                        "FROM" | "JOIN" | "INTO" | "INSERT" | "UPDATE"
                    ),
                });
            }
            before = word.unwrap_or_default();
        }
        free
    }

    /// The text from a token up to the last one that was taken, as the client wrote it.
    pub(super) fn text_from(&self, begin: usize) -> String {
        let first = self.tokens.get(begin).map(|token| token.span.start);
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        let range = first.zip(last.map(|token| token.span.end)).map(|(first, last)| {
            tokens::offset(&self.text, first)..tokens::offset(&self.text, last)
        });
        range.and_then(|range| self.text.get(range)).unwrap_or_default().to_owned()
    }

    pub(super) fn batch(mut self) -> Read<Batch> {
        let mut statements = Vec::new();
        loop {
            self.between(statements.is_empty())?;
            if self.peek().is_none() {
                return Ok(Batch { statements, free: self.free() });
            }
            statements.push(self.statement()?);
        }
    }

    /// Goes on to the next statement of a list. WITH begins one only behind a semicolon, or as the
    /// `first`.
    pub(super) fn between(&mut self, first: bool) -> Read<()> {
        let ended = self.peek() == Some(&Token::SemiColon);
        self.skip_semicolons();
        if !first && !ended && self.peek_word().is_some_and(|word| word == "WITH") {
            return Err(self.unexpected());
        }
        Ok(())
    }

    /// A statement; in a block, too.
    pub(super) fn statement(&mut self) -> Read<Statement> {
        if self.depth >= MAX_DEPTH {
            return Err(self.error(SqlError::new(
                191,
                "Some part of your SQL statement is nested too deeply.",
            )));
        }
        self.depth += 1;
        let line = self.line();
        let body = self.body()?;
        self.depth -= 1;
        Ok(Statement { line, body })
    }

    fn body(&mut self) -> Read<Body> {
        let verb = self.peek_word().unwrap_or_default();
        match verb.as_str() {
            "SELECT" | "WITH" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" => self.rows_statement(),
            "" if self.peek() == Some(&Token::LParen) => self.rows_statement(),
            "BEGIN" | "IF" | "WHILE" | "BREAK" | "CONTINUE" | "RETURN" | "THROW" | "RAISERROR"
            | "PRINT" | "WAITFOR" | "DECLARE" | "USE" | "COMMIT" | "ROLLBACK" | "SAVE" | "KILL"
            | "CHECKPOINT" | "RECONFIGURE" => self.control_statement(&verb),
            "SET" => self.set_statement(),
            "EXEC" | "EXECUTE" => self.execute_statement(),
            "CREATE" | "ALTER" | "DROP" | "TRUNCATE" => self.definition_statement(&verb),
            "GRANT" | "DENY" | "REVOKE" => self.permission_statement(&verb),
            "GOTO" | "DBCC" | "BACKUP" | "RESTORE" | "OPEN" | "CLOSE" | "DEALLOCATE" | "FETCH"
            | "BULK" | "SHUTDOWN" | "REVERT" | "READTEXT" => Err(self.error(unsupported(&verb))),
            _ => self.bare_call(),
        }
    }

    /// A procedure's name may begin a batch without `EXEC`.
    fn bare_call(&mut self) -> Read<Body> {
        let first = self.at == 0;
        if first && matches!(self.peek(), Some(Token::Word(_))) {
            let word = self.peek_word().unwrap_or_default();
            if word == "GO" {
                return Err(self.unexpected());
            }
            return self.call(None).map(Body::Execute);
        }
        Err(self.unexpected())
    }

    pub(super) fn peek(&self) -> Option<&Token> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|token| &token.token)
    }

    /// The word ahead in upper case; none for a quoted name or anything else.
    pub(super) fn peek_word(&self) -> Option<String> {
        self.peek_word_at(0)
    }

    pub(super) fn peek_word_at(&self, ahead: usize) -> Option<String> {
        self.peek_at(ahead).and_then(extent::word)
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).map(|token| token.token.clone());
        self.at += usize::from(token.is_some());
        token
    }

    /// The line of the token ahead, or of the last one.
    pub(super) fn line(&self) -> u32 {
        let token = self.tokens.get(self.at).or_else(|| self.tokens.last());
        token.map_or(1, |token| u32::try_from(token.span.start.line).unwrap_or(1))
    }

    pub(super) fn error(&self, error: SqlError) -> SyntaxError {
        SyntaxError { error, line: self.line() }
    }

    /// The error of a token that does not belong here.
    pub(super) fn unexpected(&self) -> SyntaxError {
        if let Some(name) = self.hint_that_is_none() {
            return self.error(mistaken_for_hint(name));
        }
        let error = match (self.peek(), self.tokens.last()) {
            (Some(token), _) => misplaced(token),
            (None, last) => ended_behind(last.map(|token| &token.token)),
        };
        self.error(error)
    }

    /// The name behind a WITH that stands where the hints of a table may.
    fn hint_that_is_none(&self) -> Option<&Token> {
        let is_with = self.peek_word().is_some_and(|word| word == "WITH");
        let name = self.peek_at(1).filter(|token| matches!(token, Token::Word(_)))?;
        let mut before = self.tokens.get(..self.at)?.iter().rev().map(|token| &token.token);
        let is_name = |token: &&Token| match extent::word(token) {
            Some(word) => word == "AS" || !is_reserved(&word),
            None => matches!(token, Token::Word(_) | Token::Period),
        };
        let table = before.find(|token| !is_name(token)).and_then(extent::word)?;
        let takes_hints = matches!(&*table, "FROM" | "JOIN" | "INTO" | "UPDATE" | "DELETE");
        (is_with && takes_hints).then_some(name)
    }

    pub(super) fn skip_semicolons(&mut self) {
        while self.peek() == Some(&Token::SemiColon) {
            self.at += 1;
        }
    }

    /// Takes a word when it is ahead.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.peek_word().is_some_and(|ahead| ahead == word);
        self.at += usize::from(found);
        found
    }

    /// Takes words when all of them are ahead.
    pub(super) fn take_all(&mut self, words: &[&str]) -> bool {
        let found = words
            .iter()
            .enumerate()
            .all(|(ahead, word)| self.peek_word_at(ahead).is_some_and(|found| found == *word));
        if found {
            self.at += words.len();
        }
        found
    }

    pub(super) fn must(&mut self, word: &str) -> Read<()> {
        if self.take(word) { Ok(()) } else { Err(self.unexpected()) }
    }

    pub(super) fn take_token(&mut self, token: &Token) -> bool {
        let found = self.peek() == Some(token);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Read<()> {
        if self.take_token(token) { Ok(()) } else { Err(self.unexpected()) }
    }

    /// Items parted by commas.
    pub(super) fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take_token(&Token::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// A list in parentheses.
    pub(super) fn parenthesised<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        self.expect_token(&Token::LParen)?;
        let items = self.list(item)?;
        self.expect_token(&Token::RParen)?;
        Ok(items)
    }

    /// A name of one part; quoted, or a word.
    pub(super) fn name(&mut self) -> Read<String> {
        match self.peek() {
            Some(Token::Word(word)) if !word.value.starts_with('@') => {
                let name = word.value.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A name in words or as a string.
    pub(super) fn name_or_string(&mut self) -> Read<String> {
        match self.string() {
            Some(text) => Ok(text),
            None => self.name(),
        }
    }

    /// A variable's name, with `@`.
    pub(super) fn variable(&mut self) -> Read<String> {
        match self.peek() {
            Some(Token::Word(word))
                if word.value.starts_with('@') && word.quote_style.is_none() =>
            {
                let name = word.value.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    pub(super) fn peeks_variable(&self) -> bool {
        self.peek_word().is_some_and(|word| is_variable(&word))
    }

    /// A string constant when it is ahead.
    pub(super) fn string(&mut self) -> Option<String> {
        let text = match self.peek()? {
            Token::SingleQuotedString(text) | Token::NationalStringLiteral(text) => text.clone(),
            _ => return None,
        };
        self.at += 1;
        Some(text)
    }

    /// A whole number, maybe with its sign.
    pub(super) fn integer(&mut self) -> Read<i64> {
        let negative = self.take_token(&Token::Minus);
        let number = match self.peek() {
            Some(Token::Number(digits, _)) => digits.parse::<i64>().ok(),
            _ => None,
        };
        let Some(number) = number else {
            return Err(self.unexpected());
        };
        self.at += 1;
        Ok(if negative { number.saturating_neg() } else { number })
    }

    /// `ON` or `OFF`.
    pub(super) fn on_off(&mut self) -> Read<bool> {
        if self.take("ON") {
            return Ok(true);
        }
        self.must("OFF").map(|()| false)
    }

    /// An object's name: `database.schema.object`, with empty parts for the default.
    pub(super) fn object(&mut self) -> Read<ObjectName> {
        let mut parts = vec![self.object_part()?];
        while self.take_token(&Token::Period) {
            parts.push(self.object_part()?);
        }
        let mut parts = parts.into_iter().rev();
        let name = parts.next().filter(|name| !name.is_empty());
        let Some(name) = name else {
            return Err(self.unexpected());
        };
        let part = |text: Option<String>| text.filter(|text| !text.is_empty());
        let schema = part(parts.next());
        let database = part(parts.next());
        if parts.next().is_some() {
            return Err(self.error(unsupported("a name with a server")));
        }
        Ok(ObjectName { database, schema, name })
    }

    fn object_part(&mut self) -> Read<String> {
        match self.peek() {
            Some(Token::Period) => Ok(String::new()),
            Some(Token::Word(word)) => {
                let name = word.value.clone();
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected()),
        }
    }

    /// An expression, at most as far as this statement goes.
    pub(super) fn expression(&mut self) -> Read<ast::Expr> {
        self.parsed(Parser::parse_expr)
    }

    pub(super) fn data_type(&mut self) -> Read<ast::DataType> {
        if self.peek_word().is_some_and(|word| word == "SYS")
            && self.peek_at(1) == Some(&Token::Period)
        {
            self.at += 2;
        }
        let bare = self.peek().and_then(tokens::bare_type);
        if let (Some(bare), Some(token)) = (bare, self.tokens.get_mut(self.at)) {
            token.token = bare;
        }
        self.parsed(Parser::parse_data_type)
    }

    /// What `sqlparser` reads from here: an expression or a type.
    fn parsed<T>(
        &mut self,
        read: impl FnOnce(&mut Parser<'static>) -> Result<T, ParserError>,
    ) -> Read<T> {
        let end = extent::end_of_part(&self.tokens, self.at);
        self.parsed_until(end, read)
    }

    /// What `sqlparser` reads from here, at most up to `end`.
    pub(super) fn parsed_until<T>(
        &mut self,
        end: usize,
        read: impl FnOnce(&mut Parser<'static>) -> Result<T, ParserError>,
    ) -> Read<T> {
        let tokens = self.tokens.get(self.at..end).unwrap_or_default().to_vec();
        let mut parser = Parser::new(&DIALECT)
            .with_recursion_limit(MAX_LEVELS)
            .with_tokens_with_locations(tokens);
        match read(&mut parser) {
            Ok(value) => {
                self.at += parser.index();
                Ok(value)
            }
            Err(ParserError::RecursionLimitExceeded) => Err(self.error(SqlError::new(
                191,
                "Some part of your SQL statement is nested too deeply.",
            ))),
            Err(_) => {
                self.at = (self.at + parser.index()).min(end);
                Err(self.unexpected())
            }
        }
    }

    /// The end of the statement that begins here.
    pub(super) fn statement_end(&self) -> usize {
        extent::end(&self.tokens, self.at)
    }

    /// The tokens from here to `end`.
    pub(super) fn tokens_until(&self, end: usize) -> &[TokenWithSpan] {
        self.tokens.get(self.at..end).unwrap_or_default()
    }

    /// Takes `count` tokens away from `at` on.
    pub(super) fn remove(&mut self, at: usize, count: usize) {
        let end = (at + count).min(self.tokens.len());
        if at < end {
            self.tokens.drain(at..end);
        }
    }

    /// True when nothing of this statement is left.
    pub(super) fn at_end(&self) -> bool {
        match self.peek() {
            None | Some(Token::SemiColon) => true,
            Some(token) => extent::word(token).is_some_and(|word| extent::begins_statement(&word)),
        }
    }

    /// Takes the parenthesis that opens here with all that it holds.
    pub(super) fn skip_parentheses(&mut self) -> Read<()> {
        self.expect_token(&Token::LParen)?;
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next() {
                Some(Token::LParen) => depth += 1,
                Some(Token::RParen) => depth -= 1,
                Some(_) => {}
                None => return Err(self.unexpected()),
            }
        }
        Ok(())
    }
}

/// True for a variable's name; names that begin with `@@` are functions.
fn is_variable(word: &str) -> bool {
    word.starts_with('@') && !word.starts_with("@@")
}
