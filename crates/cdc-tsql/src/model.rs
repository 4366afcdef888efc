//! The catalogue over `cdc-fake`: tables, change tables, views, procedures and functions.

use std::{sync::Arc, time::Duration};

use cdc_core::TableName;
use cdc_fake::{
    FakeDatabase, FakeServer, Isolation, Login, Permission, ReadOptions, Securable, SqlError,
    SqlResult, TableInfo, TransactionHandle, Value, Waiting,
};

use crate::{
    kind::{Collation, Kind, Typed},
    relation::{Catalogue, Moment, ObjectName, Relation, RelationColumn, Settings},
    scalar,
    talk::Cancel,
};

mod base_table;
mod change_table;
mod function;
mod object;
mod procedure;
mod shape;
mod view;
mod zone_name;

pub(crate) use procedure::{ProcedureInfo, ProcedureOutput, procedure};

/// Who asks, and how its statements read.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// The rights that the login comes with: all of a `sysadmin`, else those of its users.
    pub(crate) rights: Login,
    /// The login's name.
    pub(crate) login: String,
    /// `@@SPID`.
    pub(crate) session: i32,
    /// The client's host and program.
    pub(crate) host: String,
    /// The client's program.
    pub(crate) application: String,
    /// The isolation level.
    pub(crate) isolation: Isolation,
    /// `SET LOCK_TIMEOUT`; none waits for ever.
    pub(crate) lock_timeout: Option<Duration>,
    /// The open transactions of the session, one a database.
    pub(crate) transactions: Vec<TransactionHandle>,
    /// Ends a wait.
    pub(crate) cancel: Cancel,
    /// The moment that the statement takes for now.
    pub(crate) now: Moment,
    /// The session's settings.
    pub(crate) settings: Settings,
}

impl Access {
    /// How statements wait for locks.
    pub(crate) fn waiting(&self) -> Waiting {
        let cancel = self.cancel.clone();
        Waiting::limited(self.lock_timeout).until(move || cancel.is_set())
    }

    /// How statements read a database.
    pub(crate) fn reading(&self, database: &FakeDatabase) -> ReadOptions {
        ReadOptions {
            isolation: self.isolation,
            waiting: self.waiting(),
            transaction: self
                .transactions
                .iter()
                .find(|handle| handle.database().is_same(database))
                .cloned(),
            ..ReadOptions::default()
        }
    }
}

/// What names mean in a database, without variables.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) server: &'a FakeServer,
    pub(crate) database: &'a FakeDatabase,
    pub(crate) access: &'a Access,
}

/// Databases that every login may open, as a guest.
const OPEN_TO_GUESTS: [&str; 3] = ["master", "tempdb", "msdb"];

impl<'a> Names<'a> {
    /// The names of a database, as a session sees them.
    pub(crate) const fn new(
        server: &'a FakeServer,
        database: &'a FakeDatabase,
        access: &'a Access,
    ) -> Self {
        Self { server, database, access }
    }

    /// True when the login may open a database.
    pub(crate) fn opens(&self, database: &FakeDatabase) -> bool {
        self.access.rights == Login::Owner
            || OPEN_TO_GUESTS.contains(&database.name())
            || database.user_name(&self.access.rights).is_some()
    }

    /// The database of a name, where the login may open it.
    ///
    /// # Errors
    /// 911 when there is none; 916 when the login has no user in it.
    pub(crate) fn open(&self, database: &str) -> SqlResult<FakeDatabase> {
        let found = self.server.find_database(database).ok_or_else(|| {
            SqlError::new(
                911,
                format!(
                    "Database '{database}' does not exist. Make sure that the name is entered \
                     correctly."
                ),
            )
        })?;
        if self.opens(&found) {
            return Ok(found);
        }
        Err(SqlError::new(
            916,
            format!(
                "The server principal \"{}\" is not able to access the database \"{}\" under \
                 the current security context.",
                self.access.login,
                found.name()
            ),
        ))
    }

    /// Looks at the names of the database that `name` says, or of this one.
    pub(crate) fn within<T>(
        &self,
        name: &ObjectName,
        look: impl FnOnce(&Names<'_>) -> SqlResult<T>,
    ) -> SqlResult<T> {
        match name.database.as_deref().filter(|database| !database.is_empty()) {
            Some(other) if !other.eq_ignore_ascii_case(self.database.name()) => {
                let database = self.open(other).map_err(|error| match error.number {
                    911 => unknown(name),
                    _ => error,
                })?;
                look(&Names::new(self.server, &database, self.access))
            }
            _ => look(self),
        }
    }

    /// Refuses without a right on an object.
    ///
    /// # Errors
    /// 229.
    fn require(&self, permission: Permission, object: &TableName) -> SqlResult<()> {
        let on = Securable::Object(object.clone());
        if self.database.permits(&self.access.rights, permission, &on) {
            return Ok(());
        }
        Err(denied(permission, self.database, object))
    }

    /// The table of a name in this database.
    fn table(&self, name: &ObjectName) -> Option<TableInfo> {
        let schemas = match named_schema(name) {
            Some(schema) => vec![schema.to_owned()],
            None => self.default_schemas(),
        };
        let table = |schema| TableName::new(schema, name.name.clone());
        schemas.into_iter().find_map(|schema| self.database.table_info(&table(schema)))
    }

    /// Refuses whoever may not look at the state of the server.
    ///
    /// # Errors
    /// 300.
    fn require_server_state(&self) -> SqlResult<()> {
        if self.server.shows_its_state_to(&self.access.rights) {
            return Ok(());
        }
        Err(SqlError::new(
            300,
            "VIEW SERVER STATE permission was denied on object 'server', database 'master'.",
        ))
    }

    /// Refuses whoever may not look at the state of the database. Who may look at that of the
    /// server may.
    ///
    /// # Errors
    /// 262.
    fn require_database_state(&self) -> SqlResult<()> {
        let rights = &self.access.rights;
        let state = Permission::ViewDatabaseState;
        if self.server.shows_its_state_to(rights)
            || self.database.permits(rights, state, &Securable::Database)
        {
            return Ok(());
        }
        let name = self.database.name();
        let text = format!("VIEW DATABASE STATE permission denied in database '{name}'.");
        Err(SqlError::new(262, text))
    }

    fn relation_here(&self, name: &ObjectName) -> SqlResult<Arc<dyn Relation>> {
        if let Some(info) = self.table(name) {
            self.require(Permission::Select, &info.name)?;
            let reading = self.access.reading(self.database);
            return Ok(Arc::new(base_table::BaseTable::new(self.database, info, reading)));
        }
        let schema = named_schema(name);
        if schema.is_some_and(|schema| schema.eq_ignore_ascii_case("cdc"))
            && let Some(info) = self.change_table(&name.name)
        {
            self.require(Permission::Select, &TableName::new("cdc", format!("{}_CT", info.name)))?;
            let seen = self.captured()?;
            return Ok(Arc::new(change_table::ChangeTable::new(self.database, &info, seen)));
        }
        let schemas = schema.map_or_else(|| vec!["dbo", "sys"], |schema| vec![schema]);
        let found = schemas
            .into_iter()
            .find_map(|schema| view::find(self.database, schema, &name.name))
            .ok_or_else(|| unknown(name))?;
        found.require(self)?;
        if found.name == "lsn_time_mapping" {
            return Ok(Arc::new(change_table::Mapping::new(self.database, self.captured()?)));
        }
        Ok(Arc::new(view::ViewRelation::new(found, self)))
    }

    /// The session's open transaction in this database.
    fn transaction(&self) -> Option<&'a TransactionHandle> {
        let open = self.access.transactions.iter();
        open.into_iter().find(|handle| handle.database().is_same(self.database))
    }

    /// The newest LSN of what capture wrote that the session sees; none for all.
    fn captured(&self) -> SqlResult<Option<cdc_core::Lsn>> {
        match self.access.isolation {
            Isolation::Snapshot => self.database.captured_at(self.transaction()),
            _ => Ok(None),
        }
    }

    /// The newest LSN that capture has processed, as far as the session sees.
    fn high(&self) -> SqlResult<Option<cdc_core::Lsn>> {
        let seen = self.captured()?.unwrap_or(cdc_core::Lsn::MAX);
        Ok(self.database.max_lsn().map(|high| high.min(seen)).filter(|high| !high.is_zero()))
    }

    /// The instance whose change table has this name.
    fn change_table(&self, name: &str) -> Option<cdc_fake::InstanceInfo> {
        let end = name.len().checked_sub(3)?;
        let (instance, suffix) = name.split_at_checked(end)?;
        suffix.eq_ignore_ascii_case("_CT").then(|| self.database.instance_info(instance))?
    }
}

impl Catalogue for Names<'_> {
    fn relation(&self, name: &ObjectName) -> SqlResult<Arc<dyn Relation>> {
        self.within(name, |names| names.relation_here(name))
    }

    fn table_function(
        &self,
        name: &ObjectName,
        arguments: &[Typed],
    ) -> SqlResult<Arc<dyn Relation>> {
        self.within(name, |names| {
            let listed = is_capture(name)
                .then(|| change_table::table_function(names, &name.name, arguments))
                .flatten()
                .ok_or_else(|| unknown(name))??;
            Ok(Arc::new(listed) as Arc<dyn Relation>)
        })
    }

    fn table_function_columns(&self, name: &ObjectName) -> SqlResult<Vec<RelationColumn>> {
        self.within(name, |names| {
            is_capture(name)
                .then(|| change_table::function_columns(names, &name.name))
                .flatten()
                .ok_or_else(|| unknown(name))?
        })
    }

    fn function_kind(&self, name: &ObjectName, arguments: &[Kind]) -> Option<SqlResult<Kind>> {
        function::kind(name, arguments)
    }

    fn function(&self, name: &ObjectName, arguments: &[Typed]) -> SqlResult<Value> {
        self.within(name, |names| function::value(names, name, arguments))
    }

    fn variable(&self, _: &str) -> Option<Typed> {
        None
    }

    fn now(&self) -> Moment {
        self.access.now
    }

    fn collation(&self) -> Collation {
        let name = self.database.options().collation;
        scalar::collation(&name).unwrap_or(scalar::DEFAULT_COLLATION)
    }

    fn settings(&self) -> Settings {
        self.access.settings
    }
}

/// The schema that a name says.
fn named_schema(name: &ObjectName) -> Option<&str> {
    name.schema.as_deref().filter(|schema| !schema.is_empty())
}

fn is_capture(name: &ObjectName) -> bool {
    named_schema(name).is_some_and(|schema| schema.eq_ignore_ascii_case("cdc"))
}

/// A name as a statement writes it.
fn written(name: &ObjectName) -> String {
    let parts = [name.database.as_deref(), name.schema.as_deref(), Some(name.name.as_str())];
    let first = parts.iter().position(|part| part.is_some_and(|part| !part.is_empty()));
    let parts = parts.iter().skip(first.unwrap_or(0));
    parts.map(|part| part.unwrap_or("")).collect::<Vec<_>>().join(".")
}

fn unknown(name: &ObjectName) -> SqlError {
    SqlError::invalid_object(&written(name))
}

/// A GUID that follows from some bytes and looks like any other: a 128-bit FNV-1a hash.
fn guid(parts: &[&[u8]]) -> Value {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut hash = OFFSET;
    for byte in parts.iter().flat_map(|part| part.iter().chain(&[0xff])) {
        hash = (hash ^ u128::from(*byte)).wrapping_mul(PRIME);
    }
    // Version 4, variant 1.
    let marked = (hash & !(0xf_u128 << 76) & !(0x3_u128 << 62)) | (4 << 76) | (2 << 62);
    Value::Uuid(marked.to_be_bytes())
}

/// The id of a database's capture or cleanup job.
fn job_id(database: &FakeDatabase, capture: bool) -> Value {
    guid(&[database.name().as_bytes(), if capture { b"capture" } else { b"cleanup" }])
}

/// The error of a right that a login lacks on an object.
pub(crate) fn denied(
    permission: Permission,
    database: &FakeDatabase,
    object: &TableName,
) -> SqlError {
    SqlError::new(
        229,
        format!(
            "The {} permission was denied on the object '{}', database '{}', schema '{}'.",
            permission.name(),
            object.name,
            database.name(),
            object.schema
        ),
    )
}

#[cfg(test)]
mod tests;
