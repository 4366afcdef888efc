//! The source on the fake server: the source port, answered from the state of a database.

mod catalog;
mod changes;
mod diagnosis;
mod positions;
mod rows;

use std::sync::Arc;

use cdc_core::port::Clock;
use cdc_core::{
    ClosedRange, Column, Epoch, Error, ErrorKind, InstanceName, Lsn, Position, Result, TableRef,
    port::{Source, SourceCapabilities},
    time::ServerZone,
};

use crate::{
    database::{DatabaseState, FakeDatabase},
    injection::{Call, Side},
    instance::Instance,
    permissions::Login,
    zone::Zone,
};

/// A source that reads one database of the fake server as one login. Clones are the same source.
#[derive(Clone, Debug)]
pub struct FakeSource {
    database: FakeDatabase,
    login: Arc<Login>,
    zone: ServerZone,
    epoch: Epoch,
    name: Arc<str>,
}

impl FakeSource {
    /// A source for a database, as a login, that knows the server's zone.
    ///
    /// # Errors
    /// `Config` for a zone that the rules of time do not know.
    pub fn new(database: &FakeDatabase, login: Login) -> Result<Self> {
        let zone = match database.shared.settings.zone {
            Zone::Named(zone) | Zone::Early(zone, _) => {
                ServerZone::parse("source_time_zone", zone.name())?
            }
            Zone::Fixed(offset) => {
                let minutes = i16::try_from(offset.local_minus_utc() / 60).unwrap_or(i16::MAX);
                ServerZone::fixed(minutes)?
            }
        };
        Ok(Self {
            name: format!("{}/{}", database.shared.settings.name, database.name()).into(),
            database: database.clone(),
            login: Arc::new(login),
            zone,
            epoch: Epoch::default(),
        })
    }

    /// The same source with a zone that somebody configured, right or wrong.
    #[must_use]
    pub const fn with_zone(mut self, zone: ServerZone) -> Self {
        self.zone = zone;
        self
    }

    /// The same source, whose positions belong to another epoch.
    #[must_use]
    pub const fn with_epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = epoch;
        self
    }

    /// The database it reads.
    #[must_use]
    pub const fn database(&self) -> &FakeDatabase {
        &self.database
    }

    fn position(&self, lsn: Lsn) -> Position {
        Position::from(lsn).in_epoch(self.epoch)
    }

    /// Begins a call: what was planted for it happens, then the server looks at it.
    async fn enter(&self, call: Call) -> Result<()> {
        self.database.run_hook(call, Side::Before);
        let encounter = self.database.meet(call);
        if let Some(pause) = encounter.pause {
            self.database.clock().sleep(pause).await;
        }
        encounter.result.map_err(|error| Error::from(error).with("source", &self.name))
    }

    /// Ends a call.
    fn leave(&self, call: Call) {
        self.database.run_hook(call, Side::After);
    }

    /// One call that is answered from the state at one moment.
    async fn ask<T: Send>(
        &self,
        call: Call,
        answer: impl FnOnce(&DatabaseState) -> Result<T> + Send,
    ) -> Result<T> {
        self.enter(call).await?;
        let answer = answer(&self.database.state());
        self.leave(call);
        answer
    }

    /// True when the login sees the instance in listings and is given its low position.
    fn sees(&self, state: &DatabaseState, instance: &Instance) -> bool {
        let rights = &state.permissions;
        state.table(instance.table).is_ok_and(|table| {
            rights.may_select(&self.login, &table.name)
                && rights.in_role(&self.login, instance.role.as_ref())
        })
    }
}

impl Source for FakeSource {
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

fn not_captured(reference: &TableRef, alike: &[String]) -> Error {
    let error = Error::new(
        ErrorKind::Config,
        "nothing is captured under this name, or the login may not see it",
    )
    .with("table", reference);
    let remedy = "enable the table for capture, or grant SELECT on it and the gating role";
    if alike.is_empty() {
        return error.remedy(remedy);
    }
    error
        .with("alike", alike.join(", "))
        .remedy(format!("did you mean {}? otherwise {remedy}", alike.join(" or ")))
}

/// The column of `columns` with the id of a wanted one.
fn by_id<'a>(columns: impl IntoIterator<Item = &'a Column>, wanted: &Column) -> Option<&'a Column> {
    columns.into_iter().find(|column| column.id == wanted.id)
}
