//! INSERT: of values, of a query's rows, of a procedure's rows.

use std::ops::ControlFlow;

use cdc_fake::{InsertRequest, Permission, SqlError, SqlResult, Value};
use sqlparser::ast;

use super::{
    failure::{Failure, Run},
    frame::Frame,
    output::{ChangedRow, Changes},
    query_run::refuse_into,
    runner::Runner,
    target::{Home, Place, is_generated},
};
use crate::{
    kind::{Kind, Typed},
    query, scalar,
    syntax::{Insert, InsertSource, unsupported},
    talk::{Change, Done, Message, Replies, ResultColumn, StatementKind},
};

/// The most rows that a server takes in the VALUES of an INSERT.
const MAX_ROW_VALUES: usize = 1000;

/// Rows to insert, before they fit their columns: the kinds of their columns, and none for a
/// default.
struct Source {
    kinds: Vec<Kind>,
    rows: Vec<Vec<Option<Value>>>,
}

impl Runner<'_> {
    pub(super) fn insert(&mut self, insert: &Insert, frame: &Frame) -> Run<()> {
        refuse_with(insert)?;
        let rows = self.writing(frame, |runner, frame| runner.insert_source(insert, frame))?;
        self.counted(rows, StatementKind::Insert, frame)
    }

    fn insert_source(&mut self, insert: &Insert, frame: &Frame) -> Run<u64> {
        let place = self.place(&insert.target.name, frame)?;
        self.require(&place, Permission::Insert)?;
        let identity_insert = self.inserts_identity(&place);
        let columns = target_columns(insert, &place, identity_insert)?;
        let unlisted_identity = insert.columns.is_empty()
            && place.columns.iter().any(|column| column.identity && !is_generated(column));
        let mut source = self.source(insert, columns.len(), frame)?;
        let explicit = !insert.columns.is_empty();
        let given = source.kinds.len();
        if !matches!(insert.source, InsertSource::DefaultValues) && given != columns.len() {
            if unlisted_identity && given == columns.len() + 1 {
                return Err(identity_not_listed(&place).into());
            }
            return Err(count_mismatch(given, columns.len(), explicit, &insert.source).into());
        }
        if let Some(top) = self.top(insert.top.as_ref(), frame)? {
            source.rows.truncate(top);
        }
        let rows = self.fitted(source, &columns, &place, frame)?;
        let request = InsertRequest {
            columns: Some(columns.iter().map(|at| place.name_of(*at)).collect()),
            rows,
            identity_insert,
        };
        let inserted = self.insert_rows(&place, &request)?;
        let count = inserted.rows.len();
        if let Some(output) = &insert.output {
            let changes = Changes {
                columns: &place.columns,
                rows: inserted.rows.into_iter().map(ChangedRow::inserted).collect(),
                merged: None,
            };
            self.output(output, &changes, frame)?;
        }
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    /// True when `SET IDENTITY_INSERT` is on for a table.
    pub(super) fn inserts_identity(&self, place: &Place) -> bool {
        let Some((database, table)) = &self.core.identity_insert else {
            return false;
        };
        place.database.name() == database && place.table.to_string().to_lowercase() == *table
    }

    fn source(&mut self, insert: &Insert, width: usize, frame: &Frame) -> Run<Source> {
        match &insert.source {
            InsertSource::DefaultValues => {
                Ok(Source { kinds: Vec::new(), rows: vec![vec![None; width]] })
            }
            InsertSource::Values(rows) => self.values(rows, frame),
            InsertSource::Query(query) => {
                refuse_into(query)?;
                let mut query = (**query).clone();
                if let Some(with) = &insert.with {
                    query.with = Some(with.clone());
                }
                self.query_source(&query, frame)
            }
            InsertSource::Execute(call) => {
                self.captured(frame, |runner, frame| runner.execute(call, frame))
            }
            InsertSource::ExecuteText(text) => {
                self.captured(frame, |runner, frame| runner.execute_text(text, frame))
            }
        }
    }

    /// The rows of VALUES. A column of several rows has the kind that all its values go together
    /// in.
    fn values(&mut self, rows: &[Vec<Option<ast::Expr>>], frame: &Frame) -> Run<Source> {
        let width = rows.first().map_or(0, Vec::len);
        let single = rows.len() == 1;
        if rows.len() > MAX_ROW_VALUES {
            return Err(SqlError::new(
                10_738,
                "The number of row value expressions in the INSERT statement exceeds the maximum \
                 allowed number of 1000 row values.",
            )
            .into());
        }
        if rows.iter().any(|row| row.len() != width) {
            return Err(SqlError::new(
                10_709,
                "The number of columns for each row in a table value constructor must be the same.",
            )
            .into());
        }
        let typed: Vec<Vec<Option<Typed>>> = self.scoped(frame, |_, context| {
            let value = |value: &Option<ast::Expr>| {
                value.as_ref().map(|value| query::scalar(value, context)).transpose()
            };
            rows.iter().map(|row| row.iter().map(value).collect()).collect()
        })?;
        let mut kinds = Vec::with_capacity(width);
        for at in 0..width {
            let column: Vec<&Typed> =
                typed.iter().filter_map(|row| row.get(at)?.as_ref()).collect();
            kinds.push(united(&column)?);
        }
        let rows = self.scoped(frame, |scope, _| {
            let facts = scope.facts();
            typed
                .into_iter()
                .map(|row| {
                    row.into_iter()
                        .zip(&kinds)
                        .map(|(value, kind)| match value {
                            // NULL has no type of its own.
                            Some(value)
                                if single
                                    || value.value.is_null()
                                    || value.kind.sql_type == kind.sql_type =>
                            {
                                Ok(Some(value.value))
                            }
                            Some(value) => scalar::convert(
                                &value.value,
                                &value.kind,
                                kind,
                                None,
                                false,
                                &facts,
                            )
                            .map(Some),
                            None => Ok(None),
                        })
                        .collect::<SqlResult<Vec<_>>>()
                })
                .collect::<SqlResult<Vec<_>>>()
        })?;
        Ok(Source { kinds, rows })
    }

    fn query_source(&mut self, query: &ast::Query, frame: &Frame) -> Run<Source> {
        let source = self.scoped(frame, |_, context| {
            let prepared = query::prepare(query, context)?;
            let kinds = prepared.columns().iter().map(|column| column.kind.clone()).collect();
            let mut rows = Vec::new();
            prepared.run(context, &mut |row| {
                rows.push(row.iter().cloned().map(Some).collect());
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(Source { kinds, rows })
        })?;
        Ok(source)
    }

    /// The rows that a call gives instead of telling them to the client.
    fn captured(
        &mut self,
        frame: &Frame,
        work: impl FnOnce(&mut Runner<'_>, &Frame) -> Run<()>,
    ) -> Run<Source> {
        let mut capture = Capture { inner: self.replies, source: None, mixed: false };
        let mut runner = Runner { core: self.core, replies: &mut capture, repeatable: false };
        let result = work(&mut runner, frame);
        let Capture { source, mixed, .. } = capture;
        result?;
        if mixed {
            return Err(Failure::Error(SqlError::new(
                213,
                "Column name or number of supplied values does not match table definition.",
            )));
        }
        Ok(source.unwrap_or(Source { kinds: Vec::new(), rows: Vec::new() }))
    }

    fn fitted(
        &mut self,
        source: Source,
        columns: &[usize],
        place: &Place,
        frame: &Frame,
    ) -> Run<Vec<Vec<Option<Value>>>> {
        let targets: Vec<_> = columns.iter().filter_map(|at| place.columns.get(*at)).collect();
        let kinds = source.kinds;
        let same = kinds.iter().zip(&targets).all(|(kind, target)| {
            kind.sql_type == target.kind.sql_type && kind.collation == target.kind.collation
        });
        if same {
            return Ok(source.rows);
        }
        let rows = self.scoped(frame, |scope, _| {
            let facts = scope.facts();
            let fit = |row: Vec<Option<Value>>| {
                row.into_iter()
                    .zip(kinds.iter().zip(&targets))
                    .map(|(value, (from, to))| match value {
                        None => Ok(None),
                        Some(Value::Null) => Ok(Some(Value::Null)),
                        Some(value) => {
                            scalar::convert(&value, from, &to.kind, None, false, &facts).map(Some)
                        }
                    })
                    .collect::<SqlResult<Vec<_>>>()
            };
            source.rows.into_iter().map(fit).collect::<SqlResult<Vec<_>>>()
        })?;
        Ok(rows)
    }
}

/// Refuses a WITH that is for more than the query whose rows are inserted.
fn refuse_with(insert: &Insert) -> SqlResult<()> {
    let Some(with) = &insert.with else { return Ok(()) };
    let target = &insert.target.name;
    let bare = target.schema.is_none() && target.database.is_none();
    let names = |table: &ast::Cte| table.alias.name.value.eq_ignore_ascii_case(&target.name);
    if bare && with.cte_tables.iter().any(names) {
        return Err(unsupported("INSERT into a common table expression"));
    }
    if !matches!(insert.source, InsertSource::Query(_)) {
        return Err(unsupported("WITH before an INSERT of anything but a query"));
    }
    Ok(())
}

/// The places of the columns that an INSERT gives values for.
fn target_columns(insert: &Insert, place: &Place, identity: bool) -> SqlResult<Vec<usize>> {
    if insert.columns.is_empty() {
        let writable = |(_, column): &(usize, &crate::relation::RelationColumn)| {
            !is_generated(column) && !column.identity
        };
        return Ok(place.columns.iter().enumerate().filter(writable).map(|(at, _)| at).collect());
    }
    let mut places = Vec::with_capacity(insert.columns.len());
    for name in &insert.columns {
        let (at, column) = place.column(name)?;
        if places.contains(&at) {
            return Err(SqlError::new(
                264,
                format!(
                    "The column name '{name}' is specified more than once in the SET clause or \
                     column list of an INSERT."
                ),
            ));
        }
        if column.identity && !identity && place.home != Home::Variable {
            return Err(SqlError::new(
                544,
                format!(
                    "Cannot insert explicit value for identity column in table '{}' when \
                     IDENTITY_INSERT is set to OFF.",
                    place.table.name
                ),
            ));
        }
        places.push(at);
    }
    Ok(places)
}

fn identity_not_listed(place: &Place) -> SqlError {
    SqlError::new(
        8101,
        format!(
            "An explicit value for the identity column in table '{}' can only be specified when a \
             column list is used and IDENTITY_INSERT is ON.",
            place.table.name
        ),
    )
}

/// The kind that the values of a column of VALUES go together in.
fn united(values: &[&Typed]) -> SqlResult<Kind> {
    let kinds: Vec<Kind> = values
        .iter()
        .filter(|typed| !(typed.value.is_null() && typed.kind.sql_type == cdc_core::SqlType::Int))
        .map(|typed| typed.kind.clone())
        .collect();
    match kinds.as_slice() {
        [] => Ok(Kind::new(cdc_core::SqlType::Int, true)),
        [kind] => Ok(kind.clone()),
        kinds => scalar::common_kind(kinds),
    }
}

fn count_mismatch(given: usize, wanted: usize, explicit: bool, source: &InsertSource) -> SqlError {
    let values = matches!(source, InsertSource::Values(_));
    let (number, text) = match (explicit, values, given < wanted) {
        (false, ..) => {
            (213, "Column name or number of supplied values does not match table definition.")
        }
        (true, true, true) => (
            109,
            "There are more columns in the INSERT statement than values specified in the VALUES \
             clause.",
        ),
        (true, true, false) => (
            110,
            "There are fewer columns in the INSERT statement than values specified in the VALUES \
             clause.",
        ),
        (true, false, true) => (
            120,
            "The select list for the INSERT statement contains fewer items than the insert list.",
        ),
        (true, false, false) => (
            121,
            "The select list for the INSERT statement contains more items than the insert list.",
        ),
    };
    SqlError::new(number, text)
}

/// Keeps the rows of a call, and passes on what else it tells.
struct Capture<'a> {
    inner: &'a mut dyn Replies,
    source: Option<Source>,
    /// True when results of different widths came.
    mixed: bool,
}

impl Replies for Capture<'_> {
    fn columns(&mut self, columns: &[ResultColumn]) -> ControlFlow<()> {
        let kinds: Vec<Kind> = columns.iter().map(|column| column.kind.clone()).collect();
        match &self.source {
            Some(source) => self.mixed |= source.kinds.len() != kinds.len(),
            None => self.source = Some(Source { kinds, rows: Vec::new() }),
        }
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value]) -> ControlFlow<()> {
        if let Some(source) = &mut self.source {
            source.rows.push(row.iter().cloned().map(Some).collect());
        }
        ControlFlow::Continue(())
    }

    fn done(&mut self, _done: Done) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn message(&mut self, message: &Message) -> ControlFlow<()> {
        self.inner.message(message)
    }

    fn changed(&mut self, change: &Change) -> ControlFlow<()> {
        self.inner.changed(change)
    }

    fn return_status(&mut self, _status: i32) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn return_value(&mut self, _place: u16, _name: &str, _value: &Typed) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
