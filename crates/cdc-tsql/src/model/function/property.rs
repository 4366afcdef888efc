//! Properties: of the server, databases, objects, columns, types and the session.

use cdc_fake::{IndexKind, Login, ReplicaRole, Zone};
use chrono::{DateTime, Offset as _, TimeZone as _};

use super::{
    Names, Object, ObjectKind, SqlResult, Typed, Value, capture::columns_of, integer, is_table,
    number, object_named, object_of, some, text,
};
use crate::{model::view::described, talk::VERSION};

pub(super) fn value(
    names: &Names<'_>,
    name: &str,
    arguments: &[Typed],
) -> Option<SqlResult<Value>> {
    let word = |at| text(arguments, at).unwrap_or_default().to_ascii_lowercase();
    Some(Ok(match name {
        "serverproperty" => server(names, &word(0)),
        "databasepropertyex" | "databaseproperty" => database(names, arguments, &word(1)),
        "connectionproperty" => match word(0).as_str() {
            "net_transport" => some("TCP"),
            "protocol_type" => some("TSQL"),
            "auth_scheme" => some("SQL"),
            "local_net_address" | "client_net_address" => some("127.0.0.1"),
            "local_tcp_port" => some("1433"),
            "physical_net_transport" => some("TCP"),
            _ => Value::Null,
        },
        "sessionproperty" => session(names, &word(0)),
        "fulltextserviceproperty" => match word(0).as_str() {
            "isfulltextinstalled" => Value::Int(0),
            _ => Value::Null,
        },
        "objectproperty" | "objectpropertyex" => {
            let found = object_of(names, integer(arguments, 0));
            let found = found.and_then(|object| object_property(names, &object, &word(1)));
            match (name, found) {
                (_, None) => Value::Null,
                ("objectproperty", Some(value)) => Value::Int(value),
                (_, Some(value)) => some(value.to_string()),
            }
        }
        "columnproperty" => {
            let object = object_of(names, integer(arguments, 0));
            let property =
                object.and_then(|object| column_property(names, &object, &word(1), &word(2)));
            property.map_or(Value::Null, Value::Int)
        }
        "col_length" => {
            let object = object_named(names, &text(arguments, 0)?);
            let columns = object.map(|object| columns_of(names, &object)).unwrap_or_default();
            let wanted = word(1);
            let found =
                columns.iter().find(|column| column.column.name.eq_ignore_ascii_case(&wanted));
            found.map_or(Value::Null, |column| {
                let facts = crate::model::view::facts(&column.column.kind.sql_type);
                Value::Int(facts.max_length.into())
            })
        }
        "indexproperty" => {
            let found = index_property(names, arguments, &word(1), &word(2));
            found.map_or(Value::Null, Value::Int)
        }
        _ => return type_value(name, arguments).or_else(|| session_value(names, name)),
    }))
}

/// Functions between types, their names and ids.
fn type_value(name: &str, arguments: &[Typed]) -> Option<SqlResult<Value>> {
    let word = |at| text(arguments, at).unwrap_or_default().to_ascii_lowercase();
    Some(Ok(match name {
        "type_name" => {
            let id = integer(arguments, 0);
            let types = crate::model::view::all_types();
            let found =
                types.iter().find(|(_, facts, _)| Some(i64::from(facts.user_type_id)) == id);
            found.map_or(Value::Null, |(name, ..)| some(*name))
        }
        "type_id" => {
            let wanted = super::parts(&word(0)).pop().unwrap_or_default();
            let types = crate::model::view::all_types();
            let found = types.iter().find(|(name, ..)| name.eq_ignore_ascii_case(&wanted));
            number(found.map(|(_, facts, _)| facts.user_type_id))
        }
        "typeproperty" => {
            let wanted = super::parts(&word(0)).pop().unwrap_or_default();
            let types = crate::model::view::all_types();
            let found = types.iter().find(|(name, ..)| name.eq_ignore_ascii_case(&wanted));
            found.map_or(Value::Null, |(_, facts, _)| match word(1).as_str() {
                "precision" => Value::Int(facts.precision.into()),
                "scale" => Value::Int(facts.scale.into()),
                "allowsnull" => Value::Int(1),
                "ownerid" => Value::Int(4),
                _ => Value::Null,
            })
        }
        _ => return None,
    }))
}

/// Functions about the session and the server's clock.
fn session_value(names: &Names<'_>, name: &str) -> Option<SqlResult<Value>> {
    Some(Ok(match name {
        "app_name" => some(&names.access.application),
        "host_name" => some(&names.access.host),
        "host_id" => some(format!("{:<10}", names.access.session)),
        "current_timezone" => some(zone_text(names)),
        "current_timezone_id" => some(zone_id(names)),
        "min_active_rowversion" => {
            Value::bytes(&names.database.last_row_version().saturating_add(1).to_be_bytes())
        }
        "permissions" => Value::Int((names.access.rights == Login::Owner).into()),
        _ => return None,
    }))
}

fn server(names: &Names<'_>, property: &str) -> Value {
    some(match property {
        "productversion" | "resourceversion" => return some(VERSION.to_string()),
        "productmajorversion" => return some(VERSION.major.to_string()),
        "productminorversion" => return some(VERSION.minor.to_string()),
        "productbuild" => return some(VERSION.build.to_string()),
        "productlevel" => VERSION.level,
        "productupdatelevel" => VERSION.update,
        "edition" => "Developer Edition (64-bit)",
        "engineedition" => "3",
        "editionid" => "-2117995310",
        "servername" | "machinename" | "computernamephysicalnetbios" => names.server.name(),
        "collation" => return some(names.database.options().collation),
        "sqlcharsetname" => "iso_1",
        "sqlcharset" => "1",
        "lcid" => "1033",
        "comparisonstyle" => "196609",
        "isclustered"
        | "ishadrenabled"
        | "isintegratedsecurityonly"
        | "issingleuser"
        | "isfulltextinstalled"
        | "islocaldb"
        | "ispolybaseinstalled"
        | "isxtpsupported"
        | "isbigdatacluster"
        | "isadvancedanalyticsinstalled" => "0",
        "processid" => "1",
        "licensetype" => "DISABLED",
        "buildclrversion" => "v4.0.30319",
        _ => return Value::Null,
    })
}

fn database(names: &Names<'_>, arguments: &[Typed], property: &str) -> Value {
    let Some(found) = text(arguments, 0).and_then(|name| names.server.find_database(&name)) else {
        return Value::Null;
    };
    let options = found.options();
    let flag = |set: bool| some(if set { "1" } else { "0" });
    match property {
        "collation" => some(options.collation),
        "status" => some("ONLINE"),
        "useraccess" => some("MULTI_USER"),
        "updateability" => {
            let reads_alone = options.read_only || options.replica == Some(ReplicaRole::Secondary);
            some(if reads_alone { "READ_ONLY" } else { "READ_WRITE" })
        }
        "recovery" => some(match options.recovery {
            1 => "FULL",
            2 => "BULK_LOGGED",
            _ => "SIMPLE",
        }),
        "isautoclose" | "isautoshrink" | "isinstandby" | "issubscribed" | "ispublished"
        | "isfulltextenabled" => flag(false),
        "isautocreatestatistics" | "isautoupdatestatistics" => flag(true),
        "issnapshotisolation" => flag(options.allow_snapshot_isolation),
        "version" => some("957"),
        "edition" | "serviceobjective" => Value::Null,
        "sqlsortorder" => some("52"),
        "comparisonstyle" => some("196609"),
        "lcid" => some("1033"),
        _ => Value::Null,
    }
}

fn session(names: &Names<'_>, property: &str) -> Value {
    let settings = &names.access.settings;
    let set = match property {
        "ansi_nulls" => settings.ansi_nulls,
        "quoted_identifier" => settings.quoted_identifier,
        "concat_null_yields_null" => settings.concat_null_yields_null,
        "arithabort" | "ansi_warnings" => settings.arithmetic_errors,
        "ansi_padding" => true,
        "numeric_roundabort" => false,
        _ => return Value::Null,
    };
    Value::Int(set.into())
}

fn object_property(names: &Names<'_>, object: &Object, property: &str) -> Option<i64> {
    let table = || names.database.table_info(&object.name);
    let kind = object.kind;
    let flag = |set: bool| Some(i64::from(set));
    match property {
        "istable" => flag(is_table(object)),
        "isusertable" => flag(is_table(object)),
        "issystemtable" => flag(false),
        "isview" => flag(kind == ObjectKind::View),
        "isprocedure" => flag(kind == ObjectKind::Procedure),
        "isinlinefunction" | "istablefunction" => flag(kind == ObjectKind::InlineFunction),
        "isscalarfunction" => flag(kind == ObjectKind::ScalarFunction),
        "isprimarykey" => flag(kind == ObjectKind::PrimaryKey),
        "isuniquecnst" => flag(kind == ObjectKind::Unique),
        "isdefaultcnst" => flag(kind == ObjectKind::Default),
        "ischeckcnst" => flag(kind == ObjectKind::Check),
        "ismsshipped" => flag(object.shipped),
        "ownerid" => Some(1),
        "schemaid" => super::schema_id(names.database, &object.name.schema).map(i64::from),
        "tablehasprimarykey" => {
            flag(table()?.indexes.iter().any(|index| index.kind == IndexKind::PrimaryKey))
        }
        "tablehasidentity" => flag(table()?.columns.iter().any(|c| c.identity.is_some())),
        "tablehasclustindex" => flag(table()?.indexes.iter().any(|index| index.clustered)),
        "tablehasindex" => flag(!table()?.indexes.is_empty()),
        "cardinality" => table().map(|table| i64::try_from(table.rows).unwrap_or(i64::MAX)),
        _ => None,
    }
}

fn column_property(
    names: &Names<'_>,
    object: &Object,
    column: &str,
    property: &str,
) -> Option<i64> {
    let columns = described(names, object);
    let found = columns.iter().find(|other| other.column.name.eq_ignore_ascii_case(column))?;
    let facts = crate::model::view::facts(&found.column.kind.sql_type);
    let flag = |set: bool| Some(i64::from(set));
    match property {
        "allowsnull" => flag(found.column.kind.nullable),
        "columnid" | "ordinal" => Some(found.id.into()),
        "isidentity" => flag(found.column.identity),
        "iscomputed" => flag(found.column.computed),
        "isrowguidcol"
        | "issparse"
        | "iscolumnset"
        | "ishidden"
        | "isfulltextindexed"
        | "isidnotforrepl"
        | "generatedalwaystype" => flag(false),
        "precision" => Some(facts.precision.into()),
        "scale" => Some(facts.scale.into()),
        "charmaxlen" => Some(match facts.name {
            "nvarchar" | "nchar" if facts.max_length > 0 => i64::from(facts.max_length) / 2,
            _ => facts.max_length.into(),
        }),
        "usesansitrim" => flag(true),
        _ => None,
    }
}

fn index_property(
    names: &Names<'_>,
    arguments: &[Typed],
    index: &str,
    property: &str,
) -> Option<i64> {
    let object = object_of(names, integer(arguments, 0))?;
    let table = names.database.table_info(&object.name)?;
    let found = table.indexes.iter().find(|other| other.name.eq_ignore_ascii_case(index))?;
    match property {
        "indexid" => Some(found.id.into()),
        "isclustered" => Some(found.clustered.into()),
        "isunique" => Some(found.kind.is_unique().into()),
        "isdisabled" | "ishypothetical" | "ispadindex" | "isstatistics" => Some(0),
        "indexdepth" => Some(1),
        _ => None,
    }
}

/// The zone's offset from UTC in minutes at the moment of the statement.
fn offset_minutes(zone: Zone, utc_ticks: i64) -> i32 {
    let moment = DateTime::from_timestamp_micros(utc_ticks.div_euclid(10)).unwrap_or_default();
    let seconds = match zone {
        Zone::Named(zone) | Zone::Early(zone, _) => {
            zone.offset_from_utc_datetime(&moment.naive_utc()).fix().local_minus_utc()
        }
        Zone::Fixed(offset) => offset.local_minus_utc(),
    };
    seconds / 60
}

/// `CURRENT_TIMEZONE_ID()`: the Windows name of the zone.
fn zone_id(names: &Names<'_>) -> String {
    match names.server.zone() {
        Zone::Named(zone) | Zone::Early(zone, _) => {
            let seconds = names.access.now.utc_ticks.div_euclid(10_000_000);
            crate::model::zone_name::windows_name(zone, seconds).to_owned()
        }
        Zone::Fixed(_) => {
            let minutes = offset_minutes(names.server.zone(), names.access.now.utc_ticks);
            match minutes {
                0 => "UTC".into(),
                minutes => {
                    let sign = if minutes < 0 { '-' } else { '+' };
                    format!("UTC{sign}{:02}", minutes.abs() / 60)
                }
            }
        }
    }
}

/// `CURRENT_TIMEZONE()`.
fn zone_text(names: &Names<'_>) -> String {
    let minutes = offset_minutes(names.server.zone(), names.access.now.utc_ticks);
    let name = zone_id(names);
    if name == "UTC" {
        return "(UTC) Coordinated Universal Time".into();
    }
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.abs();
    format!("(UTC{sign}{:02}:{:02}) {name}", minutes / 60, minutes % 60)
}
