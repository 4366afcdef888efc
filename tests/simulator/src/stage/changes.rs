//! What applications do at the source: transactions on its tables.

use cdc_fake::{RowEdit, RowView, SqlResult, Transaction, Value};

use super::{BASE, Inner, Stage, source_name};
use crate::script::{Act, Keys};

/// Keys above all that are drawn, for rows that get out of the way.
const AWAY: i64 = 1_000;
/// Every key.
pub(super) const EVERY: Keys = Keys { first: 0, count: i64::MAX };

impl Stage {
    /// Does what an application does. True when rows were changed, or the log has a new entry.
    pub(super) fn change(&self, inner: &mut Inner, act: &Act) -> SqlResult<bool> {
        match act {
            Act::Put { table, keys, value } => {
                let chosen: Vec<_> = match table {
                    Some(table) => vec![self.table(*table)],
                    None => self.tables.to_vec(),
                };
                self.rows(|open| {
                    chosen
                        .iter()
                        .try_fold(0, |rows, name| Ok(rows + put(open, inner, name, *keys, *value)?))
                })
            }
            Act::Set { table, keys, value } => {
                self.rows(|open| set(open, self.table(*table), *keys, *value))
            }
            Act::SetLast { table, keys, value } => {
                let name = self.table(*table);
                let columns = inner.state.columns.get(name);
                let Some(column) = columns.and_then(|columns| columns.get(BASE.len()..)?.last())
                else {
                    return Ok(false);
                };
                let change = |row: &mut RowEdit<'_>| row.set(column, Value::Int(*value));
                self.rows(|open| open.update_where(&source_name(name), within(*keys), change))
            }
            Act::Merge { table, keys, value } => {
                let name = source_name(self.table(*table));
                let change = |row: &mut RowEdit<'_>| row.set("a", Value::Int(*value));
                self.rows(|open| open.merge_where(&name, within(*keys), change))
            }
            Act::Swap { table, one, other } => self.swap(self.table(*table), *one, *other),
            Act::Move { table, keys } => {
                let name = source_name(self.table(*table));
                let change = |row: &mut RowEdit<'_>| {
                    let id = row.view().int("id").rem_euclid(AWAY).saturating_add(AWAY);
                    row.set("id", Value::Int(id))?;
                    row.set("k", Value::text(&text_key(id)))
                };
                self.rows(|open| open.update_where(&name, within(*keys), change))
            }
            Act::Remove { table, keys } => {
                let name = source_name(self.table(*table));
                self.rows(|open| open.delete_where(&name, within(*keys)))
            }
            Act::Busy { table, statements } => self.busy(inner, self.table(*table), *statements),
            Act::Empty => self.database.transact(|_| Ok(())).map(|_| true),
            Act::Rollback { table } => {
                let mut open = self.database.begin();
                let done = put(&mut open, inner, self.table(*table), EVERY, 13);
                open.rollback();
                done.map(|rows| rows > 0)
            }
            _ => self.operate(inner, act),
        }
    }

    /// One transaction. True when it changed rows.
    pub(super) fn rows(
        &self,
        work: impl FnOnce(&mut Transaction) -> SqlResult<usize>,
    ) -> SqlResult<bool> {
        let mut rows = 0;
        self.database.transact(|open| {
            rows = work(open)?;
            Ok(())
        })?;
        Ok(rows > 0)
    }

    fn swap(&self, name: &str, one: i64, other: i64) -> SqlResult<bool> {
        let name = source_name(name);
        let picked = move |row: &RowView<'_>| [one, other].contains(&row.int("id"));
        let change = move |row: &mut RowEdit<'_>| {
            let id = if row.view().int("id") == one { other } else { one };
            row.set("id", Value::Int(id))?;
            row.set("k", Value::text(&text_key(id)))
        };
        self.rows(|open| open.update_where(&name, picked, change))
    }

    fn busy(&self, inner: &Inner, name: &str, statements: u8) -> SqlResult<bool> {
        self.rows(|open| {
            (0..i64::from(statements)).try_fold(0, |rows, number| {
                let keys = Keys { first: number % 7, count: 3 };
                let changed = match number % 3 {
                    0 => put(open, inner, name, keys, number)?,
                    1 => set(open, name, keys, number)?,
                    _ => open.delete_where(&source_name(name), within(keys))?,
                };
                Ok(rows + changed)
            })
        })
    }
}

fn text_key(id: i64) -> String {
    format!("K{}-{id}", id.rem_euclid(7))
}

fn within(keys: Keys) -> impl Fn(&RowView<'_>) -> bool {
    let keys = keys.range();
    move |row| keys.contains(&row.int("id"))
}

fn put(
    open: &mut Transaction,
    inner: &Inner,
    table: &str,
    keys: Keys,
    value: i64,
) -> SqlResult<usize> {
    let name = source_name(table);
    let width = inner.state.columns.get(table).map_or(BASE.len(), Vec::len);
    let keys = Keys { count: keys.count.min(100), ..keys };
    open.delete_where(&name, within(keys))?;
    let row = |id: i64| {
        let mut row = vec![Value::Int(id), Value::text(&text_key(id))];
        row.resize(width, Value::Int(value));
        row
    };
    open.insert_many(&name, keys.range().map(row).collect())
}

pub(super) fn set(open: &mut Transaction, table: &str, keys: Keys, value: i64) -> SqlResult<usize> {
    let column = if value % 2 == 0 { "a" } else { "b" };
    let change = |row: &mut RowEdit<'_>| row.set(column, Value::Int(value));
    open.update_where(&source_name(table), within(keys), change)
}
