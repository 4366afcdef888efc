//! Values drawn from an input: SQL types, Arrow types, columns with NULLs, marks.

use std::sync::Arc;

use arbitrary::{Result, Unstructured};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, LargeStringArray, RecordBatch, RecordBatchOptions, StringArray, StringViewArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampNanosecondArray,
    TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, new_null_array, types::Int32Type,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use cdc_core::{Epoch, Length, Mark, Position, SqlType, Timestamp};

/// In every text that is drawn as a cell; no message may show it.
pub const CELL: &str = "cell-planted";

/// A type as a source may declare it, and as it may not.
pub fn sql_type(input: &mut Unstructured<'_>) -> Result<SqlType> {
    let length = |input: &mut Unstructured<'_>| -> Result<Length> {
        Ok(if input.arbitrary()? { Length::Max } else { Length::Limited(input.arbitrary()?) })
    };
    Ok(match input.int_in_range(0..=28u8)? {
        0 => SqlType::Bit,
        1 => SqlType::TinyInt,
        2 => SqlType::SmallInt,
        3 => SqlType::Int,
        4 => SqlType::BigInt,
        5 => SqlType::Real,
        6 => SqlType::Float,
        7 | 8 => SqlType::Decimal { precision: input.arbitrary()?, scale: input.arbitrary()? },
        9 => SqlType::Decimal {
            precision: input.int_in_range(1..=38)?,
            scale: input.int_in_range(0..=38)?,
        },
        10 => SqlType::Money,
        11 => SqlType::SmallMoney,
        12 => SqlType::Date,
        13 => SqlType::DateTime,
        14 => SqlType::SmallDateTime,
        15 => SqlType::DateTime2 { scale: input.arbitrary()? },
        16 => SqlType::DateTimeOffset { scale: input.arbitrary()? },
        17 => SqlType::Time { scale: input.arbitrary()? },
        18 => SqlType::Char(input.arbitrary()?),
        19 => SqlType::VarChar(length(input)?),
        20 => SqlType::NVarChar(length(input)?),
        21 => SqlType::NText,
        22 => SqlType::Xml,
        23 => SqlType::UniqueIdentifier,
        24 => SqlType::Binary(input.arbitrary()?),
        25 => SqlType::VarBinary(length(input)?),
        26 => SqlType::Image,
        27 => SqlType::RowVersion,
        _ => SqlType::Other("geography".into()),
    })
}

/// A type that columns of a Delta table have.
pub fn stored_type(input: &mut Unstructured<'_>) -> Result<DataType> {
    Ok(match input.int_in_range(0..=11u8)? {
        0 => DataType::Boolean,
        1 => DataType::Int16,
        2 => DataType::Int32,
        3 => DataType::Int64,
        4 => DataType::Float32,
        5 => DataType::Float64,
        6 => DataType::Date32,
        7 => DataType::Timestamp(TimeUnit::Microsecond, None),
        8 => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        9 => DataType::Utf8,
        10 => DataType::Binary,
        _ => {
            let precision = input.int_in_range(1..=38u8)?;
            let scale = input.int_in_range(0..=precision)?;
            DataType::Decimal128(precision, i8::try_from(scale).unwrap())
        }
    })
}

fn cells<T>(
    input: &mut Unstructured<'_>,
    rows: usize,
    mut cell: impl FnMut(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Vec<Option<T>>> {
    (0..rows).map(|_| if input.ratio(1, 5)? { Ok(None) } else { cell(input).map(Some) }).collect()
}

fn text(input: &mut Unstructured<'_>) -> Result<String> {
    let length = input.int_in_range(0..=40usize)?;
    Ok(format!("{}{CELL}", String::from_utf8_lossy(input.bytes(length)?)))
}

fn bytes(input: &mut Unstructured<'_>, length: usize) -> Result<Vec<u8>> {
    Ok(input.bytes(length)?.to_vec())
}

/// A decimal with any number of digits, within its precision or not.
fn digits(input: &mut Unstructured<'_>) -> Result<i128> {
    let number: i128 = input.arbitrary()?;
    Ok(number >> input.int_in_range(0..=127u32)?)
}

fn micros(input: &mut Unstructured<'_>) -> Result<i64> {
    let number: i64 = input.arbitrary()?;
    Ok(number >> input.int_in_range(0..=40u32)?)
}

/// A column of one of the types that Delta tables hold, its values anywhere in the type.
pub fn stored(input: &mut Unstructured<'_>, data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    Ok(match data_type {
        DataType::Boolean => Arc::new(BooleanArray::from(cells(input, rows, |i| i.arbitrary())?)),
        DataType::Int16 => Arc::new(Int16Array::from(cells(input, rows, |i| i.arbitrary())?)),
        DataType::Int32 => Arc::new(Int32Array::from(cells(input, rows, |i| i.arbitrary())?)),
        DataType::Int64 => Arc::new(Int64Array::from(cells(input, rows, micros)?)),
        DataType::Float32 => Arc::new(Float32Array::from(cells(input, rows, |i| i.arbitrary())?)),
        DataType::Float64 => Arc::new(Float64Array::from(cells(input, rows, |i| i.arbitrary())?)),
        DataType::Date32 => Arc::new(Date32Array::from(cells(input, rows, |i| {
            let days: i32 = i.arbitrary()?;
            Ok(days >> i.int_in_range(0..=20u32)?)
        })?)),
        DataType::Timestamp(_, zone) => {
            let array = TimestampMicrosecondArray::from(cells(input, rows, micros)?);
            Arc::new(array.with_timezone_opt(zone.clone()))
        }
        DataType::Utf8 => Arc::new(StringArray::from(cells(input, rows, text)?)),
        DataType::Binary => {
            let cells = cells(input, rows, |i| bytes(i, 5))?;
            Arc::new(BinaryArray::from_iter(cells.iter().map(Option::as_deref)))
        }
        DataType::Decimal128(precision, scale) => {
            let array = Decimal128Array::from(cells(input, rows, digits)?);
            // The precision is a promise that the values may break.
            Arc::new(array.with_precision_and_scale(*precision, *scale).unwrap())
        }
        other => new_null_array(other, rows),
    })
}

/// A column of any type that a batch may come with.
pub fn foreign(input: &mut Unstructured<'_>, rows: usize) -> Result<ArrayRef> {
    Ok(match input.int_in_range(0..=14u8)? {
        0 => Arc::new(Int8Array::from(cells(input, rows, |i| i.arbitrary())?)),
        1 => Arc::new(UInt8Array::from(cells(input, rows, |i| i.arbitrary())?)),
        2 => Arc::new(UInt16Array::from(cells(input, rows, |i| i.arbitrary())?)),
        3 => Arc::new(UInt32Array::from(cells(input, rows, |i| i.arbitrary())?)),
        4 => Arc::new(TimestampSecondArray::from(cells(input, rows, micros)?)),
        5 => Arc::new(TimestampMillisecondArray::from(cells(input, rows, micros)?)),
        6 => {
            let array = TimestampNanosecondArray::from(cells(input, rows, micros)?);
            Arc::new(array.with_timezone("UTC"))
        }
        7 => Arc::new(LargeStringArray::from(cells(input, rows, text)?)),
        8 => Arc::new(StringViewArray::from_iter(cells(input, rows, text)?)),
        9 => {
            let cells = cells(input, rows, text)?;
            let texts = cells.iter().map(Option::as_deref);
            Arc::new(texts.collect::<DictionaryArray<Int32Type>>())
        }
        10 => positions(input, rows)?,
        11 => new_null_array(&DataType::Null, rows),
        _ => {
            let data_type = stored_type(input)?;
            stored(input, &data_type, rows)?
        }
    })
}

/// A column of fixed-width bytes: few values, so that some stand together.
pub fn positions(input: &mut Unstructured<'_>, rows: usize) -> Result<ArrayRef> {
    let width = input.choose(&[10, 10, 10, 10, 0, 1, 8, 24, 25])?;
    let with_nulls = input.ratio(1, 4)?;
    let cells = (0..rows).map(|_| {
        let value = vec![input.int_in_range(0..=3u8)?; usize::try_from(*width).unwrap()];
        Ok(if with_nulls && input.arbitrary()? { None } else { Some(value) })
    });
    let cells = cells.collect::<Result<Vec<_>>>()?;
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(cells.into_iter(), *width);
    Ok(Arc::new(array.unwrap()))
}

/// A batch of the named columns.
pub fn batch(columns: Vec<(String, ArrayRef)>, rows: usize) -> RecordBatch {
    let field =
        |(name, array): &(String, ArrayRef)| Field::new(name, array.data_type().clone(), true);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(schema), arrays, &options).unwrap()
}

/// A position of any width.
pub fn position(input: &mut Unstructured<'_>) -> Result<Position> {
    let width = input.int_in_range(1..=Position::WIDTH_MAX)?;
    Ok(Position::new(Epoch(input.arbitrary()?), input.bytes(width)?).unwrap())
}

/// A moment, or none.
pub fn moment(input: &mut Unstructured<'_>) -> Result<Option<Timestamp>> {
    Ok(input.arbitrary::<Option<i64>>()?.map(Timestamp::from_micros))
}

/// A mark that a table can have.
pub fn mark(input: &mut Unstructured<'_>) -> Result<Mark> {
    Ok(Mark {
        sequence: input.arbitrary::<u64>()?.max(2) >> 1,
        end: position(input)?,
        commit_time: moment(input)?,
        generation: input.arbitrary()?,
        // Last, so that kept inputs mean what they meant.
        entry_time: moment(input)?,
    })
}
