//! One value in a form that compares: independent of widths and encodings that adapters choose.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type,
    },
};
use arrow_schema::{DataType, TimeUnit};

use crate::outcome::Failure;

/// One value. Integers of every width are one kind; floating-point numbers compare by their bits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    /// NULL.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// The bits of a 32-bit floating-point number.
    Real(u32),
    /// The bits of a 64-bit floating-point number.
    Float(u64),
    /// A decimal: the digits as a whole number, and how many of them stand behind the point.
    Decimal(i128, i8),
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since 1970-01-01, without a zone.
    Wall(i64),
    /// Microseconds since 1970-01-01T00:00:00Z.
    Instant(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Cell {
    /// Text.
    #[must_use]
    pub fn text(value: impl Into<String>) -> Self {
        Self::Text(value.into())
    }

    /// A 32-bit floating-point number.
    #[must_use]
    pub fn real(value: f32) -> Self {
        Self::Real(value.to_bits())
    }

    /// A 64-bit floating-point number.
    #[must_use]
    pub fn float(value: f64) -> Self {
        Self::Float(value.to_bits())
    }

    /// True for NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value in row `row` of an array; NULL behind its end.
    ///
    /// # Errors
    /// When no cell has the array's type.
    pub fn of(array: &dyn Array, row: usize) -> Result<Self, Failure> {
        if row >= array.len() || array.is_null(row) || array.data_type() == &DataType::Null {
            return Ok(Self::Null);
        }
        Ok(match array.data_type() {
            DataType::Boolean => Self::Bool(array.as_boolean().value(row)),
            DataType::Int8 => Self::Int(array.as_primitive::<Int8Type>().value(row).into()),
            DataType::Int16 => Self::Int(array.as_primitive::<Int16Type>().value(row).into()),
            DataType::Int32 => Self::Int(array.as_primitive::<Int32Type>().value(row).into()),
            DataType::Int64 => Self::Int(array.as_primitive::<Int64Type>().value(row)),
            DataType::UInt8 => Self::Int(array.as_primitive::<UInt8Type>().value(row).into()),
            DataType::UInt16 => Self::Int(array.as_primitive::<UInt16Type>().value(row).into()),
            DataType::UInt32 => Self::Int(array.as_primitive::<UInt32Type>().value(row).into()),
            DataType::Float32 => Self::real(array.as_primitive::<Float32Type>().value(row)),
            DataType::Float64 => Self::float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Decimal128(_, scale) => {
                Self::Decimal(array.as_primitive::<Decimal128Type>().value(row), *scale)
            }
            DataType::Date32 => Self::Date(array.as_primitive::<Date32Type>().value(row)),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                let micros = array.as_primitive::<TimestampMicrosecondType>().value(row);
                match zone {
                    None => Self::Wall(micros),
                    Some(_) => Self::Instant(micros),
                }
            }
            DataType::Utf8 => Self::text(array.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => Self::text(array.as_string::<i64>().value(row)),
            DataType::Utf8View => Self::text(array.as_string_view().value(row)),
            DataType::Binary => Self::Bytes(array.as_binary::<i32>().value(row).to_vec()),
            DataType::LargeBinary => Self::Bytes(array.as_binary::<i64>().value(row).to_vec()),
            DataType::BinaryView => Self::Bytes(array.as_binary_view().value(row).to_vec()),
            DataType::FixedSizeBinary(_) => {
                Self::Bytes(array.as_fixed_size_binary().value(row).to_vec())
            }
            other => return Err(Failure::new(format!("no cell has the type {other}"))),
        })
    }
}

/// An array of `data_type` that holds `cells`.
///
/// # Errors
/// When a cell is no value of the type.
pub fn array(data_type: &DataType, cells: &[Cell]) -> Result<ArrayRef, Failure> {
    macro_rules! collect {
        ($array:ty, $form:pat $(if $only:expr)? => $value:expr) => {{
            let values = cells.iter().map(|cell| match cell {
                Cell::Null => Ok(None),
                $form $(if $only)? => Ok(Some($value)),
                other => Err(Failure::new(format!("{other:?} is no {data_type}"))),
            });
            values
                .collect::<Result<Vec<_>, Failure>>()
                .map(<$array>::from)
        }};
    }
    let narrow = |_| Failure::new(format!("a number is too large for {data_type}"));
    Ok(match data_type {
        DataType::Boolean => Arc::new(collect!(BooleanArray, Cell::Bool(v) => *v)?),
        DataType::Int16 => {
            Arc::new(collect!(Int16Array, Cell::Int(v) => i16::try_from(*v).map_err(narrow)?)?)
        }
        DataType::Int32 => {
            Arc::new(collect!(Int32Array, Cell::Int(v) => i32::try_from(*v).map_err(narrow)?)?)
        }
        DataType::Int64 => Arc::new(collect!(Int64Array, Cell::Int(v) => *v)?),
        DataType::Float32 => Arc::new(collect!(Float32Array, Cell::Real(v) => f32::from_bits(*v))?),
        DataType::Float64 => {
            Arc::new(collect!(Float64Array, Cell::Float(v) => f64::from_bits(*v))?)
        }
        DataType::Decimal128(precision, scale) => Arc::new(
            collect!(Decimal128Array, Cell::Decimal(v, own) if own == scale => *v)?
                .with_precision_and_scale(*precision, *scale)?,
        ),
        DataType::Date32 => Arc::new(collect!(Date32Array, Cell::Date(v) => *v)?),
        DataType::Timestamp(TimeUnit::Microsecond, None) => {
            Arc::new(collect!(TimestampMicrosecondArray, Cell::Wall(v) => *v)?)
        }
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) => Arc::new(
            collect!(TimestampMicrosecondArray, Cell::Instant(v) => *v)?
                .with_timezone(Arc::clone(zone)),
        ),
        DataType::Utf8 => Arc::new(collect!(StringArray, Cell::Text(v) => v.as_str())?),
        DataType::Binary => Arc::new(collect!(BinaryArray, Cell::Bytes(v) => v.as_slice())?),
        DataType::FixedSizeBinary(width) => {
            let values = cells.iter().map(|cell| match cell {
                Cell::Bytes(bytes) => Some(bytes.as_slice()),
                _ => None,
            });
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *width)?)
        }
        other => return Err(Failure::new(format!("no cell has the type {other}"))),
    })
}
