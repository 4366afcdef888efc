//! Statements at the server, tried again where an error may pass. A statement is tried again only
//! while none of its rows was handed over, so no row is repeated or left out.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
};

use arrow_array::RecordBatch;
use backon::{BackoffBuilder, ExponentialBuilder};
use cdc_core::{Error, Result, port::BatchStream};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::{
    config::RetryBudget,
    driver::{Driver, RecordStream, Statement},
    fault::Fault,
};

/// Rows of an answer that is kept in memory whole: names, columns, positions. More of them mean
/// that something is asked which should be streamed.
const WHOLE_ROWS_MAX: usize = 1_000_000;

/// A server behind its drivers.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    driver: Arc<dyn Driver>,
    /// The driver of results with many rows.
    bulk: Arc<dyn Driver>,
    budget: RetryBudget,
}

impl Server {
    pub(crate) fn new(driver: Arc<dyn Driver>, bulk: Arc<dyn Driver>, budget: RetryBudget) -> Self {
        Self { driver, bulk, budget }
    }

    /// The whole answer. It is tried again as a whole.
    pub(crate) async fn ask(&self, statement: Statement) -> Result<Vec<RecordBatch>, Fault> {
        let statement = Arc::new(statement);
        self.patiently(|| async {
            let mut rows = 0;
            let mut batches = Vec::new();
            let mut stream = self.driver.run(Arc::clone(&statement)).await?;
            while let Some(batch) = stream.try_next().await? {
                rows += batch.num_rows();
                if rows > WHOLE_ROWS_MAX {
                    return Err(Fault::permanent(
                        Error::bug("an answer has too many rows").with("rows_max", WHOLE_ROWS_MAX),
                    ));
                }
                batches.push(batch);
            }
            Ok(batches)
        })
        .await
    }

    /// The answer as a stream. It is tried again until its first batch is there; later faults are
    /// the last item.
    pub(crate) async fn stream(&self, statement: Statement) -> Result<RecordStream, Fault> {
        let statement = Arc::new(statement);
        let (first, rest) = self
            .patiently(|| async {
                let mut stream = self.bulk.run(Arc::clone(&statement)).await?;
                let first = stream.try_next().await?;
                Ok((first, stream))
            })
            .await?;
        let Some(first) = first else { return Ok(Box::pin(stream::empty())) };
        Ok(Box::pin(stream::once(async { Ok(first) }).chain(rest)))
    }

    async fn patiently<T, F>(&self, run: impl Fn() -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let tries = usize::try_from(self.budget.attempts_max.max(1)).unwrap_or(usize::MAX);
        let mut pauses = ExponentialBuilder::new()
            .with_min_delay(self.budget.pause_first)
            .with_max_delay(self.budget.pause_max)
            .with_max_times(tries - 1)
            .with_jitter()
            .with_jitter_seed(seed())
            .build();
        loop {
            let fault = match run().await {
                Ok(done) => return Ok(done),
                Err(fault) => fault,
            };
            if fault.transient {
                // What ended one connection has often ended all of them.
                self.driver.forget_idle();
                self.bulk.forget_idle();
                if let Some(pause) = pauses.next() {
                    let reason = fault.error.report();
                    tracing::warn!(reason, ?pause, "trying again on a new connection");
                    tokio::time::sleep(pause).await;
                    continue;
                }
            }
            return Err(fault);
        }
    }
}

/// A number that differs from process to process and from call to call, so that clients of one
/// server do not come back at the same moment.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The stream with the port's errors, each told where it happened.
pub(crate) fn told(
    stream: RecordStream,
    place: impl Fn(Error) -> Error + Send + 'static,
) -> BatchStream {
    Box::pin(stream.map_err(move |fault| place(fault.into())))
}

#[cfg(test)]
mod tests;
