//! Rows as JSON lines: how each type is spelled.

use arrow_array::{Array, cast::AsArray, types as t};
use arrow_schema::{DataType, TimeUnit};
use cdc_core::{
    Column, Error, ErrorKind, Origin, Result, TableBatch, Timestamp,
    change::{ChangeColumns, Operation, field},
};
use serde_json::{Map, Value, json};

/// How a column's values are spelled in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// `true` and `false`.
    Bool,
    /// A number of so many bits.
    Int(u8),
    /// Text, so that no reader rounds it; so many bits.
    Float(u8),
    /// The digits as text: precision and scale.
    Decimal(u8, i8),
    /// Days since 1970-01-01.
    Date,
    /// Microseconds since 1970-01-01 on the column's own clock.
    Wall,
    /// Microseconds since 1970-01-01 UTC.
    Instant,
    /// Text.
    Text,
    /// Hex digits.
    Bytes,
}

impl Form {
    /// The form of a column's values.
    pub(crate) fn of(column: &Column) -> Result<Self> {
        let field = column.field()?;
        Self::from_arrow(field.data_type()).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, "type has no form in JSON")
                .with("column", &column.name)
                .with("type", &column.sql_type)
        })
    }

    fn from_arrow(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Bool,
            DataType::Int16 => Self::Int(16),
            DataType::Int32 => Self::Int(32),
            DataType::Int64 => Self::Int(64),
            DataType::Float32 => Self::Float(32),
            DataType::Float64 => Self::Float(64),
            DataType::Decimal128(precision, scale) => Self::Decimal(*precision, *scale),
            DataType::Date32 => Self::Date,
            DataType::Timestamp(TimeUnit::Microsecond, None) => Self::Wall,
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Self::Instant,
            DataType::Utf8 => Self::Text,
            DataType::Binary => Self::Bytes,
            _ => return None,
        })
    }

    /// True when this column can go on with values of the other form.
    pub(crate) fn takes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(own), Self::Int(other)) => other <= own,
            (own, other) => own == other,
        }
    }

    /// As the manifest spells it.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Bool => json!(["bool"]),
            Self::Int(bits) => json!(["int", bits]),
            Self::Float(bits) => json!(["float", bits]),
            Self::Decimal(precision, scale) => json!(["decimal", precision, scale]),
            Self::Date => json!(["date"]),
            Self::Wall => json!(["wall"]),
            Self::Instant => json!(["instant"]),
            Self::Text => json!(["text"]),
            Self::Bytes => json!(["bytes"]),
        }
    }

    /// From what the manifest spells.
    pub(crate) fn from_json(value: &Value) -> Option<Self> {
        let number = |at: usize| u8::try_from(value.get(at)?.as_u64()?).ok();
        Some(match value.get(0)?.as_str()? {
            "bool" => Self::Bool,
            "int" => Self::Int(number(1)?),
            "float" => Self::Float(number(1)?),
            "decimal" => Self::Decimal(number(1)?, i8::try_from(number(2)?).ok()?),
            "date" => Self::Date,
            "wall" => Self::Wall,
            "instant" => Self::Instant,
            "text" => Self::Text,
            "bytes" => Self::Bytes,
            _ => return None,
        })
    }
}

/// The column of this name, in any case.
pub(crate) fn find<'a>(columns: &'a [(String, Form)], name: &str) -> Option<&'a (String, Form)> {
    let folded = name.to_lowercase();
    columns.iter().find(|(own, _)| own.to_lowercase() == folded)
}

/// Appends one line for each row.
pub(crate) fn write_rows(
    lines: &mut Vec<u8>,
    table: &str,
    columns: &[(String, Form)],
    batch: &TableBatch,
) -> Result<()> {
    let records = &batch.records;
    let skip = if batch.origin == Origin::Changes { field::COUNT } else { 0 };
    let schema = records.schema();
    let mut sources = Vec::new();
    for (given, array) in schema.fields().iter().zip(records.columns()).skip(skip) {
        let place = |kind, message: &str| {
            Error::new(kind, message).with("table", table).with("column", given.name())
        };
        let (name, form) = find(columns, given.name())
            .ok_or_else(|| place(ErrorKind::SchemaChanged, "the target lacks a column"))?;
        let other = Form::from_arrow(given.data_type());
        if !other.is_some_and(|other| form.takes(&other)) {
            let message = "the batch holds another type than the target";
            return Err(place(ErrorKind::SchemaChanged, message));
        }
        sources.push((name, array));
    }
    for row in 0..records.num_rows() {
        let mut line = lead(batch, row)?;
        let mut cells = Map::new();
        for (name, array) in &sources {
            if array.is_valid(row) {
                cells.insert((*name).clone(), cell(array.as_ref(), row)?);
            }
        }
        line.insert("row".to_owned(), Value::Object(cells));
        // A line holds no line break: JSON escapes it.
        lines.extend(Value::Object(line).to_string().into_bytes());
        lines.push(b'\n');
    }
    Ok(())
}

/// Where a row comes from, in the words of bronze.
fn lead(batch: &TableBatch, row: usize) -> Result<Map<String, Value>> {
    let micros = |time: Option<Timestamp>| time.map(Timestamp::as_micros);
    let value = match batch.origin {
        Origin::Changes => {
            let columns = ChangeColumns::of(&batch.records)?;
            let order = columns.order(row);
            json!({
                "_start_lsn": hex(order.commit),
                "_seqval": order.sequence.map(hex),
                "_operation": order.operation,
                "_command_id": order.command,
                "_commit_ts": micros(columns.time(row)),
            })
        }
        Origin::Snapshot(stamp) => json!({
            "_start_lsn": stamp.position.to_string(),
            "_operation": Operation::Read.code(),
            "_commit_ts": micros(stamp.commit_time),
            "_snapshot": stamp.position.to_string(),
        }),
        Origin::Chunk { snapshot, stamp, index } => json!({
            "_start_lsn": stamp.position.to_string(),
            "_operation": Operation::Read.code(),
            "_commit_ts": micros(stamp.commit_time),
            "_snapshot": snapshot.to_string(),
            "_chunk": index,
        }),
    };
    let Value::Object(mut lead) = value else {
        return Err(Error::bug("lead is no object"));
    };
    lead.insert("_capture_instance".to_owned(), json!(batch.instance.as_str()));
    Ok(lead)
}

/// A value that is not NULL.
fn cell(array: &dyn Array, row: usize) -> Result<Value> {
    Ok(match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int16 => json!(array.as_primitive::<t::Int16Type>().value(row)),
        DataType::Int32 => json!(array.as_primitive::<t::Int32Type>().value(row)),
        DataType::Int64 => json!(array.as_primitive::<t::Int64Type>().value(row)),
        DataType::Float32 => json!(array.as_primitive::<t::Float32Type>().value(row).to_string()),
        DataType::Float64 => json!(array.as_primitive::<t::Float64Type>().value(row).to_string()),
        DataType::Decimal128(..) => {
            json!(array.as_primitive::<t::Decimal128Type>().value(row).to_string())
        }
        DataType::Date32 => json!(array.as_primitive::<t::Date32Type>().value(row)),
        DataType::Timestamp(..) => {
            json!(array.as_primitive::<t::TimestampMicrosecondType>().value(row))
        }
        DataType::Utf8 => json!(array.as_string::<i32>().value(row)),
        DataType::Binary => json!(hex(array.as_binary::<i32>().value(row))),
        other => {
            return Err(
                Error::new(ErrorKind::Unsupported, "type has no form in JSON").with("type", other)
            );
        }
    })
}

/// `0x` and upper-case digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("0x{digits}")
}

/// The bytes of what [`hex`] spells.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks(2).map(byte).collect()
}
