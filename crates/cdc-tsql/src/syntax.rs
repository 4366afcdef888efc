//! Reading a batch into statements. `sqlparser` reads what it knows of the language: queries,
//! expressions, data types. Around it stands an own reader for the statements that it does not
//! know, and for where one statement ends and the next begins: T-SQL needs no semicolon between
//! them, and its reserved words tell.

mod alterations;
mod chain;
mod control;
mod definitions;
mod dialect;
mod execute;
mod extent;
mod merging;
mod options;
mod reader;
mod reserved;
mod rights;
mod rows;
mod tokens;
mod tree;

#[cfg(test)]
mod tests;

use cdc_fake::SqlError;
pub(crate) use dialect::steps as chain_steps;
pub(crate) use tree::*;

use crate::relation::Settings;

/// A text that cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// 102, 105, 156 and the like; 50000 for what is read but not supported.
    pub(crate) error: SqlError,
    /// The line in the text, from 1.
    pub(crate) line: u32,
}

/// Reads a batch.
///
/// # Errors
/// The first thing that cannot be read. Nothing of the batch may run then.
pub(crate) fn parse(text: &str, settings: &Settings) -> Result<Batch, SyntaxError> {
    let tokens = tokens::read(text, settings)?;
    chain::check(&tokens)?;
    reader::Reader::new(text, tokens).batch()
}

/// Reads the declarations of parameters as `sp_executesql` takes them: `@a int, @b varchar(10)
/// OUTPUT`.
///
/// # Errors
/// As for [`parse`].
pub(crate) fn parse_parameters(
    text: &str,
    settings: &Settings,
) -> Result<Vec<Parameter>, SyntaxError> {
    let tokens = tokens::read(text, settings)?;
    reader::Reader::new(text, tokens).parameters()
}

/// The refusal of what is read but not evaluated.
pub(crate) fn unsupported(construct: &str) -> SqlError {
    SqlError::new(50_000, format!("not supported by this server: {construct}"))
}
