//! The tables that statements change: where a name leads, what its columns are, and what may be
//! done with it.

use std::sync::Arc;

use cdc_core::{SqlType, TableName};
use cdc_fake::{
    FakeDatabase, InsertRequest, Inserted, Permission, RowId, Securable, SqlError, SqlResult,
    Transaction, UpdateRequest, Value,
};
use sqlparser::ast;

use super::{
    failure::Run,
    frame::Frame,
    runner::Runner,
    scope::{Scope, shown},
};
use crate::{
    kind::Kind,
    model::denied,
    query::Exposure,
    relation::{Catalogue, ObjectName, ROW_LOCATION, RelationColumn, Row},
    scalar::{self, Facts},
    syntax::{Output, Target, unsupported},
};

/// A table that a statement changes.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) database: FakeDatabase,
    pub(super) table: TableName,
    pub(super) home: Home,
    /// Without hidden columns, in the table's order; of a query, its own that are the table's.
    pub(super) columns: Vec<RelationColumn>,
    /// The query that stands for the table.
    view: Option<View>,
}

/// A query through which a table is changed.
#[derive(Clone, Debug)]
struct View {
    name: String,
    /// For each of its columns that is the table's, the table's name of it and its place there.
    origins: Vec<(String, usize)>,
    /// Its other columns.
    computed: Vec<String>,
}

/// Whose the table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    Database,
    Temporary,
    Variable,
}

impl Place {
    /// The place of a column.
    ///
    /// # Errors
    /// 207 when there is none of that name, 4406 for one that a query computes.
    pub(super) fn column(&self, name: &str) -> SqlResult<(usize, &RelationColumn)> {
        if let Some(view) = &self.view
            && view.computed.iter().any(|other| other.eq_ignore_ascii_case(name))
        {
            return Err(SqlError::new(
                4406,
                format!(
                    "Update or insert of view or function '{}' failed because it contains a \
                     derived or constant field.",
                    view.name
                ),
            ));
        }
        let found = self
            .columns
            .iter()
            .enumerate()
            .find(|(_, column)| column.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| SqlError::new(207, format!("Invalid column name '{name}'.")))
    }

    /// The table as a query shows it, when a statement changes it through one.
    pub(super) fn through(mut self, exposure: Option<&Exposure>) -> SqlResult<Self> {
        let Some(exposure) = exposure else {
            return Ok(self);
        };
        let name = exposure.name.clone();
        let mut view = View { name, origins: Vec::new(), computed: Vec::new() };
        let mut columns = Vec::with_capacity(exposure.columns.len());
        for (shown, origin) in &exposure.columns {
            let Some(origin) = origin else {
                view.computed.push(shown.clone());
                continue;
            };
            let (at, column) = self.column(origin)?;
            view.origins.push((column.name.clone(), at));
            columns.push(RelationColumn { name: shown.clone(), ..column.clone() });
        }
        self.columns = columns;
        self.view = Some(view);
        Ok(self)
    }

    /// Refuses to give all columns of a query that computes some: what those are of a changed row
    /// is not known.
    pub(super) fn require_output(&self, output: &Output) -> SqlResult<()> {
        let all = |item: &ast::SelectItem| {
            matches!(item, ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..))
        };
        match &self.view {
            Some(view) if !view.computed.is_empty() && output.items.iter().any(all) => {
                Err(unsupported("OUTPUT of all columns of a query that computes some of them"))
            }
            _ => Ok(()),
        }
    }

    /// The table's own name of a column.
    pub(super) fn name_of(&self, at: usize) -> String {
        match &self.view {
            Some(view) => view.origins.get(at).map(|(name, _)| name.clone()),
            None => self.columns.get(at).map(|column| column.name.clone()),
        }
        .unwrap_or_default()
    }

    /// A row of the table as the statement sees it.
    fn shown(&self, row: Row) -> Row {
        match &self.view {
            Some(view) => {
                let cell = |at: usize| row.get(at).cloned().unwrap_or(Value::Null);
                view.origins.iter().map(|(_, at)| cell(*at)).collect()
            }
            None => row,
        }
    }

    pub(super) fn securable(&self) -> Securable {
        Securable::Object(self.table.clone())
    }
}

/// True for a column that the server fills.
pub(super) fn is_generated(column: &RelationColumn) -> bool {
    column.computed || column.kind.sql_type == SqlType::RowVersion
}

impl Runner<'_> {
    /// Where the name of a table leads.
    ///
    /// # Errors
    /// 208 for a name that leads nowhere, 1087 for a table variable that was not declared.
    pub(super) fn place(&mut self, name: &ObjectName, frame: &Frame) -> SqlResult<Place> {
        let (database, table, home) = self.resolve(name, frame)?;
        self.touch();
        let scope = Scope::new(self.core, frame);
        // The columns are looked up whatever the login may read; what it may do is asked apart.
        let relation = match home {
            Home::Database => scope.as_owner(&database, &table)?,
            Home::Temporary | Home::Variable => scope.relation(name)?,
        };
        let columns = relation.columns().iter().filter(|column| !column.hidden).cloned().collect();
        if !relation.columns().iter().any(|column| column.name == ROW_LOCATION) {
            return Err(SqlError::new(
                259,
                format!("Ad hoc updates to '{}' are not allowed.", shown(name)),
            ));
        }
        Ok(Place { database, table, home, columns, view: None })
    }

    /// The database and the name in it that a table's name means.
    pub(super) fn resolve(
        &self,
        name: &ObjectName,
        frame: &Frame,
    ) -> SqlResult<(FakeDatabase, TableName, Home)> {
        if name.name.starts_with('@') {
            let tables = frame.tables.borrow();
            let found = tables.get(&name.name.to_lowercase()).ok_or_else(|| {
                SqlError::new(1087, format!("Must declare the table variable \"{}\".", name.name))
            })?;
            let database = self.core.temporary.variables.clone();
            return Ok((database, found.table.clone(), Home::Variable));
        }
        if name.name.starts_with('#') {
            let table = TableName::new("dbo", name.name.to_lowercase());
            return Ok((self.core.temporary.tables.clone(), table, Home::Temporary));
        }
        let database = match &name.database {
            Some(database) => self.core.open_database(database)?,
            None => self.core.database.clone(),
        };
        let schema = match &name.schema {
            Some(schema) => schema.clone(),
            None => database.default_schema(&self.core.account.rights),
        };
        let named = |schema: &str| TableName::new(schema, &*name.name);
        let mut found = database.table_info(&named(&schema));
        if found.is_none() && name.schema.is_none() {
            found = database.table_info(&named("dbo"));
        }
        let table = found.map_or_else(|| named(&schema), |info| info.name);
        Ok((database, table, Home::Database))
    }

    /// Refuses what the login has no right to.
    ///
    /// # Errors
    /// 229, which names the right and the object.
    pub(super) fn require(&self, place: &Place, permission: Permission) -> SqlResult<()> {
        if place.home != Home::Database {
            return Ok(());
        }
        let rights = &self.core.account.rights;
        if place.database.permits(rights, permission, &place.securable()) {
            return Ok(());
        }
        Err(denied(permission, &place.database, &place.table))
    }

    /// The transaction's part that a table is changed in.
    fn part(&mut self, place: &Place) -> &mut Transaction {
        let database = place.database.clone();
        self.core.transactions.part(&database, &self.core.options, &self.core.cancel)
    }

    /// Changes a table: in the transaction, or, of a table variable, beside it.
    fn change<T>(
        &mut self,
        place: &Place,
        work: impl FnOnce(&mut Transaction) -> SqlResult<T>,
    ) -> SqlResult<T> {
        if place.home == Home::Variable {
            let mut alone = place.database.begin();
            let done = work(&mut alone)?;
            alone.commit()?;
            return Ok(done);
        }
        work(self.part(place))
    }

    pub(super) fn insert_rows(
        &mut self,
        place: &Place,
        request: &InsertRequest,
    ) -> SqlResult<Inserted> {
        let mut inserted = self.change(place, |part| part.insert_rows(&place.table, request))?;
        inserted.rows = inserted.rows.into_iter().map(|row| place.shown(row)).collect();
        if inserted.identity.is_some() && place.home != Home::Variable {
            self.core.last.identity = inserted.identity;
        }
        Ok(inserted)
    }

    pub(super) fn update_rows(
        &mut self,
        place: &Place,
        request: &UpdateRequest,
    ) -> SqlResult<Vec<(Row, Row)>> {
        let pairs = self.change(place, |part| part.update_rows(&place.table, request))?;
        let shown = |(before, after)| (place.shown(before), place.shown(after));
        Ok(pairs.into_iter().map(shown).collect())
    }

    /// Removes rows, each as it was seen when `seen` has it.
    pub(super) fn delete_rows(
        &mut self,
        place: &Place,
        rows: &[RowId],
        seen: &[Row],
    ) -> SqlResult<Vec<Row>> {
        let removed = self.change(place, |part| part.delete_rows(&place.table, rows, seen))?;
        Ok(removed.into_iter().map(|row| place.shown(row)).collect())
    }

    pub(super) fn truncate(&mut self, name: &ObjectName, frame: &Frame) -> Run<()> {
        self.writing(frame, |runner, frame| {
            let place = runner.place(name, frame)?;
            runner.require(&place, Permission::Alter)?;
            runner.change(&place, |part| part.truncate(&place.table))?;
            Ok(())
        })
    }

    /// Changes the shape of a table in the transaction.
    pub(super) fn change_schema(
        &mut self,
        database: &FakeDatabase,
        change: &cdc_fake::SchemaChange,
        statement: Option<&str>,
    ) -> SqlResult<()> {
        let database = database.clone();
        let part = self.core.transactions.part(&database, &self.core.options, &self.core.cancel);
        part.change_schema(change, statement)
    }

    /// What expressions may depend on, for conversions outside of them.
    pub(super) fn facts(&mut self, frame: &Frame) -> SqlResult<Facts> {
        self.scoped(frame, |scope, _| Ok(scope.facts()))
    }
}

/// A statement's target as an item of FROM.
pub(super) fn factor(target: &Target) -> ast::TableFactor {
    let name = &target.name;
    let parts = [name.database.as_deref(), name.schema.as_deref(), Some(&*name.name)];
    let first = parts.iter().position(Option::is_some).unwrap_or(2);
    let idents = parts.iter().skip(first).map(|part| ident(part.unwrap_or_default())).collect();
    ast::TableFactor::Table {
        name: ast::ObjectName(idents),
        alias: target.alias.as_deref().map(|alias| ast::TableAlias {
            explicit: true,
            name: plain_ident(alias),
            columns: Vec::new(),
            at: None,
        }),
        args: None,
        with_hints: target.hints.clone(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_directives: Vec::new(),
        inheritance: None,
    }
}

fn ident(text: &str) -> ast::ObjectNamePart {
    ast::ObjectNamePart::Identifier(plain_ident(text))
}

fn plain_ident(text: &str) -> ast::Ident {
    let quote_style = if text.starts_with('@') { None } else { Some('[') };
    ast::Ident { value: text.into(), quote_style, span: sqlparser::tokenizer::Span::empty() }
}

/// The number of rows that TOP lets through; none without one.
impl Runner<'_> {
    /// The rows that `SET ROWCOUNT` lets a statement change.
    pub(super) fn row_limit(&self) -> Option<usize> {
        let limit = self.core.options.row_count;
        (limit > 0).then(|| usize::try_from(limit).unwrap_or(usize::MAX))
    }

    pub(super) fn top(&mut self, top: Option<&ast::Top>, frame: &Frame) -> Run<Option<usize>> {
        let Some(top) = top else {
            return Ok(self.row_limit());
        };
        if top.percent || top.with_ties {
            return Err(crate::syntax::unsupported("TOP PERCENT of a change of rows").into());
        }
        match &top.quantity {
            None => Ok(None),
            Some(ast::TopQuantity::Constant(rows)) => {
                Ok(Some(usize::try_from(*rows).unwrap_or(usize::MAX)))
            }
            Some(ast::TopQuantity::Expr(rows)) => {
                let rows = self.whole_number(rows, frame)?;
                usize::try_from(rows).map(Some).map_err(|_| {
                    SqlError::new(127, "A TOP N or FETCH rowcount value may not be negative.")
                        .into()
                })
            }
        }
    }
}

/// A value as a column takes it.
///
/// # Errors
/// What the conversion refuses.
pub(super) fn as_column(
    value: &Value,
    from: &Kind,
    to: &RelationColumn,
    facts: &Facts,
) -> SqlResult<Value> {
    if *from == to.kind || value.is_null() {
        return Ok(value.clone());
    }
    scalar::convert(value, from, &to.kind, None, false, facts)
}

/// The location of a row, from its hidden column.
///
/// # Errors
/// 259 for a row of something that has none.
pub(super) fn location(columns: &[RelationColumn], row: &Row) -> SqlResult<RowId> {
    let at = columns.iter().position(|column| column.name == ROW_LOCATION);
    let found = at.and_then(|at| row.get(at)).and_then(RowId::from_value);
    found.ok_or_else(|| SqlError::new(259, "Ad hoc updates to system catalogs are not allowed."))
}

/// A row without hidden columns.
pub(super) fn visible(columns: &[RelationColumn], row: &Row) -> Row {
    if columns.iter().all(|column| !column.hidden) {
        return Arc::clone(row);
    }
    let kept = columns.iter().zip(row.iter()).filter(|(column, _)| !column.hidden);
    kept.map(|(_, value)| value.clone()).collect()
}
