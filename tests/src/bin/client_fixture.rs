//! Serves a database over the wire, and writes what the project's own source reads of it in the same
//! process: a client of others has to see the same.
//!
//! Usage: `client_fixture DIR`, with the password of `sa` in `CDC_CLIENTS_PASSWORD`. It writes
//! `DIR/source.json`, `DIR/certificate.pem` and, once it listens, `DIR/address`, and serves until it is
//! ended. `tests/clients/python/run_mssql_cdc_pyspark.py` reads what it wrote.

use std::{error::Error, fs, path::Path, sync::Arc, time::Duration};

use arrow_array::RecordBatch;
use cdc_conformance::cell::Cell;
use cdc_core::{
    CaptureInstance, ClosedRange, Column, Position, SqlType, TableName, TableRef, Timestamp,
    port::{
        Bound, Catalog as _, ChangeReader as _, ChangeRequest, KeyRange, PositionLog as _,
        RowRequest, TableReader as _,
    },
};
use cdc_fake::{FakeServer, FakeSource, Login, VirtualClock, Zone};
use cdc_tds::{Certificate, Settings};
use cdc_tests::{sample, world::BEGIN};
use cdc_tsql::{Server, ServerSettings, run_script};
use futures_util::TryStreamExt as _;
use serde_json::{Map, Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The tables to compare: the client refuses the odd names of the others.
const TABLES: [&str; 4] = ["types", "empty", "work1", "switched"];
/// Statements for the last of them.
const SCRIPT: &str = include_str!("../../clients/instances.sql");
/// The variable with the password.
const PASSWORD: &str = "CDC_CLIENTS_PASSWORD";
/// Steps of the busy table.
const STEPS: usize = 200;
/// Rows in a batch; small, so that there are several.
const BATCH_ROWS: usize = 64;
/// The Windows name of the zone of the world's clock.
const ZONE: &str = "Eastern Standard Time";
/// Seconds from the beginning of the world to the moments that are looked up.
const MARKS: [i64; 10] = [-3_600, 0, 61, 1_000, 3_000, 7_200, 86_400, 151_200, 154_800, 158_400];
/// What the source calls the leading fields of a change, as the client names them.
const LEADING: [&str; 5] = ["_start_lsn", "_seqval", "_operation", "_command_id", "_commit_ts"];

fn main() -> Outcome<()> {
    let dir = std::env::args_os().nth(1).ok_or("usage: client_fixture DIR")?;
    let dir = Path::new(&dir);
    let password = std::env::var(PASSWORD)?;
    let clock = VirtualClock::auto(BEGIN);
    let server = FakeServer::new(clock.clone(), Zone::Named(chrono_tz::America::New_York));
    server.set_sa_password(&password);
    let database = server.database("sales");
    sample::fill(&database, STEPS)?;
    clock.advance(Duration::from_secs(600));
    let server = Server::new(server, ServerSettings { waits_move_clock: true });
    run_script(&server, SCRIPT).map_err(|message| format!("{message:?}"))?;
    let source = FakeSource::new(&database, Login::Owner)?;
    let told = futures_executor::block_on(tell(&source, database.name()))?;
    fs::write(dir.join("source.json"), serde_json::to_vec_pretty(&told)?)?;
    let certificate = Certificate::self_made(&["localhost", "127.0.0.1"])?;
    fs::write(dir.join("certificate.pem"), &certificate.chain)?;
    let settings = Settings { certificate: Some(certificate), ..Settings::default() };
    let service = Arc::new(server);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        // Renamed into place: who waits for the file never reads half of it.
        fs::write(dir.join("address.partial"), format!("{}\n", listener.local_addr()?))?;
        fs::rename(dir.join("address.partial"), dir.join("address"))?;
        cdc_tds::serve(listener, service, settings, std::future::pending()).await?;
        Ok(())
    })
}

/// What the source sees of the database.
async fn tell(source: &FakeSource, database: &str) -> Outcome<Value> {
    let Bound::At(high) = source.high().await? else { return Err("capture never ran".into()) };
    let commits: Vec<Position> = source
        .database()
        .mapping()
        .iter()
        .map(|entry| Position::from(entry.lsn).in_epoch(high.epoch()))
        .collect();
    let mut tables = Vec::new();
    for name in TABLES {
        let table = TableName::new("dbo", name);
        let instances = source.instances(&TableRef::Table(table.clone())).await?;
        for instance in &instances {
            tables.push(tell_instance(source, instance, high).await?);
        }
    }
    Ok(json!({
        "database": database,
        "zone": ZONE,
        "high": high.to_string(),
        "commits": times(source, &commits).await?,
        "neighbours": neighbours(&commits),
        "marks": marks(source).await?,
        "counted": counted(source, &commits).await?,
        "tables": tables,
    }))
}

/// Every commit and idle entry with its time.
async fn times(source: &FakeSource, commits: &[Position]) -> Outcome<Vec<Value>> {
    let mut times = Vec::new();
    for at in commits {
        let time = source.commit_time(*at).await?.ok_or("no time of a commit")?;
        times.push(json!([at.to_string(), text(&Cell::Wall(time.as_micros()))?]));
    }
    Ok(times)
}

/// Each position between the one before and the one after.
fn neighbours(commits: &[Position]) -> Vec<[String; 3]> {
    let told = |at: &Position| [*at, at.decrement(), at.increment()].map(|p| p.to_string());
    commits.iter().map(told).collect()
}

/// The positions at some moments: before the first commit, among them, and after the last.
async fn marks(source: &FakeSource) -> Outcome<Vec<Value>> {
    let mut marks = Vec::new();
    for seconds in MARKS {
        let moment = Timestamp::from_micros(BEGIN.as_micros() + seconds * 1_000_000);
        let at = source.position_at(moment).await?.map(|at| at.to_string());
        let time = chrono::DateTime::from_timestamp_micros(moment.as_micros()).ok_or("range")?;
        marks.push(json!([time.format("%Y-%m-%dT%H:%M:%S").to_string(), at]));
    }
    Ok(marks)
}

/// Some commits by their number after another.
async fn counted(source: &FakeSource, commits: &[Position]) -> Outcome<Vec<Value>> {
    let mut counted = Vec::new();
    for after in commits.iter().step_by(commits.len().div_ceil(5).max(1)) {
        for count in [1, 7] {
            let at = source.nth_commit_after(*after, count).await?.map(|at| at.to_string());
            // With fewer commits left our source gives the last, the client nothing.
            if commits.iter().filter(|at| *at > after).count() >= usize::try_from(count)? {
                counted.push(json!([after.to_string(), count, at]));
            }
        }
    }
    Ok(counted)
}

/// What the source sees of an instance and its table.
async fn tell_instance(
    source: &FakeSource,
    instance: &CaptureInstance,
    high: Position,
) -> Outcome<Value> {
    let lows = source.low(std::slice::from_ref(&instance.name)).await?;
    let Some(Bound::At(low)) = lows.first() else { return Err("no first position".into()) };
    let range = ClosedRange::new(*low, high).ok_or("an empty range")?;
    let schema_changes = source.schema_changes(&instance.name, range).await?;
    let ddl: Vec<_> =
        schema_changes.iter().map(|ddl| json!([ddl.at.to_string(), ddl.statement])).collect();
    let names = |computed: bool| -> Vec<&str> {
        let columns = instance.columns.iter().filter(|column| column.computed || !computed);
        columns.map(|column| column.name.as_str()).collect()
    };
    let datetimes: Vec<_> = instance
        .columns
        .iter()
        .filter(|column| column.sql_type == SqlType::DateTime)
        .map(|column| &column.name)
        .collect();
    Ok(json!({
        "schema": instance.table.schema,
        "table": instance.table.name,
        "instance": instance.name.to_string(),
        "start": instance.start.to_string(),
        "low": low.to_string(),
        "columns": names(false),
        "computed": names(true),
        "datetimes": datetimes,
        "key": instance.key,
        "ddl": ddl,
        "changes": changes(source, instance, range).await?,
        "rows": rows(source, instance).await?,
    }))
}

/// The columns that have values of their own.
fn stored(instance: &CaptureInstance) -> Vec<Column> {
    instance.columns.iter().filter(|column| !column.computed).cloned().collect()
}

async fn changes(
    source: &FakeSource,
    instance: &CaptureInstance,
    range: ClosedRange,
) -> Outcome<Vec<Value>> {
    let columns = stored(instance);
    let request = ChangeRequest {
        instance: instance.name.clone(),
        columns: columns.clone(),
        range,
        time_before: None,
        batch_rows: BATCH_ROWS,
    };
    let batches: Vec<RecordBatch> = source.changes(request).await?.try_collect().await?;
    let own = columns.iter().map(|column| column.name.as_str());
    told(&batches, &LEADING.into_iter().chain(own).collect::<Vec<_>>())
}

async fn rows(source: &FakeSource, instance: &CaptureInstance) -> Outcome<Vec<Value>> {
    let columns = stored(instance);
    let request = RowRequest {
        table: instance.table.clone(),
        columns: columns.clone(),
        key: instance.key.clone(),
        range: KeyRange::default(),
        batch_rows: BATCH_ROWS,
    };
    let batches: Vec<RecordBatch> = source.rows(request).await?.try_collect().await?;
    told(&batches, &columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>())
}

/// The rows of batches, each value as text under its column's name.
fn told(batches: &[RecordBatch], names: &[&str]) -> Outcome<Vec<Value>> {
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let mut line = Map::new();
            for (name, column) in names.iter().zip(batch.columns()) {
                let cell = Cell::of(column.as_ref(), row)?;
                let position = matches!(*name, "_start_lsn" | "_seqval");
                let value = match cell {
                    Cell::Bytes(bytes) if position => json!(format!("0x{}", hex(&bytes, true))),
                    cell => text(&cell)?,
                };
                line.insert((*name).to_owned(), value);
            }
            rows.push(Value::Object(line));
        }
    }
    Ok(rows)
}

/// A value as the comparing program writes it.
fn text(cell: &Cell) -> Outcome<Value> {
    Ok(match cell {
        Cell::Null => Value::Null,
        Cell::Bool(value) => json!(value.to_string()),
        Cell::Int(value) => json!(value.to_string()),
        Cell::Real(bits) => json!(format!("{:016x}", f64::from(f32::from_bits(*bits)).to_bits())),
        Cell::Float(bits) => json!(format!("{bits:016x}")),
        Cell::Decimal(digits, scale) => json!(decimal(*digits, usize::try_from(*scale)?)),
        Cell::Date(days) => {
            let moment = chrono::DateTime::from_timestamp(i64::from(*days) * 86_400, 0);
            json!(moment.ok_or("out of range")?.format("%Y-%m-%d").to_string())
        }
        Cell::Wall(micros) | Cell::Instant(micros) => {
            let moment = chrono::DateTime::from_timestamp_micros(*micros).ok_or("out of range")?;
            json!(moment.format("%Y-%m-%dT%H:%M:%S%.6f").to_string())
        }
        Cell::Text(text) => json!(text),
        Cell::Bytes(bytes) => json!(hex(bytes, false)),
    })
}

fn decimal(digits: i128, scale: usize) -> String {
    let sign = if digits < 0 { "-" } else { "" };
    let padded = format!("{:0>width$}", digits.unsigned_abs(), width = scale + 1);
    let (whole, part) = padded.split_at(padded.len() - scale);
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

fn hex(bytes: &[u8], upper: bool) -> String {
    let digits = |byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") };
    bytes.iter().map(digits).collect()
}
