//! The fake server behind its TDS front, and sources that log in to it.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use cdc_conformance::{
    Failure,
    source::{Abilities, SourceHarness, Statement, Step},
};
use cdc_core::{
    Column, InstanceName, Position, SqlType, TableName, port::Source, time::ServerZone,
};
use cdc_fake::Zone;
use cdc_mssql::{
    BulkReader, Encryption, Login, MssqlConfig, MssqlSource, RetryBudget, Secret, Trust,
};
use cdc_tds::{Certificate, Settings};
use cdc_tsql::{Server, ServerSettings};
use tokio::net::TcpListener;

use crate::fake_harness::Fake;

pub(crate) const PASSWORD: &str = "P\u{e4}ss1!";

/// The bulk readers of this build.
pub(crate) const READERS: &[BulkReader] = if cfg!(feature = "mssql-tds") {
    &[BulkReader::Tiberius, BulkReader::MssqlTds]
} else {
    &[BulkReader::Tiberius]
};

/// Runs a future to its end, with a server in the background.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(future)
}

/// A server on a port of its own. It ends with the runtime.
pub(crate) async fn serve(
    fake: &cdc_fake::FakeServer,
    encryption: cdc_tds::Encryption,
    certificate: Option<Certificate>,
) -> SocketAddr {
    fake.set_sa_password(PASSWORD);
    let service = Arc::new(Server::new(fake.clone(), ServerSettings::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = Settings { encryption, certificate, ..Settings::default() };
    tokio::spawn(cdc_tds::serve(listener, service, settings, std::future::pending()));
    address
}

/// The settings of a source at an address: nothing encrypted, short pauses.
pub(crate) fn config(address: SocketAddr, database: &str, user: &str) -> MssqlConfig {
    let login = Login::Password { user: user.into(), password: Secret::new(PASSWORD) };
    let mut config = MssqlConfig::new("127.0.0.1", database, login);
    config.port = address.port();
    config.encryption = Encryption::Off;
    config.retry = RetryBudget {
        pause_first: Duration::from_millis(1),
        pause_max: Duration::from_millis(4),
        ..RetryBudget::default()
    };
    config
}

/// The harness of the source suite: the fake's own, with the source over TDS.
pub(crate) struct OverTds {
    pub(crate) fake: Fake,
    pub(crate) address: SocketAddr,
    encryption: Encryption,
    trust: Trust,
    reader: BulkReader,
    /// The zone that sources are told; none lets them ask.
    zone: Option<ServerZone>,
}

impl OverTds {
    /// A server whose sources ask for its zone.
    pub(crate) async fn plain(zone: Zone) -> Self {
        let fake = Fake::new(zone);
        let address = serve(fake.server(), cdc_tds::Encryption::Off, None).await;
        let (encryption, trust) = (Encryption::Off, Trust::System);
        Self { fake, address, encryption, trust, reader: BulkReader::Tiberius, zone: None }
    }

    /// A server whose sources take any certificate.
    pub(crate) async fn encrypted(encryption: Encryption) -> Self {
        Self::certified(encryption, None, Trust::Any).await
    }

    /// A server with a certificate.
    pub(crate) async fn certified(
        encryption: Encryption,
        certificate: Option<Certificate>,
        trust: Trust,
    ) -> Self {
        let fake = Fake::new(Zone::UTC);
        let address = serve(fake.server(), cdc_tds::Encryption::Required, certificate).await;
        let (reader, zone) = (BulkReader::Tiberius, Some(ServerZone::UTC));
        Self { fake, address, encryption, trust, reader, zone }
    }

    /// The same server, whose sources read rows by this driver.
    pub(crate) fn read_by(mut self, reader: BulkReader) -> Self {
        self.reader = reader;
        self
    }

    pub(crate) fn config(&self, user: &str) -> MssqlConfig {
        let mut config = config(self.address, "suite", user);
        config.encryption = self.encryption;
        config.trust = self.trust.clone();
        config.zone = self.zone;
        config.bulk_reader = Some(self.reader);
        config
    }

    pub(crate) fn source_of(&self, user: &str) -> MssqlSource {
        MssqlSource::new(self.config(user))
    }
}

#[async_trait]
impl SourceHarness for OverTds {
    fn abilities(&self) -> Abilities {
        self.fake.abilities()
    }

    async fn source(&self) -> Arc<dyn Source> {
        Arc::new(self.source_of("sa"))
    }

    async fn create_table(&self, table: &TableName, columns: &[Column], key: &[&str]) -> Step {
        self.fake.create_table(table, columns, key).await
    }

    async fn enable(
        &self,
        table: &TableName,
        instance: &InstanceName,
        columns: Option<&[&str]>,
    ) -> Step {
        self.fake.enable(table, instance, columns).await
    }

    async fn transact(&self, statements: &[Statement]) -> Step {
        self.fake.transact(statements).await
    }

    async fn capture(&self) -> Step {
        self.fake.capture().await
    }

    async fn idle(&self) -> Step {
        self.fake.idle().await
    }

    async fn pass(&self, time: Duration) -> Step {
        self.fake.pass(time).await
    }

    async fn move_low(&self, instance: &InstanceName, low: Position) -> Step {
        self.fake.move_low(instance, low).await
    }

    async fn delete_purged(&self) -> Step {
        self.fake.delete_purged().await
    }

    async fn add_column(&self, table: &TableName, column: &Column) -> Step {
        self.fake.add_column(table, column).await
    }

    async fn alter_column(&self, table: &TableName, column: &str, to: SqlType) -> Step {
        self.fake.alter_column(table, column, to).await
    }

    async fn drop_column(&self, table: &TableName, column: &str) -> Step {
        self.fake.drop_column(table, column).await
    }

    async fn revoke(&self, instance: &InstanceName) -> Result<Arc<dyn Source>, Failure> {
        let refused = |error: cdc_fake::SqlError| Failure::new(error.to_string());
        self.fake.server().create_login("reader", PASSWORD).map_err(refused)?;
        self.fake.database().create_user("reader", Some("reader"), None).map_err(refused)?;
        self.fake.revoke(instance).await?;
        Ok(Arc::new(self.source_of("reader")))
    }

    async fn break_stream(&self, rows: u64) -> Step {
        let faults = self.fake.server().faults();
        // The questions about the zone and about the range come before the read, and are answered
        // whole.
        let questions = if self.zone.is_some() { 1 } else { 3 };
        for whole in 0..questions {
            faults.kill_after_rows(u64::MAX - whole);
        }
        faults.kill_after_rows(rows);
        Ok(())
    }
}
