//! Binding whole queries: common table expressions, UNION and its like, VALUES.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult};
use sqlparser::ast::{self, LimitClause, OrderByKind, SetExpr, SetOperator, SetQuantifier};

use super::{
    Binder,
    select::{is_descending, is_whole, orderable, ordinal, refuse_repeated, row_count_type},
};
use crate::{
    kind::Kind,
    query::{
        expression::{Expr, Node},
        level::{Level, TableMeaning, Tables},
        naming::same,
        plan::{Body, Limit, OrderBy, OrderKey, Plan, RecursivePlan, SetOperation, SetPlan},
        refusal::{syntax, unsupported},
    },
    relation::RelationColumn,
    talk::ResultColumn,
};

/// What follows the body of a query.
#[derive(Clone, Copy, Default)]
pub(super) struct Tail<'a> {
    pub(super) order: Option<&'a ast::OrderBy>,
    pub(super) offset: Option<&'a ast::Offset>,
    pub(super) fetch: Option<&'a ast::Fetch>,
}

impl<'a> Binder<'a> {
    /// Binds a query; `alone` when it is a statement, whose order is always wanted.
    pub(crate) fn query(
        &self,
        query: &'a ast::Query,
        outer: Option<&'a Level<'a>>,
        tables: &Tables<'a>,
        alone: bool,
    ) -> SqlResult<Plan> {
        refuse_foreign(query)?;
        let tables = tables.and(query.with.as_ref())?;
        let offset = match &query.limit_clause {
            None => None,
            Some(LimitClause::LimitOffset { limit: None, offset, limit_by })
                if limit_by.is_empty() =>
            {
                offset.as_ref()
            }
            Some(_) => return Err(syntax("LIMIT")),
        };
        let tail = Tail { order: query.order_by.as_ref(), offset, fetch: query.fetch.as_ref() };
        if tail.order.is_none() && (tail.offset.is_some() || tail.fetch.is_some()) {
            return Err(syntax("OFFSET"));
        }
        let has_top = matches!(&*query.body, SetExpr::Select(select) if select.top.is_some());
        if !alone && tail.order.is_some() && tail.offset.is_none() && !has_top {
            return Err(SqlError::new(
                1033,
                "The ORDER BY clause is invalid in views, inline functions, derived tables, \
                 subqueries, and common table expressions, unless TOP, OFFSET or FOR XML is also \
                 specified.",
            ));
        }
        self.body(&query.body, outer, &tables, &tail)
    }

    fn body(
        &self,
        body: &'a SetExpr,
        outer: Option<&'a Level<'a>>,
        tables: &Tables<'a>,
        tail: &Tail<'a>,
    ) -> SqlResult<Plan> {
        match body {
            SetExpr::Select(select) => self.select(select, outer, tables.clone(), tail),
            SetExpr::Query(query) if tail.order.is_none() => {
                self.nested(|| self.query(query, outer, tables, true))
            }
            SetExpr::SetOperation { op, set_quantifier, left, right } => self.nested(|| {
                let operation = operation(*op, *set_quantifier)?;
                let none = Tail::default();
                let left = self.body(left, outer, tables, &none)?;
                let right = self.body(right, outer, tables, &none)?;
                self.combined(operation, left, right, outer, tables, tail)
            }),
            SetExpr::Values(values) if tail.order.is_none() => self.values(values, outer, tables),
            SetExpr::Query(_) | SetExpr::Values(_) => {
                Err(unsupported("ORDER BY behind a query in parentheses"))
            }
            SetExpr::Insert(_) => Err(syntax("INSERT")),
            SetExpr::Update(_) => Err(syntax("UPDATE")),
            SetExpr::Delete(_) => Err(syntax("DELETE")),
            SetExpr::Merge(_) => Err(syntax("MERGE")),
            SetExpr::Table(_) => Err(syntax("TABLE")),
        }
    }

    fn combined(
        &self,
        operation: SetOperation,
        left: Plan,
        right: Plan,
        outer: Option<&'a Level<'a>>,
        tables: &Tables<'a>,
        tail: &Tail<'a>,
    ) -> SqlResult<Plan> {
        if left.columns.len() != right.columns.len() {
            return Err(SqlError::new(
                205,
                "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an \
                 equal number of expressions in their target lists.",
            ));
        }
        let mut columns = Vec::new();
        let (mut left_values, mut right_values) = (Vec::new(), Vec::new());
        for (place, (one, other)) in left.columns.iter().zip(&right.columns).enumerate() {
            let (one_value, other_value) = (column_of(&left, place), column_of(&right, place));
            let kind = self.common([&one_value, &other_value])?;
            if operation != SetOperation::UnionAll {
                orderable(&kind)?;
            }
            left_values.push(self.converted(one_value, &kind)?);
            right_values.push(self.converted(other_value, &kind)?);
            let nullable = match operation {
                SetOperation::Except => one.kind.nullable,
                SetOperation::Intersect => one.kind.nullable && other.kind.nullable,
                SetOperation::Union | SetOperation::UnionAll => kind.nullable,
            };
            columns.push(ResultColumn {
                name: one.name.clone(),
                kind: Kind { nullable, ..kind },
                identity: false,
                computed: true,
            });
        }
        let order = self.set_order(tail.order, &columns)?;
        let limit = self.tail_limit(tail, outer, tables)?;
        let mut outward = left.outward.clone();
        outward.extend(&right.outward);
        let recursive = left.recursive || right.recursive;
        let set = SetPlan { operation, left, right, left_values, right_values, order, limit };
        Ok(Plan { columns, body: Body::Set(Box::new(set)), outward, recursive, base: None })
    }

    fn set_order(
        &self,
        order: Option<&'a ast::OrderBy>,
        columns: &[ResultColumn],
    ) -> SqlResult<Vec<OrderKey>> {
        let Some(order) = order else { return Ok(Vec::new()) };
        let OrderByKind::Expressions(exprs) = &order.kind else {
            return Err(unsupported("ORDER BY ALL"));
        };
        let keys: Vec<OrderKey> = exprs
            .iter()
            .map(|key| {
                let place = match ordinal(&key.expr, columns.len()) {
                    Ok(Some(place)) => Some(place),
                    Ok(None) => match &key.expr {
                        ast::Expr::Identifier(name) => columns.iter().position(|column| {
                            same(&column.name, &name.value, &self.facts.collation)
                        }),
                        _ => None,
                    },
                    Err(error) => return Err(error),
                };
                let found = place.and_then(|place| Some((place, columns.get(place)?)));
                let Some((place, column)) = found else {
                    return Err(SqlError::new(
                        104,
                        "ORDER BY items must appear in the select list if the statement contains \
                         a UNION, INTERSECT or EXCEPT operator.",
                    ));
                };
                orderable(&column.kind)?;
                Ok(OrderKey {
                    by: OrderBy::Output(place),
                    kind: column.kind.clone(),
                    descending: is_descending(key)?,
                })
            })
            .collect::<SqlResult<_>>()?;
        refuse_repeated(&keys)?;
        Ok(keys)
    }

    /// OFFSET and FETCH.
    pub(super) fn tail_limit(
        &self,
        tail: &Tail<'a>,
        outer: Option<&'a Level<'a>>,
        tables: &Tables<'a>,
    ) -> SqlResult<Limit> {
        let number = |expr: &'a ast::Expr| -> SqlResult<Expr> {
            let level = Level::new(outer, tables.clone());
            let number = self.value(expr, &level)?;
            if !is_whole(&number.kind.sql_type) {
                return Err(row_count_type());
            }
            self.converted(number, &Kind::new(SqlType::BigInt, true))
        };
        let offset = tail.offset.map(|offset| number(&offset.value)).transpose()?;
        let fetch = match tail.fetch {
            None => None,
            Some(ast::Fetch { with_ties: false, percent: false, quantity: Some(quantity) }) => {
                Some(number(quantity)?)
            }
            Some(_) => return Err(syntax("FETCH")),
        };
        Ok(Limit { offset, fetch, ..Limit::default() })
    }

    fn values(
        &self,
        values: &'a ast::Values,
        outer: Option<&'a Level<'a>>,
        tables: &Tables<'a>,
    ) -> SqlResult<Plan> {
        let level = Level::new(outer, tables.clone());
        let mut rows = values
            .rows
            .iter()
            .map(|row| row.content.iter().map(|value| self.value(value, &level)).collect())
            .collect::<SqlResult<Vec<Vec<Expr>>>>()?;
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(SqlError::new(
                10_709,
                "The number of columns for each row in a table value constructor must be the same.",
            ));
        }
        let mut columns = Vec::new();
        for place in 0..width {
            let kind = self.common(rows.iter().filter_map(|row| row.get(place)))?;
            for row in &mut rows {
                if let Some(value) = row.get_mut(place) {
                    let bound = std::mem::replace(value, Expr::new(Node::Null, kind.clone()));
                    *value = self.converted(bound, &kind)?;
                }
            }
            columns.push(ResultColumn {
                name: String::new(),
                kind,
                identity: false,
                computed: true,
            });
        }
        Ok(Plan {
            columns,
            body: Body::Values(rows),
            outward: level.outward.take(),
            recursive: level.recursive.get(),
            base: None,
        })
    }

    /// Binds what a common table expression's name stands for.
    pub(super) fn common_table(&self, table: &'a ast::Cte, before: &Tables<'a>) -> SqlResult<Plan> {
        let name = &table.alias.name.value;
        let query = &*table.query;
        if query.with.is_none()
            && let SetExpr::SetOperation { left, right, .. } = &*query.body
            && mentions(right, name, self)
            && !mentions(left, name, self)
        {
            return self.recursive_table(table, before);
        }
        self.nested(|| self.query(query, None, before, false))
    }

    fn recursive_table(&self, table: &'a ast::Cte, before: &Tables<'a>) -> SqlResult<Plan> {
        let name = &table.alias.name.value;
        let SetExpr::SetOperation { op, set_quantifier, left, right } = &*table.query.body else {
            return Err(syntax(name));
        };
        if operation(*op, *set_quantifier)? != SetOperation::UnionAll {
            return Err(SqlError::new(
                252,
                format!(
                    "Recursive common table expression '{name}' does not contain a top-level \
                     UNION ALL operator."
                ),
            ));
        }
        let none = Tail::default();
        let anchor = self.nested(|| self.body(left, None, before, &none))?;
        let id = Self::next(&self.recursions);
        let mut columns = relation_columns(&anchor, name, &table.alias.columns)?;
        for column in &mut columns {
            column.kind.nullable = true;
        }
        let inside = before.with(name.clone(), TableMeaning::Working { id, columns });
        let mut step = self.nested(|| self.body(right, None, &inside, &none))?;
        step.recursive = false;
        refuse_in_recursion(&step, right, name)?;
        if step.columns.len() != anchor.columns.len() {
            return Err(SqlError::new(
                205,
                "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an \
                 equal number of expressions in their target lists.",
            ));
        }
        let mut step_values = Vec::new();
        for (place, (own, next)) in anchor.columns.iter().zip(&step.columns).enumerate() {
            let value = column_of(&step, place);
            if own.kind.sql_type != next.kind.sql_type && !matches!(value.node, Node::Null) {
                let column =
                    table.alias.columns.get(place).map_or(&own.name, |column| &column.name.value);
                return Err(SqlError::new(
                    240,
                    format!(
                        "Types don't match between the anchor and the recursive part in column \
                         \"{column}\" of recursive query \"{name}\"."
                    ),
                ));
            }
            step_values.push(self.converted(value, &own.kind)?);
        }
        let mut columns = anchor.columns.clone();
        for column in &mut columns {
            column.kind.nullable = true;
        }
        let body = RecursivePlan { id, anchor, step, step_values };
        Ok(Plan {
            columns,
            body: Body::Recursive(Box::new(body)),
            outward: Vec::new(),
            recursive: false,
            base: None,
        })
    }
}

/// Refuses what the recursive part of a common table expression must not have.
fn refuse_in_recursion(step: &Plan, body: &SetExpr, name: &str) -> SqlResult<()> {
    let (Body::Select(plan), SetExpr::Select(select)) = (&step.body, body) else {
        return Ok(());
    };
    let (number, what) = match () {
        () if plan.distinct => (460, "DISTINCT operator is"),
        () if select.top.is_some() => (461, "The TOP or OFFSET operator is"),
        () if select.from.iter().flat_map(|table| &table.joins).any(is_outer) => {
            (462, "Outer join is")
        }
        () if plan.group.is_some() => (467, "GROUP BY, HAVING, or aggregate functions are"),
        () => return Ok(()),
    };
    let place = "not allowed in the recursive part of a recursive common table expression";
    Err(SqlError::new(number, format!("{what} {place} '{name}'.")))
}

fn is_outer(join: &ast::Join) -> bool {
    use ast::JoinOperator as J;
    matches!(
        join.join_operator,
        J::Left(_) | J::LeftOuter(_) | J::Right(_) | J::RightOuter(_) | J::FullOuter(_)
    )
}

/// A column of a query's row, in slot 0; a bare NULL when it is one for every row.
fn column_of(plan: &Plan, place: usize) -> Expr {
    let kind = plan.columns.get(place).map_or(Kind::new(SqlType::Int, true), |c| c.kind.clone());
    match &plan.body {
        Body::Select(select)
            if select.output.get(place).is_some_and(|value| matches!(value.node, Node::Null)) =>
        {
            Expr::new(Node::Null, kind)
        }
        Body::Set(set)
            if [&set.left_values, &set.right_values].iter().all(|values| {
                values.get(place).is_some_and(|value| matches!(value.node, Node::Null))
            }) =>
        {
            Expr::new(Node::Null, kind)
        }
        _ => Expr::column(0, place, kind),
    }
}

/// The columns of a query under a name, as a source of FROM.
///
/// # Errors
/// 8155 for a column without a name, 8156 for one named twice, 8158 and 8159 for a list of names
/// of another length.
pub(super) fn relation_columns(
    plan: &Plan,
    name: &str,
    names: &[ast::TableAliasColumnDef],
) -> SqlResult<Vec<RelationColumn>> {
    let own = plan.columns.len();
    if !names.is_empty() && names.len() != own {
        let (number, word) = if own > names.len() { (8158, "more") } else { (8159, "fewer") };
        return Err(SqlError::new(
            number,
            format!("'{name}' has {word} columns than were specified in the column list."),
        ));
    }
    let mut columns: Vec<RelationColumn> = Vec::with_capacity(own);
    for (place, column) in plan.columns.iter().enumerate() {
        let given = names.get(place).map(|named| &named.name.value);
        let shown = given.unwrap_or(&column.name);
        if shown.is_empty() {
            return Err(SqlError::new(
                8155,
                format!("No column name was specified for column {} of '{name}'.", place + 1),
            ));
        }
        if columns.iter().any(|other| other.name.eq_ignore_ascii_case(shown)) {
            return Err(SqlError::new(
                8156,
                format!("The column '{shown}' was specified multiple times for '{name}'."),
            ));
        }
        columns.push(RelationColumn {
            identity: column.identity,
            computed: column.computed,
            ..RelationColumn::new(shown.clone(), column.kind.clone())
        });
    }
    Ok(columns)
}

fn operation(op: SetOperator, quantifier: SetQuantifier) -> SqlResult<SetOperation> {
    match (op, quantifier) {
        (SetOperator::Union, SetQuantifier::All) => Ok(SetOperation::UnionAll),
        (SetOperator::Union, SetQuantifier::None) => Ok(SetOperation::Union),
        (SetOperator::Except, SetQuantifier::None) => Ok(SetOperation::Except),
        (SetOperator::Intersect, SetQuantifier::None) => Ok(SetOperation::Intersect),
        (op, quantifier) => Err(syntax(format!("{op} {quantifier}"))),
    }
}

fn refuse_foreign(query: &ast::Query) -> SqlResult<()> {
    match &query.for_clause {
        None => {}
        Some(ast::ForClause::Json { .. }) => return Err(unsupported("FOR JSON")),
        Some(ast::ForClause::Xml { .. }) => return Err(unsupported("FOR XML")),
        Some(ast::ForClause::Browse) => return Err(unsupported("FOR BROWSE")),
    }
    let foreign = [
        (!query.locks.is_empty(), "FOR"),
        (query.settings.is_some(), "SETTINGS"),
        (query.format_clause.is_some(), "FORMAT"),
        (!query.pipe_operators.is_empty(), "|>"),
    ];
    match foreign.iter().find(|(present, _)| *present) {
        Some((_, word)) => Err(syntax(word)),
        None => Ok(()),
    }
}

/// True when FROM of a query names `name` as a table.
fn mentions(body: &SetExpr, name: &str, binder: &Binder<'_>) -> bool {
    let factor = |factor: &ast::TableFactor| factor_mentions(factor, name, binder);
    match body {
        SetExpr::Select(select) => select.from.iter().any(|table| {
            factor(&table.relation) || table.joins.iter().any(|join| factor(&join.relation))
        }),
        SetExpr::Query(query) => mentions(&query.body, name, binder),
        SetExpr::SetOperation { left, right, .. } => {
            mentions(left, name, binder) || mentions(right, name, binder)
        }
        _ => false,
    }
}

fn factor_mentions(factor: &ast::TableFactor, name: &str, binder: &Binder<'_>) -> bool {
    match factor {
        ast::TableFactor::Table { name: object, args: None, .. } => {
            matches!(object.0.as_slice(), [part]
            if part.as_ident().is_some_and(|part| {
                same(&part.value, name, &binder.facts.collation)
            }))
        }
        ast::TableFactor::Derived { subquery, .. } => mentions(&subquery.body, name, binder),
        ast::TableFactor::NestedJoin { table_with_joins, .. } => {
            factor_mentions(&table_with_joins.relation, name, binder)
                || table_with_joins
                    .joins
                    .iter()
                    .any(|join| factor_mentions(&join.relation, name, binder))
        }
        _ => false,
    }
}
