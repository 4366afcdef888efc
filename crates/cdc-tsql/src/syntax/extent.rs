//! Where a statement ends. Between statements there need be no semicolon: the next one begins with
//! a word that is reserved and cannot stand there otherwise.

use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Reserved words that begin a statement or end a block.
const STARTS: [&str; 46] = [
    "ALTER",
    "BACKUP",
    "BEGIN",
    "BREAK",
    "BULK",
    "CHECKPOINT",
    "CLOSE",
    "COMMIT",
    "CONTINUE",
    "CREATE",
    "DBCC",
    "DEALLOCATE",
    "DECLARE",
    "DELETE",
    "DENY",
    "DROP",
    "ELSE",
    "END",
    "EXEC",
    "EXECUTE",
    "FETCH",
    "GOTO",
    "GRANT",
    "IF",
    "INSERT",
    "KILL",
    "MERGE",
    "OPEN",
    "PRINT",
    "RAISERROR",
    "READTEXT",
    "RECONFIGURE",
    "RESTORE",
    "RETURN",
    "REVERT",
    "REVOKE",
    "ROLLBACK",
    "SAVE",
    "SELECT",
    "SET",
    "SHUTDOWN",
    "TRUNCATE",
    "UPDATE",
    "USE",
    "WAITFOR",
    "WHILE",
];

/// The word of an unquoted token in upper case.
pub(super) fn word(token: &Token) -> Option<String> {
    match token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.value.to_ascii_uppercase()),
        _ => None,
    }
}

/// True for a word that begins a statement.
pub(super) fn begins_statement(word: &str) -> bool {
    STARTS.binary_search(&word).is_ok()
}

/// What may still stand in a statement although it begins one.
#[derive(Default)]
struct Allowed {
    /// A verb behind the common table expressions.
    verb: bool,
    /// SELECT or EXEC, as the source of an INSERT.
    source: bool,
    /// The SET of an UPDATE.
    set: bool,
    /// The FETCH behind an OFFSET.
    fetch: bool,
}

/// The end of the statement that begins at `start`: the index behind its last token.
pub(super) fn end(tokens: &[TokenWithSpan], start: usize) -> usize {
    let first = tokens.get(start).and_then(|token| word(&token.token)).unwrap_or_default();
    let mut allowed = Allowed::default();
    allow(&first, &mut allowed);
    let mut merge = first == "MERGE";
    let mut nesting = Nesting::default();
    for (at, token) in tokens.iter().enumerate().skip(start) {
        if nesting.closes(&token.token) {
            return at;
        }
        if token.token == Token::SemiColon && nesting.depth == 0 {
            return at;
        }
        let Some(word) = word(&token.token).filter(|_| nesting.depth == 0) else {
            continue;
        };
        if nesting.in_case(&word) || at == start {
            continue;
        }
        match word.as_str() {
            "OFFSET" => allowed.fetch = true,
            "FETCH" if allowed.fetch => allowed.fetch = false,
            "VALUES" | "DEFAULT" => allowed.source = false,
            // A MERGE ends with a semicolon, and names its actions by their verbs.
            "INSERT" | "UPDATE" | "DELETE" | "SET" if merge => {}
            "SELECT" if allowed.verb || allowed.source || joins_sets(tokens, at) => {
                allowed.verb = false;
                allowed.source = false;
            }
            "EXEC" | "EXECUTE" if allowed.source => return end(tokens, at),
            "INSERT" | "UPDATE" | "DELETE" | "MERGE" if allowed.verb => {
                allow(&word, &mut allowed);
                allowed.verb = false;
                merge = word == "MERGE";
            }
            "SET" if allowed.set => allowed.set = false,
            other if begins_statement(other) => return at,
            _ => {}
        }
    }
    tokens.len()
}

/// The end of an expression or a type that begins at `start`: no comma stands in it outside
/// parentheses.
pub(super) fn end_of_part(tokens: &[TokenWithSpan], start: usize) -> usize {
    let mut nesting = Nesting::default();
    for (at, token) in tokens.iter().enumerate().skip(start) {
        let ends = nesting.closes(&token.token)
            || (nesting.depth == 0 && matches!(token.token, Token::SemiColon | Token::Comma));
        if ends {
            return at;
        }
        let Some(word) = word(&token.token).filter(|_| nesting.depth == 0) else {
            continue;
        };
        if !nesting.in_case(&word) && at > start && begins_statement(&word) {
            return at;
        }
    }
    tokens.len()
}

/// Parentheses and CASE expressions that are open.
#[derive(Default)]
struct Nesting {
    depth: usize,
    cases: usize,
}

impl Nesting {
    /// Counts a parenthesis. True for one that was opened before the statement began.
    const fn closes(&mut self, token: &Token) -> bool {
        match token {
            Token::LParen => self.depth += 1,
            Token::RParen if self.depth == 0 => return true,
            Token::RParen => self.depth -= 1,
            _ => {}
        }
        false
    }

    /// Counts a CASE. True for words that belong to one.
    fn in_case(&mut self, word: &str) -> bool {
        match word {
            "CASE" => self.cases += 1,
            "END" if self.cases > 0 => self.cases -= 1,
            _ => return self.cases > 0,
        }
        true
    }
}

fn allow(verb: &str, allowed: &mut Allowed) {
    match verb {
        "WITH" => allowed.verb = true,
        "INSERT" => allowed.source = true,
        "UPDATE" => allowed.set = true,
        _ => {}
    }
}

/// True for a SELECT behind UNION, UNION ALL, EXCEPT or INTERSECT.
fn joins_sets(tokens: &[TokenWithSpan], at: usize) -> bool {
    let before = |back: usize| {
        let token = at.checked_sub(back).and_then(|at| tokens.get(at));
        token.and_then(|token| word(&token.token)).unwrap_or_default()
    };
    match before(1).as_str() {
        "UNION" | "EXCEPT" | "INTERSECT" => true,
        "ALL" => before(2) == "UNION",
        _ => false,
    }
}
