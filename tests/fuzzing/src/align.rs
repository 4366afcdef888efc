//! Batches of foreign shape on their way into a bronze table.

use arbitrary::{Result, Unstructured};
use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
        Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type,
    },
};
use arrow_schema::{DataType, TimeUnit};
use cdc_core::{
    ErrorKind, InstanceName, Lsn, Origin, Stamp, TableBatch, change::field, table::RESERVED_COLUMNS,
};
use cdc_delta::fuzzing::{aligned, bronze_schema};

use crate::draw;

const ROWS_MAX: usize = 4;
const NAMES: [&str; 8] = ["a", "A", "b", "ä", "Ä", "_start_lsn", "_Chunk", "c"];

/// Runs one input: a table's captured columns and one batch.
pub fn run(data: &[u8]) {
    if let Ok((captured, batch, sequence)) = case(&mut Unstructured::new(data)) {
        check(&captured, &batch, sequence);
    }
}

type Case = (Vec<(String, DataType)>, TableBatch, u64);

fn case(input: &mut Unstructured<'_>) -> Result<Case> {
    let mut captured: Vec<(String, DataType)> = Vec::new();
    for _ in 0..input.int_in_range(0..=3)? {
        let (name, data_type) = (*input.choose(&NAMES)?, draw::stored_type(input)?);
        let taken = captured.iter().any(|(other, _)| other.to_lowercase() == name.to_lowercase());
        if !taken && !RESERVED_COLUMNS.contains(&name.to_lowercase().as_str()) {
            captured.push((name.to_owned(), data_type));
        }
    }
    let rows = input.int_in_range(0..=ROWS_MAX)?;
    let stamp = Stamp { position: Lsn::MAX.into(), commit_time: draw::moment(input)? };
    let origin = match input.int_in_range(0..=3u8)? {
        0 => Origin::Snapshot(stamp),
        1 => Origin::Chunk { snapshot: Lsn::ZERO.into(), stamp, index: input.arbitrary()? },
        _ => Origin::Changes,
    };
    let mut columns = Vec::new();
    if origin == Origin::Changes {
        columns = leading(input, rows)?;
    }
    for _ in 0..input.int_in_range(0..=3)? {
        let known = captured.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
        let name = if known.is_empty() || input.ratio(1, 8)? {
            *input.choose(&NAMES)?
        } else {
            *input.choose(&known)?
        };
        columns.push((name.to_owned(), draw::foreign(input, rows)?));
    }
    let records = draw::batch(columns, rows);
    let sequence = if input.ratio(1, 10)? { input.arbitrary()? } else { 7 };
    Ok((captured, TableBatch { instance: InstanceName::new("dbo_t"), origin, records }, sequence))
}

fn leading(input: &mut Unstructured<'_>, rows: usize) -> Result<Vec<(String, ArrayRef)>> {
    let int = DataType::Int32;
    let time = DataType::Timestamp(TimeUnit::Microsecond, None);
    Ok(vec![
        (field::START_LSN.into(), draw::positions(input, rows)?),
        (field::SEQVAL.into(), draw::positions(input, rows)?),
        (field::OPERATION.into(), draw::stored(input, &int, rows)?),
        (field::COMMAND_ID.into(), draw::stored(input, &int, rows)?),
        (field::COMMIT_TS.into(), draw::stored(input, &time, rows)?),
    ])
}

/// Rows come out in the table's exact form, every cell the value that it was, or the batch is
/// refused with the column and without a cell.
fn check(captured: &[(String, DataType)], batch: &TableBatch, sequence: u64) {
    let out = match aligned("t", captured, batch, sequence) {
        Ok(out) => out,
        Err(error) => {
            let allowed = matches!(
                error.kind(),
                ErrorKind::Bug
                    | ErrorKind::InvalidData
                    | ErrorKind::SchemaChanged
                    | ErrorKind::Unsupported
            );
            assert!(allowed, "{}", error.report());
            // A bug is a batch that lacks the leading fields or their values.
            let bug = error.kind() == ErrorKind::Bug;
            assert!(!bug || batch.origin == Origin::Changes, "{}", error.report());
            assert!(!error.report().contains(draw::CELL), "{}", error.report());
            return;
        }
    };
    assert_eq!(out.schema(), bronze_schema(captured));
    assert_eq!(out.num_rows(), batch.records.num_rows());
    let own = out.column_by_name("_start_lsn").unwrap();
    assert_eq!(own.null_count(), 0);
    let first = if batch.origin == Origin::Changes { field::COUNT } else { 0 };
    for (name, _) in captured {
        let to = out.column_by_name(name).unwrap();
        match given(&batch.records, first, name) {
            Some(from) => same(name, from, to),
            None => assert_eq!(to.null_count(), to.len(), "{name}"),
        }
    }
}

fn given<'a>(records: &'a RecordBatch, first: usize, name: &str) -> Option<&'a ArrayRef> {
    let at = (first..records.num_columns())
        .find(|at| records.schema_ref().field(*at).name().to_lowercase() == name.to_lowercase());
    at.map(|at| records.column(at))
}

/// A value in the one form that two types of one value have in common.
#[derive(Debug, PartialEq)]
enum Cell {
    Null,
    Flag(bool),
    /// A number with its digits behind the point.
    Exact(i128, i32),
    Float(f64),
    Micros(i128),
    Text(String),
    Bytes(Vec<u8>),
}

fn same(name: &str, from: &ArrayRef, to: &ArrayRef) {
    for row in 0..from.len() {
        let (a, b) = (cell(from, row), cell(to, row));
        let same = match (&a, &b) {
            (Cell::Exact(a, digits), Cell::Exact(b, more)) => {
                let scale = u32::try_from(more - digits).unwrap();
                a.checked_mul(10i128.pow(scale)) == Some(*b)
            }
            (Cell::Exact(a, 0), Cell::Float(b)) => *a as f64 == *b,
            (Cell::Float(a), Cell::Float(b)) => {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
            (a, b) => a == b,
        };
        assert!(same, "{name}: {a:?} {} became {b:?} {}", from.data_type(), to.data_type());
    }
}

fn cell(array: &ArrayRef, row: usize) -> Cell {
    if array.is_null(row) || array.data_type() == &DataType::Null {
        return Cell::Null;
    }
    macro_rules! value {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row)
        };
    }
    match array.data_type() {
        DataType::Boolean => Cell::Flag(array.as_boolean().value(row)),
        DataType::Int8 => Cell::Exact(value!(Int8Type).into(), 0),
        DataType::UInt8 => Cell::Exact(value!(UInt8Type).into(), 0),
        DataType::Int16 => Cell::Exact(value!(Int16Type).into(), 0),
        DataType::UInt16 => Cell::Exact(value!(UInt16Type).into(), 0),
        DataType::Int32 => Cell::Exact(value!(Int32Type).into(), 0),
        DataType::UInt32 => Cell::Exact(value!(UInt32Type).into(), 0),
        DataType::Int64 => Cell::Exact(value!(Int64Type).into(), 0),
        DataType::Decimal128(_, scale) => Cell::Exact(value!(Decimal128Type), (*scale).into()),
        DataType::Float32 => Cell::Float(value!(Float32Type).into()),
        DataType::Float64 => Cell::Float(value!(Float64Type)),
        DataType::Date32 => Cell::Micros(i128::from(value!(Date32Type)) * 86_400_000_000),
        DataType::Timestamp(unit, _) => Cell::Micros(match unit {
            TimeUnit::Second => i128::from(value!(TimestampSecondType)) * 1_000_000,
            TimeUnit::Millisecond => i128::from(value!(TimestampMillisecondType)) * 1_000,
            TimeUnit::Microsecond => value!(TimestampMicrosecondType).into(),
            // The seventh digit and those behind it are cut.
            TimeUnit::Nanosecond => (value!(TimestampNanosecondType) / 1_000).into(),
        }),
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row).to_owned()),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row).to_owned()),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row).to_owned()),
        DataType::Dictionary(..) => {
            let array = array.as_dictionary::<Int32Type>();
            let key = array.keys().value(row);
            cell(array.values(), usize::try_from(key).unwrap())
        }
        DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row).to_vec()),
        DataType::FixedSizeBinary(_) => {
            Cell::Bytes(array.as_fixed_size_binary().value(row).to_vec())
        }
        other => panic!("{other}"),
    }
}
