//! Computing with values: SQL Server's operators, conversions and functions, without a catalogue.
//!
//! Everything here is a pure function of values, their static types ([`Kind`]) and the [`Facts`]
//! of the statement. A value is what a column of its kind stores; every function gives such a
//! value back. Messages name types and functions, never the value of a cell.
//!
//! A bare `NULL` has the kind `int` and is to be left out of [`common_kind`]'s list when another
//! operand has a type.

#![allow(dead_code, unused_variables, reason = "signatures first")]

mod arithmetic;
pub mod code_page;
pub(crate) mod collation;
mod conversion;
mod date_read;
mod date_text;
mod error;
mod exact;
mod literal;
mod moment;
mod number_text;
mod order;
mod pattern;
mod permission;
mod precedence;
#[cfg(test)]
mod tests_support;
mod zone;

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult, Value};

use crate::{
    kind::{Collation, Kind, Typed},
    relation::{Moment, Settings},
};

pub(crate) use arithmetic::{operate, unary};
pub(crate) use collation::{DEFAULT_COLLATION, named as collation};
pub(crate) use conversion::{assign, convert};
pub(crate) use literal::{integer_as_decimal, number_literal, text_literal};
pub(crate) use order::{append_order_key, compare, order_key};
pub(crate) use pattern::{like, like_of_kinds};
pub(crate) use permission::check_conversion;
pub(crate) use precedence::{common_kind, operator_kind, unary_kind};

/// What expressions may depend on besides their operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The moment that the statement takes for now.
    pub now: Moment,
    /// `SET` options.
    pub settings: Settings,
    /// The database's collation.
    pub collation: Collation,
}

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `+` of numbers, texts, binaries and moments.
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
}

/// An operator before a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Minus,
    Plus,
    BitNot,
}

/// What is known of a function's argument before it is evaluated.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArgumentKind {
    /// An expression of this kind.
    Value(Kind),
    /// A bare word: `year` of `DATEPART(year, ...)`, `BOTH` of `TRIM`.
    Word(String),
}

/// A function's argument.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ArgumentValue {
    /// A value with its kind.
    Value(Typed),
    /// A bare word.
    Word(String),
}

/// A running aggregate.
pub(crate) trait Aggregate: Send {
    /// The kind of its result.
    fn kind(&self) -> Kind;
    /// Takes a row's arguments. `COUNT(*)` takes none.
    fn add(&mut self, values: &[Value]) -> SqlResult<()>;
    /// The result over all rows so far.
    fn finish(&self) -> SqlResult<Value>;
    /// The same aggregate over no rows.
    fn fresh(&self) -> Box<dyn Aggregate>;
}

/// The kind of a function's result; none when there is no such function here. Names are
/// case-insensitive. `x AT TIME ZONE z` is the function `AT TIME ZONE` of two arguments.
///
/// # Errors
/// 174 and 189 for the number of arguments, 8116 for a type, 155 for a date part.
pub(crate) fn function_kind(name: &str, arguments: &[ArgumentKind]) -> Option<SqlResult<Kind>> {
    None
}

/// The value of a function, of the kind that [`function_kind`] says.
///
/// # Errors
/// What the function itself refuses, and conversions of its arguments.
pub(crate) fn function(name: &str, arguments: &[ArgumentValue], facts: &Facts) -> SqlResult<Value> {
    Err(unfinished())
}

/// False for functions whose value changes between calls (`GETDATE`, `NEWID`, `RAND`).
pub(crate) fn is_deterministic(name: &str) -> bool {
    true
}

/// An aggregate over arguments of these kinds; none when there is no such aggregate. `COUNT(*)`
/// has no kinds.
///
/// # Errors
/// 8117 for a type that it does not take, 174 for the number of arguments.
pub(crate) fn aggregate(
    name: &str,
    kinds: &[Kind],
    distinct: bool,
) -> Option<SqlResult<Box<dyn Aggregate>>> {
    None
}

/// A type as a declaration spells it: `varchar(20)`, `decimal(10,2)`.
pub(crate) fn result_name_of_type(sql_type: &SqlType) -> String {
    sql_type.to_string()
}

/// What `sys.types` and `sys.columns` say of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TypeFacts {
    /// The name without length: `varchar`.
    pub name: &'static str,
    /// `system_type_id`.
    pub system_type_id: u8,
    /// `user_type_id`.
    pub user_type_id: i32,
    /// `max_length` in bytes; -1 for `(max)` and `xml`.
    pub max_length: i16,
    /// `precision`.
    pub precision: u8,
    /// `scale`.
    pub scale: u8,
}

/// What `sys.types` and `sys.columns` say of a type; none for one that has no column form.
pub(crate) fn type_facts(sql_type: &SqlType) -> Option<TypeFacts> {
    None
}

fn unfinished() -> SqlError {
    SqlError::new(50_000, "not supported by this server")
}
