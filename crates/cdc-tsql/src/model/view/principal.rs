//! Logins, users, roles and what was granted to them.

use cdc_fake::{
    FakeDatabase, Login, Permission, PrincipalKind, Securable, ServerLogin, SqlResult, Value,
    permissions::{DatabasePrincipal, Granted},
};

use crate::{
    model::{Names, object::schema_id, shape::row, view::View},
    relation::Row,
};

pub(super) const VIEWS: &[View] = &[
    View::public(
        "sys",
        "database_principals",
        "name sysname; principal_id int; type char(1); type_desc nvarchar(60)?; \
         default_schema_name sysname?; create_date datetime; modify_date datetime; \
         owning_principal_id int?; sid varbinary(85)?; is_fixed_role bit; \
         authentication_type int; authentication_type_desc nvarchar(60)?; \
         default_language_name sysname?; default_language_lcid int?; \
         allow_encrypted_value_modifications bit",
        database_principals,
    ),
    View::public(
        "sys",
        "database_role_members",
        "role_principal_id int; member_principal_id int",
        role_members,
    ),
    View::public(
        "sys",
        "database_permissions",
        "class tinyint; class_desc nvarchar(60)?; major_id int; minor_id int; \
         grantee_principal_id int; grantor_principal_id int; type char(4); \
         permission_name nvarchar(128)?; state char(1); state_desc nvarchar(60)?",
        permissions,
    ),
    View::public(
        "sys",
        "server_principals",
        "name sysname; principal_id int; sid varbinary(85)?; type char(1); \
         type_desc nvarchar(60)?; is_disabled bit?; create_date datetime; modify_date datetime; \
         default_database_name sysname?; default_language_name sysname?; credential_id int?; \
         owning_principal_id int?; is_fixed_role bit",
        server_principals,
    ),
    View::public(
        "sys",
        "sql_logins",
        "name sysname; principal_id int; sid varbinary(85)?; type char(1); \
         type_desc nvarchar(60)?; is_disabled bit?; create_date datetime; modify_date datetime; \
         default_database_name sysname?; default_language_name sysname?; credential_id int?; \
         is_policy_checked bit?; is_expiration_checked bit?",
        sql_logins,
    ),
    View::public(
        "sys",
        "server_role_members",
        "role_principal_id int; member_principal_id int",
        server_role_members,
    ),
    View::public(
        "sys",
        "fn_my_permissions_database",
        "entity_name sysname; subentity_name sysname; permission_name nvarchar(60)",
        own_permissions,
    ),
];

/// The role `sysadmin`'s id.
const SYSADMIN: i32 = 3;

/// A login's security identifier: its number, as wide as the server's.
fn sid(id: i32) -> Value {
    if id == 1 {
        return Value::bytes(&[1]);
    }
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().zip(id.to_le_bytes()) {
        *place = byte;
    }
    Value::bytes(&bytes)
}

/// The users and roles that a login may see: fixed ones, its own, and with rights on users all.
fn seen(names: &Names<'_>) -> Vec<DatabasePrincipal> {
    let own = names.database.user_name(&names.access.rights);
    let all = names.access.rights == Login::Owner
        || names.database.permits(
            &names.access.rights,
            Permission::ViewDefinition,
            &Securable::Database,
        );
    let mut principals = names.database.principals();
    principals.retain(|principal| {
        all || principal.fixed
            || principal.kind == PrincipalKind::Role
            || Some(&principal.name) == own.as_ref()
    });
    principals
}

fn database_principals(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |principal: &DatabasePrincipal| {
        let user = principal.kind == PrincipalKind::User;
        let login = principal.login.as_deref().and_then(|login| names.server.login(login));
        let instance = user && principal.login.is_some();
        row![
            &principal.name,
            principal.id,
            if user { "S" } else { "R" },
            if user { "SQL_USER" } else { "DATABASE_ROLE" },
            principal.default_schema.as_ref(),
            principal.created,
            principal.created,
            (!user).then_some(1),
            login.map(|login| sid(login.id)),
            principal.fixed && !user && principal.id != 0,
            i32::from(instance),
            if instance { "INSTANCE" } else { "NONE" },
            (),
            (),
            false
        ]
    };
    Ok(seen(names).iter().map(row).collect())
}

/// The id of a user or a role.
pub(super) fn id_of(database: &FakeDatabase, name: &str) -> i32 {
    let principals = database.principals();
    let found = principals.iter().find(|principal| principal.name.eq_ignore_ascii_case(name));
    found.map_or(0, |principal| principal.id)
}

fn role_members(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let database = names.database;
    let members = database.role_members();
    Ok(members
        .iter()
        .map(|(role, member)| row![id_of(database, role), id_of(database, member)])
        .collect())
}

fn permissions(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let all = names.access.rights == Login::Owner;
    let own = names.database.user_name(&names.access.rights);
    let mut rows = Vec::new();
    for granted in names.database.granted() {
        if !all && Some(&granted.grantee) != own.as_ref() {
            continue;
        }
        if let Some(row) = permission_row(names, &granted) {
            rows.push(row);
        }
    }
    // Every user may connect.
    for principal in seen(names) {
        if principal.kind == PrincipalKind::User && !principal.fixed {
            rows.push(row![0, "DATABASE", 0, 0, principal.id, 1, "CO  ", "CONNECT", "G", "GRANT"]);
        }
    }
    Ok(rows)
}

fn permission_row(names: &Names<'_>, granted: &Granted) -> Option<Row> {
    let (class, described, major) = match &granted.on {
        Securable::Database => (0, "DATABASE", 0),
        Securable::Schema(name) => (3, "SCHEMA", schema_id(names.database, name)?),
        Securable::Object(name) => {
            let object = names.object(Some(&name.schema), &name.name)?;
            (1, "OBJECT_OR_COLUMN", object.id)
        }
    };
    let grantee = id_of(names.database, &granted.grantee);
    let (state, state_text) = if granted.denied { ("D", "DENY") } else { ("G", "GRANT") };
    Some(row![
        class,
        described,
        major,
        0,
        grantee,
        1,
        granted.permission.code(),
        granted.permission.name(),
        state,
        state_text
    ])
}

/// The logins that a login may see: its own and `sa`, and with all rights every one.
fn seen_logins(names: &Names<'_>) -> Vec<ServerLogin> {
    let all = names.access.rights == Login::Owner;
    let logins = names.server.logins().into_iter();
    logins
        .filter(|login| {
            all || login.id == 1 || login.name.eq_ignore_ascii_case(&names.access.login)
        })
        .collect()
}

fn server_principals(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let mut rows: Vec<Row> = seen_logins(names)
        .iter()
        .map(|login| {
            row![
                &login.name,
                login.id,
                sid(login.id),
                "S",
                "SQL_LOGIN",
                login.disabled,
                login.created,
                login.created,
                &login.default_database,
                "us_english",
                (),
                (),
                false
            ]
        })
        .collect();
    let started = names.server.started();
    for (name, id) in [("public", 2), ("sysadmin", SYSADMIN)] {
        rows.push(row![
            name,
            id,
            sid(id),
            "R",
            "SERVER_ROLE",
            false,
            started,
            started,
            (),
            (),
            (),
            1,
            id == SYSADMIN
        ]);
    }
    Ok(rows)
}

fn sql_logins(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let row = |login: &ServerLogin| {
        row![
            &login.name,
            login.id,
            sid(login.id),
            "S",
            "SQL_LOGIN",
            login.disabled,
            login.created,
            login.created,
            &login.default_database,
            "us_english",
            (),
            false,
            false
        ]
    };
    Ok(seen_logins(names).iter().map(row).collect())
}

fn server_role_members(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let logins = seen_logins(names).into_iter().filter(|login| login.sysadmin);
    Ok(logins.map(|login| row![SYSADMIN, login.id]).collect())
}

fn own_permissions(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let held = Permission::ALL.into_iter().filter(|permission| {
        names.database.permits(&names.access.rights, *permission, &Securable::Database)
    });
    Ok(held.map(|permission| row!["database", "", permission.name()]).collect())
}
