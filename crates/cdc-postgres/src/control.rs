//! A table's record in the form of the control table: one row of it.

use std::time::{Duration, SystemTime};

use cdc_core::{Epoch, Error, ErrorKind, Mark, Position, Result, Stamp, Timestamp, Verdict};
use tokio_postgres::{
    Row,
    types::{FromSql, ToSql},
};

use crate::{name::CONTROL, record::Record};

/// The values of one row, but for the table's name.
pub(crate) struct ControlRow<'a> {
    record: &'a Record,
    sequence: Option<i64>,
    mark_epoch: Option<i64>,
    mark_end: Option<String>,
    mark_commit_time: Option<SystemTime>,
    mark_entry_time: Option<SystemTime>,
    generation: Option<i64>,
    finalized_until: Option<SystemTime>,
    verdict_epoch: Option<i64>,
    verdict_end: Option<String>,
    verdict_commit_time: Option<SystemTime>,
}

impl<'a> ControlRow<'a> {
    /// The row of a record.
    pub(crate) fn of(record: &'a Record) -> Result<Self> {
        let mark = record.mark.as_ref();
        let verdict = record.verdict.as_ref();
        let epoch = |position: Position| i64::from(position.epoch().0);
        let sequence = mark.map(|mark| i64::try_from(mark.sequence)).transpose();
        Ok(Self {
            record,
            sequence: sequence.map_err(|_| Error::bug("sequence does not fit the record"))?,
            mark_epoch: mark.map(|mark| epoch(mark.end)),
            mark_end: mark.map(|mark| mark.end.to_string()),
            mark_commit_time: mark.and_then(|mark| mark.commit_time).map(system_time),
            mark_entry_time: mark.and_then(|mark| mark.entry_time).map(system_time),
            generation: mark.map(|mark| i64::from(mark.generation)),
            finalized_until: verdict.and_then(|verdict| verdict.finalized_until).map(system_time),
            verdict_epoch: verdict.map(|verdict| epoch(verdict.end.position)),
            verdict_end: verdict.map(|verdict| verdict.end.position.to_string()),
            verdict_commit_time: verdict
                .and_then(|verdict| verdict.end.commit_time)
                .map(system_time),
        })
    }

    /// The parameters of the statement that writes it.
    pub(crate) fn parameters(&'a self, table: &'a &'a str) -> [&'a (dyn ToSql + Sync); 16] {
        let Record { source, columns, key, runner, handle, .. } = self.record;
        [
            table,
            source,
            columns,
            key,
            runner,
            handle,
            &self.sequence,
            &self.mark_epoch,
            &self.mark_end,
            &self.mark_commit_time,
            &self.mark_entry_time,
            &self.generation,
            &self.finalized_until,
            &self.verdict_epoch,
            &self.verdict_end,
            &self.verdict_commit_time,
        ]
    }
}

pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(|_| {
        Error::new(ErrorKind::InvalidData, "the target's records have another form")
            .with("table", CONTROL)
            .with("column", row.columns().get(at).map_or("", |column| column.name()))
    })
}

/// A table's record as the control table has it.
pub(crate) fn record(table: &str, row: &Row) -> Result<Record> {
    let damaged = |column: &str| {
        Error::new(ErrorKind::InvalidData, "the target's record is damaged")
            .with("table", table)
            .with("column", column)
    };
    let small = |at: usize, column: &str| -> Result<Option<u32>> {
        let number: Option<i64> = get(row, at)?;
        number.map(|number| u32::try_from(number).map_err(|_| damaged(column))).transpose()
    };
    let place = |epoch_at: usize, end_at: usize, column: &str| -> Result<Option<Position>> {
        let text: Option<String> = get(row, end_at)?;
        match (small(epoch_at, column)?, text) {
            (None, None) => Ok(None),
            (Some(epoch), Some(text)) => {
                let bytes = unhex(&text).ok_or_else(|| damaged(column))?;
                Position::new(Epoch(epoch), &bytes).map(Some).map_err(|_| damaged(column))
            }
            _ => Err(damaged(column)),
        }
    };
    let time = |at: usize, column: &str| -> Result<Option<Timestamp>> {
        let time: Option<SystemTime> = get(row, at)?;
        time.map(|time| timestamp(time).ok_or_else(|| damaged(column))).transpose()
    };
    let sequence: Option<i64> = get(row, 6)?;
    let mark = match (sequence, place(7, 8, "mark_end")?, small(11, "generation")?) {
        (None, None, None) => None,
        (Some(sequence), Some(end), Some(generation)) => Some(Mark {
            sequence: u64::try_from(sequence).map_err(|_| damaged("sequence"))?,
            end,
            commit_time: time(9, "mark_commit_time")?,
            entry_time: time(10, "mark_entry_time")?,
            generation,
        }),
        _ => return Err(damaged("sequence")),
    };
    let verdict = match place(13, 14, "verdict_end")? {
        None => None,
        Some(position) => Some(Verdict {
            finalized_until: time(12, "finalized_until")?,
            end: Stamp { position, commit_time: time(15, "verdict_commit_time")? },
        }),
    };
    Ok(Record {
        source: get(row, 1)?,
        columns: get(row, 2)?,
        key: get(row, 3)?,
        runner: get(row, 4)?,
        handle: get(row, 5)?,
        mark,
        verdict,
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok().filter(|text| text.len() == 2)?;
        u8::from_str_radix(text, 16).ok()
    };
    digits.chunks(2).map(byte).collect()
}

fn system_time(moment: Timestamp) -> SystemTime {
    let micros = Duration::from_micros(moment.as_micros().unsigned_abs());
    if moment.as_micros() < 0 {
        SystemTime::UNIX_EPOCH - micros
    } else {
        SystemTime::UNIX_EPOCH + micros
    }
}

fn timestamp(time: SystemTime) -> Option<Timestamp> {
    let micros = |duration: Duration| i64::try_from(duration.as_micros()).ok();
    let micros = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => micros(after)?,
        Err(before) => micros(before.duration())?.checked_neg()?,
    };
    Some(Timestamp::from_micros(micros))
}
