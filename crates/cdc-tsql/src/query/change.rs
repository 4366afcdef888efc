//! Which rows an UPDATE, a DELETE or a MERGE changes, and to what.

use std::{collections::HashSet, ops::ControlFlow};

use cdc_fake::{SqlError, SqlResult, Value};
use sqlparser::ast;

use super::{
    Context, MAX_RECURSION,
    binder::Binder,
    evaluate::{Frame, Run},
    expression::{Condition, Expr},
    level::{Exposed, Level, Tables, Visible},
    naming::{object_name, parts, qualifies, same},
    placement,
    plan::{Join, JoinKind, Source},
    refusal::unsupported,
};
use crate::{
    kind::Kind,
    relation::{ObjectName, ROW_LOCATION, RelationColumn, Row},
};

/// An UPDATE or DELETE as far as it decides which rows change and to what.
pub(crate) struct Changing<'q> {
    /// What is changed: the table after UPDATE or DELETE FROM, by name or by an alias of `from`.
    pub target: &'q ast::TableFactor,
    /// The FROM clause; empty when there is none.
    pub from: &'q [ast::TableWithJoins],
    /// The WHERE clause.
    pub selection: Option<&'q ast::Expr>,
    /// The new values; none for DELETE. DEFAULT is the caller's.
    pub values: Vec<&'q ast::Expr>,
    /// TOP.
    pub top: Option<&'q ast::Top>,
}

/// The rows that an UPDATE or DELETE changes.
#[derive(Debug)]
pub(crate) struct Changed {
    /// The table's own name.
    pub table: ObjectName,
    /// Its columns, the hidden ones too.
    pub columns: Vec<RelationColumn>,
    /// The kinds of the new values.
    pub kinds: Vec<Kind>,
    /// A changed row as it is now, hidden columns included, and its new values. Each row once:
    /// by its first match, in the order read.
    pub rows: Vec<(Row, Vec<Value>)>,
}

/// Finds the rows that an UPDATE or DELETE changes, and computes the new values.
///
/// # Errors
/// As [`super::prepare`] and [`super::Prepared::run`].
pub(crate) fn changed_rows(changing: &Changing<'_>, context: &Context<'_>) -> SqlResult<Changed> {
    changed_rows_with(None, changing, context)
}

/// As [`changed_rows`], behind a WITH. The target may be one of its expressions when that gives
/// rows of one table as they are: the table's rows are changed then.
///
/// # Errors
/// As [`changed_rows`].
pub(crate) fn changed_rows_with(
    with: Option<&ast::With>,
    changing: &Changing<'_>,
    context: &Context<'_>,
) -> SqlResult<Changed> {
    let binder = Binder::new(*context, Vec::new());
    let mut level = Level::new(None, Tables::default().and(with)?);
    let mut source = binder.from(changing.from, &mut level)?;
    let mut base = None;
    let slot = match target_of(changing.target, &level, &binder)? {
        Some(slot) => slot,
        None => {
            let slot = level.slots;
            let mut target = binder.factor(changing.target, &mut level, false)?;
            if let Source::Query { plan, .. } = &mut target {
                let own = plan.columns.len();
                base = plan.with_base().map(|base| (own, base));
            }
            source = Some(match source {
                None => target,
                Some(other) => pair(target, other, JoinKind::Inner),
            });
            slot
        }
    };
    let Some(mut source) = source else {
        return Err(unsupported("a statement without a table"));
    };
    let mut filter = Vec::new();
    if let Some(selection) = changing.selection {
        for part in binder.condition(selection, &level)?.into_conjuncts() {
            filter.extend(placement::absorb(Some(&mut source), part));
        }
    }
    placement::settle(&mut source);
    let values = changing
        .values
        .iter()
        .map(|value| binder.value(value, &level))
        .collect::<SqlResult<Vec<_>>>()?;
    let top = changing.top.map(|top| binder.top(top, None, &Tables::default())).transpose()?;
    let (first, table, columns) = match base {
        Some((first, base)) => (first, base.table, base.columns),
        None => {
            let (table, columns) = own_table(&level, slot)?;
            (0, table, columns)
        }
    };
    let run = Run::new(context, &binder.places(), Some(MAX_RECURSION.into()))?;
    let search = Search {
        source,
        filter: Condition::from_conjuncts(filter),
        slots: level.slots,
        slot,
        first,
        location: location(&columns),
    };
    let most = match &top {
        Some(top) => Some(row_count(&run, top)?),
        None => None,
    };
    if top.is_some() && changing.top.is_some_and(|top| top.percent) {
        return Err(unsupported("TOP PERCENT of UPDATE or DELETE"));
    }
    let kinds = values.iter().map(|value| value.kind.clone()).collect();
    let rows = search.rows(&run, &values, most)?;
    Ok(Changed { table, columns, kinds, rows })
}

fn row_count(run: &Run<'_>, top: &Expr) -> SqlResult<usize> {
    let number = run.constant(top)?.as_int().unwrap_or(-1);
    usize::try_from(number)
        .map_err(|_| SqlError::new(127, "A TOP N or FETCH rowcount value may not be negative."))
}

/// Where the rows to change are found.
struct Search {
    source: Source,
    filter: Option<Condition>,
    slots: usize,
    /// The slot of the table that is changed.
    slot: usize,
    /// The place of the table's first column in that row.
    first: usize,
    /// The place of the column that tells its rows apart.
    location: Option<usize>,
}

impl Search {
    fn rows(
        &self,
        run: &Run<'_>,
        values: &[Expr],
        most: Option<usize>,
    ) -> SqlResult<Vec<(Row, Vec<Value>)>> {
        let mut found: Vec<(Row, Vec<Value>)> = Vec::new();
        let mut seen: HashSet<Vec<u8>> = HashSet::new();
        if most == Some(0) {
            return Ok(found);
        }
        let mut frame = Frame::new(self.slots, None);
        let _ = run.source(&self.source, &mut frame, &mut |frame| {
            if let Some(filter) = &self.filter
                && run.truth(filter, frame)? != Some(true)
            {
                return Ok(ControlFlow::Continue(()));
            }
            let Some(Some(row)) = frame.rows.get(self.slot) else {
                return Ok(ControlFlow::Continue(()));
            };
            let row: Row = match self.first {
                0 => row.clone(),
                first => row.get(first..).unwrap_or_default().into(),
            };
            let at = self.location.and_then(|place| row.get(place));
            if let Some(Value::Bytes(at)) = at
                && !seen.insert(at.to_vec())
            {
                return Ok(ControlFlow::Continue(()));
            }
            run.hold(1)?;
            let made = values
                .iter()
                .map(|value| run.value(value, frame).map(std::borrow::Cow::into_owned))
                .collect::<SqlResult<Vec<_>>>()?;
            found.push((row, made));
            if most.is_some_and(|most| found.len() >= most) {
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }
}

/// The slot of FROM's source that the target names; none when it is not among them.
fn target_of(
    target: &ast::TableFactor,
    level: &Level<'_>,
    binder: &Binder<'_>,
) -> SqlResult<Option<usize>> {
    let ast::TableFactor::Table { name, alias: None, args: None, .. } = target else {
        return Ok(None);
    };
    let collation = &binder.facts.collation;
    let wanted = parts(name)?;
    let by_alias = level.sources.iter().find(|source| {
        matches!((&source.exposed, wanted.as_slice()), (Exposed::Alias(alias), [own])
            if same(alias, own, collation))
    });
    if let Some(source) = by_alias {
        return Ok(Some(source.slot));
    }
    let object = object_name(name)?;
    let means = |source: &&Visible| {
        source.object.as_ref().is_some_and(|own| {
            qualifies(&wanted, own, collation)
                || (own.schema.is_none()
                    && object.schema.as_deref().is_none_or(|s| s.eq_ignore_ascii_case("dbo"))
                    && same(&own.name, &object.name, collation))
        })
    };
    let mut by_name = level.sources.iter().filter(means);
    match (by_name.next(), by_name.next()) {
        (Some(_), Some(_)) => {
            Err(SqlError::new(8154, format!("The table '{}' is ambiguous.", object.name)))
        }
        (found, _) => Ok(found.map(|source| source.slot)),
    }
}

fn own_table(level: &Level<'_>, slot: usize) -> SqlResult<(ObjectName, Vec<RelationColumn>)> {
    let source = level.sources.iter().find(|source| source.slot == slot);
    match source {
        Some(Visible { object: Some(object), columns, .. }) => {
            Ok((object.clone(), columns.clone()))
        }
        _ => Err(unsupported("changing the rows of anything but a table")),
    }
}

fn location(columns: &[RelationColumn]) -> Option<usize> {
    columns.iter().position(|column| column.name == ROW_LOCATION)
}

fn pair(left: Source, right: Source, kind: JoinKind) -> Source {
    Source::Join(Box::new(Join {
        left,
        right,
        kind,
        keys: Vec::new(),
        residual: None,
        merge: false,
    }))
}

/// How the rows of MERGE's target and source go together.
#[derive(Debug)]
pub(crate) struct Matched {
    /// The target's own name.
    pub table: ObjectName,
    /// The name that the statement calls the target by.
    pub target_name: String,
    /// The target's columns, the hidden ones too.
    pub target_columns: Vec<RelationColumn>,
    /// The name that the statement calls the source by.
    pub source_name: String,
    /// The source's columns.
    pub source_columns: Vec<RelationColumn>,
    /// Target and source of every match, and each row of either side that has none.
    pub rows: Vec<(Option<Row>, Option<Row>)>,
}

/// Joins MERGE's target and source in full.
///
/// # Errors
/// As [`super::prepare`] and [`super::Prepared::run`].
pub(crate) fn matched_rows(
    target: &ast::TableFactor,
    source: &ast::TableFactor,
    on: &ast::Expr,
    context: &Context<'_>,
) -> SqlResult<Matched> {
    matched_rows_with(None, target, source, on, context)
}

/// As [`matched_rows`], behind a WITH.
///
/// # Errors
/// As [`matched_rows`].
pub(crate) fn matched_rows_with(
    with: Option<&ast::With>,
    target: &ast::TableFactor,
    source: &ast::TableFactor,
    on: &ast::Expr,
    context: &Context<'_>,
) -> SqlResult<Matched> {
    let binder = Binder::new(*context, Vec::new());
    let mut level = Level::new(None, Tables::default().and(with)?);
    let left = binder.factor(target, &mut level, false)?;
    let right = binder.factor(source, &mut level, false)?;
    let conditions = binder.condition(on, &level)?.into_conjuncts();
    let mut joined = pair(left, right, JoinKind::Full);
    placement::join_on(&mut joined, conditions);
    placement::settle(&mut joined);
    let [target, source] = level.sources.as_slice() else {
        return Err(unsupported("MERGE of anything but a table and a source"));
    };
    let (table, target_columns) = own_table(&level, target.slot)?;
    let run = Run::new(context, &binder.places(), Some(MAX_RECURSION.into()))?;
    let mut rows = Vec::new();
    let mut frame = Frame::new(level.slots, None);
    let _ = run.source(&joined, &mut frame, &mut |frame| {
        run.hold(1)?;
        let at = |slot: usize| frame.rows.get(slot).cloned().flatten();
        rows.push((at(target.slot), at(source.slot)));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(Matched {
        table,
        target_name: target.exposed.name().to_owned(),
        target_columns,
        source_name: source.exposed.name().to_owned(),
        source_columns: source.columns.clone(),
        rows,
    })
}
