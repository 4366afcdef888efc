//! The fake server in the hands of the source suite.

#![allow(dead_code, reason = "each test program uses its own part")]

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use cdc_conformance::{
    Cell, Failure,
    source::{Abilities, SourceHarness, Statement, Step},
};
use cdc_core::{
    Column, InstanceName, Lsn, Position, ServerTime, SqlType, TableName, Timestamp, port::Source,
};
use cdc_fake::{
    Call, CaptureSchedule, Cleanup, CleanupStep, ColumnDefinition, EnableOptions, FakeDatabase,
    FakeServer, FakeSource, Login, SqlError, TableDefinition, Value, VirtualClock, Zone,
    faults::{FaultPlan, FaultySource},
};

/// Rows that a cleanup removes in one step.
const CLEANUP_ROWS: usize = 2;

pub(crate) struct Fake {
    server: FakeServer,
    database: FakeDatabase,
    /// True when the source's calls go through the plan.
    wrapped: bool,
    plan: FaultPlan,
    cleanups: Mutex<Vec<Cleanup>>,
    /// Names and types of each table's stored columns.
    columns: Mutex<BTreeMap<TableName, Vec<(String, SqlType)>>>,
    /// The table of each instance.
    tables: Mutex<BTreeMap<InstanceName, TableName>>,
}

impl Fake {
    pub(crate) fn new(zone: Zone) -> Self {
        // A summer's noon, far from every change of a clock.
        let noon = Timestamp::from_micros(1_783_944_000_000_000);
        let clock = VirtualClock::manual(noon);
        let server = FakeServer::new(clock.clone(), zone);
        let database = server.database("suite");
        database.set_capture(CaptureSchedule::Manual);
        Self {
            server,
            database,
            wrapped: false,
            plan: FaultPlan::new(Arc::new(clock)),
            cleanups: Mutex::default(),
            columns: Mutex::default(),
            tables: Mutex::default(),
        }
    }

    /// The server, for other ways to its data.
    pub(crate) fn server(&self) -> &FakeServer {
        &self.server
    }

    /// The database of the suite.
    pub(crate) fn database(&self) -> &FakeDatabase {
        &self.database
    }

    /// The same, behind a plan without faults.
    pub(crate) fn wrapped(mut self) -> Self {
        self.wrapped = true;
        self
    }

    fn source(&self, login: Login) -> Arc<dyn Source> {
        let source = FakeSource::new(&self.database, login).expect("zone is known");
        if self.wrapped {
            return Arc::new(FaultySource::new(Arc::new(source), &self.plan));
        }
        Arc::new(source)
    }

    fn types(&self, table: &TableName) -> Vec<(String, SqlType)> {
        let columns = self.columns.lock().expect("not poisoned");
        columns.get(table).cloned().unwrap_or_default()
    }

    fn alter(&self, table: &TableName, change: impl FnOnce(&mut Vec<(String, SqlType)>)) {
        change(self.columns.lock().expect("not poisoned").entry(table.clone()).or_default());
    }
}

fn sql(error: SqlError) -> Failure {
    Failure::new(format!("the fake server refused a step: {error}"))
}

/// A cell as the server takes it into a column of this type.
fn value(cell: &Cell, sql_type: &SqlType) -> Value {
    const TICKS_A_MICRO: i64 = 10;
    match (cell, sql_type) {
        (Cell::Null, _) => Value::Null,
        (Cell::Bool(bit), _) => Value::Bit(*bit),
        (Cell::Int(number), _) => Value::Int(*number),
        (Cell::Real(bits), _) => Value::Real(f32::from_bits(*bits)),
        (Cell::Float(bits), _) => Value::Float(f64::from_bits(*bits)),
        (Cell::Decimal(digits, _), _) => Value::decimal(*digits),
        (Cell::Date(days), _) => Value::Date(*days),
        (Cell::Wall(micros), SqlType::DateTime) => {
            let wall = Timestamp::from_micros(*micros).to_datetime().expect("in range");
            Value::DateTime(ServerTime::nearest(wall.naive_utc()))
        }
        (Cell::Wall(micros), _) => Value::DateTime2(micros * TICKS_A_MICRO),
        (Cell::Instant(micros), _) => {
            Value::DateTimeOffset { utc: micros * TICKS_A_MICRO, offset_minutes: 0 }
        }
        (Cell::Text(text), SqlType::Time { .. }) => time(text),
        (Cell::Text(text), SqlType::UniqueIdentifier) => Value::Uuid(uuid(text)),
        (Cell::Text(text), _) => Value::text(text),
        (Cell::Bytes(bytes), _) => Value::bytes(bytes),
    }
}

fn time(text: &str) -> Value {
    let clock: chrono::NaiveTime = text.parse().expect("a time of day");
    let since = clock.signed_duration_since(chrono::NaiveTime::MIN);
    Value::Time(since.num_nanoseconds().expect("a day") / 100)
}

fn uuid(text: &str) -> [u8; 16] {
    let digits: String = text.chars().filter(|digit| *digit != '-').collect();
    u128::from_str_radix(&digits, 16).expect("a uuid").to_be_bytes()
}

#[async_trait]
impl SourceHarness for Fake {
    fn abilities(&self) -> Abilities {
        Abilities::all()
    }

    async fn source(&self) -> Arc<dyn Source> {
        self.source(Login::Owner)
    }

    async fn create_table(&self, table: &TableName, columns: &[Column], key: &[&str]) -> Step {
        let mut definition = TableDefinition::named(table.clone());
        for column in columns {
            let kind = column.sql_type.clone();
            definition = definition.with(if column.computed {
                let twice = |row: &cdc_fake::RowView<'_>| Value::Int(row.int("id") * 2);
                ColumnDefinition::computed(&column.name, kind, twice)
            } else if column.nullable {
                ColumnDefinition::nullable(&column.name, kind)
            } else {
                ColumnDefinition::new(&column.name, kind)
            });
            if !column.computed {
                let own = (column.name.clone(), column.sql_type.clone());
                self.alter(table, |columns| columns.push(own));
            }
        }
        self.database.create_table(definition.primary_key(key)).map_err(sql)
    }

    async fn enable(
        &self,
        table: &TableName,
        instance: &InstanceName,
        columns: Option<&[&str]>,
    ) -> Step {
        let mut options = EnableOptions::named(instance.as_str());
        if let Some(columns) = columns {
            options = options.columns(columns);
        }
        let mut tables = self.tables.lock().expect("not poisoned");
        tables.insert(instance.clone(), table.clone());
        self.database.enable_table(table, options).map(drop).map_err(sql)
    }

    async fn transact(&self, statements: &[Statement]) -> Step {
        let mut transaction = self.database.begin();
        for statement in statements {
            match statement {
                Statement::Insert(table, cells) => {
                    let types = self.types(table);
                    let cells = cells.iter().chain(std::iter::repeat(&Cell::Null));
                    let values = cells.zip(&types);
                    let values = values.map(|(cell, (_, kind))| value(cell, kind)).collect();
                    transaction.insert(table, values).map_err(sql)?;
                }
                Statement::Update { table, key, set } => {
                    let types = self.types(table);
                    let kind = |name: &str| {
                        let own = types.iter().find(|(own, _)| own == name);
                        own.map(|(_, kind)| kind).expect("column exists")
                    };
                    let key: Vec<_> = key.iter().map(|cell| value(cell, &SqlType::Int)).collect();
                    let set: Vec<_> = set
                        .iter()
                        .map(|(name, cell)| (name.as_str(), value(cell, kind(name))))
                        .collect();
                    let rows = transaction.update(table, &key, &set).map_err(sql)?;
                    assert_eq!(rows, 1, "an update finds its row");
                }
                Statement::Delete(table, key) => {
                    let key: Vec<_> = key.iter().map(|cell| value(cell, &SqlType::Int)).collect();
                    let rows = transaction.delete(table, &key).map_err(sql)?;
                    assert_eq!(rows, 1, "a delete finds its row");
                }
            }
        }
        transaction.commit().map(drop).map_err(sql)
    }

    async fn capture(&self) -> Step {
        self.database.capture();
        Ok(())
    }

    async fn idle(&self) -> Step {
        self.database.write_idle_entry().map(drop).ok_or_else(|| Failure::new("no idle entry"))
    }

    async fn pass(&self, time: Duration) -> Step {
        self.database.clock().advance(time);
        Ok(())
    }

    async fn move_low(&self, instance: &InstanceName, low: Position) -> Step {
        let mark = Lsn::try_from(low)?;
        let mut cleanup =
            self.database.begin_cleanup_of(instance, mark, CLEANUP_ROWS).map_err(sql)?;
        let first = cleanup.step();
        assert!(matches!(first, Some(CleanupStep::Watermark(..))), "{first:?}");
        self.cleanups.lock().expect("not poisoned").push(cleanup);
        Ok(())
    }

    async fn delete_purged(&self) -> Step {
        for cleanup in self.cleanups.lock().expect("not poisoned").drain(..) {
            cleanup.finish();
        }
        Ok(())
    }

    async fn add_column(&self, table: &TableName, column: &Column) -> Step {
        let own = (column.name.clone(), column.sql_type.clone());
        self.alter(table, |columns| columns.push(own));
        let added = ColumnDefinition::nullable(&column.name, column.sql_type.clone());
        self.database.add_column(table, added, None).map_err(sql)
    }

    async fn alter_column(&self, table: &TableName, column: &str, to: SqlType) -> Step {
        self.alter(table, |columns| {
            let own = columns.iter_mut().find(|(name, _)| name == column);
            own.expect("column exists").1 = to.clone();
        });
        self.database.alter_column(table, column, to).map_err(sql)
    }

    async fn drop_column(&self, table: &TableName, column: &str) -> Step {
        self.alter(table, |columns| columns.retain(|(name, _)| name != column));
        self.database.drop_column(table, column).map_err(sql)
    }

    async fn revoke(&self, instance: &InstanceName) -> Result<Arc<dyn Source>, Failure> {
        let tables = self.tables.lock().expect("not poisoned");
        let table = tables.get(instance).expect("instance exists");
        self.database.grant_select("reader", table);
        Ok(self.source(Login::named("reader")))
    }

    async fn break_stream(&self, rows: u64) -> Step {
        self.database.kill_after_rows(Call::Changes, rows);
        Ok(())
    }
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    futures_util::future::FutureExt::now_or_never(future).expect("the fake waits for nothing")
}
