//! Functions of lengths, single characters, hashes and numbers as text.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

use super::{Call, Definition, Signature, define, string::unit_count, text_kind};
use crate::{
    kind::Kind,
    scalar::{
        code_page,
        conversion::{Whole, byte_length, bytes_of, parsed_money, parsed_whole},
        error,
        number_text::parsed_float,
        precedence::{Family, family, is_national, length},
    },
};

pub(super) const FUNCTIONS: &[Definition] = &[
    define("LEN", 1, 1, length_kind, len),
    define("DATALENGTH", 1, 1, length_kind, datalength),
    define("ASCII", 1, 1, int, ascii),
    define("UNICODE", 1, 1, int, unicode),
    define("CHAR", 1, 1, |_| Ok(Kind::new(SqlType::Char(1), true)), char_of),
    define("NCHAR", 1, 1, |_| Ok(Kind::new(SqlType::NChar(1), true)), nchar),
    define("STR", 1, 3, str_kind, str_of),
    define("HASHBYTES", 2, 2, hash_kind, hashbytes),
    define("ISNUMERIC", 1, 1, |_| Ok(Kind::new(SqlType::Int, false)), isnumeric),
    define("FN_VARBINTOHEXSTR", 1, 1, hex_kind, hex),
];

fn int(signature: &Signature<'_>) -> SqlResult<Kind> {
    signature.takes(0..1, &SqlType::VarChar(Length::Max))?;
    Ok(signature.result(SqlType::Int))
}

/// `bigint` for a large object, `int` otherwise.
fn length_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let large = signature.kind(0)?.sql_type.is_large_object();
    Ok(signature.result(if large { SqlType::BigInt } else { SqlType::Int }))
}

/// Characters without the blanks at the end.
fn len(call: &Call<'_>) -> SqlResult<Value> {
    let typed = call.typed(0)?;
    let Some(text) = call.text(0)? else { return Ok(Value::Null) };
    let national = is_national(&typed.kind.sql_type);
    if let Value::Bytes(bytes) = &typed.value {
        let blanks = bytes.iter().rev().take_while(|byte| **byte == b' ').count();
        return Ok(whole(bytes.len() - blanks));
    }
    Ok(Value::Int(unit_count(text.trim_end_matches(' '), national)))
}

fn whole(number: usize) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Bytes that the value takes.
fn datalength(call: &Call<'_>) -> SqlResult<Value> {
    let typed = call.typed(0)?;
    let sql_type = &typed.kind.sql_type;
    Ok(match &typed.value {
        Value::Null => Value::Null,
        Value::Text(text) => whole(byte_length(text, sql_type, call.collation(0)?.code_page)),
        Value::Bytes(bytes) => whole(bytes.len()),
        _ => whole(stored_size(sql_type)),
    })
}

/// Bytes of a value of a type of fixed length.
pub(in crate::scalar) fn stored_size(sql_type: &SqlType) -> usize {
    use SqlType as T;
    let fraction = |scale: u8| match scale {
        0..=2 => 3,
        3 | 4 => 4,
        _ => 5,
    };
    match sql_type {
        T::Bit | T::TinyInt => 1,
        T::SmallInt => 2,
        T::Int | T::Real | T::SmallMoney | T::SmallDateTime => 4,
        T::BigInt | T::Float | T::Money | T::DateTime | T::RowVersion => 8,
        T::Decimal { precision, .. } => match precision {
            0..=9 => 5,
            10..=19 => 9,
            20..=28 => 13,
            _ => 17,
        },
        T::Date => 3,
        T::Time { scale } => fraction(*scale),
        T::DateTime2 { scale } => fraction(*scale) + 3,
        T::DateTimeOffset { scale } => fraction(*scale) + 5,
        T::UniqueIdentifier => 16,
        _ => 0,
    }
}

/// The first byte of a text in its code page.
fn ascii(call: &Call<'_>) -> SqlResult<Value> {
    let Some(text) = call.text(0)? else { return Ok(Value::Null) };
    let page = call.collation(0)?.code_page;
    let first: String = text.chars().take(1).collect();
    let byte = code_page::encode(&first, page).first().copied();
    Ok(byte.map_or(Value::Null, |byte| Value::Int(i64::from(byte))))
}

/// The first UTF-16 unit of a text.
fn unicode(call: &Call<'_>) -> SqlResult<Value> {
    let Some(text) = call.text(0)? else { return Ok(Value::Null) };
    Ok(text.encode_utf16().next().map_or(Value::Null, |unit| Value::Int(i64::from(unit))))
}

fn char_of(call: &Call<'_>) -> SqlResult<Value> {
    let code = call.int(0)?.and_then(|code| u8::try_from(code).ok());
    let page = call.facts.collation.code_page;
    Ok(code.map_or(Value::Null, |byte| Value::text(&code_page::decode(&[byte], page))))
}

/// NULL for half of a character of two units, which no text here holds.
fn nchar(call: &Call<'_>) -> SqlResult<Value> {
    let code = call.int(0)?.and_then(|code| u16::try_from(code).ok());
    let c = code.and_then(|code| char::from_u32(u32::from(code)));
    Ok(c.map_or(Value::Null, |c| Value::text(c.encode_utf8(&mut [0; 4]))))
}

fn str_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    signature.takes(0..1, &SqlType::Float)?;
    Ok(Kind::new(SqlType::VarChar(Length::Limited(8000)), true))
}

/// A number to the right of a field, with digits behind the point as far as there is room.
fn str_of(call: &Call<'_>) -> SqlResult<Value> {
    let width = if call.has(1) { call.int(1)? } else { Some(10) };
    let decimals = if call.has(2) { call.int(2)? } else { Some(0) };
    let (Some(number), Some(width), Some(decimals)) = (call.float(0)?, width, decimals) else {
        return Ok(Value::Null);
    };
    let (Ok(width), Ok(decimals)) = (usize::try_from(width), usize::try_from(decimals)) else {
        return Ok(Value::Null);
    };
    let width = width.min(8000);
    let shown = |decimals: usize| rounded_text(number, decimals);
    let whole = shown(0).len();
    if whole > width {
        return Ok(Value::text(&"*".repeat(width)));
    }
    // The point needs a place, too.
    let room = (width - whole).saturating_sub(1);
    let text = shown(decimals.min(16).min(room));
    Ok(Value::text(&format!("{text:>width$}")))
}

/// Half away from zero, which formatting alone does not do.
fn rounded_text(number: f64, decimals: usize) -> String {
    let power = 10_f64.powi(i32::try_from(decimals).unwrap_or_default());
    let scaled = number * power;
    let text = if scaled.abs() < 1e15 {
        format!("{:.decimals$}", scaled.round() / power)
    } else {
        format!("{number:.decimals$}")
    };
    // No -0.
    if text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.')) {
        return text.trim_start_matches('-').to_owned();
    }
    text
}

fn hash_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let hashed = signature.kind(1)?;
    if !matches!(family(&hashed.sql_type), Family::Text | Family::Binary) {
        return Err(error::invalid_argument(&hashed.sql_type, 2, signature.name));
    }
    Ok(Kind::new(SqlType::VarBinary(Length::Limited(8000)), true))
}

fn hashbytes(call: &Call<'_>) -> SqlResult<Value> {
    let Some(algorithm) = call.text(0)? else { return Ok(Value::Null) };
    let typed = call.typed(1)?;
    if typed.value.is_null() {
        return Ok(Value::Null);
    }
    let bytes = bytes_of(&typed.value, &typed.kind, call.facts)?;
    Ok(Value::bytes(&match algorithm.trim_end().to_ascii_uppercase().as_str() {
        "MD5" => Md5::digest(&bytes).to_vec(),
        "SHA" | "SHA1" => Sha1::digest(&bytes).to_vec(),
        "SHA2_256" => Sha256::digest(&bytes).to_vec(),
        "SHA2_512" => Sha512::digest(&bytes).to_vec(),
        "MD2" | "MD4" => return Err(error::not_supported("HASHBYTES with MD2 or MD4")),
        _ => return Ok(Value::Null),
    }))
}

/// 1 for a text that converts to some number type.
fn isnumeric(call: &Call<'_>) -> SqlResult<Value> {
    let typed = call.typed(0)?;
    let numeric = match (&typed.value, family(&typed.kind.sql_type)) {
        (Value::Null, _) => false,
        (_, Family::Number) => true,
        (Value::Text(text), _) => {
            let text = text.trim_matches([' ', '\t', '\r', '\n']);
            !text.is_empty()
                && (matches!(parsed_whole(text), Whole::Number(_) | Whole::TooLarge)
                    || parsed_float(text).is_some()
                    || parsed_money(text).is_some()
                    || matches!(text, "." | "," | "-." | "+."))
        }
        _ => false,
    };
    Ok(Value::Int(i64::from(numeric)))
}

fn hex_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let kind = text_kind(signature.kind(0)?);
    if length(&kind.sql_type) == Length::Limited(0) {
        return Err(SqlError::new(8116, "Argument data type is invalid."));
    }
    Ok(Kind::new(SqlType::NVarChar(Length::Max), true))
}

/// Bytes as `0x` and lower-case digits.
fn hex(call: &Call<'_>) -> SqlResult<Value> {
    let typed = call.typed(0)?;
    if typed.value.is_null() {
        return Ok(Value::Null);
    }
    let bytes = bytes_of(&typed.value, &typed.kind, call.facts)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Value::text(&format!("0x{digits}")))
}
