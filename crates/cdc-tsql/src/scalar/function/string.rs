//! Functions that cut and join texts.

use std::borrow::Cow;

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};

use super::{ANY_NUMBER, Call, Definition, Signature, define, long_text, text_kind};
use crate::{
    kind::{Collation, Kind},
    scalar::{
        ArgumentValue, collation,
        pattern::{first_match, position, weight, weights},
        precedence::{MAX_BYTES, MAX_UNITS, is_national, length},
    },
};

pub(super) const FUNCTIONS: &[Definition] = &[
    define("LEFT", 2, 2, text_of_first, |call| side(call, true)),
    define("RIGHT", 2, 2, text_of_first, |call| side(call, false)),
    define("SUBSTRING", 2, 3, substring_kind, substring),
    define("UPPER", 1, 1, text_of_first, |call| mapped(call, upper)),
    define("LOWER", 1, 1, text_of_first, |call| mapped(call, lower)),
    define("REVERSE", 1, 1, text_of_first, |call| mapped(call, |t| t.chars().rev().collect())),
    define("LTRIM", 1, 2, text_of_first, |call| trimmed(call, true, false)),
    define("RTRIM", 1, 2, text_of_first, |call| trimmed(call, false, true)),
    define("TRIM", 1, 3, trim_kind, trim),
    define("REPLACE", 3, 3, replaced_kind, replace),
    define("REPLICATE", 2, 2, |s| Ok(Kind { nullable: true, ..long_text(s.kind(0)?) }), replicate),
    define("SPACE", 1, 1, |s| Ok(s.result(SqlType::VarChar(Length::Limited(MAX_BYTES)))), space),
    define("STUFF", 4, 4, |s| Ok(Kind { nullable: true, ..long_text(s.kind(0)?) }), stuff),
    define("CHARINDEX", 2, 3, place_kind, charindex),
    define("PATINDEX", 2, 2, place_kind, patindex),
    define("CONCAT", 2, ANY_NUMBER, concat_kind, concat),
    define("CONCAT_WS", 3, ANY_NUMBER, concat_ws_kind, concat_ws),
    define("TRANSLATE", 3, 3, replaced_kind, translate),
    define("QUOTENAME", 1, 2, quotename_kind, quotename),
];

fn text_of_first(signature: &Signature<'_>) -> SqlResult<Kind> {
    let first = signature.kind(0)?;
    signature.takes(0..1, &SqlType::VarChar(Length::Max))?;
    Ok(Kind { nullable: signature.nullable(), ..text_kind(first) })
}

/// A text in the units that positions count: UTF-16 units of the n-types, characters of others.
/// A character of two units stays whole.
fn units(text: &str, national: bool) -> impl Iterator<Item = (usize, char)> {
    text.chars().map(move |c| (if national { c.len_utf16() } else { 1 }, c))
}

/// The part of a text from `start` (0 is the first unit) of `count` units.
fn part(text: &str, start: i64, count: i64, national: bool) -> String {
    let end = start.saturating_add(count);
    let mut at = 0_i64;
    let mut kept = String::new();
    for (width, c) in units(text, national) {
        if at >= end {
            break;
        }
        if at >= start {
            kept.push(c);
        }
        at += i64::try_from(width).unwrap_or(1);
    }
    kept
}

/// The length of a text in units.
pub(super) fn unit_count(text: &str, national: bool) -> i64 {
    let count: usize = units(text, national).map(|(width, _)| width).sum();
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn is_national_argument(call: &Call<'_>, place: usize) -> SqlResult<bool> {
    Ok(is_national(&call.typed(place)?.kind.sql_type))
}

fn invalid_length(number: i32, function: &str) -> SqlError {
    SqlError::new(
        number,
        format!("Invalid length parameter passed to the {} function.", function.to_lowercase()),
    )
}

fn side(call: &Call<'_>, left: bool) -> SqlResult<Value> {
    let (Some(text), Some(count)) = (call.text(0)?, call.int(1)?) else {
        return Ok(Value::Null);
    };
    if count < 0 {
        return Err(if left {
            invalid_length(537, "LEFT or SUBSTRING")
        } else {
            invalid_length(536, "RIGHT")
        });
    }
    let national = is_national_argument(call, 0)?;
    let start = if left { 0 } else { (unit_count(&text, national) - count).max(0) };
    call.text_result(&part(&text, start, count, national))
}

fn substring_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let first = signature.kind(0)?;
    Ok(match first.sql_type {
        SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::Image | SqlType::RowVersion => {
            signature.result(SqlType::VarBinary(length(&first.sql_type)))
        }
        _ => text_of_first(signature)?,
    })
}

fn substring(call: &Call<'_>) -> SqlResult<Value> {
    let typed = call.typed(0)?;
    let count = if call.has(2) { call.int(2)? } else { Some(i64::from(i32::MAX)) };
    let (Some(start), Some(count)) = (call.int(1)?, count) else {
        return Ok(Value::Null);
    };
    if typed.value.is_null() {
        return Ok(Value::Null);
    }
    if count < 0 {
        return Err(invalid_length(537, "LEFT or SUBSTRING"));
    }
    // A start before the first unit uses up some of the count.
    let begin = start.saturating_sub(1);
    let (begin, count) =
        if begin < 0 { (0, count.saturating_add(begin).max(0)) } else { (begin, count) };
    if let Value::Bytes(bytes) = &typed.value {
        let skipped = usize::try_from(begin).unwrap_or(usize::MAX);
        let taken = usize::try_from(count).unwrap_or(usize::MAX);
        let kept: Vec<u8> = bytes.iter().skip(skipped).take(taken).copied().collect();
        return Ok(Value::bytes(&kept));
    }
    let Some(text) = call.text(0)? else { return Ok(Value::Null) };
    call.text_result(&part(&text, begin, count, is_national_argument(call, 0)?))
}

/// Each character by itself, so that the length stays: `ß` has no upper case of one character.
fn upper(text: &str) -> String {
    text.chars().map(|one| single(one, one.to_uppercase())).collect()
}

fn lower(text: &str) -> String {
    text.chars().map(|one| single(one, one.to_lowercase())).collect()
}

fn mapped(call: &Call<'_>, map: fn(&str) -> String) -> SqlResult<Value> {
    match call.text(0)? {
        Some(text) => call.text_result(&map(&text)),
        None => Ok(Value::Null),
    }
}

/// The only character of a mapping, or the character itself when it has several.
fn single(character: char, mut mapping: impl ExactSizeIterator<Item = char>) -> char {
    if mapping.len() == 1 { mapping.next().unwrap_or(character) } else { character }
}

fn trimmed(call: &Call<'_>, left: bool, right: bool) -> SqlResult<Value> {
    let Some(text) = call.text(0)? else { return Ok(Value::Null) };
    let characters = if call.has(1) { call.text(1)? } else { Some(Cow::Borrowed(" ")) };
    match characters {
        Some(characters) => {
            call.text_result(&trim_of(&text, &characters, left, right, call.collation(0)?))
        }
        None => Ok(Value::Null),
    }
}

/// A text without the characters at its ends that the collation holds for equal to given ones.
fn trim_of(text: &str, characters: &str, left: bool, right: bool, collation: Collation) -> String {
    let given = weights(characters, collation);
    let trims = |c: char| given.contains(&weight(c, collation));
    let mut kept = text;
    if left {
        kept = kept.trim_start_matches(trims);
    }
    if right {
        kept = kept.trim_end_matches(trims);
    }
    kept.to_owned()
}

/// The places of the characters and the text of `TRIM([word] [characters] FROM text)`.
fn trim_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let last = signature.arguments.len().saturating_sub(1);
    Ok(Kind { nullable: signature.nullable(), ..text_kind(signature.kind(last)?) })
}

fn trim(call: &Call<'_>) -> SqlResult<Value> {
    let last = call.arguments.len().saturating_sub(1);
    let word = call.word(0).unwrap_or("BOTH");
    let first = usize::from(matches!(call.arguments.first(), Some(ArgumentValue::Word(_))));
    let characters = if last > first { call.text(first)? } else { Some(Cow::Borrowed(" ")) };
    let (Some(text), Some(characters)) = (call.text(last)?, characters) else {
        return Ok(Value::Null);
    };
    let left = !word.eq_ignore_ascii_case("TRAILING");
    let right = !word.eq_ignore_ascii_case("LEADING");
    call.text_result(&trim_of(&text, &characters, left, right, call.collation(last)?))
}

fn replaced_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let mut kind = long_text(signature.kind(0)?);
    for place in 1..3 {
        let other = long_text(signature.kind(place)?);
        if is_national(&other.sql_type) && !is_national(&kind.sql_type) {
            kind = Kind { sql_type: other.sql_type, ..kind };
        }
    }
    Ok(Kind { nullable: signature.nullable(), ..kind })
}

fn replace(call: &Call<'_>) -> SqlResult<Value> {
    let (Some(text), Some(from), Some(to)) = (call.text(0)?, call.text(1)?, call.text(2)?) else {
        return Ok(Value::Null);
    };
    let collation = call.collation(0)?;
    if from.is_empty() {
        return call.text_result(&text);
    }
    let (characters, wanted) = (weights(&text, collation), weights(&from, collation));
    let originals: Vec<char> = text.chars().collect();
    let mut replaced = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(original) = originals.get(at) {
        if characters.get(at..at + wanted.len()) == Some(wanted.as_slice()) {
            replaced.push_str(&to);
            at += wanted.len();
        } else {
            replaced.push(*original);
            at += 1;
        }
    }
    call.text_result(&replaced)
}

/// A text many times, never longer than the greatest length that is not `(max)` but for `(max)`.
fn replicate(call: &Call<'_>) -> SqlResult<Value> {
    /// No text is made longer than this; the server's own limit is 2 GiB.
    const MOST: usize = 64 * 1024 * 1024;
    let (Some(text), Some(count)) = (call.text(0)?, call.int(1)?) else {
        return Ok(Value::Null);
    };
    let Ok(count) = usize::try_from(count) else { return Ok(Value::Null) };
    let limit = match length(&call.kind()?.sql_type) {
        Length::Limited(limit) => usize::from(limit),
        Length::Max => MOST,
    };
    let most = limit.checked_div(text.len()).map_or(0, |times| times + 1);
    let count = count.min(most.saturating_mul(4));
    if text.len().saturating_mul(count) > MOST.saturating_mul(4) {
        return Err(crate::scalar::error::not_supported("a text of more than 64 MiB"));
    }
    call.text_result(&text.repeat(count))
}

fn space(call: &Call<'_>) -> SqlResult<Value> {
    let Some(count) = call.int(0)? else { return Ok(Value::Null) };
    match usize::try_from(count) {
        Ok(count) => call.text_result(&" ".repeat(count.min(usize::from(MAX_BYTES)))),
        Err(_) => Ok(Value::Null),
    }
}

fn stuff(call: &Call<'_>) -> SqlResult<Value> {
    let (Some(text), Some(start), Some(count)) = (call.text(0)?, call.int(1)?, call.int(2)?) else {
        return Ok(Value::Null);
    };
    let national = is_national_argument(call, 0)?;
    let length = unit_count(&text, national);
    if start < 1 || start > length || count < 0 {
        return Ok(Value::Null);
    }
    // A NULL to put in puts in nothing.
    let middle = call.text(3)?.unwrap_or_default();
    let head = part(&text, 0, start - 1, national);
    let tail = part(&text, (start - 1).saturating_add(count), length, national);
    call.text_result(&format!("{head}{middle}{tail}"))
}

fn place_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    let text = signature.kind(1)?;
    collation::deciding(signature.kind(0)?, text)?;
    let large = length(&text_kind(text).sql_type) == Length::Max;
    Ok(signature.result(if large { SqlType::BigInt } else { SqlType::Int }))
}

/// A place among characters as a place among units, from 1.
fn unit_place(text: &str, place: usize, national: bool) -> Value {
    let before: usize = units(text, national).take(place).map(|(width, _)| width).sum();
    Value::Int(i64::try_from(before + 1).unwrap_or(i64::MAX))
}

fn united_collation(call: &Call<'_>) -> SqlResult<Collation> {
    let found = collation::deciding(&call.typed(0)?.kind, &call.typed(1)?.kind)?.collation;
    Ok(found.unwrap_or(call.facts.collation))
}

fn charindex(call: &Call<'_>) -> SqlResult<Value> {
    let start = if call.has(2) { call.int(2)? } else { Some(1) };
    let (Some(needle), Some(text), Some(start)) = (call.text(0)?, call.text(1)?, start) else {
        return Ok(Value::Null);
    };
    if needle.is_empty() {
        return Ok(Value::Int(0));
    }
    let national = is_national_argument(call, 1)?;
    let start = usize::try_from(start - 1).unwrap_or(0);
    // From units to characters.
    let mut at = 0;
    let skipped = units(&text, national)
        .take_while(|(width, _)| {
            let before = at < start;
            at += width;
            before
        })
        .count();
    let place = position(&needle, &text, skipped, united_collation(call)?);
    Ok(place.map_or(Value::Int(0), |place| unit_place(&text, place, national)))
}

fn patindex(call: &Call<'_>) -> SqlResult<Value> {
    let (Some(pattern), Some(text)) = (call.text(0)?, call.text(1)?) else {
        return Ok(Value::Null);
    };
    let national = is_national_argument(call, 1)?;
    let place = first_match(&pattern, &text, united_collation(call)?);
    Ok(place.map_or(Value::Int(0), |place| unit_place(&text, place, national)))
}

/// The kind of texts one behind the other, without those at the places before `from`.
fn joined_kind(signature: &Signature<'_>, separator: Option<usize>) -> SqlResult<Kind> {
    let kinds = signature.kinds()?;
    let texts: Vec<Kind> = kinds.iter().map(text_kind).collect();
    let national = texts.iter().any(|kind| is_national(&kind.sql_type));
    let most = if national { MAX_UNITS } else { MAX_BYTES };
    let parts = texts.len().saturating_sub(2);
    let mut sum = Length::Limited(0);
    for (place, kind) in texts.iter().enumerate() {
        let times = if separator == Some(place) { parts } else { 1 };
        sum = match (sum, length(&kind.sql_type)) {
            (Length::Limited(sum), Length::Limited(own)) => {
                let times = u16::try_from(times).unwrap_or(u16::MAX);
                Length::Limited(sum.saturating_add(own.saturating_mul(times)).min(most))
            }
            _ => Length::Max,
        };
    }
    let mut collation_found = Kind::new(SqlType::Int, false);
    for kind in &kinds {
        let deciding = collation::deciding(&collation_found, kind)?.clone();
        collation_found = collation_found.collated_as(&deciding);
    }
    let sql_type = if national { SqlType::NVarChar(sum) } else { SqlType::VarChar(sum) };
    Ok(Kind { sql_type, ..collation_found })
}

fn concat_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    joined_kind(signature, None)
}

fn concat_ws_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    joined_kind(signature, Some(0))
}

fn concat(call: &Call<'_>) -> SqlResult<Value> {
    let mut joined = String::new();
    for place in 0..call.arguments.len() {
        joined.push_str(&call.text(place)?.unwrap_or_default());
    }
    call.text_result(&joined)
}

fn concat_ws(call: &Call<'_>) -> SqlResult<Value> {
    let separator = call.text(0)?.unwrap_or_default();
    let mut parts = Vec::new();
    for place in 1..call.arguments.len() {
        parts.extend(call.text(place)?);
    }
    call.text_result(&parts.join(&*separator))
}

fn translate(call: &Call<'_>) -> SqlResult<Value> {
    let (Some(text), Some(from), Some(to)) = (call.text(0)?, call.text(1)?, call.text(2)?) else {
        return Ok(Value::Null);
    };
    let collation = call.collation(0)?;
    let to: Vec<char> = to.chars().collect();
    let from = weights(&from, collation);
    if from.len() != to.len() {
        return Err(SqlError::new(
            9828,
            "The second and third arguments of the TRANSLATE built-in function must contain an \
             equal number of characters.",
        ));
    }
    let translated: String = text
        .chars()
        .zip(weights(&text, collation))
        .map(|(c, weight)| {
            let place = from.iter().position(|known| *known == weight);
            place.and_then(|place| to.get(place).copied()).unwrap_or(c)
        })
        .collect();
    call.text_result(&translated)
}

fn quotename_kind(signature: &Signature<'_>) -> SqlResult<Kind> {
    signature.takes(0..1, &SqlType::NVarChar(Length::Max))?;
    Ok(Kind::new(SqlType::NVarChar(Length::Limited(258)), true))
}

/// An identifier in brackets or quotes, the closing one doubled; NULL for a text longer than an
/// identifier or a mark that is none.
fn quotename(call: &Call<'_>) -> SqlResult<Value> {
    let mark = if call.has(1) { call.text(1)? } else { Some(Cow::Borrowed("[")) };
    let (Some(text), Some(mark)) = (call.text(0)?, mark) else { return Ok(Value::Null) };
    let (open, close) = match &*mark {
        "[" | "]" | "" => ('[', ']'),
        "'" => ('\'', '\''),
        "\"" => ('"', '"'),
        "(" | ")" => ('(', ')'),
        "<" | ">" => ('<', '>'),
        "{" | "}" => ('{', '}'),
        "`" => ('`', '`'),
        _ => return Ok(Value::Null),
    };
    if text.encode_utf16().count() > 128 {
        return Ok(Value::Null);
    }
    let doubled = text.replace(close, &format!("{close}{close}"));
    Ok(Value::text(&format!("{open}{doubled}{close}")))
}
