//! Batch planning: which range to read next, and where a batch ends.

use std::num::NonZeroU64;

use arrow_array::{Array, FixedSizeBinaryArray};

use crate::{
    error::{Error, ErrorKind, Result},
    mark::Mark,
    planted::{self, Planted},
    port::Bound,
    position::{ClosedRange, Position},
    table::CaptureInstance,
};

/// Limits of one batch. A batch ends with the first commit that reaches one of them; a commit is
/// never split, so a batch may exceed a limit by the rest of its last commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of the mapping, counted over the whole database, idle entries included.
    pub commits_max: Option<NonZeroU64>,
    /// Change rows.
    pub rows_max: NonZeroU64,
    /// Bytes of change rows in memory.
    pub bytes_max: NonZeroU64,
}

/// What to do next for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Everything that the source has is read.
    UpToDate,
    /// Capture has not reached the table's instance yet.
    WaitingForCapture,
    /// Read this range. It ends on a commit or an idle entry.
    Read(ClosedRange),
}

/// Plans the next batch after `after`, up to `high` and at most to `nth`, the last entry that the
/// commit limit allows.
///
/// `start` is where the instance that holds the next change begins.
///
/// # Errors
/// [`ErrorKind::LineageBroken`] when `after` lies above everything the source has although
/// something of the instance was read: the source was restored, or is another database.
/// [`ErrorKind::Bug`] for an `nth` at or before `after`.
pub fn plan(after: Position, high: Bound, nth: Option<Position>, start: Position) -> Result<Plan> {
    // Nothing of the instance was read yet: its start may still lie ahead of capture.
    let untouched = after.increment() <= start;
    let high = match high {
        Bound::At(high) => high,
        Bound::Null | Bound::Zero if untouched => return Ok(Plan::WaitingForCapture),
        Bound::Null | Bound::Zero => return Err(ahead(after, None)),
    };
    if after.epoch() != high.epoch() {
        return Err(Error::new(
            ErrorKind::LineageBroken,
            "the target's mark belongs to another lineage than the source's positions",
        )
        .with("mark", after)
        .with("mark_epoch", after.epoch())
        .with("source_epoch", high.epoch()));
    }
    if after > high {
        if planted::is(Planted::RestoreNotNoticed) {
            return Ok(Plan::UpToDate);
        }
        return if untouched { Ok(Plan::WaitingForCapture) } else { Err(ahead(after, Some(high))) };
    }
    if nth.is_some_and(|nth| nth <= after) {
        return Err(Error::bug("commit limit ends before the batch begins")
            .with("after", after)
            .with("nth", nth.unwrap_or(after)));
    }
    let end = nth.map_or(high, |nth| nth.min(high));
    Ok(ClosedRange::after(after, end).map_or(Plan::UpToDate, Plan::Read))
}

fn ahead(after: Position, high: Option<Position>) -> Error {
    let error = Error::new(
        ErrorKind::LineageBroken,
        "the target's mark lies above everything the source has",
    )
    .with("mark", after);
    match high {
        Some(high) => error.with("high", high),
        None => error.with("high", "none"),
    }
}

/// Checks that a mark belongs to the log the source has now.
///
/// A batch ends on an entry of the mapping, so its end is still there with the same time, unless
/// cleanup has passed it or the log is another one. `low` is the instance's low position,
/// `observed` the time that the source gives for the mark's end now.
///
/// A mark far below `low` passes when its entry is gone: the guard tells what more is gone.
///
/// # Errors
/// [`ErrorKind::LineageBroken`] when the entry is missing or was another moment.
/// [`ErrorKind::DataLoss`] when cleanup has taken the entry and nothing after it: nothing tells any
/// more that what follows is of the same log.
pub fn check_lineage(mark: &Mark, low: Position, observed: Option<crate::Timestamp>) -> Result<()> {
    // A snapshot's stamp need not be an entry.
    let Some(recorded) = mark.recorded() else {
        return Ok(());
    };
    if planted::is(Planted::RestoreNotNoticed) {
        return Ok(());
    }
    let same = match observed {
        Some(observed) => is_same_entry(mark, observed.micros_since(recorded)),
        None => mark.end.increment() < low,
    };
    if same {
        return Ok(());
    }
    if observed.is_none() && mark.end < low {
        return Err(Error::new(
            ErrorKind::DataLoss,
            "cleanup has removed the entry of the target's mark: whether the log is still the \
             same cannot be told",
        )
        .with("mark", mark.end)
        .with("low", low));
    }
    Err(Error::new(
        ErrorKind::LineageBroken,
        "the source's log has no such commit at the target's mark",
    )
    .with("mark", mark.end)
    .with("recorded", recorded)
    .with("observed", observed.map_or_else(|| "none".to_owned(), |time| time.to_string())))
}

/// True for differences, observed less recorded, that the entry of a mark can have.
fn is_same_entry(mark: &Mark, micros: i64) -> bool {
    const QUARTER_HOUR: i64 = 15 * 60 * 1_000_000;
    const WIDEST: i64 = 26 * 3600 * 1_000_000;
    // Read in another zone, or as the other pass of a repeated interval: times never go back, so no
    // data moves.
    let shift = micros % QUARTER_HOUR == 0;
    // A mark that knows its commit time alone has the greatest time so far, which an entry that is
    // out of order or was written after the clock was put back does not reach. A restored log gives
    // its positions again, but later than the replaced log did.
    let put_back = mark.entry_time.is_none() && micros <= 0;
    (shift || put_back) && micros.abs() <= WIDEST
}

/// A part of a range with the instance to read it from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The instance that holds the part.
    pub instance: &'a CaptureInstance,
    /// The part.
    pub range: ClosedRange,
}

/// Cuts a range at the starts of newer instances: the older one is read below a newer one's start
/// and the newer from it. `instances` are those of one table, oldest first. The pieces follow each
/// other without a gap and none is empty; there is none only when there is no instance.
#[must_use]
pub fn pieces(range: ClosedRange, instances: &[CaptureInstance]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut from = range.from();
    let mut rest = instances.iter().peekable();
    while let Some(instance) = rest.next() {
        let newer = rest.peek().map(|newer| newer.start).filter(|start| *start <= range.to());
        let to = newer.map_or(range.to(), Position::decrement);
        if let Some(range) = ClosedRange::new(from, to) {
            pieces.push(Piece { instance, range });
            from = to.increment();
        }
        if newer.is_none() {
            break;
        }
    }
    pieces
}

/// The instance that holds the position after `after`: the newest that starts at or before it, or
/// else the oldest.
#[must_use]
pub fn holder(after: Position, instances: &[CaptureInstance]) -> Option<&CaptureInstance> {
    let next = after.increment();
    instances.iter().rev().find(|instance| instance.start <= next).or(instances.first())
}

/// Finds where a batch ends while its rows stream by.
#[derive(Clone, Debug)]
pub struct Cutter {
    rows_left: u64,
    bytes_left: u64,
    /// The commit of the last row taken.
    open: Option<Box<[u8]>>,
}

/// What a [`Cutter`] says about the next rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Take all of them and go on.
    Take,
    /// Take this many, possibly none, and end the batch: the next row begins another commit.
    Stop(usize),
}

impl Cutter {
    /// A cutter for a batch that has no row yet.
    #[must_use]
    pub fn new(limits: &Limits) -> Self {
        Self { rows_left: limits.rows_max.get(), bytes_left: limits.bytes_max.get(), open: None }
    }

    /// Looks at the next rows in change order: their commits, and the bytes they take in memory.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] for a row without a commit.
    pub fn next(&mut self, commits: &FixedSizeBinaryArray, bytes: u64) -> Result<Cut> {
        let rows = commits.len() as u64;
        if rows == 0 {
            return Ok(Cut::Take);
        }
        if commits.null_count() != 0 {
            return Err(Error::bug("change row without a commit"));
        }
        // Rows are charged the mean of their batch; limits are about size, not about exact bytes.
        let row_bytes = bytes.div_ceil(rows);
        // The first row at which a limit is reached; boundaries before it do not end the batch.
        let by_bytes = self.bytes_left.div_ceil(row_bytes.max(1));
        let full_at = self.rows_left.min(by_bytes);
        let first = usize::try_from(full_at).unwrap_or(usize::MAX);
        for row in first..commits.len() {
            let before = match row.checked_sub(1) {
                Some(previous) => Some(commits.value(previous)),
                None => self.open.as_deref(),
            };
            let split = planted::is(Planted::CommitSplit);
            if before.is_some_and(|before| split || before != commits.value(row)) {
                return Ok(Cut::Stop(row));
            }
        }
        self.rows_left = self.rows_left.saturating_sub(rows);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
        self.open = commits.len().checked_sub(1).map(|last| commits.value(last).into());
        Ok(Cut::Take)
    }
}

#[cfg(test)]
mod tests;
