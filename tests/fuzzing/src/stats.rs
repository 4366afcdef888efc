//! The statistics of a data file, as JSON text in the log.

use arbitrary::{Result, Unstructured};
use arrow_array::{
    Array, ArrayRef, RecordBatch,
    cast::AsArray,
    types::{
        Date32Type, Decimal128Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType,
    },
};
use arrow_schema::DataType;
use chrono::{DateTime, NaiveDate, NaiveDateTime};
use serde_json::Value;

use crate::draw;

const ROWS_MAX: usize = 6;
const NAMES: [&str; 4] = ["a", "a\"b", "ä\n", ""];

/// Runs one input: one or two batches of one file.
pub fn run(data: &[u8]) {
    if let Ok(batches) = file(&mut Unstructured::new(data)) {
        check(&batches);
    }
}

fn file(input: &mut Unstructured<'_>) -> Result<Vec<RecordBatch>> {
    let columns = input.int_in_range(1..=NAMES.len())?;
    let types = (0..columns).map(|_| draw::stored_type(input)).collect::<Result<Vec<_>>>()?;
    let batches = input.int_in_range(1..=2)?;
    (0..batches)
        .map(|_| {
            let rows = input.int_in_range(0..=ROWS_MAX)?;
            let columns = types.iter().zip(NAMES).map(|(data_type, name)| {
                Ok((name.to_owned(), draw::stored(input, data_type, rows)?))
            });
            Ok(draw::batch(columns.collect::<Result<_>>()?, rows))
        })
        .collect()
}

/// The text is JSON with the counts of rows and NULLs, and no value lies outside its bounds,
/// whether a reader takes numbers for exact or for floats.
fn check(batches: &[RecordBatch]) {
    let text = cdc_delta::fuzzing::stats(batches);
    let stats: Value = serde_json::from_str(&text).unwrap();
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    assert_eq!(stats["numRecords"], rows);
    for (at, field) in batches[0].schema().fields().iter().enumerate() {
        let columns: Vec<_> = batches.iter().map(|batch| batch.column(at)).collect();
        let nulls: usize = columns.iter().map(|column| column.null_count()).sum();
        let name = field.name().as_str();
        assert_eq!(stats["nullCount"][name], nulls, "{text}");
        for column in columns {
            for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
                for (section, least) in [("minValues", true), ("maxValues", false)] {
                    let bound = &stats[section][name];
                    let spelled = spelled(&text, section, name);
                    assert_eq!(bound.is_null(), spelled.is_none(), "{text}");
                    if let Some(spelled) = spelled {
                        assert!(within(bound, spelled, column, row, least), "{text} {row}");
                    }
                }
            }
        }
    }
}

/// A bound as it is spelled, as far as the next comma or brace: all of a number.
fn spelled<'a>(text: &'a str, section: &str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("\"{section}\":{{")).unwrap();
    // Quotes inside of texts are escaped, so this is none of them.
    let end = ["},\"maxValues\"", "},\"nullCount\""].iter().filter_map(|end| rest.find(end)).min();
    let (_, bound) = rest[..end.unwrap()].split_once(&format!("{}:", Value::from(name)))?;
    Some(bound.split([',', '}']).next().unwrap())
}

/// True when the value is on its side of the bound.
fn within(bound: &Value, spelled: &str, column: &ArrayRef, row: usize, least: bool) -> bool {
    macro_rules! value {
        ($kind:ty) => {
            column.as_primitive::<$kind>().value(row)
        };
    }
    let side = |order: std::cmp::Ordering| if least { order.is_le() } else { order.is_ge() };
    let text = || bound.as_str().unwrap();
    let float = || spelled.parse::<f64>().unwrap();
    match column.data_type() {
        DataType::Int16 => side(bound.as_i64().unwrap().cmp(&value!(Int16Type).into())),
        DataType::Int32 => side(bound.as_i64().unwrap().cmp(&value!(Int32Type).into())),
        DataType::Int64 => side(bound.as_i64().unwrap().cmp(&value!(Int64Type))),
        DataType::Float32 => side(float().partial_cmp(&value!(Float32Type).into()).unwrap()),
        DataType::Float64 => side(float().partial_cmp(&value!(Float64Type)).unwrap()),
        DataType::Decimal128(_, scale) => {
            // As a reader that knows floats alone: it scales the value's nearest float.
            let digits = value!(Decimal128Type).to_string();
            let value: f64 = format!("{digits}e-{scale}").parse().unwrap();
            side(float().partial_cmp(&value).unwrap())
        }
        DataType::Date32 => {
            let day = text().parse::<NaiveDate>().unwrap();
            let days = day.signed_duration_since(NaiveDate::default()).num_days();
            side(days.cmp(&value!(Date32Type).into()))
        }
        DataType::Timestamp(_, zone) => {
            let wall = if zone.is_some() {
                DateTime::parse_from_rfc3339(text()).unwrap().naive_utc()
            } else {
                text().parse::<NaiveDateTime>().unwrap()
            };
            side(wall.and_utc().timestamp_micros().cmp(&value!(TimestampMicrosecondType)))
        }
        DataType::Utf8 => side(text().cmp(column.as_string::<i32>().value(row))),
        other => panic!("a bound of {other}"),
    }
}
