//! The truth of conditions: true, false, or unknown where NULL decides.

use std::{borrow::Cow, cell::OnceCell, cmp::Ordering, collections::HashSet, ops::ControlFlow};

use cdc_fake::{SqlError, SqlResult, Value};

use super::{
    evaluate::{Frame, Kept, Run, ordering},
    expression::{Comparing, Condition, Expr, Liking, Node, Quantified, Test},
    plan::Subquery,
};
use crate::{kind::Kind, scalar};

impl Run<'_> {
    /// The truth of a condition; none when it is unknown.
    pub(super) fn truth(
        &self,
        condition: &Condition,
        frame: &Frame<'_>,
    ) -> SqlResult<Option<bool>> {
        Ok(match condition {
            Condition::Known(truth) => *truth,
            Condition::All(parts) => {
                let mut result = Some(true);
                for part in parts {
                    match self.truth(part, frame)? {
                        Some(true) => {}
                        Some(false) => return Ok(Some(false)),
                        None => result = None,
                    }
                }
                result
            }
            Condition::Any(parts) => {
                let mut result = Some(false);
                for part in parts {
                    match self.truth(part, frame)? {
                        Some(false) => {}
                        Some(true) => return Ok(Some(true)),
                        None => result = None,
                    }
                }
                result
            }
            Condition::Not(part) => self.truth(part, frame)?.map(|truth| !truth),
            Condition::Compare(comparing) => {
                let Comparing { left, test, right, kind } = &**comparing;
                let (one, other) = (self.value(left, frame)?, self.value(right, frame)?);
                ordering(&one, &other, kind).map(|ordering| test.holds(ordering))
            }
            Condition::Distinct { of, negated } => {
                let one = self.value(&of.left, frame)?;
                let other = self.value(&of.right, frame)?;
                let distinct = match (one.is_null(), other.is_null()) {
                    (true, true) => false,
                    (false, false) => {
                        !ordering(&one, &other, &of.kind).is_some_and(Ordering::is_eq)
                    }
                    _ => true,
                };
                Some(distinct != *negated)
            }
            Condition::IsNull { of, negated } => Some(self.value(of, frame)?.is_null() != *negated),
            Condition::Like(liking) => self.like(liking, frame)?,
            Condition::In { of, list, kind, negated, kept } => {
                let cell = kept.and_then(|place| self.kept.get(place));
                let found = match cell {
                    Some(cell) => self.is_in_kept(of, list, kind, cell, frame)?,
                    None => self.is_in(of, list, kind, frame)?,
                };
                found.map(|found| found != *negated)
            }
            Condition::Quantified(quantified) => {
                self.quantified(quantified, frame)?.map(|truth| truth != quantified.negated)
            }
            Condition::Exists { query, negated } => Some(self.exists(query, frame)? != *negated),
        })
    }

    fn like(&self, liking: &Liking, frame: &Frame<'_>) -> SqlResult<Option<bool>> {
        let of = self.value(&liking.of, frame)?;
        let pattern = self.value(&liking.pattern, frame)?;
        let escape = match &liking.escape {
            None => None,
            Some(escape) => match &*self.value(escape, frame)? {
                Value::Text(text) => {
                    let mut letters = text.chars();
                    match (letters.next(), letters.next()) {
                        (Some(letter), None) => Some(letter),
                        _ => {
                            return Err(SqlError::new(
                                506,
                                "The invalid escape character was specified in a LIKE predicate.",
                            ));
                        }
                    }
                }
                _ => return Ok(None),
            },
        };
        let (Value::Text(of), Value::Text(pattern)) = (&*of, &*pattern) else {
            return Ok(None);
        };
        let found =
            scalar::like_of_kinds((of, &liking.of.kind), (pattern, &liking.pattern.kind), escape)?;
        Ok(Some(found != liking.negated))
    }

    fn is_in(
        &self,
        of: &Expr,
        list: &[Expr],
        kind: &Kind,
        frame: &Frame<'_>,
    ) -> SqlResult<Option<bool>> {
        let of = self.value(of, frame)?;
        if of.is_null() {
            return Ok(if list.is_empty() { Some(false) } else { None });
        }
        self.is_in_plainly(&of, list, kind, frame)
    }

    fn is_in_plainly(
        &self,
        of: &Value,
        list: &[Expr],
        kind: &Kind,
        frame: &Frame<'_>,
    ) -> SqlResult<Option<bool>> {
        let mut result = Some(false);
        for item in list {
            let item = self.value(item, frame)?;
            match ordering(of, &item, kind) {
                Some(Ordering::Equal) => return Ok(Some(true)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// As [`Run::is_in`], of a list that is the same for every row: its keys are made once.
    fn is_in_kept(
        &self,
        of: &Expr,
        list: &[Expr],
        kind: &Kind,
        cell: &OnceCell<Kept>,
        frame: &Frame<'_>,
    ) -> SqlResult<Option<bool>> {
        let of = self.value(of, frame)?;
        if of.is_null() {
            return Ok(None);
        }
        if cell.get().is_none() {
            let (mut keys, mut has_null) = (HashSet::with_capacity(list.len()), false);
            for item in list {
                let item = self.value(item, frame)?;
                if item.is_null() {
                    has_null = true;
                } else {
                    keys.insert(scalar::order_key([(&*item, kind, false)]));
                }
            }
            cell.get_or_init(|| Kept::Values { values: Vec::new(), keys, has_null });
        }
        let Some(Kept::Values { keys, has_null, .. }) = cell.get() else {
            return self.is_in_plainly(&of, list, kind, frame);
        };
        let found = keys.contains(&scalar::order_key([(&*of, kind, false)]));
        Ok(if found || !has_null { Some(found) } else { None })
    }

    fn exists(&self, query: &Subquery, frame: &Frame<'_>) -> SqlResult<bool> {
        let cell = query.kept.and_then(|place| self.kept.get(place));
        if let Some(Kept::Exists(found)) = cell.and_then(OnceCell::get) {
            return Ok(*found);
        }
        let mut found = false;
        let _ = self.plan(&query.plan, Some(frame), &mut |_| {
            found = true;
            Ok(ControlFlow::Break(()))
        })?;
        if let Some(cell) = cell {
            cell.get_or_init(|| Kept::Exists(found));
        }
        Ok(found)
    }

    fn quantified(&self, quantified: &Quantified, frame: &Frame<'_>) -> SqlResult<Option<bool>> {
        let left = self.value(&quantified.left, frame)?;
        let cell = quantified.query.kept.and_then(|place| self.kept.get(place));
        if let Some(cell) = cell {
            if cell.get().is_none() {
                let kept = self.kept_values(quantified, frame)?;
                cell.get_or_init(|| kept);
            }
            if let Some(Kept::Values { values, keys, has_null }) = cell.get() {
                return Ok(among(&left, quantified, values, keys, *has_null));
            }
        }
        let mut result = Some(quantified.all);
        let _ = self.plan(&quantified.query.plan, Some(frame), &mut |row| {
            let right = self.right_value(quantified, row)?;
            let truth =
                ordering(&left, &right, &quantified.kind).map(|found| quantified.test.holds(found));
            match truth {
                None => result = None,
                Some(truth) if truth != quantified.all => {
                    result = Some(truth);
                    return Ok(ControlFlow::Break(()));
                }
                Some(_) => {}
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(result)
    }

    fn right_value(&self, quantified: &Quantified, row: &[Value]) -> SqlResult<Value> {
        if matches!(quantified.right.node, Node::Column(_)) {
            return Ok(row.first().cloned().unwrap_or(Value::Null));
        }
        let frame = Frame { rows: vec![Some(row.into())], outer: None };
        self.value(&quantified.right, &frame).map(Cow::into_owned)
    }

    fn kept_values(&self, quantified: &Quantified, frame: &Frame<'_>) -> SqlResult<Kept> {
        let (mut values, mut keys, mut has_null) = (Vec::new(), HashSet::new(), false);
        let by_key = quantified.test == Test::Equal && !quantified.all;
        let _ = self.plan(&quantified.query.plan, Some(frame), &mut |row| {
            let right = self.right_value(quantified, row)?;
            self.hold(1)?;
            if right.is_null() {
                has_null = true;
            } else if by_key {
                keys.insert(scalar::order_key([(&right, &quantified.kind, false)]));
            } else {
                values.push(right);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Kept::Values { values, keys, has_null })
    }
}

/// A comparison of a value with those of a query.
fn among(
    left: &Value,
    quantified: &Quantified,
    values: &[Value],
    keys: &HashSet<Vec<u8>>,
    has_null: bool,
) -> Option<bool> {
    let empty = values.is_empty() && keys.is_empty() && !has_null;
    if empty {
        return Some(quantified.all);
    }
    if left.is_null() {
        return None;
    }
    let unknown = if has_null { None } else { Some(quantified.all) };
    if quantified.test == Test::Equal && !quantified.all {
        let key = scalar::order_key([(left, &quantified.kind, false)]);
        return if keys.contains(&key) { Some(true) } else { unknown };
    }
    let decided = values.iter().any(|right| {
        ordering(left, right, &quantified.kind)
            .is_some_and(|found| quantified.test.holds(found) != quantified.all)
    });
    if decided { Some(!quantified.all) } else { unknown }
}
