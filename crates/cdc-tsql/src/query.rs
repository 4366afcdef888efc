//! SELECT and the expressions of every statement: names and types are bound first, rows are read
//! afterwards.
//!
//! [`prepare`] turns the parsed text into a plan whose columns are places in rows; [`Prepared::run`]
//! pushes rows through it one by one. Nothing is sorted that comes sorted, nothing is held that
//! need not be.

#![allow(dead_code, unused_variables, reason = "signatures first")]

use std::ops::ControlFlow;

use cdc_fake::{SqlError, SqlResult, Value};
use sqlparser::ast;

use crate::{
    kind::{Kind, Typed},
    relation::{Catalogue, ObjectName, RelationColumn, Row},
    talk::{Cancel, ResultColumn},
};

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
    columns: Vec<ResultColumn>,
}

impl Prepared {
    /// The columns of its result.
    pub(crate) fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// For `SELECT @x = ...`: the variables, a column each, with their `@`. None for a SELECT that
    /// gives rows. The last row's values are the variables' (all stay as they are without a row);
    /// variables are read anew for every row, so set them in the row closure.
    pub(crate) fn assigned(&self) -> Option<Vec<&str>> {
        None
    }

    /// Lets recursive common table expressions go `levels` deep, 0 for any depth
    /// (`OPTION (MAXRECURSION n)`).
    #[must_use]
    pub(crate) fn with_max_recursion(self, levels: u16) -> Self {
        self
    }

    /// True when the same text and variables give the same rows as long as the data is the same.
    pub(crate) fn reads_only_data(&self) -> bool {
        false
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
        Err(unfinished())
    }
}

/// Binds the names and types of a SELECT. No row is read. `INTO` and `OPTION` are the caller's.
///
/// # Errors
/// 207, 208, 209, 4104, 8120 for names; 102, 4145 for predicates in the wrong place; 206, 402,
/// 8117 for types; 50000 for a construct that is not supported.
pub(crate) fn prepare(query: &ast::Query, context: &Context<'_>) -> SqlResult<Prepared> {
    Err(unfinished())
}

/// The value of an expression without rows: of SET, DECLARE, an argument.
///
/// # Errors
/// As [`prepare`] and [`Prepared::run`].
pub(crate) fn scalar(expr: &ast::Expr, context: &Context<'_>) -> SqlResult<Typed> {
    Err(unfinished())
}

/// The truth of a condition without rows: of IF and WHILE. None when it is unknown.
///
/// # Errors
/// As [`scalar`].
pub(crate) fn condition(expr: &ast::Expr, context: &Context<'_>) -> SqlResult<Option<bool>> {
    Err(unfinished())
}

/// The kind that a type's name means in CAST, DECLARE and CREATE TABLE; nullable.
///
/// # Errors
/// 243 for an unknown type; 1001, 2716, 2717, 131 for a length or precision out of range; 448 for
/// an unknown collation.
pub(crate) fn kind_of(
    data_type: &ast::DataType,
    collation: Option<&ast::ObjectName>,
) -> SqlResult<Kind> {
    Err(unfinished())
}

/// An object's name of up to three parts; a fourth (a linked server's) is refused.
///
/// # Errors
/// 117 for too many parts, 50000 for a name that is no name.
pub(crate) fn object_name(name: &ast::ObjectName) -> SqlResult<ObjectName> {
    Err(unfinished())
}

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
/// As [`prepare`] and [`Prepared::run`].
pub(crate) fn changed_rows(changing: &Changing<'_>, context: &Context<'_>) -> SqlResult<Changed> {
    Err(unfinished())
}

/// How the rows of MERGE's target and source go together.
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
/// As [`prepare`] and [`Prepared::run`].
pub(crate) fn matched_rows(
    target: &ast::TableFactor,
    source: &ast::TableFactor,
    on: &ast::Expr,
    context: &Context<'_>,
) -> SqlResult<Matched> {
    Err(unfinished())
}

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
}

impl RowExpressions {
    /// A column for each.
    pub(crate) fn columns(&self) -> &[ResultColumn] {
        &self.columns
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
        Err(unfinished())
    }
}

/// Binds a select list (of OUTPUT: `inserted.*`, `$action` is the caller's) over given rows.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn items_over_rows(
    items: &[ast::SelectItem],
    sources: &[RowSource<'_>],
    context: &Context<'_>,
) -> SqlResult<RowExpressions> {
    Err(unfinished())
}

/// Binds expressions over given rows.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn values_over_rows(
    expressions: &[&ast::Expr],
    sources: &[RowSource<'_>],
    context: &Context<'_>,
) -> SqlResult<RowExpressions> {
    Err(unfinished())
}

/// A condition bound over given rows.
pub(crate) struct RowCondition {}

impl RowCondition {
    /// Whether it holds; none when that is unknown. `rows` as in [`RowExpressions::values`].
    ///
    /// # Errors
    /// What computing refuses.
    pub(crate) fn holds(
        &self,
        rows: &[Option<Row>],
        context: &Context<'_>,
    ) -> SqlResult<Option<bool>> {
        Err(unfinished())
    }
}

/// Binds a condition (of MERGE's WHEN, a CHECK) over given rows.
///
/// # Errors
/// As [`prepare`].
pub(crate) fn condition_over_rows(
    condition: &ast::Expr,
    sources: &[RowSource<'_>],
    context: &Context<'_>,
) -> SqlResult<RowCondition> {
    Err(unfinished())
}

fn unfinished() -> SqlError {
    SqlError::new(50_000, "not supported by this server")
}
