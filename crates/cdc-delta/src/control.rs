//! Control: each table's verdict, one row a table, replaced as a whole.

use std::sync::Arc;

use arrow_array::{
    Array, BooleanArray, RecordBatch, StringArray, TimestampMicrosecondArray, cast::AsArray,
};
use arrow_select::{concat::concat_batches, filter::filter_record_batch};
use cdc_core::{Epoch, Error, ErrorKind, Position, Result, Stamp, Timestamp, Verdict};
use delta_kernel::{
    FilteredEngineData,
    engine::arrow_data::ArrowEngineData,
    expressions::{Expression, Predicate, Scalar, column_expr},
    snapshot::SnapshotRef,
};
use object_store::path::Path;

use crate::{
    facts::{Cell, table_rows},
    ledger::{Head, Ledger, Refused},
    log::{Change, Layout, Log, Outcome},
    mark::Names,
    migration::crowded,
};

/// A stored verdict and the number of the mark it rests on.
pub(crate) struct Stored {
    pub(crate) verdict: Verdict,
    pub(crate) sequence: i64,
}

/// The files that may hold a table's row, and their rows.
struct Held {
    files: Vec<FilteredEngineData>,
    rows: Vec<RecordBatch>,
}

async fn held(log: &Log, snapshot: &SnapshotRef, table: &str) -> Result<Held> {
    let snapshot = Arc::clone(snapshot);
    let table = Expression::literal(Scalar::String(table.to_owned()));
    log.run(move |engine| {
        let predicate = Arc::new(Predicate::eq(column_expr!("table_name"), table));
        let scan = snapshot.scan_builder().with_predicate(predicate).build()?;
        let mut files = Vec::new();
        for metadata in scan.scan_metadata(engine.as_ref())? {
            files.push(metadata?.scan_files);
        }
        let mut rows = Vec::new();
        for data in scan.execute(Arc::clone(engine))? {
            let data = ArrowEngineData::try_from_engine_data(data?)?;
            rows.push(data.record_batch().clone());
        }
        Ok(Held { files, rows })
    })
    .await
}

/// What is stored of a table as of a snapshot.
pub(crate) async fn stored(
    log: &Log,
    snapshot: &SnapshotRef,
    names: &Names,
    table: &str,
) -> Result<Option<Stored>> {
    let held = held(log, snapshot, table).await?;
    verdict_of(log, snapshot, names, table, &held).await
}

async fn verdict_of(
    log: &Log,
    snapshot: &SnapshotRef,
    names: &Names,
    table: &str,
    held: &Held,
) -> Result<Option<Stored>> {
    let damaged = |column: &'static str| {
        Error::new(ErrorKind::InvalidData, "the table's row in control is damaged")
            .with("path", &log.place)
            .with("table", table)
            .with("column", column)
            .remedy("delete the table's row from control; the next verdict writes it again")
    };
    let mut found = None;
    for batch in &held.rows {
        for row in 0..batch.num_rows() {
            if text(batch, "table_name", row) == Some(table) {
                found = Some((batch, row));
            }
        }
    }
    let Some((batch, row)) = found else {
        return Ok(None);
    };
    let wanted = vec![names.sequence(), names.epoch()];
    let entries = log.entries(snapshot, wanted).await?;
    let sequence = *entries.get(&names.sequence()).ok_or_else(|| damaged("end_lsn"))?;
    let epoch = entries
        .get(&names.epoch())
        .and_then(|epoch| u32::try_from(*epoch).ok())
        .ok_or_else(|| damaged("end_lsn"))?;
    let bytes = text(batch, "end_lsn", row).and_then(unhex).ok_or_else(|| damaged("end_lsn"))?;
    Ok(Some(Stored {
        verdict: Verdict {
            finalized_until: time(batch, "finalized_until", row),
            end: Stamp {
                position: Position::new(Epoch(epoch), &bytes).map_err(|_| damaged("end_lsn"))?,
                commit_time: time(batch, "end_commit_ts", row),
            },
        },
        sequence,
    }))
}

fn text<'a>(batch: &'a RecordBatch, name: &str, row: usize) -> Option<&'a str> {
    let column: &StringArray = batch.column_by_name(name)?.as_string_opt()?;
    (row < column.len() && column.is_valid(row)).then(|| column.value(row))
}

fn time(batch: &RecordBatch, name: &str, row: usize) -> Option<Timestamp> {
    let column: &TimestampMicrosecondArray = batch.column_by_name(name)?.as_primitive_opt()?;
    (row < column.len() && column.is_valid(row)).then(|| Timestamp::from_micros(column.value(row)))
}

/// The bytes of a position's text.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?;
    // A parser of numbers would also take a sign for a digit.
    let hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    (hex && digits.len() % 2 == 0).then_some(())?;
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect()
}

/// The verdict to store: the moment never goes back.
fn merge(old: Option<&Verdict>, new: Verdict) -> Verdict {
    let before = old.and_then(|old| old.finalized_until);
    Verdict {
        finalized_until: before.max(new.finalized_until),
        end: match old {
            Some(old) if old.end.position > new.end.position => old.end,
            _ => new.end,
        },
    }
}

/// Stores a verdict that rests on mark `sequence`, and returns what is stored then.
pub(crate) async fn store(
    ledger: &Ledger,
    names: &Names,
    table: &str,
    sequence: i64,
    verdict: Verdict,
) -> Result<Verdict> {
    let log = &ledger.log;
    let mut guard = ledger.lock().await?;
    let head = &mut *guard;
    let mut doubt = None;
    let mut refused = Refused::default();
    ledger.confirm(head).await?;
    let attempts = log.shared.config.commit_attempts_max;
    for attempt in 0..=attempts {
        if attempt > 0 {
            log.shared.pause(attempt).await;
            ledger.refresh(head).await?;
        }
        let held = held(log, &head.snapshot, table).await?;
        let old = verdict_of(log, &head.snapshot, names, table, &held).await?;
        let merged = merge(old.as_ref().map(|old| &old.verdict), verdict);
        if let Some(old) = old
            && (old.sequence > sequence || old.verdict == merged)
        {
            return Ok(old.verdict);
        }
        // A commit that took a version was no twin, or the verdict would be there.
        ledger.remove_seen(&mut refused, head).await;
        if attempt == attempts {
            break;
        }
        let (outcome, path) = replace(ledger, head, names, (table, sequence), held, merged).await?;
        match outcome {
            Outcome::Landed(snapshot) => {
                head.snapshot = log.checkpoint(snapshot).await;
                return Ok(merged);
            }
            Outcome::Taken => refused.add(&head.snapshot, path),
            Outcome::Unknown(error) => doubt = Some(error),
        }
    }
    Err(doubt.unwrap_or_else(|| crowded(log)))
}

/// Puts the row in the place of the old one, and every other row of its file beside it. Gives the
/// new file's path with the outcome.
async fn replace(
    ledger: &Ledger,
    head: &Head,
    names: &Names,
    (table, sequence): (&str, i64),
    held: Held,
    verdict: Verdict,
) -> Result<(Outcome, Path)> {
    let log = &ledger.log;
    let rows = rows(&head.layout, &held.rows, table, &verdict, log.shared.clock.now())?;
    let file = log.small_file(&head.layout, rows).await?;
    let path = log.place.file(&file.name);
    let change = Change {
        operation: "WRITE",
        add: vec![file],
        remove: held.files,
        entries: vec![
            (names.sequence(), sequence),
            (names.epoch(), i64::from(verdict.end.position.epoch().0)),
        ],
        ..Change::default()
    };
    Ok((log.commit(&head.snapshot, change).await?, path))
}

fn rows(
    layout: &Layout,
    held: &[RecordBatch],
    table: &str,
    verdict: &Verdict,
    now: Timestamp,
) -> Result<RecordBatch> {
    let bug =
        |error: arrow_schema::ArrowError| Error::bug("rows of control do not fit").caused_by(error);
    let mut kept = Vec::new();
    for batch in held {
        let others: BooleanArray = (0..batch.num_rows())
            .map(|row| Some(text(batch, "table_name", row) != Some(table)))
            .collect();
        let others = filter_record_batch(batch, &others).map_err(bug)?;
        let columns = others.columns().to_vec();
        kept.push(RecordBatch::try_new(Arc::clone(&layout.physical), columns).map_err(bug)?);
    }
    let micros = |time: Option<Timestamp>| time.map(|time| Cell::Whole(time.as_micros()));
    let cells = [
        ("table_name", Some(Cell::Text(table.to_owned()))),
        ("finalized_until", micros(verdict.finalized_until)),
        ("end_lsn", Some(Cell::Text(verdict.end.position.to_string()))),
        ("end_commit_ts", micros(verdict.end.commit_time)),
        ("updated_at", micros(Some(now))),
    ];
    let cell = |name: &str| {
        let found = cells.iter().find(|(own, _)| *own == name);
        vec![found.and_then(|(_, cell)| cell.as_ref())]
    };
    kept.push(table_rows(layout, 1, &cell)?);
    concat_batches(&layout.physical, &kept).map_err(bug)
}

#[cfg(test)]
mod tests {
    use cdc_core::Lsn;

    use super::*;

    fn verdict(until: Option<i64>, end: u128) -> Verdict {
        Verdict {
            finalized_until: until.map(Timestamp::from_micros),
            end: Stamp { position: Lsn::from_u128(end).expect("small").into(), commit_time: None },
        }
    }

    #[test]
    fn a_stored_moment_never_goes_back() {
        let old = verdict(Some(5), 7);
        assert_eq!(merge(Some(&old), verdict(Some(3), 8)), verdict(Some(5), 8));
        assert_eq!(merge(Some(&old), verdict(None, 6)), verdict(Some(5), 7));
        assert_eq!(merge(None, verdict(None, 6)), verdict(None, 6));
    }

    #[test]
    fn a_position_comes_back_from_its_text() {
        let position = verdict(None, 0xAB_CDEF).end.position;
        let bytes = unhex(&position.to_string()).expect("hex");
        assert_eq!(bytes, position.as_bytes());
        assert_eq!(unhex("0x123"), None);
        assert_eq!(unhex("12"), None);
        assert_eq!(unhex("0x€"), None);
        assert_eq!(unhex("0x+F"), None);
    }
}
