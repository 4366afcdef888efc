//! Functions that know the session: `@@TRANCOUNT`, `SCOPE_IDENTITY()`, `ERROR_NUMBER()`.

use cdc_core::{Length, SqlType};
use cdc_fake::{SqlError, SqlResult, Value};

use super::scope::Scope;
use crate::{
    kind::{Kind, Typed},
    relation::ObjectName,
    talk::VERSION,
};

/// What `@@VERSION` says.
fn version_text() -> String {
    format!(
        "Microsoft SQL Server 2022 ({}-{}) - {VERSION} (X64)\n\t\
         in-memory test double with change data capture",
        VERSION.level, VERSION.update
    )
}

/// Functions without arguments, and the types they give.
fn result(name: &str) -> Option<SqlType> {
    Some(match name {
        "error_number" | "error_severity" | "error_state" | "error_line" => SqlType::Int,
        "error_message" => SqlType::NVarChar(Length::Limited(4000)),
        "error_procedure" => SqlType::NVarChar(Length::Limited(128)),
        "xact_state" => SqlType::SmallInt,
        "scope_identity" => SqlType::Decimal { precision: 38, scale: 0 },
        "rowcount_big" | "current_transaction_id" => SqlType::BigInt,
        "context_info" => SqlType::VarBinary(Length::Limited(128)),
        "trigger_nestlevel" | "current_request_id" => SqlType::Int,
        "sessionproperty" => SqlType::Int,
        "connectionproperty" => SqlType::NVarChar(Length::Limited(48)),
        _ => return None,
    })
}

/// The kind of a function's result; none when it is not the session's.
pub(super) fn kind(name: &ObjectName, arguments: &[Kind]) -> Option<SqlResult<Kind>> {
    if name.schema.is_some() || name.database.is_some() {
        return None;
    }
    let _ = arguments;
    result(&name.name.to_lowercase()).map(|sql_type| Ok(Kind::new(sql_type, true)))
}

/// The value of such a function.
pub(super) fn value(scope: &Scope<'_>, name: &ObjectName, arguments: &[Typed]) -> SqlResult<Value> {
    let name = name.name.to_lowercase();
    let core = scope.core;
    let text = |at: usize| match arguments.get(at).map(|argument| &argument.value) {
        Some(Value::Text(text)) => text.to_lowercase(),
        _ => String::new(),
    };
    if name.starts_with("error_") {
        return Ok(caught(scope, &name));
    }
    Ok(match name.as_str() {
        "xact_state" => {
            let open = core.transactions.count > 0;
            Value::Int(if core.transactions.doomed { -1 } else { i64::from(open) })
        }
        "scope_identity" => {
            core.last.identity.map_or(Value::Null, |id| Value::decimal(i128::from(id)))
        }
        "rowcount_big" => Value::Int(core.last.rows),
        "current_transaction_id" => {
            Value::Int(i64::try_from(core.transactions.descriptor).unwrap_or(0))
        }
        "context_info" => match core.options.context_info.is_empty() {
            true => Value::Null,
            false => Value::bytes(&core.options.context_info),
        },
        "trigger_nestlevel" | "current_request_id" => Value::Int(0),
        "sessionproperty" => session_property(scope, &text(0)),
        "connectionproperty" => match text(0).as_str() {
            "net_transport" | "physical_net_transport" => Value::text("TCP"),
            "protocol_type" => Value::text("TSQL"),
            "auth_scheme" => Value::text("SQL"),
            _ => Value::Null,
        },
        _ => return Err(SqlError::new(195, format!("'{name}' is not a recognized function."))),
    })
}

fn caught(scope: &Scope<'_>, name: &str) -> Value {
    let caught = scope.frame.caught.borrow();
    let Some(raised) = caught.last() else {
        return Value::Null;
    };
    match name {
        "error_number" => Value::Int(raised.number.into()),
        "error_severity" => Value::Int(raised.class.into()),
        "error_state" => Value::Int(raised.state.into()),
        "error_line" => Value::Int(raised.line.into()),
        "error_message" => Value::text(&raised.text),
        _ if raised.procedure.is_empty() => Value::Null,
        _ => Value::text(&raised.procedure),
    }
}

fn session_property(scope: &Scope<'_>, name: &str) -> Value {
    let options = &scope.core.options;
    let on = match name {
        "ansi_nulls" => options.expressions.ansi_nulls,
        "ansi_padding" => true,
        "ansi_warnings" => options.ansi_warnings,
        "arithabort" => options.arith_abort,
        "concat_null_yields_null" => options.expressions.concat_null_yields_null,
        "numeric_roundabort" => false,
        "quoted_identifier" => options.expressions.quoted_identifier,
        _ => return Value::Null,
    };
    Value::Int(on.into())
}

/// The value of a function that begins with `@@`; none when there is none of that name.
pub(super) fn variable(scope: &Scope<'_>, name: &str) -> Option<Typed> {
    let core = scope.core;
    let int = |number: i64| (SqlType::Int, Value::Int(number));
    let small = |number: i64| (SqlType::SmallInt, Value::Int(number));
    let text = |text: &str| (SqlType::NVarChar(Length::Limited(256)), Value::text(text));
    let (sql_type, value) = match name.to_lowercase().as_str() {
        "@@version" => (SqlType::NVarChar(Length::Limited(300)), Value::text(&version_text())),
        "@@spid" => small(core.handle.id().into()),
        "@@trancount" => int(core.transactions.count.into()),
        "@@rowcount" => int(core.last.rows),
        "@@error" => int(core.last.error.into()),
        "@@identity" => {
            let value = core.last.identity.map_or(Value::Null, |id| Value::decimal(id.into()));
            (SqlType::Decimal { precision: 38, scale: 0 }, value)
        }
        "@@servername" => text(core.server.name()),
        "@@servicename" => text("MSSQLSERVER"),
        "@@language" => text("us_english"),
        "@@langid" => small(0),
        "@@options" => int(core.options.bits()),
        "@@datefirst" => (SqlType::TinyInt, Value::Int(core.options.expressions.date_first.into())),
        "@@lock_timeout" => int(core.options.lock_timeout_ms().into()),
        "@@textsize" => int(core.options.text_size),
        "@@nestlevel" => int(scope.frame.nesting.into()),
        "@@fetch_status" => int(-1),
        "@@cursor_rows" | "@@procid" | "@@total_errors" | "@@remserver" => int(0),
        "@@max_connections" => int(32_767),
        "@@max_precision" => (SqlType::TinyInt, Value::Int(38)),
        "@@microsoftversion" => int(u32::from_be_bytes(VERSION.wire()).into()),
        "@@connections" => int(core.handle.id().into()),
        "@@dbts" => {
            let last = core.database.last_row_version();
            (SqlType::VarBinary(Length::Limited(8)), Value::bytes(&last.to_be_bytes()))
        }
        _ => return None,
    };
    Some(Typed::new(sql_type, value))
}
