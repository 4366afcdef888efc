//! Joining two sources: by hash on equalities, by merging what comes ordered alike, by trying
//! every pair otherwise.

use std::{cmp::Ordering, collections::HashMap, ops::ControlFlow};

use cdc_fake::{SqlResult, Value};

use super::{
    evaluate::{Flow, Frame, Run, ordering},
    expression::{Column, Expr, Node},
    plan::{Join, JoinKind, Scan, Source},
    run::FrameSink,
};
use crate::{
    kind::Kind,
    relation::{Row, Rows},
    scalar,
};

/// The rows of a join's right side.
struct Follower {
    slots: Vec<usize>,
    tuples: Vec<Box<[Option<Row>]>>,
    /// The first and the last tuple of a key.
    ends: HashMap<Vec<u8>, (usize, usize)>,
    /// The next tuple of the same key.
    next: Vec<Option<usize>>,
    /// Tuples that have met a row of the left side.
    met: Vec<bool>,
}

impl Follower {
    fn put(&self, tuple: usize, frame: &mut Frame<'_>) {
        if let Some(tuple) = self.tuples.get(tuple) {
            for (slot, row) in self.slots.iter().zip(tuple) {
                frame.put(*slot, row.clone());
            }
        }
    }

    fn clear(&self, frame: &mut Frame<'_>) {
        for slot in &self.slots {
            frame.put(*slot, None);
        }
    }
}

impl Run<'_> {
    /// Gives the pairs of a join.
    pub(super) fn join(
        &self,
        join: &Join,
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        if let (true, [(left, right, kind)], Source::Scan(scan)) =
            (join.merge, join.keys.as_slice(), &join.right)
            && let (Node::Column(left), Node::Column(right)) = (&left.node, &right.node)
        {
            return self.merged(join, scan, (*left, *right, kind), frame, sink);
        }
        let mut follower = self.follower(join, frame)?;
        let mut key = Vec::new();
        let flow = self.source(&join.left, frame, &mut |frame| {
            let keyed = !join.keys.is_empty();
            let mut next = if keyed {
                if self.key(join, false, frame, &mut key)? {
                    follower.ends.get(&key).map(|ends| ends.0)
                } else {
                    None
                }
            } else {
                (!follower.tuples.is_empty()).then_some(0)
            };
            let mut found = false;
            while let Some(tuple) = next {
                self.look()?;
                follower.put(tuple, frame);
                if self.passes(join, frame)? {
                    found = true;
                    if let Some(met) = follower.met.get_mut(tuple) {
                        *met = true;
                    }
                    if sink(frame)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                next = if keyed {
                    follower.next.get(tuple).copied().flatten()
                } else {
                    Some(tuple + 1).filter(|next| *next < follower.tuples.len())
                };
            }
            follower.clear(frame);
            if found || join.kind == JoinKind::Inner {
                return Ok(ControlFlow::Continue(()));
            }
            sink(frame)
        })?;
        self.let_go(u64::try_from(follower.tuples.len()).unwrap_or(u64::MAX));
        if flow.is_break() || join.kind != JoinKind::Full {
            return Ok(flow);
        }
        let lonely: Vec<usize> = follower
            .met
            .iter()
            .enumerate()
            .filter_map(|(tuple, met)| (!met).then_some(tuple))
            .collect();
        for tuple in lonely {
            follower.put(tuple, frame);
            if sink(frame)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        follower.clear(frame);
        Ok(ControlFlow::Continue(()))
    }

    fn passes(&self, join: &Join, frame: &Frame<'_>) -> SqlResult<bool> {
        match &join.residual {
            None => Ok(true),
            Some(residual) => Ok(self.truth(residual, frame)? == Some(true)),
        }
    }

    /// Writes the key of the row at hand; false when a part is NULL, which equals nothing.
    fn key(
        &self,
        join: &Join,
        right: bool,
        frame: &Frame<'_>,
        key: &mut Vec<u8>,
    ) -> SqlResult<bool> {
        key.clear();
        for (one, other, kind) in &join.keys {
            let value: &Expr = if right { other } else { one };
            let value = self.value(value, frame)?;
            if value.is_null() {
                return Ok(false);
            }
            scalar::append_order_key(key, &value, kind, false);
        }
        Ok(true)
    }

    /// Reads the right side.
    fn follower(&self, join: &Join, frame: &mut Frame<'_>) -> SqlResult<Follower> {
        let mut slots = Vec::new();
        slots_of(&join.right, &mut slots);
        let mut follower = Follower {
            slots,
            tuples: Vec::new(),
            ends: HashMap::new(),
            next: Vec::new(),
            met: Vec::new(),
        };
        let mut key = Vec::new();
        let _ = self.source(&join.right, frame, &mut |frame| {
            let keyed = self.key(join, true, frame, &mut key)?;
            if !keyed && join.kind != JoinKind::Full {
                return Ok(ControlFlow::Continue(()));
            }
            self.hold(1)?;
            let place = follower.tuples.len();
            let rows = follower.slots.iter().map(|slot| frame.rows.get(*slot).cloned().flatten());
            let tuple: Box<[Option<Row>]> = rows.collect();
            follower.tuples.push(tuple);
            follower.next.push(None);
            follower.met.push(false);
            if keyed && !join.keys.is_empty() {
                if let Some(ends) = follower.ends.get_mut(&key) {
                    if let Some(next) = follower.next.get_mut(ends.1) {
                        *next = Some(place);
                    }
                    ends.1 = place;
                } else {
                    follower.ends.insert(key.clone(), (place, place));
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        follower.clear(frame);
        Ok(follower)
    }

    /// Joins with a relation that comes ordered by the key, as the left side does.
    fn merged(
        &self,
        join: &Join,
        scan: &Scan,
        (left, right, kind): (Column, Column, &Kind),
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        let mut merging = Merging {
            scan,
            right: right.column,
            kind,
            rows: None,
            ahead: None,
            group: Vec::new(),
            key: Value::Null,
        };
        let flow = self.source(&join.left, frame, &mut |frame| {
            let mut found = false;
            let at = frame.column(left);
            if !at.is_null() {
                if ordering(at, &merging.key, kind) != Some(Ordering::Equal) {
                    let at = at.clone();
                    self.advance(&mut merging, at, frame)?;
                }
                for row in &merging.group {
                    frame.put(scan.slot, Some(row.clone()));
                    if join.residual.is_some() && !self.passes(join, frame)? {
                        continue;
                    }
                    found = true;
                    if sink(frame)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            if found || join.kind == JoinKind::Inner {
                return Ok(ControlFlow::Continue(()));
            }
            frame.put(scan.slot, None);
            sink(frame)
        })?;
        frame.put(scan.slot, None);
        Ok(flow)
    }

    /// Brings the right side to the rows of a key.
    fn advance<'s>(
        &self,
        merging: &mut Merging<'s>,
        key: Value,
        frame: &mut Frame<'_>,
    ) -> SqlResult<()> {
        let back = ordering(&key, &merging.key, merging.kind) == Some(Ordering::Less);
        if merging.rows.is_none() || back {
            merging.rows = self.scanned(merging.scan, frame)?;
            merging.ahead = None;
            if merging.rows.is_none() {
                merging.rows = Some(Box::new(std::iter::empty()));
            }
        }
        merging.group.clear();
        loop {
            let row = match merging.ahead.take() {
                Some(row) => row,
                None => match merging.rows.as_mut().and_then(Iterator::next) {
                    Some(row) => row?,
                    None => break,
                },
            };
            self.look()?;
            let own = row.get(merging.right).unwrap_or(&Value::Null);
            match ordering(own, &key, merging.kind) {
                None | Some(Ordering::Less) => {}
                Some(Ordering::Equal) => {
                    if let Some(filter) = &merging.scan.filter {
                        frame.put(merging.scan.slot, Some(row.clone()));
                        if self.truth(filter, frame)? != Some(true) {
                            continue;
                        }
                    }
                    merging.group.push(row);
                }
                Some(Ordering::Greater) => {
                    merging.ahead = Some(row);
                    break;
                }
            }
        }
        merging.key = key;
        Ok(())
    }
}

/// The right side of a merge.
struct Merging<'s> {
    scan: &'s Scan,
    right: usize,
    kind: &'s Kind,
    rows: Option<Rows<'s>>,
    /// A row behind the group.
    ahead: Option<Row>,
    /// The rows of the key.
    group: Vec<Row>,
    key: Value,
}

/// The slots of a source's rows.
fn slots_of(source: &Source, slots: &mut Vec<usize>) {
    match source {
        Source::Scan(Scan { slot, .. })
        | Source::Query { slot, .. }
        | Source::Function { slot, .. }
        | Source::Working { slot, .. } => slots.push(*slot),
        Source::Join(join) => {
            slots_of(&join.left, slots);
            slots_of(&join.right, slots);
        }
        Source::Apply { left, right, .. } => {
            slots_of(left, slots);
            slots_of(right, slots);
        }
    }
}
