//! Arguments of functions and procedures, as the plain things they stand for.

use cdc_fake::Value;

use crate::kind::Typed;

/// The text of an argument; none for NULL and for one that is missing.
pub(in crate::model) fn text(arguments: &[Typed], at: usize) -> Option<String> {
    match &arguments.get(at)?.value {
        Value::Text(text) => Some(text.trim_end().to_owned()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The number of an argument; none for NULL and for one that is no number.
pub(in crate::model) fn integer(arguments: &[Typed], at: usize) -> Option<i64> {
    match &arguments.get(at)?.value {
        Value::Int(number) => Some(*number),
        Value::Bit(bit) => Some(i64::from(*bit)),
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}
