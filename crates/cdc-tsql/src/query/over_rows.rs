//! Expressions and conditions over given rows: OUTPUT, MERGE's clauses, CHECK, computed columns.

use std::collections::BTreeSet;

use cdc_fake::{SqlResult, Value};
use sqlparser::ast;

use super::{
    Context, MAX_RECURSION,
    binder::Binder,
    evaluate::{Frame, Places, Run},
    expression::{Column, Condition, Expr},
    level::{Exposed, Level, Tables, Visible},
};
use crate::{
    relation::{RelationColumn, Row},
    talk::ResultColumn,
};

/// Rows that an expression may name: `inserted` and `deleted` of OUTPUT, MERGE's two sides, the
/// one table of a CHECK or a computed column.
#[derive(Clone, Copy)]
pub(crate) struct RowSource<'a> {
    /// The name that qualifies the columns.
    pub name: &'a str,
    /// The columns.
    pub columns: &'a [RelationColumn],
}

/// Expressions bound over given rows.
pub(crate) struct RowExpressions {
    columns: Vec<ResultColumn>,
    values: Vec<Expr>,
    places: Places,
}

impl RowExpressions {
    /// A column for each.
    pub(crate) fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// The places of the columns of the first source that they read.
    pub(crate) fn reads(&self) -> BTreeSet<usize> {
        let mut places = BTreeSet::new();
        for value in &self.values {
            value.columns(&mut |column| note(&mut places, column));
        }
        places
    }

    /// Their values; `rows` has a row for each source, none for one all of whose columns are NULL.
    ///
    /// # Errors
    /// What computing refuses.
    pub(crate) fn values(
        &self,
        rows: &[Option<Row>],
        context: &Context<'_>,
    ) -> SqlResult<Vec<Value>> {
        let run = Run::new(context, &self.places, Some(MAX_RECURSION.into()))?;
        let frame = Frame { rows: rows.to_vec(), outer: None };
        self.values
            .iter()
            .map(|value| run.value(value, &frame).map(std::borrow::Cow::into_owned))
            .collect()
    }
}

/// Binds a select list (of OUTPUT: `inserted.*`, `$action` is the caller's) over given rows.
///
/// # Errors
/// As [`super::prepare`].
pub(crate) fn items_over_rows(
    items: &[ast::SelectItem],
    sources: &[RowSource<'_>],
    context: &Context<'_>,
) -> SqlResult<RowExpressions> {
    let binder = Binder::new(*context, Vec::new());
    let level = level_of(sources);
    let items = binder.items(items, &level)?;
    let (values, columns) = items.into_iter().map(|item| (item.expr, item.column)).unzip();
    Ok(RowExpressions { columns, values, places: places(&binder) })
}

/// Binds expressions over given rows, with the common table expressions before the statement.
///
/// # Errors
/// As [`super::prepare`].
pub(crate) fn values_over_rows(
    with: Option<&ast::With>,
    expressions: &[&ast::Expr],
    sources: &[RowSource<'_>],
    context: &Context<'_>,
) -> SqlResult<RowExpressions> {
    let binder = Binder::new(*context, Vec::new());
    let mut level = level_of(sources);
    level.tables = Tables::default().and(with)?;
    let values = expressions
        .iter()
        .map(|value| binder.value(value, &level))
        .collect::<SqlResult<Vec<_>>>()?;
    let columns = values
        .iter()
        .map(|value| ResultColumn {
            name: String::new(),
            kind: value.kind.clone(),
            identity: false,
            computed: true,
        })
        .collect();
    Ok(RowExpressions { columns, values, places: places(&binder) })
}

/// A condition bound over given rows.
pub(crate) struct RowCondition {
    condition: Condition,
    places: Places,
}

impl RowCondition {
    /// The places of the columns of the first source that it reads.
    pub(crate) fn reads(&self) -> BTreeSet<usize> {
        let mut places = BTreeSet::new();
        self.condition.columns(&mut |column| note(&mut places, column));
        places
    }

    /// Whether it holds; none when that is unknown. `rows` as in [`RowExpressions::values`].
    ///
    /// # Errors
    /// What computing refuses.
    pub(crate) fn holds(
        &self,
        rows: &[Option<Row>],
        context: &Context<'_>,
    ) -> SqlResult<Option<bool>> {
        let run = Run::new(context, &self.places, Some(MAX_RECURSION.into()))?;
        run.truth(&self.condition, &Frame { rows: rows.to_vec(), outer: None })
    }
}

/// Binds a condition (of MERGE's WHEN, a CHECK) over given rows, with the common table expressions
/// before the statement.
///
/// # Errors
/// As [`super::prepare`].
pub(crate) fn condition_over_rows(
    with: Option<&ast::With>,
    condition: &ast::Expr,
    sources: &[RowSource<'_>],
    context: &Context<'_>,
) -> SqlResult<RowCondition> {
    let binder = Binder::new(*context, Vec::new());
    let mut level = level_of(sources);
    level.tables = Tables::default().and(with)?;
    let condition = binder.condition(condition, &level)?;
    Ok(RowCondition { condition, places: places(&binder) })
}

/// A run is over one row: what it would keep for the next one is not worth keeping.
fn places(binder: &Binder<'_>) -> Places {
    Places { kept: 0, ..binder.places() }
}

fn note(places: &mut BTreeSet<usize>, column: Column) {
    if column.depth == 0 && column.slot == 0 {
        places.insert(column.column);
    }
}

fn level_of<'a>(sources: &[RowSource<'_>]) -> Level<'a> {
    let mut level = Level::new(None, Tables::default());
    for (slot, source) in sources.iter().enumerate() {
        level.sources.push(Visible {
            exposed: Exposed::Alias(source.name.to_owned()),
            object: None,
            slot,
            columns: source.columns.to_vec(),
        });
    }
    level.slots = sources.len();
    level
}
