//! A decoder as one would write it by hand for these columns alone: a blocking socket, rows
//! straight into the columns of a batch. It is what the bulk reader is measured against.

use std::{io::Read, net::TcpStream, sync::Arc};

use arrow_array::{
    ArrayRef,
    builder::{
        BinaryBuilder, BooleanBuilder, Decimal128Builder, Float64Builder, Int32Builder,
        Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
    },
};

use crate::Outcome;

const HEADER: usize = 8;
/// Bytes that are taken from the socket at once.
const READ_BYTES: usize = 256 << 10;
const COLUMNS: u8 = 0x81;
/// The end of a statement within a procedure's call: state, command and count behind it.
const STATEMENT_ENDED: u8 = 0xFF;
const STATEMENT_ENDED_BYTES: usize = 13;
const ROW: u8 = 0xD1;
const ROW_WITH_BITMAP: u8 = 0xD2;
/// What stands for NULL where a length has two bytes.
const NULL: u16 = 0xFFFF;

const DAY_MICROS: i64 = 86_400_000_000;
const DAYS_FROM_YEAR_ONE: i64 = 719_162;
const DAYS_FROM_1900: i64 = 25_567;

/// How a value lies on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// So many bytes, never NULL.
    Fixed(u8),
    /// A byte tells the length; none is NULL.
    Short,
    /// Two bytes tell the length.
    Long,
}

/// A column in the making.
enum Cells {
    Bool(BooleanBuilder),
    Int(Int32Builder),
    Big(Int64Builder),
    Float(Float64Builder),
    Decimal(Decimal128Builder),
    /// `datetime`.
    Ticks(TimestampMicrosecondBuilder),
    /// `datetime2(7)`.
    Moment(TimestampMicrosecondBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
}

struct Column {
    layout: Layout,
    cells: Cells,
}

/// Bytes that are not read yet.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// The bytes of the next value; an inner none is NULL.
    fn value(&mut self, layout: Layout) -> Option<Option<&'a [u8]>> {
        Some(match layout {
            Layout::Fixed(count) => Some(self.take(count.into())?),
            Layout::Short => match self.byte()? {
                0 => None,
                count => Some(self.take(count.into())?),
            },
            Layout::Long => match self.short()? {
                NULL => None,
                count => Some(self.take(count.into())?),
            },
        })
    }
}

/// A little-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

impl Column {
    /// The next column that a result describes.
    fn described(input: &mut Input<'_>) -> Outcome<Self> {
        let none = "the description of a column ends too soon";
        input.take(6).ok_or(none)?;
        let kind = input.byte().ok_or(none)?;
        let mut length = || input.byte().ok_or(none);
        let (layout, cells) = match kind {
            0x38 => (Layout::Fixed(4), Cells::Int(Int32Builder::new())),
            0x7F => (Layout::Fixed(8), Cells::Big(Int64Builder::new())),
            0x32 => (Layout::Fixed(1), Cells::Bool(BooleanBuilder::new())),
            0x3E => (Layout::Fixed(8), Cells::Float(Float64Builder::new())),
            0x3D => (Layout::Fixed(8), Cells::Ticks(TimestampMicrosecondBuilder::new())),
            0x26 if length()? == 4 => (Layout::Short, Cells::Int(Int32Builder::new())),
            0x26 => (Layout::Short, Cells::Big(Int64Builder::new())),
            0x68 if length()? == 1 => (Layout::Short, Cells::Bool(BooleanBuilder::new())),
            0x6D if length()? == 8 => (Layout::Short, Cells::Float(Float64Builder::new())),
            0x6F if length()? == 8 => {
                (Layout::Short, Cells::Ticks(TimestampMicrosecondBuilder::new()))
            }
            0x2A if length()? == 7 => {
                (Layout::Short, Cells::Moment(TimestampMicrosecondBuilder::new()))
            }
            0x6A | 0x6C => {
                let [_, precision, scale] = input.array().ok_or(none)?;
                let builder = Decimal128Builder::new();
                let scale = i8::try_from(scale)?;
                (Layout::Short, Cells::Decimal(builder.with_precision_and_scale(precision, scale)?))
            }
            0xA5 | 0xAD => {
                input.short().filter(|length| *length != NULL).ok_or("no large objects")?;
                (Layout::Long, Cells::Bytes(BinaryBuilder::new()))
            }
            0xE7 => {
                input.short().filter(|length| *length != NULL).ok_or("no large objects")?;
                input.take(5).ok_or(none)?;
                (Layout::Long, Cells::Text(StringBuilder::new()))
            }
            other => return Err(format!("no column of the measurement has type {other:#x}").into()),
        };
        let name = usize::from(input.byte().ok_or(none)?);
        input.take(2 * name).ok_or(none)?;
        Ok(Self { layout, cells })
    }

    fn null(&mut self) {
        match &mut self.cells {
            Cells::Bool(cells) => cells.append_null(),
            Cells::Int(cells) => cells.append_null(),
            Cells::Big(cells) => cells.append_null(),
            Cells::Float(cells) => cells.append_null(),
            Cells::Decimal(cells) => cells.append_null(),
            Cells::Ticks(cells) | Cells::Moment(cells) => cells.append_null(),
            Cells::Text(cells) => cells.append_null(),
            Cells::Bytes(cells) => cells.append_null(),
        }
    }

    /// Adds a value; none when its bytes are not those of its type.
    #[allow(clippy::cast_possible_wrap, reason = "the wire's own reading of its bits")]
    fn add(&mut self, bytes: &[u8], scratch: &mut Vec<u8>) -> Option<()> {
        match &mut self.cells {
            Cells::Bool(cells) => cells.append_value(bytes.first()? != &0),
            Cells::Int(cells) => cells.append_value(i32::from_le_bytes(bytes.try_into().ok()?)),
            Cells::Big(cells) => cells.append_value(i64::from_le_bytes(bytes.try_into().ok()?)),
            Cells::Float(cells) => cells.append_value(f64::from_le_bytes(bytes.try_into().ok()?)),
            Cells::Decimal(cells) => {
                let (sign, digits) = bytes.split_first()?;
                let (low, high) = digits.split_at_checked(8).unwrap_or((digits, &[]));
                let digits = i128::from(number(low)) | (i128::from(number(high)) << 64);
                cells.append_value(if *sign == 1 { digits } else { -digits });
            }
            Cells::Ticks(cells) => {
                let (days, ticks) = bytes.split_first_chunk::<4>()?;
                let days = i64::from(i32::from_le_bytes(*days)) - DAYS_FROM_1900;
                let ticks = i64::from(u32::from_le_bytes(ticks.try_into().ok()?));
                cells.append_value(days * DAY_MICROS + (ticks * 10_000).div_euclid(3));
            }
            Cells::Moment(cells) => {
                let (ticks, days) = bytes.split_at_checked(5)?;
                let days = number(days) as i64 - DAYS_FROM_YEAR_ONE;
                cells.append_value(days * DAY_MICROS + number(ticks) as i64 / 10);
            }
            Cells::Text(cells) => {
                let (units, _) = bytes.as_chunks::<2>();
                if units.iter().all(|[low, high]| *high == 0 && low.is_ascii()) {
                    scratch.clear();
                    scratch.extend(units.iter().map(|[low, _]| *low));
                    cells.append_value(std::str::from_utf8(scratch).ok()?);
                } else {
                    let units: Vec<_> =
                        units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
                    cells.append_value(String::from_utf16_lossy(&units));
                }
            }
            Cells::Bytes(cells) => cells.append_value(bytes),
        }
        Some(())
    }

    fn finish(&mut self) -> ArrayRef {
        match &mut self.cells {
            Cells::Bool(cells) => Arc::new(cells.finish()),
            Cells::Int(cells) => Arc::new(cells.finish()),
            Cells::Big(cells) => Arc::new(cells.finish()),
            Cells::Float(cells) => Arc::new(cells.finish()),
            Cells::Decimal(cells) => Arc::new(cells.finish()),
            Cells::Ticks(cells) | Cells::Moment(cells) => Arc::new(cells.finish()),
            Cells::Text(cells) => Arc::new(cells.finish()),
            Cells::Bytes(cells) => Arc::new(cells.finish()),
        }
    }
}

/// The rows of an answer, as they come.
#[derive(Default)]
struct Rows {
    columns: Vec<Column>,
    scratch: Vec<u8>,
}

/// What the next token was.
enum Token {
    Columns,
    Row,
    /// Neither; its rest is not looked at.
    End,
}

impl Rows {
    /// Takes the next token; none when it is not there whole. Then nothing was taken, as long as
    /// whoever calls keeps more than a row in store.
    fn token(&mut self, input: &mut Input<'_>) -> Outcome<Token> {
        let short = "a row ends too soon";
        let mut kind = *input.0.first().ok_or(short)?;
        while kind == STATEMENT_ENDED && self.columns.is_empty() {
            // Of the settings in front of the rows.
            input.take(STATEMENT_ENDED_BYTES).ok_or(short)?;
            kind = *input.0.first().ok_or(short)?;
        }
        match kind {
            COLUMNS => {
                input.byte().ok_or(short)?;
                let count = input.short().ok_or(short)?;
                self.columns =
                    (0..count).map(|_| Column::described(input)).collect::<Outcome<_>>()?;
                return Ok(Token::Columns);
            }
            ROW | ROW_WITH_BITMAP => {}
            _ => return Ok(Token::End),
        }
        input.byte().ok_or(short)?;
        let bitmap = match kind {
            ROW => &[],
            _ => input.take(self.columns.len().div_ceil(8)).ok_or(short)?,
        };
        for (at, column) in self.columns.iter_mut().enumerate() {
            let is_null = bitmap.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
            let value = if is_null { None } else { input.value(column.layout).ok_or(short)? };
            match value {
                None => column.null(),
                Some(bytes) => column.add(bytes, &mut self.scratch).ok_or("no such value")?,
            }
        }
        Ok(Token::Row)
    }

    fn take(&mut self) -> Vec<ArrayRef> {
        self.columns.iter_mut().map(Column::finish).collect()
    }
}

/// More than a row or the columns of a result have.
const MORE_THAN_A_ROW: usize = 16 << 10;

/// Reads the answer to a request into batches of `batch_rows` rows, and hands each over.
pub(super) fn read(
    socket: &mut TcpStream,
    batch_rows: usize,
    take: &mut dyn FnMut(Vec<ArrayRef>),
) -> Outcome<usize> {
    let mut rows = Rows::default();
    let (mut packets, mut tokens) = (vec![0; READ_BYTES], Vec::with_capacity(2 * READ_BYTES));
    let (mut header, mut left) = (Vec::with_capacity(HEADER), 0_usize);
    let (mut is_last, mut ended, mut count, mut in_batch) = (false, false, 0, 0);
    while !ended {
        let read = socket.read(&mut packets)?;
        if read == 0 {
            return Err("the server went away".into());
        }
        let mut arrived = packets.get(..read).unwrap_or_default();
        while !arrived.is_empty() {
            if left == 0 {
                let missing = HEADER.saturating_sub(header.len()).min(arrived.len());
                let (part, rest) = arrived.split_at(missing);
                header.extend_from_slice(part);
                arrived = rest;
                if let [_, status, high, low, ..] = *header.as_slice()
                    && header.len() == HEADER
                {
                    left = usize::from(u16::from_be_bytes([high, low])).saturating_sub(HEADER);
                    is_last = status & 1 != 0;
                    header.clear();
                }
            } else {
                let (part, rest) = arrived.split_at(left.min(arrived.len()));
                tokens.extend_from_slice(part);
                left -= part.len();
                arrived = rest;
            }
            ended = is_last && left == 0 && header.is_empty();
        }
        let mut input = Input(&tokens);
        while input.0.len() > MORE_THAN_A_ROW || (ended && !input.0.is_empty()) {
            match rows.token(&mut input)? {
                Token::Columns => {}
                Token::Row => {
                    (count, in_batch) = (count + 1, in_batch + 1);
                    if in_batch == batch_rows {
                        take(rows.take());
                        in_batch = 0;
                    }
                }
                Token::End => input.0 = &[],
            }
        }
        let taken = tokens.len() - input.0.len();
        tokens.drain(..taken);
    }
    if in_batch > 0 {
        take(rows.take());
    }
    Ok(count)
}

/// Where the first row of an answer begins, and where each of its rows ends.
pub(super) fn row_ends(tokens: &[u8]) -> Outcome<Vec<usize>> {
    let mut rows = Rows::default();
    let mut input = Input(tokens);
    let mut ends = Vec::new();
    loop {
        match rows.token(&mut input)? {
            Token::End => return Ok(ends),
            Token::Columns | Token::Row => ends.push(tokens.len() - input.0.len()),
        }
    }
}
