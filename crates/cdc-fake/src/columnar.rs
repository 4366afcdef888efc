//! Between cells and Arrow: columns that are filled cell by cell, and cells of a key read back.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, RecordBatch,
    builder::{
        BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder,
        Float64Builder, Int16Builder, Int32Builder, Int64Builder, StringBuilder,
        TimestampMicrosecondBuilder,
    },
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType,
    },
};
use arrow_schema::{DataType, SchemaRef};
use cdc_core::{Column, Error, ErrorKind, Result, ServerTime, SqlType};

use crate::{
    text_form::{UuidText, time_from_text, time_text, uuid_from_text},
    value::{Unscaled, Value, scale_of},
};

/// One column of a batch in the making.
pub(crate) struct ColumnBuilder {
    name: String,
    sql_type: SqlType,
    cells: Cells,
}

enum Cells {
    Bool(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

impl ColumnBuilder {
    pub(crate) fn new(column: &Column, rows: usize) -> Result<Self> {
        let data_type = column.field()?.data_type().clone();
        let cells = match &data_type {
            DataType::Boolean => Cells::Bool(BooleanBuilder::with_capacity(rows)),
            DataType::Int16 => Cells::Int16(Int16Builder::with_capacity(rows)),
            DataType::Int32 => Cells::Int32(Int32Builder::with_capacity(rows)),
            DataType::Int64 => Cells::Int64(Int64Builder::with_capacity(rows)),
            DataType::Float32 => Cells::Float32(Float32Builder::with_capacity(rows)),
            DataType::Float64 => Cells::Float64(Float64Builder::with_capacity(rows)),
            DataType::Decimal128(..) => {
                Cells::Decimal(Decimal128Builder::with_capacity(rows).with_data_type(data_type))
            }
            DataType::Date32 => Cells::Date(Date32Builder::with_capacity(rows)),
            DataType::Timestamp(..) => Cells::Timestamp(
                TimestampMicrosecondBuilder::with_capacity(rows).with_data_type(data_type),
            ),
            DataType::Utf8 => Cells::Text(StringBuilder::with_capacity(rows, rows * 8)),
            DataType::Binary => Cells::Bytes(BinaryBuilder::with_capacity(rows, rows * 8)),
            other => {
                return Err(Error::bug("column type has no builder")
                    .with("column", &column.name)
                    .with("type", other));
            }
        };
        Ok(Self { name: column.name.clone(), sql_type: column.sql_type.clone(), cells })
    }

    pub(crate) fn append(&mut self, value: &Value) -> Result<()> {
        let fits = match (&mut self.cells, value) {
            (cells, Value::Null) => {
                cells.append_null();
                true
            }
            (Cells::Bool(cells), Value::Bit(bit)) => {
                cells.append_value(*bit);
                true
            }
            (Cells::Int16(cells), Value::Int(number)) => {
                fit(i16::try_from(*number).ok(), |number| cells.append_value(number))
            }
            (Cells::Int32(cells), Value::Int(number)) => {
                fit(i32::try_from(*number).ok(), |number| cells.append_value(number))
            }
            (Cells::Int64(cells), Value::Int(number)) => {
                cells.append_value(*number);
                true
            }
            (Cells::Float32(cells), Value::Real(number)) => {
                cells.append_value(*number);
                true
            }
            (Cells::Float64(cells), Value::Float(number)) => {
                cells.append_value(*number);
                true
            }
            (Cells::Decimal(cells), Value::Decimal(digits)) => {
                cells.append_value(i128::from(*digits));
                true
            }
            (Cells::Date(cells), Value::Date(days)) => {
                cells.append_value(*days);
                true
            }
            (Cells::Timestamp(cells), value) => {
                fit(value.micros(), |micros| cells.append_value(micros))
            }
            (Cells::Text(cells), value) => append_text(cells, value, &self.sql_type),
            (Cells::Bytes(cells), Value::Bytes(bytes)) => {
                cells.append_value(bytes);
                true
            }
            _ => false,
        };
        if fits {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidData,
            "a value does not fit the column's type; the column was altered",
        )
        .with("column", &self.name)
        .with("type", &self.sql_type))
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        match &mut self.cells {
            Cells::Bool(cells) => Arc::new(cells.finish()),
            Cells::Int16(cells) => Arc::new(cells.finish()),
            Cells::Int32(cells) => Arc::new(cells.finish()),
            Cells::Int64(cells) => Arc::new(cells.finish()),
            Cells::Float32(cells) => Arc::new(cells.finish()),
            Cells::Float64(cells) => Arc::new(cells.finish()),
            Cells::Decimal(cells) => Arc::new(cells.finish()),
            Cells::Date(cells) => Arc::new(cells.finish()),
            Cells::Timestamp(cells) => Arc::new(cells.finish()),
            Cells::Text(cells) => Arc::new(cells.finish()),
            Cells::Bytes(cells) => Arc::new(cells.finish()),
        }
    }
}

impl Cells {
    fn append_null(&mut self) {
        match self {
            Self::Bool(cells) => cells.append_null(),
            Self::Int16(cells) => cells.append_null(),
            Self::Int32(cells) => cells.append_null(),
            Self::Int64(cells) => cells.append_null(),
            Self::Float32(cells) => cells.append_null(),
            Self::Float64(cells) => cells.append_null(),
            Self::Decimal(cells) => cells.append_null(),
            Self::Date(cells) => cells.append_null(),
            Self::Timestamp(cells) => cells.append_null(),
            Self::Text(cells) => cells.append_null(),
            Self::Bytes(cells) => cells.append_null(),
        }
    }
}

fn fit<T>(value: Option<T>, append: impl FnMut(T)) -> bool {
    let fits = value.is_some();
    value.into_iter().for_each(append);
    fits
}

fn append_text(cells: &mut StringBuilder, value: &Value, sql_type: &SqlType) -> bool {
    match (value, sql_type) {
        (Value::Text(text), _) => cells.append_value(text),
        (Value::Uuid(uuid), SqlType::UniqueIdentifier) => {
            cells.append_value(UuidText(uuid).to_string());
        }
        (Value::Time(ticks), SqlType::Time { scale }) => {
            cells.append_value(time_text(*ticks, *scale));
        }
        _ => return false,
    }
    true
}

/// A batch from its columns.
pub(crate) fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>) -> Result<RecordBatch> {
    RecordBatch::try_new(Arc::clone(schema), columns)
        .map_err(|error| Error::bug("columns do not make a batch").caused_by(error))
}

/// The cell of a key column in a batch of one row.
pub(crate) fn key_cell(batch: &RecordBatch, column: &Column) -> Result<Value> {
    let wrong = || {
        Error::new(ErrorKind::Config, "key bound is not of the key column's type")
            .with("column", &column.name)
            .with("type", &column.sql_type)
    };
    let array = batch
        .schema_ref()
        .fields()
        .iter()
        .position(|field| field.name().eq_ignore_ascii_case(&column.name))
        .and_then(|at| batch.columns().get(at))
        .ok_or_else(wrong)?;
    if batch.num_rows() != 1 || *array.data_type() != column.sql_type.arrow()? {
        return Err(wrong());
    }
    if array.is_null(0) {
        return Ok(Value::Null);
    }
    cell(array, &column.sql_type).ok_or_else(wrong)
}

fn cell(array: &ArrayRef, sql_type: &SqlType) -> Option<Value> {
    use SqlType as T;
    Some(match array.data_type() {
        DataType::Boolean => Value::Bit(array.as_boolean_opt()?.value(0)),
        DataType::Int16 => Value::Int(array.as_primitive_opt::<Int16Type>()?.value(0).into()),
        DataType::Int32 => Value::Int(array.as_primitive_opt::<Int32Type>()?.value(0).into()),
        DataType::Int64 => Value::Int(array.as_primitive_opt::<Int64Type>()?.value(0)),
        DataType::Float32 => Value::Real(array.as_primitive_opt::<Float32Type>()?.value(0)),
        DataType::Float64 => Value::Float(array.as_primitive_opt::<Float64Type>()?.value(0)),
        DataType::Decimal128(_, scale) => {
            if *scale != i8::try_from(scale_of(sql_type)).ok()? {
                return None;
            }
            let digits = array.as_primitive_opt::<Decimal128Type>()?.value(0);
            Value::Decimal(Unscaled::from(digits))
        }
        DataType::Date32 => Value::Date(array.as_primitive_opt::<Date32Type>()?.value(0)),
        DataType::Timestamp(..) => {
            let micros = array.as_primitive_opt::<TimestampMicrosecondType>()?.value(0);
            match sql_type {
                // Microseconds were cut from the tick: the nearest tick is the one meant.
                T::DateTime => {
                    let wall = chrono::DateTime::from_timestamp_micros(micros)?.naive_utc();
                    Value::DateTime(ServerTime::nearest(wall))
                }
                T::DateTimeOffset { .. } => {
                    Value::DateTimeOffset { utc: micros.checked_mul(10)?, offset_minutes: 0 }
                }
                _ => Value::DateTime2(micros.checked_mul(10)?),
            }
        }
        DataType::Utf8 => {
            let text = array.as_string_opt::<i32>()?.value(0);
            match sql_type {
                T::UniqueIdentifier => Value::Uuid(uuid_from_text(text)?),
                T::Time { .. } => Value::Time(time_from_text(text)?),
                _ => Value::text(text),
            }
        }
        DataType::Binary => Value::bytes(array.as_binary_opt::<i32>()?.value(0)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use cdc_core::{Length, change::row_schema};

    use super::*;

    #[test]
    fn every_type_reads_back_as_the_cell_it_was() {
        use SqlType as T;
        let cells = [
            (T::Bit, Value::Bit(true)),
            (T::TinyInt, Value::Int(255)),
            (T::SmallInt, Value::Int(-5)),
            (T::Int, Value::Int(1 << 20)),
            (T::BigInt, Value::Int(i64::MIN)),
            (T::Real, Value::Real(0.5)),
            (T::Float, Value::Float(-0.25)),
            (T::Decimal { precision: 38, scale: 38 }, Value::decimal(-7)),
            (T::Money, Value::decimal(12_345)),
            (T::SmallMoney, Value::decimal(-1)),
            (T::Date, Value::Date(-1)),
            (T::DateTime, Value::DateTime(ServerTime::from_ticks(7))),
            (T::SmallDateTime, Value::DateTime2(600_000_000)),
            (T::DateTime2 { scale: 6 }, Value::DateTime2(-10)),
            (T::DateTimeOffset { scale: 6 }, Value::DateTimeOffset { utc: 10, offset_minutes: 0 }),
            (T::Time { scale: 7 }, Value::Time(1)),
            (T::NVarChar(Length::Max), Value::text("\u{e9}")),
            (T::UniqueIdentifier, Value::Uuid([7; 16])),
            (T::VarBinary(Length::Limited(3)), Value::bytes(&[0, 1])),
        ];
        for (sql_type, value) in cells {
            let column = Column::new("c", 1, sql_type, true);
            let mut builder = ColumnBuilder::new(&column, 1).expect("a column form");
            builder.append(&value).expect("fits");
            let schema = row_schema(std::slice::from_ref(&column)).expect("a column form");
            let batch = batch(&schema, vec![builder.finish()]).expect("the schema's type");
            assert_eq!(key_cell(&batch, &column).expect("same type"), value);
        }
    }

    #[test]
    fn the_seventh_digit_is_cut() {
        let column = Column::new("c", 1, SqlType::DateTime2 { scale: 7 }, true);
        let mut builder = ColumnBuilder::new(&column, 1).expect("a column form");
        builder.append(&Value::DateTime2(-1)).expect("fits");
        let array = builder.finish();
        assert_eq!(array.as_primitive::<TimestampMicrosecondType>().value(0), -1);
    }

    #[test]
    fn a_value_beyond_the_asked_type_is_an_error_that_names_the_column_only() {
        let column = Column::new("c", 1, SqlType::Int, true);
        let mut builder = ColumnBuilder::new(&column, 1).expect("a column form");
        let error = builder.append(&Value::Int(3_000_000_000)).expect_err("too big");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(!error.report().contains("3000000000"));
    }
}
