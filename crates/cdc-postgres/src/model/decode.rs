//! Values in the binary form, read back as a reader of the server would.

use arrow_schema::{DataType, TimeUnit};
use cdc_conformance::Cell;

use crate::column_type::ColumnType;

/// The Arrow type of a column.
pub(super) fn arrow(column_type: &ColumnType) -> DataType {
    match column_type {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::SmallInt => DataType::Int16,
        ColumnType::Integer => DataType::Int32,
        ColumnType::BigInt => DataType::Int64,
        ColumnType::Real => DataType::Float32,
        ColumnType::Double => DataType::Float64,
        ColumnType::Numeric(Some((precision, scale))) => {
            DataType::Decimal128(*precision as u8, *scale as i8)
        }
        ColumnType::Date => DataType::Date32,
        ColumnType::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        ColumnType::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        ColumnType::Bytea => DataType::Binary,
        _ => DataType::Utf8,
    }
}

/// One value.
pub(super) fn cell(column_type: &ColumnType, bytes: &[u8]) -> Cell {
    let number = || {
        let sign = if bytes[0] & 0x80 == 0 { 0 } else { -1i64 };
        bytes.iter().fold(sign, |number, byte| (number << 8) | i64::from(*byte))
    };
    const DAYS: i64 = 10_957;
    const MICROS: i64 = 946_684_800_000_000;
    match column_type {
        ColumnType::Boolean => Cell::Bool(bytes == [1]),
        ColumnType::SmallInt | ColumnType::Integer | ColumnType::BigInt => Cell::Int(number()),
        ColumnType::Real => Cell::Real(u32::from_be_bytes(bytes.try_into().unwrap())),
        ColumnType::Double => Cell::Float(u64::from_be_bytes(bytes.try_into().unwrap())),
        ColumnType::Numeric(limits) => {
            let scale = limits.map_or(0, |(_, scale)| scale);
            Cell::Decimal(numeric(bytes, scale), scale as i8)
        }
        ColumnType::Date => Cell::Date((number() + DAYS) as i32),
        ColumnType::Timestamp => Cell::Wall(number() + MICROS),
        ColumnType::TimestampTz => Cell::Instant(number() + MICROS),
        ColumnType::Bytea => Cell::Bytes(bytes.to_vec()),
        ColumnType::Uuid => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20]];
            Cell::text(format!("{}-{}", parts.join("-"), &digits[20..]))
        }
        _ => Cell::text(String::from_utf8(bytes.to_vec()).unwrap()),
    }
}

/// The digits of a `numeric` with so many behind the point.
pub(crate) fn numeric(bytes: &[u8], scale: u16) -> i128 {
    let at = |index: usize| u16::from_be_bytes([bytes[index], bytes[index + 1]]);
    let (count, weight, sign) = (at(0), at(2).cast_signed(), at(4));
    let mut value: i128 = 0;
    for index in 0..count {
        let group = i128::from(at(8 + 2 * usize::from(index)));
        let power = i32::from(weight) - i32::from(index);
        let exponent = power * 4 + i32::from(scale);
        value += match u32::try_from(exponent) {
            Ok(exponent) => group * 10i128.pow(exponent),
            Err(_) => group / 10i128.pow(exponent.unsigned_abs()),
        };
    }
    if sign == 0 { value } else { -value }
}
