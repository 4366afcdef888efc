//! A call's arguments: the type that stands in front of each, and the value.

use cdc_core::{Length, ServerTime, SqlType};
use cdc_fake::Value;
use cdc_tsql::kind::{Kind, Typed};

use crate::{
    charset::Charset,
    fault::{Fault, Read},
    input::{Input, utf16},
    type_id as id,
};

/// How a value's length is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Prefix {
    /// Not at all: the type says it, and there is no NULL.
    Fixed(u8),
    /// In a byte, 0 for NULL.
    Byte,
    /// In a byte, 255 for NULL: the character and binary types of old.
    OldByte,
    /// In two bytes, 65,535 for NULL.
    Short,
    /// In four bytes, all bits for NULL.
    Long,
    /// In chunks.
    Chunks,
}

/// A type as a client declares it.
#[derive(Clone, Debug)]
struct Declared {
    sql_type: SqlType,
    prefix: Prefix,
    /// The most bytes of a value.
    limit: usize,
    charset: Charset,
}

/// Reads a type and a value of it.
pub(crate) fn read(input: &mut Input<'_>) -> Read<Typed> {
    let declared = Declared::read(input)?;
    let value = match declared.bytes(input)? {
        Some(bytes) => declared.value(&bytes)?,
        None => Value::Null,
    };
    Ok(Typed { kind: Kind::new(declared.sql_type, true), value })
}

impl Declared {
    fn new(sql_type: SqlType, prefix: Prefix, limit: usize) -> Self {
        Self { sql_type, prefix, limit, charset: Charset::Utf8 }
    }

    fn read(input: &mut Input<'_>) -> Read<Self> {
        use SqlType as T;
        let number = input.u8()?;
        let fixed = |sql_type, bytes: u8| Ok(Self::new(sql_type, Prefix::Fixed(bytes), 8));
        match number {
            id::NULL => fixed(T::Int, 0),
            id::TINYINT => fixed(T::TinyInt, 1),
            id::BIT => fixed(T::Bit, 1),
            id::SMALLINT => fixed(T::SmallInt, 2),
            id::INT => fixed(T::Int, 4),
            id::BIGINT => fixed(T::BigInt, 8),
            id::REAL => fixed(T::Real, 4),
            id::FLOAT => fixed(T::Float, 8),
            id::MONEY => fixed(T::Money, 8),
            id::SMALLMONEY => fixed(T::SmallMoney, 4),
            id::DATETIME => fixed(T::DateTime, 8),
            id::SMALLDATETIME => fixed(T::SmallDateTime, 4),
            id::DATE_N => Ok(Self::new(T::Date, Prefix::Byte, 3)),
            id::INT_N
            | id::BIT_N
            | id::FLOAT_N
            | id::MONEY_N
            | id::DATETIME_N
            | id::UNIQUEIDENTIFIER => Self::nullable(number, input.u8()?),
            id::DECIMAL_N | id::NUMERIC_N | id::DECIMAL_OLD | id::NUMERIC_OLD => {
                Self::decimal(input)
            }
            id::TIME_N | id::DATETIME2_N | id::DATETIMEOFFSET_N => {
                Self::scaled(number, input.u8()?)
            }
            id::TEXT | id::NTEXT | id::IMAGE => Self::long(number, input),
            id::XML => Self::xml(input),
            _ => Self::sized(number, input),
        }
    }

    fn nullable(number: u8, bytes: u8) -> Read<Self> {
        use SqlType as T;
        let sql_type = match (number, bytes) {
            (id::INT_N, 1) => T::TinyInt,
            (id::INT_N, 2) => T::SmallInt,
            (id::INT_N, 4) => T::Int,
            (id::INT_N, 8) => T::BigInt,
            (id::BIT_N, 1) => T::Bit,
            (id::FLOAT_N, 4) => T::Real,
            (id::FLOAT_N, 8) => T::Float,
            (id::MONEY_N, 4) => T::SmallMoney,
            (id::MONEY_N, 8) => T::Money,
            (id::DATETIME_N, 4) => T::SmallDateTime,
            (id::DATETIME_N, 8) => T::DateTime,
            (id::UNIQUEIDENTIFIER, 16) => T::UniqueIdentifier,
            _ => return Err(Fault::Malformed("a type has a length that it cannot have")),
        };
        Ok(Self::new(sql_type, Prefix::Byte, usize::from(bytes)))
    }

    fn decimal(input: &mut Input<'_>) -> Read<Self> {
        let (bytes, precision, scale) = (input.u8()?, input.u8()?, input.u8()?);
        if bytes > 17 || !(1..=38).contains(&precision) || scale > precision {
            return Err(Fault::Malformed("a decimal has a precision or scale that there is not"));
        }
        Ok(Self::new(SqlType::Decimal { precision, scale }, Prefix::Byte, 17))
    }

    fn scaled(number: u8, scale: u8) -> Read<Self> {
        if scale > 7 {
            return Err(Fault::Malformed("a time has more than seven fractional digits"));
        }
        let time = usize::from(id::time_bytes(scale));
        let (sql_type, limit) = match number {
            id::TIME_N => (SqlType::Time { scale }, time),
            id::DATETIME2_N => (SqlType::DateTime2 { scale }, time.saturating_add(3)),
            _ => (SqlType::DateTimeOffset { scale }, time.saturating_add(5)),
        };
        Ok(Self::new(sql_type, Prefix::Byte, limit))
    }

    fn long(number: u8, input: &mut Input<'_>) -> Read<Self> {
        let limit = input.length()?;
        Ok(match number {
            id::TEXT => {
                Self { charset: charset(input)?, ..Self::new(SqlType::Text, Prefix::Long, limit) }
            }
            id::NTEXT => {
                input.bytes(5)?;
                Self::new(SqlType::NText, Prefix::Long, limit)
            }
            _ => Self::new(SqlType::Image, Prefix::Long, limit),
        })
    }

    fn xml(input: &mut Input<'_>) -> Read<Self> {
        if input.u8()? != 0 {
            input.short_text()?;
            input.short_text()?;
            let units = input.u16()?;
            input.text(usize::from(units))?;
        }
        Ok(Self::new(SqlType::Xml, Prefix::Chunks, usize::MAX))
    }

    /// The types whose length is part of them.
    fn sized(number: u8, input: &mut Input<'_>) -> Read<Self> {
        use SqlType as T;
        let old =
            matches!(number, id::VARCHAR_OLD | id::CHAR_OLD | id::VARBINARY_OLD | id::BINARY_OLD);
        let length = match number {
            id::VARCHAR_OLD | id::CHAR_OLD | id::VARBINARY_OLD | id::BINARY_OLD => {
                u16::from(input.u8()?)
            }
            id::VARBINARY | id::VARCHAR | id::BINARY | id::CHAR | id::NVARCHAR | id::NCHAR => {
                input.u16()?
            }
            _ => return Err(refused(number)),
        };
        let mut charset_of = Charset::of_page(1252).unwrap_or(Charset::Utf8);
        if matches!(number, id::VARCHAR | id::CHAR) {
            charset_of = charset(input)?;
        } else if matches!(number, id::NVARCHAR | id::NCHAR) {
            input.bytes(5)?;
        }
        let variable = matches!(number, id::VARBINARY | id::VARCHAR | id::NVARCHAR);
        let is_max = length == id::MAX && variable;
        if length > 8000 && !is_max {
            return Err(Fault::Malformed("a type is longer than 8000 bytes"));
        }
        let limited = if is_max { Length::Max } else { Length::Limited(length.max(1)) };
        let wide = if is_max { Length::Max } else { Length::Limited((length / 2).max(1)) };
        let sql_type = match number {
            id::VARCHAR | id::VARCHAR_OLD => T::VarChar(limited),
            id::CHAR | id::CHAR_OLD => T::Char(length.max(1)),
            id::VARBINARY | id::VARBINARY_OLD => T::VarBinary(limited),
            id::BINARY | id::BINARY_OLD => T::Binary(length.max(1)),
            id::NVARCHAR => T::NVarChar(wide),
            _ => T::NChar((length / 2).max(1)),
        };
        let (prefix, limit) = match (old, is_max) {
            (true, _) => (Prefix::OldByte, usize::from(length)),
            (_, true) => (Prefix::Chunks, usize::MAX),
            _ => (Prefix::Short, usize::from(length)),
        };
        Ok(Self { charset: charset_of, ..Self::new(sql_type, prefix, limit) })
    }

    /// A value's bytes; none for NULL.
    fn bytes<'a>(&self, input: &mut Input<'a>) -> Read<Option<std::borrow::Cow<'a, [u8]>>> {
        let length = match self.prefix {
            Prefix::Fixed(0) => return Ok(None),
            Prefix::Fixed(bytes) => usize::from(bytes),
            Prefix::Byte => match input.u8()? {
                0 => return Ok(None),
                bytes => usize::from(bytes),
            },
            Prefix::OldByte => match input.u8()? {
                u8::MAX => return Ok(None),
                bytes => usize::from(bytes),
            },
            Prefix::Short => match input.u16()? {
                id::MAX => return Ok(None),
                bytes => usize::from(bytes),
            },
            Prefix::Long => match input.u32()? {
                id::LONG_NULL => return Ok(None),
                bytes => {
                    usize::try_from(bytes).map_err(|_| Fault::Malformed("a length is too large"))?
                }
            },
            Prefix::Chunks => return Ok(chunks(input)?.map(Into::into)),
        };
        // Of the old large types drivers declare what they like: characters, or the value's length.
        if length > self.limit && self.prefix != Prefix::Long {
            return Err(Fault::Malformed("a value is longer than its type"));
        }
        input.bytes(length).map(|bytes| Some(bytes.into()))
    }

    fn value(&self, bytes: &[u8]) -> Read<Value> {
        use SqlType as T;
        let wrong = Fault::Malformed("a value has a length that its type does not have");
        let mut input = Input::new(bytes);
        let value = match &self.sql_type {
            T::Bit => Value::Bit(input.u8()? != 0),
            T::TinyInt => Value::Int(input.u8()?.into()),
            T::SmallInt => Value::Int(input.u16()?.cast_signed().into()),
            T::Int => Value::Int(input.i32()?.into()),
            T::BigInt => Value::Int(input.u64()?.cast_signed()),
            T::Real => Value::Real(finite(f32::from_bits(input.u32()?))?),
            T::Float => Value::Float(finite(f64::from_bits(input.u64()?))?),
            T::Money => {
                let (high, low) = (input.i32()?, input.u32()?);
                Value::decimal((i128::from(high) << 32) | i128::from(low))
            }
            T::SmallMoney => Value::decimal(input.i32()?.into()),
            T::Decimal { precision, .. } => decimal(&mut input, *precision)?,
            T::Date => Value::Date(days(&mut input)?),
            T::DateTime => datetime(input.i32()?, input.u32()?)?,
            T::SmallDateTime => small_datetime(input.u16()?, input.u16()?)?,
            T::Time { scale } => Value::Time(time(&mut input, *scale)?),
            T::DateTime2 { scale } => Value::DateTime2(moment(&mut input, *scale)?),
            T::DateTimeOffset { scale } => offset(&mut input, *scale)?,
            T::UniqueIdentifier => uuid(&mut input)?,
            T::NChar(_) | T::NVarChar(_) | T::NText | T::Xml => {
                Value::text(&utf16(input.bytes(bytes.len())?)?)
            }
            T::Char(_) | T::VarChar(_) | T::Text => {
                Value::text(&self.charset.decode(input.bytes(bytes.len())?)?)
            }
            _ => Value::bytes(input.bytes(bytes.len())?),
        };
        if !input.is_empty() {
            return Err(wrong);
        }
        match self.sql_type {
            // Clients leave the blanks and zeros to the server.
            T::Char(_) | T::NChar(_) | T::Binary(_) => {
                value.stored(&self.sql_type).map_err(|_| wrong)
            }
            _ => Ok(value),
        }
    }
}

fn charset(input: &mut Input<'_>) -> Read<Charset> {
    match input.bytes(5)? {
        [a, b, c, d, e] => Charset::of_wire([*a, *b, *c, *d, *e]),
        _ => Err(Fault::Malformed("a collation has five bytes")),
    }
}

fn refused(number: u8) -> Fault {
    Fault::Unsupported(match number {
        id::VARIANT => "an argument of type sql_variant".into(),
        id::TABLE => "a table-valued argument".into(),
        id::UDT => "an argument of a CLR type".into(),
        _ => return Fault::Malformed("an argument is of no known type"),
    })
}

/// A chunked value's bytes.
fn chunks(input: &mut Input<'_>) -> Read<Option<Vec<u8>>> {
    let total = match input.u64()? {
        id::CHUNKED_NULL => return Ok(None),
        id::CHUNKED_UNKNOWN => None,
        total => Some(total),
    };
    let mut bytes = Vec::new();
    loop {
        let length = input.length()?;
        if length == 0 {
            break;
        }
        bytes.extend_from_slice(input.bytes(length)?);
    }
    match total {
        Some(total) if u64::try_from(bytes.len()) != Ok(total) => {
            Err(Fault::Malformed("the chunks of a value are not as long as it says"))
        }
        _ => Ok(Some(bytes)),
    }
}

fn finite<T: Copy + Into<f64>>(number: T) -> Read<T> {
    match number.into().is_finite() {
        true => Ok(number),
        false => Err(Fault::Malformed("a float is not a number")),
    }
}

fn decimal(input: &mut Input<'_>, precision: u8) -> Read<Value> {
    let sign = input.u8()?;
    let digits = input.rest();
    if digits.len() > 16 {
        return Err(Fault::Malformed("a decimal has more than 16 bytes of digits"));
    }
    let mut wide = [0; 16];
    for (to, from) in wide.iter_mut().zip(input.bytes(digits.len())?) {
        *to = *from;
    }
    let magnitude = u128::from_le_bytes(wide);
    let limit = 10_u128.checked_pow(u32::from(precision)).unwrap_or(u128::MAX);
    match i128::try_from(magnitude) {
        Ok(number) if magnitude < limit => {
            Ok(Value::decimal(if sign == 0 { number.saturating_neg() } else { number }))
        }
        _ => Err(Fault::Malformed("a decimal has more digits than its precision")),
    }
}

/// Days since 1970-01-01 from three bytes.
fn days(input: &mut Input<'_>) -> Read<i32> {
    let (low, high) = (input.u16()?, input.u8()?);
    let days = i32::from(low) | (i32::from(high) << 16);
    if days > id::LAST_DAY {
        return Err(Fault::Malformed("a date lies behind the year 9999"));
    }
    Ok(days.saturating_sub(id::DAYS_TO_1970))
}

/// 100 ns since midnight, from as many bytes as the scale has.
fn time(input: &mut Input<'_>, scale: u8) -> Read<i64> {
    let mut wide = [0; 8];
    for (to, from) in wide.iter_mut().zip(input.bytes(usize::from(id::time_bytes(scale)))?) {
        *to = *from;
    }
    let ticks = i64::from_le_bytes(wide).saturating_mul(id::ticks_a_step(scale));
    if ticks >= id::TICKS_A_DAY {
        return Err(Fault::Malformed("a time lies behind the end of the day"));
    }
    Ok(ticks)
}

fn moment(input: &mut Input<'_>, scale: u8) -> Read<i64> {
    let (time, days) = (time(input, scale)?, days(input)?);
    Ok(i64::from(days).saturating_mul(id::TICKS_A_DAY).saturating_add(time))
}

fn offset(input: &mut Input<'_>, scale: u8) -> Read<Value> {
    let (utc, offset_minutes) = (moment(input, scale)?, input.u16()?.cast_signed());
    if !(-840..=840).contains(&offset_minutes) {
        return Err(Fault::Malformed("an offset is beyond 14 hours"));
    }
    Ok(Value::DateTimeOffset { utc, offset_minutes })
}

fn datetime(days: i32, ticks: u32) -> Read<Value> {
    let ticks = i64::from(ticks);
    if !(-53_690..=2_958_463).contains(&days) || ticks >= id::DATETIME_TICKS_A_DAY {
        return Err(Fault::Malformed("a datetime lies outside of the years 1753 to 9999"));
    }
    let days = i64::from(days).saturating_mul(id::DATETIME_TICKS_A_DAY);
    Ok(Value::DateTime(ServerTime::from_ticks(days.saturating_add(ticks))))
}

fn small_datetime(days: u16, minutes: u16) -> Read<Value> {
    if minutes >= 1440 {
        return Err(Fault::Malformed("a smalldatetime has more minutes than a day"));
    }
    let days = i64::from(i32::from(days).saturating_sub(id::DAYS_1900_TO_1970));
    let minutes = i64::from(minutes).saturating_mul(600_000_000);
    Ok(Value::DateTime2(days.saturating_mul(id::TICKS_A_DAY).saturating_add(minutes)))
}

fn uuid(input: &mut Input<'_>) -> Read<Value> {
    match input.bytes(16)? {
        [d, c, b, a, f, e, h, g, rest @ ..] => {
            let mut text = [0; 16];
            let order = [a, b, c, d, e, f, g, h].into_iter().chain(rest);
            for (to, from) in text.iter_mut().zip(order) {
                *to = *from;
            }
            Ok(Value::Uuid(text))
        }
        _ => Err(Fault::Malformed("a uniqueidentifier has 16 bytes")),
    }
}

#[cfg(test)]
mod tests;
