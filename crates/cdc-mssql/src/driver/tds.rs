//! The driver on tiberius: statements on connections of their own, rows into batches as they come.

use async_trait::async_trait;
use cdc_core::{Error, ErrorKind};
use futures_util::{FutureExt, StreamExt};
use tiberius::{Column, Query, QueryItem, QueryStream, Row, numeric::Numeric};
use tokio::time::timeout;

use super::{
    Parameter, Statement,
    cell::append,
    column::BatchBuilder,
    connection::{Connection, connect},
    pooled::{Pooled, Wire},
    reading::Batches,
};
use crate::{config::MssqlConfig, fault::Fault};

/// A driver on tiberius.
pub(crate) type Tds = Pooled<Connection>;

#[async_trait]
impl Wire for Connection {
    async fn connect(config: &MssqlConfig) -> Result<Self, Fault> {
        connect(config).await
    }

    async fn pump(
        &mut self,
        statement: &Statement,
        config: &MssqlConfig,
        batches: &Batches,
    ) -> Result<(), Fault> {
        let schema = statement.schema()?;
        let mut batch = BatchBuilder::new(schema, &statement.columns, statement.batch_rows)?;
        let mut query = Query::new(statement.text.as_str());
        statement.parameters.iter().for_each(|parameter| bind(&mut query, parameter));
        let begun = timeout(config.silence_max, query.query(self)).await;
        let mut items = begun.map_err(|_| Fault::silence())??;
        let mut places = Vec::new();
        while let Some(item) = next(&mut items, config).await.ok_or_else(Fault::silence)? {
            match item? {
                QueryItem::Metadata(metadata) => {
                    places = statement.places(metadata.columns().iter().map(Column::name))?;
                }
                QueryItem::Row(row) => {
                    add(&mut batch, &row, &places)?;
                    batches.send_full(&mut batch).await?;
                }
            }
        }
        batches.send_rest(&mut batch).await
    }
}

/// The next item; none after a silence that was too long.
async fn next(
    items: &mut QueryStream<'_>,
    config: &MssqlConfig,
) -> Option<Option<Result<QueryItem, tiberius::error::Error>>> {
    // Rows that have come are taken without a timer for each.
    match items.next().now_or_never() {
        Some(item) => Some(item),
        None => timeout(config.silence_max, items.next()).await.ok(),
    }
}

fn add(batch: &mut BatchBuilder, row: &Row, places: &[usize]) -> Result<(), Fault> {
    let mut short = false;
    let added = batch.row(|at, column| {
        let cell = places.get(at).and_then(|place| row.get_column_data(*place).ok());
        match cell {
            Some(cell) => append(cell, column),
            None => {
                short = true;
                Ok(())
            }
        }
    });
    if short {
        return Err(Fault::permanent(Error::new(
            ErrorKind::InvalidData,
            "a row has fewer columns than it was said to have",
        )));
    }
    Ok(added?)
}

fn bind<'a>(query: &mut Query<'a>, parameter: &'a Parameter) {
    match parameter {
        Parameter::Text(text) => query.bind(text.as_str()),
        Parameter::Int(number) => query.bind(*number),
        Parameter::Bit(bit) => query.bind(*bit),
        Parameter::Real(number) => query.bind(*number),
        Parameter::Float(number) => query.bind(*number),
        Parameter::Decimal(digits, scale) => query.bind(Numeric::new_with_scale(*digits, *scale)),
        Parameter::Bytes(bytes) => query.bind(bytes.as_slice()),
    }
}
