//! Columns of record batches, read cell by cell in the server's binary form.

use arrow_array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int16Array, Int32Array, Int64Array, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::DataType;

use crate::{
    binary::{self, Refusal},
    column_type::ColumnType,
    config::NulInText,
};

/// How a whole number is written.
#[derive(Clone, Copy)]
pub(crate) enum Whole {
    Two,
    Four,
    Eight,
    Double,
    Numeric,
}

/// How a text is written.
#[derive(Clone, Copy)]
pub(crate) enum Texts {
    Plain(NulInText),
    Uuid,
    Time,
}

/// The cells of one column, and how they are written.
pub(crate) enum Cells<'a> {
    /// The rows lack the column.
    Missing,
    Boolean(&'a BooleanArray),
    Int16(&'a Int16Array, Whole),
    Int32(&'a Int32Array, Whole),
    Int64(&'a Int64Array, Whole),
    /// The flag: as `double precision`.
    Real(&'a Float32Array, bool),
    Double(&'a Float64Array),
    Decimal(&'a Decimal128Array, u8, u8),
    /// The flag: as `timestamp`.
    Date(&'a Date32Array, bool),
    Moment(&'a TimestampMicrosecondArray),
    Text(&'a StringArray, Texts),
    Bytes(&'a BinaryArray),
}

/// What became of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Null,
    Value,
    /// A text in which so many U+0000 were replaced.
    Replaced(u64),
}

impl<'a> Cells<'a> {
    /// The cells of an array for a column of the target; none when the target does not take them.
    pub(crate) fn of(array: &'a dyn Array, to: &ColumnType, nul: NulInText) -> Option<Self> {
        if !to.takes_array(array.data_type()) {
            return None;
        }
        let any = array.as_any();
        let whole = || match to {
            ColumnType::SmallInt => Whole::Two,
            ColumnType::Integer => Whole::Four,
            ColumnType::BigInt => Whole::Eight,
            ColumnType::Double => Whole::Double,
            _ => Whole::Numeric,
        };
        Some(match array.data_type() {
            DataType::Boolean => Self::Boolean(any.downcast_ref()?),
            DataType::Int16 => Self::Int16(any.downcast_ref()?, whole()),
            DataType::Int32 => Self::Int32(any.downcast_ref()?, whole()),
            DataType::Int64 => Self::Int64(any.downcast_ref()?, whole()),
            DataType::Float32 => Self::Real(any.downcast_ref()?, *to == ColumnType::Double),
            DataType::Float64 => Self::Double(any.downcast_ref()?),
            DataType::Decimal128(precision, scale) => {
                Self::Decimal(any.downcast_ref()?, *precision, u8::try_from(*scale).ok()?)
            }
            DataType::Date32 => Self::Date(any.downcast_ref()?, *to == ColumnType::Timestamp),
            DataType::Timestamp(..) => Self::Moment(any.downcast_ref()?),
            DataType::Utf8 => {
                let texts = match to {
                    ColumnType::Uuid => Texts::Uuid,
                    ColumnType::Time => Texts::Time,
                    _ => Texts::Plain(nul),
                };
                Self::Text(any.downcast_ref()?, texts)
            }
            DataType::Binary => Self::Bytes(any.downcast_ref()?),
            _ => return None,
        })
    }

    /// True when the cell is NULL, or not there.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Missing => true,
            Self::Boolean(array) => array.is_null(row),
            Self::Int16(array, _) => array.is_null(row),
            Self::Int32(array, _) => array.is_null(row),
            Self::Int64(array, _) => array.is_null(row),
            Self::Real(array, _) => array.is_null(row),
            Self::Double(array) => array.is_null(row),
            Self::Decimal(array, ..) => array.is_null(row),
            Self::Date(array, _) => array.is_null(row),
            Self::Moment(array) => array.is_null(row),
            Self::Text(array, _) => array.is_null(row),
            Self::Bytes(array) => array.is_null(row),
        }
    }

    /// Appends the field of one row.
    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<Written, Refusal> {
        if self.is_null(row) {
            binary::null(out);
            return Ok(Written::Null);
        }
        match self {
            Self::Missing => binary::null(out),
            Self::Boolean(array) => binary::fixed([u8::from(array.value(row))], out),
            Self::Int16(array, to) => whole(array.value(row).into(), *to, out)?,
            Self::Int32(array, to) => whole(array.value(row).into(), *to, out)?,
            Self::Int64(array, to) => whole(array.value(row), *to, out)?,
            Self::Real(array, false) => binary::fixed(array.value(row).to_be_bytes(), out),
            Self::Real(array, true) => {
                binary::fixed(f64::from(array.value(row)).to_be_bytes(), out);
            }
            Self::Double(array) => binary::fixed(array.value(row).to_be_bytes(), out),
            Self::Decimal(array, precision, scale) => {
                binary::numeric(array.value(row), *precision, *scale, out)?;
            }
            Self::Date(array, false) => binary::date(array.value(row), out)?,
            Self::Date(array, true) => binary::day_as_moment(array.value(row), out)?,
            Self::Moment(array) => binary::moment(array.value(row), out)?,
            Self::Text(array, to) => return text(array.value(row), *to, out),
            Self::Bytes(array) => binary::raw(array.value(row), out)?,
        }
        Ok(Written::Value)
    }
}

fn whole(value: i64, to: Whole, out: &mut Vec<u8>) -> Result<(), Refusal> {
    // The target's type takes every value of the array's, so nothing is cut.
    match to {
        Whole::Two => {
            binary::fixed(i16::try_from(value).map_err(|_| Refusal::Digits)?.to_be_bytes(), out);
        }
        Whole::Four => {
            binary::fixed(i32::try_from(value).map_err(|_| Refusal::Digits)?.to_be_bytes(), out);
        }
        Whole::Eight => binary::fixed(value.to_be_bytes(), out),
        Whole::Double => {
            let exact = i32::try_from(value).map_err(|_| Refusal::Digits)?;
            binary::fixed(f64::from(exact).to_be_bytes(), out);
        }
        Whole::Numeric => binary::numeric(value.into(), 38, 0, out)?,
    }
    Ok(())
}

fn text(value: &str, to: Texts, out: &mut Vec<u8>) -> Result<Written, Refusal> {
    match to {
        Texts::Uuid => binary::uuid(value, out)?,
        Texts::Time => binary::time(value, out)?,
        Texts::Plain(nul) if value.as_bytes().contains(&0) => {
            if nul == NulInText::Refuse {
                return Err(Refusal::Nul);
            }
            let count = value.bytes().filter(|byte| *byte == 0).count();
            binary::raw(value.replace('\0', "\u{fffd}").as_bytes(), out)?;
            return Ok(Written::Replaced(u64::try_from(count).unwrap_or(u64::MAX)));
        }
        Texts::Plain(_) => binary::raw(value.as_bytes(), out)?,
    }
    Ok(Written::Value)
}
