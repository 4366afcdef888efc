//! Tokens of a batch, without blanks and comments, and with the escapes of ODBC and a few words
//! turned into what the rest of the reader knows.

use cdc_fake::SqlError;
use sqlparser::{
    dialect::MsSqlDialect,
    keywords::Keyword,
    tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer, Word},
};

use super::{SyntaxError, extent, unsupported};
use crate::relation::Settings;

/// Bytes of a batch: 65,536 packets of 4 KiB, the server's own limit.
const MAX_TEXT: usize = 65_536 * 4096;

/// Reads the tokens of a batch.
///
/// # Errors
/// 105 for a string that does not end, 113 for such a comment, 102 for anything else that is no
/// token.
pub(super) fn read(text: &str, settings: &Settings) -> Result<Vec<TokenWithSpan>, SyntaxError> {
    if text.len() > MAX_TEXT {
        return Err(SyntaxError { error: SqlError::new(103, "the batch is too long"), line: 1 });
    }
    let tokens = Tokenizer::new(&MsSqlDialect {}, text)
        .with_unescape(true)
        .tokenize_with_location()
        .map_err(|error| unreadable(&error))?;
    let mut read: Vec<TokenWithSpan> = tokens
        .into_iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF))
        .collect();
    for token in &mut read {
        name(token, settings);
    }
    read = joined_comparisons(read);
    dollar_actions(&mut read);
    escapes(parses(read)?)
}

/// `!<` and `!>` as the operators they stand for.
fn joined_comparisons(read: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut joined: Vec<TokenWithSpan> = Vec::with_capacity(read.len());
    for token in read {
        let opposite = match token.token {
            Token::Lt => Some(Token::GtEq),
            Token::Gt => Some(Token::LtEq),
            _ => None,
        };
        match (opposite, joined.last_mut()) {
            (Some(opposite), Some(last)) if last.token == Token::ExclamationMark => {
                last.token = opposite;
            }
            _ => joined.push(token),
        }
    }
    joined
}

fn unreadable(error: &sqlparser::tokenizer::TokenizerError) -> SyntaxError {
    let line = u32::try_from(error.location.line).unwrap_or(1);
    let error = if error.message.contains("comment") {
        SqlError::new(113, "Missing end comment mark '*/'.")
    } else if error.message.contains("nterminated") || error.message.contains("delimiter") {
        SqlError::new(105, "Unclosed quotation mark after the character string.")
    } else {
        SqlError::new(102, "Incorrect syntax: a character that begins no token.")
    };
    SyntaxError { error, line }
}

/// Types whose names scripts put in brackets.
const TYPES: [&str; 33] = [
    "bigint",
    "binary",
    "bit",
    "char",
    "date",
    "datetime",
    "datetime2",
    "datetimeoffset",
    "decimal",
    "float",
    "image",
    "int",
    "money",
    "nchar",
    "ntext",
    "numeric",
    "nvarchar",
    "real",
    "rowversion",
    "smalldatetime",
    "smallint",
    "smallmoney",
    "sql_variant",
    "sysname",
    "text",
    "time",
    "timestamp",
    "tinyint",
    "uniqueidentifier",
    "varbinary",
    "varchar",
    "xml",
    "hierarchyid",
];

/// Names in double quotes are strings with `QUOTED_IDENTIFIER OFF`.
fn name(token: &mut TokenWithSpan, settings: &Settings) {
    let Token::Word(word) = &token.token else {
        return;
    };
    if word.quote_style == Some('"') && !settings.quoted_identifier {
        token.token = Token::SingleQuotedString(word.value.clone());
    }
}

/// The plain word of a type's name in brackets.
pub(super) fn bare_type(token: &Token) -> Option<Token> {
    let Token::Word(word) = token else {
        return None;
    };
    word.quote_style?;
    let known = TYPES.iter().any(|name| word.value.eq_ignore_ascii_case(name));
    known.then(|| Token::make_word(&word.value, None))
}

/// `$action` and `$identity` are names; the tokenizer gives a placeholder.
fn dollar_actions(tokens: &mut [TokenWithSpan]) {
    for token in tokens {
        if let Token::Placeholder(text) = &token.token
            && text.eq_ignore_ascii_case("$action")
        {
            token.token = Token::Word(Word {
                value: "$action".into(),
                quote_style: Some('['),
                keyword: Keyword::NoKeyword,
            });
        }
    }
}

/// Turns `PARSE(x AS type USING culture)` into a call, `PARSE(x, CAST(NULL AS type), culture)`:
/// `sqlparser` does not know its form.
fn parses(read: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SyntaxError> {
    let mut made = Vec::with_capacity(read.len());
    // For each parenthesis that is open: what of a PARSE was read in it; none for another one.
    let mut open: Vec<Option<Parsing>> = Vec::new();
    for token in read {
        let span = token.span;
        let mut push = |token: Token| made.push(TokenWithSpan::new(token, span));
        let top = open.last_mut().and_then(Option::as_mut);
        let word = extent::word(&token.token);
        match (&token.token, top, word.as_deref()) {
            (Token::LParen, _, _) => {
                let begins = is_parse(&made);
                open.push(begins.then_some(Parsing::Value));
                made.push(token);
            }
            (Token::RParen, top, _) => {
                match top.copied() {
                    None | Some(Parsing::Culture) => {}
                    Some(Parsing::Type) => push(Token::RParen),
                    Some(Parsing::Value) => return Err(near(")", span.start)),
                }
                open.pop();
                made.push(token);
            }
            (_, Some(at @ Parsing::Value), Some("AS")) => {
                *at = Parsing::Type;
                for token in [
                    Token::Comma,
                    Token::make_keyword("CAST"),
                    Token::LParen,
                    Token::make_keyword("NULL"),
                    Token::make_keyword("AS"),
                ] {
                    push(token);
                }
            }
            (_, Some(at @ Parsing::Type), Some("USING")) => {
                *at = Parsing::Culture;
                push(Token::RParen);
                push(Token::Comma);
            }
            (Token::Comma, Some(_), _) => return Err(near(",", span.start)),
            _ => made.push(token),
        }
    }
    Ok(made)
}

/// What of a PARSE was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parsing {
    Value,
    Type,
    Culture,
}

/// True when the last token is the name of PARSE or TRY_PARSE.
fn is_parse(made: &[TokenWithSpan]) -> bool {
    let mut last = made.iter().rev().map(|token| &token.token);
    let word = last.next().and_then(extent::word);
    matches!(word.as_deref(), Some("PARSE" | "TRY_PARSE")) && last.next() != Some(&Token::Period)
}

/// Turns `{d '...'}`, `{t '...'}`, `{ts '...'}`, `{guid '...'}`, `{fn f(...)}`, `{oj ...}`,
/// `{call p(...)}` and `{?=call p(...)}` into what they stand for.
fn escapes(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, SyntaxError> {
    if !tokens.iter().any(|token| token.token == Token::LBrace) {
        return Ok(tokens);
    }
    let mut out = Vec::with_capacity(tokens.len());
    // What closes each open brace.
    let mut open: Vec<Closing> = Vec::new();
    let mut rest = tokens.into_iter().peekable();
    while let Some(token) = rest.next() {
        match token.token {
            Token::LBrace => open.push(opened(&token.span, &mut rest, &mut out)?),
            Token::RBrace => match open.pop() {
                Some(Closing::Nothing) => {}
                Some(Closing::Cast(data_type)) => {
                    push_cast_end(&mut out, data_type, token.span);
                }
                Some(Closing::Call) => {}
                None => return Err(near("}", token.span.start)),
            },
            // `{call p(1, 2)}`: the arguments of EXEC stand without parentheses.
            Token::LParen | Token::RParen if call_parenthesis(&open, &token, &out, &mut rest) => {}
            _ => out.push(token),
        }
    }
    match open.pop() {
        Some(_) => Err(near("{", Location::new(1, 1))),
        None => Ok(out),
    }
}

enum Closing {
    Nothing,
    Cast(&'static str),
    Call,
}

type Rest = std::iter::Peekable<std::vec::IntoIter<TokenWithSpan>>;

fn opened(
    span: &Span,
    rest: &mut Rest,
    out: &mut Vec<TokenWithSpan>,
) -> Result<Closing, SyntaxError> {
    let word = rest.next().map(|token| token.token);
    let word = match word {
        Some(Token::Word(word)) => word.value.to_ascii_lowercase(),
        _ => {
            let error = unsupported("a return status in an ODBC call escape");
            return Err(SyntaxError { error, line: line_of(span.start) });
        }
    };
    let mut push = |token: Token| out.push(TokenWithSpan::new(token, *span));
    match word.as_str() {
        "fn" | "oj" => Ok(Closing::Nothing),
        "call" => {
            push(Token::make_keyword("EXEC"));
            Ok(Closing::Call)
        }
        "d" | "t" | "ts" | "guid" => {
            push(Token::make_keyword("CAST"));
            push(Token::LParen);
            Ok(Closing::Cast(if word == "guid" { "uniqueidentifier" } else { "datetime" }))
        }
        _ => Err(near("{", span.start)),
    }
}

fn push_cast_end(out: &mut Vec<TokenWithSpan>, data_type: &str, span: Span) {
    for token in [Token::make_keyword("AS"), Token::make_word(data_type, None), Token::RParen] {
        out.push(TokenWithSpan::new(token, span));
    }
}

/// True for the outer parentheses of a call's arguments.
fn call_parenthesis(
    open: &[Closing],
    token: &TokenWithSpan,
    out: &[TokenWithSpan],
    rest: &mut Rest,
) -> bool {
    if !matches!(open.last(), Some(Closing::Call)) {
        return false;
    }
    match token.token {
        // Straight behind the procedure's name.
        Token::LParen => {
            let names = out.iter().rev().take_while(|token| {
                matches!(&token.token, Token::Period)
                    || matches!(&token.token, Token::Word(word) if !is_exec(word))
            });
            let count = names.count();
            out.iter()
                .rev()
                .nth(count)
                .is_some_and(|token| matches!(&token.token, Token::Word(word) if is_exec(word)))
        }
        _ => rest.peek().is_some_and(|next| next.token == Token::RBrace),
    }
}

fn is_exec(word: &Word) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case("EXEC")
}

fn line_of(location: Location) -> u32 {
    u32::try_from(location.line).unwrap_or(1)
}

fn near(text: &str, location: Location) -> SyntaxError {
    SyntaxError {
        error: SqlError::new(102, format!("Incorrect syntax near '{text}'.")),
        line: line_of(location),
    }
}

/// The byte at which a place of a text begins.
pub(super) fn offset(text: &str, place: Location) -> usize {
    let line = usize::try_from(place.line.saturating_sub(1)).unwrap_or(0);
    let column = usize::try_from(place.column.saturating_sub(1)).unwrap_or(0);
    let mut start = 0;
    for _ in 0..line {
        let rest = text.get(start..).unwrap_or_default();
        start += rest.find('\n').map_or(rest.len(), |at| at + 1);
    }
    let rest = text.get(start..).unwrap_or_default();
    start + rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at)
}
