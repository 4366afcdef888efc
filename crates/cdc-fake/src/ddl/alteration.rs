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
            refuse_key_column(table, slot, column)?;
            refuse_used_column(table, slot, column)?;
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
    let fill = fill.map(|fill| fill.stored(&column.sql_type)).transpose()?;
    table.add_column(column.clone(), new_id)?;
    let slot = table.slot(&column.name)?;
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
    refuse_key_column(table, slot, name)?;
    let definition = table.definition(slot)?;
    if definition.column.computed {
        return Err(SqlError::new(
            4928,
            format!("Cannot alter column '{name}' because it is 'COMPUTED'."),
        ));
    }
    let (column_id, from) = (definition.column.id, definition.column.sql_type.clone());
    if from != *to {
        refuse_used_column(table, slot, name)?;
    }
    table.rewrite(slot, |value| value.converted(&from, to))?;
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

fn refuse_key_column(table: &Table, slot: usize, name: &str) -> SqlResult<()> {
    if table.key.contains(&slot) {
        return Err(replicated(name));
    }
    Ok(())
}

/// Refuses to drop or convert a column that an index or a default needs.
fn refuse_used_column(table: &Table, slot: usize, name: &str) -> SqlResult<()> {
    let index = table.indexes.iter().find(|index| index.covers(slot)).map(|index| &index.name);
    let default = table.definition(slot)?.default.as_ref().map(|default| &default.name);
    match index.or(default) {
        Some(user) => Err(SqlError::new(
            number::COLUMN_IN_USE,
            format!(
                "ALTER TABLE ALTER COLUMN or DROP COLUMN {name} failed because '{user}' accesses \
                 this column."
            ),
        )),
        None => Ok(()),
    }
}

pub(super) fn replicated(column: &str) -> SqlError {
    SqlError::new(
        number::ALTER_REPLICATED,
        format!("Cannot alter column '{column}' because it is 'REPLICATED'."),
    )
}
