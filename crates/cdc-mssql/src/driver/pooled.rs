//! A driver that keeps idle connections: the same for every protocol library.

use std::{fmt, sync::Arc};

use async_trait::async_trait;

use super::{
    Driver, RecordStream, Statement,
    pool::Pool,
    reading::{Batches, started},
};
use crate::{config::MssqlConfig, fault::Fault};

/// A connection of one protocol library.
#[async_trait]
pub(crate) trait Wire: fmt::Debug + Send + Sized + 'static {
    /// Connects and logs in, within the time that the settings allow.
    async fn connect(config: &MssqlConfig) -> Result<Self, Fault>;

    /// Runs a statement and sends its batches. When it returns without a fault, the answer was read
    /// to its end.
    async fn pump(
        &mut self,
        statement: &Statement,
        config: &MssqlConfig,
        batches: &Batches,
    ) -> Result<(), Fault>;
}

/// A driver on connections of a library.
#[derive(Debug)]
pub(crate) struct Pooled<C> {
    config: Arc<MssqlConfig>,
    pool: Arc<Pool<C>>,
}

impl<C: Wire> Pooled<C> {
    pub(crate) fn new(config: Arc<MssqlConfig>) -> Self {
        let pool = Arc::new(Pool::new(config.idle_connections_max));
        Self { config, pool }
    }
}

#[async_trait]
impl<C: Wire> Driver for Pooled<C> {
    async fn run(&self, statement: Arc<Statement>) -> Result<RecordStream, Fault> {
        let mut connection = match self.pool.take() {
            Some(connection) => connection,
            None => C::connect(&self.config).await?,
        };
        let (pool, config) = (Arc::clone(&self.pool), Arc::clone(&self.config));
        Ok(started(|batches| {
            Box::pin(async move {
                // After a fault the connection is dropped.
                connection.pump(&statement, &config, &batches).await?;
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
