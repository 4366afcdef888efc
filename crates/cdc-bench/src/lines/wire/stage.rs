//! What is read over the wire: a table of twelve columns behind a recorded server, and sources that
//! log in to it.

use std::{net::SocketAddr, sync::Arc};

use arrow_array::RecordBatch;
use cdc_core::{
    Column, Length, SqlType, TableName, Timestamp,
    port::{KeyRange, RowRequest, TableReader},
    time::ServerZone,
};
use cdc_fake::{FakeDatabase, FakeServer, TableDefinition, Value, VirtualClock, Zone};
use cdc_mssql::{BulkReader, Login, MssqlConfig, MssqlSource, Secret};
use cdc_tds::{Encryption, Settings};
use cdc_tsql::ServerSettings;
use futures_util::TryStreamExt;
use tokio::{net::TcpListener, runtime::Runtime};

use crate::{Outcome, changes::BATCH_ROWS, machine::two_threads};

pub(super) const USER: &str = "sa";
pub(super) const PASSWORD: &str = "Bench-1234";
pub(super) const DATABASE: &str = "bench";
const TABLE: &str = "mixed";
/// 2026-06-01, when every history of the measurements begins.
const BEGIN: i64 = 1_780_272_000_000_000;

/// The bulk readers of this build, the fastest first.
pub(super) const READERS: &[BulkReader] = if cfg!(feature = "mssql-tds") {
    &[BulkReader::MssqlTds, BulkReader::Tiberius]
} else {
    &[BulkReader::Tiberius]
};

/// A reader's name.
pub(super) const fn name(reader: BulkReader) -> &'static str {
    match reader {
        BulkReader::Tiberius => "tiberius",
        _ => "mssql-tds",
    }
}

/// A server over TDS, which ends with the process.
pub(super) struct Stage {
    pub(super) clock: VirtualClock,
    pub(super) database: FakeDatabase,
    pub(super) address: SocketAddr,
    _runtime: Runtime,
}

impl Stage {
    /// An empty database, without TLS.
    pub(super) fn start() -> Outcome<Self> {
        Self::with_encryption(Encryption::Off)
    }

    /// An empty database, with TLS for who wants it.
    pub(super) fn offering_tls() -> Outcome<Self> {
        Self::with_encryption(Encryption::Offered)
    }

    fn with_encryption(encryption: Encryption) -> Outcome<Self> {
        let clock = VirtualClock::manual(Timestamp::from_micros(BEGIN));
        let fake = FakeServer::new(clock.clone(), Zone::UTC);
        fake.set_sa_password(PASSWORD);
        let database = fake.database(DATABASE);
        let service = Arc::new(cdc_tsql::Server::new(fake, ServerSettings::default()));
        let runtime = two_threads()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let settings = Settings { encryption, ..Settings::default() };
        runtime.spawn(cdc_tds::serve(listener, service, settings, std::future::pending()));
        Ok(Self { clock, database, address, _runtime: runtime })
    }

    /// A database with the table of twelve columns.
    pub(super) fn with_rows(rows: usize) -> Outcome<Self> {
        let stage = Self::start()?;
        let definition = columns().iter().fold(TableDefinition::new(TABLE), |table, column| {
            match column.nullable {
                true => table.nullable(&column.name, column.sql_type.clone()),
                false => table.column(&column.name, column.sql_type.clone()),
            }
        });
        stage.database.create_table(definition)?;
        let name = TableName::new("dbo", TABLE);
        let made = (0..rows).map(row).collect::<Outcome<_>>()?;
        stage.database.transact(|open| open.insert_many(&name, made).map(drop))?;
        Ok(stage)
    }
}

/// A source at an address.
pub(super) fn source(address: SocketAddr, reader: BulkReader) -> MssqlSource {
    let login = Login::Password { user: USER.into(), password: Secret::new(PASSWORD) };
    let mut config = MssqlConfig::new("127.0.0.1", DATABASE, login);
    config.port = address.port();
    config.encryption = cdc_mssql::Encryption::Off;
    config.zone = Some(ServerZone::UTC);
    config.bulk_reader = Some(reader);
    // What is not recorded is not there the next time either.
    config.retry.attempts_max = 1;
    MssqlSource::new(config)
}

/// Reads the table of twelve columns, and gives the number of rows.
pub(super) async fn read(
    source: &MssqlSource,
    mut take: impl FnMut(RecordBatch) + Send,
) -> Outcome<usize> {
    let request = RowRequest {
        table: TableName::new("dbo", TABLE),
        columns: columns(),
        key: Vec::new(),
        range: KeyRange::default(),
        batch_rows: BATCH_ROWS,
    };
    let mut batches = source.rows(request).await?;
    let mut rows = 0;
    while let Some(batch) = batches.try_next().await? {
        rows += batch.num_rows();
        take(batch);
    }
    Ok(rows)
}

/// Twelve columns as a change table and its captured columns have them.
fn columns() -> Vec<Column> {
    let types = [
        ("lsn", SqlType::Binary(10), false),
        ("operation", SqlType::Int, false),
        ("mask", SqlType::VarBinary(Length::Limited(128)), true),
        ("committed", SqlType::DateTime, false),
        ("id", SqlType::BigInt, false),
        ("customer", SqlType::Int, true),
        ("amount", SqlType::Decimal { precision: 38, scale: 10 }, true),
        ("title", SqlType::NVarChar(Length::Limited(100)), true),
        ("code", SqlType::VarChar(Length::Limited(20)), true),
        ("placed", SqlType::DateTime2 { scale: 7 }, true),
        ("rate", SqlType::Float, true),
        ("active", SqlType::Bit, true),
    ];
    let column = |((name, sql_type, nullable), id)| Column::new(name, id, sql_type, nullable);
    types.into_iter().zip(1..).map(column).collect()
}

/// A row; one in four has three values that are NULL.
fn row(number: usize) -> Outcome<Vec<Value>> {
    let id = i64::try_from(number)?;
    let sparse = number % 4 == 3;
    let or_null = |value: Value| if sparse { Value::Null } else { value };
    let [a, b, c, d, e, f, g, h] = id.to_be_bytes();
    let lsn = [0, 0x2D, a ^ b, c, d, e, f, g, h, 1];
    let ticks = cdc_core::ServerTime::from_ticks(39_000_000_000 + id);
    Ok(vec![
        Value::bytes(&lsn),
        2.into(),
        Value::bytes(&[0x1F, 0xFF]),
        Value::DateTime(ticks),
        id.into(),
        (id.wrapping_mul(7_919).rem_euclid(100_003)).into(),
        or_null(Value::decimal(i128::from(id) * 12_345_678_901)),
        format!("order {id:07}: sent").as_str().into(),
        or_null(format!("SKU-{:05}", number % 1_000 * 97).as_str().into()),
        Value::DateTime2(17_800_000_000_000_000_i64.saturating_add(id.saturating_mul(10))),
        or_null(Value::from(0.25)),
        number.is_multiple_of(2).into(),
    ])
}
