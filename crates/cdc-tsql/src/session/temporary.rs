//! Temporary tables and table variables: tables of a session's own, in databases of its own, that
//! nobody else sees.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use cdc_core::TableName;
use cdc_fake::{FakeDatabase, FakeServer, Login, SqlError, SqlResult};

use crate::{
    model::{Access, Names},
    relation::{Catalogue, ObjectName, Relation},
};

/// A session's own tables.
pub(super) struct Temporary {
    server: FakeServer,
    /// Temporary tables: in the session's transaction.
    pub(super) tables: FakeDatabase,
    /// Table variables: no rollback touches them.
    pub(super) variables: FakeDatabase,
    /// The temporary tables that are there, in lower case.
    known: BTreeMap<String, TableName>,
    next_variable: u64,
    declared: Vec<TableName>,
}

/// A table variable: the table behind it.
#[derive(Clone, Debug)]
pub(super) struct TableVariable {
    pub(super) table: TableName,
}

impl Temporary {
    pub(super) fn new(server: &FakeServer, session: i32) -> Self {
        let own = FakeServer::new(server.clock().clone(), server.zone());
        let storage = |name: &str| {
            let database = own.database_without_cdc(&format!("{name} of session {session}"));
            // What a session keeps for itself can be used at every isolation level.
            database.set_options(|options| options.allow_snapshot_isolation = true);
            database
        };
        Self {
            tables: storage("tempdb"),
            variables: storage("variables"),
            server: own,
            known: BTreeMap::new(),
            next_variable: 0,
            declared: Vec::new(),
        }
    }

    /// The table of a `#name`.
    ///
    /// # Errors
    /// 208 when there is none.
    pub(super) fn table(&self, name: &str) -> SqlResult<TableName> {
        let table = TableName::new("dbo", name.to_lowercase());
        match self.tables.row_count(&table) {
            Ok(_) => Ok(table),
            Err(_) => match self.known.get(&name.to_lowercase()) {
                // Created in a transaction that is still open.
                Some(table) => Ok(table.clone()),
                None => Err(SqlError::new(208, format!("Invalid object name '{name}'."))),
            },
        }
    }

    pub(super) fn note(&mut self, table: &TableName) {
        self.known.insert(table.name.to_lowercase(), table.clone());
    }

    /// The temporary tables that are there now.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.known.keys().cloned().collect()
    }

    /// The temporary tables that came since.
    pub(super) fn since(&self, before: &BTreeSet<String>) -> Vec<TableName> {
        let new = self.known.iter().filter(|(name, _)| !before.contains(*name));
        new.map(|(_, table)| table.clone()).collect()
    }

    pub(super) fn forget(&mut self, table: &TableName) {
        self.known.remove(&table.name.to_lowercase());
    }

    pub(super) fn relation(&self, name: &str, access: &Access) -> SqlResult<Arc<dyn Relation>> {
        let table = self.table(name)?;
        self.read(&self.tables, &table, access).map_err(|error| match error.number {
            208 => SqlError::new(208, format!("Invalid object name '{name}'.")),
            _ => error,
        })
    }

    pub(super) fn variable_relation(
        &self,
        variable: &TableVariable,
        access: &Access,
    ) -> SqlResult<Arc<dyn Relation>> {
        self.read(&self.variables, &variable.table, access)
    }

    fn read(
        &self,
        database: &FakeDatabase,
        table: &TableName,
        access: &Access,
    ) -> SqlResult<Arc<dyn Relation>> {
        let access = Access { rights: Login::Owner, ..access.clone() };
        let name = ObjectName {
            database: None,
            schema: Some(table.schema.to_string()),
            name: table.name.to_string(),
        };
        Names::new(&self.server, database, &access).relation(&name)
    }

    /// The id of a temporary table.
    pub(super) fn object_id(&self, name: &str) -> Option<i32> {
        let table = self.table(name).ok()?;
        let exists = self.tables.row_count(&table).is_ok();
        // Ids of temporary tables are negative.
        exists.then(|| {
            let place = self.known.keys().position(|known| *known == name.to_lowercase());
            -1_000_000_000 - i32::try_from(place.unwrap_or(0)).unwrap_or(0)
        })
    }

    /// A name for the table of a new table variable.
    pub(super) fn new_variable(&mut self) -> TableName {
        self.next_variable += 1;
        let table = TableName::new("dbo", format!("variable{}", self.next_variable));
        self.declared.push(table.clone());
        table
    }

    /// Drops the table variables of a call that has ended.
    pub(super) fn forget_variables(&mut self) {
        for table in self.declared.drain(..) {
            let _ = self.variables.drop_table(&table);
        }
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.forget_variables();
        for table in std::mem::take(&mut self.known).into_values() {
            let _ = self.tables.drop_table(&table);
        }
    }
}
