//! UPDATE and DELETE.

use cdc_fake::{Permission, SqlError, UpdateRequest, Value};
use sqlparser::ast;

use super::{
    failure::{Failure, Run},
    frame::Frame,
    output::{ChangedRow, Changes},
    query_run::names_variable,
    runner::Runner,
    target::{Place, as_column, factor, is_generated, location},
};
use crate::{
    kind::Kind,
    query::{self, Changing},
    scalar::Facts,
    syntax::{Assignment, Delete, Update, unsupported},
    talk::StatementKind,
};

/// The error of a row that is gone, or not as it was read.
const ROW_MOVED: i32 = 601;
/// How often a statement is run again for such a row. Each time another one has written it.
const MAX_ROUNDS: usize = 10_000;

/// What becomes of a value that an UPDATE computes.
#[derive(Clone, Copy)]
struct Destination<'a> {
    variable: Option<&'a str>,
    /// The column's place in the table.
    column: Option<usize>,
}

impl Runner<'_> {
    pub(super) fn update(&mut self, update: &Update, frame: &Frame) -> Run<()> {
        let rows = self.writing(frame, |runner, frame| {
            runner.until_as_seen(|runner| runner.update_found(update, frame))
        })?;
        self.counted(rows, StatementKind::Update, frame)
    }

    /// Runs a change of rows again when another transaction has changed one of them after it was
    /// read: the new values are those of the row as it is once it can be locked.
    pub(super) fn until_as_seen<T>(&mut self, mut work: impl FnMut(&mut Self) -> Run<T>) -> Run<T> {
        for _ in 0..MAX_ROUNDS {
            match work(self) {
                Err(Failure::Error(error)) if error.number == ROW_MOVED => {
                    self.core.transactions.rollback_to_mark()?;
                    self.core.transactions.mark()?;
                }
                other => return other,
            }
        }
        work(self)
    }

    fn update_found(&mut self, update: &Update, frame: &Frame) -> Run<u64> {
        let target = factor(&update.target);
        let values: Vec<&ast::Expr> =
            update.assignments.iter().filter_map(|one| one.value.as_ref()).collect();
        let changing = Changing {
            with: update.with.as_ref(),
            target: &target,
            from: &update.from,
            selection: update.selection.as_ref(),
            values,
            top: update.top.as_ref(),
        };
        let mut changed =
            self.scoped(frame, |_, context| query::changed_rows(&changing, context))?;
        changed.rows.truncate(self.row_limit().unwrap_or(usize::MAX));
        let place = self.place(&changed.table, frame)?.through(changed.exposure.as_ref())?;
        self.require(&place, Permission::Update)?;
        let destinations = destinations(&update.assignments, &place)?;
        let columns: Vec<usize> = destinations.iter().filter_map(|one| one.column).collect();
        let mut request = UpdateRequest {
            columns: columns.iter().map(|at| place.name_of(*at)).collect(),
            rows: Vec::with_capacity(changed.rows.len()),
            seen: changed.rows.iter().map(|(row, _)| row.clone()).collect(),
            as_pairs: false,
        };
        let facts = self.facts(frame)?;
        let mut last = Vec::new();
        for (row, values) in &changed.rows {
            let id = location(&changed.columns, row)?;
            let (set, variables) =
                self.set_values(update, &destinations, &place, (values, &changed.kinds), &facts)?;
            last = variables;
            request.rows.push((id, set));
        }
        let count = request.rows.len();
        refuse_running_values(update, count)?;
        let mut pairs = Vec::new();
        if !request.columns.is_empty() {
            pairs = self.update_rows(&place, &request)?;
        }
        for (name, value, kind) in last {
            self.scoped(frame, |scope, _| frame.set(&name, &value, &kind, &scope.facts()))?;
        }
        if let Some(output) = &update.output {
            place.require_output(output)?;
            let rows = pairs.into_iter().map(ChangedRow::updated).collect();
            let changes = Changes { columns: &place.columns, rows, merged: None };
            self.output(output, &changes, frame)?;
        }
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    /// A row's new values, and what its variables become.
    #[allow(clippy::type_complexity, reason = "a pair of lists")]
    fn set_values(
        &self,
        update: &Update,
        destinations: &[Destination<'_>],
        place: &Place,
        (values, kinds): (&[Value], &[Kind]),
        facts: &Facts,
    ) -> Run<(Vec<Option<Value>>, Vec<(String, Value, Kind)>)> {
        let mut given = values.iter().zip(kinds);
        let (mut set, mut variables) = (Vec::new(), Vec::new());
        for (assignment, destination) in update.assignments.iter().zip(destinations) {
            let computed = match &assignment.value {
                Some(_) => given.next(),
                None => None,
            };
            let column = destination.column.and_then(|at| place.columns.get(at));
            let stored = match (computed, column) {
                (Some((value, kind)), Some(column)) => {
                    Some((as_column(value, kind, column, facts)?, column.kind.clone()))
                }
                (Some((value, kind)), None) => Some((value.clone(), kind.clone())),
                (None, _) => None,
            };
            if let (Some(name), Some((value, kind))) = (destination.variable, &stored) {
                variables.push((name.to_owned(), value.clone(), kind.clone()));
            }
            if column.is_some() {
                set.push(stored.map(|(value, _)| value));
            }
        }
        Ok((set, variables))
    }

    pub(super) fn delete(&mut self, delete: &Delete, frame: &Frame) -> Run<()> {
        let rows = self.writing(frame, |runner, frame| {
            runner.until_as_seen(|runner| runner.delete_found(delete, frame))
        })?;
        self.counted(rows, StatementKind::Delete, frame)
    }

    fn delete_found(&mut self, delete: &Delete, frame: &Frame) -> Run<u64> {
        let target = factor(&delete.target);
        let changing = Changing {
            with: delete.with.as_ref(),
            target: &target,
            from: &delete.from,
            selection: delete.selection.as_ref(),
            values: Vec::new(),
            top: delete.top.as_ref(),
        };
        let mut changed =
            self.scoped(frame, |_, context| query::changed_rows(&changing, context))?;
        changed.rows.truncate(self.row_limit().unwrap_or(usize::MAX));
        let place = self.place(&changed.table, frame)?.through(changed.exposure.as_ref())?;
        self.require(&place, Permission::Delete)?;
        let ids = changed
            .rows
            .iter()
            .map(|(row, _)| location(&changed.columns, row))
            .collect::<Result<Vec<_>, _>>()?;
        let seen: Vec<_> = changed.rows.iter().map(|(row, _)| row.clone()).collect();
        let removed = self.delete_rows(&place, &ids, &seen)?;
        if let Some(output) = &delete.output {
            place.require_output(output)?;
            let rows = removed.into_iter().map(ChangedRow::deleted).collect();
            let changes = Changes { columns: &place.columns, rows, merged: None };
            self.output(output, &changes, frame)?;
        }
        Ok(u64::try_from(ids.len()).unwrap_or(u64::MAX))
    }
}

fn destinations<'a>(assignments: &'a [Assignment], place: &Place) -> Run<Vec<Destination<'a>>> {
    let mut found: Vec<Destination<'a>> = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let mut at = None;
        if let Some(name) = &assignment.column {
            let (index, _) = writable(place, name)?;
            if found.iter().any(|other| other.column == Some(index)) {
                return Err(SqlError::new(
                    264,
                    format!(
                        "The column name '{name}' is specified more than once in the SET clause."
                    ),
                )
                .into());
            }
            at = Some(index);
        }
        found.push(Destination { variable: assignment.variable.as_deref(), column: at });
    }
    Ok(found)
}

/// A column that UPDATE may set.
pub(super) fn writable<'p>(
    place: &'p Place,
    name: &str,
) -> Result<(usize, &'p crate::relation::RelationColumn), SqlError> {
    let (index, column) = place.column(name)?;
    if column.identity {
        return Err(SqlError::new(8102, format!("Cannot update identity column '{name}'.")));
    }
    if column.computed {
        return Err(SqlError::new(
            271,
            format!(
                "The column \"{name}\" cannot be modified because it is either a computed column \
                 or is the result of a UNION operator."
            ),
        ));
    }
    if is_generated(column) {
        return Err(SqlError::new(272, "Cannot update a timestamp column."));
    }
    Ok((index, column))
}

/// Refuses a variable that reads itself over several rows: its value would follow the order in
/// which rows are changed.
fn refuse_running_values(update: &Update, rows: usize) -> Run<()> {
    let variables: Vec<&str> =
        update.assignments.iter().filter_map(|one| one.variable.as_deref()).collect();
    let reads = |text: &str| {
        variables.iter().any(|name| names_variable(&text.to_lowercase(), &name.to_lowercase()))
    };
    let running = update
        .assignments
        .iter()
        .filter_map(|one| one.value.as_ref())
        .any(|value| reads(&value.to_string()));
    if rows > 1 && !variables.is_empty() && running {
        return Err(unsupported("UPDATE with a variable that runs over its rows").into());
    }
    Ok(())
}
