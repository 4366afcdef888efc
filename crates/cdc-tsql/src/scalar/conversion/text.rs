//! Values as text, and texts in the length of their type.

use std::{borrow::Cow, sync::Arc};

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};

use super::{Excess, binary::hexadecimal};
use crate::{
    kind::Kind,
    scalar::{
        Facts, code_page, date_text, error, exact::digits_of, moment::Wall, number_text,
        precedence::is_national,
    },
};

/// The value as a text of kind `to`.
pub(super) fn converted(
    value: &Value,
    from: &Kind,
    to: &Kind,
    style: Option<i32>,
    excess: Excess,
    facts: &Facts,
) -> SqlResult<Value> {
    let national = is_national(&to.sql_type);
    let page = to.collation.unwrap_or(facts.collation).code_page;
    if let Value::Text(text) = value {
        return fitted_shared(text, &to.sql_type, page, excess);
    }
    let text = of(value, from, style, national, page)?;
    // A number that does not fit is no part of a number.
    if let Length::Limited(limit) = limit(&to.sql_type)
        && text.len() > usize::from(limit)
        && let Some(shown) = unfit(&from.sql_type, &to.sql_type)
    {
        return shown.and_then(|text| fitted(text, &to.sql_type, page, Excess::Cut));
    }
    fitted(&text, &to.sql_type, page, excess)
}

/// What becomes of a value whose text must not be cut; none when it may be.
fn unfit(from: &SqlType, to: &SqlType) -> Option<SqlResult<&'static str>> {
    use SqlType as T;
    Some(match from {
        T::TinyInt | T::SmallInt | T::Int | T::Bit => {
            if is_national(to) {
                Err(error::overflow(to))
            } else {
                Ok("*")
            }
        }
        T::BigInt => Err(error::overflow(to)),
        T::Decimal { .. } => Err(error::overflow_from(from, to)),
        T::Real | T::Float => Err(error::float_overflow(to)),
        T::Money | T::SmallMoney => Err(SqlError::new(
            234,
            format!(
                "There is insufficient result space to convert a money value to {}.",
                error::name(to)
            ),
        )),
        T::UniqueIdentifier => Err(SqlError::new(
            8170,
            "Insufficient result space to convert uniqueidentifier value to char.",
        )),
        _ => return None,
    })
}

/// The text of a value in a style; bytes are read as UTF-16 when `national`, in the code page
/// `page` otherwise.
pub(super) fn of<'a>(
    value: &'a Value,
    from: &Kind,
    style: Option<i32>,
    national: bool,
    page: u16,
) -> SqlResult<Cow<'a, str>> {
    let sql_type = &from.sql_type;
    let style_number = style.unwrap_or_default();
    Ok(Cow::Owned(match value {
        Value::Null => String::new(),
        Value::Bit(set) => u8::from(*set).to_string(),
        Value::Int(number) => number.to_string(),
        Value::Real(number) => number_text::float(f64::from(*number), style_number),
        Value::Float(number) => number_text::float(*number, style_number),
        Value::Decimal(digits) => match sql_type {
            SqlType::Money | SqlType::SmallMoney => {
                number_text::money((*digits).into(), style_number)
            }
            _ => {
                let scale = digits_of(sql_type).map_or(0, |(_, scale)| scale);
                number_text::decimal((*digits).into(), scale)
            }
        },
        Value::Text(text) => return Ok(Cow::Borrowed(text)),
        Value::Bytes(bytes) => match style_number {
            0 if national => utf_16(bytes),
            0 => code_page::decode(bytes, page).into_owned(),
            1 => format!("0x{}", hexadecimal(bytes)),
            2 => hexadecimal(bytes),
            _ => {
                return Err(SqlError::new(
                    281,
                    format!(
                        "{style_number} is not a valid style number when converting from {} to a \
                         character string.",
                        error::name(sql_type)
                    ),
                ));
            }
        },
        Value::Uuid(bytes) => {
            let digits = hexadecimal(bytes);
            let groups = [0..8, 8..12, 12..16, 16..20, 20..32];
            groups.map(|group| digits.get(group).unwrap_or_default().to_owned()).join("-")
        }
        _ => {
            let wall = Wall::of(value).ok_or_else(|| error::not_converted(sql_type, sql_type))?;
            let style = style.unwrap_or_else(|| date_text::default_style(sql_type));
            date_text::text(wall, sql_type, style)?
        }
    }))
}

/// Bytes as little-endian UTF-16; half a unit at the end does not count.
fn utf_16(bytes: &[u8]) -> String {
    let units = bytes.chunks_exact(2).map(|pair| match pair {
        [low, high] => u16::from_le_bytes([*low, *high]),
        _ => 0,
    });
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// The length in bytes of a text of a type, as DATALENGTH has it.
pub(in crate::scalar) fn byte_length(text: &str, sql_type: &SqlType, page: u16) -> usize {
    if is_national(sql_type) {
        return text.encode_utf16().count() * 2;
    }
    code_page::encode(text, page).len()
}

/// The declared length of a character type.
const fn limit(sql_type: &SqlType) -> Length {
    match sql_type {
        SqlType::Char(length) | SqlType::NChar(length) => Length::Limited(*length),
        SqlType::VarChar(length) | SqlType::NVarChar(length) => *length,
        _ => Length::Max,
    }
}

fn fitted_shared(text: &Arc<str>, to: &SqlType, page: u16, excess: Excess) -> SqlResult<Value> {
    let plain = text.is_ascii() || is_national(to) || page == code_page::UTF_8;
    let fits = match (limit(to), to) {
        (Length::Max, _) => true,
        // Bytes of UTF-8 are an upper bound of units and of bytes in any page.
        (Length::Limited(limit), SqlType::VarChar(_) | SqlType::NVarChar(_)) => {
            text.len() <= usize::from(limit)
        }
        (Length::Limited(limit), _) => text.is_ascii() && text.len() == usize::from(limit),
    };
    if plain && fits {
        return Ok(Value::Text(Arc::clone(text)));
    }
    fitted(text, to, page, excess)
}

/// A text as a type holds it: in its code page, padded, cut to its length or refused.
///
/// # Errors
/// 2628 for a text that is longer than its type by more than blanks, when nothing may be cut.
pub(in crate::scalar) fn fitted(
    text: &str,
    to: &SqlType,
    page: u16,
    excess: Excess,
) -> SqlResult<Value> {
    let national = is_national(to);
    let narrowed = if national { Cow::Borrowed(text) } else { code_page::narrowed(text, page) };
    let Length::Limited(limit) = limit(to) else {
        return Ok(Value::text(&narrowed));
    };
    let limit = usize::from(limit);
    let padded = matches!(to, SqlType::Char(_) | SqlType::NChar(_));
    if narrowed.is_ascii() && narrowed.len() <= limit {
        // Most texts: as many bytes as units.
        return Ok(match limit - narrowed.len() {
            blanks if padded => Value::text(&format!("{narrowed}{:blanks$}", "")),
            _ => Value::text(&narrowed),
        });
    }
    let width = |c: char| match () {
        () if national => c.len_utf16(),
        () if c.is_ascii() => 1,
        () => code_page::encode(c.encode_utf8(&mut [0; 4]), page).len(),
    };
    let mut length = 0;
    let mut end = narrowed.len();
    for (at, c) in narrowed.char_indices() {
        let next = length + width(c);
        if next > limit {
            end = at;
            break;
        }
        length = next;
    }
    let (kept, rest) = narrowed.split_at_checked(end).unwrap_or((&narrowed, ""));
    if excess == Excess::Refused && rest.chars().any(|c| c != ' ') {
        return Err(error::truncated(to));
    }
    if padded && length < limit {
        return Ok(Value::text(&format!("{kept}{:blanks$}", "", blanks = limit - length)));
    }
    Ok(Value::text(kept))
}
