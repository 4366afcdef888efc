//! Where the decoder puts the cells of the wire: into the columns of a batch.

use std::borrow::Cow;

use mssql_tds::datatypes::{
    column_values::{
        SqlDate, SqlDateTime, SqlDateTime2, SqlDateTimeOffset, SqlMoney, SqlSmallDateTime,
        SqlSmallMoney, SqlTime, SqlXml,
    },
    decoder::DecimalParts,
    row_writer::RowWriter,
    sql_json::SqlJson,
    sql_string::EncodingType,
    sql_vector::SqlVector,
};
use uuid::Uuid;

use crate::{
    driver::{
        column::{BatchBuilder, ColumnBuilder, Misfit},
        moment,
    },
    fault::Fault,
};

/// Bytes of the room for a text that are kept for the next one.
const SCRATCH_BYTES_MAX: usize = 64 << 10;
/// Digits behind the point of `money`.
const MONEY_SCALE: u8 = 4;

/// A batch as the decoder sees it. The decoder cannot be told of a misfit: the first one is kept.
pub(super) struct Cells<'a> {
    batch: &'a mut BatchBuilder,
    /// For each column of the result its place in the batch; none for one that nobody wants.
    places: Vec<Option<usize>>,
    misfit: Option<usize>,
    /// A text on its way from UTF-16.
    scratch: String,
}

impl<'a> Cells<'a> {
    /// Cells of a result of so many columns; `places` are those of the wanted ones.
    pub(super) fn new(batch: &'a mut BatchBuilder, places: &[usize], columns: usize) -> Self {
        let place = |column| places.iter().position(|place| *place == column);
        Self {
            batch,
            places: (0..columns).map(place).collect(),
            misfit: None,
            scratch: String::new(),
        }
    }

    pub(super) fn batch(&mut self) -> &mut BatchBuilder {
        self.batch
    }

    /// Fails when a value did not fit.
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.misfit {
            Some(place) => Err(self.batch.misfit(place).into()),
            None => Ok(()),
        }
    }

    fn add(&mut self, column: usize, add: impl FnOnce(&mut ColumnBuilder) -> Result<(), Misfit>) {
        let Some(place) = self.places.get(column).copied().flatten() else { return };
        let added = self.batch.column(place).map_or(Err(Misfit), add);
        if added.is_err() {
            self.misfit.get_or_insert(place);
        }
    }

    fn utf16(&mut self, column: usize, bytes: &[u8]) {
        let scratch = read_utf16(bytes, std::mem::take(&mut self.scratch));
        self.add(column, |cells| cells.text(scratch.as_deref().map_err(|misfit| *misfit)?));
        // One large text does not hold its room for ever.
        if let Ok(scratch) = scratch
            && scratch.capacity() <= SCRATCH_BYTES_MAX
        {
            self.scratch = scratch;
        }
    }
}

/// A text in UTF-16, low bytes first, in the room of another one. Half a surrogate pair becomes
/// U+FFFD.
fn read_utf16(bytes: &[u8], mut room: String) -> Result<String, Misfit> {
    let (units, []) = bytes.as_chunks::<2>() else { return Err(Misfit) };
    room.clear();
    // Most texts.
    if units.iter().all(|[low, high]| *high == 0 && low.is_ascii()) {
        let mut narrow = room.into_bytes();
        narrow.extend(units.iter().map(|[low, _]| *low));
        return String::from_utf8(narrow).map_err(|_| Misfit);
    }
    let read = char::decode_utf16(units.iter().map(|unit| u16::from_le_bytes(*unit)));
    room.extend(read.map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER)));
    Ok(room)
}

/// A text of a code page. None is asked for: the server converts them. What is left is plain, or
/// not read at all.
fn plain(bytes: &[u8]) -> Result<&str, Misfit> {
    if bytes.is_ascii() { std::str::from_utf8(bytes).map_err(|_| Misfit) } else { Err(Misfit) }
}

fn exact(own: &DecimalParts, column: &mut ColumnBuilder) -> Result<(), Misfit> {
    let digits = i128::try_from(own.magnitude()).map_err(|_| Misfit)?;
    column.decimal(if own.is_positive { digits } else { -digits }, own.scale)
}

/// A time of day in units of 100 ns. The field's name says otherwise.
fn ticks(own: &SqlTime) -> Result<i64, Misfit> {
    moment::time(own.time_nanoseconds, 7)
}

fn micros(own: &SqlDateTime2) -> Result<i64, Misfit> {
    Ok(moment::datetime2(own.days, ticks(&own.time)?))
}

/// `money` comes as two halves, the upper one signed.
fn money(own: &SqlMoney) -> i128 {
    let [low, high] = [own.lsb_part, own.msb_part].map(i32::to_le_bytes);
    let [a, b, c, d] = low;
    let [e, f, g, h] = high;
    i64::from_le_bytes([a, b, c, d, e, f, g, h]).into()
}

impl RowWriter for Cells<'_> {
    fn write_null(&mut self, col: usize) {
        self.add(col, |column| {
            column.null();
            Ok(())
        });
    }

    fn write_bool(&mut self, col: usize, val: bool) {
        self.add(col, |column| column.bit(val));
    }

    fn write_u8(&mut self, col: usize, val: u8) {
        self.add(col, |column| column.int(val.into()));
    }

    fn write_i16(&mut self, col: usize, val: i16) {
        self.add(col, |column| column.int(val.into()));
    }

    fn write_i32(&mut self, col: usize, val: i32) {
        self.add(col, |column| column.int(val.into()));
    }

    fn write_i64(&mut self, col: usize, val: i64) {
        self.add(col, |column| column.int(val));
    }

    fn write_f32(&mut self, col: usize, val: f32) {
        self.add(col, |column| column.real(val));
    }

    fn write_f64(&mut self, col: usize, val: f64) {
        self.add(col, |column| column.float(val));
    }

    fn write_string(&mut self, col: usize, bytes: Cow<'_, [u8]>, encoding_type: EncodingType) {
        match encoding_type {
            EncodingType::Utf16 => self.utf16(col, &bytes),
            _ => self.add(col, |column| column.text(plain(&bytes)?)),
        }
    }

    fn write_bytes(&mut self, col: usize, bytes: Cow<'_, [u8]>) {
        self.add(col, |column| column.bytes(&bytes));
    }

    fn write_decimal(&mut self, col: usize, val: DecimalParts) {
        self.add(col, |column| exact(&val, column));
    }

    fn write_numeric(&mut self, col: usize, val: DecimalParts) {
        self.add(col, |column| exact(&val, column));
    }

    fn write_date(&mut self, col: usize, val: SqlDate) {
        self.add(col, |column| column.date(moment::date(val.get_days())?));
    }

    fn write_time(&mut self, col: usize, val: SqlTime) {
        self.add(col, |column| column.time(ticks(&val)?));
    }

    fn write_datetime(&mut self, col: usize, val: SqlDateTime) {
        self.add(col, |column| column.wall(moment::datetime(val.days, val.time)));
    }

    fn write_smalldatetime(&mut self, col: usize, val: SqlSmallDateTime) {
        self.add(col, |column| column.wall(moment::smalldatetime(val.days, val.time)));
    }

    fn write_datetime2(&mut self, col: usize, val: SqlDateTime2) {
        self.add(col, |column| column.wall(micros(&val)?));
    }

    fn write_datetimeoffset(&mut self, col: usize, val: SqlDateTimeOffset) {
        // On the wire the moment is in UTC; the offset that it was written with stands beside it.
        self.add(col, |column| column.instant(micros(&val.datetime2)?));
    }

    fn write_money(&mut self, col: usize, val: SqlMoney) {
        self.add(col, |column| column.decimal(money(&val), MONEY_SCALE));
    }

    fn write_smallmoney(&mut self, col: usize, val: SqlSmallMoney) {
        self.add(col, |column| column.decimal(val.int_val.into(), MONEY_SCALE));
    }

    fn write_uuid(&mut self, col: usize, val: Uuid) {
        self.add(col, |column| column.uuid(val.into_bytes()));
    }

    fn write_xml(&mut self, col: usize, val: SqlXml) {
        self.utf16(col, &val.bytes);
    }

    // Types of newer servers. The preflight refuses their columns.
    fn write_json(&mut self, col: usize, _val: SqlJson) {
        self.add(col, |_| Err(Misfit));
    }

    fn write_vector(&mut self, col: usize, _val: SqlVector) {
        self.add(col, |_| Err(Misfit));
    }

    fn end_row(&mut self) {
        self.batch.end_row();
    }
}

#[cfg(test)]
mod tests;
