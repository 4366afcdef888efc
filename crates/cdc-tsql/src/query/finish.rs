//! The end of a query: ORDER BY, TOP, OFFSET and FETCH.

use std::ops::ControlFlow;

use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    evaluate::{Flow, Frame, Run},
    expression::Expr,
    plan::Limit,
    run::RowSink,
};

/// Rows beyond the limit that are held before they are sorted away: sorting is dear, memory is
/// not.
const SPARE_ROWS: u64 = 1_024;

/// Orders rows and gives as many as are wanted.
pub(super) struct Finish<'r, 's> {
    run: &'r Run<'r>,
    sink: &'r mut RowSink<'s>,
    /// Parts of ORDER BY, and how many of the first the rows come ordered by.
    parts: usize,
    presorted: usize,
    skip: u64,
    take: Option<u64>,
    percent: Option<f64>,
    ties: bool,
    /// Rows of the same presorted parts, with their keys.
    held: Vec<(Vec<u8>, Box<[Value]>)>,
    /// The presorted parts of the rows that are held.
    prefix: Vec<u8>,
    key: Vec<u8>,
    given: u64,
    last: Vec<u8>,
    /// True when the taker of rows wants no more.
    broken: bool,
}

/// Writes the key of a row; gives the length of its presorted parts.
pub(super) type KeyWriter<'k> = dyn FnMut(&mut Vec<u8>, usize) -> SqlResult<usize> + 'k;

impl<'r, 's> Finish<'r, 's> {
    /// For rows ordered by `parts` expressions, of which they come ordered by `presorted`.
    ///
    /// # Errors
    /// 127, 1031, 1060, 10742, 10744 for a limit that is none.
    pub(super) fn new(
        run: &'r Run<'r>,
        limit: &Limit,
        parts: usize,
        presorted: usize,
        outer: Option<&Frame<'_>>,
        sink: &'r mut RowSink<'s>,
    ) -> SqlResult<Self> {
        let frame = Frame::new(0, outer);
        let whole =
            |expr: &Expr| -> SqlResult<Option<i64>> { Ok(run.value(expr, &frame)?.as_int()) };
        let mut percent = None;
        let mut take = None;
        if let Some(top) = &limit.top {
            if limit.percent {
                let value = run.value(top, &frame)?;
                let Value::Float(number) = *value else { return Err(no_number()) };
                if !(0.0..=100.0).contains(&number) {
                    return Err(SqlError::new(1031, "Percent values must be between 0 and 100."));
                }
                percent = Some(number);
            } else {
                let number = whole(top)?.ok_or_else(no_number)?;
                take = Some(u64::try_from(number).map_err(|_| {
                    SqlError::new(127, "A TOP N or FETCH rowcount value may not be negative.")
                })?);
            }
        }
        if let Some(fetch) = &limit.fetch {
            let number = whole(fetch)?.ok_or_else(no_number)?;
            take =
                Some(u64::try_from(number).ok().filter(|number| *number > 0).ok_or_else(|| {
                    SqlError::new(
                        10_744,
                        "The number of rows provided for a FETCH clause must be greater then zero.",
                    )
                })?);
        }
        let skip = match &limit.offset {
            None => 0,
            Some(offset) => {
                let number = whole(offset)?.ok_or_else(no_number)?;
                u64::try_from(number).map_err(|_| {
                    SqlError::new(
                        10_742,
                        "The offset specified in a OFFSET clause may not be negative.",
                    )
                })?
            }
        };
        Ok(Self {
            run,
            sink,
            parts,
            // A percentage is known once all rows are.
            presorted: if percent.is_some() { 0 } else { presorted },
            skip,
            take,
            percent,
            ties: limit.ties,
            held: Vec::new(),
            prefix: Vec::new(),
            key: Vec::new(),
            given: 0,
            last: Vec::new(),
            broken: false,
        })
    }

    /// True when not a row is wanted.
    pub(super) fn wants_nothing(&self) -> bool {
        self.take == Some(0) || self.percent.is_some_and(|percent| percent <= 0.0)
    }

    /// Takes a row. Breaks when no more rows are wanted.
    #[inline]
    pub(super) fn give(&mut self, row: &[Value], write: &mut KeyWriter<'_>) -> Flow {
        let streams = self.percent.is_none() && self.presorted >= self.parts;
        if streams && !self.ties {
            return self.pass(row);
        }
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        let prefix = write(&mut key, self.presorted)?;
        let flow = if streams { self.tied(&key, row) } else { self.hold(&key, prefix, row) };
        self.key = key;
        flow
    }

    fn hold(&mut self, key: &[u8], prefix: usize, row: &[Value]) -> Flow {
        let start = key.get(..prefix).unwrap_or_default();
        if start != self.prefix.as_slice() {
            if self.flush()?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.prefix.clear();
            self.prefix.extend_from_slice(start);
        }
        self.run.hold(1)?;
        self.held.push((key.into(), row.into()));
        if let (Some(take), false) = (self.take, self.ties) {
            let wanted = take.saturating_add(self.skip).saturating_sub(self.given);
            let held = u64::try_from(self.held.len()).unwrap_or(u64::MAX);
            if held > wanted.saturating_mul(2).saturating_add(SPARE_ROWS) {
                self.held.sort_by(|one, other| one.0.cmp(&other.0));
                self.held.truncate(usize::try_from(wanted).unwrap_or(usize::MAX));
                self.run.let_go(held.saturating_sub(wanted));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Gives the rows that are held, in order.
    fn flush(&mut self) -> Flow {
        let mut held = std::mem::take(&mut self.held);
        self.run.let_go(u64::try_from(held.len()).unwrap_or(u64::MAX));
        held.sort_by(|one, other| one.0.cmp(&other.0));
        for (key, row) in &held {
            let flow = if self.ties { self.tied(key, row)? } else { self.pass(row)? };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        held.clear();
        self.held = held;
        Ok(ControlFlow::Continue(()))
    }

    /// Gives a row when it is within the limit, or ties with the last one.
    fn tied(&mut self, key: &[u8], row: &[Value]) -> Flow {
        let full = self.take.is_some_and(|take| self.given >= take);
        if full {
            if key != self.last.as_slice() {
                return Ok(ControlFlow::Break(()));
            }
        } else {
            self.last.clear();
            self.last.extend_from_slice(key);
        }
        self.given += 1;
        self.sent(row)
    }

    /// Gives a row when it is within the limit.
    #[inline]
    fn pass(&mut self, row: &[Value]) -> Flow {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        if self.take.is_some_and(|take| self.given >= take) {
            return Ok(ControlFlow::Break(()));
        }
        self.given += 1;
        let flow = self.sent(row)?;
        // No row is read only to be left out.
        if self.take == Some(self.given) { Ok(ControlFlow::Break(())) } else { Ok(flow) }
    }

    fn sent(&mut self, row: &[Value]) -> Flow {
        let flow = (self.sink)(row)?;
        self.broken |= flow.is_break();
        Ok(flow)
    }

    /// Gives what is still held. Breaks when the taker of rows has.
    pub(super) fn end(mut self) -> Flow {
        if let Some(percent) = self.percent {
            self.take = Some(share(self.held.len(), percent));
        }
        if !self.broken {
            let _ = self.flush()?;
        }
        Ok(if self.broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}

fn no_number() -> SqlError {
    SqlError::new(
        1060,
        "The number of rows provided for a TOP or FETCH clauses row count parameter must be an \
         integer.",
    )
}

/// So many percent of the rows, rounded up.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of rows that are held, far below what a double holds exactly"
)]
fn share(rows: usize, percent: f64) -> u64 {
    (rows as f64 * percent / 100.0).ceil() as u64
}
