//! What one statement does to one table.

use cdc_core::{SqlType, Timestamp};

use crate::{
    ddl::SchemaChange,
    index::IndexKind,
    log::DdlEffect,
    sql_error::{SqlError, SqlResult, number},
    table::{ColumnDefinition, Table},
    value::Value,
};

/// Changes one table. What fails may leave it half changed: the caller puts it back.
pub(super) fn alter(
    table: &mut Table,
    change: &SchemaChange,
    new_id: &mut impl FnMut() -> u32,
    now: Timestamp,
) -> SqlResult<DdlEffect> {
    match change {
        SchemaChange::AddColumn { column, fill, .. } => {
            add_column(table, column, fill.as_ref(), new_id, now)?;
        }
        SchemaChange::DropColumn { column, .. } => {
            let slot = table.slot(column)?;
            refuse_used(table, slot, column, "DROP", &dependents(table, slot, false))?;
            table.rewrite(slot, |_| Ok(Value::Null))?;
            table.drop_slot(slot);
        }
        SchemaChange::AlterColumn { column, to, nullable, .. } => {
            return alter_column(table, column, to, *nullable);
        }
        SchemaChange::AddIndex { index, .. } => table.add_index(index.clone(), new_id)?,
        SchemaChange::DropIndex { name, .. } => drop_index(table, name, false)?,
        SchemaChange::AddCheck { check, .. } => table.add_check(check.clone(), new_id)?,
        SchemaChange::AddDefault { column, default, .. } => {
            table.add_default(column, default.clone(), new_id)?;
        }
        SchemaChange::DropConstraint { name, .. } => drop_constraint(table, name)?,
        SchemaChange::CreateTable(_)
        | SchemaChange::DropTable(_)
        | SchemaChange::RenameColumn { .. }
        | SchemaChange::RenameTable { .. } => {}
    }
    Ok(DdlEffect::None)
}

fn add_column(
    table: &mut Table,
    column: &ColumnDefinition,
    fill: Option<&Value>,
    new_id: &mut impl FnMut() -> u32,
    now: Timestamp,
) -> SqlResult<()> {
    let by_default = || match &column.default {
        Some(default) if !column.nullable => (default.rule)(now).map(Some),
        _ => Ok(None),
    };
    let fill = match fill {
        Some(fill) => Some(fill.clone()),
        None => by_default()?,
    };
    let filled = fill.is_some() || column.identity.is_some() || column.computed.is_some();
    let versioned = column.sql_type == SqlType::RowVersion;
    if !filled && !column.nullable && !versioned && !table.rows.is_empty() {
        return Err(SqlError::new(
            number::NO_ROOM_FOR_COLUMN,
            format!(
                "ALTER TABLE only allows columns to be added that can contain nulls, or have a \
                 DEFAULT definition specified. Column '{}' cannot be added to non-empty table \
                 '{}' because it does not satisfy these conditions.",
                column.name, table.name
            ),
        ));
    }
    table.add_column(column.clone(), new_id)?;
    let slot = table.slot(&column.name)?;
    let fill = fill.map(|fill| table.definition(slot)?.stored(fill)).transpose()?;
    if let Some(fill) = fill {
        table.rewrite(slot, |_| Ok(fill.clone()))?;
    }
    if column.identity.is_some() {
        table.number_rows(slot)?;
    }
    if column.computed.is_some() {
        table.recompute();
    }
    Ok(())
}

fn alter_column(
    table: &mut Table,
    name: &str,
    to: &SqlType,
    nullable: Option<bool>,
) -> SqlResult<DdlEffect> {
    let slot = table.slot(name)?;
    let definition = table.definition(slot)?;
    if definition.column.computed {
        return Err(SqlError::new(
            4928,
            format!("Cannot alter column '{name}' because it is 'COMPUTED'."),
        ));
    }
    let (column_id, from) = (definition.column.id, definition.column.sql_type.clone());
    if from != *to || table.key.contains(&slot) {
        let dependents = dependents(table, slot, widens(&from, to) && !table.key.contains(&slot));
        refuse_used(table, slot, name, "ALTER", &dependents)?;
    }
    let column = definition.clone();
    table.rewrite(slot, |value| column.converted(value, to))?;
    if nullable == Some(false) {
        let null = |row: &crate::value::Row| row.get(slot).is_none_or(Value::is_null);
        if table.rows.values().any(null) {
            let column = &table.definition(slot)?.column;
            return Err(table.not_null(column, "UPDATE"));
        }
    }
    if let Some(column) = table.columns.get_mut(slot) {
        column.column.sql_type = to.clone();
        column.column.nullable = nullable.unwrap_or(column.column.nullable);
    }
    Ok(if from == *to {
        DdlEffect::None
    } else {
        DdlEffect::Alter { column_id, from, to: to.clone() }
    })
}

fn drop_index(table: &mut Table, name: &str, constraint: bool) -> SqlResult<()> {
    let at = table.indexes.iter().position(|index| index.name.eq_ignore_ascii_case(name));
    let index = at.and_then(|at| table.indexes.get(at).map(|index| (at, index.kind)));
    let Some((at, kind)) = index else {
        return Err(SqlError::new(
            number::CANNOT_DROP,
            format!(
                "Cannot drop the index '{}.{name}', because it does not exist or you do not have \
                 permission.",
                table.name
            ),
        ));
    };
    if !constraint && matches!(kind, IndexKind::PrimaryKey | IndexKind::UniqueConstraint) {
        return Err(SqlError::new(
            3723,
            format!(
                "An explicit DROP INDEX is not allowed on index '{}.{name}'. It is being used for \
                 a constraint enforcement.",
                table.name
            ),
        ));
    }
    table.indexes.remove(at);
    if kind == IndexKind::PrimaryKey {
        table.set_key(Vec::new())?;
    }
    Ok(())
}

fn drop_constraint(table: &mut Table, name: &str) -> SqlResult<()> {
    let same = |other: &str| other.eq_ignore_ascii_case(name);
    if let Some(at) = table.checks.iter().position(|check| same(&check.name)) {
        table.checks.remove(at);
        return Ok(());
    }
    for column in &mut table.columns {
        if column.default.as_ref().is_some_and(|default| same(&default.name)) {
            column.default = None;
            return Ok(());
        }
    }
    let key = table.indexes.iter().any(|index| {
        same(&index.name)
            && matches!(index.kind, IndexKind::PrimaryKey | IndexKind::UniqueConstraint)
    });
    if key {
        return drop_index(table, name, true);
    }
    Err(SqlError::new(number::CONSTRAINT_UNKNOWN, format!("'{name}' is not a constraint.")))
}

/// What needs a column as it is, as messages name it. What a wider column still serves is left out
/// when it `widens`.
fn dependents(table: &Table, slot: usize, widens: bool) -> Vec<String> {
    let mut found = Vec::new();
    if !widens {
        for index in table.indexes.iter().filter(|index| index.covers(slot)) {
            let constraint =
                matches!(index.kind, IndexKind::PrimaryKey | IndexKind::UniqueConstraint);
            let kind = if constraint { "object" } else { "index" };
            found.push(format!("{kind} '{}'", index.name));
        }
        let column = table.columns.get(slot);
        if let Some(default) = column.and_then(|column| column.default.as_ref()) {
            found.push(format!("object '{}'", default.name));
        }
        // A rule of the server's own goes with the column that it is for.
        let checks = table.checks.iter().filter(|check| !check.definition.text.is_empty());
        for check in checks.filter(|check| reads(table, &check.definition.reads, slot)) {
            found.push(format!("object '{}'", check.name));
        }
    }
    let live = table.columns.iter().filter(|column| !column.dropped);
    for column in live.filter(|column| reads(table, &column.reads, slot)) {
        found.push(format!("column '{}'", column.column.name));
    }
    found
}

fn reads(table: &Table, names: &[String], slot: usize) -> bool {
    names.iter().any(|name| table.slot(name).is_ok_and(|read| read == slot))
}

/// True when every value of one type is one of the other, of the same kind and no shorter.
fn widens(from: &SqlType, to: &SqlType) -> bool {
    use SqlType as T;
    match (from, to) {
        (T::VarChar(from), T::VarChar(to))
        | (T::NVarChar(from), T::NVarChar(to))
        | (T::VarBinary(from), T::VarBinary(to)) => match (from, to) {
            (cdc_core::Length::Limited(from), cdc_core::Length::Limited(to)) => from <= to,
            _ => false,
        },
        _ => false,
    }
}

/// Refuses to drop or convert a column that something needs.
fn refuse_used(
    table: &Table,
    slot: usize,
    name: &str,
    verb: &str,
    dependents: &[String],
) -> SqlResult<()> {
    if dependents.is_empty() {
        return Ok(());
    }
    let name = table.columns.get(slot).map_or(name, |column| &column.column.name);
    let each = dependents.iter().map(|dependent| {
        SqlError::new(
            number::COLUMN_HAS_DEPENDENT,
            format!("The {dependent} is dependent on column '{name}'."),
        )
    });
    let whole = SqlError::new(
        number::COLUMN_IN_USE,
        format!(
            "ALTER TABLE {verb} COLUMN {name} failed because one or more objects access this \
             column."
        ),
    );
    Err(whole.behind(each.collect()))
}

/// Refuses another name for a column that checks and computed columns read by its name.
pub(super) fn refuse_rename(table: &Table, slot: usize, name: &str) -> SqlResult<()> {
    let mut checks = table.checks.iter().map(|check| &check.definition.reads);
    let mut columns = table.columns.iter().filter(|column| !column.dropped);
    if checks.any(|names| reads(table, names, slot))
        || columns.any(|column| reads(table, &column.reads, slot))
    {
        return Err(SqlError::new(
            number::RENAME_ENFORCED,
            format!(
                "Object '{name}' cannot be renamed because the object participates in enforced \
                 dependencies."
            ),
        ));
    }
    Ok(())
}

pub(super) fn replicated(column: &str) -> SqlError {
    SqlError::new(
        number::ALTER_REPLICATED,
        format!("Cannot alter column '{column}' because it is 'REPLICATED'."),
    )
}
