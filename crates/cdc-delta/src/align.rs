//! Rows in the exact form of a table's data files.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Decimal128Array, FixedSizeBinaryArray, Int32Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow_buffer::{Buffer, OffsetBuffer};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, FieldRef};
use cdc_core::{
    Error, ErrorKind, Origin, Result, Stamp, TableBatch, Timestamp,
    change::{ChangeColumns, field},
    table::RESERVED_COLUMNS,
};

use crate::{
    log::Layout,
    schema::{fits, spelled},
};

/// `batch` with the columns of `layout`, matched by name ignoring case, cast to their types.
///
/// `sequence` is the number of the batch the rows will be committed in.
pub(crate) fn align(
    table: &str,
    layout: &Layout,
    batch: &TableBatch,
    sequence: u64,
) -> Result<RecordBatch> {
    let rows = batch.records.num_rows();
    let own = match batch.origin {
        Origin::Changes => OwnColumns::of_changes(table, &batch.records, sequence)?,
        Origin::Snapshot(stamp) => OwnColumns::of_snapshot(rows, stamp, stamp.position, None),
        Origin::Chunk { snapshot, stamp, index } => {
            OwnColumns::of_snapshot(rows, stamp, snapshot, Some(index))
        }
    };
    let instance = constant(rows, Some(batch.instance.as_str()));
    let first = match batch.origin {
        Origin::Changes => field::COUNT,
        Origin::Snapshot(_) | Origin::Chunk { .. } => 0,
    };
    let captured = Captured::of(table, &batch.records, first, layout)?;
    let mut columns = Vec::with_capacity(layout.logical.fields().len());
    for (logical, physical) in layout.logical.fields().iter().zip(layout.physical.fields()) {
        let array = match logical.name().as_str() {
            "_capture_instance" => Arc::clone(&instance),
            name => match own.get(name) {
                Some(array) => array,
                None => captured.get(table, logical, rows)?,
            },
        };
        // A library column of another type is somebody's rewrite of the table.
        if array.data_type() != physical.data_type() {
            return Err(wrong_type(table, logical, array.data_type()));
        }
        columns.push(array);
    }
    RecordBatch::try_new(Arc::clone(&layout.physical), columns).map_err(|error| {
        Error::new(ErrorKind::InvalidData, "rows do not fit the target's columns")
            .with("table", table)
            .caused_by(match error {
                // Other texts may hold values.
                ArrowError::InvalidArgumentError(text) => text,
                _ => "arrow".into(),
            })
    })
}

/// The columns that the library fills.
struct OwnColumns {
    columns: Vec<(&'static str, ArrayRef)>,
}

impl OwnColumns {
    fn of_changes(table: &str, records: &RecordBatch, sequence: u64) -> Result<Self> {
        let changes = ChangeColumns::of(records)?;
        let rows = changes.len();
        let number = i32::try_from(sequence).map_err(|_| {
            Error::new(ErrorKind::Unsupported, "the batch's number does not fit _batch_id")
                .with("table", table)
                .with("batch", sequence)
                .remedy("load the table into a new target; its batches count from 1 again")
        })?;
        Ok(Self {
            columns: vec![
                ("_start_lsn", Arc::new(hex(changes.commits))),
                ("_seqval", Arc::new(hex(changes.sequences))),
                ("_operation", Arc::new(changes.operations.clone())),
                ("_command_id", Arc::new(changes.commands.clone())),
                ("_commit_ts", Arc::new(changes.times.clone())),
                ("_batch_id", Arc::new(Int32Array::from_value(number, rows))),
                ("_snapshot", constant(rows, None)),
                ("_chunk", new_null_array(&DataType::Int32, rows)),
            ],
        })
    }

    fn of_snapshot(
        rows: usize,
        stamp: Stamp,
        snapshot: cdc_core::Position,
        chunk: Option<i32>,
    ) -> Self {
        let time = stamp.commit_time.map(Timestamp::as_micros);
        let time: TimestampMicrosecondArray = std::iter::repeat_n(time, rows).collect();
        let chunk: Int32Array = std::iter::repeat_n(chunk, rows).collect();
        Self {
            columns: vec![
                ("_start_lsn", constant(rows, Some(&stamp.position.to_string()))),
                ("_seqval", constant(rows, None)),
                ("_operation", Arc::new(Int32Array::from_value(0, rows))),
                ("_command_id", new_null_array(&DataType::Int32, rows)),
                ("_commit_ts", Arc::new(time)),
                ("_batch_id", new_null_array(&DataType::Int32, rows)),
                ("_snapshot", constant(rows, Some(&snapshot.to_string()))),
                ("_chunk", Arc::new(chunk)),
            ],
        }
    }

    fn get(&self, name: &str) -> Option<ArrayRef> {
        let found = self.columns.iter().find(|(own, _)| *own == name);
        found.map(|(_, array)| Arc::clone(array))
    }
}

/// The captured columns of a batch by folded name.
struct Captured<'a> {
    columns: Vec<(String, &'a ArrayRef)>,
}

impl<'a> Captured<'a> {
    fn of(table: &str, records: &'a RecordBatch, first: usize, layout: &Layout) -> Result<Self> {
        let known: std::collections::HashSet<_> =
            layout.logical.fields().iter().map(|field| field.name().to_lowercase()).collect();
        let mut columns: Vec<(String, &ArrayRef)> = Vec::with_capacity(records.num_columns());
        let schema = records.schema_ref();
        for (field, array) in schema.fields().iter().zip(records.columns()).skip(first) {
            let folded = field.name().to_lowercase();
            let fault = if RESERVED_COLUMNS.contains(&folded.as_str()) {
                (ErrorKind::InvalidData, "column bears a name that bronze uses itself")
            } else if columns.iter().any(|(other, _)| *other == folded) {
                (ErrorKind::InvalidData, "two columns differ only in case")
            } else if known.contains(&folded) {
                columns.push((folded, array));
                continue;
            } else {
                (ErrorKind::SchemaChanged, "the target lacks a column of the rows")
            };
            return Err(Error::new(fault.0, fault.1)
                .with("table", table)
                .with("column", field.name()));
        }
        Ok(Self { columns })
    }

    fn get(&self, table: &str, field: &FieldRef, rows: usize) -> Result<ArrayRef> {
        let folded = field.name().to_lowercase();
        let Some((_, array)) = self.columns.iter().find(|(name, _)| *name == folded) else {
            return Ok(new_null_array(field.data_type(), rows));
        };
        let (from, to) = (array.data_type(), field.data_type());
        if !fits(from, to) {
            return Err(wrong_type(table, field, from));
        }
        // The texts of arrow's errors may hold values and are left out.
        let out_of_range = || {
            Error::new(ErrorKind::InvalidData, "a value is outside its column's type")
                .with("table", table)
                .with("column", field.name())
                .with("type", spelled(to))
        };
        let cast = if from == to {
            Arc::clone(array)
        } else {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(array, to, &options).map_err(|_| out_of_range())?
        };
        if let (DataType::Decimal128(precision, _), Some(numbers)) =
            (to, cast.as_any().downcast_ref::<Decimal128Array>())
        {
            numbers.validate_decimal_precision(*precision).map_err(|_| out_of_range())?;
        }
        Ok(cast)
    }
}

fn wrong_type(table: &str, field: &FieldRef, found: &DataType) -> Error {
    Error::new(ErrorKind::SchemaChanged, "the target's column cannot take the rows' type")
        .with("table", table)
        .with("column", field.name())
        .with("target_type", spelled(field.data_type()))
        .with("found_type", spelled(found))
}

fn constant(rows: usize, text: Option<&str>) -> ArrayRef {
    let Some(text) = text else {
        return new_null_array(&DataType::Utf8, rows);
    };
    let offsets = OffsetBuffer::from_repeated_length(text.len(), rows);
    match StringArray::try_new(offsets, Buffer::from_vec(text.repeat(rows).into_bytes()), None) {
        Ok(texts) => Arc::new(texts),
        // Never: the buffer is as many times the text as there are rows.
        Err(_) => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, rows))),
    }
}

/// Positions in their text form: `0x` and upper-case hex digits.
fn hex(positions: &FixedSizeBinaryArray) -> StringArray {
    match positions.value_length() {
        10 => hex_of::<10, 22>(positions),
        // The log of no engine has other positions; a test of columns may.
        _ => positions.iter().map(|value| Some(hex_text(value?))).collect(),
    }
}

fn hex_text(value: &[u8]) -> String {
    let digits = value.iter().flat_map(|byte| digits(*byte));
    std::iter::once(b'0').chain([b'x']).chain(digits).map(char::from).collect()
}

/// `TEXT` is twice `WIDTH`, and two.
fn hex_of<const WIDTH: usize, const TEXT: usize>(positions: &FixedSizeBinaryArray) -> StringArray {
    let mut texts = vec![b'0'; positions.len() * TEXT];
    let (values, _) = positions.value_data().as_chunks::<WIDTH>();
    let (places, _) = texts.as_chunks_mut::<TEXT>();
    let mut text = [b'0'; TEXT];
    text[1] = b'x';
    let mut last = &[0; WIDTH];
    // What a NULL's place holds is not looked at.
    for (value, place) in values.iter().zip(places) {
        // The rows of one commit stand together.
        if value != last {
            let (_, pairs) = text.split_at_mut(2);
            let (pairs, _) = pairs.as_chunks_mut::<2>();
            for (pair, byte) in pairs.iter_mut().zip(value) {
                *pair = digits(*byte);
            }
            last = value;
        }
        *place = text;
    }
    let offsets = OffsetBuffer::from_repeated_length(TEXT, positions.len());
    let nulls = positions.nulls().cloned();
    // Never empty: the digits are text, and as many as the rows need.
    StringArray::try_new(offsets, Buffer::from_vec(texts), nulls)
        .unwrap_or_else(|_| StringArray::new_null(positions.len()))
}

/// The two upper-case hex digits of every byte.
#[allow(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "in bounds: a constant"
)]
const DIGITS: [[u8; 2]; 256] = {
    let mut table = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = [digit(byte as u8 >> 4), digit(byte as u8 & 0xF)];
        byte += 1;
    }
    table
};

fn digits(byte: u8) -> [u8; 2] {
    DIGITS.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The upper-case hex digit of a number below 16.
const fn digit(number: u8) -> u8 {
    if number < 10 { b'0' + number } else { b'A' - 10 + number }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        Float64Array, TimestampMillisecondArray, TimestampNanosecondArray, cast::AsArray,
        types::TimestampMicrosecondType,
    };
    use arrow_schema::{Field, Schema, TimeUnit};
    use cdc_core::{InstanceName, Lsn};

    use super::*;

    fn layout(data_type: DataType) -> Layout {
        let schema = Arc::new(Schema::new(vec![Field::new("c", data_type, true)]));
        Layout { logical: Arc::clone(&schema), physical: schema, measured: Arc::default() }
    }

    fn aligned(to: DataType, array: ArrayRef) -> Result<ArrayRef> {
        let field = Field::new("C", array.data_type().clone(), true);
        let batch = TableBatch {
            instance: InstanceName::new("dbo_t"),
            origin: Origin::Snapshot(Stamp { position: Lsn::ZERO.into(), commit_time: None }),
            records: RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array])
                .expect("a batch"),
        };
        align("t", &layout(to), &batch, 1).map(|batch| Arc::clone(batch.column(0)))
    }

    #[test]
    fn a_position_is_spelled_as_everywhere_else() {
        let lsns: Vec<Lsn> = (0..40_u128)
            .map(|number| Lsn::from_u128(number.pow(4) * 0x0102_0304_0506_0708).expect("fits"))
            .chain([Lsn::ZERO, Lsn::MAX, Lsn::MAX])
            .collect();
        let bytes = lsns.iter().map(|lsn| Some(*lsn.as_bytes())).chain([None, Some([0xAB; 10])]);
        let array =
            FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, 10).expect("ten bytes");
        let expected = lsns.iter().map(|lsn| Some(lsn.to_string()));
        let expected = expected.chain([None, Some(format!("0x{}", "AB".repeat(10)))]);
        assert_eq!(hex(&array), expected.collect::<StringArray>());
    }

    #[test]
    fn a_constant_stands_in_every_row() {
        for (rows, text) in [(0, "a"), (3, ""), (3, "dbo_Stra\u{df}e")] {
            let expected: StringArray = std::iter::repeat_n(Some(text), rows).collect();
            assert_eq!(constant(rows, Some(text)).as_string::<i32>(), &expected);
        }
    }

    #[test]
    fn times_of_every_unit_and_spelling_of_utc_are_the_same_moments() {
        let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let given: [ArrayRef; 3] = [
            Arc::new(TimestampNanosecondArray::from(vec![5_000_000]).with_timezone("+00:00")),
            Arc::new(TimestampMicrosecondArray::from(vec![5_000]).with_timezone("UTC")),
            Arc::new(TimestampMillisecondArray::from(vec![5]).with_timezone("UTC")),
        ];
        for array in given {
            let array = aligned(utc.clone(), array).expect("the same moment");
            assert_eq!(array.data_type(), &utc);
            assert_eq!(array.as_primitive::<TimestampMicrosecondType>().value(0), 5_000);
        }
    }

    #[test]
    fn a_type_that_loses_something_is_refused_with_both_names() {
        let wall = DataType::Timestamp(TimeUnit::Microsecond, None);
        let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        for (from, to) in [
            (wall.clone(), instant.clone()),
            (instant, wall),
            (DataType::Decimal128(10, 4), DataType::Decimal128(10, 2)),
            (DataType::Int64, DataType::Int32),
            (DataType::Float64, DataType::Float32),
            (DataType::Utf8, DataType::Binary),
        ] {
            let error = aligned(to.clone(), new_null_array(&from, 1)).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::SchemaChanged);
            assert_eq!(error.context("column"), Some("c"));
            assert_eq!(error.context("target_type"), Some(spelled(&to).as_str()));
            assert_eq!(error.context("found_type"), Some(spelled(&from).as_str()));
        }
        let float: ArrayRef = Arc::new(Float64Array::from(vec![1.5]));
        assert!(aligned(DataType::Decimal128(10, 2), float).is_err());
    }

    #[test]
    fn a_value_outside_its_type_is_refused_without_being_told() {
        let array = Decimal128Array::from(vec![123_456]);
        let array = array.with_precision_and_scale(38, 0).expect("fits").to_data();
        let wrong = array.into_builder().data_type(DataType::Decimal128(5, 0));
        let wrong = Decimal128Array::from(wrong.build().expect("same layout"));
        let error = aligned(DataType::Decimal128(5, 0), Arc::new(wrong)).expect_err("too long");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(!error.report().contains("123456"), "{}", error.report());
    }
}
