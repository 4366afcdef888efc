//! SELECT: its rows to the client, into variables, or into a new table.

use std::ops::ControlFlow;

use cdc_core::{Length, SqlType};
use cdc_fake::{
    ColumnDefinition, InsertRequest, SchemaChange, SqlError, TableDefinition, TableLock, Value,
};
use sqlparser::ast;

use super::{
    failure::{Failure, Run},
    frame::Frame,
    runner::{Runner, go_on},
    scope::Scope,
};
use crate::{
    query::{self, Context, Prepared},
    relation::ObjectName,
    syntax::unsupported,
    talk::{Replies, ResultColumn, StatementKind},
};

impl Runner<'_> {
    pub(super) fn query(
        &mut self,
        query: &ast::Query,
        max_recursion: Option<u16>,
        frame: &Frame,
    ) -> Run<()> {
        if let Some((into, query)) = select_into(query) {
            return self.select_into(&into, &query, frame);
        }
        let met = self.core.server.faults().meet("SELECT", true);
        self.encounter(&met, frame)?;
        if met.kill_after_rows.is_some() {
            self.repeatable = false;
        }
        if reads_tables(query) {
            self.begin_implicitly()?;
            self.lock_hinted(query, frame)?;
        }
        self.touch();
        let scope = Scope::new(self.core, frame);
        let context = Context { catalogue: &scope, cancel: &self.core.cancel };
        let prepared = query::prepare(query, &context)?;
        let repeatable = prepared.reads_only_data() && !query.to_string().contains('#');
        let prepared = match max_recursion {
            Some(levels) => prepared.with_max_recursion(levels),
            None => prepared,
        };
        if let Some(names) = prepared.assigned() {
            let rows = match bare_items(query) {
                Some(items) => assign_in_turn(&items, &scope, &context, frame)?,
                None => {
                    refuse_chained(query)?;
                    assign(&prepared, &names, &scope, &context, frame)?
                }
            };
            self.repeatable = false;
            self.core.last.rows = i64::try_from(rows).unwrap_or(i64::MAX);
            return self.done(None, StatementKind::Select, false, frame);
        }
        let sending = Sending {
            rows: match (self.core.options.row_count, self.core.options.fmt_only) {
                (_, true) => Some(0),
                (0, _) => None,
                (rows, _) => Some(rows),
            },
            killed_after: met.kill_after_rows,
            cut: TextLimit::new(self.core.options.text_size, prepared.columns()),
        };
        let sent = sending.send(&prepared, &context, self.replies)?;
        self.repeatable &= repeatable;
        self.counted(sent, StatementKind::Select, frame)
    }

    /// Takes the locks of `TABLOCK` and `TABLOCKX`, which outlast the statement.
    fn lock_hinted(&mut self, query: &ast::Query, frame: &Frame) -> Run<()> {
        if self.core.transactions.count == 0 {
            return Ok(());
        }
        for (name, lock) in hinted(query) {
            let (database, table, _) = self.resolve(&name, frame)?;
            if database.row_count(&table).is_err() {
                continue;
            }
            let part =
                self.core.transactions.part(&database, &self.core.options, &self.core.cancel);
            part.lock_table(&table, lock)?;
        }
        Ok(())
    }

    /// `SELECT ... INTO`: creates the table, then fills it.
    fn select_into(&mut self, into: &ObjectName, query: &ast::Query, frame: &Frame) -> Run<()> {
        let rows = self.writing(frame, |runner, frame| {
            let (columns, rows) = runner.scoped(frame, |_, context| {
                let prepared = query::prepare(query, context)?;
                let mut rows = Vec::new();
                prepared.run(context, &mut |row| {
                    rows.push(row.iter().cloned().map(Some).collect());
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok((prepared.columns().to_vec(), rows))
            })?;
            let (database, table, _) = runner.resolve(into, frame)?;
            let mut definition = TableDefinition::named(table.clone());
            let mut identity = false;
            for column in &columns {
                definition.columns.push(into_column(column, &mut identity)?);
            }
            runner.require_create(&database, &table)?;
            runner.change_schema(&database, &SchemaChange::CreateTable(definition), None)?;
            runner.created(into, &table);
            let place = runner.place(into, frame)?;
            let names = columns.iter().map(|column| column.name.clone()).collect();
            let request = InsertRequest { columns: Some(names), rows, identity_insert: identity };
            let count = request.rows.len();
            runner.insert_rows(&place, &request)?;
            Ok(count)
        })?;
        self.counted(u64::try_from(rows).unwrap_or(u64::MAX), StatementKind::Select, frame)
    }
}

/// How rows are sent.
struct Sending {
    /// The rows that may be sent.
    rows: Option<u64>,
    /// The rows after which the connection ends, when somebody planted that.
    killed_after: Option<u64>,
    cut: Option<TextLimit>,
}

impl Sending {
    /// Sends a result. Gives the number of its rows.
    fn send(
        &self,
        prepared: &Prepared,
        context: &Context<'_>,
        replies: &mut dyn Replies,
    ) -> Run<u64> {
        go_on(replies.columns(prepared.columns()))?;
        if self.rows == Some(0) {
            return Ok(0);
        }
        let mut sent = 0_u64;
        let mut gone = false;
        let run = prepared.run(context, &mut |row| {
            if self.killed_after == Some(sent) {
                return Err(SqlError::killed());
            }
            let told = match &self.cut {
                None => replies.row(row),
                Some(cut) => replies.row(&cut.row(row)),
            };
            gone = told.is_break();
            sent += u64::from(!gone);
            let ends = gone || self.rows == Some(sent);
            Ok(if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        if gone {
            return Err(Failure::Gone);
        }
        run?;
        Ok(sent)
    }
}

/// `SET TEXTSIZE`: how much of texts without a limit of their own is sent.
struct TextLimit {
    bytes: usize,
    /// Of each column the bytes of a character; 0 for one that is sent whole.
    widths: Vec<usize>,
}

impl TextLimit {
    /// None when nothing is cut.
    fn new(size: i64, columns: &[ResultColumn]) -> Option<Self> {
        let bytes = usize::try_from(size).ok().filter(|bytes| *bytes < 2_147_483_647)?;
        let width = |column: &ResultColumn| match column.kind.sql_type {
            SqlType::VarChar(Length::Max) | SqlType::Text => 1,
            SqlType::VarBinary(Length::Max) | SqlType::Image => 1,
            SqlType::NVarChar(Length::Max) | SqlType::NText => 2,
            _ => 0,
        };
        Some(Self { bytes, widths: columns.iter().map(width).collect() })
    }

    fn row(&self, row: &[Value]) -> Vec<Value> {
        row.iter().zip(&self.widths).map(|(value, width)| self.cut(value, *width)).collect()
    }

    fn cut(&self, value: &Value, width: usize) -> Value {
        match (value, width) {
            (Value::Bytes(bytes), 1) => Value::bytes(bytes.get(..self.bytes).unwrap_or(bytes)),
            (Value::Text(text), 1) => {
                Value::text(&text.chars().take(self.bytes).collect::<String>())
            }
            (Value::Text(text), 2) => {
                let units: Vec<u16> = text.encode_utf16().take(self.bytes / 2).collect();
                Value::text(&String::from_utf16_lossy(&units))
            }
            (value, _) => value.clone(),
        }
    }
}

/// Runs a `SELECT @x = ...`. Gives the number of rows that it met.
fn assign(
    prepared: &Prepared,
    names: &[&str],
    scope: &Scope<'_>,
    context: &Context<'_>,
    frame: &Frame,
) -> Run<u64> {
    let facts = scope.facts();
    let kinds: Vec<_> = prepared.columns().iter().map(|column| &column.kind).collect();
    let rows = prepared.run(context, &mut |row: &[Value]| {
        for ((name, value), kind) in names.iter().zip(row).zip(&kinds) {
            frame.set(name, value, kind, &facts)?;
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(rows)
}

/// The variables and expressions of a SELECT without FROM that sets variables.
fn bare_items(query: &ast::Query) -> Option<Vec<(&str, &ast::Expr)>> {
    let ast::SetExpr::Select(select) = &*query.body else {
        return None;
    };
    if !select.from.is_empty() || select.selection.is_some() {
        return None;
    }
    Some(assignments(select))
}

fn assignments(select: &ast::Select) -> Vec<(&str, &ast::Expr)> {
    let assigned =
        |item: &'_ ast::SelectItem| matches!(item, ast::SelectItem::ExprWithAlias { .. });
    select
        .projection
        .iter()
        .filter(|item| assigned(item))
        .filter_map(|item| match item {
            ast::SelectItem::ExprWithAlias { expr, alias } => Some((&*alias.value, expr)),
            _ => None,
        })
        .collect()
}

/// Sets variables one after the other: a later one reads what an earlier one was set to.
fn assign_in_turn(
    items: &[(&str, &ast::Expr)],
    scope: &Scope<'_>,
    context: &Context<'_>,
    frame: &Frame,
) -> Run<u64> {
    let facts = scope.facts();
    for (name, expression) in items {
        let typed = query::scalar(expression, context)?;
        frame.set(name, &typed.value, &typed.kind, &facts)?;
    }
    Ok(1)
}

/// Refuses a SELECT over rows whose assignments read what an earlier one of the same row set.
fn refuse_chained(query: &ast::Query) -> Run<()> {
    let ast::SetExpr::Select(select) = &*query.body else {
        return Ok(());
    };
    let mut set: Vec<String> = Vec::new();
    for (name, expression) in assignments(select) {
        let text = expression.to_string().to_lowercase();
        if set.iter().any(|name| names_variable(&text, name)) {
            return Err(unsupported(
                "a SELECT over rows whose variables read one another; use one SELECT each",
            )
            .into());
        }
        set.push(name.to_lowercase());
    }
    Ok(())
}

/// True when a text names a variable.
pub(super) fn names_variable(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '@' | '#' | '$');
    text.match_indices(name).any(|(at, found)| {
        let after = text.get(at + found.len()..).and_then(|rest| rest.chars().next());
        let before = text.get(..at).and_then(|rest| rest.chars().next_back());
        !after.is_some_and(part) && !before.is_some_and(part)
    })
}

fn into_column(column: &ResultColumn, identity: &mut bool) -> Run<ColumnDefinition> {
    if column.name.is_empty() {
        return Err(SqlError::new(
            1038,
            "An object or column name is missing or empty. For SELECT INTO statements, verify each \
             column has a name.",
        )
        .into());
    }
    let mut made = ColumnDefinition::new(&column.name, column.kind.sql_type.clone());
    made.nullable = column.kind.nullable;
    made.collation = column.kind.collation.map(|collation| collation.name.to_owned());
    if column.identity {
        *identity = true;
        made.identity = Some((1, 1));
    }
    Ok(made)
}

/// The table of a `SELECT ... INTO`, and the query without it.
fn select_into(query: &ast::Query) -> Option<(ObjectName, ast::Query)> {
    let mut query = query.clone_if_into()?;
    let into = first_select(&mut query.body)?.into.take()?;
    let name = match into.targets.into_iter().next()? {
        ast::Expr::Identifier(name) => ast::ObjectName::from(vec![name]),
        ast::Expr::CompoundIdentifier(parts) => ast::ObjectName::from(parts),
        _ => return None,
    };
    Some((query::object_name(&name).ok()?, query))
}

trait CloneIfInto {
    fn clone_if_into(&self) -> Option<ast::Query>;
}

impl CloneIfInto for ast::Query {
    /// A copy, of a query that has an INTO.
    fn clone_if_into(&self) -> Option<ast::Query> {
        fn has_into(body: &ast::SetExpr) -> bool {
            match body {
                ast::SetExpr::Select(select) => select.into.is_some(),
                ast::SetExpr::SetOperation { left, .. } => has_into(left),
                _ => false,
            }
        }
        has_into(&self.body).then(|| self.clone())
    }
}

fn first_select(body: &mut ast::SetExpr) -> Option<&mut ast::Select> {
    match body {
        ast::SetExpr::Select(select) => Some(select),
        ast::SetExpr::SetOperation { left, .. } => first_select(left),
        _ => None,
    }
}

/// True when a query has a FROM: only such a one begins an implicit transaction.
fn reads_tables(query: &ast::Query) -> bool {
    fn has_from(body: &ast::SetExpr) -> bool {
        match body {
            ast::SetExpr::Select(select) => !select.from.is_empty(),
            ast::SetExpr::Query(query) => reads_tables(query),
            ast::SetExpr::SetOperation { left, right, .. } => has_from(left) || has_from(right),
            _ => false,
        }
    }
    has_from(&query.body)
}

/// The tables of a query's FROM that hints lock, and how.
fn hinted(query: &ast::Query) -> Vec<(ObjectName, TableLock)> {
    let ast::SetExpr::Select(select) = &*query.body else {
        return Vec::new();
    };
    let factors = select.from.iter().flat_map(|table| {
        std::iter::once(&table.relation).chain(table.joins.iter().map(|join| &join.relation))
    });
    factors
        .filter_map(|factor| match factor {
            ast::TableFactor::Table { name, with_hints, .. } => {
                Some((query::object_name(name).ok()?, lock_of(with_hints)?))
            }
            _ => None,
        })
        .collect()
}

fn lock_of(hints: &[ast::Expr]) -> Option<TableLock> {
    let has = |name: &str| hints.iter().any(|hint| hint.to_string().eq_ignore_ascii_case(name));
    if has("TABLOCKX") || (has("TABLOCK") && has("XLOCK")) {
        return Some(TableLock::Exclusive);
    }
    (has("TABLOCK") && (has("HOLDLOCK") || has("SERIALIZABLE"))).then_some(TableLock::Shared)
}

/// Refuses a query where none may stand.
pub(super) fn refuse_into(query: &ast::Query) -> Run<()> {
    match select_into(query) {
        Some(_) => Err(unsupported("SELECT INTO inside another statement").into()),
        None => Ok(()),
    }
}
