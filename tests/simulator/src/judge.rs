//! Whether every stop of a run had its reason.

use std::collections::BTreeSet;

use cdc_core::{Error, ErrorKind, Position, RunReport, TableRef, Timestamp, port::Catalog};

use futures_executor::block_on;

use crate::{
    hub::ProcessId,
    invariant::Invariant,
    script::Run,
    stage::{Held, source_name},
    yard::Yard,
};

/// Judges the stops of a run. Returns the tables that ended for good.
pub(crate) fn judge(
    yard: &Yard,
    run: &Run,
    begin: Timestamp,
    reports: &[(ProcessId, RunReport)],
    started: usize,
) -> BTreeSet<String> {
    let mut ended = BTreeSet::new();
    for (process, report) in reports {
        for table in &report.tables {
            let Some(error) = &table.error else { continue };
            yard.record.note(format!("p{process} ended {} {}", table.table, error.report()));
            yard.record.count(format!("engine:ended-{}", error.kind()));
            let judge = Judge { yard, run, begin, started, table: &table.table };
            let right = judge.is_right(error);
            yard.record.check(right, Invariant::StopKind, || {
                format!("{}: stopped without a reason: {}", table.table, error.report())
            });
            // Rights come back.
            let again = passes(error.kind())
                || error.kind() == ErrorKind::Fenced
                || (judge.is_hidden() && !judge.is_over());
            if !again && yard.auditor.book(&table.table).mark.is_some() {
                ended.insert(table.table.clone());
            }
        }
    }
    ended
}

struct Judge<'a> {
    yard: &'a Yard,
    run: &'a Run,
    begin: Timestamp,
    started: usize,
    table: &'a str,
}

impl Judge<'_> {
    fn is_right(&self, error: &Error) -> bool {
        let mark = self.yard.auditor.book(self.table).mark.map(|mark| mark.end);
        let rights = [ErrorKind::Config, ErrorKind::DataLoss, ErrorKind::Unauthorized];
        if self.is_hidden() && rights.contains(&error.kind()) {
            return true;
        }
        match error.kind() {
            ErrorKind::Unavailable | ErrorKind::Conflict => self.run.trouble.fails(),
            ErrorKind::Cancelled => self.run.seconds.is_some(),
            // A late write of a runner that died is a runner too.
            ErrorKind::Fenced => self.started > 1 || self.run.trouble.lates(),
            ErrorKind::DataLoss => match mark {
                Some(mark) if self.is_purged(mark) || self.was_purged(mark) => true,
                _ => self.may_start() && self.is_early(),
            },
            ErrorKind::LineageBroken => self.yard.auditor.may_be_replaced(self.table),
            ErrorKind::SchemaChanged => self.yard.stage.altered(self.table),
            ErrorKind::Config => self.is_gone() || (self.may_start() && self.is_ahead()),
            _ => false,
        }
    }

    /// The login had no right to the table for a while in this run.
    fn is_hidden(&self) -> bool {
        self.yard.stage.is_hidden(self.table)
    }

    /// No run can go on from the mark.
    fn is_over(&self) -> bool {
        let mark = self.yard.auditor.book(self.table).mark.map(|mark| mark.end);
        mark.is_some_and(|mark| {
            self.is_purged(mark)
                || self.yard.stage.altered(self.table)
                || self.yard.auditor.is_replaced(self.table)
        })
    }

    fn instances(&self) -> Vec<cdc_core::CaptureInstance> {
        let table = TableRef::Table(source_name(self.table));
        let Ok(source) = self.yard.source() else { return Vec::new() };
        block_on(source.instances(&table)).unwrap_or_default()
    }

    fn is_gone(&self) -> bool {
        self.instances().is_empty()
    }

    /// What follows the mark is no longer in the instance that held it.
    fn is_purged(&self, mark: Position) -> bool {
        is_purged(mark, &self.yard.stage.held_by(self.table))
    }

    /// It was not there before a restore of this run brought it back.
    fn was_purged(&self, mark: Position) -> bool {
        let forks = self.yard.stage.forks();
        let recent = forks.iter().filter(|fork| fork.moment >= self.begin);
        recent.filter_map(|fork| fork.held.get(self.table)).any(|held| is_purged(mark, held))
    }

    /// The copy may not have begun when the runner looked: another may have begun it since.
    fn may_start(&self) -> bool {
        self.started > 1 || self.yard.auditor.book(self.table).mark.is_none()
    }

    /// The copy should begin before the oldest entry of the mapping or the oldest change.
    fn is_early(&self) -> bool {
        self.yard.since().is_some()
    }

    /// The copy should begin in the future, or the clock was put back before its begin.
    fn is_ahead(&self) -> bool {
        let put_back = self.yard.stage.clock_max().is_some();
        self.yard.since().is_some_and(|since| since > self.begin || put_back)
    }
}

/// Whether changes after a mark are no longer in the instance that they are read from: the newest
/// that begins at or before the next position, and those after it from their start on.
fn is_purged(mark: Position, held: &[Held]) -> bool {
    let next = mark.increment();
    let holder = held.iter().rposition(|one| one.start <= next).unwrap_or_default();
    let mut read = held.iter().enumerate().skip(holder);
    held.is_empty()
        || read.any(|(index, one)| {
            let from = if index == holder { next } else { one.start };
            from < one.low.unwrap_or(one.start)
        })
}

/// Whether a stop of this kind may be tried again by a later run.
const fn passes(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Unavailable | ErrorKind::Conflict | ErrorKind::Cancelled)
}
