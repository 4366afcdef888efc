//! The sink on PostgreSQL: a batch of changes applied, against a bare binary copy of the same rows
//! into the same server, and against a prepared upsert for each row.
//!
//! The references are given everything: the copy gets finished bytes, so encoding counts against
//! us, and each goes through a connection that is open already.

#[path = "../../../cdc-postgres/tests/it/private_server.rs"]
#[allow(dead_code, clippy::print_stderr, reason = "the tests of the sink use more of it")]
mod private_server;

use std::{fmt::Write, time::Instant};

use arrow_array::{Array, RecordBatch};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use bytes::{Bytes, BytesMut};
use cdc_core::{TableSpec, change::field};
use cdc_fake::SeededEntropy;
use cdc_postgres::{PostgresConfig, PostgresSink, Tls};
use futures_util::{SinkExt, TryStreamExt};
use private_server::Server;
use tokio_postgres::{Client, NoTls, types::ToSql};

use crate::{
    Figure, Outcome, Scale, Target,
    changes::{LogShape, batches},
    columns::spec,
    feeder::Feeder,
    figure::{Turns, rows_a_second},
    machine::two_threads,
};

/// Changes of a batch.
const BATCH: usize = 100_000;
/// Rows that are written one by one.
const SINGLES: usize = 5_000;
/// The columns of the data set, as a copy names them.
const TYPES: [&str; 12] = [
    "bigint",
    "integer",
    "smallint",
    "boolean",
    "numeric(19,4)",
    "numeric(38,10)",
    "double precision",
    "timestamp",
    "date",
    "text",
    "text",
    "text",
];

#[allow(clippy::print_stderr, reason = "a skipped line says so")]
pub(crate) fn measure(scale: Scale, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
    let binaries = match private_server::binaries() {
        Ok(binaries) => binaries,
        Err(reason) => {
            let required = std::env::var("CDC_REQUIRE").unwrap_or_default();
            if required.split(',').any(|name| name.trim() == "postgres") {
                return Err(format!("CDC_REQUIRE names postgres: {reason}").into());
            }
            eprintln!("SKIPPED postgres: {reason}");
            return Ok(());
        }
    };
    // Both sides write the same log to the same disk; a checkpoint in the middle would hit one.
    let server = Server::start(&binaries, &["max_wal_size=4GB", "shared_buffers=512MB"])?;
    let rows = scale.pick(BATCH, 1_000);
    let pool = batches(scale.pick(5, 2), rows)?;
    two_threads()?.block_on(async {
        let bench = Bench::open(&server, rows).await?;
        bench.batches(&pool, report).await?;
        let first = pool.first().ok_or("there are no batches")?;
        bench.singles(&first.slice(0, scale.pick(SINGLES, 200)), report).await
    })
}

struct Bench {
    sink: PostgresSink,
    client: Client,
    spec: TableSpec,
    rows: usize,
}

impl Bench {
    async fn open(server: &Server, rows: usize) -> Outcome<Self> {
        let mut config = PostgresConfig::new(server.host(), "postgres", "cdc");
        config.port = server.port();
        config.tls = Tls::Off;
        let sink = PostgresSink::new(&config, &SeededEntropy::new(1))?;
        let mut settings = tokio_postgres::Config::new();
        settings.host(server.host()).port(server.port()).user("cdc").dbname("postgres");
        let (client, connection) = settings.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(Self { sink, client, spec: spec("orders")?, rows })
    }

    /// A table of the captured columns.
    async fn table(&self, name: &str, end: &str) -> Outcome<()> {
        let columns = self.spec.columns.iter().zip(TYPES);
        let list: Vec<_> =
            columns.map(|(column, of)| format!("\"{}\" {of}", column.name)).collect();
        let text = format!("CREATE TABLE {name} ({}{end})", list.join(", "));
        Ok(self.client.batch_execute(&text).await?)
    }

    /// Batches into one table that grows, and each batch's rows into a table that only takes them.
    async fn batches(&self, pool: &[RecordBatch], report: &mut dyn FnMut(Figure)) -> Outcome<()> {
        self.table("bare", "").await?;
        self.table("bare_key", ", PRIMARY KEY (id)").await?;
        let mut feeder = Feeder::attach(&self.sink, &self.spec).await?;
        let shape = LogShape { rows_a_commit: 10 };
        let (mut to_bare, mut to_key) = (Vec::new(), Vec::new());
        for (batch, end) in pool.iter().zip(1u64..) {
            let bytes = self.finished(batch, "").await?;
            let newest = self.finished(batch, "DISTINCT ON (id)").await?;
            let began = Instant::now();
            feeder.stage(batch).await?;
            feeder.commit(shape.stamp(end * u64::try_from(self.rows / 10)?)).await?;
            let ours = began.elapsed().as_secs_f64();
            let bare = self.copied("bare", bytes).await?;
            self.client.batch_execute("TRUNCATE bare_key").await?;
            let key = self.copied("bare_key", newest).await?;
            to_bare.push((1.0 / ours, 1.0 / bare));
            to_key.push((1.0 / ours, 1.0 / key));
        }
        let what = format!("batches of {} changes applied to PostgreSQL, by wall time", self.rows);
        for (of, beside, target) in [
            (Turns::of(to_bare), "a bare binary copy of the same rows", Target::AtLeast(0.5)),
            (Turns::of(to_key), "a bare copy of their last images under a key", Target::None),
        ] {
            let ours = rows_a_second(self.rows, 1.0 / of.ours);
            let reference = format!("{} {beside}", rows_a_second(self.rows, 1.0 / of.reference));
            report(Figure::ratio(what.clone(), ours, reference, of.ratio).with_target(target));
        }
        Ok(())
    }

    /// The rows of a batch as the server itself writes them in its binary form.
    async fn finished(&self, batch: &RecordBatch, distinct: &str) -> Outcome<Bytes> {
        self.client.batch_execute("DROP TABLE IF EXISTS form").await?;
        self.table("form", "").await?;
        let lines = lines(batch)?;
        let copy = self.client.copy_in("COPY form FROM STDIN (FORMAT csv)").await?;
        let mut copy = Box::pin(copy);
        copy.send(Bytes::from(lines)).await?;
        copy.as_mut().finish().await?;
        let text = format!("COPY (SELECT {distinct} * FROM form) TO STDOUT (FORMAT binary)");
        let parts: BytesMut = self.client.copy_out(&text).await?.try_collect().await?;
        Ok(parts.freeze())
    }

    /// Seconds that a bare copy takes.
    async fn copied(&self, table: &str, bytes: Bytes) -> Outcome<f64> {
        let began = Instant::now();
        let text = format!("COPY {table} FROM STDIN (FORMAT binary)");
        let copy = self.client.copy_in(&text).await?;
        let mut copy = Box::pin(copy);
        copy.send(bytes).await?;
        copy.as_mut().finish().await?;
        Ok(began.elapsed().as_secs_f64())
    }

    /// One row after the other by a prepared upsert, and the same rows as a batch.
    async fn singles(&self, batch: &RecordBatch, report: &mut dyn FnMut(Figure)) -> Outcome<()> {
        let rows = batch.num_rows();
        self.table("singles", ", PRIMARY KEY (id)").await?;
        let names: Vec<_> = self.spec.columns.iter().map(|c| format!("\"{}\"", c.name)).collect();
        let values: Vec<_> =
            TYPES.iter().zip(1..).map(|(of, n)| format!("${n}::text::{of}")).collect();
        let set: Vec<_> = names.iter().skip(1).map(|n| format!("{n} = EXCLUDED.{n}")).collect();
        let text = format!(
            "INSERT INTO singles ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}",
            names.join(", "),
            values.join(", "),
            set.join(", ")
        );
        let upsert = self.client.prepare(&text).await?;
        let cells = texts(batch)?;
        let began = Instant::now();
        self.client.batch_execute("BEGIN").await?;
        for row in 0..rows {
            let of = |column: &Vec<Option<String>>| column.get(row).cloned().flatten();
            let values: Vec<Option<String>> = cells.iter().map(of).collect();
            let parameters: Vec<_> = values.iter().map(|v| v as &(dyn ToSql + Sync)).collect();
            self.client.execute(&upsert, &parameters).await?;
        }
        self.client.batch_execute("COMMIT").await?;
        let reference = began.elapsed().as_secs_f64();

        let mut feeder = Feeder::attach(&self.sink, &spec("orders_singles")?).await?;
        let began = Instant::now();
        feeder.stage(batch).await?;
        feeder.commit(LogShape { rows_a_commit: 10 }.stamp(u64::try_from(rows)?)).await?;
        let ours = began.elapsed().as_secs_f64();
        report(
            Figure::ratio(
                format!("a batch of {rows} changes applied to PostgreSQL, by wall time"),
                rows_a_second(rows, ours),
                format!("{} by a prepared upsert a row", rows_a_second(rows, reference)),
                reference / ours,
            )
            .with_target(Target::AtLeast(10.0)),
        );
        Ok(())
    }
}

/// The captured columns of change rows, each value as text.
fn texts(batch: &RecordBatch) -> Outcome<Vec<Vec<Option<String>>>> {
    let options = FormatOptions::default();
    let mut columns = Vec::new();
    for array in batch.columns().iter().skip(field::COUNT) {
        let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
        let cell = |row| array.is_valid(row).then(|| formatter.value(row).to_string());
        columns.push((0..batch.num_rows()).map(cell).collect());
    }
    Ok(columns)
}

/// The rows as comma-separated values; what is not there is NULL.
fn lines(batch: &RecordBatch) -> Outcome<String> {
    let columns = texts(batch)?;
    let mut lines = String::new();
    for row in 0..batch.num_rows() {
        for (at, column) in columns.iter().enumerate() {
            lines.push_str(if at > 0 { "," } else { "" });
            if let Some(Some(text)) = column.get(row) {
                write!(lines, "\"{}\"", text.replace('"', "\"\""))?;
            }
        }
        lines.push('\n');
    }
    Ok(lines)
}
