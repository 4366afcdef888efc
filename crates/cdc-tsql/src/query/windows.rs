//! Window functions: each partition in its order, each row with its frame.

use std::{ops::ControlFlow, ops::Range, sync::Arc};

use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    evaluate::{Flow, Frame, Run},
    expression::Expr,
    groups::Tally,
    plan::{AggregatePlan, FrameEdge, FrameRange, SelectPlan, WindowFunction, WindowPlan},
    run::FrameSink,
};
use crate::{relation::Row, scalar};

/// Rows of all sources, held.
type Tuple = Box<[Option<Row>]>;

/// A partition in its order.
struct Partition<'p> {
    /// The rows' places among all, in order.
    places: &'p [usize],
    /// The first row of the peers (rows of equal order) of each.
    peers: Vec<Range<usize>>,
}

impl Run<'_> {
    /// Gives every row with the values of the window functions behind it.
    pub(super) fn windowed(
        &self,
        plan: &SelectPlan,
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        let mut tuples: Vec<Tuple> = Vec::new();
        let width = plan.slots + 1;
        let _ = self.grouped(plan, frame, &mut |frame| {
            self.hold(1)?;
            tuples.push(frame.rows.iter().take(width).cloned().collect());
            Ok(ControlFlow::Continue(()))
        })?;
        let mut columns = Vec::with_capacity(plan.windows.len());
        let mut order: Vec<usize> = (0..tuples.len()).collect();
        for window in &plan.windows {
            columns.push(self.window(window, &tuples, frame, &mut order)?);
        }
        self.let_go(u64::try_from(tuples.len()).unwrap_or(u64::MAX));
        // Without ORDER BY, rows come in the order of the last window, as from a server that
        // sorts for it.
        for place in order {
            self.look()?;
            load(&tuples, place, frame);
            let values: Arc<[Value]> = columns
                .iter()
                .map(|column| column.get(place).cloned().unwrap_or(Value::Null))
                .collect();
            frame.put(width, Some(values));
            if sink(frame)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The values of a window function, one for each row.
    fn window(
        &self,
        window: &WindowPlan,
        tuples: &[Tuple],
        frame: &mut Frame<'_>,
        order: &mut [usize],
    ) -> SqlResult<Vec<Value>> {
        let mut keys: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(tuples.len());
        for place in 0..tuples.len() {
            self.look()?;
            load(tuples, place, frame);
            let (mut partition, mut key) = (Vec::new(), Vec::new());
            for part in &window.partition {
                let value = self.value(part, frame)?;
                scalar::append_order_key(&mut partition, &value, &part.kind, false);
            }
            for (part, descending) in &window.order {
                let value = self.value(part, frame)?;
                scalar::append_order_key(&mut key, &value, &part.kind, *descending);
            }
            keys.push((partition, key));
        }
        order.sort_by(|one, other| keys.get(*one).cmp(&keys.get(*other)));
        let mut values = vec![Value::Null; tuples.len()];
        for places in order.chunk_by(|one, other| {
            keys.get(*one).map(|key| &key.0) == keys.get(*other).map(|key| &key.0)
        }) {
            let peers = peers(places, |place| keys.get(place).map(|key| key.1.as_slice()));
            let partition = Partition { places, peers };
            let made = self.partition(window, &partition, tuples, frame)?;
            for (place, value) in places.iter().zip(made) {
                if let Some(slot) = values.get_mut(*place) {
                    *slot = value;
                }
            }
        }
        Ok(values)
    }

    fn partition(
        &self,
        window: &WindowPlan,
        partition: &Partition<'_>,
        tuples: &[Tuple],
        frame: &mut Frame<'_>,
    ) -> SqlResult<Vec<Value>> {
        let rows = partition.places.len();
        let peer = |row: usize| partition.peers.get(row).cloned().unwrap_or(row..row + 1);
        match &window.function {
            WindowFunction::RowNumber => Ok((1..=rows).map(number).collect()),
            WindowFunction::Rank => Ok((0..rows).map(|row| number(peer(row).start + 1)).collect()),
            WindowFunction::DenseRank => {
                let mut rank = 0;
                Ok((0..rows)
                    .map(|row| {
                        rank += usize::from(peer(row).start == row);
                        number(rank)
                    })
                    .collect())
            }
            WindowFunction::PercentRank => Ok((0..rows)
                .map(|row| Value::Float(ratio(peer(row).start, rows.saturating_sub(1))))
                .collect()),
            WindowFunction::CumulativeDistribution => {
                Ok((0..rows).map(|row| Value::Float(ratio(peer(row).end, rows))).collect())
            }
            WindowFunction::Tiles(tiles) => self.tiles(tiles, rows, frame),
            WindowFunction::Neighbour { before, value, offset, default, ignore_nulls } => {
                let values = self.all(value, partition, tuples, frame)?;
                (0..rows)
                    .map(|row| {
                        if let Some(place) = partition.places.get(row) {
                            load(tuples, *place, frame);
                        }
                        let away = self.offset(offset.as_ref(), frame)?;
                        match neighbour(&values, row, away, *before, *ignore_nulls) {
                            Some(value) => Ok(value),
                            None => match default {
                                Some(default) => {
                                    self.value(default, frame).map(std::borrow::Cow::into_owned)
                                }
                                None => Ok(Value::Null),
                            },
                        }
                    })
                    .collect()
            }
            WindowFunction::Edge { first, value, ignore_nulls } => {
                let values = self.all(value, partition, tuples, frame)?;
                Ok((0..rows)
                    .map(|row| {
                        let seen = extent(window.frame, row, &peer(row), rows);
                        let mut seen = values.get(seen).unwrap_or_default().iter();
                        let wanted = |value: &&Value| !*ignore_nulls || !value.is_null();
                        let found = if *first { seen.find(wanted) } else { seen.rfind(wanted) };
                        found.cloned().unwrap_or(Value::Null)
                    })
                    .collect())
            }
            WindowFunction::Aggregate(aggregate) => {
                self.aggregated(window.frame, aggregate, partition, tuples, frame)
            }
        }
    }

    /// A value for each row of a partition.
    fn all(
        &self,
        value: &Expr,
        partition: &Partition<'_>,
        tuples: &[Tuple],
        frame: &mut Frame<'_>,
    ) -> SqlResult<Vec<Value>> {
        partition
            .places
            .iter()
            .map(|place| {
                load(tuples, *place, frame);
                self.value(value, frame).map(std::borrow::Cow::into_owned)
            })
            .collect()
    }

    fn offset(&self, offset: Option<&Expr>, frame: &Frame<'_>) -> SqlResult<usize> {
        let Some(offset) = offset else { return Ok(1) };
        let number = self.value(offset, frame)?.as_int();
        number.and_then(|number| usize::try_from(number).ok()).ok_or_else(|| {
            SqlError::new(
                8730,
                "Offset parameter for Lag and Lead functions cannot be a negative value.",
            )
        })
    }

    fn tiles(&self, tiles: &Expr, rows: usize, frame: &Frame<'_>) -> SqlResult<Vec<Value>> {
        let tiles = self.value(tiles, frame)?.as_int();
        let tiles = tiles.and_then(|tiles| usize::try_from(tiles).ok()).filter(|tiles| *tiles > 0);
        let tiles = tiles.ok_or_else(|| {
            SqlError::new(
                4126,
                "The function 'NTILE' takes only a positive int or bigint expression as its input.",
            )
        })?;
        // The first tiles have one row more when the rows do not divide evenly.
        let (size, larger) = (rows / tiles, rows % tiles);
        let border = larger * (size + 1);
        Ok((0..rows)
            .map(|row| {
                if row < border {
                    number(row / (size + 1) + 1)
                } else {
                    number((row - border) / size.max(1) + larger + 1)
                }
            })
            .collect())
    }

    fn aggregated(
        &self,
        range: FrameRange,
        aggregate: &AggregatePlan,
        partition: &Partition<'_>,
        tuples: &[Tuple],
        frame: &mut Frame<'_>,
    ) -> SqlResult<Vec<Value>> {
        let rows = partition.places.len();
        let empty = Tally::new(aggregate)?;
        let mut values = Vec::new();
        let mut results: Vec<Value> = Vec::with_capacity(rows);
        let mut tally = empty.fresh();
        let mut counted: Range<usize> = 0..0;
        for row in 0..rows {
            let peers = partition.peers.get(row).cloned().unwrap_or(row..row + 1);
            let seen = extent(range, row, &peers, rows);
            if seen == counted && row > 0 {
                results.push(results.last().cloned().unwrap_or(Value::Null));
                continue;
            }
            // A frame that only grows is counted on; any other is counted anew.
            if seen.start != counted.start || seen.end < counted.end {
                tally = empty.fresh();
                counted = seen.start..seen.start;
            }
            for place in partition.places.get(counted.end..seen.end).unwrap_or_default() {
                self.look()?;
                load(tuples, *place, frame);
                tally.add(aggregate, self, frame, &mut values)?;
            }
            counted = seen;
            results.push(tally.finish()?);
        }
        Ok(results)
    }
}

fn load(tuples: &[Tuple], place: usize, frame: &mut Frame<'_>) {
    if let Some(tuple) = tuples.get(place) {
        for (slot, row) in tuple.iter().enumerate() {
            frame.put(slot, row.clone());
        }
    }
}

/// For each row, the rows of equal order around it.
fn peers<'k>(places: &[usize], key: impl Fn(usize) -> Option<&'k [u8]>) -> Vec<Range<usize>> {
    let mut peers = Vec::with_capacity(places.len());
    let mut start = 0;
    for group in places.chunk_by(|one, other| key(*one) == key(*other)) {
        let range = start..start + group.len();
        peers.extend(std::iter::repeat_n(range.clone(), group.len()));
        start = range.end;
    }
    peers
}

/// The rows of a partition that a frame lets a row see.
fn extent(range: FrameRange, row: usize, peers: &Range<usize>, rows: usize) -> Range<usize> {
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let start = match range.start {
        FrameEdge::First => 0,
        FrameEdge::Before(number) => row.saturating_sub(count(number)),
        FrameEdge::Current if range.rows => row,
        FrameEdge::Current => peers.start,
        FrameEdge::After(number) => row.saturating_add(count(number)),
        FrameEdge::Last => rows,
    };
    let end = match range.end {
        FrameEdge::First => 0,
        FrameEdge::Before(number) => (row + 1).saturating_sub(count(number)),
        FrameEdge::Current if range.rows => row + 1,
        FrameEdge::Current => peers.end,
        FrameEdge::After(number) => row.saturating_add(count(number)).saturating_add(1),
        FrameEdge::Last => rows,
    };
    let start = start.min(rows);
    start..end.min(rows).max(start)
}

fn neighbour(
    values: &[Value],
    row: usize,
    away: usize,
    before: bool,
    ignore_nulls: bool,
) -> Option<Value> {
    if !ignore_nulls || away == 0 {
        let place = if before { row.checked_sub(away)? } else { row.checked_add(away)? };
        return values.get(place).cloned();
    }
    let wanted = |value: &&Value| !value.is_null();
    if before {
        values.get(..row)?.iter().rev().filter(wanted).nth(away - 1).cloned()
    } else {
        values.get(row + 1..)?.iter().filter(wanted).nth(away - 1).cloned()
    }
}

fn number(count: usize) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

#[allow(clippy::cast_precision_loss, reason = "counts of rows that are held")]
fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
