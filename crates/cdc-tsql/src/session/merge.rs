//! MERGE.

use std::collections::HashSet;

use cdc_fake::{InsertRequest, Permission, RowId, SqlError, UpdateRequest, Value};
use sqlparser::ast;

use super::{
    failure::Run,
    frame::Frame,
    output::{ChangedRow, Changes},
    runner::Runner,
    target::{Place, as_column, factor, is_generated, location, visible},
    update::writable,
};
use crate::{
    kind::Kind,
    query::{self, Context, Matched, RowCondition, RowExpressions, RowSource},
    relation::Row,
    scalar::Facts,
    syntax::{Assignment, Merge, MergeAction, MergeClause, MergeWhen, unsupported},
    talk::StatementKind,
};

/// A clause with what it computes over a pair of rows.
struct Bound<'m> {
    clause: &'m MergeClause,
    condition: Option<RowCondition>,
    values: RowExpressions,
}

/// What a pair of rows leads to.
struct Deed {
    clause: usize,
    row: Option<(RowId, Row)>,
    source: Option<Row>,
    values: Vec<Value>,
}

type Told = Vec<ChangedRow>;

impl Runner<'_> {
    pub(super) fn merge(&mut self, merge: &Merge, frame: &Frame) -> Run<()> {
        if merge.top.is_some() {
            return Err(unsupported("MERGE TOP").into());
        }
        let rows = self.writing(frame, |runner, frame| {
            runner.until_as_seen(|runner| runner.merge_found(merge, frame))
        })?;
        self.counted(rows, StatementKind::Merge, frame)
    }

    fn merge_found(&mut self, merge: &Merge, frame: &Frame) -> Run<u64> {
        let target = factor(&merge.target);
        let (matched, mut deeds, kinds) = self.scoped(frame, |_, context| {
            let matched = query::matched_rows(
                merge.with.as_ref(),
                &target,
                &merge.source,
                &merge.on,
                context,
            )?;
            let bound = bound(merge, &matched, context)?;
            let deeds = deeds(&bound, &matched, context)?;
            let kinds = bound
                .iter()
                .map(|bound| bound.values.columns().iter().map(|c| c.kind.clone()).collect())
                .collect::<Vec<Vec<Kind>>>();
            Ok((matched, deeds, kinds))
        })?;
        deeds.truncate(self.row_limit().unwrap_or(usize::MAX));
        let place = self.place(&matched.table, frame)?.through(matched.exposure.as_ref())?;
        self.require_merge(merge, &place)?;
        let told = self.carry_out(merge, &place, &deeds, &kinds, frame)?;
        let count = told.len();
        if let Some(output) = &merge.output {
            place.require_output(output)?;
            let source = RowSource { name: &matched.source_name, columns: &matched.source_columns };
            let changes = Changes { columns: &place.columns, rows: told, merged: Some(source) };
            self.output(output, &changes, frame)?;
        }
        Ok(u64::try_from(count).unwrap_or(u64::MAX))
    }

    fn require_merge(&self, merge: &Merge, place: &Place) -> Run<()> {
        for clause in &merge.clauses {
            let permission = match clause.action {
                MergeAction::Update(_) => Permission::Update,
                MergeAction::Delete => Permission::Delete,
                MergeAction::Insert { .. } | MergeAction::InsertDefaults => Permission::Insert,
            };
            self.require(place, permission)?;
        }
        Ok(())
    }

    /// Deletes first, then updates, then inserts: so a key may go from one row to another.
    fn carry_out(
        &mut self,
        merge: &Merge,
        place: &Place,
        deeds: &[Deed],
        kinds: &[Vec<Kind>],
        frame: &Frame,
    ) -> Run<Told> {
        let facts = self.facts(frame)?;
        let mut told = Vec::with_capacity(deeds.len());
        let of = |at: usize| deeds.iter().filter(move |deed| deed.clause == at);
        let clauses = || merge.clauses.iter().enumerate();
        for (at, clause) in clauses() {
            if matches!(clause.action, MergeAction::Delete) {
                let (ids, seen): (Vec<RowId>, Vec<Row>) =
                    of(at).filter_map(|deed| deed.row.clone()).unzip();
                let removed = self.delete_rows(place, &ids, &seen)?;
                told.extend(
                    removed.into_iter().zip(of(at)).map(|(row, deed)| {
                        ChangedRow::deleted(row).because_of(deed.source.as_ref())
                    }),
                );
            }
        }
        for (at, clause) in clauses() {
            if let MergeAction::Update(assignments) = &clause.action {
                let (mut request, targets) = update_request(assignments, place)?;
                for deed in of(at) {
                    let Some((id, seen)) = &deed.row else { continue };
                    let values = self.fit(deed, &targets, place, kinds.get(at), &facts)?;
                    request.rows.push((id.clone(), values));
                    request.seen.push(seen.clone());
                }
                let pairs = self.update_rows(place, &request)?;
                told.extend(pairs.into_iter().zip(of(at)).map(|(pair, deed)| {
                    ChangedRow::updated(pair).because_of(deed.source.as_ref())
                }));
            }
        }
        for (at, clause) in clauses() {
            let deeds: Vec<&Deed> = of(at).collect();
            let wanted =
                self.insert_request(&clause.action, &deeds, place, kinds.get(at), &facts)?;
            let Some(request) = wanted else {
                continue;
            };
            let inserted = self.insert_rows(place, &request)?;
            told.extend(
                inserted
                    .rows
                    .into_iter()
                    .zip(of(at))
                    .map(|(row, deed)| ChangedRow::inserted(row).because_of(deed.source.as_ref())),
            );
        }
        Ok(told)
    }

    /// The rows that an INSERT of MERGE gives; none for another action.
    fn insert_request(
        &self,
        action: &MergeAction,
        deeds: &[&Deed],
        place: &Place,
        kinds: Option<&Vec<Kind>>,
        facts: &Facts,
    ) -> Run<Option<InsertRequest>> {
        let mut request = InsertRequest {
            columns: Some(Vec::new()),
            rows: Vec::with_capacity(deeds.len()),
            identity_insert: self.inserts_identity(place),
        };
        match action {
            MergeAction::Insert { columns, values } => {
                let targets = self.insert_targets(columns, values, place)?;
                request.columns = Some(targets.iter().map(|(at, _)| place.name_of(*at)).collect());
                for deed in deeds {
                    request.rows.push(self.fit(deed, &targets, place, kinds, facts)?);
                }
            }
            MergeAction::InsertDefaults => {
                request.rows = deeds.iter().map(|_| Vec::new()).collect();
                request.identity_insert = false;
            }
            MergeAction::Update(_) | MergeAction::Delete => return Ok(None),
        }
        Ok(Some(request))
    }

    fn insert_targets(
        &self,
        columns: &[String],
        values: &[Option<ast::Expr>],
        place: &Place,
    ) -> Run<Vec<(usize, bool)>> {
        let identity = self.inserts_identity(place);
        let mut targets = Vec::with_capacity(values.len());
        if columns.is_empty() {
            for (at, column) in place.columns.iter().enumerate() {
                if !is_generated(column) && (identity || !column.identity) {
                    targets.push(at);
                }
            }
        }
        for name in columns {
            targets.push(place.column(name)?.0);
        }
        if targets.len() != values.len() {
            return Err(SqlError::new(
                213,
                "Column name or number of supplied values does not match table definition.",
            )
            .into());
        }
        Ok(targets.into_iter().zip(values.iter().map(Option::is_some)).collect())
    }

    /// The values of a deed as their columns take them; none for a default.
    fn fit(
        &self,
        deed: &Deed,
        targets: &[(usize, bool)],
        place: &Place,
        kinds: Option<&Vec<Kind>>,
        facts: &Facts,
    ) -> Run<Vec<Option<Value>>> {
        let mut given = deed.values.iter().zip(kinds.into_iter().flatten());
        let mut fitted = Vec::with_capacity(targets.len());
        for (at, computed) in targets {
            let value = if *computed { given.next() } else { None };
            fitted.push(match (value, place.columns.get(*at)) {
                (Some((value, kind)), Some(column)) => Some(as_column(value, kind, column, facts)?),
                _ => None,
            });
        }
        Ok(fitted)
    }
}

/// The columns that an UPDATE of MERGE sets, and which of them have a value of their own.
fn update_request(
    assignments: &[Assignment],
    place: &Place,
) -> Run<(UpdateRequest, Vec<(usize, bool)>)> {
    let mut request = UpdateRequest::default();
    let mut targets = Vec::with_capacity(assignments.len());
    for assignment in assignments {
        let Some(name) = assignment.column.as_ref() else {
            return Err(unsupported("a variable set by MERGE").into());
        };
        let (index, _) = writable(place, name)?;
        request.columns.push(place.name_of(index));
        targets.push((index, assignment.value.is_some()));
    }
    Ok((request, targets))
}

fn bound<'m>(
    merge: &'m Merge,
    matched: &Matched,
    context: &Context<'_>,
) -> Result<Vec<Bound<'m>>, SqlError> {
    let sources = [
        RowSource { name: &matched.target_name, columns: &matched.target_columns },
        RowSource { name: &matched.source_name, columns: &matched.source_columns },
    ];
    let with = merge.with.as_ref();
    let mut all = Vec::with_capacity(merge.clauses.len());
    for clause in &merge.clauses {
        let condition = match &clause.condition {
            Some(condition) => {
                Some(query::condition_over_rows(with, condition, &sources, context)?)
            }
            None => None,
        };
        let expressions: Vec<&ast::Expr> = match &clause.action {
            MergeAction::Update(assignments) => {
                assignments.iter().filter_map(|one| one.value.as_ref()).collect()
            }
            MergeAction::Insert { values, .. } => values.iter().flatten().collect(),
            MergeAction::Delete | MergeAction::InsertDefaults => Vec::new(),
        };
        let values = query::values_over_rows(with, &expressions, &sources, context)?;
        all.push(Bound { clause, condition, values });
    }
    Ok(all)
}

/// What each pair of rows leads to: the first clause that fits it.
fn deeds(
    bound: &[Bound<'_>],
    matched: &Matched,
    context: &Context<'_>,
) -> Result<Vec<Deed>, SqlError> {
    let mut deeds = Vec::new();
    let mut touched = HashSet::new();
    for (target, source) in &matched.rows {
        let when = match (target, source) {
            (Some(_), Some(_)) => MergeWhen::Matched,
            (Some(_), None) => MergeWhen::NotMatchedBySource,
            (None, _) => MergeWhen::NotMatchedByTarget,
        };
        let rows = [target.clone(), source.clone()];
        for (at, bound) in bound.iter().enumerate() {
            if bound.clause.when != when {
                continue;
            }
            if let Some(condition) = &bound.condition
                && condition.holds(&rows, context)? != Some(true)
            {
                continue;
            }
            let values = bound.values.values(&rows, context)?;
            let row = match target {
                Some(row) => {
                    let row = matched.table_row(row);
                    let id = location(&matched.table_columns, &row)?;
                    if !touched.insert(id.clone()) {
                        return Err(twice());
                    }
                    Some((id, visible(&matched.table_columns, &row)))
                }
                None => None,
            };
            deeds.push(Deed { clause: at, row, source: source.clone(), values });
            break;
        }
    }
    Ok(deeds)
}

fn twice() -> SqlError {
    SqlError::new(
        8672,
        "The MERGE statement attempted to UPDATE or DELETE the same row more than once. This \
         happens when a target row matches more than one source row. A MERGE statement cannot \
         UPDATE/DELETE the same row of the target table multiple times.",
    )
}
