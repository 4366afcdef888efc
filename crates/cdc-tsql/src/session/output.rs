//! OUTPUT: the rows that a change inserted and removed, to the client or into a table.

use std::sync::Arc;

use cdc_core::{Length, SqlType};
use cdc_fake::{InsertRequest, SqlError, Value};

use super::{
    failure::Run,
    frame::Frame,
    runner::{Runner, go_on},
    target::{as_column, is_generated},
};
use crate::{
    kind::Kind,
    query::{self, RowSource},
    relation::{RelationColumn, Row},
    syntax::Output,
};

/// What a statement changed.
pub(super) struct Changes<'a> {
    pub(super) columns: &'a [RelationColumn],
    pub(super) rows: Vec<ChangedRow>,
    /// The source of a MERGE, which may be named beside `$action`.
    pub(super) merged: Option<RowSource<'a>>,
}

/// What was done to a row.
pub(super) struct ChangedRow {
    /// `INSERT`, `UPDATE` or `DELETE`.
    pub(super) action: &'static str,
    pub(super) before: Option<Row>,
    pub(super) after: Option<Row>,
    /// The row of a MERGE's source that led to it.
    pub(super) source: Option<Row>,
}

impl ChangedRow {
    pub(super) const fn inserted(row: Row) -> Self {
        Self { action: "INSERT", before: None, after: Some(row), source: None }
    }

    pub(super) fn updated((before, after): (Row, Row)) -> Self {
        Self { action: "UPDATE", before: Some(before), after: Some(after), source: None }
    }

    pub(super) const fn deleted(row: Row) -> Self {
        Self { action: "DELETE", before: Some(row), after: None, source: None }
    }

    pub(super) fn because_of(self, source: Option<&Row>) -> Self {
        Self { source: source.cloned(), ..self }
    }
}

impl Runner<'_> {
    pub(super) fn output(
        &mut self,
        output: &Output,
        changes: &Changes<'_>,
        frame: &Frame,
    ) -> Run<()> {
        let action = [RelationColumn::new(
            "$action",
            Kind::new(SqlType::NVarChar(Length::Limited(10)), true),
        )];
        let mut sources = vec![
            RowSource { name: "inserted", columns: changes.columns },
            RowSource { name: "deleted", columns: changes.columns },
        ];
        if let Some(source) = changes.merged {
            sources.push(RowSource { name: "$merge", columns: &action });
            sources.push(source);
        }
        let (columns, rows) = self.scoped(frame, |_, context| {
            let items = query::items_over_rows(&output.items, &sources, context)?;
            let mut rows = Vec::with_capacity(changes.rows.len());
            for row in &changes.rows {
                let mut given = vec![row.after.clone(), row.before.clone()];
                if changes.merged.is_some() {
                    given.push(Some(Arc::from([Value::text(row.action)])));
                    given.push(row.source.clone());
                }
                rows.push(items.values(&given, context)?);
            }
            Ok((items.columns().to_vec(), rows))
        })?;
        let Some((into, names)) = &output.into else {
            go_on(self.replies.columns(&columns))?;
            for row in &rows {
                go_on(self.replies.row(row))?;
            }
            return Ok(());
        };
        let place = self.place(into, frame)?;
        let mut targets = Vec::new();
        if names.is_empty() {
            let writable = place.columns.iter().filter(|column| !is_generated(column));
            targets.extend(writable.filter(|column| !column.identity).cloned());
        }
        for name in names {
            targets.push(place.column(name)?.1.clone());
        }
        if targets.len() != columns.len() {
            return Err(SqlError::new(
                213,
                "Column name or number of supplied values does not match table definition.",
            )
            .into());
        }
        let mut request = InsertRequest {
            columns: Some(targets.iter().map(|column| column.name.clone()).collect()),
            rows: Vec::with_capacity(rows.len()),
            identity_insert: false,
        };
        let facts = self.facts(frame)?;
        for row in rows {
            let mut fitted = Vec::with_capacity(row.len());
            for ((value, column), target) in row.iter().zip(&columns).zip(&targets) {
                fitted.push(Some(as_column(value, &column.kind, target, &facts)?));
            }
            request.rows.push(fitted);
        }
        self.insert_rows(&place, &request)?;
        Ok(())
    }
}
