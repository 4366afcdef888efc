//! Aggregates: counts, sums, extremes, deviations and texts one behind the other.

use std::{cmp::Ordering, collections::BTreeSet};

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    Aggregate, DEFAULT_COLLATION, Facts, Operator,
    conversion::{assign, in_range, text_of},
    error,
    exact::{MAX_PRECISION, compute, digits_of, fits},
    order::{append_order_key, compare},
    precedence::{Family, MAX_BYTES, MAX_UNITS, family, is_national, length},
};
use crate::{
    kind::Kind,
    relation::{Moment, Settings},
};

/// An aggregate over arguments of these kinds; none when there is no such aggregate. `COUNT(*)`
/// has no kinds. `STRING_AGG` takes the text and the separator of each row.
///
/// # Errors
/// 8117 for a type that it does not take, 174 for the number of arguments, 50000 for one that this
/// server does not evaluate.
pub(crate) fn aggregate(
    name: &str,
    kinds: &[Kind],
    distinct: bool,
) -> Option<SqlResult<Box<dyn Aggregate>>> {
    let upper = name.to_ascii_uppercase();
    let made = match upper.as_str() {
        "COUNT" | "COUNT_BIG" | "APPROX_COUNT_DISTINCT" => counter(&upper, kinds, distinct),
        "SUM" | "AVG" => sum(&upper, kinds, distinct),
        "MIN" | "MAX" => extreme(&upper, kinds),
        "STDEV" | "STDEVP" | "VAR" | "VARP" => deviation(&upper, kinds, distinct),
        "STRING_AGG" => texts(kinds, distinct),
        "CHECKSUM_AGG" | "GROUPING" | "GROUPING_ID" | "PERCENTILE_CONT" | "PERCENTILE_DISC" => {
            Err(error::not_supported(&format!("aggregate {upper}")))
        }
        _ => return None,
    };
    Some(made)
}

fn only<'a>(name: &str, kinds: &'a [Kind]) -> SqlResult<&'a Kind> {
    match kinds {
        [kind] => Ok(kind),
        _ => Err(error::argument_count(name, 1)),
    }
}

/// Refuses types that do not compare: large objects and CLR types.
fn comparable(name: &str, kind: &Kind) -> SqlResult<()> {
    if family(&kind.sql_type) == Family::Large {
        return Err(error::invalid_operand(&kind.sql_type, &name.to_lowercase()));
    }
    Ok(())
}

/// The values that were seen, of DISTINCT.
#[derive(Clone, Debug)]
struct Seen {
    kind: Kind,
    keys: BTreeSet<Vec<u8>>,
}

impl Seen {
    fn of(kind: &Kind) -> Self {
        Self { kind: kind.clone(), keys: BTreeSet::new() }
    }

    /// True for a value that comes for the first time.
    fn is_new(&mut self, value: &Value) -> bool {
        let mut key = Vec::new();
        append_order_key(&mut key, value, &self.kind, false);
        self.keys.insert(key)
    }
}

/// True when a row's value counts: not NULL, and not seen before.
fn counts(value: &Value, seen: &mut Option<Seen>) -> bool {
    !value.is_null() && seen.as_mut().is_none_or(|seen| seen.is_new(value))
}

fn first(values: &[Value]) -> &Value {
    values.first().unwrap_or(&Value::Null)
}

#[derive(Clone, Debug)]
struct Counter {
    big: bool,
    every_row: bool,
    seen: Option<Seen>,
    count: i64,
}

fn counter(name: &str, kinds: &[Kind], distinct: bool) -> SqlResult<Box<dyn Aggregate>> {
    let distinct = distinct || name == "APPROX_COUNT_DISTINCT";
    let seen = match (kinds, distinct) {
        ([], _) => None,
        (kinds, _) => {
            let kind = only(name, kinds)?;
            if distinct {
                comparable(name, kind)?;
            }
            distinct.then(|| Seen::of(kind))
        }
    };
    Ok(Box::new(Counter { big: name != "COUNT", every_row: kinds.is_empty(), seen, count: 0 }))
}

impl Aggregate for Counter {
    fn kind(&self) -> Kind {
        Kind::new(if self.big { SqlType::BigInt } else { SqlType::Int }, true)
    }

    fn add(&mut self, values: &[Value]) -> SqlResult<()> {
        if self.every_row || counts(first(values), &mut self.seen) {
            self.count = self.count.saturating_add(1);
        }
        Ok(())
    }

    fn finish(&self) -> SqlResult<Value> {
        let kind = self.kind().sql_type;
        let held = in_range(i128::from(self.count), &kind);
        held.map(Value::Int).ok_or_else(|| error::overflow(&kind))
    }

    fn fresh(&self) -> Box<dyn Aggregate> {
        let seen = self.seen.as_ref().map(|seen| Seen::of(&seen.kind));
        Box::new(Self { seen, count: 0, ..self.clone() })
    }
}

/// A sum, and an average as the sum by the count.
#[derive(Clone, Debug)]
struct Sum {
    average: bool,
    /// The argument's scale, for exact numbers.
    scale: u8,
    result: SqlType,
    seen: Option<Seen>,
    count: i64,
    exact: i128,
    approximate: f64,
}

fn sum(name: &str, kinds: &[Kind], distinct: bool) -> SqlResult<Box<dyn Aggregate>> {
    use SqlType as T;
    let kind = only(name, kinds)?;
    let average = name == "AVG";
    let result = match &kind.sql_type {
        T::TinyInt | T::SmallInt | T::Int => T::Int,
        T::BigInt => T::BigInt,
        T::Money | T::SmallMoney => T::Money,
        T::Real | T::Float => T::Float,
        T::Decimal { scale, .. } => {
            // An average keeps at least six digits behind the point.
            let scale = if average { (*scale).max(6) } else { *scale };
            T::Decimal { precision: MAX_PRECISION, scale }
        }
        other => return Err(error::invalid_operand(other, &name.to_lowercase())),
    };
    let scale = digits_of(&kind.sql_type).map_or(0, |(_, scale)| scale);
    let seen = distinct.then(|| Seen::of(kind));
    let sum = Sum { average, scale, result, seen, count: 0, exact: 0, approximate: 0.0 };
    Ok(Box::new(sum))
}

impl Sum {
    fn checked(&self, digits: i128) -> SqlResult<i128> {
        let held = match &self.result {
            SqlType::Int | SqlType::BigInt => in_range(digits, &self.result).is_some(),
            SqlType::Money => i64::try_from(digits).is_ok(),
            _ => fits(digits, MAX_PRECISION),
        };
        if held { Ok(digits) } else { Err(error::overflow(&self.result)) }
    }
}

impl Aggregate for Sum {
    fn kind(&self) -> Kind {
        Kind::new(self.result.clone(), true)
    }

    fn add(&mut self, values: &[Value]) -> SqlResult<()> {
        let value = first(values);
        if !counts(value, &mut self.seen) {
            return Ok(());
        }
        self.count = self.count.saturating_add(1);
        let exact = match value {
            Value::Int(number) => i128::from(*number),
            Value::Decimal(digits) => (*digits).into(),
            Value::Real(number) => {
                self.approximate += f64::from(*number);
                return Ok(());
            }
            Value::Float(number) => {
                self.approximate += number;
                return Ok(());
            }
            _ => return Err(error::invalid_operand(&self.result, "sum")),
        };
        let sum = self.exact.checked_add(exact).ok_or_else(|| error::overflow(&self.result))?;
        self.exact = self.checked(sum)?;
        Ok(())
    }

    fn finish(&self) -> SqlResult<Value> {
        if self.count == 0 {
            return Ok(Value::Null);
        }
        let count = i128::from(self.count);
        Ok(match &self.result {
            SqlType::Float => {
                #[allow(clippy::cast_precision_loss, reason = "fewer rows than 2^53")]
                let number = if self.average {
                    self.approximate / self.count as f64
                } else {
                    self.approximate
                };
                if !number.is_finite() {
                    return Err(error::overflow(&self.result));
                }
                Value::Float(number)
            }
            SqlType::Int | SqlType::BigInt => {
                let number = if self.average { self.exact / count } else { self.exact };
                Value::Int(
                    in_range(number, &self.result).ok_or_else(|| error::overflow(&self.result))?,
                )
            }
            SqlType::Decimal { precision, scale } if self.average => {
                let sum = (self.exact, self.scale);
                Value::decimal(compute(Operator::Divide, sum, (count, 0), (*precision, *scale))?)
            }
            _ if self.average => Value::decimal(self.exact / count),
            _ => Value::decimal(self.exact),
        })
    }

    fn fresh(&self) -> Box<dyn Aggregate> {
        let seen = self.seen.as_ref().map(|seen| Seen::of(&seen.kind));
        Box::new(Self { seen, count: 0, exact: 0, approximate: 0.0, ..self.clone() })
    }
}

#[derive(Clone, Debug)]
struct Extreme {
    wanted: Ordering,
    kind: Kind,
    found: Value,
}

fn extreme(name: &str, kinds: &[Kind]) -> SqlResult<Box<dyn Aggregate>> {
    let kind = only(name, kinds)?;
    comparable(name, kind)?;
    if kind.sql_type == SqlType::Bit {
        return Err(error::invalid_operand(&kind.sql_type, &name.to_lowercase()));
    }
    let wanted = if name == "MIN" { Ordering::Less } else { Ordering::Greater };
    let kind = Kind { nullable: true, ..kind.clone() };
    Ok(Box::new(Extreme { wanted, kind, found: Value::Null }))
}

impl Aggregate for Extreme {
    fn kind(&self) -> Kind {
        self.kind.clone()
    }

    fn add(&mut self, values: &[Value]) -> SqlResult<()> {
        let value = first(values);
        let better =
            compare(value, &self.found, &self.kind).is_none_or(|order| order == self.wanted);
        if !value.is_null() && better {
            self.found = value.clone();
        }
        Ok(())
    }

    fn finish(&self) -> SqlResult<Value> {
        Ok(self.found.clone())
    }

    fn fresh(&self) -> Box<dyn Aggregate> {
        Box::new(Self { found: Value::Null, ..self.clone() })
    }
}

/// Variance and standard deviation, by Welford's running means.
#[derive(Clone, Debug)]
struct Deviation {
    /// True for the root of it.
    root: bool,
    /// True when the rows are all there are, not a sample.
    population: bool,
    argument: Kind,
    seen: Option<Seen>,
    count: u32,
    mean: f64,
    squares: f64,
}

fn deviation(name: &str, kinds: &[Kind], distinct: bool) -> SqlResult<Box<dyn Aggregate>> {
    let kind = only(name, kinds)?;
    if family(&kind.sql_type) != Family::Number || kind.sql_type == SqlType::Bit {
        return Err(error::invalid_operand(&kind.sql_type, &name.to_lowercase()));
    }
    Ok(Box::new(Deviation {
        root: name.starts_with("STDEV"),
        population: name.ends_with('P'),
        argument: kind.clone(),
        seen: distinct.then(|| Seen::of(kind)),
        count: 0,
        mean: 0.0,
        squares: 0.0,
    }))
}

/// What conversions between numbers may look at: nothing.
fn no_facts() -> Facts {
    Facts {
        now: Moment { utc_ticks: 0, offset_minutes: 0 },
        settings: Settings::default(),
        collation: DEFAULT_COLLATION,
    }
}

impl Aggregate for Deviation {
    fn kind(&self) -> Kind {
        Kind::new(SqlType::Float, true)
    }

    fn add(&mut self, values: &[Value]) -> SqlResult<()> {
        let value = first(values);
        if !counts(value, &mut self.seen) {
            return Ok(());
        }
        let float = Kind::new(SqlType::Float, true);
        let Value::Float(number) = assign(value, &self.argument, &float, &no_facts())? else {
            return Ok(());
        };
        self.count = self.count.saturating_add(1);
        let off = number - self.mean;
        self.mean += off / f64::from(self.count);
        self.squares += off * (number - self.mean);
        Ok(())
    }

    fn finish(&self) -> SqlResult<Value> {
        let divisor = if self.population { self.count } else { self.count.saturating_sub(1) };
        if divisor == 0 {
            return Ok(Value::Null);
        }
        let variance = self.squares / f64::from(divisor);
        let found = if self.root { variance.sqrt() } else { variance };
        if found.is_finite() {
            Ok(Value::Float(found))
        } else {
            Err(error::overflow(&SqlType::Float))
        }
    }

    fn fresh(&self) -> Box<dyn Aggregate> {
        let seen = self.seen.as_ref().map(|seen| Seen::of(&seen.kind));
        Box::new(Self { seen, count: 0, mean: 0.0, squares: 0.0, ..self.clone() })
    }
}

/// Texts with a separator between them, in the order of the rows.
#[derive(Clone, Debug)]
struct Texts {
    argument: Kind,
    separator: Kind,
    result: SqlType,
    joined: Option<String>,
}

fn texts(kinds: &[Kind], distinct: bool) -> SqlResult<Box<dyn Aggregate>> {
    let [argument, separator] = kinds else {
        return Err(error::argument_count("string_agg", 2));
    };
    if distinct {
        return Err(SqlError::new(102, "Incorrect syntax near 'DISTINCT' in STRING_AGG."));
    }
    let result = match &argument.sql_type {
        SqlType::VarChar(Length::Max) => SqlType::VarChar(Length::Max),
        SqlType::NVarChar(Length::Max) => SqlType::NVarChar(Length::Max),
        SqlType::VarChar(_) | SqlType::Char(_) => SqlType::VarChar(Length::Limited(MAX_BYTES)),
        other if family(other) == Family::Large => {
            return Err(error::invalid_argument(other, 1, "string_agg"));
        }
        _ => SqlType::NVarChar(Length::Limited(MAX_UNITS)),
    };
    let (argument, separator) = (argument.clone(), separator.clone());
    Ok(Box::new(Texts { argument, separator, result, joined: None }))
}

/// A joined text is no longer than this; the server's own limit is 2 GiB.
const LONGEST_TEXT: usize = 64 * 1024 * 1024;

impl Aggregate for Texts {
    fn kind(&self) -> Kind {
        Kind::new(self.result.clone(), true).collated_as(&self.argument)
    }

    fn add(&mut self, values: &[Value]) -> SqlResult<()> {
        let (value, separator) = (first(values), values.get(1).unwrap_or(&Value::Null));
        if value.is_null() {
            return Ok(());
        }
        let facts = no_facts();
        let text = text_of(value, &self.argument, &facts)?;
        match &mut self.joined {
            None => self.joined = Some(text.into_owned()),
            Some(joined) => {
                if !separator.is_null() {
                    joined.push_str(&text_of(separator, &self.separator, &facts)?);
                }
                joined.push_str(&text);
            }
        }
        let joined = self.joined.as_deref().unwrap_or_default();
        let most = match length(&self.result) {
            Length::Limited(limit) => usize::from(limit),
            Length::Max => LONGEST_TEXT,
        };
        // Bytes are an upper bound of units, so that most rows need no count.
        let too_long = joined.len() > most
            && match is_national(&self.result) {
                true => joined.encode_utf16().count() > most,
                false => joined.chars().count() > most,
            };
        if too_long {
            return Err(SqlError::new(
                9829,
                "STRING_AGG aggregation result exceeded the limit of 8000 bytes. Use LOB types to \
                 avoid result truncation.",
            ));
        }
        Ok(())
    }

    fn finish(&self) -> SqlResult<Value> {
        Ok(self.joined.as_deref().map_or(Value::Null, Value::text))
    }

    fn fresh(&self) -> Box<dyn Aggregate> {
        Box::new(Self { joined: None, ..self.clone() })
    }
}

#[cfg(test)]
mod tests;
