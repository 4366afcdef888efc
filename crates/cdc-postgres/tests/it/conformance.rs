//! The sink passes the suite that every sink passes, on a real server.

use std::{future::Future, sync::Arc};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_conformance::{CaseResult, Outcome, sink::SinkHarness};
use cdc_core::{Result, TableSpec, port::Sink};
use cdc_postgres::PostgresConfig;

use crate::{
    private_server::Server,
    support::{block_on, config, new_schema, port, rows, shared},
};

/// A schema of the shared server.
struct Schema {
    server: &'static Server,
    config: PostgresConfig,
}

#[async_trait]
impl SinkHarness for Schema {
    async fn sink(&self) -> Arc<dyn Sink> {
        port(&self.config)
    }

    async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
        Ok(rows(self.server, &self.config.schema, &spec.name).await)
    }

    fn keeps_nul_in_text(&self) -> bool {
        false
    }
}

/// An empty schema; the machine has a server when this is called.
fn schema(stage_bytes_max: Option<usize>) -> Schema {
    let server = shared().expect("a server");
    let mut config = config(server, &new_schema());
    if let Some(bytes) = stage_bytes_max {
        config.stage_bytes_max = bytes;
    }
    Schema { server, config }
}

/// Runs a case, unless the machine has no server.
fn run(case: impl Future<Output = CaseResult>) -> CaseResult {
    match shared() {
        Some(_) => block_on(case),
        None => Ok(Outcome::Skipped("no PostgreSQL on this machine".into())),
    }
}

mod in_one_piece {
    use super::*;

    cdc_conformance::sink_suite! {
        harness: async || schema(None),
        block_on: run,
    }
}

/// Every call to `stage` goes to the server at once, as a piece of its own.
mod in_many_pieces {
    use super::*;

    cdc_conformance::sink_suite! {
        harness: async || schema(Some(1)),
        block_on: run,
    }
}
