//! The protocol's numbers of types.

pub(crate) const NULL: u8 = 0x1F;
pub(crate) const IMAGE: u8 = 0x22;
pub(crate) const TEXT: u8 = 0x23;
pub(crate) const UNIQUEIDENTIFIER: u8 = 0x24;
pub(crate) const VARBINARY_OLD: u8 = 0x25;
pub(crate) const INT_N: u8 = 0x26;
pub(crate) const VARCHAR_OLD: u8 = 0x27;
pub(crate) const DATE_N: u8 = 0x28;
pub(crate) const TIME_N: u8 = 0x29;
pub(crate) const DATETIME2_N: u8 = 0x2A;
pub(crate) const DATETIMEOFFSET_N: u8 = 0x2B;
pub(crate) const BINARY_OLD: u8 = 0x2D;
pub(crate) const CHAR_OLD: u8 = 0x2F;
pub(crate) const TINYINT: u8 = 0x30;
pub(crate) const BIT: u8 = 0x32;
pub(crate) const SMALLINT: u8 = 0x34;
pub(crate) const DECIMAL_OLD: u8 = 0x37;
pub(crate) const INT: u8 = 0x38;
pub(crate) const SMALLDATETIME: u8 = 0x3A;
pub(crate) const REAL: u8 = 0x3B;
pub(crate) const MONEY: u8 = 0x3C;
pub(crate) const DATETIME: u8 = 0x3D;
pub(crate) const FLOAT: u8 = 0x3E;
pub(crate) const NUMERIC_OLD: u8 = 0x3F;
pub(crate) const VARIANT: u8 = 0x62;
pub(crate) const NTEXT: u8 = 0x63;
pub(crate) const BIT_N: u8 = 0x68;
pub(crate) const DECIMAL_N: u8 = 0x6A;
pub(crate) const NUMERIC_N: u8 = 0x6C;
pub(crate) const FLOAT_N: u8 = 0x6D;
pub(crate) const MONEY_N: u8 = 0x6E;
pub(crate) const DATETIME_N: u8 = 0x6F;
pub(crate) const SMALLMONEY: u8 = 0x7A;
pub(crate) const BIGINT: u8 = 0x7F;
pub(crate) const VARBINARY: u8 = 0xA5;
pub(crate) const VARCHAR: u8 = 0xA7;
pub(crate) const BINARY: u8 = 0xAD;
pub(crate) const CHAR: u8 = 0xAF;
pub(crate) const NVARCHAR: u8 = 0xE7;
pub(crate) const NCHAR: u8 = 0xEF;
pub(crate) const UDT: u8 = 0xF0;
pub(crate) const XML: u8 = 0xF1;
pub(crate) const TABLE: u8 = 0xF3;

/// The length of a type that says `(max)`, and of a value that is NULL.
pub(crate) const MAX: u16 = 0xFFFF;
/// The total length of a chunked value that is NULL.
pub(crate) const CHUNKED_NULL: u64 = u64::MAX;
/// The total length of a chunked value whose sender does not know it.
pub(crate) const CHUNKED_UNKNOWN: u64 = u64::MAX - 1;
/// The length of a `text`, `ntext` or `image` argument that is NULL.
pub(crate) const LONG_NULL: u32 = u32::MAX;

/// Bytes of the digits of an exact number, with the byte of its sign.
pub(crate) const fn decimal_bytes(precision: u8) -> u8 {
    match precision {
        0..=9 => 5,
        10..=19 => 9,
        20..=28 => 13,
        _ => 17,
    }
}

/// Bytes of a time of day with `scale` fractional digits.
pub(crate) const fn time_bytes(scale: u8) -> u8 {
    match scale {
        0..=2 => 3,
        3 | 4 => 4,
        _ => 5,
    }
}

/// 100 ns in the least step of a time with `scale` fractional digits.
pub(crate) const fn ticks_a_step(scale: u8) -> i64 {
    match scale {
        0 => 10_000_000,
        1 => 1_000_000,
        2 => 100_000,
        3 => 10_000,
        4 => 1_000,
        5 => 100,
        6 => 10,
        _ => 1,
    }
}

/// 100 ns in a day.
pub(crate) const TICKS_A_DAY: i64 = 864_000_000_000;
/// Days from 0001-01-01, where the newer types begin to count, to 1970-01-01.
pub(crate) const DAYS_TO_1970: i32 = 719_162;
/// Days from 1900-01-01, where the older types begin to count, to 1970-01-01.
pub(crate) const DAYS_1900_TO_1970: i32 = 25_567;
/// The last day, 9999-12-31, counted from 0001-01-01.
pub(crate) const LAST_DAY: i32 = 3_652_058;
/// Ticks of `datetime` in a day.
pub(crate) const DATETIME_TICKS_A_DAY: i64 = 25_920_000;
