//! Rows of the tables themselves: key extents and bounds, counts, and streams in key ranges. Only
//! committed rows are read, each batch as the table is at that moment.

use std::ops::Bound;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use cdc_core::{
    Column, Error, ErrorKind, Result, SqlType, TableName,
    change::row_schema,
    port::{BatchStream, KeyRange, KeyTuple, RowRequest, TableReader},
};
use futures_util::stream;

use super::{FakeSource, by_id};
use crate::{
    columnar::{ColumnBuilder, batch, key_cell},
    database::DatabaseState,
    injection::Call,
    instance::slot_of,
    key::{SortKey, sort_key_of},
    log::TableId,
    sql_error::SqlError,
    table::Table,
    value::{Row, Value},
};

static NULL: Value = Value::Null;

#[async_trait]
impl TableReader for FakeSource {
    async fn key_extent(
        &self,
        table: &TableName,
        key: &[String],
    ) -> Result<Option<(KeyTuple, KeyTuple)>> {
        self.ask(Call::KeyExtent, |state| {
            let keyed = self.keyed(state, table, key, &KeyRange::default())?;
            keyed.require_key()?;
            let ends = if keyed.leading {
                let rows = &keyed.table.rows;
                rows.values().next().zip(rows.values().next_back())
            } else {
                let by_key = |row: &&Row| keyed.key_of(row);
                let rows = || keyed.table.rows.values();
                rows().min_by_key(by_key).zip(rows().max_by_key(by_key))
            };
            ends.map(|(first, last)| Ok((keyed.tuple(first)?, keyed.tuple(last)?))).transpose()
        })
        .await
    }

    async fn key_bound(
        &self,
        table: &TableName,
        key: &[String],
        range: &KeyRange,
        rows: u64,
    ) -> Result<Option<KeyTuple>> {
        let rows = usize::try_from(rows).unwrap_or(usize::MAX);
        self.ask(Call::KeyBound, |state| {
            let keyed = self.keyed(state, table, key, range)?;
            keyed.require_key()?;
            let found = if keyed.leading {
                keyed.rows_behind(None).nth(rows).map(|(_, row)| row)
            } else {
                let mut inside: Vec<_> = keyed.rows_behind(None).map(|(_, row)| row).collect();
                inside.sort_by_cached_key(|row| keyed.key_of(row));
                inside.get(rows).copied()
            };
            found.map(|row| keyed.tuple(row)).transpose()
        })
        .await
    }

    async fn count(&self, table: &TableName, key: &[String], range: &KeyRange) -> Result<u64> {
        self.ask(Call::Count, |state| {
            let keyed = self.keyed(state, table, key, range)?;
            Ok(u64::try_from(keyed.rows_behind(None).count()).unwrap_or(u64::MAX))
        })
        .await
    }

    async fn rows(&self, request: RowRequest) -> Result<BatchStream> {
        let schema = row_schema(&request.columns)?;
        let kill = self.database.next_kill(Call::Rows);
        let table = self
            .ask(Call::Rows, |state| {
                self.keyed(state, &request.table, &request.key, &request.range)?;
                Ok(state.table_id(&request.table)?)
            })
            .await?;
        let reader = RowReader { source: self.clone(), table, schema, request, cursor: None, kill };
        Ok(Box::pin(stream::try_unfold(reader, RowReader::next)))
    }
}

/// A table with the key columns of a call and the bounds of its range.
struct Keyed<'a> {
    table: &'a Table,
    columns: Vec<&'a Column>,
    from: Option<SortKey>,
    to: Option<SortKey>,
    /// True when the columns lead the table's own key, so that its order is theirs.
    leading: bool,
}

impl FakeSource {
    fn keyed<'a>(
        &self,
        state: &'a DatabaseState,
        table: &TableName,
        key: &[String],
        range: &KeyRange,
    ) -> Result<Keyed<'a>> {
        let located = |error: Error| error.with("table", table);
        let found = state
            .table_id(table)
            .and_then(|id| state.table(id))
            .map_err(|error| located(Error::from(error)))?;
        state
            .permissions
            .require_select(&self.login, table)
            .map_err(|error| located(Error::from(error)))?;
        let mut columns = Vec::with_capacity(key.len());
        for name in key {
            let slot = found.slot(name).map_err(|error| located(error.into()))?;
            let column = &found.definition(slot).map_err(|error| located(error.into()))?.column;
            if column.sql_type.is_large_object() || matches!(column.sql_type, SqlType::Other(_)) {
                return Err(located(
                    Error::new(ErrorKind::Unsupported, "key column has no order")
                        .with("column", name)
                        .with("type", &column.sql_type),
                ));
            }
            columns.push(column);
        }
        if columns.is_empty() && (range.from.is_some() || range.to.is_some()) {
            return Err(located(no_key()));
        }
        let bound = |tuple: &Option<KeyTuple>| -> Result<Option<SortKey>> {
            let Some(KeyTuple(tuple)) = tuple else {
                return Ok(None);
            };
            let cells = columns
                .iter()
                .map(|column| key_cell(tuple, column))
                .collect::<Result<Vec<_>>>()
                .map_err(located)?;
            let orders = columns.iter().map(|column| found.order_of(slot_of(column)));
            Ok(Some(sort_key_of(cells.iter().zip(orders))))
        };
        let (from, to) = (bound(&range.from)?, bound(&range.to)?);
        let leading = !columns.is_empty()
            && columns.len() <= found.key.len()
            && columns.iter().zip(&found.key).all(|(column, slot)| slot_of(column) == *slot);
        Ok(Keyed { table: found, columns, from, to, leading })
    }
}

fn no_key() -> Error {
    Error::new(ErrorKind::Config, "a key range needs key columns")
        .remedy("name the key columns in the configuration")
}

impl<'a> Keyed<'a> {
    fn require_key(&self) -> Result<()> {
        if self.columns.is_empty() {
            return Err(no_key().with("table", &self.table.name));
        }
        Ok(())
    }

    fn key_of(&self, row: &Row) -> SortKey {
        sort_key_of(self.columns.iter().map(|column| {
            let slot = slot_of(column);
            (row.get(slot).unwrap_or(&NULL), self.table.order_of(slot))
        }))
    }

    fn contains(&self, row: &Row) -> bool {
        if self.leading || (self.from.is_none() && self.to.is_none()) {
            return true;
        }
        let key = self.key_of(row);
        self.from.as_ref().is_none_or(|from| *from <= key)
            && self.to.as_ref().is_none_or(|to| key < *to)
    }

    /// The rows of the range behind a cursor, in the table's own order.
    fn rows_behind(
        &self,
        cursor: Option<&SortKey>,
    ) -> Box<dyn Iterator<Item = (&'a SortKey, &'a Row)> + '_> {
        let (from, to) =
            if self.leading { (self.from.as_ref(), self.to.as_ref()) } else { (None, None) };
        let lower = match (cursor, from) {
            (Some(cursor), _) => Bound::Excluded(cursor),
            (None, Some(from)) => Bound::Included(from),
            (None, None) => Bound::Unbounded,
        };
        // An inverted range holds nothing; the map would panic on it.
        let start = match lower {
            Bound::Included(key) | Bound::Excluded(key) => Some(key),
            Bound::Unbounded => None,
        };
        if start.zip(to).is_some_and(|(start, to)| start >= to) {
            return Box::new(std::iter::empty());
        }
        let upper = to.map_or(Bound::Unbounded, Bound::Excluded);
        Box::new(
            self.table
                .rows
                .range::<SortKey, _>((lower, upper))
                .filter(|(_, row)| self.contains(row)),
        )
    }

    fn tuple(&self, row: &Row) -> Result<KeyTuple> {
        let columns: Vec<Column> = self.columns.iter().map(|column| (*column).clone()).collect();
        let schema = row_schema(&columns)?;
        let mut arrays = Vec::with_capacity(columns.len());
        for column in &columns {
            let mut builder = ColumnBuilder::new(column, 1)?;
            builder.append(row.get(slot_of(column)).unwrap_or(&NULL))?;
            arrays.push(builder.finish());
        }
        batch(&schema, arrays).map(KeyTuple)
    }
}

/// A stream's place in a table.
struct RowReader {
    source: FakeSource,
    table: TableId,
    schema: SchemaRef,
    request: RowRequest,
    cursor: Option<SortKey>,
    /// Rows until the connection is killed.
    kill: Option<u64>,
}

impl RowReader {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>> {
        self.source.enter(Call::RowBatch).await?;
        let limit = self.request.batch_rows.max(1);
        let limit = match self.kill {
            Some(0) => return Err(self.killed()),
            Some(rows) => limit.min(usize::try_from(rows).unwrap_or(usize::MAX)),
            None => limit,
        };
        let (rows, present) = self.fetch(limit)?;
        self.source.leave(Call::RowBatch);
        if rows.is_empty() {
            return match self.kill {
                Some(_) => Err(self.killed()),
                None => Ok(None),
            };
        }
        if let Some(left) = &mut self.kill {
            *left = left.saturating_sub(u64::try_from(rows.len()).unwrap_or(u64::MAX));
        }
        let batch = self.build(&rows, &present)?;
        Ok(Some((batch, self)))
    }

    fn killed(&self) -> Error {
        Error::from(SqlError::killed()).with("table", &self.request.table)
    }

    /// The next rows, and for each column wanted whether the table still has it.
    fn fetch(&mut self, limit: usize) -> Result<(Vec<Row>, Vec<bool>)> {
        let state = self.source.database.state();
        let request = &self.request;
        let current = state.table(self.table)?;
        let keyed = self.source.keyed(&state, &current.name, &request.key, &request.range)?;
        let mut last = None;
        let rows = keyed
            .rows_behind(self.cursor.as_ref())
            .take(limit)
            .map(|(key, row)| {
                last = Some(key);
                row.clone()
            })
            .collect();
        let present = request
            .columns
            .iter()
            .map(|wanted| by_id(current.live_columns(), wanted).is_some())
            .collect();
        let last = last.cloned();
        if last.is_some() {
            self.cursor = last;
        }
        Ok((rows, present))
    }

    fn build(&self, rows: &[Row], present: &[bool]) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.request.columns.len());
        for (column, present) in self.request.columns.iter().zip(present) {
            let mut builder = ColumnBuilder::new(column, rows.len())?;
            let slot = slot_of(column);
            for row in rows {
                let value = row.get(slot).filter(|_| *present).unwrap_or(&NULL);
                builder.append(value).map_err(|error| error.with("table", &self.request.table))?;
            }
            arrays.push(builder.finish());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)
            .map_err(|error| Error::bug("columns do not make a batch").caused_by(error))
    }
}
