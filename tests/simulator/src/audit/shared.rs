//! The tables that all runners share: facts and control, row by row.

use arrow_array::RecordBatch;
use cdc_conformance::cell::Cell;
use cdc_core::{Lsn, Position, Timestamp};
use object_store::path::Path;

use super::{Auditor, readable};
use crate::{
    book::{self, Entry},
    bronze::{cell, micros},
    invariant::Invariant,
    ledger::{Told, subject},
    target::Broken,
};

/// The table, the moment and the end of a row of control.
pub(super) fn stored(
    batch: &RecordBatch,
    row: usize,
) -> Result<(String, Option<Timestamp>, Position), Broken> {
    let (Cell::Text(table), Cell::Text(end)) =
        (cell(batch, "table_name", row), cell(batch, "end_lsn", row))
    else {
        return Err(readable("a verdict without a table or an end".into()));
    };
    let until = micros(&cell(batch, "finalized_until", row)).map(Timestamp::from_micros);
    let end = Position::from(end.parse::<Lsn>().map_err(|error| readable(error.to_string()))?);
    Ok((table, until, end))
}

impl Auditor {
    pub(super) fn control(&self, place: &Path, entry: &Entry) -> Result<(), Broken> {
        for file in &entry.add {
            for batch in book::rows(&self.objects, place, file).map_err(readable)? {
                for row in 0..batch.num_rows() {
                    self.verdict(&batch, row)?;
                }
            }
        }
        Ok(())
    }

    fn verdict(&self, batch: &RecordBatch, row: usize) -> Result<(), Broken> {
        let (table, until, end) = stored(batch, row)?;
        let archive = self.database.archive(0);
        let mut inner = self.inner();
        let book = inner.books.entry(table.clone()).or_default();
        if until != book.finalized {
            self.record.note(format!("verdict {table} {until:?} by {end}"));
        }
        if until < book.finalized || Some(end) < book.verdict_end {
            let detail = format!("{table}: {until:?} by {end} after {:?}", book.finalized);
            return Err((Invariant::VerdictForward, detail));
        }
        let mark = book.mark;
        if mark.is_none_or(|mark| end > mark.end || until > mark.commit_time) {
            let detail = format!("{table}: {until:?} by {end}, the mark is {mark:?}");
            return Err((Invariant::VerdictCovered, detail));
        }
        let replaced = book.is_replaced(&self.stage.forks());
        if let Some(until) = until.filter(|_| !replaced) {
            let early = archive.iter().find(|commit| {
                Position::from(commit.lsn) > end
                    && commit.changes.iter().any(|change| change.table.name == table)
                    && self.effective(commit.moment) < until
            });
            if let Some(commit) = early {
                let detail = format!("{table}: {until} covers {} of {}", commit.lsn, commit.moment);
                return Err((Invariant::VerdictCovered, detail));
            }
        }
        book.finalized = until;
        book.verdict_end = Some(end);
        Ok(())
    }

    pub(super) fn facts(&self, place: &Path, entry: &Entry) -> Result<(), Broken> {
        for file in &entry.add {
            for batch in book::rows(&self.objects, place, file).map_err(readable)? {
                for row in 0..batch.num_rows() {
                    let (table, id) = match subject(&batch, row).map_err(readable)? {
                        Ok(subject) => subject,
                        Err(event) => {
                            self.record.count(format!("event:{event}"));
                            continue;
                        }
                    };
                    let mut inner = self.inner();
                    let book = inner.books.entry(table.clone()).or_default();
                    if !book.facts.insert(id) {
                        let detail = format!("{table}: batch {id} has two rows");
                        return Err((Invariant::FactsOnce, detail));
                    }
                    let (said, landed) = (Told::read(&batch, row), book.landed.get(&id));
                    if landed != Some(&said) {
                        let detail = format!("{table}: batch {id} is {landed:?}, not {said:?}");
                        return Err((Invariant::FactsTrue, detail));
                    }
                }
            }
        }
        Ok(())
    }
}
