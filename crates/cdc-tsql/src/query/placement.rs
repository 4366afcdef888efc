//! Placing conditions as near to the rows as they can be: at a scan, as keys of a join; and the
//! order that rows come in.

use std::collections::BTreeSet;

use cdc_core::SqlType;

use super::{
    expression::{Column, Comparing, Condition, Expr, Node, Test},
    plan::{Join, JoinKind, Limitation, OrderBy, OrderKey, Scan, Source},
};

/// The slots of the query at hand that a condition reads.
fn slots_of(condition: &Condition) -> BTreeSet<usize> {
    let mut slots = BTreeSet::new();
    condition.columns(&mut |column| {
        if column.depth == 0 {
            slots.insert(column.slot);
        }
    });
    slots
}

fn value_slots(value: &Expr) -> BTreeSet<usize> {
    let mut slots = BTreeSet::new();
    value.columns(&mut |column| {
        if column.depth == 0 {
            slots.insert(column.slot);
        }
    });
    slots
}

/// The slots of a source's rows.
fn own_slots(source: &Source) -> BTreeSet<usize> {
    match source {
        Source::Scan(Scan { slot, .. })
        | Source::Query { slot, .. }
        | Source::Function { slot, .. }
        | Source::Working { slot, .. } => BTreeSet::from([*slot]),
        Source::Join(join) => {
            let mut slots = own_slots(&join.left);
            slots.extend(own_slots(&join.right));
            slots
        }
        Source::Apply { left, right, .. } => {
            let mut slots = own_slots(left);
            slots.extend(own_slots(right));
            slots
        }
    }
}

/// Places a part of WHERE inside the sources; gives it back when it has to stay above them.
pub(super) fn absorb(source: Option<&mut Source>, condition: Condition) -> Option<Condition> {
    let slots = slots_of(&condition);
    match source {
        Some(source) if !slots.is_empty() => placed(source, condition, &slots),
        _ => Some(condition),
    }
}

fn placed(source: &mut Source, condition: Condition, slots: &BTreeSet<usize>) -> Option<Condition> {
    match source {
        Source::Scan(scan) => {
            if slots.len() != 1 || !slots.contains(&scan.slot) {
                return Some(condition);
            }
            and(&mut scan.filter, condition);
            None
        }
        Source::Query { .. } | Source::Function { .. } | Source::Working { .. } => Some(condition),
        Source::Apply { left, .. } => {
            if slots.is_subset(&own_slots(left)) {
                placed(left, condition, slots)
            } else {
                Some(condition)
            }
        }
        Source::Join(join) => {
            if join.kind == JoinKind::Full {
                return Some(condition);
            }
            if slots.is_subset(&own_slots(&join.left)) {
                return placed(&mut join.left, condition, slots);
            }
            if join.kind == JoinKind::Left {
                return Some(condition);
            }
            if slots.is_subset(&own_slots(&join.right)) {
                let kept = placed(&mut join.right, condition, slots)?;
                and(&mut join.residual, kept);
                return None;
            }
            if let Some(kept) = as_key(join, condition) {
                and(&mut join.residual, kept);
            }
            None
        }
    }
}

/// Places the conditions of ON.
pub(super) fn join_on(source: &mut Source, conditions: Vec<Condition>) {
    let Source::Join(join) = source else { return };
    let right = own_slots(&join.right);
    for condition in conditions {
        let slots = slots_of(&condition);
        let kept = if join.kind == JoinKind::Inner {
            and_placed(join, condition, &slots)
        } else if join.kind == JoinKind::Left && !slots.is_empty() && slots.is_subset(&right) {
            placed(&mut join.right, condition, &slots)
        } else {
            as_key(join, condition)
        };
        if let Some(kept) = kept {
            and(&mut join.residual, kept);
        }
    }
}

fn and_placed(join: &mut Join, condition: Condition, slots: &BTreeSet<usize>) -> Option<Condition> {
    if slots.is_empty() {
        return Some(condition);
    }
    if slots.is_subset(&own_slots(&join.left)) {
        return placed(&mut join.left, condition, slots);
    }
    if slots.is_subset(&own_slots(&join.right)) {
        return placed(&mut join.right, condition, slots);
    }
    as_key(join, condition)
}

fn as_key(join: &mut Join, condition: Condition) -> Option<Condition> {
    let Condition::Compare(comparing) = condition else {
        return Some(condition);
    };
    if comparing.test != Test::Equal {
        return Some(Condition::Compare(comparing));
    }
    let (left, right) = (own_slots(&join.left), own_slots(&join.right));
    let (one, other) = (value_slots(&comparing.left), value_slots(&comparing.right));
    if one.is_empty() || other.is_empty() {
        return Some(Condition::Compare(comparing));
    }
    let Comparing { left: first, right: second, kind, .. } = *comparing;
    if one.is_subset(&left) && other.is_subset(&right) {
        join.keys.push((first, second, kind));
        None
    } else if one.is_subset(&right) && other.is_subset(&left) {
        join.keys.push((second, first, kind));
        None
    } else {
        let comparing = Comparing { left: first, test: Test::Equal, right: second, kind };
        Some(Condition::Compare(Box::new(comparing)))
    }
}

fn and(place: &mut Option<Condition>, condition: Condition) {
    // What is there is flat already: a thousand parts are not to be moved a thousand times.
    match place {
        Some(Condition::All(parts)) => parts.extend(condition.into_conjuncts()),
        _ => {
            let mut parts = place.take().map(Condition::into_conjuncts).unwrap_or_default();
            parts.extend(condition.into_conjuncts());
            *place = Condition::from_conjuncts(parts);
        }
    }
}

/// Once everything is placed: what scans may seek by, and which joins can be merged.
pub(super) fn settle(source: &mut Source) {
    match source {
        Source::Scan(scan) => {
            let parts = match &scan.filter {
                Some(Condition::All(parts)) => parts.as_slice(),
                Some(other) => std::slice::from_ref(other),
                None => &[],
            };
            scan.bounds = parts.iter().filter_map(|part| limitations(part, scan.slot)).collect();
        }
        Source::Query { .. } | Source::Function { .. } | Source::Working { .. } => {}
        Source::Apply { left, right, .. } => {
            settle(left);
            settle(right);
        }
        Source::Join(join) => {
            settle(&mut join.left);
            settle(&mut join.right);
            for (left, right, _) in &join.keys {
                let (Node::Column(left), Node::Column(right)) = (&left.node, &right.node) else {
                    continue;
                };
                hand_over(&join.left, *left, &mut join.right, *right);
                if join.kind == JoinKind::Inner {
                    hand_over(&join.right, *right, &mut join.left, *left);
                }
            }
            join.merge = can_merge(join);
        }
    }
}

/// What is known of a key on one side is known of the other side's.
fn hand_over(from: &Source, column: Column, to: &mut Source, own: Column) {
    let Some(scan) = scan_of(from, column.slot) else { return };
    let kind_of = |scan: &Scan, column: usize| {
        scan.relation.columns().get(column).map(|column| column.kind.clone())
    };
    let kind = kind_of(scan, column.column);
    let bounds: Vec<Vec<Vec<Limitation>>> = scan
        .bounds
        .iter()
        .filter_map(|alternatives| {
            alternatives
                .iter()
                .map(|parts| {
                    let own: Vec<Limitation> = parts
                        .iter()
                        .filter(|part| part.column == column.column)
                        .map(|part| Limitation { column: own.column, ..part.clone() })
                        .collect();
                    (!own.is_empty()).then_some(own)
                })
                .collect::<Option<Vec<_>>>()
        })
        .collect();
    if let Some(scan) = scan_of_mut(to, own.slot)
        && let (Some(one), Some(other)) = (kind, kind_of(scan, own.column))
        && one.sql_type == other.sql_type
        && one.collation == other.collation
    {
        for bound in bounds {
            if !scan.bounds.contains(&bound) {
                scan.bounds.push(bound);
            }
        }
    }
}

fn scan_of(source: &Source, slot: usize) -> Option<&Scan> {
    match source {
        Source::Scan(scan) => (scan.slot == slot).then_some(scan),
        Source::Join(join) => scan_of(&join.left, slot).or_else(|| scan_of(&join.right, slot)),
        Source::Apply { left, .. } => scan_of(left, slot),
        _ => None,
    }
}

/// A scan whose rows a bound may leave out: not below the NULL side of another join.
fn scan_of_mut(source: &mut Source, slot: usize) -> Option<&mut Scan> {
    match source {
        Source::Scan(scan) => (scan.slot == slot).then_some(scan),
        Source::Join(join) => match join.kind {
            JoinKind::Full => None,
            JoinKind::Left => scan_of_mut(&mut join.left, slot),
            JoinKind::Inner => {
                if own_slots(&join.left).contains(&slot) {
                    scan_of_mut(&mut join.left, slot)
                } else {
                    scan_of_mut(&mut join.right, slot)
                }
            }
        },
        Source::Apply { left, .. } => scan_of_mut(left, slot),
        _ => None,
    }
}

/// What a condition says of columns of one slot: alternatives of which one holds.
fn limitations(condition: &Condition, slot: usize) -> Option<Vec<Vec<Limitation>>> {
    match condition {
        Condition::Compare(comparing) => Some(vec![vec![limitation(comparing, slot)?]]),
        Condition::All(parts) => {
            let known: Vec<Limitation> = parts
                .iter()
                .filter_map(|part| limitations(part, slot))
                .filter_map(|mut alternatives| match alternatives.len() {
                    1 => alternatives.pop(),
                    _ => None,
                })
                .flatten()
                .collect();
            (!known.is_empty()).then(|| vec![known])
        }
        Condition::Any(parts) => {
            let mut alternatives = Vec::new();
            for part in parts {
                alternatives.extend(limitations(part, slot)?);
            }
            Some(alternatives)
        }
        _ => None,
    }
}

fn limitation(comparing: &Comparing, slot: usize) -> Option<Limitation> {
    let Comparing { left, test, right, kind } = comparing;
    if *test == Test::NotEqual {
        return None;
    }
    let steady = |value: &Expr| value_slots(value).is_empty();
    let column = |value: &Expr| match &bare(value).node {
        Node::Column(Column { depth: 0, slot: own, column }) if *own == slot => Some(*column),
        _ => None,
    };
    let (column, test, value) = if let (Some(column), true) = (column(left), steady(right)) {
        (column, *test, right)
    } else if let (Some(column), true) = (column(right), steady(left)) {
        (column, test.swapped(), left)
    } else {
        return None;
    };
    Some(Limitation { column, test, value: value.clone(), kind: kind.clone() })
}

/// The expression below a conversion that a comparison made: the scan converts the value back.
fn bare(value: &Expr) -> &Expr {
    match &value.node {
        Node::Convert(conversion) if !conversion.explicit => &conversion.of,
        _ => value,
    }
}

/// The columns that a source's rows come ordered by.
fn order_of(source: &Source) -> Vec<Column> {
    match source {
        Source::Scan(scan) => scan
            .relation
            .order()
            .iter()
            .map_while(|place| {
                let column = scan.relation.columns().get(*place)?;
                is_plainly_ordered(&column.kind.sql_type).then_some(Column {
                    depth: 0,
                    slot: scan.slot,
                    column: *place,
                })
            })
            .collect(),
        Source::Join(join) if join.kind != JoinKind::Full => order_of(&join.left),
        Source::Apply { left, .. } => order_of(left),
        _ => Vec::new(),
    }
}

/// Types that a relation's key and ORDER BY surely order alike: texts depend on a collation.
const fn is_plainly_ordered(sql_type: &SqlType) -> bool {
    matches!(
        sql_type,
        SqlType::TinyInt
            | SqlType::SmallInt
            | SqlType::Int
            | SqlType::BigInt
            | SqlType::Decimal { .. }
            | SqlType::Date
            | SqlType::DateTime
            | SqlType::DateTime2 { .. }
            | SqlType::Binary(_)
            | SqlType::VarBinary(_)
    )
}

fn can_merge(join: &Join) -> bool {
    let [(left, right, kind)] = join.keys.as_slice() else { return false };
    let (Node::Column(left), Node::Column(right)) = (&left.node, &right.node) else {
        return false;
    };
    let Source::Scan(scan) = &join.right else { return false };
    let leads = order_of(&join.left).first() == Some(left);
    let follows = scan.relation.order().first() == Some(&right.column);
    let own = scan.relation.columns().get(right.column);
    join.kind != JoinKind::Full
        && leads
        && follows
        && scan.slot == right.slot
        && own.is_some_and(|own| {
            own.kind.sql_type == kind.sql_type && is_plainly_ordered(&kind.sql_type)
        })
}

/// How many of the leading keys of ORDER BY the rows of `source` come ordered by.
pub(super) fn presorted(source: &Source, order: &[OrderKey], output: &[&Expr]) -> usize {
    order_of(source)
        .iter()
        .zip(order)
        .take_while(|(column, key)| {
            let value = match &key.by {
                OrderBy::Output(place) => output.get(*place).copied(),
                OrderBy::Value(value) => Some(value),
            };
            !key.descending
                && matches!(value, Some(Expr { node: Node::Column(own), .. }) if own == *column)
        })
        .count()
}
