//! Functions that choose one of their arguments, and new identifiers.

use std::cmp::Ordering;

use cdc_core::SqlType;
use cdc_fake::{SqlResult, Value};

use super::{ANY_NUMBER, Call, Definition, Signature, define, mathematics::next_random};
use crate::{
    kind::Kind,
    scalar::{conversion::convert, order::compare, precedence::common_kind},
};

pub(super) const FUNCTIONS: &[Definition] = &[
    define("ISNULL", 2, 2, isnull_kind, isnull),
    define("COALESCE", 2, ANY_NUMBER, coalesce_kind, coalesce),
    define("NULLIF", 2, 2, nullif_kind, nullif),
    define("IIF", 3, 3, iif_kind, iif),
    define("CHOOSE", 2, ANY_NUMBER, choose_kind, choose),
    define("GREATEST", 1, 254, all_kind, |call| extreme(call, Ordering::Greater)),
    define("LEAST", 1, 254, all_kind, |call| extreme(call, Ordering::Less)),
    define("NEWID", 0, 0, |_| Ok(Kind::new(SqlType::UniqueIdentifier, false)), newid),
];

/// The kind of the first argument, which decides; NULL only when both are.
fn isnull_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let (first, second) = (signature.kind(0)?, signature.kind(1)?);
    Ok(Kind { nullable: first.nullable && second.nullable, ..first.clone() })
}

/// The value of an argument as a result of `to`.
fn taken(call: &Call<'_>, place: usize, to: &Kind) -> SqlResult<Value> {
    let typed = call.typed(place)?;
    if typed.value.is_null() {
        return Ok(Value::Null);
    }
    convert(&typed.value, &typed.kind, to, None, true, call.facts)
}

fn isnull(call: &Call<'_>) -> SqlResult<Value> {
    let first = call.typed(0)?;
    if first.value.is_null() { taken(call, 1, &first.kind) } else { Ok(first.value.clone()) }
}

fn coalesce_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let kinds = signature.kinds()?;
    let nullable = kinds.iter().all(|kind| kind.nullable);
    Ok(Kind { nullable, ..common_kind(&kinds)? })
}

fn coalesce(call: &Call<'_>) -> SqlResult<Value> {
    let kind = call.kind()?;
    for place in 0..call.arguments.len() {
        if !call.typed(place)?.value.is_null() {
            return taken(call, place, &kind);
        }
    }
    Ok(Value::Null)
}

fn nullif_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    common_kind(&signature.kinds()?)?;
    Ok(Kind { nullable: true, ..signature.kind(0)?.clone() })
}

fn nullif(call: &Call<'_>) -> SqlResult<Value> {
    let (first, second) = (call.typed(0)?, call.typed(1)?);
    let common = common_kind(&[first.kind.clone(), second.kind.clone()])?;
    let (a, b) = (taken(call, 0, &common)?, taken(call, 1, &common)?);
    let equal = compare(&a, &b, &common) == Some(Ordering::Equal);
    Ok(if equal { Value::Null } else { first.value.clone() })
}

fn iif_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    common_kind(&[signature.kind(1)?.clone(), signature.kind(2)?.clone()])
}

/// The second argument when the first, a `bit`, is set; the third otherwise.
fn iif(call: &Call<'_>) -> SqlResult<Value> {
    let met = call.typed(0)?.value == Value::Bit(true);
    taken(call, if met { 1 } else { 2 }, &call.kind()?)
}

fn choose_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    signature.takes(0..1, &SqlType::Int)?;
    let kinds = signature.kinds()?;
    let common = common_kind(kinds.get(1..).unwrap_or_default())?;
    Ok(Kind { nullable: true, ..common })
}

fn choose(call: &Call<'_>) -> SqlResult<Value> {
    let place = call.int(0)?.and_then(|place| usize::try_from(place).ok());
    match place {
        Some(place) if place >= 1 && place < call.arguments.len() => {
            taken(call, place, &call.kind()?)
        }
        _ => Ok(Value::Null),
    }
}

fn all_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let kinds = signature.kinds()?;
    let nullable = kinds.iter().all(|kind| kind.nullable);
    Ok(Kind { nullable, ..common_kind(&kinds)? })
}

/// The greatest or least argument that is not NULL.
fn extreme(call: &Call<'_>, wanted: Ordering) -> SqlResult<Value> {
    let kind = call.kind()?;
    let mut found = Value::Null;
    for place in 0..call.arguments.len() {
        let value = taken(call, place, &kind)?;
        let better = compare(&value, &found, &kind).is_none_or(|order| order == wanted);
        if !value.is_null() && better {
            found = value;
        }
    }
    Ok(found)
}

/// An identifier in the shape of a random one. It is new within the process; the sequence is the
/// same in every run, so that a run can be repeated.
fn newid(_: &Call<'_>) -> SqlResult<Value> {
    let number = (u128::from(next_random()) << 64) | u128::from(next_random());
    let version = 0x4_u128 << 76;
    let variant = 0x8_u128 << 60;
    let shaped = (number & !(0xF_u128 << 76) & !(0xC_u128 << 60)) | version | variant;
    Ok(Value::Uuid(shaped.to_be_bytes()))
}
