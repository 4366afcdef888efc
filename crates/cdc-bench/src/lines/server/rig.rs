//! The server under measurement: a table with its change table behind a listener on loopback.

use std::{io, net::SocketAddr, sync::Arc, thread::JoinHandle};

use cdc_core::{
    ClosedRange, InstanceName, Length, SqlType, TableName, Timestamp,
    port::{Bound, ChangeReader, ChangeRequest, PositionLog},
};
use cdc_fake::{
    CaptureSchedule, EnableOptions, FakeDatabase, FakeServer, FakeSource, Login, TableDefinition,
    Value, VirtualClock, Zone,
};
use cdc_tds::{Encryption, Settings};
use cdc_tsql::ServerSettings;
use futures_util::TryStreamExt;
use tokio::{net::TcpListener, sync::oneshot};

use super::client::Account;
use crate::{
    Outcome,
    changes::BATCH_ROWS,
    machine::{Cost, Watch, one_thread, two_threads},
};

/// The one who logs in.
pub(super) const ACCOUNT: Account =
    Account { user: "sa", password: "Bench-1234", database: "bench" };
/// The change table.
pub(in crate::lines) const CHANGE_TABLE: &str = "cdc.dbo_orders_CT";

/// A server that listens until it is dropped.
pub(super) struct Rig {
    database: FakeDatabase,
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    running: Option<JoinHandle<io::Result<()>>>,
}

impl Rig {
    /// Starts a server with a table of `rows` rows, inserted in commits of `rows_a_commit`.
    pub(super) fn start(rows: usize, rows_a_commit: usize) -> Outcome<Self> {
        let clock = VirtualClock::auto(Timestamp::from_micros(1_780_272_000_000_000));
        let fake = FakeServer::new(clock, Zone::Named(chrono_tz::Europe::Berlin));
        fake.set_sa_password(ACCOUNT.password);
        let database = fake.database(ACCOUNT.database);
        fill(&database, rows, rows_a_commit)?;
        let service = Arc::new(cdc_tsql::Server::new(fake, ServerSettings::default()));
        let runtime = two_threads()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let settings = Settings { encryption: Encryption::Off, ..Settings::default() };
        let (stop, stopped) = oneshot::channel();
        let running = std::thread::spawn(move || {
            runtime.block_on(cdc_tds::serve(listener, service, settings, async {
                let _ = stopped.await;
            }))
        });
        Ok(Self { database, address, stop: Some(stop), running: Some(running) })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads the whole change table through the in-process source, and drops it batch by batch.
    /// Gives the number of rows.
    pub(super) fn read_in_process(&self) -> Outcome<(usize, Cost)> {
        let source = FakeSource::new(&self.database, Login::Owner)?;
        let instance = InstanceName::new("dbo_orders");
        let info = self.database.instance_info("dbo_orders").ok_or("there is no instance")?;
        one_thread()?.block_on(async {
            let Bound::At(high) = source.high().await? else {
                return Err("nothing was captured".into());
            };
            let low = source.low(std::slice::from_ref(&instance)).await?;
            let Some(Bound::At(low)) = low.first() else {
                return Err("the instance has no low position".into());
            };
            let request = ChangeRequest {
                instance,
                columns: info.columns,
                range: ClosedRange::new(*low, high).ok_or("the log is empty")?,
                time_before: None,
                batch_rows: BATCH_ROWS,
            };
            let watch = Watch::start();
            let mut batches = source.changes(request).await?;
            let mut rows = 0;
            while let Some(batch) = batches.try_next().await? {
                rows += batch.num_rows();
            }
            Ok((rows, watch.stop()))
        })
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(running) = self.running.take() {
            // What it was stopped with was measured before.
            let _ = running.join();
        }
    }
}

/// Makes the table, captures it, and fills it.
pub(in crate::lines) fn fill(
    database: &FakeDatabase,
    rows: usize,
    rows_a_commit: usize,
) -> Outcome<()> {
    database.set_capture(CaptureSchedule::AtCommit);
    let definition = TableDefinition::new("orders")
        .column("id", SqlType::BigInt)
        .column("customer", SqlType::Int)
        .column("title", SqlType::NVarChar(Length::Limited(60)))
        .nullable("amount", SqlType::Decimal { precision: 19, scale: 4 })
        .column("placed", SqlType::DateTime2 { scale: 6 })
        .primary_key(&["id"]);
    database.create_table(definition)?;
    let table = TableName::new("dbo", "orders");
    database.enable_table(&table, EnableOptions::default())?;
    for first in (0..rows).step_by(rows_a_commit) {
        let made = (first..rows.min(first + rows_a_commit)).map(row).collect::<Outcome<_>>()?;
        database.transact(|open| open.insert_many(&table, made).map(drop))?;
    }
    Ok(())
}

/// Some 130 bytes on the wire, with what the change table adds.
fn row(number: usize) -> Outcome<Vec<Value>> {
    let id = i64::try_from(number)?;
    let customer = id.wrapping_mul(7_919).rem_euclid(100_003);
    Ok(vec![
        id.into(),
        customer.into(),
        format!("order {id} of customer {customer}").as_str().into(),
        if id % 16 == 0 {
            Value::Null
        } else {
            Value::decimal((i128::from(id) * 12_345) % 999_999)
        },
        Value::DateTime2(17_800_000_000_000_000_i64.saturating_add(id.saturating_mul(10))),
    ])
}
