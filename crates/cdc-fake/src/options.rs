//! Settings of a database, and its schemas.

use cdc_core::ServerTime;

use crate::{
    collation::{DEFAULT_COLLATION, named},
    database::FakeDatabase,
    sql_error::{SqlError, SqlResult, number},
};

/// What `ALTER DATABASE SET` sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// `ALLOW_SNAPSHOT_ISOLATION`.
    pub allow_snapshot_isolation: bool,
    /// `READ_COMMITTED_SNAPSHOT`.
    pub read_committed_snapshot: bool,
    /// `RECOVERY`: 1 full, 2 bulk-logged, 3 simple.
    pub recovery: u8,
    /// `COMPATIBILITY_LEVEL`.
    pub compatibility_level: u8,
    /// `READ_ONLY`.
    pub read_only: bool,
    /// The collation by name.
    pub collation: String,
    /// The role in an availability group; none outside of one.
    pub replica: Option<ReplicaRole>,
}

/// What a replica of an availability group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaRole {
    /// It takes writes.
    Primary,
    /// It takes reads.
    Secondary,
}

impl Default for DatabaseOptions {
    fn default() -> Self {
        Self {
            allow_snapshot_isolation: false,
            read_committed_snapshot: false,
            recovery: 1,
            compatibility_level: 160,
            read_only: false,
            collation: DEFAULT_COLLATION.name.into(),
            replica: None,
        }
    }
}

/// A schema that a statement created.
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    /// The number that its id comes from.
    pub(crate) id: i32,
    /// The principal that owns it.
    pub(crate) owner: String,
}

/// The first id of a schema that a statement creates.
const FIRST_SCHEMA: i32 = 5;
/// Schemas that every database has, with their ids.
pub(crate) const FIXED_SCHEMAS: [(&str, i32); 13] = [
    ("dbo", 1),
    ("guest", 2),
    ("INFORMATION_SCHEMA", 3),
    ("sys", 4),
    ("db_owner", 16384),
    ("db_accessadmin", 16385),
    ("db_securityadmin", 16386),
    ("db_ddladmin", 16387),
    ("db_backupoperator", 16389),
    ("db_datareader", 16390),
    ("db_datawriter", 16391),
    ("db_denydatareader", 16392),
    ("db_denydatawriter", 16393),
];

impl FakeDatabase {
    /// The settings.
    #[must_use]
    pub fn options(&self) -> DatabaseOptions {
        self.look().options.clone()
    }

    /// Changes settings.
    pub fn set_options(&self, change: impl FnOnce(&mut DatabaseOptions)) {
        let mut state = self.state();
        change(&mut state.options);
        // Columns that name none compare by it.
        state.collation = named(&state.options.collation).unwrap_or_default();
    }

    /// When the database was created, on the server's clock.
    #[must_use]
    pub fn created(&self) -> ServerTime {
        self.look().created
    }

    /// The database's number on its server.
    #[must_use]
    pub fn id(&self) -> i32 {
        self.shared.id
    }

    /// The schemas and their ids.
    #[must_use]
    pub fn schemas(&self) -> Vec<(String, i32)> {
        let state = self.look();
        let fixed = FIXED_SCHEMAS.iter().map(|(name, id)| ((*name).to_owned(), *id));
        let cdc = state.cdc.then(|| ("cdc".to_owned(), FIRST_SCHEMA));
        let created = state.schemas.iter().map(|(name, schema)| (name.clone(), schema.id));
        fixed.chain(cdc).chain(created).collect()
    }

    /// Who owns a schema that a statement created.
    #[must_use]
    pub fn schema_owner(&self, name: &str) -> Option<String> {
        self.look().schemas.get(name).map(|schema| schema.owner.clone())
    }

    /// Creates a schema.
    ///
    /// # Errors
    /// 2714 when the name is taken.
    pub fn create_schema(&self, name: &str, owner: Option<&str>) -> SqlResult<()> {
        let taken = self.schemas().iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        if taken {
            return Err(SqlError::new(
                number::OBJECT_EXISTS,
                format!("There is already an object named '{name}' in the database."),
            ));
        }
        let mut state = self.state();
        let id = state.schemas.values().map(|schema| schema.id).max().unwrap_or(FIRST_SCHEMA) + 1;
        let owner = owner.unwrap_or("dbo").to_owned();
        state.schemas.insert(name.into(), Schema { id, owner });
        Ok(())
    }

    /// Drops a schema without objects.
    ///
    /// # Errors
    /// 15151 for an unknown one, 3729 for one with tables.
    pub fn drop_schema(&self, name: &str) -> SqlResult<()> {
        let mut state = self.state();
        let found = state.schemas.keys().find(|other| other.eq_ignore_ascii_case(name)).cloned();
        let Some(found) = found else {
            return Err(SqlError::new(
                number::PRINCIPAL_UNKNOWN,
                format!(
                    "Cannot drop the schema '{name}', because it does not exist or you do not \
                     have permission."
                ),
            ));
        };
        let holds = state.tables.values().find(|table| table.name.schema == found);
        if let Some(table) = holds {
            return Err(SqlError::new(
                3729,
                format!(
                    "Cannot drop schema '{name}' because it is being referenced by object '{}'.",
                    table.name.name
                ),
            ));
        }
        state.schemas.remove(&found);
        Ok(())
    }
}
