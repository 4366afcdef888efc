//! SELECT and the expressions of every statement: names and types are bound first, rows are read
//! afterwards.
//!
//! [`prepare`] turns the parsed text into a plan whose columns are places in rows, and
//! [`Prepared::run`] pushes rows through it one by one. Nothing is sorted that comes sorted, and
//! nothing is held that need not be.
//!
//! From the bottom up: `expression` and `plan` are what a statement is bound to, `level` is what
//! names mean, `binder` binds, `placement` and `grouping` look over what was bound; `evaluate`
//! computes values, `sources`, `joining`, `groups`, `windows` and `finish` make rows of them, `run`
//! puts these together.

use std::ops::ControlFlow;

use cdc_fake::{SqlError, SqlResult, Value};
use sqlparser::ast::{self, SelectItem, SetExpr};

use self::{
    binder::Binder,
    evaluate::{Places, Run},
    level::{Level, Tables},
    plan::Plan,
};
use crate::{
    kind::Typed,
    relation::Catalogue,
    talk::{Cancel, ResultColumn},
};

mod binder;
pub(crate) mod change;
mod evaluate;
mod expression;
mod finish;
mod grouping;
mod groups;
mod joining;
mod level;
mod naming;
mod over_rows;
mod placement;
mod plan;
mod refusal;
mod regrouping;
mod run;
mod sources;
mod table_values;
#[cfg(test)]
mod tests;
mod truth;
mod type_name;
mod windows;

pub(crate) use self::{
    change::{Changing, Exposure, Matched, changed_rows, matched_rows},
    naming::object_name,
    over_rows::{
        RowCondition, RowExpressions, RowSource, condition_over_rows, items_over_rows,
        values_over_rows,
    },
    type_name::kind_of,
};

/// How deep a recursive common table expression goes when the statement does not say.
const MAX_RECURSION: u16 = 100;

/// What a statement is bound to.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// What names mean.
    pub catalogue: &'a dyn Catalogue,
    /// Ends the statement when it is set.
    pub cancel: &'a Cancel,
}

/// A SELECT whose names and types are bound.
pub(crate) struct Prepared {
    plan: Plan,
    places: Places,
    assigned: Vec<String>,
    max_recursion: u16,
    only_data: bool,
}

impl Prepared {
    /// The columns of its result.
    pub(crate) fn columns(&self) -> &[ResultColumn] {
        &self.plan.columns
    }

    /// For `SELECT @x = ...`: the variables, a column each, with their `@`. None for a SELECT that
    /// gives rows. The last row's values are the variables' (all stay as they are without a row);
    /// variables are read anew for every row, so set them in the row closure.
    pub(crate) fn assigned(&self) -> Option<Vec<&str>> {
        let names = || self.assigned.iter().map(String::as_str).collect();
        (!self.assigned.is_empty()).then(names)
    }

    /// Lets recursive common table expressions go `levels` deep, 0 for any depth
    /// (`OPTION (MAXRECURSION n)`).
    #[must_use]
    pub(crate) fn with_max_recursion(self, levels: u16) -> Self {
        Self { max_recursion: levels, ..self }
    }

    /// True when the same text and variables give the same rows as long as the data is the same.
    pub(crate) fn reads_only_data(&self) -> bool {
        self.only_data
    }

    /// Reads the rows; gives their number. `row` breaks to end early.
    ///
    /// # Errors
    /// What reading, converting and computing refuse.
    pub(crate) fn run(
        &self,
        context: &Context<'_>,
        row: &mut dyn FnMut(&[Value]) -> SqlResult<ControlFlow<()>>,
    ) -> SqlResult<u64> {
        let most = (self.max_recursion > 0).then(|| u32::from(self.max_recursion));
        let run = Run::new(context, &self.places, most)?;
        let mut rows = 0;
        let _ = run.plan(&self.plan, None, &mut |values| {
            rows += 1;
            row(values)
        })?;
        Ok(rows)
    }
}

/// Binds the names and types of a SELECT. No row is read. `INTO` and `OPTION` are the caller's.
///
/// # Errors
/// 207, 208, 209, 4104, 8120 for names; 102, 4145 for predicates in the wrong place; 206, 402,
/// 8117 for types; 50000 for a construct that is not supported.
pub(crate) fn prepare(query: &ast::Query, context: &Context<'_>) -> SqlResult<Prepared> {
    let assigned = assigned_variables(query)?;
    let binder = Binder::new(*context, assigned.clone());
    let plan = binder.query(query, None, &Tables::default(), true)?;
    let only_data = binder.only_data.get() && assigned.is_empty();
    Ok(Prepared {
        plan,
        places: binder.places(),
        assigned,
        max_recursion: MAX_RECURSION,
        only_data,
    })
}

/// The variables that a SELECT sets.
fn assigned_variables(query: &ast::Query) -> SqlResult<Vec<String>> {
    let SetExpr::Select(select) = &*query.body else {
        return Ok(Vec::new());
    };
    let names: Vec<String> = select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. }
                if alias.quote_style.is_none() && alias.value.starts_with('@') =>
            {
                Some(alias.value.clone())
            }
            _ => None,
        })
        .collect();
    if !names.is_empty() && names.len() != select.projection.len() {
        return Err(SqlError::new(
            141,
            "A SELECT statement that assigns a value to a variable must not be combined with \
             data-retrieval operations.",
        ));
    }
    Ok(names)
}

/// The value of an expression without rows: of SET, DECLARE, an argument.
///
/// # Errors
/// As [`prepare`] and [`Prepared::run`].
pub(crate) fn scalar(expr: &ast::Expr, context: &Context<'_>) -> SqlResult<Typed> {
    let binder = Binder::new(*context, Vec::new());
    let bound = binder.value(expr, &Level::new(None, Tables::default()))?;
    let run = Run::new(context, &binder.places(), Some(MAX_RECURSION.into()))?;
    let value = run.constant(&bound)?;
    Ok(Typed { kind: bound.kind, value })
}

/// The truth of a condition without rows: of IF and WHILE. None when it is unknown.
///
/// # Errors
/// As [`scalar`].
pub(crate) fn condition(expr: &ast::Expr, context: &Context<'_>) -> SqlResult<Option<bool>> {
    let binder = Binder::new(*context, Vec::new());
    let bound = binder.condition(expr, &Level::new(None, Tables::default()))?;
    Run::new(context, &binder.places(), Some(MAX_RECURSION.into()))?.known(&bound)
}
