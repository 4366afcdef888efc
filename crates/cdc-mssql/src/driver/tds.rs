//! The driver on tiberius: statements on connections of their own, rows into batches as they come.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_core::{Error, ErrorKind};
use futures_util::{FutureExt, StreamExt, stream};
use tiberius::{Column, Query, QueryItem, QueryStream, Row, numeric::Numeric};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use super::{
    Driver, Matching, Parameter, RecordStream, Statement,
    cell::append,
    column::BatchBuilder,
    connection::{Connection, connect},
    pool::Pool,
};
use crate::{config::MssqlConfig, fault::Fault};

/// Batches that wait between connection and reader: one is read while the next is filled.
const BATCHES_WAITING_MAX: usize = 1;

/// A driver on tiberius.
#[derive(Debug)]
pub(crate) struct Tds {
    config: Arc<MssqlConfig>,
    pool: Arc<Pool<Connection>>,
}

impl Tds {
    pub(crate) fn new(config: Arc<MssqlConfig>) -> Self {
        let pool = Arc::new(Pool::new(config.idle_connections_max));
        Self { config, pool }
    }
}

#[async_trait]
impl Driver for Tds {
    async fn run(&self, statement: Arc<Statement>) -> Result<RecordStream, Fault> {
        let connection = match self.pool.take() {
            Some(connection) => connection,
            None => Box::pin(connect(&self.config)).await?,
        };
        let (sender, receiver) = mpsc::channel(BATCHES_WAITING_MAX);
        let (pool, config) = (Arc::clone(&self.pool), Arc::clone(&self.config));
        let task = tokio::spawn(Box::pin(async move {
            let mut connection = connection;
            match pump(&mut connection, &statement, &config, &sender).await {
                // Kept before the reader learns of the end: its next statement finds it.
                Ok(()) => pool.put(connection),
                Err(fault) => {
                    drop(connection);
                    sender.send(Err(fault)).await.ok();
                }
            }
        }));
        let reading = Reading { receiver, task };
        Ok(Box::pin(stream::unfold(reading, |mut reading| async move {
            reading.receiver.recv().await.map(|item| (item, reading))
        })))
    }

    fn forget_idle(&self) {
        self.pool.clear();
    }
}

/// The reader's end. Dropped early, it ends the statement together with its connection.
struct Reading {
    receiver: mpsc::Receiver<Result<RecordBatch, Fault>>,
    task: JoinHandle<()>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs a statement and sends its batches. When it returns without a fault, the answer was read to
/// its end.
async fn pump(
    connection: &mut Connection,
    statement: &Statement,
    config: &MssqlConfig,
    sender: &mpsc::Sender<Result<RecordBatch, Fault>>,
) -> Result<(), Fault> {
    let schema = statement.schema()?;
    let mut batch = BatchBuilder::new(schema, &statement.columns, statement.batch_rows)?;
    let mut query = Query::new(statement.text.as_str());
    statement.parameters.iter().for_each(|parameter| bind(&mut query, parameter));
    let silent = || Fault::lost("the server is silent").with_setting("source.silence_max");
    let begun = timeout(config.silence_max, query.query(connection)).await;
    let mut items = begun.map_err(|_| silent())??;
    let mut places = Vec::new();
    while let Some(item) = next(&mut items, config).await.ok_or_else(silent)? {
        match item? {
            QueryItem::Metadata(metadata) => places = find(statement, metadata.columns())?,
            QueryItem::Row(row) => {
                add(&mut batch, &row, &places)?;
                if batch.is_full() && sender.send(Ok(batch.take()?)).await.is_err() {
                    return Err(gone());
                }
            }
        }
    }
    if !batch.is_empty() {
        sender.send(Ok(batch.take()?)).await.map_err(|_| gone())?;
    }
    Ok(())
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

fn gone() -> Fault {
    Fault::permanent(Error::new(ErrorKind::Cancelled, "nobody reads the rows any more"))
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

/// The places of the wanted columns in a result.
fn find(statement: &Statement, columns: &[Column]) -> Result<Vec<usize>, Fault> {
    let missing = |name: &str| {
        Fault::permanent(
            Error::new(ErrorKind::InvalidData, "a result lacks a column").with("column", name),
        )
    };
    match statement.matching {
        // A row without columns still has one on the wire.
        Matching::Place if statement.columns.is_empty() => Ok(Vec::new()),
        Matching::Place if columns.len() == statement.columns.len() => {
            Ok((0..columns.len()).collect())
        }
        Matching::Place => Err(Fault::permanent(
            Error::bug("a result has another number of columns than it was asked for")
                .with("asked", statement.columns.len())
                .with("found", columns.len()),
        )),
        Matching::Name => statement
            .columns
            .iter()
            .map(|wanted| {
                let found = columns.iter().position(|own| own.name() == wanted.name);
                found.ok_or_else(|| missing(&wanted.name))
            })
            .collect(),
    }
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

impl Fault {
    fn with_setting(mut self, setting: &str) -> Self {
        self.error = self.error.with("setting", setting);
        self
    }
}
