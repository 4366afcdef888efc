//! The server: what its databases share.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::{clock::VirtualClock, database::FakeDatabase, key::Collation, zone::Zone};

/// What a server's databases share.
#[derive(Clone, Debug)]
pub(crate) struct ServerSettings {
    pub(crate) name: String,
    pub(crate) clock: VirtualClock,
    pub(crate) zone: Zone,
    pub(crate) collation: Collation,
}

/// An instance of SQL Server in memory. Clones are the same server.
#[derive(Clone, Debug)]
pub struct FakeServer {
    settings: ServerSettings,
    databases: Arc<Mutex<BTreeMap<String, FakeDatabase>>>,
}

impl FakeServer {
    /// A server whose own clock shows `zone`.
    #[must_use]
    pub fn new(clock: VirtualClock, zone: Zone) -> Self {
        Self {
            settings: ServerSettings {
                name: "fake".into(),
                clock,
                zone,
                collation: Collation::default(),
            },
            databases: Arc::default(),
        }
    }

    /// Sets how texts compare in databases that are created from now on.
    #[must_use]
    pub const fn with_collation(mut self, collation: Collation) -> Self {
        self.settings.collation = collation;
        self
    }

    /// The clock.
    #[must_use]
    pub const fn clock(&self) -> &VirtualClock {
        &self.settings.clock
    }

    /// The zone of the server's clock.
    #[must_use]
    pub const fn zone(&self) -> Zone {
        self.settings.zone
    }

    /// The database of this name, created with capture turned on when there is none.
    #[must_use]
    pub fn database(&self, name: &str) -> FakeDatabase {
        self.open(name, true)
    }

    /// The database of this name, created without capture when there is none.
    #[must_use]
    pub fn database_without_cdc(&self, name: &str) -> FakeDatabase {
        self.open(name, false)
    }

    fn open(&self, name: &str, cdc: bool) -> FakeDatabase {
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        databases
            .entry(name.into())
            .or_insert_with(|| FakeDatabase::new(name, self.settings.clone(), cdc))
            .clone()
    }
}
