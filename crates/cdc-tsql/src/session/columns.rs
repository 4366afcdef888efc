//! Columns of a new table: their types, defaults, computed values and checks. The rules outlive
//! the statement, so they carry with them all that their expressions may ask for.

use std::{collections::BTreeSet, sync::Arc};

use cdc_core::{SqlType, TableName, Timestamp};
use cdc_fake::{
    CheckDefinition, ColumnDefinition, DefaultDefinition, FakeServer, RowView, SqlError, SqlResult,
    TableDefinition, Value,
};
use sqlparser::ast;

use super::{
    define::{constraint_definition, index_definition},
    failure::Run,
    frame::Frame,
    runner::Runner,
};
use crate::{
    kind::{Collation, Kind, Typed},
    query::{self, Context, RowSource},
    relation::{Catalogue, Moment, ObjectName, Relation, RelationColumn, Row, Settings},
    scalar::{self, Facts},
    syntax::{ColumnBody, TableBody, unsupported},
    talk::Cancel,
};

impl Runner<'_> {
    pub(super) fn table_definition(
        &mut self,
        name: TableName,
        body: &TableBody,
        frame: &Frame,
    ) -> Run<TableDefinition> {
        let mut definition = TableDefinition::named(name.clone());
        let mut known = Vec::with_capacity(body.columns.len());
        // Computed columns may name columns that come after them.
        for column in &body.columns {
            if let Some(data_type) = &column.data_type {
                let kind = self.kind_of(data_type, column.collation.as_ref())?;
                known.push(RelationColumn::new(&*column.name, kind));
            }
        }
        for column in &body.columns {
            let mut made = self.column_definition(column, &known, &name, frame)?;
            if made.computed.is_some() {
                let check = self.computed_check(column, &known, &name, frame)?;
                definition.checks.extend(check);
            }
            if in_primary_key(body, &column.name) {
                if column.nullable == Some(true) {
                    return Err(SqlError::new(
                        8111,
                        format!(
                            "Cannot define PRIMARY KEY constraint on nullable column in table \
                             '{}'.",
                            name.name
                        ),
                    )
                    .into());
                }
                made.nullable = false;
            }
            definition.columns.push(made);
        }
        for constraint in &body.constraints {
            if constraint.primary {
                if !definition.key.is_empty() {
                    return Err(SqlError::new(
                        8110,
                        format!(
                            "Cannot add multiple PRIMARY KEY constraints to table '{}'.",
                            name.name
                        ),
                    )
                    .into());
                }
                definition.key = constraint.columns.iter().map(|(name, _)| name.clone()).collect();
                definition.key_name.clone_from(&constraint.name);
                definition.key_clustered = constraint.clustered.unwrap_or(true);
            } else {
                definition.indexes.push(constraint_definition(constraint));
            }
        }
        for (index_name, index) in &body.indexes {
            definition.indexes.push(index_definition(index_name, index));
        }
        for (check, condition) in &body.checks {
            let check = self.check_definition(check.clone(), condition, &known, &name, frame)?;
            definition.checks.push(check);
        }
        Ok(definition)
    }

    /// A column. `known` are the table's columns that have types of their own.
    pub(super) fn column_definition(
        &mut self,
        column: &ColumnBody,
        known: &[RelationColumn],
        table: &TableName,
        frame: &Frame,
    ) -> Run<ColumnDefinition> {
        if let Some(expression) = &column.computed {
            return self.computed_column(column, expression, known, table, frame);
        }
        let Some(data_type) = &column.data_type else {
            return Err(unsupported("a column without a type").into());
        };
        let kind = self.kind_of(data_type, column.collation.as_ref())?;
        let mut made = ColumnDefinition::new(&column.name, kind.sql_type.clone());
        let unsaid = self.core.options.ansi_null_default
            && column.identity.is_none()
            && kind.sql_type != SqlType::RowVersion;
        made.nullable = column.nullable.unwrap_or(unsaid);
        made.collation = column
            .collation
            .as_ref()
            .and(kind.collation)
            .map(|collation| collation.name.to_owned());
        if let Some(identity) = column.identity {
            require_identity(column, &kind)?;
            made.identity = Some(identity);
        }
        if let Some((name, value)) = &column.default {
            if column.identity.is_some() || kind.sql_type == SqlType::RowVersion {
                return Err(SqlError::new(
                    1754,
                    "Defaults cannot be created on columns with an IDENTITY attribute.",
                )
                .into());
            }
            made.default = Some(self.default_definition(name.clone(), value, &kind, frame)?);
        }
        Ok(made)
    }

    fn computed_column(
        &mut self,
        column: &ColumnBody,
        expression: &ast::Expr,
        known: &[RelationColumn],
        table: &TableName,
        frame: &Frame,
    ) -> Run<ColumnDefinition> {
        let rule = self.rule(expression, known, table);
        let (kind, reads) = self.scoped(frame, |_, context| rule.bind_value(context))?;
        let mut made = ColumnDefinition::nullable(&column.name, kind.sql_type.clone());
        made.nullable = column.nullable.unwrap_or(true);
        made.collation = kind.collation.map(|collation| collation.name.to_owned());
        made.expression = Some(format!("({expression})"));
        made.persisted = column.persisted;
        made.reads = reads;
        // An error is the check's to tell: a value that cannot be computed never lands.
        made.computed =
            Some(Arc::new(move |row: &RowView<'_>| rule.value(row, None).unwrap_or(Value::Null)));
        Ok(made)
    }

    /// The check that refuses a row whose computed column cannot be computed.
    pub(super) fn computed_check(
        &mut self,
        column: &ColumnBody,
        known: &[RelationColumn],
        table: &TableName,
        frame: &Frame,
    ) -> Run<Option<CheckDefinition>> {
        let _ = frame;
        let Some(expression) = &column.computed else {
            return Ok(None);
        };
        if matches!(expression, ast::Expr::Identifier(_) | ast::Expr::Value(_)) {
            return Ok(None);
        }
        let rule = self.rule(expression, known, table);
        Ok(Some(CheckDefinition {
            name: None,
            // It is nobody's constraint: the catalogue does not list it.
            text: String::new(),
            reads: Vec::new(),
            of: Some(column.name.clone()),
            rule: Arc::new(move |row: &RowView<'_>| rule.value(row, None).map(|_| Some(true))),
        }))
    }

    pub(super) fn default_definition(
        &mut self,
        name: Option<String>,
        value: &ast::Expr,
        kind: &Kind,
        frame: &Frame,
    ) -> Run<DefaultDefinition> {
        // Bound now, so that a default that cannot be is refused with the table.
        let typed = self.value(value, frame)?;
        let stored = self.scoped(frame, |scope, _| {
            scalar::convert(&typed.value, &typed.kind, kind, None, false, &scope.facts())
        })?;
        let text = default_text(value);
        if is_constant(value) {
            return Ok(DefaultDefinition {
                name,
                text,
                rule: Arc::new(move |_| Ok(stored.clone())),
            });
        }
        let detached = Detached::new(self);
        let (value, kind) = (value.clone(), kind.clone());
        let rule = move |now: Timestamp| {
            let at = detached.at(now);
            let cancel = Cancel::default();
            let context = Context { catalogue: &at, cancel: &cancel };
            let typed = query::scalar(&value, &context)?;
            scalar::convert(&typed.value, &typed.kind, &kind, None, false, &at.facts())
        };
        Ok(DefaultDefinition { name, text, rule: Arc::new(rule) })
    }

    pub(super) fn check_definition(
        &mut self,
        name: Option<String>,
        condition: &ast::Expr,
        known: &[RelationColumn],
        table: &TableName,
        frame: &Frame,
    ) -> Run<CheckDefinition> {
        let rule = self.rule(condition, known, table);
        let reads = self.scoped(frame, |_, context| rule.bind_condition(context))?;
        Ok(CheckDefinition {
            name,
            text: format!("({condition})"),
            reads,
            of: None,
            rule: Arc::new(move |row: &RowView<'_>| rule.holds(row)),
        })
    }

    fn rule(&self, expression: &ast::Expr, known: &[RelationColumn], table: &TableName) -> Rule {
        Rule {
            expression: expression.clone(),
            columns: known.into(),
            table: table.name.to_string(),
            detached: Detached::new(self),
        }
    }
}

fn require_identity(column: &ColumnBody, kind: &Kind) -> Run<()> {
    use SqlType as T;
    let whole = match kind.sql_type {
        T::TinyInt | T::SmallInt | T::Int | T::BigInt => true,
        T::Decimal { scale, .. } => scale == 0,
        _ => false,
    };
    if whole && column.nullable != Some(true) {
        return Ok(());
    }
    Err(SqlError::new(
        2749,
        format!(
            "Identity column '{}' must be of data type int, bigint, smallint, tinyint, or decimal \
             or numeric with a scale of 0, and constrained to be nonnullable.",
            column.name
        ),
    )
    .into())
}

fn in_primary_key(body: &TableBody, column: &str) -> bool {
    body.constraints
        .iter()
        .filter(|constraint| constraint.primary)
        .any(|constraint| constraint.columns.iter().any(|(n, _)| n.eq_ignore_ascii_case(column)))
}

/// True for a constant, maybe in parentheses or with a sign.
/// A default as the server tells it: in parentheses, a number in two, however many were written.
fn default_text(value: &ast::Expr) -> String {
    let mut inner = value;
    while let ast::Expr::Nested(nested) = inner {
        inner = nested;
    }
    if is_number(inner) { format!("(({inner}))") } else { format!("({inner})") }
}

fn is_number(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Value(value) => matches!(value.value, ast::Value::Number(..)),
        ast::Expr::UnaryOp { expr, .. } => is_number(expr),
        _ => false,
    }
}

fn is_constant(expression: &ast::Expr) -> bool {
    match expression {
        ast::Expr::Value(_) => true,
        ast::Expr::Nested(inner) => is_constant(inner),
        ast::Expr::UnaryOp { expr, .. } => is_constant(expr),
        _ => false,
    }
}

/// An expression over a table's own columns.
struct Rule {
    expression: ast::Expr,
    columns: Arc<[RelationColumn]>,
    table: String,
    detached: Detached,
}

impl Rule {
    fn sources(&self) -> [RowSource<'_>; 1] {
        [RowSource { name: &self.table, columns: &self.columns }]
    }

    /// The kind of its value, and the columns that it reads.
    fn bind_value(&self, context: &Context<'_>) -> SqlResult<(Kind, Vec<String>)> {
        let bound = query::values_over_rows(None, &[&self.expression], &self.sources(), context)?;
        let column = bound.columns().first();
        let kind = column.map(|column| column.kind.clone());
        let reads = self.names(&bound.reads());
        Ok((kind.unwrap_or_else(|| Kind::new(SqlType::Int, true)), reads))
    }

    /// The columns that it reads as a condition.
    fn bind_condition(&self, context: &Context<'_>) -> SqlResult<Vec<String>> {
        let sources = self.sources();
        let bound = query::condition_over_rows(None, &self.expression, &sources, context)?;
        Ok(self.names(&bound.reads()))
    }

    fn names(&self, places: &BTreeSet<usize>) -> Vec<String> {
        let columns = places.iter().filter_map(|at| self.columns.get(*at));
        columns.map(|column| column.name.clone()).collect()
    }

    fn row(&self, view: &RowView<'_>) -> Row {
        self.columns.iter().map(|column| view.get(&column.name).clone()).collect()
    }

    fn value(&self, view: &RowView<'_>, now: Option<Timestamp>) -> SqlResult<Value> {
        let at = self.detached.at(now.unwrap_or_else(|| self.detached.now()));
        let cancel = Cancel::default();
        let context = Context { catalogue: &at, cancel: &cancel };
        let bound = query::values_over_rows(None, &[&self.expression], &self.sources(), &context)?;
        let mut values = bound.values(&[Some(self.row(view))], &context)?;
        Ok(values.pop().unwrap_or(Value::Null))
    }

    fn holds(&self, view: &RowView<'_>) -> SqlResult<Option<bool>> {
        let at = self.detached.at(self.detached.now());
        let cancel = Cancel::default();
        let context = Context { catalogue: &at, cancel: &cancel };
        let bound = query::condition_over_rows(None, &self.expression, &self.sources(), &context)?;
        bound.holds(&[Some(self.row(view))], &context)
    }
}

/// What the expressions of a table's own rules may ask for: the clock, and nothing of a session.
#[derive(Clone)]
struct Detached {
    server: FakeServer,
    collation: Collation,
}

struct At {
    now: Moment,
    collation: Collation,
}

impl Detached {
    fn new(runner: &Runner<'_>) -> Self {
        Self { server: runner.core.server.clone(), collation: runner.core.collation() }
    }

    fn now(&self) -> Timestamp {
        self.server.clock().time()
    }

    fn at(&self, now: Timestamp) -> At {
        At { now: super::scope::moment_of(&self.server, now), collation: self.collation }
    }
}

impl At {
    fn facts(&self) -> Facts {
        Facts { now: self.now, settings: Settings::default(), collation: self.collation }
    }
}

impl Catalogue for At {
    fn relation(&self, _: &ObjectName) -> SqlResult<Arc<dyn Relation>> {
        Err(SqlError::new(1046, "Subqueries are not allowed in this context."))
    }

    fn table_function(&self, _: &ObjectName, _: &[Typed]) -> SqlResult<Arc<dyn Relation>> {
        Err(SqlError::new(1046, "Subqueries are not allowed in this context."))
    }

    fn table_function_columns(&self, _: &ObjectName) -> SqlResult<Vec<RelationColumn>> {
        Err(SqlError::new(1046, "Subqueries are not allowed in this context."))
    }

    fn function_kind(&self, _: &ObjectName, _: &[Kind]) -> Option<SqlResult<Kind>> {
        None
    }

    fn function(&self, name: &ObjectName, _: &[Typed]) -> SqlResult<Value> {
        Err(SqlError::new(195, format!("'{}' is not a recognized function name.", name.name)))
    }

    fn variable(&self, _: &str) -> Option<Typed> {
        None
    }

    fn now(&self) -> Moment {
        self.now
    }

    fn collation(&self) -> Collation {
        self.collation
    }

    fn settings(&self) -> Settings {
        Settings::default()
    }
}
