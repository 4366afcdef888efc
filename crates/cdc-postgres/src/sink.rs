//! The sink: tables of one schema, each with one row a key, their marks in one table beside them.

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use cdc_core::{
    Error, ErrorKind, Result, TableSpec,
    port::{Attached, Entropy, Sink, SinkCapabilities, TargetState},
};

use crate::{
    config::PostgresConfig,
    layout::Layout,
    name,
    record::Record,
    server::Server,
    store::Store,
    table::{Limits, PostgresTable},
};

/// A schema of a PostgreSQL database that holds a table for each attached one.
#[derive(Clone)]
pub struct PostgresSink {
    store: Arc<dyn Store>,
    limits: Limits,
    /// Tells this handle from others that attach the same tables.
    handle: i64,
}

impl fmt::Debug for PostgresSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresSink").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl PostgresSink {
    /// A sink on a server. Nothing is connected before the first attach.
    ///
    /// # Errors
    /// `Config` for a setting that cannot be, naming it.
    pub fn new(config: &PostgresConfig, entropy: &dyn Entropy) -> Result<Self> {
        name::setting("schema", &config.schema)?;
        let server = Server::new(config)?;
        Ok(Self::on(Arc::new(server), Limits::of(config), entropy.next_u64()))
    }

    pub(crate) fn on(store: Arc<dyn Store>, limits: Limits, drawn: u64) -> Self {
        Self { store, limits, handle: i64::from_ne_bytes(drawn.to_ne_bytes()) }
    }
}

#[async_trait]
impl Sink for PostgresSink {
    fn capabilities(&self) -> SinkCapabilities {
        SinkCapabilities::least().with_add_columns().with_verdict().with_one_row_a_key()
    }

    async fn attach(&self, spec: &TableSpec) -> Result<Attached> {
        let table = &spec.name;
        name::table(spec)?;
        let wanted = Layout::new(spec)?;
        let mut session = self.store.session().await?;
        session.prepare().await?;
        let found = session.begin(table, true).await?;
        let (record, layout) = match found {
            None => {
                session.create(table, &wanted).await?;
                (Record::first(spec), wanted)
            }
            Some(record) => {
                record.belongs_to(spec)?;
                record.has_key_of(spec)?;
                let mut columns = session.columns(table).await?;
                columns.retain(|column| record.columns.contains(&column.name));
                if columns.len() < record.columns.len() {
                    return Err(gone(table, &record, &columns));
                }
                let layout = Layout::found(table, columns, &record.key)?;
                layout.missing(table, &spec.columns)?;
                (record, layout)
            }
        };
        let record = record.taken_over(table, self.handle)?;
        session.save(table, &record).await?;
        session.commit().await?;
        let state = TargetState { mark: record.mark, verdict: record.verdict };
        let table =
            PostgresTable::new(Arc::clone(&self.store), self.limits, spec, layout, record.runner);
        Ok(Attached { table: Box::new(table), state })
    }

    async fn inspect(&self, spec: &TableSpec) -> Result<Option<TargetState>> {
        let Some(record) = self.store.session().await?.look(&spec.name).await? else {
            return Ok(None);
        };
        record.belongs_to(spec)?;
        Ok(Some(TargetState { mark: record.mark, verdict: record.verdict }))
    }

    async fn is_superseded(&self, spec: &TableSpec) -> Result<bool> {
        let record = self.store.session().await?.look(&spec.name).await?;
        Ok(record.is_some_and(|record| record.handle != self.handle))
    }
}

fn gone(table: &str, record: &Record, columns: &[crate::layout::TargetColumn]) -> Error {
    let there = |name: &&String| !columns.iter().any(|column| column.name == **name);
    let lost: Vec<_> = record.columns.iter().filter(there).map(String::as_str).collect();
    Error::new(ErrorKind::InvalidData, "the target lacks columns that it had")
        .with("table", table)
        .with("columns", lost.join(", "))
        .remedy("restore them, or drop the target together with its row of cdc_control")
}
