//! Reading the sources of FROM: scans with bounds, queries, functions, APPLY.

use std::{ops::ControlFlow, sync::Arc};

use cdc_core::SqlType;
use cdc_fake::{SqlResult, Value};

use super::{
    evaluate::{Flow, Frame, Run, ordering},
    expression::{Expr, Test},
    plan::{Limitation, Plan, Scan, Source},
    run::FrameSink,
    table_values::TableValues,
};
use crate::{
    kind::Kind,
    relation::{Bound, Comparison, ObjectName, Row, Rows},
    scalar,
};

impl Run<'_> {
    /// Puts every row of a source into its slots. Breaks when `sink` does.
    pub(super) fn source(
        &self,
        source: &Source,
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        match source {
            Source::Scan(scan) => self.scan(scan, frame, sink),
            Source::Join(join) => self.join(join, frame, sink),
            Source::Apply { left, right, outer } => self.apply(left, right, *outer, frame, sink),
            Source::Query { slot, plan, lateral } => {
                self.derived(*slot, plan, *lateral, frame, sink)
            }
            Source::Working { slot, id } => {
                let rows = self.working.borrow().get(*id).map(Arc::clone).unwrap_or_default();
                self.put_all(*slot, rows.iter().cloned(), frame, sink)
            }
            Source::Function { slot, name, arguments } => {
                self.function_rows(*slot, name, arguments, frame, sink)
            }
        }
    }

    fn put_all(
        &self,
        slot: usize,
        rows: impl Iterator<Item = Row>,
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        for row in rows {
            self.look()?;
            frame.put(slot, Some(row));
            if sink(frame)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        frame.put(slot, None);
        Ok(ControlFlow::Continue(()))
    }

    fn scan(&self, scan: &Scan, frame: &mut Frame<'_>, sink: &mut FrameSink<'_>) -> Flow {
        let Some(rows) = self.scanned(scan, frame)? else {
            return Ok(ControlFlow::Continue(()));
        };
        for row in rows {
            self.look()?;
            frame.put(scan.slot, Some(row?));
            if let Some(filter) = &scan.filter
                && self.truth(filter, frame)? != Some(true)
            {
                continue;
            }
            if sink(frame)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        frame.put(scan.slot, None);
        Ok(ControlFlow::Continue(()))
    }

    /// The rows of a relation within what is known of its columns; none when no row can be.
    pub(super) fn scanned<'s>(
        &self,
        scan: &'s Scan,
        frame: &Frame<'_>,
    ) -> SqlResult<Option<Rows<'s>>> {
        let mut wanted = crate::relation::Scan {
            bounds: Vec::new(),
            uncommitted: scan.uncommitted,
            skip_held: scan.skip_held,
            locking: scan.locking,
        };
        for alternatives in &scan.bounds {
            let mut known = Vec::new();
            for parts in alternatives {
                known.extend(self.bounds(scan, parts, frame)?);
            }
            let Some((first, others)) = known.split_first() else {
                return Ok(None);
            };
            if others.is_empty() {
                wanted.bounds.extend(first.iter().cloned());
            } else {
                wanted.bounds.extend(united(scan, first, others));
            }
        }
        scan.relation.scan(&wanted).map(Some)
    }

    /// Bounds as a relation takes them; none when a value is NULL, which no row passes.
    fn bounds(
        &self,
        scan: &Scan,
        parts: &[Limitation],
        frame: &Frame<'_>,
    ) -> SqlResult<Option<Vec<Bound>>> {
        let mut bounds = Vec::new();
        for part in parts {
            let value = self.value(&part.value, frame)?;
            if value.is_null() {
                return Ok(None);
            }
            let Some(column) = scan.relation.columns().get(part.column) else { continue };
            if let Some(value) = self.as_column(&value, &part.kind, &column.kind) {
                let comparison = comparison(part.test);
                bounds.push(Bound { column: part.column, comparison, value });
            }
        }
        Ok(Some(bounds))
    }

    /// The value as one of a column, when it compares with the column's values as before.
    fn as_column(&self, value: &Value, kind: &Kind, column: &Kind) -> Option<Value> {
        if family(&kind.sql_type)? != family(&column.sql_type)? {
            return None;
        }
        if is_character(&kind.sql_type) && kind.collation != column.collation {
            return None;
        }
        if kind.sql_type == column.sql_type {
            return Some(value.clone());
        }
        let own = scalar::convert(value, kind, column, None, true, &self.facts).ok()?;
        let back = scalar::convert(&own, column, kind, None, true, &self.facts).ok()?;
        ordering(value, &back, kind).is_some_and(std::cmp::Ordering::is_eq).then_some(own)
    }

    fn derived(
        &self,
        slot: usize,
        plan: &Plan,
        lateral: bool,
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        if lateral {
            let mut rows: Vec<Row> = Vec::new();
            let _ = self.plan(plan, Some(frame), &mut |row| {
                rows.push(row.into());
                Ok(ControlFlow::Continue(()))
            })?;
            return self.put_all(slot, rows.into_iter(), frame, sink);
        }
        let outer = frame.outer;
        let flow = self.plan(plan, outer, &mut |row| {
            self.look()?;
            frame.put(slot, Some(row.into()));
            sink(frame)
        })?;
        frame.put(slot, None);
        Ok(flow)
    }

    fn function_rows(
        &self,
        slot: usize,
        name: &ObjectName,
        arguments: &[Expr],
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        let arguments = self.typed(arguments, frame)?;
        if let Some(function) = TableValues::named(name) {
            return self.put_all(slot, function.rows(&arguments)?, frame, sink);
        }
        let relation = self.context.catalogue.table_function(name, &arguments)?;
        for row in relation.scan(&crate::relation::Scan::default())? {
            self.look()?;
            frame.put(slot, Some(row?));
            if sink(frame)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        frame.put(slot, None);
        Ok(ControlFlow::Continue(()))
    }

    fn apply(
        &self,
        left: &Source,
        right: &Source,
        outer: bool,
        frame: &mut Frame<'_>,
        sink: &mut FrameSink<'_>,
    ) -> Flow {
        self.source(left, frame, &mut |frame| {
            let mut found = false;
            let flow = self.source(right, frame, &mut |frame| {
                found = true;
                sink(frame)
            })?;
            if flow.is_break() || found || !outer {
                return Ok(flow);
            }
            sink(frame)
        })
    }
}

const fn comparison(test: Test) -> Comparison {
    match test {
        Test::Equal | Test::NotEqual => Comparison::Equal,
        Test::Less => Comparison::Less,
        Test::LessOrEqual => Comparison::LessOrEqual,
        Test::Greater => Comparison::Greater,
        Test::GreaterOrEqual => Comparison::GreaterOrEqual,
    }
}

/// What holds whichever alternative does: for each column bounded on a side by all of them, the
/// widest bound.
fn united(scan: &Scan, first: &[Bound], others: &[Vec<Bound>]) -> Vec<Bound> {
    let mut bounds = Vec::new();
    for lower in [true, false] {
        let side = |bound: &&Bound| is_side(bound.comparison, lower);
        for own in first.iter().filter(side) {
            let Some(kind) = scan.relation.columns().get(own.column).map(|column| &column.kind)
            else {
                continue;
            };
            let mut widest = Some(&own.value);
            for other in others {
                // Any of an alternative's bounds of the column holds; the first will do.
                let next = other.iter().filter(side).find(|next| next.column == own.column);
                widest = match (widest, next) {
                    (Some(one), Some(next)) => match ordering(&next.value, one, kind) {
                        Some(order) if order.is_lt() == lower => Some(&next.value),
                        Some(_) => Some(one),
                        None => None,
                    },
                    _ => None,
                };
            }
            if let Some(value) = widest {
                let comparison =
                    if lower { Comparison::GreaterOrEqual } else { Comparison::LessOrEqual };
                bounds.push(Bound { column: own.column, comparison, value: value.clone() });
            }
        }
    }
    bounds
}

const fn is_side(comparison: Comparison, lower: bool) -> bool {
    match comparison {
        Comparison::Equal => true,
        Comparison::Greater | Comparison::GreaterOrEqual => lower,
        Comparison::Less | Comparison::LessOrEqual => !lower,
    }
}

/// Types whose values convert into each other without changing their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Exact,
    Approximate,
    Character,
    Bytes,
    Moment,
    Date,
    Time,
    Offset,
    Guid,
}

const fn family(sql_type: &SqlType) -> Option<Family> {
    Some(match sql_type {
        SqlType::Bit
        | SqlType::TinyInt
        | SqlType::SmallInt
        | SqlType::Int
        | SqlType::BigInt
        | SqlType::Decimal { .. }
        | SqlType::Money
        | SqlType::SmallMoney => Family::Exact,
        SqlType::Real | SqlType::Float => Family::Approximate,
        SqlType::Char(_) | SqlType::VarChar(_) | SqlType::NChar(_) | SqlType::NVarChar(_) => {
            Family::Character
        }
        SqlType::Binary(_) | SqlType::VarBinary(_) | SqlType::RowVersion => Family::Bytes,
        SqlType::DateTime | SqlType::SmallDateTime | SqlType::DateTime2 { .. } => Family::Moment,
        SqlType::Date => Family::Date,
        SqlType::Time { .. } => Family::Time,
        SqlType::DateTimeOffset { .. } => Family::Offset,
        SqlType::UniqueIdentifier => Family::Guid,
        _ => return None,
    })
}

const fn is_character(sql_type: &SqlType) -> bool {
    matches!(family(sql_type), Some(Family::Character))
}
