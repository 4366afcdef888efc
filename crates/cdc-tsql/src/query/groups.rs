//! GROUP BY and aggregates.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc};

use cdc_fake::{SqlResult, Value};

use super::{
    evaluate::{Flow, Frame, Run},
    plan::{AggregatePlan, GroupPlan, SelectPlan},
    refusal::unsupported,
    run::FrameSink,
};
use crate::{
    kind::Kind,
    relation::Row,
    scalar::{self, Aggregate},
};

/// A running aggregate of one group.
pub(super) struct Tally {
    aggregate: Box<dyn Aggregate>,
    /// What WITHIN GROUP (ORDER BY) puts in order first.
    waiting: Option<Vec<(Vec<u8>, Vec<Value>)>>,
}

impl Tally {
    /// Over no rows yet.
    pub(super) fn new(plan: &AggregatePlan) -> SqlResult<Self> {
        let kinds: Vec<Kind> = plan.arguments.iter().map(|value| value.kind.clone()).collect();
        let aggregate = scalar::aggregate(&plan.name, &kinds, plan.distinct)
            .ok_or_else(|| unsupported(format!("the aggregate {}", plan.name)))??;
        Ok(Self { aggregate, waiting: (!plan.order.is_empty()).then(Vec::new) })
    }

    /// The same over no rows.
    pub(super) fn fresh(&self) -> Self {
        Self { aggregate: self.aggregate.fresh(), waiting: self.waiting.is_some().then(Vec::new) }
    }

    /// Takes the row at hand.
    pub(super) fn add(
        &mut self,
        plan: &AggregatePlan,
        run: &Run<'_>,
        frame: &Frame<'_>,
        values: &mut Vec<Value>,
    ) -> SqlResult<()> {
        values.clear();
        for argument in &plan.arguments {
            values.push(run.value(argument, frame)?.into_owned());
        }
        let Some(waiting) = &mut self.waiting else {
            return self.aggregate.add(values);
        };
        let mut key = Vec::new();
        for (value, descending) in &plan.order {
            let at = run.value(value, frame)?;
            scalar::append_order_key(&mut key, &at, &value.kind, *descending);
        }
        run.hold(1)?;
        waiting.push((key, std::mem::take(values)));
        Ok(())
    }

    /// The result over the rows so far.
    pub(super) fn finish(&mut self) -> SqlResult<Value> {
        if let Some(waiting) = &mut self.waiting {
            waiting.sort_by(|one, other| one.0.cmp(&other.0));
            for (_, values) in waiting.drain(..) {
                self.aggregate.add(&values)?;
            }
        }
        self.aggregate.finish()
    }
}

/// A group: the first of its rows stands for what all have in common.
struct Group {
    rows: Box<[Option<Row>]>,
    /// Its keys, with grouping sets.
    keys: Option<Row>,
    tallies: Vec<Tally>,
}

impl Run<'_> {
    /// Gives a frame for each group: its first rows, and a row of aggregates behind them.
    pub(super) fn grouped(
        &self,
        plan: &SelectPlan,
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        let Some(grouping) = &plan.group else {
            return self.filtered(plan, frame, sink);
        };
        let groups = self.groups(plan, grouping, frame)?;
        self.let_go(u64::try_from(groups.len()).unwrap_or(u64::MAX));
        for group in groups {
            self.look()?;
            for (slot, row) in group.rows.iter().enumerate() {
                frame.put(slot, row.clone());
            }
            let mut tallies = group.tallies;
            let values =
                tallies.iter_mut().map(Tally::finish).collect::<SqlResult<Arc<[Value]>>>()?;
            frame.put(plan.slots, Some(values));
            frame.put(plan.slots + 2, group.keys);
            if let Some(having) = &grouping.having
                && self.truth(having, frame)? != Some(true)
            {
                continue;
            }
            if sink(frame)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn groups(
        &self,
        plan: &SelectPlan,
        grouping: &GroupPlan,
        frame: &mut Frame<'_>,
    ) -> SqlResult<Vec<Group>> {
        let empty = grouping.aggregates.iter().map(Tally::new).collect::<SqlResult<Vec<_>>>()?;
        let fresh = || empty.iter().map(Tally::fresh).collect::<Vec<_>>();
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
        if !grouping.sets.is_empty() {
            return self.set_groups(plan, grouping, frame, &fresh);
        }
        if grouping.keys.is_empty() {
            let rows = vec![None; plan.slots].into();
            groups.push(Group { rows, keys: None, tallies: fresh() });
            places.insert(Vec::new(), 0);
        }
        let (mut key, mut values) = (Vec::new(), Vec::new());
        let _ = self.filtered(plan, frame, &mut |frame| {
            key.clear();
            for part in &grouping.keys {
                let value = self.value(part, frame)?;
                scalar::append_order_key(&mut key, &value, &part.kind, false);
            }
            let place = match places.get(&key) {
                Some(place) => *place,
                None => {
                    self.hold(1)?;
                    let rows = frame.rows.iter().take(plan.slots).cloned().collect();
                    groups.push(Group { rows, keys: None, tallies: fresh() });
                    places.insert(key.clone(), groups.len() - 1);
                    groups.len() - 1
                }
            };
            self.tally(groups.get_mut(place), grouping, frame, &mut values)?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(groups)
    }

    /// The groups of every set of keys. A row is in one of each.
    fn set_groups(
        &self,
        plan: &SelectPlan,
        grouping: &GroupPlan,
        frame: &mut Frame<'_>,
        fresh: &dyn Fn() -> Vec<Tally>,
    ) -> SqlResult<Vec<Group>> {
        let mut groups: Vec<Group> = Vec::new();
        let mut places: Vec<HashMap<Vec<u8>, usize>> = vec![HashMap::new(); grouping.sets.len()];
        let mut values = Vec::new();
        let _ = self.filtered(plan, frame, &mut |frame| {
            let mut parts = Vec::with_capacity(grouping.keys.len());
            for part in &grouping.keys {
                let value = self.value(part, frame)?.into_owned();
                let mut key = Vec::new();
                scalar::append_order_key(&mut key, &value, &part.kind, false);
                parts.push((value, key));
            }
            for (set, places) in grouping.sets.iter().zip(&mut places) {
                let own = set.iter().filter_map(|at| parts.get(*at));
                let key: Vec<u8> = own.flat_map(|(_, key)| key).copied().collect();
                let place = match places.get(&key) {
                    Some(place) => *place,
                    None => {
                        self.hold(1)?;
                        let rows = vec![None; plan.slots].into();
                        let keys = Some(set_keys(set, &parts));
                        groups.push(Group { rows, keys, tallies: fresh() });
                        places.insert(key, groups.len() - 1);
                        groups.len() - 1
                    }
                };
                self.tally(groups.get_mut(place), grouping, frame, &mut values)?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if groups.is_empty() && grouping.sets.iter().any(Vec::is_empty) {
            return Err(unsupported("a grand total of ROLLUP, CUBE or GROUPING SETS over no rows"));
        }
        Ok(groups)
    }

    /// Adds a row to what its group adds up.
    fn tally(
        &self,
        group: Option<&mut Group>,
        grouping: &GroupPlan,
        frame: &mut Frame<'_>,
        values: &mut Vec<Value>,
    ) -> SqlResult<()> {
        if let Some(group) = group {
            for (tally, of) in group.tallies.iter_mut().zip(&grouping.aggregates) {
                tally.add(of, self, frame, values)?;
            }
        }
        Ok(())
    }
}

/// The row of a group's keys: their values, NULL for those that the set leaves out, then for each
/// whether it does.
fn set_keys(set: &[usize], parts: &[(Value, Vec<u8>)]) -> Row {
    let value = |(at, (value, _)): (usize, &(Value, Vec<u8>))| {
        if set.contains(&at) { value.clone() } else { Value::Null }
    };
    let left_out = |at: usize| Value::Int(i64::from(!set.contains(&at)));
    parts.iter().enumerate().map(value).chain((0..parts.len()).map(left_out)).collect()
}
