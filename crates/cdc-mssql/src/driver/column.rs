//! Columns of a batch in the making: values of the wire in, exactly as the wanted type holds them,
//! or not at all.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, RecordBatch, RecordBatchOptions,
    builder::{
        BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, FixedSizeBinaryBuilder,
        Float32Builder, Float64Builder, Int16Builder, Int32Builder, Int64Builder, StringBuilder,
        TimestampMicrosecondBuilder,
    },
};
use arrow_schema::{DataType, SchemaRef};
use cdc_core::{Error, ErrorKind, Result, SqlType};

use super::{Form, LSN_WIDTH, ResultColumn};

const DAY_MICROS: i64 = 86_400_000_000;
const SECOND_TICKS: i64 = 10_000_000;

/// Most bytes of one value. Arrow counts the bytes of a column in 31 bits, and a batch ends when
/// its texts and binaries exceed [`BATCH_BYTES_MAX`].
const VALUE_BYTES_MAX: usize = 1 << 30;
/// Bytes of texts and binaries after which a batch ends, however few its rows are: what a reader
/// holds in memory at once.
const BATCH_BYTES_MAX: usize = 32 << 20;

/// A value does not fit the wanted type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Misfit;

type Fits = std::result::Result<(), Misfit>;

/// A column that is filled value by value. Every method adds one value or none.
#[derive(Debug)]
pub(crate) struct ColumnBuilder {
    cells: Cells,
    /// Digits behind the point of a time of day.
    time_scale: u8,
    /// Bytes of the texts and binaries so far.
    bytes: usize,
}

#[derive(Debug)]
enum Cells {
    Bool(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    /// With what the digits stay below, and the scale.
    Decimal(Decimal128Builder, u128, u8),
    Date(Date32Builder),
    Wall(TimestampMicrosecondBuilder),
    Instant(TimestampMicrosecondBuilder),
    Text(StringBuilder),
    Bytes(BinaryBuilder),
    Lsn(FixedSizeBinaryBuilder),
}

impl ColumnBuilder {
    /// A column with room for `rows` rows.
    ///
    /// # Errors
    /// `Unsupported` for a type without a column form.
    pub(crate) fn new(form: &Form, rows: usize) -> Result<Self> {
        let data_type = form.arrow()?;
        let cells = match &data_type {
            DataType::Boolean => Cells::Bool(BooleanBuilder::with_capacity(rows)),
            DataType::Int16 => Cells::Int16(Int16Builder::with_capacity(rows)),
            DataType::Int32 => Cells::Int32(Int32Builder::with_capacity(rows)),
            DataType::Int64 => Cells::Int64(Int64Builder::with_capacity(rows)),
            DataType::Float32 => Cells::Float32(Float32Builder::with_capacity(rows)),
            DataType::Float64 => Cells::Float64(Float64Builder::with_capacity(rows)),
            DataType::Decimal128(precision, scale) => {
                let (Ok(scale), Some(limit)) =
                    (u8::try_from(*scale), 10_u128.checked_pow((*precision).into()))
                else {
                    return Err(Error::bug("no such decimal").with("type", &data_type));
                };
                let builder = Decimal128Builder::with_capacity(rows);
                Cells::Decimal(builder.with_data_type(data_type.clone()), limit, scale)
            }
            DataType::Date32 => Cells::Date(Date32Builder::with_capacity(rows)),
            DataType::Timestamp(_, zone) => {
                let builder = TimestampMicrosecondBuilder::with_capacity(rows);
                let builder = builder.with_data_type(data_type.clone());
                if zone.is_some() { Cells::Instant(builder) } else { Cells::Wall(builder) }
            }
            DataType::Utf8 => Cells::Text(StringBuilder::with_capacity(rows, rows * 8)),
            DataType::Binary => Cells::Bytes(BinaryBuilder::with_capacity(rows, rows * 8)),
            DataType::FixedSizeBinary(width) => {
                Cells::Lsn(FixedSizeBinaryBuilder::with_capacity(rows, *width))
            }
            other => return Err(Error::bug("column type has no builder").with("type", other)),
        };
        let time_scale = match form {
            Form::Sql(SqlType::Time { scale }) => *scale,
            _ => 7,
        };
        Ok(Self { cells, time_scale, bytes: 0 })
    }

    pub(crate) fn null(&mut self) {
        match &mut self.cells {
            Cells::Bool(cells) => cells.append_null(),
            Cells::Int16(cells) => cells.append_null(),
            Cells::Int32(cells) => cells.append_null(),
            Cells::Int64(cells) => cells.append_null(),
            Cells::Float32(cells) => cells.append_null(),
            Cells::Float64(cells) => cells.append_null(),
            Cells::Decimal(cells, ..) => cells.append_null(),
            Cells::Date(cells) => cells.append_null(),
            Cells::Wall(cells) | Cells::Instant(cells) => cells.append_null(),
            Cells::Text(cells) => cells.append_null(),
            Cells::Bytes(cells) => cells.append_null(),
            Cells::Lsn(cells) => cells.append_null(),
        }
    }

    pub(crate) fn bit(&mut self, bit: bool) -> Fits {
        match &mut self.cells {
            Cells::Bool(cells) => cells.append_value(bit),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    /// An integer of any width.
    pub(crate) fn int(&mut self, number: i64) -> Fits {
        match &mut self.cells {
            Cells::Int16(cells) => cells.append_value(i16::try_from(number).map_err(|_| Misfit)?),
            Cells::Int32(cells) => cells.append_value(i32::try_from(number).map_err(|_| Misfit)?),
            Cells::Int64(cells) => cells.append_value(number),
            // 32 bits always fit the 53 of a double.
            Cells::Float64(cells) => {
                cells.append_value(f64::from(i32::try_from(number).map_err(|_| Misfit)?));
            }
            Cells::Decimal(..) => return self.decimal(number.into(), 0),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    pub(crate) fn real(&mut self, number: f32) -> Fits {
        match &mut self.cells {
            Cells::Float32(cells) => cells.append_value(number),
            Cells::Float64(cells) => cells.append_value(f64::from(number)),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    pub(crate) fn float(&mut self, number: f64) -> Fits {
        match &mut self.cells {
            Cells::Float64(cells) => cells.append_value(number),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    /// An exact number: its digits, and how many of them stand behind the point.
    pub(crate) fn decimal(&mut self, digits: i128, scale: u8) -> Fits {
        match &mut self.cells {
            Cells::Decimal(cells, limit, wanted) => {
                let digits = rescaled(digits, scale, *wanted).ok_or(Misfit)?;
                if digits.unsigned_abs() >= *limit {
                    return Err(Misfit);
                }
                cells.append_value(digits);
            }
            _ => return Err(Misfit),
        }
        Ok(())
    }

    /// A day, counted from 1970-01-01.
    pub(crate) fn date(&mut self, days: i32) -> Fits {
        match &mut self.cells {
            Cells::Date(cells) => cells.append_value(days),
            Cells::Wall(cells) => cells.append_value(i64::from(days) * DAY_MICROS),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    /// What a clock without a zone shows, in microseconds since 1970.
    pub(crate) fn wall(&mut self, micros: i64) -> Fits {
        match &mut self.cells {
            Cells::Wall(cells) => cells.append_value(micros),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    /// A moment in UTC, in microseconds since 1970.
    pub(crate) fn instant(&mut self, micros: i64) -> Fits {
        match &mut self.cells {
            Cells::Instant(cells) => cells.append_value(micros),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    /// A time of day in units of 100 ns, as text with the digits that the column has.
    pub(crate) fn time(&mut self, ticks: i64) -> Fits {
        match &mut self.cells {
            Cells::Text(cells) => cells.append_value(time_text(ticks, self.time_scale)),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    pub(crate) fn text(&mut self, text: &str) -> Fits {
        self.weigh(text.len())?;
        match &mut self.cells {
            Cells::Text(cells) => cells.append_value(text),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    /// A `uniqueidentifier` in the order of its text, upper case and dashed.
    pub(crate) fn uuid(&mut self, bytes: [u8; 16]) -> Fits {
        match &mut self.cells {
            Cells::Text(cells) => cells.append_value(uuid_text(bytes)),
            _ => return Err(Misfit),
        }
        Ok(())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Fits {
        self.weigh(bytes.len())?;
        match &mut self.cells {
            Cells::Bytes(cells) => cells.append_value(bytes),
            Cells::Lsn(cells) if i32::try_from(bytes.len()) == Ok(LSN_WIDTH) => {
                cells.append_value(bytes).map_err(|_| Misfit)?;
            }
            _ => return Err(Misfit),
        }
        Ok(())
    }

    const fn is_heavy(&self) -> bool {
        matches!(self.cells, Cells::Text(_) | Cells::Bytes(_))
    }

    fn weigh(&mut self, bytes: usize) -> Fits {
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes > VALUE_BYTES_MAX { Err(Misfit) } else { Ok(()) }
    }

    fn finish(&mut self) -> ArrayRef {
        self.bytes = 0;
        match &mut self.cells {
            Cells::Bool(cells) => Arc::new(cells.finish()),
            Cells::Int16(cells) => Arc::new(cells.finish()),
            Cells::Int32(cells) => Arc::new(cells.finish()),
            Cells::Int64(cells) => Arc::new(cells.finish()),
            Cells::Float32(cells) => Arc::new(cells.finish()),
            Cells::Float64(cells) => Arc::new(cells.finish()),
            Cells::Decimal(cells, ..) => Arc::new(cells.finish()),
            Cells::Date(cells) => Arc::new(cells.finish()),
            Cells::Wall(cells) | Cells::Instant(cells) => Arc::new(cells.finish()),
            Cells::Text(cells) => Arc::new(cells.finish()),
            Cells::Bytes(cells) => Arc::new(cells.finish()),
            Cells::Lsn(cells) => Arc::new(cells.finish()),
        }
    }
}

/// `digits` of scale `from` at scale `to`; none when digits would be lost.
fn rescaled(digits: i128, from: u8, to: u8) -> Option<i128> {
    if to == from {
        return Some(digits);
    }
    if to > from {
        return digits.checked_mul(10_i128.checked_pow((to - from).into())?);
    }
    let unit = 10_i128.checked_pow((from - to).into())?;
    (digits % unit == 0).then_some(digits / unit)
}

/// A time of day in units of 100 ns, with `scale` digits behind the second.
fn time_text(ticks: i64, scale: u8) -> String {
    let seconds = ticks / SECOND_TICKS;
    let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
    let whole = format!("{hours:02}:{minutes:02}:{:02}", seconds % 60);
    if scale == 0 {
        return whole;
    }
    let digits: String =
        format!("{:07}", ticks % SECOND_TICKS).chars().take(scale.into()).collect();
    format!("{whole}.{digits}")
}

fn uuid_text(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for half in [byte >> 4, byte & 15] {
            text.extend(char::from_digit(half.into(), 16).map(|digit| digit.to_ascii_uppercase()));
        }
    }
    text
}

/// A record batch in the making.
#[derive(Debug)]
pub(crate) struct BatchBuilder {
    schema: SchemaRef,
    forms: Vec<Form>,
    columns: Vec<ColumnBuilder>,
    /// The columns with texts or binaries: those whose bytes are counted.
    heavy: Vec<usize>,
    rows: usize,
    rows_max: usize,
    bytes: usize,
}

impl BatchBuilder {
    /// A batch of these columns, with room for `rows_max` rows.
    ///
    /// # Errors
    /// `Unsupported` for a type without a column form.
    pub(crate) fn new(
        schema: SchemaRef,
        columns: &[ResultColumn],
        rows_max: usize,
    ) -> Result<Self> {
        // Room is taken as rows come: a limit may be far above what is read.
        let room = rows_max.min(1_024);
        let builder = |column: &ResultColumn| {
            ColumnBuilder::new(&column.form, room)
                .map_err(|error| error.with("column", &column.name))
        };
        let forms: Vec<Form> = columns.iter().map(|column| column.form.clone()).collect();
        let columns: Vec<ColumnBuilder> = columns.iter().map(builder).collect::<Result<_>>()?;
        let heavy = columns.iter().enumerate().filter(|(_, column)| column.is_heavy());
        Ok(Self {
            schema,
            forms,
            heavy: heavy.map(|(at, _)| at).collect(),
            columns,
            rows: 0,
            rows_max,
            bytes: 0,
        })
    }

    /// Adds a row, whose cells `fill` adds: column by column.
    ///
    /// # Errors
    /// `InvalidData` for a value that does not fit its column.
    pub(crate) fn row(
        &mut self,
        mut fill: impl FnMut(usize, &mut ColumnBuilder) -> Fits,
    ) -> Result<()> {
        let misfit = self
            .columns
            .iter_mut()
            .enumerate()
            .find_map(|(at, column)| fill(at, column).err().map(|Misfit| at));
        match misfit {
            Some(at) => Err(self.misfit(at)),
            None => {
                self.end_row();
                Ok(())
            }
        }
    }

    /// A column that a driver adds the next value to.
    #[cfg(feature = "mssql-tds")]
    pub(crate) fn column(&mut self, at: usize) -> Option<&mut ColumnBuilder> {
        self.columns.get_mut(at)
    }

    /// Every column has its value of the row.
    pub(crate) fn end_row(&mut self) {
        self.rows += 1;
        let heavy = self.heavy.iter().filter_map(|at| self.columns.get(*at));
        self.bytes = heavy.map(|column| column.bytes).sum();
    }

    /// What a value is that does not fit the column at a place.
    pub(crate) fn misfit(&self, at: usize) -> Error {
        let name = self.schema.fields().get(at).map_or("", |field| field.name());
        misfit(name, self.forms.get(at))
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.rows >= self.rows_max || self.bytes >= BATCH_BYTES_MAX
    }

    /// The rows so far; the next ones begin a new batch.
    ///
    /// # Errors
    /// `Bug` when the columns do not make a batch.
    pub(crate) fn take(&mut self) -> Result<RecordBatch> {
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        self.rows = 0;
        self.bytes = 0;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
            .map_err(|error| Error::bug("columns do not make a batch").caused_by(error))
    }
}

fn misfit(column: &str, form: Option<&Form>) -> Error {
    let wanted = match form {
        Some(Form::Sql(sql_type)) => sql_type.to_string(),
        _ => "lsn".to_owned(),
    };
    Error::new(
        ErrorKind::InvalidData,
        "a value does not fit the column's type: the column was altered, or the value has more \
         than 1 GiB",
    )
    .with("column", column)
    .with("type", wanted)
}
