//! The one report at the end of the process: for people, or as one JSON object.

use std::io::{self, Write};

use cdc_core::{Error, ErrorKind, Mark, RunReport, TableReport, Timestamp};
use serde::Serialize;

use crate::{
    config::{Problem, Problems, Refusal},
    exit::Exit,
};

/// A moment as text: RFC 3339 in UTC.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Serialize for Moment {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// What is durable for a table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MarkLine {
    /// Counts the table's commits.
    pub(crate) sequence: u64,
    /// Everything at or before this is in the target.
    pub(crate) end: String,
    /// The commit time of `end`.
    pub(crate) commit_time: Option<Moment>,
    /// Counts the snapshots after data loss.
    pub(crate) generation: u32,
}

impl From<&Mark> for MarkLine {
    fn from(mark: &Mark) -> Self {
        Self {
            sequence: mark.sequence,
            end: mark.end.to_string(),
            commit_time: mark.commit_time.map(Moment),
            generation: mark.generation,
        }
    }
}

/// Why something failed, and what to do.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Failure {
    #[serde(skip)]
    pub(crate) exit: Exit,
    /// The error's kind.
    pub(crate) kind: &'static str,
    /// What happened, with its place.
    pub(crate) message: String,
    /// What to do.
    pub(crate) advice: String,
    /// Every problem of a configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) problems: Vec<Problem>,
}

impl Failure {
    /// A command line that says nothing sensible.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self {
            exit: Exit::BadConfiguration,
            kind: ErrorKind::Config.name(),
            message: message.into(),
            advice: "see cdc --help".into(),
            problems: Vec::new(),
        }
    }
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            exit: Exit::of(error.kind()),
            kind: error.kind().name(),
            message: error.report(),
            advice: error.advice().to_owned(),
            problems: Vec::new(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (file, reason) = match refusal {
            Refusal::Wrong(problems) => return problems.into(),
            Refusal::Unreadable { file, reason } => (file, reason),
        };
        let error =
            Error::new(ErrorKind::Config, format!("configuration cannot be read: {reason}"));
        error.with("file", file.display()).remedy("give the path of a configuration file").into()
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self {
            exit: Exit::BadConfiguration,
            kind: ErrorKind::Config.name(),
            message: format!("configuration is wrong file={}", problems.file.display()),
            advice: "correct every setting that is listed; nothing was written".into(),
            problems: problems.list,
        }
    }
}

/// What a command did for one table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct TableLine {
    /// The table's name in the target.
    pub(crate) table: String,
    /// Change rows that this process made durable.
    pub(crate) rows: u64,
    /// Batches with rows that this process made durable.
    pub(crate) batches: u64,
    /// What is durable.
    pub(crate) mark: Option<MarkLine>,
    /// Up to when the table is complete.
    pub(crate) finalized_until: Option<Moment>,
    /// Why the table stopped.
    pub(crate) error: Option<Failure>,
}

impl TableLine {
    /// How the table stands, in a word or two.
    fn state(&self) -> &'static str {
        match (&self.error, &self.mark) {
            (Some(error), _) => error.kind,
            (None, Some(_)) => "copied",
            (None, None) => "nothing yet",
        }
    }
}

impl From<&TableReport> for TableLine {
    fn from(report: &TableReport) -> Self {
        Self {
            table: report.table.clone(),
            rows: report.rows,
            batches: report.batches,
            mark: report.mark.as_ref().map(MarkLine::from),
            finalized_until: report.verdict.and_then(|verdict| verdict.finalized_until).map(Moment),
            error: report.error.as_ref().map(Failure::from),
        }
    }
}

/// What a command did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// The command.
    pub(crate) command: &'static str,
    /// How it ended, in one word.
    pub(crate) outcome: &'static str,
    /// The process's exit code.
    pub(crate) exit_code: u8,
    /// Seconds of work.
    pub(crate) seconds: f64,
    /// Where the tables lie.
    pub(crate) target: Option<String>,
    /// Up to when all tables are complete.
    pub(crate) finalized_until: Option<Moment>,
    /// True when the process was asked to stop before it was done.
    pub(crate) stopped: bool,
    /// The tables, of a command that copies some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tables: Option<Vec<TableLine>>,
    /// Why the command failed as a whole.
    pub(crate) error: Option<Failure>,
    /// What only this command tells.
    #[serde(flatten)]
    pub(crate) more: serde_json::Map<String, serde_json::Value>,
    /// The same for people, in lines.
    #[serde(skip)]
    pub(crate) lines: Vec<String>,
}

impl Report {
    /// The report of a command that ended as `exit` says.
    pub(crate) fn new(command: &'static str, exit: Exit) -> Self {
        Self {
            command,
            outcome: exit.name(),
            exit_code: exit.code(),
            seconds: 0.0,
            target: None,
            finalized_until: None,
            stopped: false,
            // Status has lines of its own.
            tables: (command != crate::status::NAME).then(Vec::new),
            error: None,
            more: serde_json::Map::new(),
            lines: Vec::new(),
        }
    }

    /// The report of a command that failed as a whole.
    pub(crate) fn failed(command: &'static str, failure: Failure) -> Self {
        Self { error: Some(failure.clone()), ..Self::new(command, failure.exit) }
    }

    /// The same with the tables of a run.
    pub(crate) fn with_run(mut self, run: &RunReport) -> Self {
        self.tables = Some(run.tables.iter().map(TableLine::from).collect());
        self.finalized_until = run.finalized_until().map(Moment);
        self
    }

    /// Adds a field of this command alone, with its line for people.
    pub(crate) fn tell(&mut self, key: &str, value: impl Into<serde_json::Value>, line: String) {
        self.more.insert(key.into(), value.into());
        self.lines.push(line);
    }

    /// Writes the report.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn write(&self, json: bool, out: &mut dyn Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        self.write_text(out)
    }

    fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        if let Some(error) = &self.error {
            write_failure(out, "", error)?;
        }
        let tables = self.tables.as_deref().unwrap_or_default();
        if !tables.is_empty() {
            write_tables(out, tables)?;
        }
        for table in tables {
            if let Some(error) = &table.error {
                write_failure(out, &format!("{}: ", table.table), error)?;
            }
        }
        for line in &self.lines {
            writeln!(out, "{line}")?;
        }
        if tables.len() > 1 {
            writeln!(out, "all tables complete until: {}", text(self.finalized_until))?;
        }
        if let Some(target) = &self.target {
            writeln!(out, "tables lie in: {target}")?;
        }
        let stopped = if self.stopped { ", stopped on request" } else { "" };
        let (command, outcome, seconds) = (self.command, self.outcome, self.seconds);
        writeln!(out, "{command}: {outcome}{stopped} after {seconds:.1} s")
    }
}

fn text(moment: Option<Moment>) -> String {
    moment.map_or_else(|| "-".into(), |moment| moment.0.to_string())
}

fn write_failure(out: &mut dyn Write, place: &str, failure: &Failure) -> io::Result<()> {
    writeln!(out, "{place}{}: {}", failure.kind, failure.message)?;
    for problem in &failure.problems {
        writeln!(out, "  {problem}")?;
    }
    writeln!(out, "  what to do: {}", failure.advice)
}

fn write_tables(out: &mut dyn Write, tables: &[TableLine]) -> io::Result<()> {
    let head = ["table", "rows", "seq", "end", "commit time", "complete until", "state"];
    let mut grid = vec![head.map(String::from)];
    for table in tables {
        let mark = table.mark.as_ref();
        grid.push([
            table.table.clone(),
            table.rows.to_string(),
            mark.map_or_else(|| "-".into(), |mark| mark.sequence.to_string()),
            mark.map_or_else(|| "-".into(), |mark| mark.end.clone()),
            text(mark.and_then(|mark| mark.commit_time)),
            text(table.finalized_until),
            table.state().to_owned(),
        ]);
    }
    write_grid(out, &grid)
}

/// Writes rows of cells with columns of equal width.
pub(crate) fn write_grid<const N: usize>(
    out: &mut dyn Write,
    grid: &[[String; N]],
) -> io::Result<()> {
    let mut widths = [0; N];
    for row in grid {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    for row in grid {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cdc_core::{Lsn, Verdict, batch::Stamp};

    use super::*;

    fn run() -> RunReport {
        let time = Timestamp::from_micros(1_383_458_400_000_000);
        let end = Lsn::from_u128(0x2A_0000_01F8_0003).expect("below 2^80").into();
        let mark =
            Mark { sequence: 7, end, commit_time: Some(time), entry_time: None, generation: 0 };
        let verdict = Verdict {
            finalized_until: Some(time),
            end: Stamp { position: end, commit_time: Some(time) },
        };
        RunReport {
            tables: vec![
                TableReport {
                    table: "flights".into(),
                    mark: Some(mark),
                    verdict: Some(verdict),
                    rows: 12,
                    batches: 2,
                    error: None,
                },
                TableReport {
                    table: "planes".into(),
                    mark: None,
                    verdict: None,
                    rows: 0,
                    batches: 0,
                    error: Some(
                        Error::new(ErrorKind::DataLoss, "range was purged").with("table", "planes"),
                    ),
                },
            ],
        }
    }

    fn written(report: &Report, json: bool) -> String {
        let mut out = Vec::new();
        report.write(json, &mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn people_read_every_table_its_mark_its_verdict_and_what_to_do() {
        let report =
            Report { seconds: 1.26, ..Report::new("run", Exit::DataLoss) }.with_run(&run());
        let text = written(&report, false);
        let expected = "\
table    rows  seq  end                     commit time           complete until        state
flights  12    7    0x0000002A000001F80003  2013-11-03T06:00:00Z  2013-11-03T06:00:00Z  copied
planes   0     -    -                       -                     -                     data_loss
planes: data_loss: range was purged table=planes
  what to do: copy the table into a new target (another name or root), starting at earliest; \
the old copy stays as it was, complete until its verdict
all tables complete until: -
run: data_loss after 1.3 s
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_program_reads_one_object_on_one_line() {
        let mut report = Report::new("run", Exit::DataLoss).with_run(&run());
        report.tell("resumed_at", "0x01", "resumed at 0x01".into());
        let text = written(&report, true);
        assert_eq!(text.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&text).expect("one object");
        assert_eq!(value["exit_code"], 3);
        assert_eq!(value["outcome"], "data_loss");
        assert_eq!(value["resumed_at"], "0x01");
        assert_eq!(value["tables"][0]["mark"]["end"], "0x0000002A000001F80003");
        assert_eq!(value["tables"][0]["finalized_until"], "2013-11-03T06:00:00Z");
        assert_eq!(value["tables"][1]["error"]["kind"], "data_loss");
        assert!(value["finalized_until"].is_null());
    }
}
