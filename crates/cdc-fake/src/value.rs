//! Cells: a value of one of SQL Server's types, checked against its column and stored as the
//! server stores it.

use std::sync::Arc;

use cdc_core::{Length, ServerTime, SqlType};
use chrono::{NaiveDate, NaiveDateTime};

use crate::{
    code_page,
    collation::DEFAULT_COLLATION,
    sql_error::{SqlError, SqlResult, number},
    text_form::decimal_text,
};

/// A row of a table: one value a column slot. Shared by the table, the log and change tables.
pub type Row = Arc<[Value]>;

/// The digits of an exact number, without its decimal point.
///
/// Two halves instead of an `i128` keep a [`Value`] at 24 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unscaled {
    high: i64,
    low: u64,
}

impl From<i128> for Unscaled {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is cut into its two halves"
    )]
    fn from(number: i128) -> Self {
        Self { high: (number >> 64) as i64, low: number as u64 }
    }
}

impl From<Unscaled> for i128 {
    fn from(number: Unscaled) -> Self {
        (Self::from(number.high) << 64) | Self::from(number.low)
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// NULL of any type.
    Null,
    /// `bit`.
    Bit(bool),
    /// `tinyint`, `smallint`, `int`, `bigint`.
    Int(i64),
    /// `real`.
    Real(f32),
    /// `float`.
    Float(f64),
    /// `decimal`, `money`, `smallmoney`: the digits at the column's scale.
    Decimal(Unscaled),
    /// `date`: days since 1970-01-01.
    Date(i32),
    /// `datetime`.
    DateTime(ServerTime),
    /// `datetime2` and `smalldatetime`: 100 ns since 1970-01-01 00:00.
    DateTime2(i64),
    /// `datetimeoffset`.
    DateTimeOffset {
        /// The instant: 100 ns since 1970-01-01 00:00 UTC.
        utc: i64,
        /// Minutes that the wall clock is ahead of UTC.
        offset_minutes: i16,
    },
    /// `time`: 100 ns since midnight.
    Time(i64),
    /// Every character type and `xml`.
    Text(Arc<str>),
    /// Every binary type and `rowversion`.
    Bytes(Arc<[u8]>),
    /// `uniqueidentifier`, in the order its text is written.
    Uuid([u8; 16]),
}

/// 100 ns in a microsecond.
const TICKS_A_MICRO: i64 = 10;
/// 100 ns in a day.
const TICKS_A_DAY: i64 = 864_000_000_000;
/// Days from 1970-01-01 to 0001-01-01 and to 9999-12-31.
const DAYS: (i32, i32) = (-719_162, 2_932_896);

impl Value {
    /// Text of any character type.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// Bytes of any binary type.
    #[must_use]
    pub fn bytes(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.into())
    }

    /// An exact number from its digits at the column's scale: 12.34 at scale 2 is 1234.
    #[must_use]
    pub fn decimal(digits: i128) -> Self {
        Self::Decimal(digits.into())
    }

    /// A `date`.
    #[must_use]
    pub fn date(date: NaiveDate) -> Self {
        let days = date.signed_duration_since(NaiveDate::default()).num_days();
        Self::Date(i32::try_from(days).unwrap_or(i32::MAX))
    }

    /// A `datetime`, to the nearest tick of 1/300 s.
    #[must_use]
    pub fn datetime(wall: NaiveDateTime) -> Self {
        Self::DateTime(ServerTime::nearest(wall))
    }

    /// A `datetime2` or `smalldatetime`, from a wall clock with microseconds.
    #[must_use]
    pub fn datetime2(wall: NaiveDateTime) -> Self {
        Self::DateTime2(wall.and_utc().timestamp_micros().saturating_mul(TICKS_A_MICRO))
    }

    /// True for NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The number of an integer.
    #[must_use]
    pub const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// True when [`Value::stored`] would surely leave the value as it is: a quick look that
    /// answers for the common types.
    pub(crate) fn is_stored_as(&self, sql_type: &SqlType) -> bool {
        use SqlType as T;
        match (self, sql_type) {
            (Self::Null, _)
            | (Self::Bit(_), T::Bit)
            | (Self::Int(_), T::BigInt)
            | (Self::Uuid(_), T::UniqueIdentifier) => true,
            (Self::Int(number), T::Int) => i32::try_from(*number).is_ok(),
            (Self::Int(number), T::SmallInt) => i16::try_from(*number).is_ok(),
            (Self::Float(number), T::Float) => number.is_finite(),
            (
                Self::Text(text),
                T::VarChar(Length::Limited(limit)) | T::NVarChar(Length::Limited(limit)),
            ) => text.len() <= usize::from(*limit),
            _ => false,
        }
    }

    /// The value as a column of `sql_type` in code page 1252 stores it; see [`Value::stored_in`].
    ///
    /// # Errors
    /// As there.
    pub fn stored(self, sql_type: &SqlType) -> SqlResult<Self> {
        self.stored_in(sql_type, DEFAULT_COLLATION.code_page)
    }

    /// The value as a column of `sql_type` stores it: padded, rounded to the column's scale. The
    /// length of a `char` or `varchar` counts bytes of the code page of its collation.
    ///
    /// # Errors
    /// 206 for a value of another type, 8115 for a number out of range, 2628 for one too long.
    /// The message names the type, never the value.
    pub fn stored_in(self, sql_type: &SqlType, code_page: u16) -> SqlResult<Self> {
        use SqlType as T;
        match (self, sql_type) {
            (Self::Null, _) => Ok(Self::Null),
            (value @ Self::Bit(_), T::Bit) | (value @ Self::Uuid(_), T::UniqueIdentifier) => {
                Ok(value)
            }
            (Self::Int(number), T::TinyInt | T::SmallInt | T::Int | T::BigInt) => {
                let fits = match sql_type {
                    T::TinyInt => u8::try_from(number).is_ok(),
                    T::SmallInt => i16::try_from(number).is_ok(),
                    T::Int => i32::try_from(number).is_ok(),
                    _ => true,
                };
                ranged(fits, Self::Int(number), sql_type)
            }
            (value @ Self::Real(number), T::Real) => ranged(number.is_finite(), value, sql_type),
            (value @ Self::Float(number), T::Float) => ranged(number.is_finite(), value, sql_type),
            (value @ Self::Decimal(digits), T::Decimal { precision, .. }) => {
                ranged(within(digits.into(), *precision), value, sql_type)
            }
            (value @ Self::Decimal(digits), T::Money) => {
                ranged(i64::try_from(i128::from(digits)).is_ok(), value, sql_type)
            }
            (value @ Self::Decimal(digits), T::SmallMoney) => {
                ranged(i32::try_from(i128::from(digits)).is_ok(), value, sql_type)
            }
            (value @ Self::Date(days), T::Date) => {
                ranged((DAYS.0..=DAYS.1).contains(&days), value, sql_type)
            }
            (value @ Self::DateTime(time), T::DateTime) => {
                // 1753-01-01 and the last tick of 9999-12-31.
                let fits = (-1_391_904_000_000..=76_756_032_000_000).contains(&time.as_ticks());
                ranged(fits, value, sql_type)
            }
            (Self::DateTime2(ticks), T::SmallDateTime) => {
                Ok(Self::DateTime2(round(ticks, 600_000_000)))
            }
            (Self::DateTime2(ticks), T::DateTime2 { scale }) => {
                let fits = (i64::from(DAYS.0)..=i64::from(DAYS.1))
                    .contains(&ticks.div_euclid(TICKS_A_DAY));
                ranged(fits, Self::DateTime2(round_to(ticks, *scale)), sql_type)
            }
            (Self::DateTimeOffset { utc, offset_minutes }, T::DateTimeOffset { scale }) => ranged(
                offset_minutes.abs() <= 14 * 60,
                Self::DateTimeOffset { utc: round_to(utc, *scale), offset_minutes },
                sql_type,
            ),
            (Self::Time(ticks), T::Time { scale }) => ranged(
                (0..TICKS_A_DAY).contains(&ticks),
                // The last tick of a day never becomes the next midnight.
                Self::Time(round_to(ticks, *scale).min(TICKS_A_DAY - unit(*scale))),
                sql_type,
            ),
            (Self::Text(text), _) => stored_text(text, sql_type, code_page),
            (Self::Bytes(bytes), _) => stored_bytes(bytes, sql_type),
            _ => Err(clash(sql_type)),
        }
    }

    /// The value of a column after its type was altered from `from` to `to`.
    ///
    /// # Errors
    /// As for [`Value::stored`]; 206 for a conversion that the fake does not know.
    pub fn converted(&self, from: &SqlType, to: &SqlType) -> SqlResult<Self> {
        self.converted_in(from, to, DEFAULT_COLLATION.code_page)
    }

    /// The same in a column of a code page.
    ///
    /// # Errors
    /// As for [`Value::converted`].
    pub fn converted_in(&self, from: &SqlType, to: &SqlType, code_page: u16) -> SqlResult<Self> {
        use SqlType as T;
        let digits = |number: i128, scale: u8| -> SqlResult<Self> {
            let target = match to {
                T::Decimal { scale, .. } => *scale,
                _ => 4,
            };
            rescale(number, scale, target).map(Self::decimal).ok_or_else(|| overflow(to))
        };
        let value = match (self, to) {
            (Self::Null, _) => Self::Null,
            (Self::Int(number), T::Decimal { .. } | T::Money | T::SmallMoney) => {
                digits(i128::from(*number), 0)?
            }
            #[allow(clippy::cast_precision_loss, reason = "as the server converts")]
            (Self::Int(number), T::Float) => Self::Float(*number as f64),
            (Self::Real(number), T::Float) => Self::Float(f64::from(*number)),
            (Self::Decimal(number), T::Decimal { .. } | T::Money | T::SmallMoney) => {
                digits((*number).into(), scale_of(from))?
            }
            (Self::Date(days), T::DateTime2 { .. } | T::SmallDateTime) => {
                Self::DateTime2(i64::from(*days).saturating_mul(TICKS_A_DAY))
            }
            (Self::Int(number), T::Char(_) | T::NChar(_) | T::VarChar(_) | T::NVarChar(_)) => {
                Self::text(&number.to_string())
            }
            (Self::Decimal(number), T::Char(_) | T::NChar(_) | T::VarChar(_) | T::NVarChar(_)) => {
                Self::text(&decimal_text((*number).into(), scale_of(from)))
            }
            (value, _) => value.clone(),
        };
        value.stored_in(to, code_page)
    }

    /// Microseconds since 1970-01-01 of a date with time, cut below the microsecond.
    #[must_use]
    pub fn micros(&self) -> Option<i64> {
        match self {
            Self::DateTime(time) => time.wall().map(|wall| wall.and_utc().timestamp_micros()),
            Self::DateTime2(ticks) | Self::DateTimeOffset { utc: ticks, .. } => {
                Some(ticks.div_euclid(TICKS_A_MICRO))
            }
            _ => None,
        }
    }
}

/// Digits behind the decimal point of an exact number type.
#[must_use]
pub(crate) const fn scale_of(sql_type: &SqlType) -> u8 {
    match sql_type {
        SqlType::Decimal { scale, .. } => *scale,
        SqlType::Money | SqlType::SmallMoney => 4,
        _ => 0,
    }
}

/// `number` at scale `from` at scale `to`, rounded half away from zero.
fn rescale(number: i128, from: u8, to: u8) -> Option<i128> {
    if to >= from {
        return number.checked_mul(10_i128.checked_pow(u32::from(to - from))?);
    }
    let unit = 10_i128.checked_pow(u32::from(from - to))?;
    Some(number.signum() * ((number.abs() + unit / 2) / unit))
}

fn within(number: i128, precision: u8) -> bool {
    10_u128.checked_pow(u32::from(precision)).is_none_or(|limit| number.unsigned_abs() < limit)
}

/// 100 ns in the least step of a type with `scale` fractional digits.
pub(crate) fn unit(scale: u8) -> i64 {
    10_i64.pow(u32::from(7_u8.saturating_sub(scale)))
}

fn round_to(ticks: i64, scale: u8) -> i64 {
    round(ticks, unit(scale))
}

fn round(ticks: i64, unit: i64) -> i64 {
    ticks.saturating_add(unit / 2).div_euclid(unit).saturating_mul(unit)
}

fn stored_text(text: Arc<str>, sql_type: &SqlType, code_page: u16) -> SqlResult<Value> {
    use SqlType as T;
    let (limit, pads) = match sql_type {
        T::Char(limit) | T::NChar(limit) => (*limit, true),
        T::VarChar(Length::Limited(limit)) | T::NVarChar(Length::Limited(limit)) => (*limit, false),
        T::VarChar(Length::Max) | T::NVarChar(Length::Max) | T::Text | T::NText | T::Xml => {
            return Ok(Value::Text(text));
        }
        _ => return Err(clash(sql_type)),
    };
    let limit = usize::from(limit);
    // Bytes of UTF-8 are an upper bound of both counts: most texts need no second look.
    if !pads && text.len() <= limit {
        return Ok(Value::Text(text));
    }
    let length = match sql_type {
        T::Char(_) | T::VarChar(_) => code_page::encode(&text, code_page).len(),
        _ => text.encode_utf16().count(),
    };
    if length > limit {
        return Err(truncated(sql_type));
    }
    if pads && length < limit {
        let mut padded = String::from(&*text);
        padded.extend(std::iter::repeat_n(' ', limit - length));
        return Ok(Value::Text(padded.into()));
    }
    Ok(Value::Text(text))
}

fn stored_bytes(bytes: Arc<[u8]>, sql_type: &SqlType) -> SqlResult<Value> {
    use SqlType as T;
    let limit = match sql_type {
        T::Binary(limit) | T::VarBinary(Length::Limited(limit)) => usize::from(*limit),
        T::VarBinary(Length::Max) | T::Image => usize::MAX,
        T::RowVersion => 8,
        _ => return Err(clash(sql_type)),
    };
    if bytes.len() > limit {
        return Err(truncated(sql_type));
    }
    if matches!(sql_type, T::Binary(_)) && bytes.len() < limit {
        let mut padded = bytes.to_vec();
        padded.resize(limit, 0);
        return Ok(Value::Bytes(padded.into()));
    }
    Ok(Value::Bytes(bytes))
}

fn ranged(fits: bool, value: Value, sql_type: &SqlType) -> SqlResult<Value> {
    if fits { Ok(value) } else { Err(overflow(sql_type)) }
}

fn overflow(sql_type: &SqlType) -> SqlError {
    SqlError::new(number::OVERFLOW, format!("arithmetic overflow converting to {sql_type}"))
}

fn truncated(sql_type: &SqlType) -> SqlError {
    SqlError::new(
        number::TRUNCATED,
        format!("string or binary data would be truncated in {sql_type}"),
    )
}

fn clash(sql_type: &SqlType) -> SqlError {
    SqlError::new(
        number::OPERAND_CLASH,
        format!("operand type clash: value is incompatible with {sql_type}"),
    )
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Self::Int(number.into())
    }
}

impl From<bool> for Value {
    fn from(bit: bool) -> Self {
        Self::Bit(bit)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_stored_as_its_column_stores_it() {
        use SqlType as T;
        let text = Value::text;
        for (given, sql_type, stored) in [
            (text("ab"), T::Char(4), text("ab  ")),
            (text("ab"), T::VarChar(Length::Limited(2)), text("ab")),
            (Value::bytes(&[1]), T::Binary(3), Value::bytes(&[1, 0, 0])),
            (Value::DateTime2(12_345_678), T::DateTime2 { scale: 3 }, Value::DateTime2(12_350_000)),
            (
                Value::Time(TICKS_A_DAY - 1),
                T::Time { scale: 0 },
                Value::Time(TICKS_A_DAY - 10_000_000),
            ),
            (Value::decimal(-99), T::Decimal { precision: 2, scale: 1 }, Value::decimal(-99)),
        ] {
            assert_eq!(given.stored(&sql_type), Ok(stored), "{sql_type}");
        }
    }

    #[test]
    fn a_value_that_its_column_cannot_hold_is_refused_with_the_servers_number() {
        use SqlType as T;
        for (given, sql_type, number) in [
            (Value::Int(256), T::TinyInt, number::OVERFLOW),
            (Value::Int(-1), T::TinyInt, number::OVERFLOW),
            (Value::Int(1 << 40), T::Int, number::OVERFLOW),
            (Value::decimal(100), T::Decimal { precision: 2, scale: 0 }, number::OVERFLOW),
            (Value::Float(f64::NAN), T::Float, number::OVERFLOW),
            (Value::text("abc"), T::NVarChar(Length::Limited(2)), number::TRUNCATED),
            (Value::text("\u{1F600}"), T::NVarChar(Length::Limited(1)), number::TRUNCATED),
            (Value::bytes(&[1, 2]), T::Binary(1), number::TRUNCATED),
            (Value::text("1"), T::Int, number::OPERAND_CLASH),
            (Value::Int(1), T::Bit, number::OPERAND_CLASH),
        ] {
            let error = given.stored(&sql_type).expect_err("refused");
            assert_eq!(error.number, number, "{sql_type}");
        }
        let (one, two) = (T::VarChar(Length::Limited(1)), T::VarChar(Length::Limited(2)));
        assert!(Value::text("\u{e9}").stored(&one).is_ok());
        // In other pages the same letters are more bytes.
        let refused = |value: Value, sql_type: &T, page| {
            value.stored_in(sql_type, page).map(|_| ()).map_err(|error| error.number)
        };
        let utf8 = code_page::UTF_8;
        assert_eq!(refused(Value::text("\u{e9}"), &one, utf8), Err(number::TRUNCATED));
        assert_eq!(refused(Value::text("\u{e9}"), &two, utf8), Ok(()));
        assert_eq!(refused(Value::text("\u{6f22}"), &one, 932), Err(number::TRUNCATED));
        assert_eq!(refused(Value::text("\u{6f22}"), &two, 932), Ok(()));
        assert_eq!(refused(Value::text("\u{ff76}"), &one, 932), Ok(()), "of one byte");
        let padded = Value::text("\u{6f22}").stored_in(&T::Char(4), 932).expect("fits");
        assert_eq!(padded, Value::text("\u{6f22}  "));
    }

    #[test]
    fn a_value_that_passes_the_quick_look_is_stored_as_it_is() {
        use SqlType as T;
        let limited = T::NVarChar(Length::Limited(3));
        for (value, sql_type, passes) in [
            (Value::Null, T::Int, true),
            (Value::Int(i64::MAX), T::BigInt, true),
            (Value::Int(1 << 31), T::Int, false),
            (Value::Int(1 << 15), T::SmallInt, false),
            (Value::Float(f64::INFINITY), T::Float, false),
            (Value::text("abc"), limited.clone(), true),
            (Value::text("abcd"), limited, false),
            (Value::text("a"), T::Char(2), false),
        ] {
            assert_eq!(value.is_stored_as(&sql_type), passes, "{sql_type}");
            if passes {
                assert_eq!(value.clone().stored(&sql_type), Ok(value));
            }
        }
    }

    #[test]
    fn altering_a_type_converts_or_refuses() {
        use SqlType as T;
        let dec = |precision, scale| T::Decimal { precision, scale };
        for (value, from, to, result) in [
            (Value::Int(5), T::Int, T::BigInt, Some(Value::Int(5))),
            (Value::Int(300), T::Int, T::TinyInt, None),
            (Value::Int(5), T::Int, dec(5, 2), Some(Value::decimal(500))),
            (Value::decimal(-125), dec(5, 2), dec(5, 1), Some(Value::decimal(-13))),
            (Value::decimal(-5), dec(5, 2), T::VarChar(Length::Max), Some(Value::text("-0.05"))),
            (Value::text("x"), T::VarChar(Length::Max), T::Int, None),
        ] {
            assert_eq!(value.converted(&from, &to).ok(), result, "{from} -> {to}");
        }
    }

    #[test]
    fn a_cell_stays_small() {
        assert_eq!(std::mem::size_of::<Value>(), 24);
        for number in [i128::MIN, -1, 0, 1 << 64, i128::MAX] {
            assert_eq!(i128::from(Unscaled::from(number)), number);
        }
    }
}
