//! Progress lines on a terminal's standard error: one line a table.
//!
//! The observer only writes down figures; a task of the runtime draws them, so that a slow
//! terminal never slows a run.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use cdc_core::{
    Timestamp,
    port::{Event, Observer},
};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between two drawings.
const DRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Most tables that get a line of their own; a terminal shows few more.
const LINES_MAX: usize = 30;

/// The progress lines of the process.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Option<Arc<Shown>>);

#[derive(Debug)]
struct Shown {
    lines: MultiProgress,
    tables: Mutex<BTreeMap<String, Line>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Line {
    staged: u64,
    rows: u64,
    complete_until: Option<Timestamp>,
    state: &'static str,
}

impl Progress {
    /// Lines when wanted and standard error is a terminal; nothing otherwise.
    pub(crate) fn new(wanted: bool) -> Self {
        if !wanted || !std::io::stderr().is_terminal() {
            return Self(None);
        }
        Self(Some(Arc::new(Shown {
            lines: MultiProgress::with_draw_target(ProgressDrawTarget::stderr()),
            tables: Mutex::default(),
        })))
    }

    /// Does something to the terminal while no line is in the way.
    pub(crate) fn suspend<T>(&self, action: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(shown) => shown.lines.suspend(action),
            None => action(),
        }
    }

    /// Draws until the returned guard is dropped.
    pub(crate) fn draw(&self) -> Option<Drawing> {
        let shown = Arc::clone(self.0.as_ref()?);
        let lines = shown.lines.clone();
        let task = tokio::spawn(async move {
            let mut bars = BTreeMap::new();
            loop {
                redraw(&shown, &mut bars);
                tokio::time::sleep(DRAW_INTERVAL).await;
            }
        });
        Some(Drawing { task, lines })
    }
}

/// Ends the drawing and clears the lines when dropped.
pub(crate) struct Drawing {
    task: tokio::task::JoinHandle<()>,
    lines: MultiProgress,
}

impl Drop for Drawing {
    fn drop(&mut self) {
        self.task.abort();
        // A terminal that is gone has no lines to clear.
        drop(self.lines.clear());
    }
}

fn redraw(shown: &Shown, bars: &mut BTreeMap<String, (ProgressBar, Line)>) {
    let tables = shown.tables.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for (name, line) in tables.into_iter().take(LINES_MAX) {
        let (bar, drawn) = bars.entry(name.clone()).or_insert_with(|| {
            let bar = shown.lines.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:24} {msg}") {
                bar.set_style(style);
            }
            (bar.with_prefix(name), Line::default())
        });
        if *drawn != line {
            bar.set_message(line.text());
            *drawn = line;
        }
        bar.tick();
    }
}

impl Line {
    fn text(&self) -> String {
        let until = self.complete_until.map_or_else(|| "-".into(), |until| until.to_string());
        let Self { staged, rows, state, .. } = self;
        let staged = if *staged > 0 { format!(" +{staged} staged") } else { String::new() };
        format!("{rows} rows{staged}, complete until {until}, {state}")
    }

    fn take(&mut self, event: &Event<'_>) {
        match event {
            Event::Attached { .. } => self.state = "reading",
            Event::WaitingForCapture { .. } => self.state = "waiting for capture",
            Event::Staged { rows, .. } => self.staged += rows,
            Event::Committed { facts, .. } => {
                self.staged = 0;
                self.rows += facts.counts.rows;
                self.state = "following";
            }
            Event::Discarded { .. } => self.staged = 0,
            Event::VerdictPublished { verdict, .. } => {
                self.complete_until = verdict.finalized_until;
            }
            Event::Retrying { .. } => self.state = "trying again",
            Event::TableStopped { .. } => self.state = "stopped",
            _ => {}
        }
    }
}

impl Observer for Progress {
    fn on(&self, event: &Event<'_>) {
        let Some(shown) = &self.0 else {
            return;
        };
        if let Some(table) = table(event) {
            let mut tables = shown.tables.lock().unwrap_or_else(PoisonError::into_inner);
            tables.entry(table.to_owned()).or_default().take(event);
        }
    }
}

/// The table that an event is about.
fn table<'a>(event: &Event<'a>) -> Option<&'a str> {
    match event {
        Event::Attached { table, .. }
        | Event::WaitingForCapture { table }
        | Event::Staged { table, .. }
        | Event::Committed { table, .. }
        | Event::Discarded { table }
        | Event::VerdictPublished { table, .. }
        | Event::TableStopped { table, .. } => Some(table),
        Event::Retrying { table, .. } | Event::Warning { table, .. } => *table,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::batch::BatchFacts;

    use super::*;

    #[test]
    fn a_line_counts_durable_rows_and_shows_staged_ones_apart() {
        let mut line = Line::default();
        line.take(&Event::Attached { table: "t", mark: None });
        line.take(&Event::Staged { table: "t", rows: 5, bytes: 1 });
        assert_eq!(line.text(), "0 rows +5 staged, complete until -, reading");
        let mark = cdc_core::Mark {
            sequence: 1,
            end: cdc_core::Lsn::MAX.into(),
            commit_time: None,
            entry_time: None,
            generation: 0,
        };
        let mut facts = BatchFacts::begun(Timestamp::from_micros(0));
        facts.counts.rows = 5;
        line.take(&Event::Committed { table: "t", mark: &mark, facts: &facts });
        assert_eq!(line.text(), "5 rows, complete until -, following");
    }
}
