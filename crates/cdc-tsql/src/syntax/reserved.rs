//! The errors of what stands where it does not belong. A word that T-SQL reserves is a keyword to
//! the server's messages.

use cdc_fake::SqlError;
use sqlparser::tokenizer::Token;

use super::extent;

/// In order, for a search.
const RESERVED: [&str; 177] = [
    "ADD",
    "ALL",
    "ALTER",
    "AND",
    "ANY",
    "AS",
    "ASC",
    "AUTHORIZATION",
    "BACKUP",
    "BEGIN",
    "BETWEEN",
    "BREAK",
    "BROWSE",
    "BULK",
    "BY",
    "CASCADE",
    "CASE",
    "CHECK",
    "CHECKPOINT",
    "CLOSE",
    "CLUSTERED",
    "COALESCE",
    "COLLATE",
    "COLUMN",
    "COMMIT",
    "COMPUTE",
    "CONSTRAINT",
    "CONTAINS",
    "CONTAINSTABLE",
    "CONTINUE",
    "CONVERT",
    "CREATE",
    "CROSS",
    "CURRENT",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "CURRENT_USER",
    "CURSOR",
    "DATABASE",
    "DBCC",
    "DEALLOCATE",
    "DECLARE",
    "DEFAULT",
    "DELETE",
    "DENY",
    "DESC",
    "DISTINCT",
    "DISTRIBUTED",
    "DOUBLE",
    "DROP",
    "ELSE",
    "END",
    "ERRLVL",
    "ESCAPE",
    "EXCEPT",
    "EXEC",
    "EXECUTE",
    "EXISTS",
    "EXIT",
    "EXTERNAL",
    "FETCH",
    "FILE",
    "FILLFACTOR",
    "FOR",
    "FOREIGN",
    "FREETEXT",
    "FREETEXTTABLE",
    "FROM",
    "FULL",
    "FUNCTION",
    "GOTO",
    "GRANT",
    "GROUP",
    "HAVING",
    "HOLDLOCK",
    "IDENTITY",
    "IDENTITYCOL",
    "IDENTITY_INSERT",
    "IF",
    "IN",
    "INDEX",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTO",
    "IS",
    "JOIN",
    "KEY",
    "KILL",
    "LEFT",
    "LIKE",
    "LINENO",
    "MERGE",
    "NATIONAL",
    "NOCHECK",
    "NONCLUSTERED",
    "NOT",
    "NULL",
    "NULLIF",
    "OF",
    "OFF",
    "OFFSETS",
    "ON",
    "OPEN",
    "OPENDATASOURCE",
    "OPENQUERY",
    "OPENROWSET",
    "OPENXML",
    "OPTION",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PERCENT",
    "PIVOT",
    "PLAN",
    "PRIMARY",
    "PRINT",
    "PROC",
    "PROCEDURE",
    "PUBLIC",
    "RAISERROR",
    "READ",
    "READTEXT",
    "RECONFIGURE",
    "REFERENCES",
    "REPLICATION",
    "RESTORE",
    "RESTRICT",
    "RETURN",
    "REVERT",
    "REVOKE",
    "RIGHT",
    "ROLLBACK",
    "ROWCOUNT",
    "ROWGUIDCOL",
    "RULE",
    "SAVE",
    "SCHEMA",
    "SELECT",
    "SESSION_USER",
    "SET",
    "SETUSER",
    "SHUTDOWN",
    "SOME",
    "STATISTICS",
    "SYSTEM_USER",
    "TABLE",
    "TABLESAMPLE",
    "TEXTSIZE",
    "THEN",
    "TO",
    "TOP",
    "TRAN",
    "TRANSACTION",
    "TRIGGER",
    "TRUNCATE",
    "TRY_CONVERT",
    "TSEQUAL",
    "UNION",
    "UNIQUE",
    "UNPIVOT",
    "UPDATE",
    "UPDATETEXT",
    "USE",
    "USER",
    "VALUES",
    "VARYING",
    "VIEW",
    "WAITFOR",
    "WHEN",
    "WHERE",
    "WHILE",
    "WITH",
    "WITHIN",
    "WRITETEXT",
];

/// True for a reserved word, in capitals.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.binary_search(&word).is_ok()
}

/// The error of a token that does not belong where it stands.
pub(super) fn misplaced(token: &Token) -> SqlError {
    match extent::word(token) {
        Some(word) if word == "WITH" => unterminated(),
        Some(word) if is_reserved(&word) => {
            SqlError::new(156, format!("Incorrect syntax near the keyword '{word}'."))
        }
        _ => SqlError::new(102, format!("Incorrect syntax near '{}'.", shown(token))),
    }
}

/// The error of a common table expression where the server reads the hints of a table.
pub(super) fn mistaken_for_hint(name: &Token) -> SqlError {
    SqlError::new(
        336,
        format!(
            "Incorrect syntax near '{}'. If this is intended to be a common table expression, you \
             need to explicitly terminate the previous statement with a semi-colon.",
            shown(name)
        ),
    )
}

/// The error of a text that ends too early, behind its last token.
pub(super) fn ended_behind(last: Option<&Token>) -> SqlError {
    let last = last.map(shown).unwrap_or_default();
    SqlError::new(102, format!("Incorrect syntax near '{last}'."))
}

/// The error of a WITH that begins no statement.
fn unterminated() -> SqlError {
    SqlError::new(
        319,
        "Incorrect syntax near the keyword 'with'. If this statement is a common table expression, \
         an xmlnamespaces clause or a change tracking context clause, the previous statement must \
         be terminated with a semicolon.",
    )
}

/// A token in a message. A constant is not shown: it may be a cell's value.
fn shown(token: &Token) -> String {
    match token {
        Token::Word(word) => word.value.clone(),
        Token::Number(..) => "a number".into(),
        Token::SingleQuotedString(_)
        | Token::NationalStringLiteral(_)
        | Token::HexStringLiteral(_) => "a constant".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_in_order() {
        assert!(RESERVED.is_sorted());
        assert!(is_reserved("WITH") && is_reserved("ADD") && is_reserved("WRITETEXT"));
        assert!(!is_reserved("OFFSET") && !is_reserved("NAME"));
    }
}
