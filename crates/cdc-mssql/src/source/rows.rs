//! Rows of the tables themselves, in ranges of their keys.

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_core::{
    Error, ErrorKind, Result, SqlType, TableName,
    change::row_schema,
    port::{BatchStream, KeyRange, KeyTuple, RowRequest, TableReader},
};
use futures_util::stream;

use super::{MssqlSource, catalog::TableColumn};
use crate::{
    driver::{Form, ResultColumn},
    name::{Identifier, ObjectName},
    server::told,
    sql::{
        self,
        key_range::{KeyColumn, Pieces, pieces},
        row,
    },
};

/// A table with the key columns of a call.
struct Keyed {
    object: ObjectName,
    columns: Vec<TableColumn>,
    key: Vec<KeyColumn>,
}

#[async_trait]
impl TableReader for MssqlSource {
    async fn key_extent(
        &self,
        table: &TableName,
        key: &[String],
    ) -> Result<Option<(KeyTuple, KeyTuple)>> {
        let keyed = self.keyed(table, key).await?;
        keyed.require_key(table)?;
        let statement = row::key_extent(&keyed.object, &keyed.key, keyed.key_columns());
        let statement = self.isolated(statement);
        let keys = self.keys(table, statement).await?;
        // One row alone: the table was emptied between the two.
        match <[KeyTuple; 2]>::try_from(keys) {
            Ok([first, last]) => Ok(Some((first, last))),
            Err(_) => Ok(None),
        }
    }

    async fn key_bound(
        &self,
        table: &TableName,
        key: &[String],
        range: &KeyRange,
        rows: u64,
    ) -> Result<Option<KeyTuple>> {
        let keyed = self.keyed(table, key).await?;
        keyed.require_key(table)?;
        let pieces = keyed.pieces(table, range)?;
        let Ok(rows) = i64::try_from(rows) else { return Ok(None) };
        if pieces.predicates.is_empty() {
            return Ok(None);
        }
        let columns = keyed.key_columns();
        let statement = row::key_bound(&keyed.object, &keyed.key, columns, pieces, rows);
        let statement = self.isolated(statement);
        Ok(self.keys(table, statement).await?.into_iter().next())
    }

    async fn count(&self, table: &TableName, key: &[String], range: &KeyRange) -> Result<u64> {
        let keyed = self.keyed(table, key).await?;
        let pieces = keyed.pieces(table, range)?;
        if pieces.predicates.is_empty() {
            return Ok(0);
        }
        let statement = self.isolated(row::count(&keyed.object, pieces));
        let answer = match self.ask(statement).await {
            Ok(answer) => answer,
            Err(fault) => return Err(self.table_error(table, fault).await),
        };
        let mut sum = 0_u64;
        for row in answer.rows() {
            let rows = row.int(0)?.and_then(|rows| u64::try_from(rows).ok());
            sum = sum.saturating_add(rows.ok_or_else(|| Error::bug("a count is no number"))?);
        }
        Ok(sum)
    }

    async fn rows(&self, request: RowRequest) -> Result<BatchStream> {
        let table = request.table;
        row_schema(&request.columns)?;
        let keyed = self.keyed(&table, &request.key).await?;
        let pieces = keyed.pieces(&table, &request.range)?;
        if pieces.predicates.is_empty() {
            return Ok(Box::pin(stream::empty()));
        }
        let columns = request
            .columns
            .iter()
            .map(|wanted| {
                let own = keyed.columns.iter().find(|own| own.column.id == wanted.id);
                let expression = match own {
                    Some(own) => {
                        let name = Identifier::new(&own.column.name)?;
                        sql::column::read("t", &name, &own.column.sql_type)
                    }
                    // The table no longer has it.
                    None => "CAST(NULL AS int)".to_owned(),
                };
                let form = Form::Sql(wanted.sql_type.clone());
                Ok((expression, ResultColumn::new(&wanted.name, form)))
            })
            .collect::<Result<Vec<_>>>()
            .map_err(|error| error.with("table", &table))?;
        let statement = row::rows(&keyed.object, columns, pieces, request.batch_rows.max(1));
        let statement = self.isolated(statement);
        match self.server.stream(statement).await {
            Ok(batches) => Ok(told(batches, move |error| error.with("table", &table))),
            Err(fault) => Err(self.table_error(&table, fault).await),
        }
    }
}

impl MssqlSource {
    async fn keyed(&self, table: &TableName, key: &[String]) -> Result<Keyed> {
        let columns = self.table_columns(table).await?;
        let key = key
            .iter()
            .map(|name| key_column(&columns, name))
            .collect::<Result<_>>()
            .map_err(|error| error.with("table", table))?;
        Ok(Keyed { object: ObjectName::of_table(table)?, columns, key })
    }

    /// A read of a table's rows as the settings want it.
    fn isolated(&self, statement: crate::driver::Statement) -> crate::driver::Statement {
        row::isolated(statement, self.config.isolation, self.config.lock_timeout)
    }

    /// The keys of an answer, a batch of one row each.
    async fn keys(
        &self,
        table: &TableName,
        statement: crate::driver::Statement,
    ) -> Result<Vec<KeyTuple>> {
        let batches = match self.server.ask(statement).await {
            Ok(batches) => batches,
            Err(fault) => return Err(self.table_error(table, fault).await),
        };
        let rows = |batch: &RecordBatch| {
            let batch = batch.clone();
            (0..batch.num_rows()).map(move |row| KeyTuple(batch.slice(row, 1)))
        };
        Ok(batches.iter().flat_map(rows).collect())
    }
}

impl Keyed {
    fn require_key(&self, table: &TableName) -> Result<()> {
        if self.key.is_empty() { Err(no_key().with("table", table)) } else { Ok(()) }
    }

    fn pieces(&self, table: &TableName, range: &KeyRange) -> Result<Pieces> {
        let located = |error: Error| error.with("table", table);
        if self.key.is_empty() && (range.from.is_some() || range.to.is_some()) {
            return Err(located(no_key()));
        }
        pieces(&self.key, range).and_then(row::checked).map_err(located)
    }

    fn key_columns(&self) -> Vec<(String, ResultColumn)> {
        let read = |column: &KeyColumn| {
            let expression = sql::column::read("t", &column.name, &column.sql_type);
            let form = Form::Sql(column.sql_type.clone());
            (expression, ResultColumn::new(&column.plain, form))
        };
        self.key.iter().map(read).collect()
    }
}

fn no_key() -> Error {
    Error::new(ErrorKind::Config, "a key range needs key columns")
        .remedy("name the key columns in the configuration")
}

/// The column of a key: by its exact name, or by the only one that differs in case alone.
fn key_column(columns: &[TableColumn], name: &str) -> Result<KeyColumn> {
    let alike = || {
        let mut alike =
            columns.iter().filter(|own| own.column.name.to_lowercase() == name.to_lowercase());
        alike.next().filter(|_| alike.next().is_none())
    };
    let exact = columns.iter().find(|own| own.column.name == name);
    let own = exact.or_else(alike).ok_or_else(|| {
        Error::new(ErrorKind::Config, "the table has no such column").with("column", name)
    })?;
    let column = &own.column;
    if column.sql_type.is_large_object() || matches!(column.sql_type, SqlType::Other(_)) {
        return Err(Error::new(ErrorKind::Unsupported, "key column has no order")
            .with("column", name)
            .with("type", &column.sql_type));
    }
    let word = |name: &&String| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    Ok(KeyColumn {
        name: Identifier::new(&column.name)?,
        plain: column.name.clone(),
        sql_type: column.sql_type.clone(),
        nullable: column.nullable,
        collation: own.collation.as_ref().filter(word).cloned(),
    })
}
