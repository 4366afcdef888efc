//! Rights: who may see and read what.

use std::collections::{BTreeMap, BTreeSet};

use cdc_core::{InstanceName, TableName};

use crate::sql_error::{SqlError, SqlResult};

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

#[derive(Clone, Debug, Default)]
struct Grants {
    tables: BTreeSet<TableName>,
    change_tables: BTreeSet<InstanceName>,
    roles: BTreeSet<String>,
}

/// The rights of one database.
#[derive(Clone, Debug, Default)]
pub(crate) struct Permissions {
    grants: BTreeMap<String, Grants>,
}

impl Permissions {
    fn of(&mut self, login: &str) -> &mut Grants {
        self.grants.entry(login.into()).or_default()
    }

    pub(crate) fn set_table(&mut self, login: &str, table: &TableName, granted: bool) {
        let tables = &mut self.of(login).tables;
        if granted {
            tables.insert(table.clone());
        } else {
            tables.remove(table);
        }
    }

    pub(crate) fn set_change_table(&mut self, login: &str, name: &InstanceName, granted: bool) {
        let tables = &mut self.of(login).change_tables;
        if granted {
            tables.insert(name.clone());
        } else {
            tables.remove(name);
        }
    }

    /// Rights belong to the table, not to its name.
    pub(crate) fn rename_table(&mut self, from: &TableName, to: &TableName) {
        for grants in self.grants.values_mut() {
            if grants.tables.remove(from) {
                grants.tables.insert(to.clone());
            }
        }
    }

    pub(crate) fn add_role(&mut self, login: &str, role: &str) {
        self.of(login).roles.insert(role.into());
    }

    pub(crate) fn may_select(&self, login: &Login, table: &TableName) -> bool {
        self.check(login, |grants| grants.tables.contains(table))
    }

    pub(crate) fn may_select_changes(&self, login: &Login, instance: &InstanceName) -> bool {
        self.check(login, |grants| grants.change_tables.contains(instance))
    }

    /// True when the login is in the gating role, or when there is none.
    pub(crate) fn in_role(&self, login: &Login, role: Option<&String>) -> bool {
        role.is_none_or(|role| self.check(login, |grants| grants.roles.contains(role)))
    }

    fn check(&self, login: &Login, right: impl Fn(&Grants) -> bool) -> bool {
        match login {
            Login::Owner => true,
            Login::Named(name) => self.grants.get(name).is_some_and(right),
        }
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
