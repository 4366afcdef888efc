//! `sys.fn_cdc_*`: positions in the log and masks of changed columns.

use cdc_core::ServerTime;

use super::{
    Length, Lsn, Names, SqlError, SqlResult, SqlType, Typed, Value, integer, lsn_of, lsn_value,
    may_read_changes, text,
};
use crate::{kind::Kind, model::view::described, relation::Catalogue as _, scalar};

pub(super) fn value(names: &Names<'_>, name: &str, arguments: &[Typed]) -> SqlResult<Value> {
    let lsn = || {
        let argument = arguments.first()?;
        binary(names, argument).as_ref().and_then(lsn_of)
    };
    Ok(match name {
        "fn_cdc_get_max_lsn" => names.high()?.map_or(Value::Null, lsn_value),
        "fn_cdc_get_min_lsn" => min_lsn(names, text(arguments, 0).as_deref()),
        "fn_cdc_increment_lsn" => lsn().map_or(Value::Null, |lsn| lsn_value(lsn.increment())),
        "fn_cdc_decrement_lsn" => lsn().map_or(Value::Null, |lsn| lsn_value(lsn.decrement())),
        "fn_cdc_map_lsn_to_time" => {
            let entry = lsn().and_then(|lsn| names.database.mapping_at(lsn));
            entry.map_or(Value::Null, |entry| Value::DateTime(entry.time))
        }
        "fn_cdc_map_time_to_lsn" => time_to_lsn(names, arguments)?,
        "fn_cdc_get_column_ordinal" => ordinal(names, arguments).map_or(Value::Null, Value::Int),
        "fn_cdc_has_column_changed" => {
            let mask = arguments.get(2).and_then(|argument| binary(names, argument));
            match (ordinal(names, arguments), mask) {
                (Some(ordinal), Some(mask)) => is_set(ordinal, &mask),
                _ => Value::Null,
            }
        }
        _ => {
            let mask = arguments.get(1).and_then(|argument| binary(names, argument));
            match (integer(arguments, 0), mask) {
                (Some(position), Some(mask)) => is_set(position, &mask),
                _ => Value::Null,
            }
        }
    })
}

/// An argument as a binary.
fn binary(names: &Names<'_>, argument: &Typed) -> Option<Value> {
    match &argument.value {
        Value::Null => None,
        Value::Bytes(_) => Some(argument.value.clone()),
        value => {
            let to = Kind::new(SqlType::VarBinary(Length::Limited(128)), true);
            scalar::convert(value, &argument.kind, &to, None, true, &facts(names)).ok()
        }
    }
}

fn facts(names: &Names<'_>) -> scalar::Facts {
    scalar::Facts {
        now: names.access.now,
        settings: names.access.settings,
        collation: names.collation(),
    }
}

/// The low watermark; zero for an instance that there is not, or that the login may not read, or
/// that capture has not got to.
fn min_lsn(names: &Names<'_>, instance: Option<&str>) -> Value {
    let Some(name) = instance else { return lsn_value(Lsn::ZERO) };
    let found = names.database.instance_info(name).filter(|info| may_read_changes(names, info));
    lsn_value(found.and_then(|info| info.low).unwrap_or(Lsn::ZERO))
}

fn time_to_lsn(names: &Names<'_>, arguments: &[Typed]) -> SqlResult<Value> {
    let operator = text(arguments, 0).unwrap_or_default().trim().to_ascii_lowercase();
    let Some(argument) = arguments.get(1) else { return Ok(Value::Null) };
    let to = Kind::new(SqlType::DateTime, true);
    let time = match &argument.value {
        Value::DateTime(time) => *time,
        Value::Null => return Ok(Value::Null),
        value => match scalar::convert(value, &argument.kind, &to, None, false, &facts(names))? {
            Value::DateTime(time) => time,
            _ => return Ok(Value::Null),
        },
    };
    let tick = |by: i64| ServerTime::from_ticks(time.as_ticks().saturating_add(by));
    let found = match operator.as_str() {
        "largest less than" => names.database.lsn_until(tick(-1)),
        "largest less than or equal" => names.database.lsn_until(time),
        "smallest greater than" => names.database.lsn_since(tick(1)),
        "smallest greater than or equal" => names.database.lsn_since(time),
        _ => {
            return Err(SqlError::new(
                22_870,
                "The relational operator must be one of 'largest less than', 'largest less than \
                 or equal', 'smallest greater than', 'smallest greater than or equal'.",
            ));
        }
    };
    Ok(found.map_or(Value::Null, lsn_value))
}

/// The place of a captured column from 1.
fn ordinal(names: &Names<'_>, arguments: &[Typed]) -> Option<i64> {
    let info = names.database.instance_info(&text(arguments, 0)?)?;
    let wanted = text(arguments, 1)?;
    let at = info.columns.iter().position(|column| names.database.same_name(&column.name, &wanted));
    i64::try_from(at? + 1).ok()
}

/// True when a mask has the bit of a column by its place from 1.
fn is_set(position: i64, mask: &Value) -> Value {
    let Value::Bytes(bytes) = mask else { return Value::Null };
    let Some(bit) = position.checked_sub(1).and_then(|bit| usize::try_from(bit).ok()) else {
        return Value::Null;
    };
    let byte = bytes.len().checked_sub(1 + bit / 8).and_then(|at| bytes.get(at));
    Value::Bit(byte.is_some_and(|byte| byte & (1 << (bit % 8)) != 0))
}

/// The columns of an object by its name, for functions that look at one.
pub(super) fn columns_of(
    names: &Names<'_>,
    object: &super::Object,
) -> Vec<super::super::view::Described> {
    described(names, object)
}
