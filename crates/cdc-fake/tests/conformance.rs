//! The in-memory sink passes the sink suite, in every form it has.

#![allow(clippy::expect_used)]

use std::{future::Future, sync::Arc};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_conformance::sink::SinkHarness;
use cdc_core::{
    Result, TableSpec, Timestamp,
    port::{Sink, SinkCapabilities},
};
use cdc_fake::{
    VirtualClock,
    faults::{FaultPlan, FaultySink},
    memory_sink::MemoryTarget,
};

/// An in-memory target. A crash takes nothing away: what is durable is the target itself.
struct Memory(MemoryTarget);

#[async_trait]
impl SinkHarness for Memory {
    async fn sink(&self) -> Arc<dyn Sink> {
        Arc::new(self.0.open())
    }

    async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
        self.0.rows(&spec.name)
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    futures_util::future::FutureExt::now_or_never(future).expect("nothing in memory waits")
}

mod a_history {
    use super::*;

    cdc_conformance::sink_suite! {
        harness: async || Memory(MemoryTarget::new()),
        block_on: block_on,
    }
}

mod the_least_capable_history {
    use super::*;

    cdc_conformance::sink_suite! {
        harness: async || Memory(MemoryTarget::with_capabilities(SinkCapabilities::least())),
        block_on: block_on,
    }
}

mod behind_a_plan_without_faults {
    use super::*;

    struct Wrapped(MemoryTarget, FaultPlan);

    #[async_trait]
    impl SinkHarness for Wrapped {
        async fn sink(&self) -> Arc<dyn Sink> {
            Arc::new(FaultySink::new(Arc::new(self.0.open()), &self.1))
        }

        async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
            self.0.rows(&spec.name)
        }
    }

    fn wrapped() -> Wrapped {
        let clock = VirtualClock::manual(Timestamp::from_micros(0));
        Wrapped(MemoryTarget::new(), FaultPlan::new(Arc::new(clock)))
    }

    cdc_conformance::sink_suite! {
        harness: async || wrapped(),
        block_on: block_on,
    }
}

mod one_row_a_key {
    use super::*;

    fn keyed() -> SinkCapabilities {
        SinkCapabilities::least().with_one_row_a_key().with_add_columns().with_verdict()
    }

    cdc_conformance::sink_suite! {
        harness: async || Memory(MemoryTarget::with_capabilities(keyed())),
        block_on: block_on,
    }
}
