//! The model passes the suite that the server passes: what the simulation rests on.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_conformance::{Cell, cell::array, sink::SinkHarness};
use cdc_core::{Result, TableSpec, port::Sink};

use super::{ModelStore, decode};
use crate::{config::NulInText, sink::PostgresSink, table::Limits};

struct Harness(ModelStore, usize);

#[async_trait]
impl SinkHarness for Harness {
    async fn sink(&self) -> Arc<dyn Sink> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let limits = Limits { stage_bytes_max: self.1, nul_in_text: NulInText::Refuse };
        let drawn = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(PostgresSink::on(Arc::new(self.0.clone()), limits, drawn))
    }

    async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
        let database = self.0.open();
        let Some(target) = database.targets.get(&spec.name) else { return Ok(Vec::new()) };
        let columns = target.columns.iter().enumerate().map(|(place, column)| {
            let cell = |bytes: &Vec<u8>| decode::cell(&column.column_type, bytes);
            let live = target.rows.values().filter(|row| !row.deleted);
            let cells: Vec<_> =
                live.map(|row| row.cells[place].as_ref().map_or(Cell::Null, cell)).collect();
            let values = array(&decode::arrow(&column.column_type), &cells).expect("cells fit");
            (column.name.clone(), values, true)
        });
        Ok(vec![RecordBatch::try_from_iter_with_nullable(columns).expect("columns fit")])
    }

    fn keeps_nul_in_text(&self) -> bool {
        false
    }
}

fn harness(stage_bytes_max: usize) -> Harness {
    Harness(ModelStore::new(Arc::new(|| None)), stage_bytes_max)
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    runtime.expect("a runtime").block_on(future)
}

mod in_one_piece {
    use super::*;

    cdc_conformance::sink_suite! { harness: async || harness(32 << 20), block_on: block_on }
}

mod in_many_pieces {
    use super::*;

    cdc_conformance::sink_suite! { harness: async || harness(1), block_on: block_on }
}
