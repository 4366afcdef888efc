//! The driver on Microsoft's `mssql-tds`, for results of many rows: the decoder pushes the cells of
//! the wire into the columns of the batch, and no row is ever there as a row.

mod cells;
mod connection;
mod fault;
mod parameter;

use std::{pin::pin, sync::Arc};

use async_trait::async_trait;
use futures_util::FutureExt;
use mssql_tds::connection::tds_client::{BufferedRowPoll, ResultSet, StatementResult, TdsClient};
use tokio::time::timeout;

use self::{cells::Cells, connection::connect};
use super::{
    Driver, RecordStream, Statement,
    column::BatchBuilder,
    pool::Pool,
    reading::{Batches, started},
};
use crate::{config::MssqlConfig, fault::Fault};

/// A driver on `mssql-tds`.
#[derive(Debug)]
pub(crate) struct Bulk {
    config: Arc<MssqlConfig>,
    pool: Arc<Pool<Connection>>,
}

/// A logged-in connection.
struct Connection(Box<TdsClient>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

impl Bulk {
    pub(crate) fn new(config: Arc<MssqlConfig>) -> Self {
        let pool = Arc::new(Pool::new(config.idle_connections_max));
        Self { config, pool }
    }
}

#[async_trait]
impl Driver for Bulk {
    async fn run(&self, statement: Arc<Statement>) -> Result<RecordStream, Fault> {
        let mut connection = match self.pool.take() {
            Some(connection) => connection,
            None => Box::pin(connect(&self.config)).await?,
        };
        let (pool, config) = (Arc::clone(&self.pool), Arc::clone(&self.config));
        Ok(started(|batches| {
            Box::pin(async move {
                // After a fault the connection is dropped.
                pump(&mut connection.0, &statement, &config, &batches).await?;
                // Kept before the reader learns of the end: its next statement finds it.
                pool.put(connection);
                Ok(())
            })
        }))
    }

    fn forget_idle(&self) {
        self.pool.clear();
    }
}

/// Runs a statement and sends its batches. When it returns without a fault, the answer was read to
/// its end.
async fn pump(
    client: &mut TdsClient,
    statement: &Statement,
    config: &MssqlConfig,
    batches: &Batches,
) -> Result<(), Fault> {
    let schema = statement.schema()?;
    let mut batch = BatchBuilder::new(schema, &statement.columns, statement.batch_rows)?;
    let parameters = parameter::all(&statement.parameters)?;
    let begun = client.execute_sp_executesql(statement.text.clone(), parameters, ());
    let mut result = within(config, begun).await?;
    loop {
        match result {
            StatementResult::Rows => {
                rows(client, statement, config, &mut batch, batches).await?;
            }
            StatementResult::End => break,
            _ => {}
        }
        result = within(config, client.advance()).await?;
    }
    within(config, client.close_query()).await?;
    batches.send_rest(&mut batch).await
}

/// Reads the rows of one result.
async fn rows(
    client: &mut TdsClient,
    statement: &Statement,
    config: &MssqlConfig,
    batch: &mut BatchBuilder,
    batches: &Batches,
) -> Result<(), Fault> {
    let metadata = client.get_metadata();
    let places = statement.places(metadata.iter().map(|column| column.column_name.as_str()))?;
    let mut cells = Cells::new(batch, &places, metadata.len());
    loop {
        // Most rows are there whole.
        let is_row = match client.try_next_buffered_row_into(&mut cells)? {
            BufferedRowPoll::Complete => true,
            BufferedRowPoll::Exhausted => false,
            BufferedRowPoll::Partial => {
                within(config, client.finish_row_into(&mut cells)).await?;
                true
            }
            BufferedRowPoll::Pending => {
                // Its state is inside: a row that has begun must be read by the same future.
                let mut row = pin!(client.next_row_into(&mut cells));
                // What has come is taken without a timer for each row.
                match row.as_mut().now_or_never() {
                    Some(row) => row?,
                    None => within(config, row).await?,
                }
            }
        };
        cells.check()?;
        if !is_row {
            return Ok(());
        }
        batches.send_full(cells.batch()).await?;
    }
}

/// What the server answers, unless it says nothing for too long.
async fn within<T>(
    config: &MssqlConfig,
    answer: impl Future<Output = Result<T, mssql_tds::error::Error>>,
) -> Result<T, Fault> {
    match timeout(config.silence_max, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Fault::silence()),
    }
}
