//! How long chains are. Operators of one chain stand side by side and cost memory alone; queries
//! of one UNION and joins hold the ones before them, so what walks them needs a stack as deep.

use cdc_fake::SqlError;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::{SyntaxError, extent};

/// Operators of one chain: the server's own limit of what an expression may hold.
const MAX_OPERATORS: usize = 65_535;
/// Queries of one UNION, or joins. A walk over so many takes 4 MiB of stack without optimisation,
/// a quarter of what a session has.
const MAX_SETS: usize = 400;
/// Parentheses within parentheses that are looked at; the parser refuses deeper ones.
const MAX_OPEN: usize = 1000;

/// The chains that are open between two parentheses.
#[derive(Clone, Copy, Default)]
struct Level {
    operators: usize,
    sets: usize,
}

/// Refuses a batch with a chain that is too long.
///
/// # Errors
/// 8632 for operators, 191 for queries and joins, with the line.
pub(super) fn check(tokens: &[TokenWithSpan]) -> Result<(), SyntaxError> {
    let mut levels = vec![Level::default()];
    let mut before = String::new();
    for token in tokens {
        match &token.token {
            Token::LParen if levels.len() < MAX_OPEN => levels.push(Level::default()),
            Token::RParen if levels.len() > 1 => {
                levels.pop();
            }
            _ => {}
        }
        let word = extent::word(&token.token);
        let Some(level) = levels.last_mut() else {
            continue;
        };
        count(level, &token.token, word.as_deref(), &before);
        if let Some(error) = excess(level) {
            let line = u32::try_from(token.span.start.line).unwrap_or(1);
            return Err(SyntaxError { error, line });
        }
        before = word.unwrap_or_default();
    }
    Ok(())
}

fn excess(level: &Level) -> Option<SqlError> {
    if level.operators > MAX_OPERATORS {
        return Some(SqlError::new(
            8632,
            "Internal error: An expression services limit has been reached. Please look for \
             potentially complex expressions in your query, and try to simplify them.",
        ));
    }
    (level.sets > MAX_SETS).then(|| {
        SqlError::new(
            191,
            "Some part of your SQL statement is nested too deeply. Rewrite the query or break it \
             up into smaller queries.",
        )
    })
}

fn count(level: &mut Level, token: &Token, word: Option<&str>, before: &str) {
    match token {
        Token::Comma => level.operators = 0,
        Token::SemiColon => *level = Level::default(),
        Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::Mod
        | Token::Pipe
        | Token::Ampersand
        | Token::Caret => level.operators += 1,
        _ => {}
    }
    match word {
        Some("AND" | "OR" | "NOT" | "COLLATE") => level.operators += 1,
        Some("UNION" | "EXCEPT" | "INTERSECT" | "JOIN" | "APPLY") => level.sets += 1,
        Some("SELECT") if !matches!(before, "UNION" | "ALL" | "EXCEPT" | "INTERSECT") => {
            *level = Level::default();
        }
        Some("WHERE" | "FROM" | "ON" | "HAVING" | "BY" | "VALUES") => level.operators = 0,
        Some(word) if extent::begins_statement(word) && word != "SELECT" && word != "END" => {
            *level = Level::default();
        }
        _ => {}
    }
}
