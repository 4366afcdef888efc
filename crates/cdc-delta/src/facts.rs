//! Facts: one row a batch and one row a batch event, and their copy inside the bronze commit.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    new_null_array,
};
use arrow_schema::{DataType, TimeUnit};
use cdc_core::{BatchEvent, Commit, Error, Mark, Result, Timestamp};
use serde::{Deserialize, Serialize};

use crate::log::Layout;

/// Characters of an event's detail that a row keeps.
const DETAIL_MAX: usize = 500;

/// A cell of a facts row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Whole(i64),
    Real(f64),
    Text(String),
}

/// A row of the facts table: its cells by column name; a missing one is NULL. Times are
/// microseconds.
pub(crate) type Row = BTreeMap<String, Cell>;

/// The rows of one batch, as the bronze commit carries them along.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The batch's own row.
    #[serde(flatten)]
    pub(crate) batch: Row,
    /// Its events' rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) events: Vec<Row>,
}

struct Filler(Row);

impl Filler {
    fn whole(&mut self, name: &str, value: Option<i64>) -> &mut Self {
        self.put(name, value.map(Cell::Whole))
    }

    fn count(&mut self, name: &str, value: u64) -> &mut Self {
        self.whole(name, i64::try_from(value).ok())
    }

    fn time(&mut self, name: &str, value: Option<Timestamp>) -> &mut Self {
        self.whole(name, value.map(Timestamp::as_micros))
    }

    /// A finite number, rounded to `digits` after the point.
    fn real(&mut self, name: &str, value: Option<f64>, digits: i32) -> &mut Self {
        let unit = 10f64.powi(digits);
        let value = value.map(|value| (value * unit).round() / unit);
        self.put(name, value.filter(|v| v.is_finite()).map(Cell::Real))
    }

    fn text(&mut self, name: &str, value: Option<String>) -> &mut Self {
        self.put(name, value.map(Cell::Text))
    }

    fn put(&mut self, name: &str, cell: Option<Cell>) -> &mut Self {
        if let Some(cell) = cell {
            self.0.insert(name.to_owned(), cell);
        }
        self
    }
}

/// The rows of a batch.
pub(crate) fn record(table: &str, commit: &Commit) -> Record {
    let (mark, facts) = (&commit.mark, &commit.facts);
    let counts = &facts.counts;
    let position_time =
        mark.commit_time.or_else(|| counts.last.and_then(|stamp| stamp.commit_time));
    let seconds = |from: Option<Timestamp>, to: Option<Timestamp>| {
        // Differences of moments are far below 2^53 microseconds apart from faulty clocks.
        #[allow(clippy::cast_precision_loss)]
        Some(to?.micros_since(from?) as f64 / 1e6)
    };
    let mut row = base(table, mark);
    row.count("rows", counts.rows)
        .text("min_lsn", counts.first.map(|s| s.position.to_string()))
        .text("max_lsn", counts.last.map(|s| s.position.to_string()))
        .time("min_commit_ts", counts.first.and_then(|s| s.commit_time))
        .time("max_commit_ts", counts.last.and_then(|s| s.commit_time))
        .count("deletes", counts.deletes)
        .count("inserts", counts.inserts)
        .count("updates", counts.updates)
        .time("started_at", Some(facts.started_at))
        .whole("duration_ms", Some(facts.duration_ms))
        .real("read_seconds", Some(facts.read_seconds), 3)
        .real("read_mb", Some(megabytes(facts.read_bytes)), 6)
        .time("retention_watermark_ts", facts.retention_watermark)
        .real(
            "retention_headroom_hours",
            seconds(facts.retention_watermark, position_time).map(|s| s / 3_600.0),
            2,
        )
        .time("source_max_commit_ts", facts.source_commit_time)
        .real("capture_lag_seconds", facts.capture_lag_seconds, 3)
        .real("ingestion_lag_seconds", seconds(position_time, facts.source_commit_time), 3)
        .text("detail", warnings(&facts.warnings));
    Record {
        batch: row.0,
        events: commit.events.iter().map(|event| event_row(table, mark, event)).collect(),
    }
}

#[allow(clippy::cast_precision_loss, reason = "a figure to report")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// The least that a mark tells of its batch.
pub(crate) fn bare(table: &str, mark: &Mark) -> Record {
    Record { batch: base(table, mark).0, events: Vec::new() }
}

fn base(table: &str, mark: &Mark) -> Filler {
    let mut row = Filler(Row::new());
    row.text("app_id", Some(format!("cdc/{table}")))
        .count("batch_id", mark.sequence)
        .text("end_lsn", Some(mark.end.to_string()))
        .time("end_commit_ts", mark.commit_time)
        .text("target", Some(table.to_owned()));
    row
}

fn event_row(table: &str, mark: &Mark, event: &BatchEvent) -> Row {
    let at = Some(event.at.position.to_string());
    let time = event.at.commit_time;
    let (lost_from, lost_to) = event.lost.unwrap_or((None, None));
    let mut row = base(table, mark);
    row.0.remove("end_commit_ts");
    for count in ["rows", "deletes", "inserts", "updates"] {
        row.count(count, 0);
    }
    row.text("min_lsn", at.clone())
        .text("max_lsn", at.clone())
        .text("end_lsn", at)
        .time("min_commit_ts", time)
        .time("max_commit_ts", time)
        .time("end_commit_ts", time)
        .text("event", Some(event.kind.name().to_owned()))
        .time("lost_from_ts", lost_from)
        .time("lost_to_ts", lost_to)
        .text("detail", Some(event.detail.chars().take(DETAIL_MAX).collect()));
    row.0
}

fn warnings(warnings: &[String]) -> Option<String> {
    (!warnings.is_empty()).then(|| serde_json::json!({ "warnings": warnings }).to_string())
}

impl Record {
    /// The compact text that the bronze commit carries.
    pub(crate) fn text(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::bug("facts make no JSON").caused_by(error))
    }

    /// The record in a bronze commit's text, when it is the one of batch `sequence`.
    pub(crate) fn of_text(text: &str, sequence: u64) -> Option<Self> {
        let record: Self = serde_json::from_str(text).ok()?;
        let batch = i64::try_from(sequence).ok().map(Cell::Whole)?;
        (record.batch.get("batch_id") == Some(&batch)).then_some(record)
    }

    /// The rows in the form of the facts table.
    pub(crate) fn rows(&self, layout: &Layout, written_at: Timestamp) -> Result<RecordBatch> {
        let written_at = Cell::Whole(written_at.as_micros());
        let rows: Vec<&Row> = std::iter::once(&self.batch).chain(&self.events).collect();
        let cells = |name: &str| -> Vec<Option<&Cell>> {
            rows.iter()
                .map(|row| match name {
                    "written_at" => Some(&written_at),
                    _ => row.get(name),
                })
                .collect()
        };
        table_rows(layout, rows.len(), &cells)
    }
}

/// Rows of a table of library columns, cell by cell.
pub(crate) fn table_rows<'a>(
    layout: &Layout,
    rows: usize,
    cells: &dyn Fn(&str) -> Vec<Option<&'a Cell>>,
) -> Result<RecordBatch> {
    let mut columns: Vec<ArrayRef> = Vec::new();
    let fields = layout.logical.fields().iter();
    for (logical, physical) in fields.zip(layout.physical.fields()) {
        let cells = cells(logical.name());
        let whole = || cells.iter().map(|cell| cell.and_then(as_whole));
        columns.push(match physical.data_type() {
            DataType::Utf8 => {
                let texts = cells.iter().map(|cell| match cell {
                    Some(Cell::Text(text)) => Some(text.as_str()),
                    _ => None,
                });
                Arc::new(texts.collect::<StringArray>())
            }
            DataType::Int64 => Arc::new(whole().collect::<Int64Array>()),
            DataType::Float64 => {
                let reals = cells.iter().map(|cell| match cell {
                    Some(Cell::Real(real)) => Some(*real),
                    #[allow(clippy::cast_precision_loss, reason = "JSON drops the fraction .0")]
                    Some(Cell::Whole(whole)) => Some(*whole as f64),
                    _ => None,
                });
                Arc::new(reals.collect::<Float64Array>())
            }
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Arc::new(whole().collect::<TimestampMicrosecondArray>())
            }
            other => new_null_array(other, rows),
        });
    }
    RecordBatch::try_new(Arc::clone(&layout.physical), columns)
        .map_err(|error| Error::bug("rows do not fit their table").caused_by(error))
}

fn as_whole(cell: &Cell) -> Option<i64> {
    match cell {
        Cell::Whole(whole) => Some(*whole),
        _ => None,
    }
}
