//! Running a plan: rows are pushed from the sources through conditions, groups and windows into
//! the select list, and from there through order and limit.

use std::{collections::HashSet, ops::ControlFlow, sync::Arc};

use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    evaluate::{Flow, Frame, Run},
    expression::{Column, Condition, Expr, Node},
    finish::Finish,
    plan::{Body, OrderBy, OrderKey, Plan, RecursivePlan, SelectPlan, SetOperation, SetPlan},
};
use crate::{relation::Row, scalar};

/// Takes a row.
pub(super) type RowSink<'s> = dyn FnMut(&[Value]) -> Flow + 's;
/// Takes the rows at hand.
pub(super) type FrameSink<'s> = dyn FnMut(&mut Frame<'_>) -> Flow + 's;

impl Run<'_> {
    /// Runs a query. Breaks when `sink` does.
    pub(super) fn plan(
        &self,
        plan: &Plan,
        outer: Option<&Frame<'_>>,
        sink: &mut RowSink<'_>,
    ) -> Flow {
        match &plan.body {
            Body::Select(select) => self.select(select, outer, sink),
            Body::Set(set) => self.set(set, outer, sink),
            Body::Recursive(recursive) => self.recursive(recursive, outer, sink),
            Body::Values(rows) => {
                let frame = Frame::new(0, outer);
                for row in rows {
                    self.look()?;
                    let row = row
                        .iter()
                        .map(|value| self.value(value, &frame).map(std::borrow::Cow::into_owned))
                        .collect::<SqlResult<Vec<_>>>()?;
                    if sink(&row)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    fn select(&self, plan: &SelectPlan, outer: Option<&Frame<'_>>, sink: &mut RowSink<'_>) -> Flow {
        let mut finish =
            Finish::new(self, &plan.limit, plan.order.len(), plan.presorted, outer, sink)?;
        if finish.wants_nothing() {
            return Ok(ControlFlow::Continue(()));
        }
        // Behind the sources: the rows of aggregates, of window functions, of a group's keys.
        let mut frame = Frame::new(plan.slots + 3, outer);
        let mut output = Output::new(plan);
        let mut give = |frame: &mut Frame<'_>| output.give(self, plan, frame, &mut finish);
        if plan.group.is_none() && plan.windows.is_empty() {
            let _ = self.filtered(plan, &mut frame, &mut give)?;
        } else if plan.windows.is_empty() {
            let _ = self.grouped(plan, &mut frame, &mut give)?;
        } else {
            let _ = self.windowed(plan, &mut frame, &mut give)?;
        }
        finish.end()
    }

    /// The rows of FROM that WHERE lets pass.
    pub(super) fn filtered(
        &self,
        plan: &SelectPlan,
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        let Some(filter) = &plan.filter else {
            return self.read(plan, frame, sink);
        };
        // A part that depends on no row is asked before any is read.
        let parts = match filter {
            Condition::All(parts) => parts.as_slice(),
            other => std::slice::from_ref(other),
        };
        for part in parts.iter().filter(|part| is_steady(part)) {
            if self.truth(part, frame)? != Some(true) {
                return Ok(ControlFlow::Continue(()));
            }
        }
        if parts.iter().all(is_steady) {
            return self.read(plan, frame, sink);
        }
        self.read(plan, frame, &mut |frame| {
            if self.truth(filter, frame)? == Some(true) {
                sink(frame)
            } else {
                Ok(ControlFlow::Continue(()))
            }
        })
    }

    fn read(&self, plan: &SelectPlan, frame: &mut Frame<'_>, sink: &mut FrameSink<'_>) -> Flow {
        match &plan.source {
            Some(source) => self.source(source, frame, sink),
            None => sink(frame),
        }
    }

    fn set(&self, plan: &SetPlan, outer: Option<&Frame<'_>>, sink: &mut RowSink<'_>) -> Flow {
        let mut finish = Finish::new(self, &plan.limit, plan.order.len(), 0, outer, sink)?;
        if finish.wants_nothing() {
            return Ok(ControlFlow::Continue(()));
        }
        let key_of = |row: &[Value]| {
            scalar::order_key(row.iter().zip(&plan.left_values).map(|(v, e)| (v, &e.kind, false)))
        };
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        let mut others: HashSet<Vec<u8>> = HashSet::new();
        if matches!(plan.operation, SetOperation::Except | SetOperation::Intersect) {
            let _ = self.made(&plan.right, &plan.right_values, outer, &mut |row| {
                self.hold(1)?;
                others.insert(key_of(row));
                Ok(ControlFlow::Continue(()))
            })?;
        }
        let mut give = |row: &[Value]| -> Flow {
            let wanted = match plan.operation {
                SetOperation::UnionAll => true,
                SetOperation::Union => seen.insert(key_of(row)),
                SetOperation::Except | SetOperation::Intersect => {
                    let key = key_of(row);
                    let is_other = others.contains(&key);
                    is_other == (plan.operation == SetOperation::Intersect) && seen.insert(key)
                }
            };
            if !wanted {
                return Ok(ControlFlow::Continue(()));
            }
            finish
                .give(row, &mut |key, prefix| order_key(self, &plan.order, row, None, key, prefix))
        };
        let mut flow = self.made(&plan.left, &plan.left_values, outer, &mut give)?;
        let both = matches!(plan.operation, SetOperation::Union | SetOperation::UnionAll);
        if both && flow.is_continue() {
            flow = self.made(&plan.right, &plan.right_values, outer, &mut give)?;
        }
        let _ = flow;
        finish.end()
    }

    /// The rows of a query, each made into other values.
    fn made(
        &self,
        plan: &Plan,
        values: &[Expr],
        outer: Option<&Frame<'_>>,
        sink: &mut RowSink<'_>,
    ) -> Flow {
        let as_is = values.iter().enumerate().all(|(place, value)| match value.node {
            Node::Column(Column { depth: 0, slot: 0, column }) => column == place,
            Node::Null => true,
            _ => false,
        });
        if as_is {
            return self.plan(plan, outer, sink);
        }
        self.plan(plan, outer, &mut |row| {
            let frame = Frame { rows: vec![Some(row.into())], outer };
            let made = values
                .iter()
                .map(|value| self.value(value, &frame).map(std::borrow::Cow::into_owned))
                .collect::<SqlResult<Vec<_>>>()?;
            sink(&made)
        })
    }

    fn recursive(
        &self,
        plan: &RecursivePlan,
        outer: Option<&Frame<'_>>,
        sink: &mut RowSink<'_>,
    ) -> Flow {
        let mut round: Vec<Row> = Vec::new();
        let flow = self.plan(&plan.anchor, outer, &mut |row| {
            self.hold(1)?;
            round.push(row.into());
            sink(row)
        })?;
        if flow.is_break() {
            return Ok(flow);
        }
        let mut depth = 0_u32;
        while !round.is_empty() {
            if self.max_recursion.is_some_and(|most| depth >= most) {
                return self.one_more(plan, round, outer, depth);
            }
            depth = depth.saturating_add(1);
            self.let_go(u64::try_from(round.len()).unwrap_or(u64::MAX));
            self.set_working(plan.id, std::mem::take(&mut round));
            let flow = self.made(&plan.step, &plan.step_values, outer, &mut |row| {
                self.hold(1)?;
                round.push(row.into());
                sink(row)
            })?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// At the limit: a round that gives nothing more is the end, any row is too much.
    fn one_more(
        &self,
        plan: &RecursivePlan,
        round: Vec<Row>,
        outer: Option<&Frame<'_>>,
        depth: u32,
    ) -> Flow {
        self.set_working(plan.id, round);
        self.made(&plan.step, &plan.step_values, outer, &mut |_| {
            Err(SqlError::new(
                530,
                format!(
                    "The statement terminated. The maximum recursion {depth} has been exhausted \
                     before statement completion."
                ),
            ))
        })
    }

    fn set_working(&self, id: usize, rows: Vec<Row>) {
        if let Some(place) = self.working.borrow_mut().get_mut(id) {
            *place = Arc::new(rows);
        }
    }
}

/// True when a condition reads no row of the query at hand.
fn is_steady(condition: &Condition) -> bool {
    let mut steady = true;
    condition.columns(&mut |column| steady &= column.depth > 0);
    steady
}

/// The select list at work.
struct Output {
    row: Vec<Value>,
    /// Where the whole list stands in one row as it is: slot, first column.
    direct: Option<(usize, usize)>,
    seen: HashSet<Vec<u8>>,
}

impl Output {
    fn new(plan: &SelectPlan) -> Self {
        let mut columns = plan.output.iter().enumerate().map(|(place, value)| match value.node {
            Node::Column(Column { depth: 0, slot, column }) => {
                Some((slot, column.checked_sub(place)?))
            }
            _ => None,
        });
        let first = columns.next().flatten();
        let direct = first.filter(|first| columns.all(|next| next == Some(*first)));
        Self { row: Vec::with_capacity(plan.output.len()), direct, seen: HashSet::new() }
    }

    fn give(
        &mut self,
        run: &Run<'_>,
        plan: &SelectPlan,
        frame: &mut Frame<'_>,
        finish: &mut Finish<'_, '_>,
    ) -> Flow {
        let frame = &*frame;
        if let Some((slot, first)) = self.direct
            && !plan.distinct
            && let Some(Some(row)) = frame.rows.get(slot)
            && let Some(row) = row.get(first..first + plan.output.len())
        {
            return finish.give(row, &mut |key, prefix| {
                order_key(run, &plan.order, row, Some(frame), key, prefix)
            });
        }
        self.row.clear();
        for value in &plan.output {
            self.row.push(run.value(value, frame)?.into_owned());
        }
        let row = &self.row;
        if plan.distinct {
            let key = scalar::order_key(
                row.iter().zip(&plan.output).map(|(value, of)| (value, &of.kind, false)),
            );
            if !self.seen.insert(key) {
                return Ok(ControlFlow::Continue(()));
            }
            run.hold(1)?;
        }
        finish.give(row, &mut |key, prefix| {
            order_key(run, &plan.order, row, Some(frame), key, prefix)
        })
    }
}

/// Writes the key of ORDER BY; gives the length of its first `prefix` parts.
fn order_key(
    run: &Run<'_>,
    order: &[OrderKey],
    row: &[Value],
    frame: Option<&Frame<'_>>,
    key: &mut Vec<u8>,
    prefix: usize,
) -> SqlResult<usize> {
    let mut length = 0;
    for (place, part) in order.iter().enumerate() {
        if place == prefix {
            length = key.len();
        }
        match (&part.by, frame) {
            (OrderBy::Output(column), _) => {
                let value = row.get(*column).unwrap_or(&Value::Null);
                scalar::append_order_key(key, value, &part.kind, part.descending);
            }
            (OrderBy::Value(value), Some(frame)) => {
                let value = run.value(value, frame)?;
                scalar::append_order_key(key, &value, &part.kind, part.descending);
            }
            (OrderBy::Value(_), None) => {}
        }
    }
    Ok(if prefix >= order.len() { key.len() } else { length })
}
