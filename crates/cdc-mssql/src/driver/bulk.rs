//! The driver on Microsoft's `mssql-tds`, for results of many rows: the decoder pushes the cells of
//! the wire into the columns of the batch, and no row is ever there as a row.

mod cells;
mod connection;
mod fault;
mod parameter;

use std::pin::pin;

use async_trait::async_trait;
use futures_util::FutureExt;
use mssql_tds::connection::tds_client::{BufferedRowPoll, ResultSet, StatementResult, TdsClient};
use tokio::time::timeout;

use self::{cells::Cells, connection::connect};
use super::{
    Statement,
    column::BatchBuilder,
    pooled::{Pooled, Wire},
    reading::Batches,
};
use crate::{config::MssqlConfig, fault::Fault};

/// A driver on `mssql-tds`.
pub(crate) type Bulk = Pooled<Connection>;

/// A logged-in connection.
pub(crate) struct Connection(Box<TdsClient>);

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}

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
        let client = &mut *self.0;
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
