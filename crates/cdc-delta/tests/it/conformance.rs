//! The sink passes the suite that every sink passes, in memory and on local files.

use std::sync::Arc;

use arrow_array::RecordBatch;
use async_trait::async_trait;
use cdc_conformance::sink::SinkHarness;
use cdc_core::{Result, TableSpec, port::Sink};
use cdc_delta::{DeltaConfig, DeltaSink};
use object_store::{ObjectStore, local::LocalFileSystem, memory::InMemory};
use url::Url;

use crate::support::{Numbers, Ticking, block_on, open, place, read, settings};

struct InMemoryRoot(Arc<dyn ObjectStore>);

#[async_trait]
impl SinkHarness for InMemoryRoot {
    async fn sink(&self) -> Arc<dyn Sink> {
        Arc::new(open(&self.0, settings(), rand_seed()))
    }

    async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
        rows(&self.0, &place(&format!("bronze/{}", spec.name))).await
    }
}

/// Local files, the kernel's calls on the pool.
struct LocalRoot(tempfile::TempDir);

#[async_trait]
impl SinkHarness for LocalRoot {
    async fn sink(&self) -> Arc<dyn Sink> {
        let config = DeltaConfig::new(self.0.path().display().to_string());
        let numbers = Arc::new(Numbers::new(rand_seed()));
        Arc::new(DeltaSink::new(config, Arc::new(Ticking::default()), numbers).expect("a root"))
    }

    async fn rows(&self, spec: &TableSpec) -> Result<Vec<RecordBatch>> {
        let dir = self.0.path().join("bronze").join(&spec.name);
        let location = Url::from_directory_path(dir).expect("absolute");
        let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new());
        rows(&store, &location).await
    }
}

async fn rows(store: &Arc<dyn ObjectStore>, location: &Url) -> Result<Vec<RecordBatch>> {
    use futures_util::StreamExt;
    let root = object_store::path::Path::from_url_path(location.path()).expect("a path");
    if store.list(Some(&root)).next().await.is_none() {
        return Ok(Vec::new());
    }
    Ok(read(store, location).await)
}

/// Each handle draws its names from other numbers.
fn rand_seed() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1 << 32, Ordering::Relaxed)
}

mod in_memory {
    use super::*;

    cdc_conformance::sink_suite! {
        harness: async || InMemoryRoot(Arc::new(InMemory::new())),
        block_on: block_on,
    }
}

mod local_files {
    use super::*;

    cdc_conformance::sink_suite! {
        harness: async || LocalRoot(tempfile::tempdir().expect("a directory")),
        block_on: block_on,
    }
}
