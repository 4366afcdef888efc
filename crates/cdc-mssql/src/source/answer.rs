//! An answer that was read whole, row by row and typed.

use arrow_array::{
    Array, RecordBatch,
    cast::AsArray,
    types::{Int64Type, TimestampMicrosecondType},
};
use cdc_core::{Error, Lsn, Result, ServerTime, Timestamp};

/// The rows of an answer.
#[derive(Debug)]
pub(super) struct Answer(Vec<RecordBatch>);

/// One of its rows. Columns are counted from 0; NULL is none.
#[derive(Clone, Copy, Debug)]
pub(super) struct AnswerRow<'a> {
    batch: &'a RecordBatch,
    row: usize,
}

impl Answer {
    pub(super) const fn new(batches: Vec<RecordBatch>) -> Self {
        Self(batches)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = AnswerRow<'_>> {
        self.0
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(move |row| AnswerRow { batch, row }))
    }

    pub(super) fn first(&self) -> Option<AnswerRow<'_>> {
        self.rows().next()
    }

    pub(super) fn first_int(&self) -> Result<Option<i64>> {
        self.first().map_or(Ok(None), |row| row.int(0))
    }

    pub(super) fn first_text(&self) -> Result<Option<String>> {
        self.first().map_or(Ok(None), |row| Ok(row.text(0)?.map(str::to_owned)))
    }

    pub(super) fn first_lsn(&self) -> Result<Option<Lsn>> {
        self.first().map_or(Ok(None), |row| row.lsn(0))
    }
}

fn wrong(column: usize) -> Error {
    Error::bug("an answer has no such column of this type").with("column", column)
}

impl<'a> AnswerRow<'a> {
    fn cell<A: ?Sized>(
        &self,
        column: usize,
        typed: impl FnOnce(&'a dyn Array) -> Option<&'a A>,
    ) -> Result<Option<&'a A>> {
        let array = self.batch.columns().get(column).ok_or_else(|| wrong(column))?;
        if array.is_null(self.row) {
            return Ok(None);
        }
        typed(array.as_ref()).map(Some).ok_or_else(|| wrong(column))
    }

    pub(super) fn text(&self, column: usize) -> Result<Option<&'a str>> {
        let cells = self.cell(column, |array| array.as_string_opt::<i32>())?;
        Ok(cells.map(|cells| cells.value(self.row)))
    }

    pub(super) fn int(&self, column: usize) -> Result<Option<i64>> {
        let cells = self.cell(column, |array| array.as_primitive_opt::<Int64Type>())?;
        Ok(cells.map(|cells| cells.value(self.row)))
    }

    pub(super) fn bit(&self, column: usize) -> Result<Option<bool>> {
        let cells = self.cell(column, |array| array.as_boolean_opt())?;
        Ok(cells.map(|cells| cells.value(self.row)))
    }

    pub(super) fn lsn(&self, column: usize) -> Result<Option<Lsn>> {
        let cells = self.cell(column, |array| array.as_fixed_size_binary_opt())?;
        let lsn = cells.map(|cells| Lsn::try_from(cells.value(self.row)));
        lsn.transpose().map_err(|error| wrong(column).caused_by(error))
    }

    pub(super) fn reading(&self, column: usize) -> Result<Option<ServerTime>> {
        let cells =
            self.cell(column, |array| array.as_primitive_opt::<TimestampMicrosecondType>())?;
        Ok(cells.map(|cells| reading(cells.value(self.row))))
    }

    /// A moment that the server gave in UTC.
    pub(super) fn moment(&self, column: usize) -> Result<Option<Timestamp>> {
        let cells =
            self.cell(column, |array| array.as_primitive_opt::<TimestampMicrosecondType>())?;
        Ok(cells.map(|cells| Timestamp::from_micros(cells.value(self.row))))
    }

    /// A text that the server never leaves out.
    pub(super) fn some_text(&self, column: usize) -> Result<&'a str> {
        self.text(column)?.ok_or_else(|| wrong(column))
    }
}

/// The reading whose tick was cut to these microseconds.
pub(super) fn reading(micros: i64) -> ServerTime {
    let wall = chrono::DateTime::from_timestamp_micros(micros).unwrap_or_default();
    ServerTime::nearest(wall.naive_utc())
}
