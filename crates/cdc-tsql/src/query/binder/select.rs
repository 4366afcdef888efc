//! Binding a SELECT: sources, conditions, groups, the select list and its order.

use cdc_core::SqlType;
use cdc_fake::{SqlError, SqlResult};
use sqlparser::ast::{self, OrderByKind, SelectItem, SelectItemQualifiedWildcardKind};

use super::{Binder, grouping::Keys, query::Tail};
use crate::{
    kind::Kind,
    query::{
        expression::{Condition, Expr, Node},
        grouping,
        level::{Level, Place, Tables, Visible},
        naming::{parts, same},
        placement,
        plan::{Base, Body, GroupPlan, Limit, OrderBy, OrderKey, Plan, SelectPlan, Source},
        refusal::{ambiguous, syntax, unsupported},
        regrouping::Regrouping,
    },
    talk::ResultColumn,
};

/// An expression of the select list and the column that it becomes.
pub(in crate::query) struct Item {
    pub(in crate::query) expr: Expr,
    pub(in crate::query) column: ResultColumn,
}

impl<'a> Binder<'a> {
    /// Binds a SELECT with what follows it.
    pub(super) fn select(
        &self,
        select: &'a ast::Select,
        outer: Option<&'a Level<'a>>,
        tables: Tables<'a>,
        tail: &Tail<'a>,
    ) -> SqlResult<Plan> {
        refuse_foreign(select)?;
        let mut level = Level::new(outer, tables);
        level.named_windows = &select.named_window;
        let mut source = self.from(&select.from, &mut level)?;
        let filter = self.filter(select.selection.as_ref(), source.as_mut(), &level)?;
        let Keys { keys, sets } = self.group_keys(&select.group_by, &level)?;
        level.group_keys.replace(keys.clone());
        level.has_sets.set(!sets.is_empty());
        let mut items = level.at(Place::Output, || self.items(&select.projection, &level))?;
        let mut having = select
            .having
            .as_ref()
            .map(|having| level.at(Place::Group, || self.condition(having, &level)))
            .transpose()?;
        let distinct = matches!(select.distinct, Some(ast::Distinct::Distinct));
        let mut order =
            level.at(Place::Output, || self.order(tail.order, &items, distinct, &level))?;
        let limit = self.limit(select.top.as_ref(), tail, &level, !order.is_empty())?;

        let aggregates = level.aggregates.take();
        let windows = level.windows.take();
        let grouped = is_grouped(&select.group_by) || !aggregates.is_empty() || having.is_some();
        if grouped {
            let output: Vec<&Expr> = items.iter().map(|item| &item.expr).collect();
            grouping::check(&level, &keys, &output, having.as_ref(), &order, &windows)?;
        }
        if !sets.is_empty() {
            if !windows.is_empty() {
                return Err(unsupported("a window function over ROLLUP, CUBE or GROUPING SETS"));
            }
            let regrouping = Regrouping { keys: &keys, slot: level.key_slot() };
            regroup(&regrouping, &mut items, having.as_mut(), &mut order)?;
        }
        let presorted = match &source {
            Some(source) if !grouped && windows.is_empty() => {
                placement::presorted(source, &order, &items_exprs(&items))
            }
            _ => 0,
        };
        let base = base_of(source.as_ref(), &level).filter(|_| !grouped && !distinct);
        let (output, columns) = items.into_iter().map(|item| (item.expr, item.column)).unzip();
        let body = SelectPlan {
            source,
            slots: level.slots,
            filter,
            group: grouped.then_some(GroupPlan { keys, sets, aggregates, having }),
            windows,
            output,
            distinct,
            order,
            presorted,
            limit,
        };
        Ok(Plan {
            columns,
            body: Body::Select(Box::new(body)),
            outward: level.outward.take(),
            recursive: level.recursive.get(),
            base,
        })
    }

    /// Binds WHERE, and places what it can in the sources.
    fn filter(
        &self,
        selection: Option<&'a ast::Expr>,
        mut source: Option<&mut Source>,
        level: &Level<'a>,
    ) -> SqlResult<Option<Condition>> {
        let mut filter = Vec::new();
        if let Some(selection) = selection {
            for part in self.condition(selection, level)?.into_conjuncts() {
                filter.extend(placement::absorb(source.as_deref_mut(), part));
            }
        }
        if let Some(source) = source {
            placement::settle(source);
        }
        Ok(Condition::from_conjuncts(filter))
    }

    /// Binds a select list.
    pub(in crate::query) fn items(
        &self,
        items: &'a [SelectItem],
        level: &Level<'a>,
    ) -> SqlResult<Vec<Item>> {
        let mut bound = Vec::new();
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => {
                    let value = self.value(expr, level)?;
                    bound.push(named(value, own_name(expr), level));
                }
                SelectItem::ExprWithAlias { expr, alias } => {
                    let value = self.value(expr, level)?;
                    bound.push(named(value, alias.value.clone(), level));
                }
                SelectItem::Wildcard(options) => {
                    refuse_options(options)?;
                    if level.sources.is_empty() {
                        return Err(SqlError::new(263, "Must specify table to select from."));
                    }
                    level.sources.iter().for_each(|source| self.all_of(source, &mut bound));
                }
                SelectItem::QualifiedWildcard(kind, options) => {
                    refuse_options(options)?;
                    let SelectItemQualifiedWildcardKind::ObjectName(name) = kind else {
                        return Err(unsupported("the columns of an expression"));
                    };
                    self.all_of(level.prefixed(&parts(name)?, &self.facts.collation)?, &mut bound);
                }
                SelectItem::ExprWithAliases { .. } => return Err(syntax("(")),
            }
        }
        Ok(bound)
    }

    fn all_of(&self, source: &Visible, items: &mut Vec<Item>) {
        for (index, column) in source.columns.iter().enumerate() {
            if column.hidden {
                continue;
            }
            let mut kind = column.kind.clone();
            self.collate(&mut kind, true);
            items.push(Item {
                expr: Expr::column(source.slot, index, kind.clone()),
                column: ResultColumn {
                    name: column.name.clone(),
                    kind,
                    identity: column.identity,
                    computed: column.computed,
                },
            });
        }
    }

    fn order(
        &self,
        order: Option<&'a ast::OrderBy>,
        items: &[Item],
        distinct: bool,
        level: &Level<'a>,
    ) -> SqlResult<Vec<OrderKey>> {
        let Some(order) = order else { return Ok(Vec::new()) };
        let OrderByKind::Expressions(exprs) = &order.kind else {
            return Err(unsupported("ORDER BY ALL"));
        };
        let keys: Vec<OrderKey> = exprs
            .iter()
            .map(|key| {
                let descending = is_descending(key)?;
                let by = self.order_by(&key.expr, items, level)?;
                let kind = match &by {
                    OrderBy::Output(place) => output_kind(items, *place),
                    OrderBy::Value(value) => value.kind.clone(),
                };
                orderable(&kind)?;
                if distinct && matches!(by, OrderBy::Value(_)) {
                    return Err(SqlError::new(
                        145,
                        "ORDER BY items must appear in the select list if SELECT DISTINCT is \
                         specified.",
                    ));
                }
                Ok(OrderKey { by, kind, descending })
            })
            .collect::<SqlResult<_>>()?;
        refuse_repeated(&keys)?;
        Ok(keys)
    }

    fn order_by(
        &self,
        expr: &'a ast::Expr,
        items: &[Item],
        level: &Level<'a>,
    ) -> SqlResult<OrderBy> {
        if let Some(place) = ordinal(expr, items.len())? {
            return Ok(OrderBy::Output(place));
        }
        if let ast::Expr::Identifier(name) = expr
            && !(name.quote_style.is_none() && name.value.starts_with('@'))
        {
            let collation = &self.facts.collation;
            let mut found: Option<usize> = None;
            for (place, item) in items.iter().enumerate() {
                if item.column.name.is_empty() || !same(&item.column.name, &name.value, collation) {
                    continue;
                }
                match found {
                    Some(first) if items.get(first).is_none_or(|other| other.expr != item.expr) => {
                        return Err(ambiguous(&name.value));
                    }
                    Some(_) => {}
                    None => found = Some(place),
                }
            }
            if let Some(place) = found {
                return Ok(OrderBy::Output(place));
            }
        }
        let value = self.value(expr, level)?;
        if matches!(value.node, Node::Constant(_) | Node::Null) {
            return Err(SqlError::new(
                408,
                "A constant expression was encountered in the ORDER BY list.",
            ));
        }
        let place = items.iter().position(|item| item.expr == value);
        Ok(place.map_or(OrderBy::Value(value), OrderBy::Output))
    }

    /// TOP, OFFSET and FETCH.
    fn limit(
        &self,
        top: Option<&'a ast::Top>,
        tail: &Tail<'a>,
        level: &Level<'a>,
        ordered: bool,
    ) -> SqlResult<Limit> {
        let mut limit = self.tail_limit(tail, level.outer, &level.tables)?;
        let Some(top) = top else { return Ok(limit) };
        if limit.offset.is_some() {
            return Err(SqlError::new(
                10_741,
                "A TOP can not be used in the same query or sub-query as a OFFSET.",
            ));
        }
        if top.with_ties && !ordered {
            return Err(SqlError::new(
                1062,
                "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY \
                 clause.",
            ));
        }
        limit.top = Some(self.top(top, level.outer, &level.tables)?);
        limit.percent = top.percent;
        limit.ties = top.with_ties;
        Ok(limit)
    }

    /// The number of TOP.
    pub(crate) fn top(
        &self,
        top: &'a ast::Top,
        outer: Option<&'a Level<'a>>,
        tables: &Tables<'a>,
    ) -> SqlResult<Expr> {
        let kind = Kind::new(if top.percent { SqlType::Float } else { SqlType::BigInt }, true);
        match &top.quantity {
            Some(ast::TopQuantity::Constant(number)) => {
                let number = i64::try_from(*number).unwrap_or(i64::MAX);
                let number = Self::constant(number.into(), SqlType::BigInt);
                self.converted(number, &kind)
            }
            Some(ast::TopQuantity::Expr(expr)) => {
                let level = Level::new(outer, tables.clone());
                let number = self.value(expr, &level)?;
                if !top.percent && !is_whole(&number.kind.sql_type) {
                    return Err(row_count_type());
                }
                self.converted(number, &kind)
            }
            None => Err(syntax("TOP")),
        }
    }
}

fn is_grouped(group_by: &ast::GroupByExpr) -> bool {
    !matches!(group_by, ast::GroupByExpr::Expressions(items, modifiers)
        if items.is_empty() && modifiers.is_empty())
}

/// Reads the keys of GROUP BY from the group's row, wherever they stand.
fn regroup(
    regrouping: &Regrouping<'_>,
    items: &mut [Item],
    having: Option<&mut Condition>,
    order: &mut [OrderKey],
) -> SqlResult<()> {
    for item in items {
        regrouping.value(&mut item.expr)?;
        item.column.kind.nullable = item.expr.kind.nullable;
    }
    if let Some(having) = having {
        regrouping.condition(having)?;
    }
    for key in order {
        if let OrderBy::Value(value) = &mut key.by {
            regrouping.value(value)?;
        }
    }
    Ok(())
}

/// The one table that a query reads.
fn base_of(source: Option<&Source>, level: &Level<'_>) -> Option<Base> {
    match (source, level.sources.as_slice()) {
        (Some(Source::Scan(_)), [Visible { object: Some(table), columns, slot, .. }]) => {
            Some(Base { table: table.clone(), columns: columns.clone(), slot: *slot })
        }
        _ => None,
    }
}

/// A row count that is no integer.
pub(super) fn row_count_type() -> SqlError {
    SqlError::new(
        1060,
        "The number of rows provided for a TOP or FETCH clauses row count parameter must be an \
         integer.",
    )
}

/// True for the integer types.
pub(super) const fn is_whole(sql_type: &SqlType) -> bool {
    matches!(sql_type, SqlType::TinyInt | SqlType::SmallInt | SqlType::Int | SqlType::BigInt)
}

fn items_exprs(items: &[Item]) -> Vec<&Expr> {
    items.iter().map(|item| &item.expr).collect()
}

fn output_kind(items: &[Item], place: usize) -> Kind {
    items.get(place).map_or(Kind::new(SqlType::Int, true), |item| item.expr.kind.clone())
}

/// True for DESC.
pub(super) fn is_descending(key: &ast::OrderByExpr) -> SqlResult<bool> {
    if key.options.nulls_first.is_some() {
        return Err(syntax("NULLS"));
    }
    match &key.options.sort {
        None | Some(ast::OrderBySort::Asc) => Ok(false),
        Some(ast::OrderBySort::Desc) => Ok(true),
        Some(ast::OrderBySort::Using(_)) => Err(syntax("USING")),
    }
}

/// The column that `ORDER BY 2` means; none when it is no number.
pub(super) fn ordinal(expr: &ast::Expr, columns: usize) -> SqlResult<Option<usize>> {
    let ast::Expr::Value(value) = expr else { return Ok(None) };
    let ast::Value::Number(text, _) = &value.value else {
        return Err(SqlError::new(
            408,
            "A constant expression was encountered in the ORDER BY list.",
        ));
    };
    match text.parse::<usize>() {
        Ok(number) if (1..=columns).contains(&number) => Ok(Some(number - 1)),
        _ => Err(SqlError::new(
            108,
            format!(
                "The ORDER BY position number {text} is out of range of the number of items in \
                 the select list."
            ),
        )),
    }
}

/// Refuses a column that rows are ordered by twice.
pub(super) fn refuse_repeated(keys: &[OrderKey]) -> SqlResult<()> {
    let alike = |one: &OrderKey, other: &OrderKey| match (&one.by, &other.by) {
        (OrderBy::Output(one), OrderBy::Output(other)) => one == other,
        (OrderBy::Value(one), OrderBy::Value(other)) => {
            matches!(one.node, Node::Column(_)) && one == other
        }
        _ => false,
    };
    let repeated = |(at, key): (usize, &OrderKey)| keys.iter().take(at).any(|o| alike(o, key));
    if keys.iter().enumerate().any(repeated) {
        return Err(SqlError::new(
            169,
            "A column has been specified more than once in the order by list. Columns in the \
             order by list must be unique.",
        ));
    }
    Ok(())
}

/// Refuses types that have no order.
pub(super) fn orderable(kind: &Kind) -> SqlResult<()> {
    match kind.sql_type {
        SqlType::Text | SqlType::NText | SqlType::Image | SqlType::Xml => Err(SqlError::new(
            306,
            "The text, ntext, and image data types cannot be compared or sorted, except when \
             using IS NULL or LIKE operator.",
        )),
        _ => Ok(()),
    }
}

/// The name that a column has of itself.
fn own_name(expr: &ast::Expr) -> String {
    match expr {
        ast::Expr::Identifier(name)
            if !(name.quote_style.is_none() && name.value.starts_with('@')) =>
        {
            name.value.clone()
        }
        ast::Expr::CompoundIdentifier(names) => {
            names.last().map(|name| name.value.clone()).unwrap_or_default()
        }
        ast::Expr::Nested(inner) => own_name(inner),
        _ => String::new(),
    }
}

fn named(expr: Expr, name: String, level: &Level<'_>) -> Item {
    let source = match &expr.node {
        Node::Column(column) if column.depth == 0 => level
            .sources
            .iter()
            .find(|source| source.slot == column.slot)
            .and_then(|source| source.columns.get(column.column)),
        _ => None,
    };
    let column = ResultColumn {
        name,
        kind: expr.kind.clone(),
        identity: source.is_some_and(|column| column.identity),
        computed: source.is_none_or(|column| column.computed),
    };
    Item { expr, column }
}

fn refuse_options(options: &ast::WildcardAdditionalOptions) -> SqlResult<()> {
    let plain = options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
        && options.opt_alias.is_none();
    if plain { Ok(()) } else { Err(syntax("*")) }
}

/// Refuses what other dialects have.
fn refuse_foreign(select: &ast::Select) -> SqlResult<()> {
    let foreign = [
        (!select.lateral_views.is_empty(), "LATERAL"),
        (select.prewhere.is_some(), "PREWHERE"),
        (!select.connect_by.is_empty(), "CONNECT"),
        (!select.cluster_by.is_empty(), "CLUSTER"),
        (!select.distribute_by.is_empty(), "DISTRIBUTE"),
        (!select.sort_by.is_empty(), "SORT"),
        (select.qualify.is_some(), "QUALIFY"),
        (select.value_table_mode.is_some(), "AS"),
        (select.exclude.is_some(), "EXCLUDE"),
        (select.flavor != ast::SelectFlavor::Standard, "FROM"),
        (matches!(select.distinct, Some(ast::Distinct::On(_))), "ON"),
    ];
    match foreign.iter().find(|(present, _)| *present) {
        Some((_, word)) => Err(syntax(word)),
        None => Ok(()),
    }
}
