//! Schema statements inside a transaction: what a rollback puts back, and what waits for the
//! commit.

use cdc_core::Timestamp;

use crate::{
    database::DatabaseState,
    ddl::SchemaChange,
    instance::Instance,
    locks::{TableLock, Tried},
    log::{InstanceId, LogEvent, TableId},
    sql_error::{SqlError, SqlResult, number},
    table::Table,
    transaction::{Transaction, TransactionId},
};

/// A step of a transaction's schema statements.
#[derive(Clone)]
pub(crate) enum SchemaStep {
    /// A table was created.
    Created(TableId),
    /// An instance was enabled.
    Enabled(InstanceId),
    /// A table as it was before, with its instances.
    Before(Box<(TableId, Table, Vec<Instance>)>),
    /// What the log is told with the commit.
    Event(LogEvent),
}

impl std::fmt::Debug for SchemaStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Created(_) => "Created",
            Self::Enabled(_) => "Enabled",
            Self::Before(_) => "Before",
            Self::Event(_) => "Event",
        })
    }
}

impl Transaction {
    /// Changes the shape of a table. `statement` is the text as the client wrote it, for the
    /// history of a captured table.
    ///
    /// # Errors
    /// As for [`crate::FakeDatabase::change_schema`]; it waits for a table that others hold.
    pub fn change_schema(
        &mut self,
        change: &SchemaChange,
        statement: Option<&str>,
    ) -> SqlResult<()> {
        let id = self.id;
        let now = self.database.now();
        self.database.attempt(Some(id), &self.waiting, |state| {
            state.require_open(id)?;
            state.change_schema(Some(id), change, statement, now)
        })
    }
}

impl DatabaseState {
    /// Keeps a table as it is, for a rollback, and locks it to the end of the transaction.
    pub(crate) fn keep_schema(&mut self, who: Option<TransactionId>, table: TableId) -> Tried<()> {
        let Some(who) = who else { return Ok(()) };
        self.lock_table(who, table, TableLock::Exclusive)?;
        let wrote = self.open.get(&who).is_some_and(|open| open.wrote(table));
        let created = self.open.get(&who).is_some_and(|open| {
            open.schema.iter().any(|step| matches!(step, SchemaStep::Created(id) if *id == table))
        });
        if wrote && !created {
            return Err(SqlError::new(
                number::NOT_SUPPORTED,
                "not supported by this server: a schema statement on a table that the same \
                 transaction wrote to",
            )
            .into());
        }
        if wrote {
            // Nobody else has seen the table: its rows may as well be its own already.
            let rows = self.open.get_mut(&who).and_then(|open| {
                open.unique.retain(|(id, _), _| *id != table);
                open.overlay.remove(&table)
            });
            let definition = self.table_mut(table)?;
            definition.publish(rows.unwrap_or_default(), None);
            definition.fill_indexes();
        }
        if created {
            return Ok(());
        }
        let before = self.table(table)?.clone();
        let instances = self.instances_of(table).cloned().collect();
        if let Some(open) = self.open.get_mut(&who) {
            open.schema.push(SchemaStep::Before(Box::new((table, before, instances))));
        }
        Ok(())
    }

    /// Notes that a transaction created a table, and locks it.
    pub(crate) fn note_created(&mut self, who: Option<TransactionId>, table: TableId) {
        if let Some(open) = who.and_then(|who| self.open.get_mut(&who)) {
            open.schema.push(SchemaStep::Created(table));
            open.table_locks.insert(table, TableLock::Exclusive);
        }
    }

    /// Notes that a transaction enabled an instance.
    pub(crate) fn note_enabled(&mut self, who: Option<TransactionId>, instance: InstanceId) {
        if let Some(open) = who.and_then(|who| self.open.get_mut(&who)) {
            open.schema.push(SchemaStep::Enabled(instance));
        }
    }

    /// Keeps an event for the commit; gives it back when there is no transaction.
    pub(crate) fn keep_schema_event(
        &mut self,
        who: Option<TransactionId>,
        event: LogEvent,
    ) -> Option<LogEvent> {
        match who.and_then(|who| self.open.get_mut(&who)) {
            Some(open) => {
                open.schema.push(SchemaStep::Event(event));
                None
            }
            None => Some(event),
        }
    }

    /// Puts back what schema statements did, last first.
    pub(crate) fn undo_schema(&mut self, steps: Vec<SchemaStep>) {
        for step in steps.into_iter().rev() {
            match step {
                SchemaStep::Created(id) => {
                    self.tables.remove(&id);
                    self.instances.retain(|_, instance| instance.table != id);
                }
                SchemaStep::Enabled(id) => {
                    self.instances.remove(&id);
                }
                SchemaStep::Before(before) => {
                    let (id, table, instances) = *before;
                    self.tables.insert(id, table);
                    for instance in instances {
                        self.instances.entry(instance.id).or_insert(instance);
                    }
                }
                SchemaStep::Event(_) => {}
            }
        }
    }

    /// Tells the log what schema statements did.
    pub(crate) fn log_schema(&mut self, steps: Vec<SchemaStep>, now: Timestamp) {
        for step in steps {
            if let SchemaStep::Event(event) = step {
                self.log_schema_event(event, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cdc_core::{SqlType, TableName, Timestamp};

    use crate::{
        ColumnDefinition, EnableOptions, FakeDatabase, FakeServer, SchemaChange, TableDefinition,
        VirtualClock, Zone,
    };

    fn database() -> FakeDatabase {
        let clock = VirtualClock::manual(Timestamp::from_micros(0));
        FakeServer::new(clock, Zone::UTC).database("shop")
    }

    fn definition() -> TableDefinition {
        TableDefinition::new("t").column("id", SqlType::Int).primary_key(&["id"])
    }

    #[test]
    fn a_rollback_takes_a_created_table_and_its_rows_away() {
        let database = database();
        let table = TableName::new("dbo", "t");
        let mut transaction = database.begin();
        transaction.change_schema(&SchemaChange::CreateTable(definition()), None).expect("new");
        transaction.insert(&table, vec![1.into()]).expect("fits");
        let column = ColumnDefinition::nullable("v", SqlType::Int);
        let change = SchemaChange::AddColumn { table: table.clone(), column, fill: None };
        transaction.change_schema(&change, None).expect("own table");
        transaction.rollback();
        assert_eq!(database.rows(&table).expect_err("gone").number, 208);
    }

    #[test]
    fn a_table_that_a_transaction_makes_and_enables_starts_with_its_commit() {
        let database = database();
        let table = TableName::new("dbo", "t");
        let make = |transaction: &mut crate::Transaction| {
            transaction.change_schema(&SchemaChange::CreateTable(definition()), None)?;
            transaction.insert(&table, vec![1.into()])?;
            let handle = transaction.handle();
            let waiting = crate::Waiting::refuse();
            let options = EnableOptions::default();
            let name = database.enable_table_in(Some(&handle), &waiting, &table, &options)?;
            transaction.insert(&table, vec![2.into()])?;
            Ok(name)
        };
        let mut transaction = database.begin();
        let name: crate::SqlResult<_> = make(&mut transaction);
        transaction.rollback();
        assert!(database.instance(&name.expect("allowed")).is_err(), "rolled back");
        let mut transaction = database.begin();
        let name = make(&mut transaction).expect("allowed");
        let commit = transaction.commit().expect("open");
        database.capture();
        assert!(database.instance(&name).expect("there").start < commit.lsn);
        assert_eq!(database.change_rows(&name).expect("there").len(), 1, "what came after");
    }

    #[test]
    fn a_rollback_puts_a_dropped_table_and_its_instance_back_and_a_commit_logs_an_alter() {
        let database = database();
        let table = TableName::new("dbo", "t");
        database.create_table(definition()).expect("new");
        let instance = database.enable_table(&table, EnableOptions::default()).expect("allowed");
        let mut transaction = database.begin();
        transaction.change_schema(&SchemaChange::DropTable(table.clone()), None).expect("free");
        transaction.rollback();
        assert!(database.rows(&table).is_ok());
        assert!(database.instance(&instance).is_ok());
        let column = ColumnDefinition::nullable("v", SqlType::Int);
        let change = SchemaChange::AddColumn { table: table.clone(), column, fill: None };
        let mut transaction = database.begin();
        transaction.change_schema(&change, Some("alter table t add v int")).expect("free");
        database.capture();
        assert_eq!(database.ddl_history(&instance).expect("there"), []);
        transaction.commit().expect("open");
        database.capture();
        let history = database.ddl_history(&instance).expect("there");
        assert_eq!(history.first().expect("one").statement, "alter table t add v int");
    }
}
