//! The source port on a server.

mod answer;
mod catalog;
mod change_stream;
mod changes;
mod diagnosis;
mod grant;
mod positions;
mod preflight;
mod rows;

use std::sync::Arc;

use cdc_core::{
    ClosedRange, Epoch, Error, ErrorKind, InstanceName, Lsn, Position, Result,
    port::{Source, SourceCapabilities},
    time::ServerZone,
};
use tokio::sync::OnceCell;

use self::answer::Answer;
use crate::{
    config::MssqlConfig,
    driver::{Driver, Statement, bulk_reader, tds::Tds},
    fault::Fault,
    server::Server,
    sql,
};

/// One database of a SQL Server. Clones are the same source, and share its idle connections.
#[derive(Clone, Debug)]
pub struct MssqlSource {
    server: Server,
    config: Arc<MssqlConfig>,
    name: Arc<str>,
    /// What the server was asked for once. Its operating system keeps its zone while it runs.
    zone: Arc<OnceCell<ServerZone>>,
    epoch: Epoch,
}

impl MssqlSource {
    /// A source. Nothing is connected yet.
    #[must_use]
    pub fn new(config: MssqlConfig) -> Self {
        let config = Arc::new(config);
        let driver: Arc<dyn Driver> = Arc::new(Tds::new(Arc::clone(&config)));
        let bulk = bulk_reader(&config, &driver);
        let server = Server::new(driver, bulk, config.retry);
        Self {
            server,
            name: format!("{}:{}/{}", config.host, config.port, config.database).into(),
            config,
            zone: Arc::default(),
            epoch: Epoch::default(),
        }
    }

    /// The same source, whose positions belong to another epoch.
    #[must_use]
    pub const fn with_epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = epoch;
        self
    }

    fn position(&self, lsn: Lsn) -> Position {
        Position::from(lsn).in_epoch(self.epoch)
    }

    async fn ask(&self, statement: Statement) -> Result<Answer, Fault> {
        self.server.ask(statement).await.map(Answer::new)
    }

    /// The zone of the server's clock: the configured one, or the one that the server names.
    async fn zone(&self) -> Result<ServerZone> {
        if let Some(zone) = self.config.zone {
            return Ok(zone);
        }
        self.zone.get_or_try_init(|| self.named_zone()).await.copied()
    }

    async fn named_zone(&self) -> Result<ServerZone> {
        let unknown = || {
            Error::new(ErrorKind::Config, "the server does not tell the zone of its clock")
                .with("source", &self.name)
                .with("setting", "source.time_zone")
                .remedy(
                    "give source.time_zone: the zone that is set in the server's operating system, \
                     like \"America/Sao_Paulo\" or \"E. South America Standard Time\"",
                )
        };
        let able = self.ask(sql::catalog::names_its_zone()).await?.first_int()?;
        if able != Some(1) {
            return Err(unknown());
        }
        let name = self.ask(sql::catalog::zone()).await?.first_text()?.ok_or_else(unknown)?;
        let zone = ServerZone::parse("source.time_zone", &name);
        zone.map_err(|error| unknown().caused_by(error))
    }
}

impl Source for MssqlSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> SourceCapabilities {
        SourceCapabilities::new(10, true)
    }
}

/// The LSNs of a range.
fn lsns(range: ClosedRange) -> Result<(Lsn, Lsn)> {
    Ok((Lsn::try_from(range.from())?, Lsn::try_from(range.to())?))
}

fn unknown(instance: &InstanceName) -> Error {
    Error::new(ErrorKind::Config, "capture instance does not exist")
        .with("instance", instance)
        .remedy("name an existing capture instance, or enable the table for capture")
}
