//! The form in which the in-memory sink stores rows, and how batches are brought into it.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    new_null_array,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use cdc_core::{
    Column, Error, ErrorKind, Origin, Result, TableBatch,
    change::{ChangeColumns, Operation, field},
};

/// The schema of a whole table: the leading columns, then the captured ones.
pub(super) fn table_schema(columns: &[Column]) -> Result<SchemaRef> {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let number = |name: &str| Field::new(name, DataType::Int32, true);
    let moment = DataType::Timestamp(TimeUnit::Microsecond, None);
    let mut fields = vec![
        text("_capture_instance"),
        text(field::START_LSN),
        text(field::SEQVAL),
        number(field::OPERATION),
        number(field::COMMAND_ID),
        Field::new(field::COMMIT_TS, moment, true),
        text("_snapshot"),
        number("_chunk"),
    ];
    for column in columns {
        fields.push(column.field()?);
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// Fails when a column of the target cannot take another's values.
pub(super) fn fits(table: &str, column: &Column, own: &Column) -> Result<()> {
    if column.sql_type.fits(&own.sql_type) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::SchemaChanged,
        "the column's type in the target cannot take the source's values",
    )
    .with("table", table)
    .with("column", &own.name)
    .with("type", &own.sql_type)
    .with("source_type", &column.sql_type))
}

/// A batch in the form of the table: leading columns, then those captured columns that the batch
/// has, with the table's names and types. Columns that it lacks stay out, so that a reader can
/// tell a value that was not given from one that is NULL.
pub(super) fn stored(table: &str, columns: &[Column], batch: &TableBatch) -> Result<RecordBatch> {
    let records = &batch.records;
    let skip = match batch.origin {
        Origin::Changes => field::COUNT,
        Origin::Snapshot(_) | Origin::Chunk { .. } => 0,
    };
    let mut arrays = lead(batch)?;
    let whole = table_schema(&[])?;
    let mut fields: Vec<_> = whole.fields().iter().cloned().collect();
    let given = records.schema_ref().fields().iter();
    for (given, array) in given.zip(records.columns()).skip(skip) {
        let folded = given.name().to_lowercase();
        let own = columns.iter().find(|column| column.name.to_lowercase() == folded).ok_or_else(
            || {
                Error::new(ErrorKind::SchemaChanged, "the target lacks a column")
                    .with("table", table)
                    .with("column", given.name())
            },
        )?;
        let own_field = own.field()?;
        arrays.push(cast(table, own, array, own_field.data_type())?);
        fields.push(Arc::new(own_field));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| Error::bug("batch has no row form").with("table", table).caused_by(error))
}

/// The batch with every column of `schema`, NULL where it has none.
pub(super) fn widen(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let arrays = schema.fields().iter().map(|field| {
        batch
            .column_by_name(field.name())
            .cloned()
            .unwrap_or_else(|| new_null_array(field.data_type(), batch.num_rows()))
    });
    RecordBatch::try_new(Arc::clone(schema), arrays.collect())
        .map_err(|error| Error::bug("stored rows do not fit their table").caused_by(error))
}

fn lead(batch: &TableBatch) -> Result<Vec<ArrayRef>> {
    let rows = batch.records.num_rows();
    let text = |value: Option<String>| -> ArrayRef {
        Arc::new(StringArray::from_iter(std::iter::repeat_n(value, rows)))
    };
    let number = |value: Option<i32>| -> ArrayRef {
        Arc::new(Int32Array::from_iter(std::iter::repeat_n(value, rows)))
    };
    let instance = text(Some(batch.instance.to_string()));
    let (snapshot, stamp, chunk) = match batch.origin {
        Origin::Changes => {
            let columns = ChangeColumns::of(&batch.records)?;
            let hex = |array: &arrow_array::FixedSizeBinaryArray| -> ArrayRef {
                Arc::new(StringArray::from_iter(array.iter().map(|bytes| bytes.map(position_text))))
            };
            return Ok(vec![
                instance,
                hex(columns.commits),
                hex(columns.sequences),
                Arc::new(columns.operations.clone()),
                Arc::new(columns.commands.clone()),
                Arc::new(columns.times.clone()),
                text(None),
                number(None),
            ]);
        }
        Origin::Snapshot(stamp) => (stamp.position, stamp, None),
        Origin::Chunk { snapshot, stamp, index } => (snapshot, stamp, Some(index)),
    };
    let time = stamp.commit_time.map(cdc_core::Timestamp::as_micros);
    Ok(vec![
        instance,
        text(Some(stamp.position.to_string())),
        text(None),
        number(Some(Operation::Read.code())),
        number(None),
        Arc::new(TimestampMicrosecondArray::from_iter(std::iter::repeat_n(time, rows))),
        text(Some(snapshot.to_string())),
        number(chunk),
    ])
}

fn position_text(bytes: &[u8]) -> String {
    use std::fmt::Write;

    bytes.iter().fold(String::from("0x"), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn cast(table: &str, own: &Column, array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let place = |error: Error| {
        error.with("table", table).with("column", &own.name).with("type", &own.sql_type)
    };
    if !widens(array.data_type(), to) {
        let message = "the batch holds another type than the target";
        return Err(
            place(Error::new(ErrorKind::SchemaChanged, message)).with("found", array.data_type())
        );
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    // The cause's text would carry the value.
    cast_with_options(array, to, &strict).map_err(|_| {
        place(Error::new(ErrorKind::InvalidData, "a value does not fit the target's type"))
    })
}

/// True when values of one type may become values of the other, checked one by one.
fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    matches!(
        (from, to),
        (T::Int16, T::Int32 | T::Int64 | T::Float64 | T::Decimal128(..))
            | (T::Int32, T::Int64 | T::Float64 | T::Decimal128(..))
            | (T::Int64, T::Decimal128(..))
            | (T::Float32, T::Float64)
            | (T::Decimal128(..), T::Decimal128(..))
            | (T::Date32, T::Timestamp(..))
    )
}
