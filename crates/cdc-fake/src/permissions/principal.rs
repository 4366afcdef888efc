//! Users and roles of a database, and who is a member of what.

use std::collections::{BTreeMap, BTreeSet};

use cdc_core::ServerTime;

use crate::{
    database::FakeDatabase,
    permissions::Login,
    sql_error::{SqlError, SqlResult, number},
};

/// What a principal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    /// A user for a login.
    User,
    /// A role.
    Role,
}

/// A user or a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabasePrincipal {
    /// `principal_id`.
    pub id: i32,
    /// The name.
    pub name: String,
    /// What it is.
    pub kind: PrincipalKind,
    /// True for a role that every database has.
    pub fixed: bool,
    /// The login of a user.
    pub login: Option<String>,
    /// The schema that names without one mean.
    pub default_schema: Option<String>,
    /// When it was created, on the server's clock.
    pub created: ServerTime,
}

/// Roles that every database has, with their ids.
const FIXED_ROLES: [(&str, i32); 10] = [
    ("public", 0),
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

/// The principals of one database.
#[derive(Clone, Debug)]
pub(crate) struct Principals {
    created: ServerTime,
    // By name in lower case.
    known: BTreeMap<String, DatabasePrincipal>,
    // Role and member, in lower case.
    members: BTreeSet<(String, String)>,
    next: i32,
}

impl Principals {
    pub(crate) fn new(created: ServerTime) -> Self {
        let mut principals =
            Self { created, known: BTreeMap::new(), members: BTreeSet::new(), next: 5 };
        for (name, id) in FIXED_ROLES {
            principals.put(id, name, PrincipalKind::Role, true, None, None);
        }
        let dbo = Some("dbo");
        principals.put(1, "dbo", PrincipalKind::User, true, Some("sa"), dbo);
        principals.put(2, "guest", PrincipalKind::User, true, None, Some("guest"));
        principals.members.insert(("db_owner".into(), "dbo".into()));
        principals
    }

    fn put(
        &mut self,
        id: i32,
        name: &str,
        kind: PrincipalKind,
        fixed: bool,
        login: Option<&str>,
        default_schema: Option<&str>,
    ) {
        let principal = DatabasePrincipal {
            id,
            name: name.into(),
            kind,
            fixed,
            login: login.map(Into::into),
            default_schema: default_schema.map(Into::into),
            created: self.created,
        };
        self.known.insert(name.to_lowercase(), principal);
    }

    pub(crate) fn find(&self, name: &str) -> Option<&DatabasePrincipal> {
        self.known.get(&name.to_lowercase())
    }

    /// The user of a login.
    pub(crate) fn user_of(&self, login: &str) -> Option<&DatabasePrincipal> {
        let of = |user: &&DatabasePrincipal| {
            user.kind == PrincipalKind::User
                && user.login.as_ref().is_some_and(|name| name.eq_ignore_ascii_case(login))
        };
        self.known.values().find(of)
    }

    pub(crate) fn ensure_user(&mut self, name: &str) {
        if self.find(name).is_none() {
            let id = self.new_id();
            self.put(id, name, PrincipalKind::User, false, Some(name), Some("dbo"));
        }
    }

    pub(crate) fn ensure_role(&mut self, name: &str) {
        if self.find(name).is_none() {
            let id = self.new_id();
            self.put(id, name, PrincipalKind::Role, false, None, None);
        }
    }

    pub(crate) fn join(&mut self, role: &str, member: &str) {
        self.members.insert((role.to_lowercase(), member.to_lowercase()));
    }

    fn new_id(&mut self) -> i32 {
        let id = self.next;
        self.next += 1;
        id
    }

    /// A principal and every role it is in, by however many steps, by their names as declared.
    pub(crate) fn roles_of(&self, name: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::from([name.to_lowercase(), "public".to_owned()]);
        loop {
            let more: Vec<_> = self
                .members
                .iter()
                .filter(|(role, member)| found.contains(member) && !found.contains(role))
                .map(|(role, _)| role.clone())
                .collect();
            if more.is_empty() {
                break;
            }
            found.extend(more);
        }
        found
            .into_iter()
            .map(|name| self.known.get(&name).map_or(name, |known| known.name.clone()))
            .collect()
    }
}

impl FakeDatabase {
    /// The users and roles.
    #[must_use]
    pub fn principals(&self) -> Vec<DatabasePrincipal> {
        let mut all: Vec<_> = self.look().permissions.principals.known.values().cloned().collect();
        all.sort_by_key(|principal| principal.id);
        all
    }

    /// Roles and their members, by name.
    #[must_use]
    pub fn role_members(&self) -> Vec<(String, String)> {
        let state = self.look();
        let principals = &state.permissions.principals;
        let name = |key: &String| principals.known.get(key).map(|known| known.name.clone());
        let named = principals.members.iter();
        named.filter_map(|(role, member)| Some((name(role)?, name(member)?))).collect()
    }

    /// The user that a login is in this database: `dbo` for the owner.
    #[must_use]
    pub fn user_name(&self, login: &Login) -> Option<String> {
        self.look().permissions.user_name(login)
    }

    /// The schema that names without one mean to a login.
    #[must_use]
    pub fn default_schema(&self, login: &Login) -> String {
        let Login::Named(name) = login else { return "dbo".into() };
        let state = self.look();
        let user = state.permissions.principals.user_of(name);
        user.and_then(|user| user.default_schema.clone()).unwrap_or_else(|| "dbo".into())
    }

    /// True when a login is a member of a role, by however many steps.
    #[must_use]
    pub fn is_member(&self, login: &Login, role: &str) -> bool {
        self.look().permissions.is_member(login, role)
    }

    /// Creates a user for a login.
    ///
    /// # Errors
    /// 15023 when the name is taken, or the login has a user.
    pub fn create_user(
        &self,
        name: &str,
        login: Option<&str>,
        default_schema: Option<&str>,
    ) -> SqlResult<()> {
        let mut state = self.state();
        let created = state.zone.reading(self.now());
        let principals = &mut state.permissions.principals;
        let mapped = login.and_then(|login| principals.user_of(login));
        if principals.find(name).is_some() || mapped.is_some() {
            return Err(taken(name));
        }
        let id = principals.new_id();
        let schema = default_schema.unwrap_or("dbo");
        principals.put(id, name, PrincipalKind::User, false, login, Some(schema));
        if let Some(user) = principals.known.get_mut(&name.to_lowercase()) {
            user.created = created;
        }
        Ok(())
    }

    /// Creates a role.
    ///
    /// # Errors
    /// 15023 when the name is taken.
    pub fn create_role(&self, name: &str) -> SqlResult<()> {
        let mut state = self.state();
        let principals = &mut state.permissions.principals;
        if principals.find(name).is_some() {
            return Err(taken(name));
        }
        principals.ensure_role(name);
        Ok(())
    }

    /// Drops a user or a role, with its rights.
    ///
    /// # Errors
    /// 15151 for one that does not exist, 15150 for a fixed one.
    pub fn drop_principal(&self, name: &str, kind: PrincipalKind) -> SqlResult<()> {
        let mut state = self.state();
        let permissions = &mut state.permissions;
        let found = permissions.principals.find(name).filter(|found| found.kind == kind).cloned();
        let what = if kind == PrincipalKind::User { "user" } else { "role" };
        let Some(found) = found else { return Err(unknown("drop", what, name)) };
        if found.fixed {
            return Err(SqlError::new(15150, format!("Cannot drop the {what} '{name}'.")));
        }
        let key = name.to_lowercase();
        permissions.principals.known.remove(&key);
        permissions.principals.members.retain(|(role, member)| *role != key && *member != key);
        permissions.granted.retain(|(grantee, _, _), _| *grantee != found.name);
        Ok(())
    }

    /// Adds a member to a role, or removes one.
    ///
    /// # Errors
    /// 15151 for a role or a member that does not exist.
    pub fn alter_role(&self, role: &str, member: &str, add: bool) -> SqlResult<()> {
        let mut state = self.state();
        let principals = &mut state.permissions.principals;
        if principals.find(role).is_none_or(|found| found.kind != PrincipalKind::Role) {
            return Err(unknown("alter", "role", role));
        }
        if principals.find(member).is_none() {
            let verb = if add { "add" } else { "drop" };
            return Err(unknown(verb, "principal", member));
        }
        if add {
            principals.join(role, member);
        } else {
            let pair = (role.to_lowercase(), member.to_lowercase());
            principals.members.remove(&pair);
        }
        Ok(())
    }
}

fn taken(name: &str) -> SqlError {
    SqlError::new(
        number::PRINCIPAL_EXISTS,
        format!("User, group, or role '{name}' already exists in the current database."),
    )
}

fn unknown(verb: &str, what: &str, name: &str) -> SqlError {
    SqlError::new(
        number::PRINCIPAL_UNKNOWN,
        format!(
            "Cannot {verb} the {what} '{name}', because it does not exist or you do not have \
             permission."
        ),
    )
}
