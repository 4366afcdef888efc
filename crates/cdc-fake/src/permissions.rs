//! Rights: who may see and read what.

use std::collections::{BTreeMap, BTreeSet};

use cdc_core::{InstanceName, ServerTime, TableName};

use crate::{
    database::{DatabaseState, FakeDatabase},
    options::FIXED_SCHEMAS,
    sql_error::{SqlError, SqlResult, number},
};

mod principal;

use principal::Principals;
pub use principal::{DatabasePrincipal, PrincipalKind};

/// Who reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Login {
    /// The owner of the database: every right.
    Owner,
    /// A login with the rights that were granted to it, none at first.
    Named(String),
}

impl Login {
    /// A login by name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self::Named(name.into())
    }

    fn name(&self) -> &str {
        match self {
            Self::Owner => "dbo",
            Self::Named(name) => name,
        }
    }
}

/// A right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the server's")]
pub enum Permission {
    Select,
    Insert,
    Update,
    Delete,
    Execute,
    References,
    Alter,
    Control,
    ViewDefinition,
    ViewDatabaseState,
    ViewChangeTracking,
    Connect,
    CreateTable,
}

impl Permission {
    /// Every right.
    pub const ALL: [Self; 13] = [
        Self::Select,
        Self::Insert,
        Self::Update,
        Self::Delete,
        Self::Execute,
        Self::References,
        Self::Alter,
        Self::Control,
        Self::ViewDefinition,
        Self::ViewDatabaseState,
        Self::ViewChangeTracking,
        Self::Connect,
        Self::CreateTable,
    ];

    /// The server's name of it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Execute => "EXECUTE",
            Self::References => "REFERENCES",
            Self::Alter => "ALTER",
            Self::Control => "CONTROL",
            Self::ViewDefinition => "VIEW DEFINITION",
            Self::ViewDatabaseState => "VIEW DATABASE STATE",
            Self::ViewChangeTracking => "VIEW CHANGE TRACKING",
            Self::Connect => "CONNECT",
            Self::CreateTable => "CREATE TABLE",
        }
    }

    /// The four letters that the catalogue has for it.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Select => "SL  ",
            Self::Insert => "IN  ",
            Self::Update => "UP  ",
            Self::Delete => "DL  ",
            Self::Execute => "EX  ",
            Self::References => "RF  ",
            Self::Alter => "AL  ",
            Self::Control => "CL  ",
            Self::ViewDefinition => "VW  ",
            Self::ViewDatabaseState => "VWDS",
            Self::ViewChangeTracking => "VWCT",
            Self::Connect => "CO  ",
            Self::CreateTable => "CRTB",
        }
    }

    /// The right with this name, in any case.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.name().eq_ignore_ascii_case(name))
    }
}

/// What a right is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Securable {
    /// The database.
    Database,
    /// A schema.
    Schema(String),
    /// A table; a change table is `cdc.<instance>_CT`.
    Object(TableName),
}

impl Securable {
    /// The change table of an instance.
    #[must_use]
    pub fn change_table(instance: &InstanceName) -> Self {
        Self::Object(TableName::new("cdc", format!("{instance}_CT")))
    }
}

/// What a statement does with a right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantAction {
    /// `GRANT`.
    Grant,
    /// `DENY`: stronger than any grant.
    Deny,
    /// `REVOKE`: neither granted nor denied any more.
    Revoke,
}

/// A right that was granted or denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// To whom.
    pub grantee: String,
    /// Which.
    pub permission: Permission,
    /// On what.
    pub on: Securable,
    /// True when it was denied.
    pub denied: bool,
}

/// The rights of one database.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    principals: Principals,
    // True for a grant, false for a denial.
    granted: BTreeMap<(String, Securable, Permission), bool>,
}

impl FakeDatabase {
    /// Lets a login read a table.
    pub fn grant_select(&self, login: &str, table: &TableName) {
        self.state().permissions.set_select(login, Securable::Object(table.clone()), true);
    }

    /// Takes the right to read a table away.
    pub fn revoke_select(&self, login: &str, table: &TableName) {
        self.state().permissions.set_select(login, Securable::Object(table.clone()), false);
    }

    /// Lets a login read a change table.
    pub fn grant_changes(&self, login: &str, instance: &InstanceName) {
        self.state().permissions.set_select(login, Securable::change_table(instance), true);
    }

    /// Takes the right to read a change table away.
    pub fn revoke_changes(&self, login: &str, instance: &InstanceName) {
        self.state().permissions.set_select(login, Securable::change_table(instance), false);
    }

    /// Makes a login a member of a role.
    pub fn add_role_member(&self, login: &str, role: &str) {
        let mut state = self.state();
        state.permissions.principals.ensure_user(login);
        state.permissions.principals.ensure_role(role);
        state.permissions.principals.join(role, login);
    }

    /// Grants, denies or revokes a right.
    ///
    /// # Errors
    /// 15151 for an unknown user or role.
    pub fn set_permission(
        &self,
        action: GrantAction,
        permission: Permission,
        on: &Securable,
        to: &str,
    ) -> SqlResult<()> {
        let mut state = self.state();
        let name = state.permissions.principals.find(to).map(|found| found.name.clone());
        let Some(name) = name else {
            return Err(SqlError::new(
                number::PRINCIPAL_UNKNOWN,
                format!(
                    "Cannot find the user '{to}', because it does not exist or you do not have \
                     permission."
                ),
            ));
        };
        let key = (name, state.as_declared(on), permission);
        match action {
            GrantAction::Grant => state.permissions.granted.insert(key, true),
            GrantAction::Deny => state.permissions.granted.insert(key, false),
            GrantAction::Revoke => state.permissions.granted.remove(&key),
        };
        Ok(())
    }

    /// True when a login has a right.
    #[must_use]
    pub fn permits(&self, login: &Login, permission: Permission, on: &Securable) -> bool {
        self.look().permissions.permits(login, permission, on)
    }

    /// True when a login may know that an object exists: it has some right on it.
    #[must_use]
    pub fn may_see(&self, login: &Login, object: &TableName) -> bool {
        self.look().permissions.may_see(login, object)
    }

    /// The rights that were granted and denied.
    #[must_use]
    pub fn granted(&self) -> Vec<Granted> {
        let state = self.look();
        let one =
            |((grantee, on, permission), granted): (&(String, Securable, Permission), &bool)| {
                Granted {
                    grantee: grantee.clone(),
                    permission: *permission,
                    on: on.clone(),
                    denied: !granted,
                }
            };
        state.permissions.granted.iter().map(one).collect()
    }
}

impl DatabaseState {
    /// A securable under the names that its schema and object were declared with.
    fn as_declared(&self, on: &Securable) -> Securable {
        let schema = |name: &str| {
            let fixed = FIXED_SCHEMAS.iter().map(|(name, _)| *name).chain(["cdc"]);
            let known = fixed.chain(self.schemas.keys().map(String::as_str));
            let found = known.into_iter().find(|other| other.eq_ignore_ascii_case(name));
            found.unwrap_or(name).to_owned()
        };
        match on {
            Securable::Database => Securable::Database,
            Securable::Schema(name) => Securable::Schema(schema(name)),
            Securable::Object(name) => {
                let table = self.find_table(name).map(|(_, table)| table.name.clone());
                let change_table = || {
                    let mut tables = self
                        .instances
                        .values()
                        .map(|instance| TableName::new("cdc", format!("{}_CT", instance.name)));
                    tables.find(|table| {
                        self.same(&table.name, &name.name)
                            && table.schema.eq_ignore_ascii_case(&name.schema)
                    })
                };
                let declared = table.or_else(change_table);
                let written = || TableName::new(schema(&name.schema), name.name.clone());
                Securable::Object(declared.unwrap_or_else(written))
            }
        }
    }
}

impl Permissions {
    pub(crate) fn new(created: ServerTime) -> Self {
        Self { principals: Principals::new(created), granted: BTreeMap::new() }
    }

    fn set_select(&mut self, login: &str, on: Securable, granted: bool) {
        self.principals.ensure_user(login);
        let key = (login.to_owned(), on, Permission::Select);
        if granted {
            self.granted.insert(key, true);
        } else {
            self.granted.remove(&key);
        }
    }

    /// Rights belong to the table, not to its name.
    pub(crate) fn rename_table(&mut self, from: &TableName, to: &TableName) {
        let renamed = std::mem::take(&mut self.granted).into_iter();
        self.granted = renamed
            .map(|((grantee, on, permission), granted)| {
                let on = match on {
                    Securable::Object(name) if name == *from => Securable::Object(to.clone()),
                    on => on,
                };
                ((grantee, on, permission), granted)
            })
            .collect();
    }

    /// Rights go with their object.
    pub(crate) fn forget(&mut self, object: &TableName) {
        self.granted
            .retain(|(_, on, _), _| !matches!(on, Securable::Object(name) if name == object));
    }

    /// The user that a login is: `dbo` for the owner.
    pub(crate) fn user_name(&self, login: &Login) -> Option<String> {
        match login {
            Login::Owner => Some("dbo".into()),
            Login::Named(name) => self.principals.user_of(name).map(|user| user.name.clone()),
        }
    }

    pub(crate) fn may_select(&self, login: &Login, table: &TableName) -> bool {
        self.permits(login, Permission::Select, &Securable::Object(table.clone()))
    }

    pub(crate) fn may_select_changes(&self, login: &Login, instance: &InstanceName) -> bool {
        self.permits(login, Permission::Select, &Securable::change_table(instance))
    }

    /// True when the login is in the gating role, or when there is none.
    pub(crate) fn in_role(&self, login: &Login, role: Option<&String>) -> bool {
        role.is_none_or(|role| self.is_member(login, role))
    }

    /// True when the login is a member of a role, by however many steps.
    pub(crate) fn is_member(&self, login: &Login, role: &str) -> bool {
        match login {
            Login::Owner => true,
            Login::Named(name) => {
                let held = self.held(name);
                held.contains("db_owner") || held.iter().any(|name| name.eq_ignore_ascii_case(role))
            }
        }
    }

    /// The names under which rights come to a login: its user, its roles, `public`.
    fn held(&self, login: &str) -> BTreeSet<String> {
        let user = self.principals.user_of(login).map_or(login, |user| &user.name);
        self.principals.roles_of(user)
    }

    pub(crate) fn permits(&self, login: &Login, permission: Permission, on: &Securable) -> bool {
        let Login::Named(name) = login else { return true };
        let held = self.held(name);
        if held.contains("db_owner") || held.contains("dbo") {
            return true;
        }
        let mut levels = vec![on.clone()];
        if let Securable::Object(object) = on {
            levels.push(Securable::Schema(object.schema.clone()));
        }
        if *on != Securable::Database {
            levels.push(Securable::Database);
        }
        let stated = |permission| {
            levels
                .iter()
                .flat_map(|level| {
                    held.iter().filter_map(|name| {
                        self.granted.get(&(name.clone(), level.clone(), permission)).copied()
                    })
                })
                .collect::<Vec<bool>>()
        };
        let own = stated(permission);
        let control = stated(Permission::Control);
        if own.contains(&false) || control.contains(&false) {
            return false;
        }
        let (reads, writes) = (
            permission == Permission::Select,
            matches!(permission, Permission::Insert | Permission::Update | Permission::Delete),
        );
        if (reads && held.contains("db_denydatareader"))
            || (writes && held.contains("db_denydatawriter"))
        {
            return false;
        }
        own.contains(&true)
            || control.contains(&true)
            || (reads && held.contains("db_datareader"))
            || (writes && held.contains("db_datawriter"))
            || (held.contains("db_ddladmin")
                && matches!(permission, Permission::Alter | Permission::CreateTable))
            || (permission == Permission::Connect && self.principals.user_of(name).is_some())
    }

    pub(crate) fn may_see(&self, login: &Login, object: &TableName) -> bool {
        let on = Securable::Object(object.clone());
        Permission::ALL.into_iter().any(|permission| {
            !matches!(
                permission,
                Permission::Connect | Permission::CreateTable | Permission::ViewDatabaseState
            ) && self.permits(login, permission, &on)
        })
    }

    pub(crate) fn require_select(&self, login: &Login, table: &TableName) -> SqlResult<()> {
        if self.may_select(login, table) {
            return Ok(());
        }
        Err(SqlError::denied(&table_grant(login, table)))
    }

    pub(crate) fn require_changes(&self, login: &Login, instance: &InstanceName) -> SqlResult<()> {
        if self.may_select_changes(login, instance) {
            return Ok(());
        }
        Err(SqlError::denied(&change_table_grant(login, instance)))
    }
}

/// The statement that lets a login read a table.
pub(crate) fn table_grant(login: &Login, table: &TableName) -> String {
    format!("GRANT SELECT ON [{}].[{}] TO [{}]", table.schema, table.name, login.name())
}

/// The statement that lets a login read a change table.
pub(crate) fn change_table_grant(login: &Login, instance: &InstanceName) -> String {
    format!("GRANT SELECT ON cdc.[{instance}_CT] TO [{}]", login.name())
}

#[cfg(test)]
mod tests;
