//! Views of the catalogue: their columns as the documentation lists them, and their rows.

use cdc_core::TableName;
use cdc_fake::{FakeDatabase, Login, Permission, SqlResult};

use crate::{
    model::{Access, Names, shape::columns},
    relation::{Relation, RelationColumn, Row, Rows, Scan},
};

mod agent;
mod capture;
mod column;
mod database;
mod dynamic;
mod index;
mod information;
mod principal;
mod replica;
mod table;

pub(super) use column::{Described, all_types, described, facts, type_name};
pub(super) use database::seen as seen_databases;
pub(super) use index::pages_of;
pub(super) use information::information_of;

/// A view of the catalogue.
pub(super) struct View {
    pub(super) schema: &'static str,
    pub(super) name: &'static str,
    pub(super) columns: &'static str,
    pub(super) rows: fn(&Names<'_>) -> SqlResult<Vec<Row>>,
    /// True when every login may read it; what it shows depends on the login all the same.
    pub(super) is_public: bool,
}

impl View {
    /// A view that every login may read.
    const fn public(
        schema: &'static str,
        name: &'static str,
        columns: &'static str,
        rows: fn(&Names<'_>) -> SqlResult<Vec<Row>>,
    ) -> Self {
        Self { schema, name, columns, rows, is_public: true }
    }

    /// A view that needs SELECT on it.
    const fn guarded(
        schema: &'static str,
        name: &'static str,
        columns: &'static str,
        rows: fn(&Names<'_>) -> SqlResult<Vec<Row>>,
    ) -> Self {
        Self { schema, name, columns, rows, is_public: false }
    }

    /// True when a database has it: those of capture come with capture.
    pub(super) fn is_in(&self, database: &FakeDatabase) -> bool {
        match self.schema {
            "cdc" => database.has_cdc(),
            "dbo" => database.name() == "msdb",
            _ => true,
        }
    }

    /// True when it shows sessions, transactions or the time, which change without the data.
    fn is_of_the_moment(&self) -> bool {
        ["dm_exec_", "dm_tran_", "dm_os_"].iter().any(|prefix| self.name.starts_with(prefix))
    }

    /// Refuses a login that may not read it.
    pub(super) fn require(&self, names: &Names<'_>) -> SqlResult<()> {
        if self.is_public || names.access.rights == Login::Owner {
            return Ok(());
        }
        names.require(Permission::Select, &TableName::new(self.schema, self.name))
    }
}

/// Every view.
pub(super) fn all() -> impl Iterator<Item = &'static View> {
    [
        capture::VIEWS,
        table::VIEWS,
        column::VIEWS,
        index::VIEWS,
        database::VIEWS,
        principal::VIEWS,
        dynamic::VIEWS,
        agent::VIEWS,
        replica::VIEWS,
        information::VIEWS,
    ]
    .into_iter()
    .flatten()
}

/// The view of a name.
pub(super) fn find(database: &FakeDatabase, schema: &str, name: &str) -> Option<&'static View> {
    all().find(|view| {
        view.schema.eq_ignore_ascii_case(schema)
            && view.name.eq_ignore_ascii_case(name)
            && view.is_in(database)
    })
}

/// A view as a login reads it.
pub(super) struct ViewRelation {
    view: &'static View,
    columns: Vec<RelationColumn>,
    server: cdc_fake::FakeServer,
    database: FakeDatabase,
    access: Access,
}

impl ViewRelation {
    pub(super) fn new(view: &'static View, names: &Names<'_>) -> Self {
        Self {
            view,
            columns: columns(view.columns),
            server: names.server.clone(),
            database: names.database.clone(),
            access: names.access.clone(),
        }
    }
}

impl Relation for ViewRelation {
    fn columns(&self) -> &[RelationColumn] {
        &self.columns
    }

    fn scan<'a>(&'a self, _: &Scan) -> SqlResult<Rows<'a>> {
        let names = Names::new(&self.server, &self.database, &self.access);
        let rows = (self.view.rows)(&names)?;
        if self.view.is_of_the_moment() {
            // No reply made of them may be given again.
            self.server.touch();
        }
        Ok(Box::new(rows.into_iter().map(Ok)))
    }
}

#[cfg(test)]
mod tests;
