//! Every statement that the sink sends, made from names and types; values travel as parameters or
//! in copies.

use std::fmt::Write;

use crate::{
    layout::{Layout, TargetColumn},
    name::{
        CONTROL, DELETED, EPOCH, LIVE_SUFFIX, POSITION, Qualified, Quoted, UNKNOWN, live_view,
        soft_view,
    },
};

/// What a session is set to, whatever the database's own settings are.
pub(crate) fn session(lock_timeout: u128, idle_transaction_max: u128) -> String {
    format!(
        "SET lock_timeout = {lock_timeout}; \
         SET idle_in_transaction_session_timeout = {idle_transaction_max}; \
         SET temp_buffers = '64MB'; \
         SET client_min_messages = warning; \
         SET standard_conforming_strings = on"
    )
}

/// Begins a transaction that sees what others committed before each of its statements.
pub(crate) const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";

/// Locks a word until the transaction's end.
pub(crate) const LOCK_WORD: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";

/// What the user may do: user, database, whether the control table is there, whether tables may be
/// made in the schema (NULL without the schema), temporary tables, and schemas.
pub(crate) const RIGHTS: &str = "\
    SELECT current_user::text, current_database()::text, \
    EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname = $1 AND c.relname = $2), \
    (SELECT has_schema_privilege(oid, 'USAGE') AND has_schema_privilege(oid, 'CREATE') \
    FROM pg_namespace WHERE nspname = $1), \
    has_database_privilege(current_database(), 'TEMPORARY'), \
    has_database_privilege(current_database(), 'CREATE')";

/// Makes the schema.
pub(crate) fn create_schema(schema: &str) -> String {
    format!("CREATE SCHEMA IF NOT EXISTS {}", Quoted(schema))
}

/// Makes the control table.
pub(crate) fn create_control(schema: &str) -> String {
    let table = Qualified(schema, CONTROL);
    format!(
        "CREATE TABLE IF NOT EXISTS {table} (\
         table_name text COLLATE \"C\" PRIMARY KEY, \
         source_table text NOT NULL, \
         captured_columns text[] NOT NULL, \
         key_columns text[] NOT NULL, \
         runner bigint NOT NULL, \
         handle bigint NOT NULL, \
         sequence bigint, \
         mark_epoch bigint, \
         mark_end text, \
         mark_commit_time timestamp, \
         mark_entry_time timestamp, \
         generation bigint, \
         finalized_until timestamp, \
         verdict_epoch bigint, \
         verdict_end text, \
         verdict_commit_time timestamp)"
    )
}

const CONTROL_COLUMNS: [&str; 16] = [
    "table_name",
    "source_table",
    "captured_columns",
    "key_columns",
    "runner",
    "handle",
    "sequence",
    "mark_epoch",
    "mark_end",
    "mark_commit_time",
    "mark_entry_time",
    "generation",
    "finalized_until",
    "verdict_epoch",
    "verdict_end",
    "verdict_commit_time",
];

/// Reads a table's record; with `lock` until the transaction's end.
pub(crate) fn read_record(schema: &str, lock: bool) -> String {
    let columns = CONTROL_COLUMNS.join(", ");
    let lock = if lock { " FOR UPDATE" } else { "" };
    format!("SELECT {columns} FROM {} WHERE table_name = $1{lock}", Qualified(schema, CONTROL))
}

/// Writes a table's record.
pub(crate) fn write_record(schema: &str) -> String {
    let places: Vec<_> = (1..=CONTROL_COLUMNS.len()).map(|n| format!("${n}")).collect();
    let set: Vec<_> =
        CONTROL_COLUMNS.iter().skip(1).map(|c| format!("{c} = EXCLUDED.{c}")).collect();
    format!(
        "INSERT INTO {} ({}) VALUES ({}) ON CONFLICT (table_name) DO UPDATE SET {}",
        Qualified(schema, CONTROL),
        CONTROL_COLUMNS.join(", "),
        places.join(", "),
        set.join(", ")
    )
}

/// A table's columns but for the sink's own: name, type, whether it takes no NULL.
pub(crate) fn columns() -> String {
    format!(
        "SELECT attname::text, format_type(atttypid, atttypmod), attnotnull \
         FROM pg_catalog.pg_attribute \
         WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped \
         AND attname NOT IN ('{DELETED}', '{EPOCH}', '{POSITION}') ORDER BY attnum"
    )
}

/// Whether one of three names is taken.
pub(crate) const TAKEN: &str =
    "SELECT to_regclass($1) IS NOT NULL, to_regclass($2) IS NOT NULL, to_regclass($3) IS NOT NULL";

/// Makes a target and its views.
pub(crate) fn create_target(schema: &str, table: &str, layout: &Layout) -> String {
    // The guard stands in front, where the server finds it without looking through the row.
    let mut parts = vec![
        format!("{EPOCH} bigint NOT NULL"),
        format!("{DELETED} boolean NOT NULL"),
        format!("{POSITION} text COLLATE \"C\" NOT NULL"),
    ];
    for (place, column) in layout.columns.iter().enumerate() {
        let spelled = if layout.key.contains(&place) {
            column.column_type.in_key()
        } else {
            column.column_type.to_string()
        };
        let required = if column.required { " NOT NULL" } else { "" };
        parts.push(format!("{} {spelled}{required}", Quoted(&column.name)));
    }
    let key = names(layout.key_columns());
    // A primary key takes no NULL, which a unique index of SQL Server does, once.
    let kind = if layout.key_columns().all(|column| column.required) {
        "PRIMARY KEY"
    } else {
        "UNIQUE NULLS NOT DISTINCT"
    };
    parts.push(format!("{kind} ({key})"));
    let target = Qualified(schema, table);
    let comment = format!(
        "One row a key; a deleted row stays, with {DELETED}. The view that ends in {LIVE_SUFFIX} \
         shows the rows that exist."
    );
    format!(
        "CREATE TABLE {target} ({}); COMMENT ON TABLE {target} IS '{comment}'; {}",
        parts.join(", "),
        views(schema, table, layout)
    )
}

/// Adds the last `added` columns of a layout, and shows them in the views.
pub(crate) fn add_columns(schema: &str, table: &str, layout: &Layout, added: usize) -> String {
    let first = layout.columns.len().saturating_sub(added);
    let parts: Vec<_> = layout
        .columns
        .iter()
        .skip(first)
        .map(|column| format!("ADD COLUMN {} {}", Quoted(&column.name), column.column_type))
        .collect();
    format!(
        "ALTER TABLE {} {}; {}",
        Qualified(schema, table),
        parts.join(", "),
        views(schema, table, layout)
    )
}

/// The two views: the rows that exist, as a hard delete would leave them, and all rows with what
/// was deleted. A view can only get columns at its end, so the flag stands in front.
fn views(schema: &str, table: &str, layout: &Layout) -> String {
    let columns = names(layout.columns.iter());
    let target = Qualified(schema, table);
    let (live, soft) = (live_view(table), soft_view(table));
    format!(
        "CREATE OR REPLACE VIEW {} AS SELECT {columns} FROM {target} WHERE NOT {DELETED}; \
         CREATE OR REPLACE VIEW {} AS SELECT {DELETED}, {columns} FROM {target}",
        Qualified(schema, &live),
        Qualified(schema, &soft)
    )
}

/// Makes a staging table, which only its own session sees.
pub(crate) fn create_staging(name: &str, layout: &Layout) -> String {
    let mut columns = String::new();
    for column in &layout.columns {
        // Writing to a string does not fail.
        let _ = write!(columns, "{} {}, ", Quoted(&column.name), column.column_type);
    }
    format!(
        "CREATE TEMPORARY TABLE IF NOT EXISTS {} ({columns}{DELETED} boolean, \
         {POSITION} text COLLATE \"C\", {UNKNOWN} bytea)",
        Quoted(name)
    )
}

/// Copies rows into a staging table.
pub(crate) fn copy(name: &str) -> String {
    format!("COPY pg_temp.{} FROM STDIN (FORMAT binary)", Quoted(name))
}

/// Empties staging tables.
pub(crate) fn truncate<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let list: Vec<_> = names.map(|name| format!("pg_temp.{}", Quoted(name))).collect();
    format!("TRUNCATE {}", list.join(", "))
}

/// Applies a staging table: each row where its epoch (the parameter) and position are greater than
/// those of the target's row of that key. A cell of one of the columns in `unknown` may say
/// nothing; then the target keeps what it has, unless that row was deleted.
pub(crate) fn merge(
    schema: &str,
    table: &str,
    staging: &str,
    layout: &Layout,
    unknown: &[usize],
) -> String {
    let columns = names(layout.columns.iter());
    let set: Vec<_> = layout
        .columns
        .iter()
        .map(|column| Quoted(&column.name).to_string())
        .chain([DELETED, EPOCH, POSITION].map(str::to_owned))
        .map(|name| format!("{name} = EXCLUDED.{name}"))
        .collect();
    let from = |(place, column): (usize, &TargetColumn)| {
        let name = Quoted(&column.name);
        if unknown.contains(&place) {
            format!(
                "CASE WHEN get_bit(s.{UNKNOWN}, {place}) = 1 \
                 THEN CASE WHEN o.{DELETED} THEN NULL ELSE o.{name} END ELSE s.{name} END"
            )
        } else {
            format!("s.{name}")
        }
    };
    let values: Vec<_> = layout.columns.iter().enumerate().map(from).collect();
    let target = Qualified(schema, table);
    let join = if unknown.is_empty() {
        String::new()
    } else {
        format!(" LEFT JOIN {target} AS o ON {}", same_key(layout))
    };
    format!(
        "INSERT INTO {target} AS t ({columns}, {DELETED}, {EPOCH}, {POSITION}) \
         SELECT {}, s.{DELETED}, $1::bigint, s.{POSITION} FROM pg_temp.{} AS s{join} \
         ON CONFLICT ({}) DO UPDATE SET {} \
         WHERE (t.{EPOCH}, t.{POSITION}) < (EXCLUDED.{EPOCH}, EXCLUDED.{POSITION})",
        values.join(", "),
        Quoted(staging),
        names(layout.key_columns()),
        set.join(", ")
    )
}

fn same_key(layout: &Layout) -> String {
    let same = |column: &TargetColumn| {
        let name = Quoted(&column.name);
        if column.required {
            format!("o.{name} = s.{name}")
        } else {
            format!("(o.{name} = s.{name} OR o.{name} IS NULL AND s.{name} IS NULL)")
        }
    };
    layout.key_columns().map(same).collect::<Vec<_>>().join(" AND ")
}

fn names<'a>(columns: impl Iterator<Item = &'a TargetColumn>) -> String {
    columns.map(|column| Quoted(&column.name).to_string()).collect::<Vec<_>>().join(", ")
}
