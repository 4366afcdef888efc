//! Computing with values: SQL Server's operators, conversions and functions, without a catalogue.
//!
//! Everything here is a pure function of values, their static types ([`Kind`]) and the [`Facts`]
//! of the statement. A value is what a column of its kind stores; every function gives such a
//! value back. Messages name types and functions, never the value of a cell.
//!
//! A bare `NULL` has the kind `int` and is to be left out of [`common_kind`]'s list when another
//! operand has a type.

mod aggregate;
mod arithmetic;
mod collation;
mod conversion;
mod culture;
mod date_read;
mod date_text;
mod error;
mod exact;
mod function;
mod literal;
mod moment;
mod number_text;
mod order;
mod pattern;
mod permission;
mod precedence;
#[cfg(test)]
mod tests_support;
mod type_facts;
mod zone;

use cdc_fake::{SqlResult, Value};

use crate::{
    kind::{Collation, Kind, Typed},
    relation::{Moment, Settings},
};

pub(crate) use aggregate::aggregate;
pub(crate) use arithmetic::{operate, unary};
pub(crate) use cdc_fake::{
    code_page,
    collation::{DEFAULT_COLLATION, named as collation},
};
pub(crate) use conversion::{assign, convert};
pub(crate) use culture::{check_parse, parse};
pub(crate) use function::{function, function_kind, is_deterministic};
pub(crate) use literal::{integer_as_decimal, number_literal, text_literal};
pub(crate) use order::{append_order_key, compare, order_key};
pub(crate) use pattern::{like, like_of_kinds};
pub(crate) use permission::check_conversion;
pub(crate) use precedence::{common_kind, operator_kind, unary_kind};
pub(crate) use type_facts::{TypeFacts, result_name_of_type, type_facts};

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

#[cfg(test)]
mod tests;
