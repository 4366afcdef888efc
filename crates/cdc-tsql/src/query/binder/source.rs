//! Binding FROM: relations, queries, functions, joins.

use std::{ops::Range, sync::Arc};

use cdc_fake::{SqlError, SqlResult, Value};
use sqlparser::ast::{self, FunctionArg, JoinConstraint, JoinOperator, TableFactor};

use super::{Binder, call::plain, query::relation_columns};
use crate::{
    kind::Kind,
    query::{
        expression::{Expr, Node},
        level::{Exposed, Level, TableMeaning, Visible},
        naming::{object_name, same},
        placement,
        plan::{Join, JoinKind, Plan, Scan, Source},
        refusal::{syntax, unsupported},
        table_values::TableValues,
    },
    relation::{ObjectName, Relation, RelationColumn},
};

/// Table hints that change what a read sees.
#[derive(Clone, Copy, Default)]
struct Hints {
    uncommitted: bool,
    skip_held: bool,
    locking: bool,
}

/// Table hints that change nothing here: there are no indexes to choose and no locks of rows to
/// hold beyond those that writes take.
const HARMLESS: [&str; 17] = [
    "TABLOCK",
    "TABLOCKX",
    "ROWLOCK",
    "PAGLOCK",
    "UPDLOCK",
    "XLOCK",
    "HOLDLOCK",
    "SERIALIZABLE",
    "REPEATABLEREAD",
    "READCOMMITTED",
    "NOEXPAND",
    "NOWAIT",
    "INDEX",
    "FORCESEEK",
    "FORCESCAN",
    "KEEPIDENTITY",
    "SNAPSHOT",
];

impl<'a> Binder<'a> {
    /// Binds FROM.
    pub(crate) fn from(
        &self,
        from: &'a [ast::TableWithJoins],
        level: &mut Level<'a>,
    ) -> SqlResult<Option<Source>> {
        let mut whole = None;
        for item in from {
            let source = self.joined(item, level)?;
            whole = Some(match whole {
                None => source,
                Some(left) => cross(left, source),
            });
        }
        refuse_duplicates(level, 0, self)?;
        Ok(whole)
    }

    /// Binds a table and what is joined to it.
    pub(crate) fn joined(
        &self,
        table: &'a ast::TableWithJoins,
        level: &mut Level<'a>,
    ) -> SqlResult<Source> {
        let first = level.slots;
        let mut left = self.factor(&table.relation, level, false)?;
        for join in &table.joins {
            let (middle, known) = (level.slots, level.sources.len());
            let apply =
                matches!(join.join_operator, JoinOperator::CrossApply | JoinOperator::OuterApply);
            let right = self.factor(&join.relation, level, apply)?;
            refuse_duplicates(level, known, self)?;
            let slots = (first..middle, middle..level.slots);
            left = self.join(left, right, slots, &join.join_operator, level)?;
        }
        Ok(left)
    }

    fn join(
        &self,
        left: Source,
        right: Source,
        (left_slots, right_slots): (Range<usize>, Range<usize>),
        operator: &'a JoinOperator,
        level: &mut Level<'a>,
    ) -> SqlResult<Source> {
        use JoinOperator as J;
        let (kind, swapped, constraint) = match operator {
            J::Join(on) | J::Inner(on) => (JoinKind::Inner, false, on),
            J::Left(on) | J::LeftOuter(on) => (JoinKind::Left, false, on),
            J::Right(on) | J::RightOuter(on) => (JoinKind::Left, true, on),
            J::FullOuter(on) => (JoinKind::Full, false, on),
            J::CrossJoin(JoinConstraint::None) => return Ok(cross(left, right)),
            J::CrossApply | J::OuterApply => {
                let outer = matches!(operator, J::OuterApply);
                if outer {
                    nullable(level, &right_slots);
                }
                return Ok(Source::Apply { left: Box::new(left), right: Box::new(right), outer });
            }
            other => return Err(unsupported(format!("the join {other:?}"))),
        };
        let JoinConstraint::On(on) = constraint else {
            return Err(syntax("JOIN"));
        };
        let conditions = self.condition(on, level)?.into_conjuncts();
        let (lead, follow) = if swapped { (right, left) } else { (left, right) };
        let mut join = Source::Join(Box::new(Join {
            left: lead,
            right: follow,
            kind,
            keys: Vec::new(),
            residual: None,
            merge: false,
        }));
        placement::join_on(&mut join, conditions);
        match kind {
            JoinKind::Inner => {}
            JoinKind::Left => nullable(level, if swapped { &left_slots } else { &right_slots }),
            JoinKind::Full => {
                nullable(level, &left_slots);
                nullable(level, &right_slots);
            }
        }
        Ok(join)
    }

    /// Binds one source; `lateral` when it sees those to its left.
    pub(crate) fn factor(
        &self,
        factor: &'a TableFactor,
        level: &mut Level<'a>,
        lateral: bool,
    ) -> SqlResult<Source> {
        match factor {
            TableFactor::Table { sample: Some(_), .. }
            | TableFactor::Derived { sample: Some(_), .. } => Err(unsupported("TABLESAMPLE")),
            TableFactor::Table { version: Some(_), .. } => Err(unsupported("FOR SYSTEM_TIME")),
            TableFactor::Table { name, alias, args: None, with_hints, .. } => {
                let hints = hints(with_hints.iter())?;
                self.table(name, alias.as_ref(), hints, level)
            }
            TableFactor::Table { name, alias, args: Some(arguments), with_hints, .. } => {
                if let Some(hints) = old_hints(&arguments.args) {
                    return self.table(name, alias.as_ref(), hints, level);
                }
                hints(with_hints.iter())?;
                self.table_function(name, &arguments.args, alias.as_ref(), level)
            }
            TableFactor::Function { name, args, alias, .. } => {
                self.table_function(name, args, alias.as_ref(), level)
            }
            TableFactor::Derived { subquery, alias, .. } => {
                let plan = self.nested(|| {
                    let outer = if lateral { Some(&*level) } else { level.outer };
                    self.query(subquery, outer, &level.tables, false)
                })?;
                self.derived(plan, alias.as_ref(), lateral, level)
            }
            TableFactor::NestedJoin { table_with_joins, alias: None } => {
                self.nested(|| self.joined(table_with_joins, level))
            }
            TableFactor::Pivot { .. } => Err(unsupported("PIVOT")),
            TableFactor::Unpivot { .. } => Err(unsupported("UNPIVOT")),
            TableFactor::OpenJsonTable { .. } => Err(unsupported("OPENJSON")),
            other => Err(syntax(other)),
        }
    }

    fn table(
        &self,
        name: &ast::ObjectName,
        alias: Option<&'a ast::TableAlias>,
        hints: Hints,
        level: &mut Level<'a>,
    ) -> SqlResult<Source> {
        let object = object_name(name)?;
        if object.schema.is_none()
            && object.database.is_none()
            && let Some((meaning, before)) = level.tables.find(&object.name, &self.facts.collation)
        {
            return match meaning {
                TableMeaning::Query(table) => {
                    let plan = self.common_table(table, &before)?;
                    self.named_query(plan, table, alias, level)
                }
                TableMeaning::Working { id, columns } => {
                    level.recursive.set(true);
                    let exposed = exposed(alias, &object);
                    let slot = show(level, exposed, columns);
                    Ok(Source::Working { slot, id })
                }
            };
        }
        if object.name.starts_with(['@', '#']) || object.name.to_lowercase().starts_with("dm_") {
            self.only_data.set(false);
        }
        let relation = self.context.catalogue.relation(&object)?;
        let scan = self.scan(&relation, exposed(alias, &object), alias, hints, level);
        if let Some(shown) = level.sources.last_mut() {
            shown.object = Some(object);
        }
        Ok(scan)
    }

    fn scan(
        &self,
        relation: &Arc<dyn Relation>,
        exposed: Exposed,
        alias: Option<&ast::TableAlias>,
        hints: Hints,
        level: &mut Level<'a>,
    ) -> Source {
        let mut columns = relation.columns().to_vec();
        rename(&mut columns, alias);
        let slot = show(level, exposed, columns);
        Source::Scan(Scan {
            slot,
            relation: relation.clone(),
            bounds: Vec::new(),
            uncommitted: hints.uncommitted,
            skip_held: hints.skip_held,
            locking: hints.locking,
            filter: None,
        })
    }

    fn named_query(
        &self,
        plan: Plan,
        table: &'a ast::Cte,
        alias: Option<&'a ast::TableAlias>,
        level: &mut Level<'a>,
    ) -> SqlResult<Source> {
        let own = &table.alias.name.value;
        let columns = relation_columns(&plan, own, &table.alias.columns)?;
        let object = ObjectName { database: None, schema: None, name: own.clone() };
        let exposed = match alias {
            Some(alias) => Exposed::Alias(alias.name.value.clone()),
            None => Exposed::Alias(object.name),
        };
        let slot = show(level, exposed, columns);
        Ok(Source::Query { slot, plan: Box::new(plan), lateral: false })
    }

    fn derived(
        &self,
        plan: Plan,
        alias: Option<&'a ast::TableAlias>,
        lateral: bool,
        level: &mut Level<'a>,
    ) -> SqlResult<Source> {
        let Some(alias) = alias else {
            return Err(syntax(")"));
        };
        let name = alias.name.value.clone();
        let columns = relation_columns(&plan, &name, &alias.columns)?;
        // What the query reads of queries further out, this one reads.
        let passed = usize::from(lateral);
        let further = plan.outward.iter().filter(|column| column.depth > passed);
        if !lateral {
            level.outward.borrow_mut().extend(further);
        }
        if plan.recursive {
            level.recursive.set(true);
        }
        let slot = show(level, Exposed::Alias(name), columns);
        Ok(Source::Query { slot, plan: Box::new(plan), lateral })
    }

    fn table_function(
        &self,
        name: &ast::ObjectName,
        arguments: &'a [FunctionArg],
        alias: Option<&'a ast::TableAlias>,
        level: &mut Level<'a>,
    ) -> SqlResult<Source> {
        let object = object_name(name)?;
        let arguments = arguments
            .iter()
            .map(|argument| {
                let expr = plain(argument)?;
                if let ast::Expr::Identifier(word) = expr
                    && word.quote_style.is_none()
                    && word.value.eq_ignore_ascii_case("DEFAULT")
                {
                    return self.value(&NULL, level);
                }
                self.value(expr, level)
            })
            .collect::<SqlResult<Vec<Expr>>>()?;
        let mut columns = match TableValues::named(&object) {
            Some(function) => {
                let kinds: Vec<Kind> = arguments.iter().map(|value| value.kind.clone()).collect();
                let ordinal = arguments.get(2).is_some_and(is_one);
                function.columns(&kinds, ordinal)?
            }
            None => self.context.catalogue.table_function_columns(&object)?,
        };
        rename(&mut columns, alias);
        let slot = show(level, exposed(alias, &object), columns);
        Ok(Source::Function { slot, name: object, arguments })
    }
}

/// True for a written 1.
fn is_one(value: &Expr) -> bool {
    matches!(value.node, Node::Constant(Value::Int(1) | Value::Bit(true)))
}

/// The value of DEFAULT for an argument.
static NULL: ast::Expr = ast::Expr::Value(ast::ValueWithSpan {
    value: ast::Value::Null,
    span: sqlparser::tokenizer::Span {
        start: sqlparser::tokenizer::Location { line: 0, column: 0 },
        end: sqlparser::tokenizer::Location { line: 0, column: 0 },
    },
});

/// Takes a slot for a source and makes its columns known.
fn show(level: &mut Level<'_>, exposed: Exposed, columns: Vec<RelationColumn>) -> usize {
    let slot = level.slots;
    level.slots += 1;
    level.sources.push(Visible { exposed, object: None, slot, columns });
    slot
}

fn exposed(alias: Option<&ast::TableAlias>, object: &ObjectName) -> Exposed {
    match alias {
        Some(alias) => Exposed::Alias(alias.name.value.clone()),
        None => Exposed::Object(object.clone()),
    }
}

fn rename(columns: &mut [RelationColumn], alias: Option<&ast::TableAlias>) {
    let names = alias.map_or(&[][..], |alias| &alias.columns);
    let seen = columns.iter_mut().filter(|column| !column.hidden);
    for (column, named) in seen.zip(names) {
        column.name.clone_from(&named.name.value);
    }
}

fn cross(left: Source, right: Source) -> Source {
    Source::Join(Box::new(Join {
        left,
        right,
        kind: JoinKind::Inner,
        keys: Vec::new(),
        residual: None,
        merge: false,
    }))
}

/// Columns of an outer join's other side may be NULL.
fn nullable(level: &mut Level<'_>, slots: &Range<usize>) {
    for source in level.sources.iter_mut().filter(|source| slots.contains(&source.slot)) {
        for column in &mut source.columns {
            column.kind = Kind { nullable: true, ..column.kind.clone() };
        }
    }
}

/// Refuses a source that is exposed by the name of one before it, of the sources from a place on.
fn refuse_duplicates(level: &Level<'_>, from: usize, binder: &Binder<'_>) -> SqlResult<()> {
    for (index, source) in level.sources.iter().enumerate().skip(from) {
        refuse_duplicate(source, level.sources.iter().take(index), binder)?;
    }
    Ok(())
}

fn refuse_duplicate<'v>(
    source: &Visible,
    mut others: impl Iterator<Item = &'v Visible>,
    binder: &Binder<'_>,
) -> SqlResult<()> {
    let collation = &binder.facts.collation;
    let twin = others.find(|other| match (&source.exposed, &other.exposed) {
        (Exposed::Alias(one), Exposed::Alias(other)) => same(one, other, collation),
        (Exposed::Object(one), Exposed::Object(other)) => {
            let alike = |one: &Option<String>, other: &Option<String>| match (one, other) {
                (Some(one), Some(other)) => same(one, other, collation),
                (None, None) => true,
                (Some(named), None) | (None, Some(named)) => named.eq_ignore_ascii_case("dbo"),
            };
            same(&one.name, &other.name, collation)
                && alike(&one.schema, &other.schema)
                && one.database.is_some() == other.database.is_some()
        }
        (Exposed::Alias(alias), Exposed::Object(object))
        | (Exposed::Object(object), Exposed::Alias(alias)) => {
            object.schema.is_none() && same(alias, &object.name, collation)
        }
    });
    match (twin, &source.exposed) {
        (None, _) => Ok(()),
        (Some(_), Exposed::Alias(name)) => Err(SqlError::new(
            1011,
            format!("The correlation name '{name}' is specified multiple times in a FROM clause."),
        )),
        (Some(other), exposed) => Err(SqlError::new(
            1013,
            format!(
                "The objects \"{}\" and \"{}\" in the FROM clause have the same exposed names. Use \
                 correlation names to distinguish them.",
                other.exposed.name(),
                exposed.name()
            ),
        )),
    }
}

fn hints<'h>(written: impl Iterator<Item = &'h ast::Expr>) -> SqlResult<Hints> {
    let mut hints = Hints::default();
    for hint in written {
        let name = match hint {
            ast::Expr::Identifier(name) => name.value.to_uppercase(),
            ast::Expr::Function(function) => function.name.to_string().to_uppercase(),
            ast::Expr::BinaryOp { left, .. } => left.to_string().to_uppercase(),
            other => return Err(syntax(other)),
        };
        if !known(&name, &mut hints) {
            return Err(SqlError::new(
                321,
                format!(
                    "\"{name}\" is not a recognized table hints option. If it is intended as a \
                     parameter to a table-valued function or to the CHANGETABLE function, ensure \
                     that your database compatibility mode is set to 90."
                ),
            ));
        }
    }
    Ok(hints)
}

fn known(name: &str, hints: &mut Hints) -> bool {
    match name {
        "NOLOCK" | "READUNCOMMITTED" => hints.uncommitted = true,
        "READPAST" => hints.skip_held = true,
        "READCOMMITTEDLOCK" => hints.locking = true,
        name => return HARMLESS.contains(&name),
    }
    true
}

/// `FROM t (NOLOCK)`: hints as they were written long ago; none for arguments.
fn old_hints(arguments: &[FunctionArg]) -> Option<Hints> {
    let mut hints = Hints::default();
    let all = arguments.iter().all(|argument| match plain(argument) {
        Ok(ast::Expr::Identifier(name)) => known(&name.value.to_uppercase(), &mut hints),
        _ => false,
    });
    (all && !arguments.is_empty()).then_some(hints)
}
