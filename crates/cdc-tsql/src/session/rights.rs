//! Logins, users, roles, GRANT, DENY and REVOKE.

use cdc_fake::{GrantAction, Login, Permission, Securable, SqlError};

use super::{failure::Run, frame::Frame, runner::Runner};
use crate::syntax::{self, PermissionVerb, Right, unsupported};

impl Runner<'_> {
    /// Refuses what only an owner of the server or of the database may do.
    ///
    /// # Errors
    /// 15247, or the number that the server has for the statement.
    pub(super) fn require_owner(&self, statement: &str) -> Run<()> {
        let rights = &self.core.account.rights;
        if *rights == Login::Owner || self.core.database.is_member(rights, "db_owner") {
            return Ok(());
        }
        let number = match statement {
            "KILL" => 6102,
            "CREATE DATABASE" => 262,
            _ => 15_247,
        };
        let error =
            SqlError::new(number, format!("User does not have permission to perform {statement}."));
        Err(error.into())
    }

    /// Refuses what only a `sysadmin` may do.
    fn require_sysadmin(&self) -> Run<()> {
        if self.core.account.rights == Login::Owner {
            return Ok(());
        }
        Err(SqlError::new(15_247, "User does not have permission to perform this action.").into())
    }

    pub(super) fn right(&mut self, right: &Right, frame: &Frame) -> Run<()> {
        let server = self.core.server.clone();
        let database = self.core.database.clone();
        match right {
            Right::CreateLogin { name, password, database } => {
                self.require_sysadmin()?;
                server.create_login(name, password)?;
                if let Some(database) = database {
                    server.alter_login(name, None, |login| {
                        database.clone_into(&mut login.default_database);
                    })?;
                }
            }
            Right::AlterLogin { name, password, enabled } => {
                let own = name.eq_ignore_ascii_case(&self.core.account.login);
                if !own || password.is_none() {
                    self.require_sysadmin()?;
                }
                let disabled = enabled.map(|enabled| !enabled);
                server.alter_login(name, password.as_deref(), |login| {
                    login.disabled = disabled.unwrap_or(login.disabled);
                })?;
            }
            Right::DropLogin { name } => {
                self.require_sysadmin()?;
                server.drop_login(name)?;
            }
            Right::CreateUser { name, login, schema } => {
                self.require_owner("CREATE USER")?;
                if let Some(login) = login
                    && server.login(login).is_none()
                {
                    return Err(SqlError::new(
                        15_007,
                        format!("'{login}' is not a valid login or you do not have permission."),
                    )
                    .into());
                }
                database.create_user(name, login.as_deref(), schema.as_deref())?;
            }
            Right::DropUser { name, if_exists } => {
                self.require_owner("DROP USER")?;
                self.drop_principal(name, *if_exists, cdc_fake::permissions::PrincipalKind::User)?;
            }
            Right::CreateRole { name } => {
                self.require_owner("CREATE ROLE")?;
                database.create_role(name)?;
            }
            Right::DropRole { name, if_exists } => {
                self.require_owner("DROP ROLE")?;
                self.drop_principal(name, *if_exists, cdc_fake::permissions::PrincipalKind::Role)?;
            }
            Right::RoleMember { role, member, add, server: true } => {
                self.require_sysadmin()?;
                if !role.eq_ignore_ascii_case("sysadmin") {
                    return Err(unsupported("server roles other than sysadmin").into());
                }
                server.alter_login(member, None, |login| login.sysadmin = *add)?;
            }
            Right::RoleMember { role, member, add, server: false } => {
                self.require_owner("ALTER ROLE")?;
                database.alter_role(role, member, *add)?;
            }
            Right::Permission(permission) => self.permission(permission, frame)?,
        }
        Ok(())
    }

    fn drop_principal(
        &self,
        name: &str,
        if_exists: bool,
        kind: cdc_fake::permissions::PrincipalKind,
    ) -> Run<()> {
        let result = self.core.database.drop_principal(name, kind);
        match result {
            Err(error) if if_exists && error.number == 15_151 => Ok(()),
            other => Ok(other?),
        }
    }

    fn permission(&mut self, permission: &syntax::Permission, frame: &Frame) -> Run<()> {
        self.require_owner("GRANT, DENY or REVOKE")?;
        let action = match permission.verb {
            PermissionVerb::Grant => GrantAction::Grant,
            PermissionVerb::Deny => GrantAction::Deny,
            PermissionVerb::Revoke => GrantAction::Revoke,
        };
        let mut database = self.core.database.clone();
        let on = match &permission.on {
            syntax::Securable::Nothing => Securable::Database,
            syntax::Securable::Database(name) => {
                database = self.core.open_database(name)?;
                Securable::Database
            }
            syntax::Securable::Schema(name) => Securable::Schema(name.clone()),
            syntax::Securable::Object(name) => {
                let (found, table, _) = self.resolve(name, frame)?;
                self.require_object(name, frame)?;
                database = found;
                Securable::Object(table)
            }
        };
        for right in &permission.rights {
            if right == "VIEW SERVER STATE" {
                self.server_right(action, &permission.principals)?;
                continue;
            }
            for known in rights_of(right)? {
                for principal in &permission.principals {
                    database.set_permission(action, known, &on, principal)?;
                }
            }
        }
        Ok(())
    }

    /// A right on the server: it is granted to logins, from `master` alone.
    fn server_right(&self, action: GrantAction, logins: &[String]) -> Run<()> {
        self.require_sysadmin()?;
        if self.core.database.name() != "master" {
            return Err(SqlError::new(
                4621,
                "Permissions at the server scope can only be granted when the current database \
                 is master",
            )
            .into());
        }
        for login in logins {
            self.core.server.show_state_to(login, action == GrantAction::Grant)?;
        }
        Ok(())
    }

    /// Refuses a name that is no object's.
    fn require_object(&mut self, name: &crate::relation::ObjectName, frame: &Frame) -> Run<()> {
        let missing = self.scoped(frame, |scope, _| {
            use crate::relation::Catalogue;
            let known = scope.relation(name).is_ok() || scope.table_function_columns(name).is_ok();
            Ok(!known)
        })?;
        if missing && crate::model::procedure(name).is_none() {
            return Err(SqlError::new(
                15_151,
                format!(
                    "Cannot find the object '{}', because it does not exist or you do not have \
                     permission.",
                    name.name
                ),
            )
            .into());
        }
        Ok(())
    }
}

/// The rights that the words of a statement mean.
fn rights_of(words: &str) -> Run<Vec<Permission>> {
    if matches!(words, "ALL" | "ALL PRIVILEGES") {
        return Ok(vec![
            Permission::Select,
            Permission::Insert,
            Permission::Update,
            Permission::Delete,
            Permission::References,
        ]);
    }
    match Permission::parse(words) {
        Some(permission) => Ok(vec![permission]),
        None if words == "EXEC" => Ok(vec![Permission::Execute]),
        None => Err(unsupported(&format!("the right {words}")).into()),
    }
}
