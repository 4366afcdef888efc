//! Savepoints: rolling back to a place inside a transaction.

use crate::{
    database::DatabaseState,
    key::SortKey,
    log::TableId,
    sql_error::{SqlError, SqlResult, number},
    transaction::{OpenTransaction, Transaction, TransactionId, no_transaction},
    value::Row,
};

/// A place in a transaction to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Savepoint {
    transaction: TransactionId,
    undo: usize,
    changes: usize,
    schema: usize,
}

/// What stood in a transaction's rows before each step; kept once there is a savepoint.
#[derive(Clone, Debug)]
pub(crate) struct UndoLog {
    kept: bool,
    steps: Vec<Undo>,
}

/// The row that the transaction had under a key; the outer none when it had not touched the key.
#[derive(Clone, Debug)]
struct Undo {
    table: TableId,
    key: SortKey,
    before: Option<Option<Row>>,
}

impl UndoLog {
    pub(crate) const fn new() -> Self {
        Self { kept: false, steps: Vec::new() }
    }

    pub(crate) const fn is_kept(&self) -> bool {
        self.kept
    }

    pub(crate) fn push(&mut self, table: TableId, key: SortKey, before: Option<Option<Row>>) {
        self.steps.push(Undo { table, key, before });
    }
}

impl Transaction {
    /// Sets a savepoint.
    ///
    /// # Errors
    /// 628 when the transaction is no longer open.
    pub fn savepoint(&mut self) -> SqlResult<Savepoint> {
        let mut state = self.database.look();
        let open = state.quiet().open.get_mut(&self.id).ok_or_else(|| {
            SqlError::new(
                number::SAVE_WITHOUT_TRANSACTION,
                "Cannot issue SAVE TRANSACTION when there is no active transaction.",
            )
        })?;
        open.undo.kept = true;
        Ok(Savepoint {
            transaction: self.id,
            undo: open.undo.steps.len(),
            changes: open.changes.len(),
            schema: open.schema.len(),
        })
    }

    /// Takes back what was done since a savepoint. Locks stay.
    ///
    /// # Errors
    /// 6401 for a savepoint of another transaction or one that a rollback has passed.
    pub fn rollback_to(&mut self, savepoint: &Savepoint) -> SqlResult<()> {
        let done = {
            let mut state = self.database.look();
            state.rollback_to(self.id, savepoint)
        };
        self.database.shared.changed.notify_all();
        done
    }
}

impl DatabaseState {
    fn rollback_to(&mut self, id: TransactionId, savepoint: &Savepoint) -> SqlResult<()> {
        let mut open = self.open.remove(&id).ok_or_else(no_transaction)?;
        let known = savepoint.transaction == id
            && savepoint.undo <= open.undo.steps.len()
            && savepoint.changes <= open.changes.len()
            && savepoint.schema <= open.schema.len();
        if known {
            let schema = open.schema.split_off(savepoint.schema);
            self.take_back(&mut open, savepoint);
            self.undo_schema(schema);
        }
        self.open.insert(id, open);
        if known {
            return Ok(());
        }
        Err(SqlError::new(
            number::SAVEPOINT_UNKNOWN,
            "Cannot roll back. No transaction or savepoint of that name was found.",
        ))
    }

    fn take_back(&self, open: &mut OpenTransaction, savepoint: &Savepoint) {
        open.changes.truncate(savepoint.changes);
        for step in open.undo.steps.split_off(savepoint.undo).into_iter().rev() {
            // The row stays locked: where the transaction had not touched it, its entry becomes
            // the row as others see it.
            let row = step.before.unwrap_or_else(|| {
                let table = self.tables.get(&step.table);
                table.and_then(|table| table.rows.get(&step.key).cloned())
            });
            open.overlay.entry(step.table).or_default().insert(step.key, row);
        }
        open.unique.clear();
        for (id, rows) in &open.overlay {
            let Some(table) = self.tables.get(id) else { continue };
            for index in table.unique_indexes() {
                let keys = open.unique.entry((*id, index.id)).or_default();
                for (key, row) in rows {
                    if let Some(before) = table.rows.get(key) {
                        keys.entry(index.key_of(before, table)).or_insert(None);
                    }
                    if let Some(row) = row {
                        keys.insert(index.key_of(row, table), Some(key.clone()));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::{SqlType, TableName, Timestamp};

    use crate::{FakeDatabase, FakeServer, TableDefinition, VirtualClock, Zone, value::Value};

    fn database() -> (FakeDatabase, TableName) {
        let clock = VirtualClock::manual(Timestamp::from_micros(0));
        let database = FakeServer::new(clock, Zone::UTC).database("shop");
        let definition =
            TableDefinition::new("t").column("id", SqlType::Int).nullable("v", SqlType::Int);
        database.create_table(definition.primary_key(&["id"])).expect("new");
        (database, TableName::new("dbo", "t"))
    }

    #[test]
    fn a_rollback_to_a_savepoint_takes_back_what_came_after_it_and_nothing_else() {
        let (database, table) = database();
        let instance = database.enable_table(&table, crate::EnableOptions::default());
        let instance = instance.expect("allowed");
        database
            .transact(|tx| {
                tx.insert(&table, vec![1.into(), 1.into()])?;
                let savepoint = tx.savepoint()?;
                tx.insert(&table, vec![2.into(), 2.into()])?;
                tx.update(&table, &[1.into()], &[("v", 9.into())])?;
                tx.rollback_to(&savepoint)?;
                tx.insert(&table, vec![3.into(), 3.into()])?;
                Ok(())
            })
            .expect("free");
        let rows = database.rows(&table).expect("there");
        let expected: [[Value; 2]; 2] = [[1.into(), 1.into()], [3.into(), 3.into()]];
        assert_eq!(rows, expected);
        database.capture();
        assert_eq!(database.change_rows(&instance).expect("there").len(), 2);
    }

    #[test]
    fn rows_stay_locked_after_a_rollback_to_a_savepoint() {
        let (database, table) = database();
        database.transact(|tx| tx.insert(&table, vec![1.into(), 1.into()])).expect("free");
        let mut first = database.begin();
        let savepoint = first.savepoint().expect("open");
        first.update(&table, &[1.into()], &[("v", 2.into())]).expect("free");
        first.rollback_to(&savepoint).expect("known");
        let mut second = database.begin();
        let error = second.update(&table, &[1.into()], &[("v", 3.into())]).expect_err("held");
        assert_eq!(error.number, 1222);
        first.commit().expect("open");
        assert_eq!(database.rows(&table).expect("there"), [[Value::from(1), 1.into()]]);
        assert!(second.update(&table, &[1.into()], &[("v", 3.into())]).is_ok());
    }

    #[test]
    fn a_savepoint_that_a_rollback_has_passed_is_refused() {
        let (database, table) = database();
        let mut transaction = database.begin();
        let first = transaction.savepoint().expect("open");
        transaction.insert(&table, vec![1.into(), 1.into()]).expect("free");
        let second = transaction.savepoint().expect("open");
        transaction.rollback_to(&first).expect("known");
        assert_eq!(transaction.rollback_to(&second).expect_err("passed").number, 6401);
    }
}
