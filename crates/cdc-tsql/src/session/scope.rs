//! What names mean to a statement of a session: its variables, its table variables and temporary
//! tables, and behind them the catalogue of the database.

use std::sync::Arc;

use cdc_fake::{FakeDatabase, SqlError, SqlResult, Value};

use super::{frame::Frame, functions, runner::Core, server::may_enter};
use crate::{
    kind::{Collation, Kind, Typed},
    model::{Access, Names},
    relation::{Catalogue, Moment, ObjectName, Relation, RelationColumn, Settings},
    scalar::Facts,
};

/// The names of one statement.
pub(super) struct Scope<'a> {
    pub(super) core: &'a Core,
    pub(super) frame: &'a Frame,
    access: Access,
}

impl Core {
    /// The moment by the server's clock.
    pub(super) fn moment(&self) -> Moment {
        moment_of(&self.server, self.server.clock().time())
    }

    /// Who asks, and how its statements read.
    pub(super) fn access(&self) -> Access {
        Access {
            rights: self.account.rights.clone(),
            login: self.account.login.clone(),
            session: self.handle.id(),
            host: self.account.host.clone(),
            application: self.account.application.clone(),
            isolation: self.options.isolation,
            lock_timeout: self.options.lock_timeout,
            transactions: self.transactions.handles(),
            cancel: self.cancel.clone(),
            now: self.moment(),
            settings: self.options.expressions,
        }
    }

    /// The collation of the session's database.
    pub(super) fn collation(&self) -> Collation {
        let access = self.access();
        Names::new(&self.server, &self.database, &access).collation()
    }

    /// True while replies depend on text, arguments and data alone.
    pub(super) fn is_plain(&self) -> bool {
        self.transactions.count == 0 && !self.options.fmt_only && self.options.row_count == 0
    }

    /// The database of a name that the session may enter.
    ///
    /// # Errors
    /// 911 when there is none, 916 when the login has no user in it.
    pub(super) fn open_database(&self, name: &str) -> SqlResult<FakeDatabase> {
        let found = self.server.find_database(name).ok_or_else(|| {
            SqlError::new(
                911,
                format!(
                    "Database '{name}' does not exist. Make sure that the name is entered \
                     correctly."
                ),
            )
        })?;
        if may_enter(&found, &self.account) {
            return Ok(found);
        }
        Err(SqlError::new(
            916,
            format!(
                "The server principal \"{}\" is not able to access the database \"{name}\" under \
                 the current security context.",
                self.account.login
            ),
        ))
    }
}

/// A moment by the clock of a server.
pub(super) fn moment_of(server: &cdc_fake::FakeServer, now: cdc_core::Timestamp) -> Moment {
    let wall = server.zone().reading(now).wall();
    let utc = now.as_micros();
    let offset = wall.map_or(0, |wall| wall.and_utc().timestamp_micros() - utc);
    // Readings are rounded to 1/300 s; an offset is whole minutes.
    let minutes = (offset + 30_000_000).div_euclid(60_000_000);
    Moment {
        utc_ticks: utc.saturating_mul(10),
        offset_minutes: i16::try_from(minutes).unwrap_or(0),
    }
}

impl<'a> Scope<'a> {
    pub(super) fn new(core: &'a Core, frame: &'a Frame) -> Self {
        Self { core, frame, access: core.access() }
    }

    /// What expressions may depend on.
    pub(super) fn facts(&self) -> Facts {
        Facts {
            now: self.access.now,
            settings: self.access.settings,
            collation: self.names(&self.core.database).collation(),
        }
    }

    pub(super) fn names<'b>(&'b self, database: &'b FakeDatabase) -> Names<'b> {
        Names::new(&self.core.server, database, &self.access)
    }

    /// A table as its owner sees it.
    pub(super) fn as_owner(
        &self,
        database: &FakeDatabase,
        table: &cdc_core::TableName,
    ) -> SqlResult<Arc<dyn Relation>> {
        let access = Access { rights: cdc_fake::Login::Owner, ..self.access.clone() };
        let name = ObjectName {
            database: None,
            schema: Some(table.schema.to_string()),
            name: table.name.to_string(),
        };
        Names::new(&self.core.server, database, &access).relation(&name)
    }

    /// The database that a name is in, and the name without it.
    fn database(&self, name: &ObjectName) -> SqlResult<(FakeDatabase, ObjectName)> {
        let local = ObjectName { database: None, ..name.clone() };
        match &name.database {
            Some(database) => {
                let database = self.core.open_database(database).map_err(|error| match error {
                    SqlError { number: 911, .. } => {
                        SqlError::new(208, format!("Invalid object name '{}'.", shown(name)))
                    }
                    other => other,
                })?;
                Ok((database, local))
            }
            None => Ok((self.core.database.clone(), local)),
        }
    }
}

/// A name as messages show it.
pub(super) fn shown(name: &ObjectName) -> String {
    let mut text = String::new();
    if let Some(database) = &name.database {
        text.push_str(database);
        text.push('.');
    }
    match &name.schema {
        Some(schema) => {
            text.push_str(schema);
            text.push('.');
        }
        None if name.database.is_some() => text.push('.'),
        None => {}
    }
    text.push_str(&name.name);
    text
}

impl Catalogue for Scope<'_> {
    fn relation(&self, name: &ObjectName) -> SqlResult<Arc<dyn Relation>> {
        if name.name.starts_with('@') {
            let tables = self.frame.tables.borrow();
            let found = tables.get(&name.name.to_lowercase()).ok_or_else(|| {
                SqlError::new(1087, format!("Must declare the table variable \"{}\".", name.name))
            })?;
            return self.core.temporary.variable_relation(found, &self.access);
        }
        if name.name.starts_with('#') {
            return self.core.temporary.relation(&name.name, &self.access);
        }
        let (database, local) = self.database(name)?;
        self.names(&database).relation(&local)
    }

    fn table_function(
        &self,
        name: &ObjectName,
        arguments: &[Typed],
    ) -> SqlResult<Arc<dyn Relation>> {
        let (database, local) = self.database(name)?;
        self.names(&database).table_function(&local, arguments)
    }

    fn table_function_columns(&self, name: &ObjectName) -> SqlResult<Vec<RelationColumn>> {
        let (database, local) = self.database(name)?;
        self.names(&database).table_function_columns(&local)
    }

    fn function_kind(&self, name: &ObjectName, arguments: &[Kind]) -> Option<SqlResult<Kind>> {
        if let Some(kind) = functions::kind(name, arguments) {
            return Some(kind);
        }
        match self.database(name) {
            Ok((database, local)) => self.names(&database).function_kind(&local, arguments),
            Err(error) => Some(Err(error)),
        }
    }

    fn function(&self, name: &ObjectName, arguments: &[Typed]) -> SqlResult<Value> {
        if functions::kind(name, &[]).is_some() {
            return functions::value(self, name, arguments);
        }
        if let Some(id) = self.temporary_id(name, arguments) {
            return Ok(id);
        }
        let (database, local) = self.database(name)?;
        self.names(&database).function(&local, arguments)
    }

    fn variable(&self, name: &str) -> Option<Typed> {
        if name.starts_with("@@") {
            return functions::variable(self, name);
        }
        self.frame.get(name)
    }

    fn now(&self) -> Moment {
        self.access.now
    }

    fn collation(&self) -> Collation {
        self.names(&self.core.database).collation()
    }

    fn settings(&self) -> Settings {
        self.access.settings
    }
}

impl Scope<'_> {
    /// `OBJECT_ID('tempdb..#t')` of a temporary table that is there.
    fn temporary_id(&self, name: &ObjectName, arguments: &[Typed]) -> Option<Value> {
        if !name.name.eq_ignore_ascii_case("object_id") {
            return None;
        }
        let Some(Value::Text(text)) = arguments.first().map(|argument| &argument.value) else {
            return None;
        };
        let table = text.rsplit('.').next().unwrap_or_default();
        let table = table.trim_matches(['[', ']']);
        if !table.starts_with('#') {
            return None;
        }
        Some(self.core.temporary.object_id(table).map_or(Value::Null, |id| Value::Int(id.into())))
    }
}
