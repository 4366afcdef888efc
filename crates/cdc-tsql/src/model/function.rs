//! Scalar functions that know the server: names and ids, rights, properties, positions in the log.

use cdc_core::{Length, Lsn, SqlType, TableName};
use cdc_fake::{Login, Permission, ReplicaRole, Securable, SqlError, SqlResult, Value};

use crate::{
    kind::{Kind, Typed},
    model::{
        Names,
        change_table::{lsn_of, lsn_value, may_read_changes},
        object::{Object, ObjectKind, schema_id},
        view::described,
    },
    relation::ObjectName,
};

mod argument;
mod capture;
mod property;

use argument::{integer, text};

/// The functions of schema `sys` over captured changes.
pub(super) const CAPTURE_FUNCTIONS: [&str; 9] = [
    "fn_cdc_get_max_lsn",
    "fn_cdc_get_min_lsn",
    "fn_cdc_increment_lsn",
    "fn_cdc_decrement_lsn",
    "fn_cdc_map_lsn_to_time",
    "fn_cdc_map_time_to_lsn",
    "fn_cdc_get_column_ordinal",
    "fn_cdc_has_column_changed",
    "fn_cdc_is_bit_set",
];

const NAME: SqlType = SqlType::NVarChar(Length::Limited(128));
const NUMBER: SqlType = SqlType::Decimal { precision: 38, scale: 0 };

/// A function: its name, how many arguments it takes at least and at most, and what it gives.
struct Known(&'static str, usize, usize, SqlType);

const KNOWN: &[Known] = &[
    Known("fn_cdc_get_max_lsn", 0, 0, SqlType::Binary(10)),
    Known("fn_cdc_get_min_lsn", 1, 1, SqlType::Binary(10)),
    Known("fn_cdc_increment_lsn", 1, 1, SqlType::Binary(10)),
    Known("fn_cdc_decrement_lsn", 1, 1, SqlType::Binary(10)),
    Known("fn_cdc_map_lsn_to_time", 1, 1, SqlType::DateTime),
    Known("fn_cdc_map_time_to_lsn", 2, 2, SqlType::Binary(10)),
    Known("fn_cdc_get_column_ordinal", 2, 2, SqlType::Int),
    Known("fn_cdc_has_column_changed", 3, 3, SqlType::Bit),
    Known("fn_cdc_is_bit_set", 2, 2, SqlType::Bit),
    Known("fn_hadr_is_primary_replica", 1, 1, SqlType::Bit),
    Known("object_id", 1, 2, SqlType::Int),
    Known("object_name", 1, 2, NAME),
    Known("object_schema_name", 1, 2, NAME),
    Known("object_definition", 1, 1, SqlType::NVarChar(Length::Max)),
    Known("schema_name", 0, 1, NAME),
    Known("schema_id", 0, 1, SqlType::Int),
    Known("db_id", 0, 1, SqlType::SmallInt),
    Known("db_name", 0, 1, NAME),
    Known("col_name", 2, 2, NAME),
    Known("col_length", 2, 2, SqlType::SmallInt),
    Known("columnproperty", 3, 3, SqlType::Int),
    Known("objectproperty", 2, 2, SqlType::Int),
    Known("objectpropertyex", 2, 2, NAME),
    Known("indexproperty", 3, 3, SqlType::Int),
    Known("index_col", 3, 3, NAME),
    Known("type_name", 1, 1, NAME),
    Known("type_id", 1, 1, SqlType::Int),
    Known("typeproperty", 2, 2, SqlType::Int),
    Known("user_name", 0, 1, NAME),
    Known("user_id", 0, 1, SqlType::Int),
    Known("database_principal_id", 0, 1, SqlType::Int),
    Known("suser_sname", 0, 1, NAME),
    Known("suser_name", 0, 1, NAME),
    Known("suser_id", 0, 1, SqlType::Int),
    Known("suser_sid", 0, 1, SqlType::VarBinary(Length::Limited(85))),
    Known("current_user", 0, 0, NAME),
    Known("session_user", 0, 0, NAME),
    Known("user", 0, 0, NAME),
    Known("system_user", 0, 0, NAME),
    Known("original_login", 0, 0, NAME),
    Known("is_member", 1, 1, SqlType::Int),
    Known("is_rolemember", 1, 2, SqlType::Int),
    Known("is_srvrolemember", 1, 2, SqlType::Int),
    Known("has_perms_by_name", 3, 5, SqlType::Int),
    Known("has_dbaccess", 1, 1, SqlType::Int),
    Known("permissions", 0, 2, SqlType::Int),
    Known("serverproperty", 1, 1, NAME),
    Known("databasepropertyex", 2, 2, NAME),
    Known("databaseproperty", 2, 2, SqlType::Int),
    Known("connectionproperty", 1, 1, NAME),
    Known("sessionproperty", 1, 1, SqlType::Int),
    Known("fulltextserviceproperty", 1, 1, SqlType::Int),
    Known("app_name", 0, 0, NAME),
    Known("host_name", 0, 0, NAME),
    Known("host_id", 0, 0, SqlType::Char(10)),
    Known("current_timezone", 0, 0, SqlType::VarChar(Length::Limited(128))),
    Known("current_timezone_id", 0, 0, SqlType::VarChar(Length::Limited(256))),
    Known("ident_current", 1, 1, NUMBER),
    Known("ident_seed", 1, 1, NUMBER),
    Known("ident_incr", 1, 1, NUMBER),
    Known("min_active_rowversion", 0, 0, SqlType::Binary(8)),
    Known("context_info", 0, 0, SqlType::VarBinary(Length::Limited(128))),
];

fn known(name: &ObjectName) -> Option<&'static Known> {
    let schema = name.schema.as_deref().filter(|schema| !schema.is_empty());
    let spelt = name.name.to_ascii_lowercase();
    let in_sys = spelt.starts_with("fn_cdc_") || spelt.starts_with("fn_hadr_");
    let fits = match schema {
        Some(schema) => schema.eq_ignore_ascii_case("sys") && in_sys,
        None => !in_sys,
    };
    KNOWN.iter().find(|known| fits && known.0.eq_ignore_ascii_case(&name.name))
}

/// The type of a function; none when there is no such function.
pub(super) fn kind(name: &ObjectName, arguments: &[Kind]) -> Option<SqlResult<Kind>> {
    let Known(spelt, least, most, sql_type) = known(name)?;
    let given = arguments.len();
    if given < *least && spelt.starts_with("fn_cdc") {
        return Some(Err(SqlError::new(
            313,
            format!(
                "An insufficient number of arguments were supplied for the procedure or function \
                 sys.{spelt}."
            ),
        )));
    }
    if given > *most && spelt.starts_with("fn_cdc") {
        return Some(Err(too_many_arguments(&format!("sys.{spelt}"))));
    }
    if given < *least || given > *most {
        let number = if least == most { 174 } else { 189 };
        let wanted = if least == most {
            format!("requires {least} argument(s).")
        } else {
            format!("requires {least} to {most} arguments.")
        };
        return Some(Err(SqlError::new(number, format!("The {spelt} function {wanted}"))));
    }
    Some(Ok(Kind::new(sql_type.clone(), true)))
}

/// The error of a function of the catalogue with more arguments than it has.
pub(super) fn too_many_arguments(name: &str) -> SqlError {
    SqlError::new(8144, format!("Procedure or function {name} has too many arguments specified."))
}

/// The value of a function.
pub(super) fn value(names: &Names<'_>, name: &ObjectName, arguments: &[Typed]) -> SqlResult<Value> {
    let Some(Known(spelt, ..)) = known(name) else {
        return Err(SqlError::new(
            195,
            format!("'{}' is not a recognized built-in function name.", name.name),
        ));
    };
    if spelt.starts_with("fn_cdc_") {
        return capture::value(names, spelt, arguments);
    }
    if spelt.starts_with("fn_hadr_") {
        return primary(names, arguments);
    }
    let found = named(names, spelt, arguments)
        .or_else(|| principal(names, spelt, arguments))
        .or_else(|| property::value(names, spelt, arguments));
    found.unwrap_or(Ok(Value::Null))
}

/// Text as a value.
fn some(text: impl AsRef<str>) -> Value {
    Value::text(text.as_ref())
}

fn number(number: Option<i32>) -> Value {
    number.map_or(Value::Null, |number| Value::Int(number.into()))
}

/// `sys.fn_hadr_is_primary_replica(name)`; NULL for a database that no group has.
fn primary(names: &Names<'_>, arguments: &[Typed]) -> SqlResult<Value> {
    names.require_server_state()?;
    let found = text(arguments, 0).and_then(|name| names.server.find_database(&name));
    let role = found.and_then(|database| database.options().replica);
    Ok(role.map_or(Value::Null, |role| Value::Bit(role == ReplicaRole::Primary)))
}

/// Functions between names and ids.
fn named(names: &Names<'_>, name: &str, arguments: &[Typed]) -> Option<SqlResult<Value>> {
    let first = |at| text(arguments, at);
    Some(Ok(match name {
        "object_id" => {
            let wanted = first(1).map(|kind| kind.trim().to_uppercase());
            let found = first(0).and_then(|name| object_named(names, &name));
            let fits = found.filter(|object| {
                wanted.as_ref().is_none_or(|kind| object.kind.names().0.trim() == kind)
            });
            number(fits.map(|object| object.id))
        }
        "object_name" | "object_schema_name" => {
            let shown = |object: &Object| match name {
                "object_name" => some(&object.name.name),
                _ => some(&object.name.schema),
            };
            return Some(
                object_by_id(names, arguments)
                    .map(|found| found.as_ref().map_or(Value::Null, shown)),
            );
        }
        "schema_name" => match integer(arguments, 0) {
            None if arguments.is_empty() => {
                some(names.database.default_schema(&names.access.rights))
            }
            id => {
                let schemas = names.database.schemas();
                let found = schemas.into_iter().find(|(_, other)| Some(i64::from(*other)) == id);
                found.map_or(Value::Null, |(name, _)| some(name))
            }
        },
        "schema_id" => {
            let own = || names.database.default_schema(&names.access.rights);
            let wanted = if arguments.is_empty() { Some(own()) } else { first(0) };
            number(wanted.and_then(|name| schema_id(names.database, &name)))
        }
        "db_id" => match first(0) {
            None if arguments.is_empty() => number(Some(names.database.id())),
            None => Value::Null,
            Some(name) => number(names.server.find_database(&name).map(|found| found.id())),
        },
        "db_name" => match integer(arguments, 0) {
            None if arguments.is_empty() => some(names.database.name()),
            id => {
                let all = names.server.databases();
                let found = all.iter().find(|other| Some(i64::from(other.id())) == id);
                found.map_or(Value::Null, |found| some(found.name()))
            }
        },
        "col_name" => {
            let object = object_of(names, integer(arguments, 0));
            let id = integer(arguments, 1);
            let columns = object.map(|object| described(names, &object)).unwrap_or_default();
            let found = columns.iter().find(|column| Some(i64::from(column.id)) == id);
            found.map_or(Value::Null, |column| some(&column.column.name))
        }
        "index_col" => index_col(names, arguments).map_or(Value::Null, some),
        "ident_current" | "ident_seed" | "ident_incr" => identity(names, name, arguments)
            .map_or(Value::Null, |number| Value::decimal(number.into())),
        _ => return None,
    }))
}

/// The parts of a name in a text: brackets and quotes are taken off.
pub(super) fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut closing: Option<char> = None;
    let mut letters = text.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        let Some(part) = parts.last_mut() else { break };
        match (closing, letter) {
            (Some(end), letter) if letter == end => {
                if letters.peek() == Some(&end) {
                    part.push(end);
                    letters.next();
                } else {
                    closing = None;
                }
            }
            (None, '[') => closing = Some(']'),
            (None, '"') => closing = Some('"'),
            (None, '.') => parts.push(String::new()),
            (_, letter) => part.push(letter),
        }
    }
    parts
}

/// The object that a text names, in this database or the one that it says.
pub(super) fn object_named(names: &Names<'_>, text: &str) -> Option<Object> {
    let mut parts = parts(text).into_iter().rev();
    let name = parts.next()?;
    let schema = parts.next().filter(|schema| !schema.is_empty());
    let database = parts.next().filter(|database| !database.is_empty());
    let name = ObjectName { database, schema, name };
    names.within(&name, |names| Ok(names.object(name.schema.as_deref(), &name.name))).ok()?
}

fn object_of(names: &Names<'_>, id: Option<i64>) -> Option<Object> {
    let id = i32::try_from(id?).ok()?;
    names.objects(true).into_iter().find(|object| object.id == id)
}

/// The object of an id in the first argument, in the database of the second.
fn object_by_id(names: &Names<'_>, arguments: &[Typed]) -> SqlResult<Option<Object>> {
    let id = integer(arguments, 0);
    if arguments.len() < 2 {
        return Ok(object_of(names, id));
    }
    let wanted = integer(arguments, 1);
    let all = names.server.databases();
    let found = all.iter().find(|other| Some(i64::from(other.id())) == wanted);
    let found = found.filter(|database| names.opens(database));
    Ok(found.and_then(|database| object_of(&Names::new(names.server, database, names.access), id)))
}

fn index_col(names: &Names<'_>, arguments: &[Typed]) -> Option<String> {
    let object = object_named(names, &text(arguments, 0)?)?;
    let table = names.database.table_info(&object.name)?;
    let (id, at) = (integer(arguments, 1)?, integer(arguments, 2)?);
    let index = table.indexes.iter().find(|index| i64::from(index.id) == id)?;
    let (column, _) = index.columns.get(usize::try_from(at.checked_sub(1)?).ok()?)?;
    let found = table.columns.iter().find(|other| other.column.id == *column)?;
    Some(found.column.name.clone())
}

fn identity(names: &Names<'_>, name: &str, arguments: &[Typed]) -> Option<i64> {
    let object = object_named(names, &text(arguments, 0)?)?;
    let table = names.database.table_info(&object.name)?;
    let identity = table.columns.iter().find_map(|column| column.identity)?;
    Some(match name {
        "ident_seed" => identity.seed,
        "ident_incr" => identity.increment,
        _ => identity.last.unwrap_or(identity.seed),
    })
}

/// Functions about who asks and what it may do.
fn principal(names: &Names<'_>, name: &str, arguments: &[Typed]) -> Option<SqlResult<Value>> {
    let user = || names.database.user_name(&names.access.rights);
    let own = || user().unwrap_or_else(|| "guest".into());
    let principals = || names.database.principals();
    Some(Ok(match name {
        "current_user" | "session_user" | "user" => some(own()),
        "user_name" if arguments.is_empty() => some(own()),
        "user_name" => {
            let id = integer(arguments, 0);
            let found = principals().into_iter().find(|other| Some(i64::from(other.id)) == id);
            found.map_or(Value::Null, |found| some(found.name))
        }
        "user_id" | "database_principal_id" => {
            let wanted = if arguments.is_empty() { Some(own()) } else { text(arguments, 0) };
            let found = wanted.and_then(|wanted| {
                principals().into_iter().find(|other| other.name.eq_ignore_ascii_case(&wanted))
            });
            number(found.map(|found| found.id))
        }
        "system_user" | "original_login" => some(&names.access.login),
        "suser_sname" | "suser_name" if arguments.is_empty() => some(&names.access.login),
        "suser_name" => {
            let id = integer(arguments, 0);
            let logins = names.server.logins();
            let found = logins.into_iter().find(|login| Some(i64::from(login.id)) == id);
            found.map_or(Value::Null, |login| some(login.name))
        }
        "suser_sname" => match arguments.first().map(|argument| &argument.value) {
            Some(Value::Bytes(bytes)) if **bytes == [1] => some("sa"),
            _ => Value::Null,
        },
        "suser_id" => {
            let wanted = if arguments.is_empty() {
                Some(names.access.login.clone())
            } else {
                text(arguments, 0)
            };
            number(wanted.and_then(|name| names.server.login(&name)).map(|login| login.id))
        }
        "suser_sid" => Value::bytes(&[1]),
        "is_member" | "is_rolemember" => member(names, arguments),
        "is_srvrolemember" => {
            let wanted = text(arguments, 0)?.to_ascii_lowercase();
            let login = text(arguments, 1);
            let admin = match login {
                Some(login) => names.server.login(&login).is_some_and(|login| login.sysadmin),
                None => names.access.rights == Login::Owner,
            };
            match wanted.as_str() {
                "public" => Value::Int(1),
                "sysadmin" | "serveradmin" | "setupadmin" | "securityadmin" | "processadmin"
                | "dbcreator" | "diskadmin" | "bulkadmin" => Value::Int(admin.into()),
                _ => Value::Null,
            }
        }
        "has_dbaccess" => {
            match text(arguments, 0).and_then(|name| names.server.find_database(&name)) {
                Some(database) => Value::Int(names.opens(&database).into()),
                None => Value::Null,
            }
        }
        "has_perms_by_name" => has_permission(names, arguments),
        _ => return None,
    }))
}

fn member(names: &Names<'_>, arguments: &[Typed]) -> Value {
    let Some(role) = text(arguments, 0) else { return Value::Null };
    let principals = names.database.principals();
    let known = principals.iter().any(|other| other.name.eq_ignore_ascii_case(&role));
    if !known {
        return Value::Null;
    }
    let rights = match text(arguments, 1) {
        Some(user) => {
            let found = principals.into_iter().find(|other| other.name.eq_ignore_ascii_case(&user));
            match found {
                Some(found) if found.name == "dbo" => Login::Owner,
                Some(found) => Login::Named(found.login.unwrap_or(found.name)),
                None => return Value::Null,
            }
        }
        None => names.access.rights.clone(),
    };
    Value::Int(names.database.is_member(&rights, &role).into())
}

/// `HAS_PERMS_BY_NAME(securable, class, permission)`.
fn has_permission(names: &Names<'_>, arguments: &[Typed]) -> Value {
    let securable = text(arguments, 0);
    let class = text(arguments, 1).unwrap_or_default().to_ascii_uppercase();
    let Some(wanted) = text(arguments, 2) else { return Value::Null };
    let any = wanted.eq_ignore_ascii_case("ANY");
    if wanted.trim().eq_ignore_ascii_case("VIEW SERVER STATE") {
        return Value::Int(names.server.shows_its_state_to(&names.access.rights).into());
    }
    let Some(permission) = Permission::parse(wanted.trim()).or(any.then_some(Permission::Select))
    else {
        // Rights that this server does not know are an administrator's alone.
        return Value::Int((names.access.rights == Login::Owner).into());
    };
    let on = match (class.as_str(), securable) {
        ("OBJECT" | "OBJECT_OR_COLUMN", Some(name)) => {
            let Some(object) = object_anyway(names, &name) else { return Value::Null };
            Securable::Object(object)
        }
        ("SCHEMA", Some(name)) => {
            let name = parts(&name).pop().unwrap_or_default();
            if schema_id(names.database, &name).is_none() {
                return Value::Null;
            }
            Securable::Schema(name)
        }
        ("DATABASE", Some(name)) => {
            let name = parts(&name).pop().unwrap_or_default();
            return match names.open(&name) {
                Ok(database) => Value::Int(
                    database.permits(&names.access.rights, permission, &Securable::Database).into(),
                ),
                Err(_) => Value::Null,
            };
        }
        ("DATABASE", None) => Securable::Database,
        ("", None) | ("SERVER", None) => {
            return Value::Int((names.access.rights == Login::Owner).into());
        }
        _ => return Value::Null,
    };
    if let (true, Securable::Object(object)) = (any, &on) {
        return Value::Int(names.sees(object).into());
    }
    if is_shipped(&on) {
        return Value::Int(1);
    }
    Value::Int(names.database.permits(&names.access.rights, permission, &on).into())
}

/// True for an object that every login may read.
fn is_shipped(on: &Securable) -> bool {
    match on {
        Securable::Object(name) => {
            matches!(name.schema.as_str(), "sys" | "INFORMATION_SCHEMA")
                || (name.schema == "cdc" && name.name == "lsn_time_mapping")
        }
        _ => false,
    }
}

/// The object of a name, whether the login may know of it or not.
fn object_anyway(names: &Names<'_>, text: &str) -> Option<TableName> {
    let all = crate::model::Access { rights: Login::Owner, ..names.access.clone() };
    let names = Names::new(names.server, names.database, &all);
    object_named(&names, text).map(|object| object.name)
}

/// True for an object that is a table to its users.
fn is_table(object: &Object) -> bool {
    matches!(object.kind, ObjectKind::Table | ObjectKind::CaptureTable)
}
