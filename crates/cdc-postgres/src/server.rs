//! The database behind the seam: sessions of a PostgreSQL, from a pool.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use cdc_core::{Epoch, Error, ErrorKind, Result};
use deadpool_postgres::{Hook, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use futures_util::SinkExt;
use tokio_postgres::{NoTls, Row, config::SslMode};

use crate::{
    binary,
    column_type::ColumnType,
    config::{PostgresConfig, Tls},
    control::{self, get, record},
    fault,
    layout::{Layout, TargetColumn},
    name::{CONTROL, Qualified, live_view, soft_view},
    piece::Piece,
    record::Record,
    statement,
    store::{Session, Store},
    tls,
};

/// The first version of the server that can hold one row with a NULL in its key.
const NULL_KEYS_SINCE: i32 = 150_000;
/// Bytes of a copy that are handed to the driver at once.
const CHUNK_BYTES: usize = 256 << 10;
/// How long a silent connection is left before the system asks whether the other side lives.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A PostgreSQL, and the schema of the tables.
pub(crate) struct Server {
    pool: Pool,
    schema: Arc<str>,
}

impl Server {
    /// The server of a configuration. Nothing is connected yet.
    pub(crate) fn new(config: &PostgresConfig) -> Result<Self> {
        let mut settings = tokio_postgres::Config::new();
        settings
            .host(&config.host)
            .port(config.port)
            .dbname(&config.database)
            .user(&config.user)
            .application_name(&config.application)
            .connect_timeout(config.connect_timeout)
            .keepalives_idle(KEEPALIVE)
            // Unanswered for as long as a transaction may stand still: the other side is gone.
            .tcp_user_timeout(config.idle_transaction_max);
        if let Some(password) = &config.password {
            settings.password(password.reveal());
        }
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        // A socket of the file system is never encrypted.
        let manager = match &config.tls {
            Tls::Required(trust) if !config.host.starts_with('/') => {
                settings.ssl_mode(SslMode::Require);
                Manager::from_config(settings, tls::connector(trust)?, recycling)
            }
            _ => {
                settings.ssl_mode(SslMode::Disable);
                Manager::from_config(settings, NoTls, recycling)
            }
        };
        let millis = |duration: Duration| duration.as_millis().clamp(1, i32::MAX as u128);
        let setup: Arc<str> =
            statement::session(millis(config.lock_timeout), millis(config.idle_transaction_max))
                .into();
        let hook = Hook::async_fn(move |client: &mut deadpool_postgres::ClientWrapper, _| {
            let setup = Arc::clone(&setup);
            Box::pin(async move {
                client.batch_execute(&setup).await.map_err(deadpool_postgres::HookError::Backend)
            })
        });
        let pool = Pool::builder(manager)
            .max_size(config.connections_max.max(1))
            .wait_timeout(Some(config.connect_timeout))
            .create_timeout(Some(config.connect_timeout))
            .recycle_timeout(Some(config.connect_timeout))
            .runtime(Runtime::Tokio1)
            .post_create(hook)
            .build()
            .map_err(|error| Error::bug("the pool cannot be built").caused_by(error))?;
        Ok(Self { pool, schema: config.schema.as_str().into() })
    }
}

#[async_trait]
impl Store for Server {
    async fn session(&self) -> Result<Box<dyn Session>> {
        let client = self.pool.get().await.map_err(fault::pool)?;
        Ok(Box::new(ServerSession {
            client: Some(client),
            schema: Arc::clone(&self.schema),
            busy: false,
            merged: 0,
            pieces: Vec::new(),
        }))
    }
}

/// A piece in a staging table.
struct StagedPiece {
    staging: String,
    layout: Layout,
    unknown: Vec<usize>,
}

struct ServerSession {
    /// None only while the session is dropped.
    client: Option<Object>,
    schema: Arc<str>,
    /// In a transaction, or in the middle of a step: then the connection is not used again.
    busy: bool,
    /// How many of the pieces the open transaction has merged.
    merged: usize,
    pieces: Vec<StagedPiece>,
}

impl Drop for ServerSession {
    fn drop(&mut self) {
        if (self.busy || !self.pieces.is_empty())
            && let Some(client) = self.client.take()
        {
            // Closes the connection; the server rolls back and drops what is temporary.
            drop(Object::take(client));
        }
    }
}

impl ServerSession {
    fn client(&self) -> Result<&Object> {
        self.client.as_ref().ok_or_else(|| Error::bug("the session has no connection"))
    }

    async fn execute(&self, text: &str) -> Result<()> {
        self.client()?.batch_execute(text).await.map_err(|error| fault::driver(&error))
    }

    async fn query(
        &self,
        text: &str,
        parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Vec<Row>> {
        let client = self.client()?;
        let prepared = client.prepare_cached(text).await.map_err(|error| fault::driver(&error))?;
        client.query(&prepared, parameters).await.map_err(|error| fault::driver(&error))
    }

    async fn one(
        &self,
        text: &str,
        parameters: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    ) -> Result<Row> {
        let row = self.query(text, parameters).await?.into_iter().next();
        row.ok_or_else(|| Error::bug("the server answered without a row"))
    }

    async fn begin_plain(&mut self) -> Result<()> {
        self.busy = true;
        self.execute(statement::BEGIN).await
    }

    async fn lock_word(&self, word: &str) -> Result<()> {
        self.query(statement::LOCK_WORD, &[&word]).await.map(drop)
    }

    /// Whether the control table is there; when not, it is made.
    async fn make_control(&mut self) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        let control = Qualified(&schema, CONTROL).to_string();
        let rights = self.one(statement::RIGHTS, &[&&*schema, &CONTROL]).await?;
        let user: String = get(&rights, 0)?;
        let database: String = get(&rights, 1)?;
        let there: bool = get(&rights, 2)?;
        let in_schema: Option<bool> = get(&rights, 3)?;
        let lacks = |right: String| {
            Error::new(ErrorKind::Unauthorized, "a right is missing")
                .with("user", &user)
                .with("schema", &schema)
                .remedy(right)
        };
        let (quoted_user, quoted_database) =
            (crate::name::Quoted(&user), crate::name::Quoted(&database));
        let temporary: bool = get(&rights, 4)?;
        if !temporary {
            return Err(lacks(format!(
                "GRANT TEMPORARY ON DATABASE {quoted_database} TO {quoted_user}"
            )));
        }
        if there {
            return Ok(());
        }
        let in_database: bool = get(&rights, 5)?;
        match in_schema {
            None if !in_database => {
                return Err(lacks(format!(
                    "GRANT CREATE ON DATABASE {quoted_database} TO {quoted_user}, or create the \
                     schema"
                )));
            }
            Some(false) => {
                return Err(lacks(format!(
                    "GRANT USAGE, CREATE ON SCHEMA {} TO {quoted_user}",
                    crate::name::Quoted(&schema)
                )));
            }
            _ => {}
        }
        self.begin_plain().await?;
        // Of two that make the same table at once, one would fail without this.
        self.lock_word(&control).await?;
        if in_schema.is_none() {
            self.execute(&statement::create_schema(&schema)).await?;
        }
        self.execute(&statement::create_control(&schema)).await?;
        self.execute("COMMIT").await?;
        self.busy = false;
        Ok(())
    }
}

#[async_trait]
impl Session for ServerSession {
    async fn prepare(&mut self) -> Result<()> {
        self.make_control().await
    }

    async fn look(&mut self, table: &str) -> Result<Option<Record>> {
        let control = Qualified(&self.schema, CONTROL).to_string();
        let there = self.one("SELECT to_regclass($1) IS NOT NULL", &[&control]).await?;
        if !get::<bool>(&there, 0)? {
            return Ok(None);
        }
        let text = statement::read_record(&self.schema, false);
        let rows = self.query(&text, &[&table]).await?;
        rows.first().map(|row| record(table, row)).transpose()
    }

    async fn begin(&mut self, table: &str, creating: bool) -> Result<Option<Record>> {
        self.begin_plain().await?;
        if creating {
            let word = Qualified(&self.schema, table).to_string();
            self.lock_word(&word).await?;
        }
        let text = statement::read_record(&self.schema, true);
        let rows = self.query(&text, &[&table]).await?;
        rows.first().map(|row| record(table, row)).transpose()
    }

    async fn columns(&mut self, table: &str) -> Result<Vec<TargetColumn>> {
        let target = Qualified(&self.schema, table).to_string();
        let rows = self.query(&statement::columns(), &[&target]).await?;
        let column = |row: &Row| {
            Ok(TargetColumn {
                name: get(row, 0)?,
                column_type: ColumnType::from_catalogue(&get::<String>(row, 1)?),
                required: get(row, 2)?,
            })
        };
        rows.iter().map(column).collect()
    }

    async fn create(&mut self, table: &str, layout: &Layout) -> Result<()> {
        let [own, live, soft] = [table.to_owned(), live_view(table), soft_view(table)]
            .map(|name| Qualified(&self.schema, &name).to_string());
        let taken = self.one(statement::TAKEN, &[&own, &live, &soft]).await?;
        for (index, name) in [own, live, soft].iter().enumerate() {
            if get(&taken, index)? {
                return Err(Error::new(
                    ErrorKind::Config,
                    "something of that name is there already",
                )
                .with("table", table)
                .with("name", name)
                .remedy("give the table another target or schema, or drop what is there"));
            }
        }
        if let Some(column) = layout.key_columns().find(|column| !column.required) {
            let version =
                self.one("SELECT current_setting('server_version_num')::int", &[]).await?;
            if get::<i32>(&version, 0)? < NULL_KEYS_SINCE {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "a column of the key takes NULL, which needs PostgreSQL 15 or later",
                )
                .with("table", table)
                .with("column", &column.name));
            }
        }
        self.execute(&statement::create_target(&self.schema, table, layout)).await
    }

    async fn add(&mut self, table: &str, layout: &Layout, added: usize) -> Result<()> {
        self.execute(&statement::add_columns(&self.schema, table, layout, added)).await
    }

    async fn stage(&mut self, table: &str, layout: &Layout, piece: &Piece) -> Result<()> {
        self.busy = true;
        let staging = staging_name(&self.schema, table, layout, self.pieces.len());
        self.execute(&statement::create_staging(&staging, layout)).await?;
        let copy = self.client()?.copy_in::<_, Bytes>(&statement::copy(&staging)).await;
        let mut sink = Box::pin(copy.map_err(|error| fault::driver(&error))?);
        let fields = i16::try_from(layout.columns.len() + 3)
            .map_err(|_| Error::bug("a row has too many fields"))?
            .to_be_bytes();
        let mut chunk = Vec::with_capacity(CHUNK_BYTES + (CHUNK_BYTES >> 3));
        chunk.extend(binary::HEADER);
        for row in piece.rows() {
            chunk.extend(fields);
            chunk.extend(row);
            if chunk.len() >= CHUNK_BYTES {
                let full = std::mem::replace(&mut chunk, Vec::with_capacity(CHUNK_BYTES));
                sink.send(full.into()).await.map_err(|error| fault::driver(&error))?;
            }
        }
        chunk.extend(binary::TRAILER);
        sink.send(chunk.into()).await.map_err(|error| fault::driver(&error))?;
        let written = sink.as_mut().finish().await.map_err(|error| fault::driver(&error))?;
        if usize::try_from(written) != Ok(piece.len()) {
            return Err(Error::bug("the server took another number of rows than were sent")
                .with("table", table)
                .with("sent", piece.len())
                .with("taken", written));
        }
        let unknown = piece.unknown();
        self.pieces.push(StagedPiece { staging, layout: layout.clone(), unknown });
        self.busy = false;
        Ok(())
    }

    async fn merge(&mut self, table: &str, epoch: Epoch) -> Result<()> {
        for piece in &self.pieces {
            let text = statement::merge(
                &self.schema,
                table,
                &piece.staging,
                &piece.layout,
                &piece.unknown,
            );
            self.query(&text, &[&i64::from(epoch.0)])
                .await
                .map_err(|error| error.with("table", table))?;
        }
        self.merged = self.pieces.len();
        Ok(())
    }

    async fn save(&mut self, table: &str, record: &Record) -> Result<()> {
        let row = control::ControlRow::of(record)?;
        self.query(&statement::write_record(&self.schema), &row.parameters(&table)).await.map(drop)
    }

    async fn commit(&mut self) -> Result<()> {
        if self.merged == 0 {
            self.execute("COMMIT").await?;
        } else {
            // Whoever empties them in a step of its own pays another way to the server.
            let merged = self.pieces.iter().take(self.merged).map(|piece| piece.staging.as_str());
            let text = format!("{}; COMMIT", statement::truncate(merged));
            self.execute(&text).await?;
            self.pieces.drain(..self.merged);
            self.merged = 0;
        }
        self.busy = false;
        Ok(())
    }

    async fn roll_back(&mut self) -> Result<()> {
        self.execute("ROLLBACK").await?;
        self.merged = 0;
        self.busy = false;
        Ok(())
    }

    async fn clear(&mut self) -> Result<()> {
        if !self.pieces.is_empty() {
            self.busy = true;
            let names = self.pieces.iter().map(|piece| piece.staging.as_str());
            self.execute(&statement::truncate(names)).await?;
            self.pieces.clear();
            self.busy = false;
        }
        Ok(())
    }
}

/// The name of a staging table: one for each table, form and number of piece, so that a session
/// uses it again.
fn staging_name(schema: &str, table: &str, layout: &Layout, number: usize) -> String {
    let mut hasher = DefaultHasher::new();
    (schema, table).hash(&mut hasher);
    for column in &layout.columns {
        (&column.name, column.column_type.to_string()).hash(&mut hasher);
    }
    format!("cdc_stage_{:016x}_{number}", hasher.finish())
}
