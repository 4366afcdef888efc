//! What the tests share: the server, a sink on a schema of its own, and a reader that shares no
//! code with the sink.

use std::{
    future::Future,
    sync::{
        Arc, LazyLock, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, TimeUnit};
use cdc_conformance::{Cell, cell::array};
use cdc_core::port::Entropy;
use cdc_postgres::{LIVE_SUFFIX, PostgresConfig, PostgresSink, Tls};
use tokio_postgres::{Client, NoTls};

use crate::private_server::{self, Server};

/// The name that `CDC_REQUIRE` has of a PostgreSQL.
const NAME: &str = "postgres";

/// The server that the tests of this binary share. It is never dropped; it ends with the process.
static SHARED: LazyLock<Option<Server>> = LazyLock::new(|| own_server(&[]));

/// A server for one test alone; none, said by name, on a machine without the binaries.
pub(crate) fn own_server(settings: &[&str]) -> Option<Server> {
    let required = std::env::var("CDC_REQUIRE").unwrap_or_default();
    let required = required.split(',').any(|name| name.trim() == NAME);
    match private_server::binaries() {
        Ok(binaries) => {
            // A killed process loses nothing that it wrote, so the tests need no slow disk.
            let mut all = vec!["fsync=off"];
            all.extend(settings);
            Some(Server::start(&binaries, &all).expect("the server starts"))
        }
        Err(reason) if required => panic!("CDC_REQUIRE names {NAME}: {reason}"),
        Err(reason) => {
            eprintln!("SKIPPED {NAME}: {reason}");
            None
        }
    }
}

/// The shared server, when the machine can have one.
pub(crate) fn shared() -> Option<&'static Server> {
    SHARED.as_ref()
}

/// Numbers that no two handles draw alike.
pub(crate) struct Numbers;

impl Entropy for Numbers {
    fn next_u64(&self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }
}

/// A schema that no other test has.
pub(crate) fn new_schema() -> String {
    static NEXT: Mutex<u64> = Mutex::new(0);
    let mut next = NEXT.lock().unwrap();
    *next += 1;
    format!("test {}", *next)
}

/// The settings of a sink on a server.
pub(crate) fn config(server: &Server, schema: &str) -> PostgresConfig {
    let mut config = PostgresConfig::new(server.host(), "postgres", "cdc");
    config.port = server.port();
    config.schema = schema.to_owned();
    config.tls = Tls::Off;
    config.connections_max = 4;
    config
}

pub(crate) fn sink(config: &PostgresConfig) -> PostgresSink {
    PostgresSink::new(config, &Numbers).expect("settings are right")
}

/// A connection of its own, past the sink.
pub(crate) async fn connect(server: &Server) -> Client {
    let mut settings = tokio_postgres::Config::new();
    settings.host(server.host()).port(server.port()).user("cdc").dbname("postgres");
    let (client, connection) = settings.connect(NoTls).await.expect("connects");
    tokio::spawn(async move { drop(connection.await) });
    client.batch_execute("SET TimeZone = 'UTC'; SET DateStyle = 'ISO'").await.expect("sets");
    client
}

/// Runs a test on a runtime of its own.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// What a reader sees of a table: its live view as text, parsed.
pub(crate) async fn rows(server: &Server, schema: &str, table: &str) -> Vec<RecordBatch> {
    let client = connect(server).await;
    let quote = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let view = format!("{}.{}", quote(schema), quote(&format!("{table}{LIVE_SUFFIX}")));
    let columns = client
        .query(
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute \
             WHERE attrelid = to_regclass($1) AND attnum > 0 ORDER BY attnum",
            &[&view],
        )
        .await
        .expect("the catalogue reads");
    if columns.is_empty() {
        return Vec::new();
    }
    let columns: Vec<(String, String)> =
        columns.iter().map(|row| (row.get(0), row.get(1))).collect();
    let list: Vec<_> = columns.iter().map(|(name, _)| format!("{}::text", quote(name))).collect();
    let text = format!("SELECT {} FROM {view}", list.join(", "));
    let found = client.query(&text, &[]).await.expect("the view reads");
    let batch = columns.iter().enumerate().map(|(at, (name, sql_type))| {
        let cells: Vec<_> = found
            .iter()
            .map(|row| row.get::<_, Option<&str>>(at).map_or(Cell::Null, |t| parsed(sql_type, t)))
            .collect();
        (name.clone(), array(&arrow(sql_type), &cells).expect("cells fit"), true)
    });
    vec![RecordBatch::try_from_iter_with_nullable(batch).expect("columns fit")]
}

fn arrow(sql_type: &str) -> DataType {
    match sql_type {
        "boolean" => DataType::Boolean,
        "smallint" => DataType::Int16,
        "integer" => DataType::Int32,
        "bigint" => DataType::Int64,
        "real" => DataType::Float32,
        "double precision" => DataType::Float64,
        "date" => DataType::Date32,
        "timestamp without time zone" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamp with time zone" => {
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        }
        "bytea" => DataType::Binary,
        other => match limits(other) {
            Some((precision, scale)) => DataType::Decimal128(precision, scale),
            None => DataType::Utf8,
        },
    }
}

fn limits(sql_type: &str) -> Option<(u8, i8)> {
    let inside = sql_type.strip_prefix("numeric(")?.strip_suffix(')')?;
    let (precision, scale) = inside.split_once(',')?;
    Some((precision.parse().ok()?, scale.parse().ok()?))
}

fn parsed(sql_type: &str, text: &str) -> Cell {
    match sql_type {
        "boolean" => Cell::Bool(text == "true"),
        "smallint" | "integer" | "bigint" => Cell::Int(text.parse().expect("a number")),
        "real" => Cell::real(text.parse().expect("a number")),
        "double precision" => Cell::float(text.parse().expect("a number")),
        "date" => Cell::Date(days(text)),
        "timestamp without time zone" => Cell::Wall(micros(text)),
        "timestamp with time zone" => Cell::Instant(micros(text.strip_suffix("+00").expect("UTC"))),
        "uuid" => Cell::text(text.to_uppercase()),
        "bytea" => {
            let digits = text.strip_prefix("\\x").expect("hex").as_bytes();
            let byte =
                |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            Cell::Bytes(digits.chunks(2).map(byte).collect())
        }
        other => match limits(other) {
            Some((_, scale)) => {
                let digits: String = text.chars().filter(|c| *c != '.').collect();
                Cell::Decimal(digits.parse().expect("digits"), scale)
            }
            None => Cell::text(text),
        },
    }
}

/// Days since 1970-01-01 of a date of years 1 to 9999.
fn days(text: &str) -> i32 {
    let parts: Vec<i64> = text.split('-').map(|part| part.parse().expect("a number")).collect();
    let (year, month, day) = (parts[0], parts[1], parts[2]);
    // Years begin in March here, so that the day that leap years add is the last one.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    i32::try_from(days + of_year - 719_468).expect("a day")
}

fn micros(text: &str) -> i64 {
    let (date, time) = text.split_once(' ').expect("date and time");
    let (clock, part) = time.split_once('.').unwrap_or((time, "0"));
    let fields: Vec<i64> = clock.split(':').map(|field| field.parse().expect("a number")).collect();
    let seconds = (fields[0] * 60 + fields[1]) * 60 + fields[2];
    let part: i64 = format!("{part:0<6}").parse().expect("a number");
    (i64::from(days(date)) * 86_400 + seconds) * 1_000_000 + part
}

/// The sink behind the port.
pub(crate) fn port(config: &PostgresConfig) -> Arc<dyn cdc_core::port::Sink> {
    Arc::new(sink(config))
}
