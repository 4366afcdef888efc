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
    plan::{Join, JoinKind, Plan, Source},
    refusal::unsupported,
};
use crate::{
    kind::Kind,
    relation::{ObjectName, ROW_LOCATION, RelationColumn, Row},
};

/// An UPDATE or DELETE as far as it decides which rows change and to what.
pub(crate) struct Changing<'q> {
    /// The common table expressions before it. The target may be one of them when that gives
    /// rows of one table as they are: the table's rows are changed then.
    pub with: Option<&'q ast::With>,
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
    /// What the statement sees of the table, when its target is a query.
    pub exposure: Option<Exposure>,
    /// The kinds of the new values.
    pub kinds: Vec<Kind>,
    /// A changed row as it is now, hidden columns included, and its new values. Each row once:
    /// by its first match, in the order read.
    pub rows: Vec<(Row, Vec<Value>)>,
}

/// A query that stands for a table whose rows are changed through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exposure {
    /// Its name.
    pub name: String,
    /// Its columns, and the table's column that each is; none for a computed one.
    pub columns: Vec<(String, Option<String>)>,
}

/// The table that is changed, below what the statement names.
struct Target {
    table: ObjectName,
    columns: Vec<RelationColumn>,
    exposure: Option<Exposure>,
    /// The place of the table's first column in the row of the source.
    first: usize,
}

/// Finds the rows that an UPDATE or DELETE changes, and computes the new values.
///
/// # Errors
/// As [`super::prepare`] and [`super::Prepared::run`].
pub(crate) fn changed_rows(changing: &Changing<'_>, context: &Context<'_>) -> SqlResult<Changed> {
    let binder = Binder::new(*context, Vec::new());
    let mut level = Level::new(None, Tables::default().and(changing.with)?);
    let mut source = binder.from(changing.from, &mut level)?;
    let slot = match target_of(changing.target, &level, &binder)? {
        Some(slot) => slot,
        None => {
            let slot = level.slots;
            let target = binder.factor(changing.target, &mut level, false)?;
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
    let target = below(&mut source, slot, &level)?;
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
    let run = Run::new(context, &binder.places(), Some(MAX_RECURSION.into()))?;
    let search = Search {
        source,
        filter: Condition::from_conjuncts(filter),
        slots: level.slots,
        slot,
        first: target.first,
        location: location(&target.columns),
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
    let Target { table, columns, exposure, .. } = target;
    Ok(Changed { table, columns, exposure, kinds, rows })
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

/// The table whose rows are those of a slot: a table of FROM itself, or the one that a query
/// gives rows of. Such a query gives the table's columns behind its own from then on.
fn below(source: &mut Source, slot: usize, level: &Level<'_>) -> SqlResult<Target> {
    let Some(visible) = level.sources.iter().find(|source| source.slot == slot) else {
        return Err(unsupported("changing the rows of anything but a table"));
    };
    if let Some(plan) = query_at(source, slot) {
        let name = visible.exposed.name().to_owned();
        let first = plan.columns.len();
        let origins = plan.origins();
        let Some(base) = plan.with_base() else {
            return Err(unsupported(format!(
                "changing rows through \"{name}\", which is not a plain selection from one table"
            )));
        };
        let names = visible.columns.iter().map(|column| column.name.clone());
        let origin = |at: Option<usize>| {
            at.and_then(|at| base.columns.get(at)).map(|column| column.name.clone())
        };
        let columns = names.zip(origins.into_iter().map(origin)).collect();
        let exposure = Some(Exposure { name, columns });
        return Ok(Target { table: base.table, columns: base.columns, exposure, first });
    }
    match visible {
        Visible { object: Some(object), columns, .. } => {
            Ok(Target { table: object.clone(), columns: columns.clone(), exposure: None, first: 0 })
        }
        _ => Err(unsupported("changing the rows of anything but a table")),
    }
}

/// The query of FROM whose rows are in a slot.
fn query_at(source: &mut Source, slot: usize) -> Option<&mut Plan> {
    match source {
        Source::Query { slot: own, plan, lateral: false } => (*own == slot).then_some(plan),
        Source::Join(join) => match query_at(&mut join.left, slot) {
            Some(plan) => Some(plan),
            None => query_at(&mut join.right, slot),
        },
        Source::Apply { left, .. } => query_at(left, slot),
        _ => None,
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
    /// The target's columns as expressions name them; one without a name cannot be named.
    pub target_columns: Vec<RelationColumn>,
    /// The columns of the target's table, the hidden ones too.
    pub table_columns: Vec<RelationColumn>,
    /// The place of the table's first column in the target's row.
    pub first: usize,
    /// What the statement sees of the table, when its target is a query.
    pub exposure: Option<Exposure>,
    /// The name that the statement calls the source by.
    pub source_name: String,
    /// The source's columns.
    pub source_columns: Vec<RelationColumn>,
    /// Target and source of every match, and each row of either side that has none.
    pub rows: Vec<(Option<Row>, Option<Row>)>,
}

impl Matched {
    /// The table's own row in a row of the target.
    pub(crate) fn table_row(&self, row: &Row) -> Row {
        match self.first {
            0 => row.clone(),
            first => row.get(first..).unwrap_or_default().into(),
        }
    }
}

/// Joins MERGE's target and source in full, behind a WITH. The target may be one of its
/// expressions, as for [`Changing`].
///
/// # Errors
/// As [`super::prepare`] and [`super::Prepared::run`].
pub(crate) fn matched_rows(
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
    let Target { table, columns, exposure, first } = below(&mut joined, target.slot, &level)?;
    let mut target_columns = target.columns.clone();
    if exposure.is_some() {
        let nameless = |column: &RelationColumn| RelationColumn {
            name: String::new(),
            hidden: true,
            ..column.clone()
        };
        target_columns.extend(columns.iter().map(nameless));
    }
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
        table_columns: columns,
        first,
        exposure,
        source_name: source.exposed.name().to_owned(),
        source_columns: source.columns.clone(),
        rows,
    })
}
