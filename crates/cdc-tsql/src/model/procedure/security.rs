//! Procedures that rename objects and change who is in which role.

use cdc_core::{Length, SqlType, TableName};
use cdc_fake::{
    Permission, PrincipalKind, SchemaChange, Securable, SqlError, SqlResult, TableInfo,
};

use super::{Arguments, NAME, ProcedureInfo, ProcedureOutput, Typed, may, must, tell};
use crate::model::{Names, function};

const LONG_NAME: SqlType = SqlType::NVarChar(Length::Limited(1035));

pub(super) const PROCEDURES: &[ProcedureInfo] = &[
    ProcedureInfo {
        schema: "sys",
        name: "sp_rename",
        parameters: &[
            must("@objname", LONG_NAME),
            must("@newname", NAME),
            may("@objtype", SqlType::VarChar(Length::Limited(13))),
        ],
        run: rename,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_addrolemember",
        parameters: &[must("@rolename", NAME), must("@membername", NAME)],
        run: add_member,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_droprolemember",
        parameters: &[must("@rolename", NAME), must("@membername", NAME)],
        run: drop_member,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_addrole",
        parameters: &[must("@rolename", NAME), may("@ownername", NAME)],
        run: add_role,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_droprole",
        parameters: &[must("@rolename", NAME)],
        run: drop_role,
    },
    ProcedureInfo {
        schema: "sys",
        name: "sp_grantdbaccess",
        parameters: &[must("@loginame", NAME), may("@name_in_db", NAME)],
        run: grant_access,
    },
];

fn require_security(names: &Names<'_>) -> SqlResult<()> {
    let rights = &names.access.rights;
    if names.database.is_member(rights, "db_owner")
        || names.database.is_member(rights, "db_securityadmin")
    {
        return Ok(());
    }
    Err(SqlError::new(15_247, "User does not have permission to perform this action."))
}

fn ambiguous(name: &str) -> SqlError {
    SqlError::new(
        15_248,
        format!(
            "Either the parameter @objname ('{name}') is ambiguous or the claimed @objtype is \
             wrong."
        ),
    )
}

fn missing(names: &Names<'_>, name: &str) -> SqlError {
    SqlError::new(
        15_225,
        format!(
            "No item by the name of '{name}' could be found in the current database '{}'.",
            names.database.name()
        ),
    )
}

fn rename(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    output: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    let arguments = Arguments(arguments);
    let (text, to) = (arguments.text(0).unwrap_or_default(), arguments.text(1));
    let to = to.unwrap_or_default();
    let kind = arguments.text(2).unwrap_or_default().to_ascii_uppercase();
    let change = match kind.as_str() {
        "COLUMN" => {
            let mut parts = function::parts(&text);
            let column = parts.pop().ok_or_else(|| ambiguous(&text))?;
            let table = table(names, parts).ok_or_else(|| ambiguous(&text))?;
            SchemaChange::RenameColumn { table: table.name, from: column, to }
        }
        "" | "OBJECT" => {
            let table =
                table(names, function::parts(&text)).ok_or_else(|| missing(names, &text))?;
            SchemaChange::RenameTable { from: table.name, to }
        }
        other => {
            return Err(SqlError::new(
                50_000,
                format!("not supported by this server: sp_rename of {other}"),
            ));
        }
    };
    let on = Securable::Object(change.table().clone());
    if !names.database.permits(&names.access.rights, Permission::Alter, &on) {
        return Err(ambiguous(&text));
    }
    let waiting = names.access.waiting();
    names.database.change_schema_in(names.transaction(), &waiting, &change)?;
    tell(
        output,
        15_477,
        "sp_rename",
        "Caution: Changing any part of an object name could break scripts and stored procedures."
            .into(),
    );
    Ok(0)
}

fn table(names: &Names<'_>, mut parts: Vec<String>) -> Option<TableInfo> {
    let name = parts.pop()?;
    let schema = parts.pop().filter(|schema| !schema.is_empty());
    let schema = schema.unwrap_or_else(|| names.database.default_schema(&names.access.rights));
    names.database.table_info(&TableName::new(schema, name))
}

fn member(names: &Names<'_>, arguments: &[Option<Typed>], add: bool) -> SqlResult<i32> {
    require_security(names)?;
    let arguments = Arguments(arguments);
    let (role, member) = (arguments.text(0), arguments.text(1));
    names.database.alter_role(&role.unwrap_or_default(), &member.unwrap_or_default(), add)?;
    Ok(0)
}

fn add_member(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    member(names, arguments, true)
}

fn drop_member(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    member(names, arguments, false)
}

fn add_role(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_security(names)?;
    names.database.create_role(&Arguments(arguments).text(0).unwrap_or_default())?;
    Ok(0)
}

fn drop_role(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_security(names)?;
    let name = Arguments(arguments).text(0).unwrap_or_default();
    names.database.drop_principal(&name, PrincipalKind::Role)?;
    Ok(0)
}

fn grant_access(
    names: &Names<'_>,
    arguments: &[Option<Typed>],
    _: &mut dyn ProcedureOutput,
) -> SqlResult<i32> {
    require_security(names)?;
    let arguments = Arguments(arguments);
    let login = arguments.text(0).unwrap_or_default();
    let name = arguments.text(1).unwrap_or_else(|| login.clone());
    names.database.create_user(&name, Some(&login), None)?;
    Ok(0)
}
