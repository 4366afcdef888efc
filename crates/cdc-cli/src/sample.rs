//! A simulated SQL Server with real rows: a year of flights from New York, the planes, airports
//! and airlines behind them, and a history of transactions that follows the flights' own dates.

pub(crate) mod csv_file;
mod history;
mod table;

use std::time::Duration;

use cdc_core::{Result, TableName, Timestamp};
use cdc_fake::{CaptureSchedule, EnableOptions, FakeDatabase, FakeServer, FakeSource, Login, Zone};

pub(crate) use self::{
    history::History,
    table::{FLIGHTS, SampleTable, TABLES},
};
use crate::config::FakeConfig;

/// The database's name.
const DATABASE: &str = "nyc";
/// How long after the last transaction the server's clock stands, so that capture has read it.
const SETTLE: Duration = Duration::from_secs(10);
/// How often the capture job reads the log, as the server does by default.
const CAPTURE_INTERVAL: Duration = Duration::from_secs(5);

/// The simulated server, and the part of its history that has not happened yet.
pub(crate) struct Sample {
    server: FakeServer,
    database: FakeDatabase,
    history: History,
}

impl Sample {
    /// A server at the begin of its history: tables created and captured, without rows.
    ///
    /// # Errors
    /// `Config` for rows that cannot be read, `InvalidData` for rows that are none.
    pub(crate) fn new(config: &FakeConfig) -> Result<Self> {
        Self::with_flights_max(config, None)
    }

    /// The same with the first `flights_max` flights only, though time goes on behind them.
    ///
    /// # Errors
    /// As for [`Sample::new`].
    pub(crate) fn with_flights_max(config: &FakeConfig, flights_max: Option<u64>) -> Result<Self> {
        let history = History::new(config, flights_max)?;
        let clock = cdc_fake::VirtualClock::manual(history.begin());
        let server = FakeServer::new(clock, Zone::Named(config.zone));
        let database = server.database(DATABASE);
        database.set_capture(CaptureSchedule::Every {
            interval: CAPTURE_INTERVAL,
            lag: Duration::ZERO,
        });
        for table in TABLES {
            database.create_table(table.definition())?;
            if config.capture.iter().any(|name| name == table.name) {
                let options = EnableOptions::default().index(table.key);
                database.enable_table(&table.table_name(), options)?;
            }
        }
        Ok(Self { server, database, history })
    }

    /// A server whose history has come to the configured present.
    ///
    /// # Errors
    /// As for [`Sample::new`].
    pub(crate) fn at_present(config: &FakeConfig) -> Result<Self> {
        let mut sample = Self::new(config)?;
        let micros = i64::try_from(SETTLE.as_micros()).unwrap_or(0);
        let end = sample.history.play_until(&sample.database, config.until)?;
        sample.pass_until(config.until.unwrap_or(end.plus_micros(micros)))?;
        if let Some(retention) = config.retention {
            let minutes = u32::try_from(retention.as_secs() / 60).unwrap_or(u32::MAX);
            sample.database.set_retention_minutes(minutes);
            sample.database.cleanup();
        }
        Ok(sample)
    }

    /// Lets time pass up to `moment`, with what happens until then.
    ///
    /// # Errors
    /// What the server refuses.
    pub(crate) fn pass_until(&mut self, moment: Timestamp) -> Result<()> {
        self.history.play_until(&self.database, Some(moment))?;
        self.server.clock().advance_to(moment);
        Ok(())
    }

    /// Lets the next transaction happen. False when the history is over; then time has passed
    /// until capture has read the last one.
    ///
    /// # Errors
    /// What the server refuses.
    pub(crate) fn next(&mut self) -> Result<bool> {
        if self.history.play_next(&self.database)? {
            return Ok(true);
        }
        self.server.clock().advance(SETTLE);
        Ok(false)
    }

    /// Transactions of the whole history, those that opened and committed one counted apart.
    pub(crate) fn steps(&self) -> usize {
        self.history.steps()
    }

    /// Flights that the whole history inserts.
    pub(crate) fn flights(&self) -> u64 {
        self.history.flights()
    }

    /// The server's present.
    pub(crate) fn now(&self) -> Timestamp {
        self.server.clock().time()
    }

    /// The server's clock.
    pub(crate) fn clock(&self) -> cdc_fake::VirtualClock {
        self.server.clock().clone()
    }

    /// A source that reads the server.
    ///
    /// # Errors
    /// `Config` for a zone without rules.
    pub(crate) fn source(&self) -> Result<FakeSource> {
        FakeSource::new(&self.database, Login::Owner)
    }

    /// The database, for tests that plant faults.
    #[cfg(test)]
    pub(crate) fn database(&self) -> &FakeDatabase {
        &self.database
    }

    /// The committed rows of a table, as they are now.
    ///
    /// # Errors
    /// What the server refuses.
    pub(crate) fn rows(&self, table: &TableName) -> Result<Vec<Vec<cdc_fake::Value>>> {
        Ok(self.database.rows(table)?)
    }
}

#[cfg(test)]
mod tests;
