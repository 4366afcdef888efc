//! Half-open ranges of keys as disjoint pieces that an index can seek: equalities on leading
//! columns, then a range of one column.
//!
//! NULL sorts first, as in every index. Texts that a collation holds for equal are one key: pieces
//! that could both hold such a key check the other bound too, so a row is in one piece at most.

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType,
    },
};
use arrow_schema::DataType;
use cdc_core::{Error, ErrorKind, Result, ServerTime, SqlType, port::KeyRange};

use super::{Parameters, reading_text};
use crate::{driver::Parameter, name::Identifier};

/// A column of a key.
#[derive(Clone, Debug)]
pub(crate) struct KeyColumn {
    pub(crate) name: Identifier,
    /// As the catalogue spells it, to find it in a bound.
    pub(crate) plain: String,
    pub(crate) sql_type: SqlType,
    pub(crate) nullable: bool,
    /// Of a text of a code page, in whose code page a bound has to be written.
    pub(crate) collation: Option<String>,
}

/// A range as the predicates of its pieces, over the alias `t`. An empty predicate holds always;
/// without pieces the range is empty.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) predicates: Vec<String>,
    pub(crate) parameters: Parameters,
}

/// A value of a bound: the expression of a parameter, or NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Null,
    Given(String),
}

/// A condition on one column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Condition {
    Always,
    Never,
    Holds(String),
}

/// Cuts a range into pieces.
///
/// # Errors
/// `Config` for a bound that does not have the key's columns in their types.
pub(crate) fn pieces(key: &[KeyColumn], range: &KeyRange) -> Result<Pieces> {
    let mut parameters = Parameters::default();
    let mut bound = |tuple: &Option<cdc_core::port::KeyTuple>| {
        let values = tuple.as_ref().map(|tuple| {
            key.iter().map(|column| value(&mut parameters, column, &tuple.0)).collect()
        });
        values.transpose()
    };
    let (from, to): (Option<Vec<Value>>, Option<Vec<Value>>) =
        (bound(&range.from)?, bound(&range.to)?);
    let mut cut = Cut { key, pieces: Vec::new() };
    match (&from, &to) {
        (None, None) => cut.add(&[]),
        (Some(from), None) => cut.behind(Vec::new(), 0, from),
        (None, Some(to)) => cut.ahead(Vec::new(), 0, to),
        (Some(from), Some(to)) => cut.between(Vec::new(), 0, from, to),
    }
    Ok(Pieces { predicates: cut.pieces, parameters })
}

struct Cut<'a> {
    key: &'a [KeyColumn],
    pieces: Vec<String>,
}

impl Cut<'_> {
    /// A piece in which all these conditions hold.
    fn add(&mut self, conditions: &[Condition]) {
        let mut held = Vec::new();
        for condition in conditions {
            match condition {
                Condition::Always => {}
                Condition::Never => return,
                Condition::Holds(text) => held.push(text.as_str()),
            }
        }
        self.pieces.push(held.join(" AND "));
    }

    fn is_last(&self, at: usize) -> bool {
        at + 1 >= self.key.len()
    }

    /// Keys at or behind a bound, from column `at` on.
    fn behind(&mut self, prefix: Vec<Condition>, at: usize, from: &[Value]) {
        let (Some(column), Some(value)) = (self.key.get(at), from.get(at)) else {
            return self.add(&prefix);
        };
        if self.is_last(at) {
            return self.add(&with(&prefix, [at_least(column, value)]));
        }
        self.add(&with(&prefix, [above(column, value)]));
        self.behind(with(&prefix, [equal(column, value)]), at + 1, from);
    }

    /// Keys before a bound, from column `at` on.
    fn ahead(&mut self, prefix: Vec<Condition>, at: usize, to: &[Value]) {
        let (Some(column), Some(value)) = (self.key.get(at), to.get(at)) else { return };
        self.add(&with(&prefix, [below(column, value)]));
        if !self.is_last(at) {
            self.ahead(with(&prefix, [equal(column, value)]), at + 1, to);
        }
    }

    fn between(&mut self, prefix: Vec<Condition>, at: usize, from: &[Value], to: &[Value]) {
        let (Some(column), Some(least), Some(most)) = (self.key.get(at), from.get(at), to.get(at))
        else {
            // Both bounds are one key: nothing lies between.
            return;
        };
        if least == most {
            return self.between(with(&prefix, [equal(column, least)]), at + 1, from, to);
        }
        if self.is_last(at) {
            return self.add(&with(&prefix, [at_least(column, least), below(column, most)]));
        }
        let head = with(&prefix, [equal(column, least), self.tuple_below(at, to)]);
        self.behind(head, at + 1, from);
        self.add(&with(&prefix, [above(column, least), below(column, most)]));
        let tail = with(&prefix, [equal(column, most), above(column, least)]);
        self.ahead(tail, at + 1, to);
    }

    /// The columns from `at` on, taken together, are before the bound.
    fn tuple_below(&self, at: usize, to: &[Value]) -> Condition {
        let (Some(column), Some(value)) = (self.key.get(at), to.get(at)) else {
            return Condition::Never;
        };
        let here = below(column, value);
        match both(equal(column, value), self.tuple_below(at + 1, to)) {
            Condition::Never => here,
            deeper => either(here, deeper),
        }
    }
}

fn with<const N: usize>(prefix: &[Condition], more: [Condition; N]) -> Vec<Condition> {
    prefix.iter().cloned().chain(more).collect()
}

fn both(one: Condition, other: Condition) -> Condition {
    match (one, other) {
        (Condition::Never, _) | (_, Condition::Never) => Condition::Never,
        (Condition::Always, other) => other,
        (one, Condition::Always) => one,
        (Condition::Holds(one), Condition::Holds(other)) => {
            Condition::Holds(format!("({one} AND {other})"))
        }
    }
}

fn either(one: Condition, other: Condition) -> Condition {
    match (one, other) {
        (Condition::Always, _) | (_, Condition::Always) => Condition::Always,
        (Condition::Never, other) => other,
        (one, Condition::Never) => one,
        (Condition::Holds(one), Condition::Holds(other)) => {
            Condition::Holds(format!("({one} OR {other})"))
        }
    }
}

fn equal(column: &KeyColumn, value: &Value) -> Condition {
    Condition::Holds(match value {
        Value::Null => format!("t.{} IS NULL", column.name),
        Value::Given(value) => format!("t.{} = {value}", column.name),
    })
}

fn above(column: &KeyColumn, value: &Value) -> Condition {
    match value {
        Value::Null if !column.nullable => Condition::Always,
        Value::Null => Condition::Holds(format!("t.{} IS NOT NULL", column.name)),
        Value::Given(value) => Condition::Holds(format!("t.{} > {value}", column.name)),
    }
}

fn at_least(column: &KeyColumn, value: &Value) -> Condition {
    match value {
        Value::Null => Condition::Always,
        Value::Given(value) => Condition::Holds(format!("t.{} >= {value}", column.name)),
    }
}

fn below(column: &KeyColumn, value: &Value) -> Condition {
    let name = &column.name;
    match value {
        Value::Null => Condition::Never,
        Value::Given(value) if column.nullable => {
            Condition::Holds(format!("(t.{name} < {value} OR t.{name} IS NULL)"))
        }
        Value::Given(value) => Condition::Holds(format!("t.{name} < {value}")),
    }
}

/// The value of a bound, in the column's own type: then the column is not converted and its index
/// is used.
fn value(parameters: &mut Parameters, column: &KeyColumn, bound: &RecordBatch) -> Result<Value> {
    let wrong = || {
        Error::new(ErrorKind::Config, "key bound is not of the key column's type")
            .with("column", &column.plain)
            .with("type", &column.sql_type)
    };
    let array = bound
        .schema_ref()
        .fields()
        .iter()
        .position(|field| field.name().eq_ignore_ascii_case(&column.plain))
        .and_then(|at| bound.columns().get(at))
        .ok_or_else(wrong)?;
    if bound.num_rows() != 1 || *array.data_type() != column.sql_type.arrow()? {
        return Err(wrong());
    }
    if array.is_null(0) {
        return Ok(Value::Null);
    }
    let given = parameter(array, &column.sql_type).ok_or_else(wrong)?;
    let marker = parameters.add(given);
    Ok(Value::Given(typed(&marker, column)))
}

/// A marker in the type of a column.
fn typed(marker: &str, column: &KeyColumn) -> String {
    match &column.sql_type {
        SqlType::Date => format!("CONVERT(date, {marker}, 23)"),
        kind @ (SqlType::DateTime | SqlType::SmallDateTime | SqlType::DateTime2 { .. }) => {
            format!("CONVERT({kind}, {marker}, 126)")
        }
        kind @ (SqlType::Char(_) | SqlType::VarChar(_)) => match &column.collation {
            Some(name) => format!("CAST({marker} COLLATE {name} AS {kind})"),
            None => format!("CAST({marker} AS {kind})"),
        },
        SqlType::RowVersion => format!("CAST({marker} AS binary(8))"),
        kind => format!("CAST({marker} AS {kind})"),
    }
}

fn parameter(array: &ArrayRef, sql_type: &SqlType) -> Option<Parameter> {
    Some(match array.data_type() {
        DataType::Boolean => Parameter::Bit(array.as_boolean_opt()?.value(0)),
        DataType::Int16 => Parameter::Int(array.as_primitive_opt::<Int16Type>()?.value(0).into()),
        DataType::Int32 => Parameter::Int(array.as_primitive_opt::<Int32Type>()?.value(0).into()),
        DataType::Int64 => Parameter::Int(array.as_primitive_opt::<Int64Type>()?.value(0)),
        DataType::Float32 => Parameter::Real(array.as_primitive_opt::<Float32Type>()?.value(0)),
        DataType::Float64 => Parameter::Float(array.as_primitive_opt::<Float64Type>()?.value(0)),
        DataType::Decimal128(_, scale) => {
            let digits = array.as_primitive_opt::<Decimal128Type>()?.value(0);
            Parameter::Decimal(digits, u8::try_from(*scale).ok()?)
        }
        DataType::Date32 => {
            let days = array.as_primitive_opt::<Date32Type>()?.value(0);
            let micros = i64::from(days).checked_mul(86_400_000_000)?;
            let day = chrono::DateTime::from_timestamp_micros(micros)?;
            Parameter::Text(day.format("%Y-%m-%d").to_string())
        }
        DataType::Timestamp(..) => {
            let micros = array.as_primitive_opt::<TimestampMicrosecondType>()?.value(0);
            let moment = chrono::DateTime::from_timestamp_micros(micros)?;
            Parameter::Text(match sql_type {
                // Microseconds were cut from the tick: the nearest tick is the one meant.
                SqlType::DateTime => reading_text(ServerTime::nearest(moment.naive_utc())),
                SqlType::SmallDateTime => moment.format("%Y-%m-%dT%H:%M:%S").to_string(),
                SqlType::DateTimeOffset { .. } => {
                    moment.format("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
                }
                _ => moment.format("%Y-%m-%dT%H:%M:%S%.6f").to_string(),
            })
        }
        DataType::Utf8 => Parameter::Text(array.as_string_opt::<i32>()?.value(0).to_owned()),
        DataType::Binary => Parameter::Bytes(array.as_binary_opt::<i32>()?.value(0).to_vec()),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
