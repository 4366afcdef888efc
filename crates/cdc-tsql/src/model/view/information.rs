//! `INFORMATION_SCHEMA`.

use cdc_core::SqlType;
use cdc_fake::{IndexKind, SqlResult, Value};

use crate::{
    model::{
        Names,
        object::ObjectKind,
        shape::row,
        view::{
            View,
            column::{collation_name, described, facts, is_text},
            table::seen_tables,
        },
    },
    relation::Row,
};

const SCHEMA: &str = "INFORMATION_SCHEMA";

pub(super) const VIEWS: &[View] = &[
    View::public(
        SCHEMA,
        "TABLES",
        "TABLE_CATALOG nvarchar(128)?; TABLE_SCHEMA sysname?; TABLE_NAME sysname; \
         TABLE_TYPE varchar(10)?",
        tables,
    ),
    View::public(
        SCHEMA,
        "VIEWS",
        "TABLE_CATALOG nvarchar(128)?; TABLE_SCHEMA nvarchar(128)?; TABLE_NAME sysname; \
         VIEW_DEFINITION nvarchar(4000)?; CHECK_OPTION varchar(7)?; IS_UPDATABLE varchar(2)",
        nothing,
    ),
    View::public(
        SCHEMA,
        "COLUMNS",
        "TABLE_CATALOG nvarchar(128)?; TABLE_SCHEMA nvarchar(128)?; TABLE_NAME nvarchar(128); \
         COLUMN_NAME nvarchar(128)?; ORDINAL_POSITION int?; COLUMN_DEFAULT nvarchar(4000)?; \
         IS_NULLABLE varchar(3)?; DATA_TYPE nvarchar(128)?; CHARACTER_MAXIMUM_LENGTH int?; \
         CHARACTER_OCTET_LENGTH int?; NUMERIC_PRECISION tinyint?; \
         NUMERIC_PRECISION_RADIX smallint?; NUMERIC_SCALE int?; DATETIME_PRECISION smallint?; \
         CHARACTER_SET_CATALOG sysname?; CHARACTER_SET_SCHEMA sysname?; \
         CHARACTER_SET_NAME sysname?; COLLATION_CATALOG sysname?; COLLATION_SCHEMA sysname?; \
         COLLATION_NAME sysname?; DOMAIN_CATALOG sysname?; DOMAIN_SCHEMA sysname?; \
         DOMAIN_NAME sysname?",
        columns,
    ),
    View::public(
        SCHEMA,
        "SCHEMATA",
        "CATALOG_NAME nvarchar(128)?; SCHEMA_NAME nvarchar(128); SCHEMA_OWNER nvarchar(128)?; \
         DEFAULT_CHARACTER_SET_CATALOG varchar(6)?; DEFAULT_CHARACTER_SET_SCHEMA varchar(3)?; \
         DEFAULT_CHARACTER_SET_NAME sysname?",
        schemata,
    ),
    View::public(
        SCHEMA,
        "TABLE_CONSTRAINTS",
        "CONSTRAINT_CATALOG nvarchar(128)?; CONSTRAINT_SCHEMA nvarchar(128)?; \
         CONSTRAINT_NAME sysname; TABLE_CATALOG nvarchar(128)?; TABLE_SCHEMA nvarchar(128)?; \
         TABLE_NAME sysname?; CONSTRAINT_TYPE varchar(11)?; IS_DEFERRABLE varchar(2); \
         INITIALLY_DEFERRED varchar(2)",
        constraints,
    ),
    View::public(
        SCHEMA,
        "KEY_COLUMN_USAGE",
        "CONSTRAINT_CATALOG nvarchar(128)?; CONSTRAINT_SCHEMA nvarchar(128)?; \
         CONSTRAINT_NAME nvarchar(128); TABLE_CATALOG nvarchar(128)?; \
         TABLE_SCHEMA nvarchar(128)?; TABLE_NAME nvarchar(128); COLUMN_NAME nvarchar(128)?; \
         ORDINAL_POSITION int",
        key_columns,
    ),
    View::public(
        SCHEMA,
        "CONSTRAINT_COLUMN_USAGE",
        "TABLE_CATALOG nvarchar(128)?; TABLE_SCHEMA nvarchar(128)?; TABLE_NAME nvarchar(128); \
         COLUMN_NAME nvarchar(128)?; CONSTRAINT_CATALOG nvarchar(128)?; \
         CONSTRAINT_SCHEMA nvarchar(128)?; CONSTRAINT_NAME nvarchar(128)",
        constraint_columns,
    ),
    View::public(
        SCHEMA,
        "REFERENTIAL_CONSTRAINTS",
        "CONSTRAINT_CATALOG nvarchar(128)?; CONSTRAINT_SCHEMA nvarchar(128)?; \
         CONSTRAINT_NAME sysname; UNIQUE_CONSTRAINT_CATALOG nvarchar(128)?; \
         UNIQUE_CONSTRAINT_SCHEMA nvarchar(128)?; UNIQUE_CONSTRAINT_NAME sysname?; \
         MATCH_OPTION varchar(7)?; UPDATE_RULE varchar(11)?; DELETE_RULE varchar(11)?",
        nothing,
    ),
    View::public(
        SCHEMA,
        "ROUTINES",
        "SPECIFIC_CATALOG nvarchar(128)?; SPECIFIC_SCHEMA nvarchar(128)?; \
         SPECIFIC_NAME nvarchar(128); ROUTINE_CATALOG nvarchar(128)?; \
         ROUTINE_SCHEMA nvarchar(128)?; ROUTINE_NAME nvarchar(128); ROUTINE_TYPE nvarchar(20)?",
        routines,
    ),
];

fn nothing(_: &Names<'_>) -> SqlResult<Vec<Row>> {
    Ok(Vec::new())
}

fn tables(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let database = names.database.name();
    let objects = names.objects(false).into_iter();
    Ok(objects
        .filter(|object| matches!(object.kind, ObjectKind::Table | ObjectKind::CaptureTable))
        .map(|object| row![database, &object.name.schema, &object.name.name, "BASE TABLE"])
        .collect())
}

fn columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let database = names.database.name();
    let mut rows = Vec::new();
    for object in names.objects(false) {
        for column in described(names, &object) {
            let kind = &column.column.kind;
            let sql_type = &kind.sql_type;
            let facts = facts(sql_type);
            let default =
                column.info.as_ref().and_then(|info| info.default.as_ref()).map(|d| &d.text);
            let (length, octets) = lengths(sql_type, facts.max_length);
            let numeric = numeric(sql_type, facts.precision, facts.scale);
            let charset = is_text(sql_type).then_some(match sql_type {
                SqlType::NChar(_) | SqlType::NVarChar(_) | SqlType::NText => "UNICODE",
                _ => "iso_1",
            });
            let name =
                if matches!(sql_type, SqlType::RowVersion) { "timestamp" } else { facts.name };
            let mut cells = row![
                database,
                &object.name.schema,
                &object.name.name,
                &column.column.name,
                column.id,
                default,
                if kind.nullable { "YES" } else { "NO" },
                name,
                length,
                octets
            ]
            .to_vec();
            cells.extend(numeric);
            cells.extend_from_slice(&row![
                moment_precision(sql_type),
                (),
                (),
                charset,
                (),
                (),
                collation_name(names, kind),
                (),
                (),
                ()
            ]);
            rows.push(cells.into());
        }
    }
    Ok(rows)
}

/// What `INFORMATION_SCHEMA.COLUMNS` says of a type.
pub(in crate::model) struct Information {
    pub(in crate::model) length: Option<i32>,
    pub(in crate::model) numeric: [Value; 3],
    pub(in crate::model) moment: Option<i32>,
}

/// What `INFORMATION_SCHEMA.COLUMNS` says of a type.
pub(in crate::model) fn information_of(sql_type: &SqlType) -> Information {
    let facts = facts(sql_type);
    Information {
        length: lengths(sql_type, facts.max_length).0,
        numeric: numeric(sql_type, facts.precision, facts.scale),
        moment: moment_precision(sql_type),
    }
}

/// The length of a text or binary type in characters and in bytes; -1 for `(max)`.
fn lengths(sql_type: &SqlType, bytes: i16) -> (Option<i32>, Option<i32>) {
    use SqlType as T;
    let bytes = i32::from(bytes);
    match sql_type {
        T::NChar(_) | T::NVarChar(_) if bytes > 0 => (Some(bytes / 2), Some(bytes)),
        T::Char(_) | T::VarChar(_) | T::NVarChar(_) | T::Binary(_) | T::VarBinary(_) | T::Xml => {
            (Some(bytes), Some(bytes))
        }
        T::NText => (Some(1_073_741_823), Some(2_147_483_646)),
        T::Text | T::Image => (Some(2_147_483_647), Some(2_147_483_647)),
        _ => (None, None),
    }
}

/// Precision, radix and scale of a number.
fn numeric(sql_type: &SqlType, precision: u8, scale: u8) -> [Value; 3] {
    use SqlType as T;
    let number = |precision: u8, radix: i64, scale: Option<u8>| {
        [
            Value::Int(precision.into()),
            Value::Int(radix),
            scale.map_or(Value::Null, |scale| Value::Int(scale.into())),
        ]
    };
    match sql_type {
        T::TinyInt | T::SmallInt | T::Int | T::BigInt => number(precision, 10, Some(0)),
        T::Decimal { .. } | T::Money | T::SmallMoney => number(precision, 10, Some(scale)),
        T::Real => number(24, 2, None),
        T::Float => number(53, 2, None),
        _ => [Value::Null, Value::Null, Value::Null],
    }
}

const fn moment_precision(sql_type: &SqlType) -> Option<i32> {
    use SqlType as T;
    match sql_type {
        T::Date | T::SmallDateTime => Some(0),
        T::DateTime => Some(3),
        T::DateTime2 { scale } | T::DateTimeOffset { scale } | T::Time { scale } => {
            Some(*scale as i32)
        }
        _ => None,
    }
}

fn schemata(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let database = names.database.name();
    let schemas = names.database.schemas();
    Ok(schemas
        .iter()
        .map(|(name, id)| {
            let owner = if *id >= 16_384 || *id < 5 { name.as_str() } else { "dbo" };
            row![database, name, owner, (), (), "iso_1"]
        })
        .collect())
}

fn constraints(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let database = names.database.name();
    let mut rows = Vec::new();
    for table in seen_tables(names) {
        let (schema, name) = (&table.name.schema, &table.name.name);
        let mut push = |constraint: &str, kind: &str| {
            rows.push(row![database, schema, constraint, database, schema, name, kind, "NO", "NO"]);
        };
        for index in &table.indexes {
            match index.kind {
                IndexKind::PrimaryKey => push(&index.name, "PRIMARY KEY"),
                IndexKind::UniqueConstraint => push(&index.name, "UNIQUE"),
                IndexKind::Plain | IndexKind::Unique => {}
            }
        }
        for check in &table.checks {
            push(&check.name, "CHECK");
        }
    }
    Ok(rows)
}

/// Columns of keys: schema, table, constraint, column, its place.
fn keys(names: &Names<'_>) -> Vec<(String, String, String, String, i32)> {
    let mut found = Vec::new();
    for table in seen_tables(names) {
        for index in &table.indexes {
            if !matches!(index.kind, IndexKind::PrimaryKey | IndexKind::UniqueConstraint) {
                continue;
            }
            for (at, (id, _)) in (1..).zip(&index.columns) {
                let column = table.columns.iter().find(|column| column.column.id == *id);
                if let Some(column) = column {
                    found.push((
                        table.name.schema.clone(),
                        table.name.name.clone(),
                        index.name.clone(),
                        column.column.name.clone(),
                        at,
                    ));
                }
            }
        }
    }
    found
}

fn key_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let database = names.database.name();
    Ok(keys(names)
        .into_iter()
        .map(|(schema, table, constraint, column, at)| {
            row![database, &schema, constraint, database, &schema, table, column, at]
        })
        .collect())
}

fn constraint_columns(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let database = names.database.name();
    Ok(keys(names)
        .into_iter()
        .map(|(schema, table, constraint, column, _)| {
            row![database, &schema, table, column, database, &schema, constraint]
        })
        .collect())
}

fn routines(names: &Names<'_>) -> SqlResult<Vec<Row>> {
    let database = names.database.name();
    let objects = names.objects(false).into_iter();
    Ok(objects
        .filter(|object| object.kind == ObjectKind::InlineFunction)
        .map(|object| {
            let (schema, name) = (&object.name.schema, &object.name.name);
            row![database, schema, name, database, schema, name, "FUNCTION"]
        })
        .collect())
}
