//! A random workload that is the same for the same seed: tables of many types, and transactions of
//! every shape that capture treats in its own way.

use std::time::Duration;

use cdc_core::{InstanceName, Length, ServerTime, SqlType, TableName};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{
    database::FakeDatabase,
    instance::EnableOptions,
    sql_error::{SqlResult, number},
    table::{ColumnDefinition, TableDefinition},
    transaction::{CommitInfo, Transaction},
    value::Value,
};

/// How large a workload's pieces are.
#[derive(Clone, Debug)]
pub struct WorkloadShape {
    /// Tables; at least 1.
    pub tables: usize,
    /// Keys are drawn from 0 to here: the fewer, the more often rows meet.
    pub keys: i64,
    /// Most statements in a transaction; at least 1.
    pub statements: usize,
    /// Most rows that one statement is about; at least 1.
    pub rows: i64,
}

impl Default for WorkloadShape {
    fn default() -> Self {
        Self { tables: 2, keys: 50, statements: 4, rows: 8 }
    }
}

/// A generator of transactions.
#[derive(Clone, Debug)]
pub struct Workload {
    random: ChaCha8Rng,
    shape: WorkloadShape,
    tables: Vec<TableName>,
}

impl Workload {
    /// A workload from its seed.
    #[must_use]
    pub fn new(seed: u64, shape: WorkloadShape) -> Self {
        let name = |number| TableName::new("dbo", format!("work{number}"));
        Self {
            random: ChaCha8Rng::seed_from_u64(seed),
            tables: (1..=shape.tables.max(1)).map(name).collect(),
            shape,
        }
    }

    /// The tables it writes.
    #[must_use]
    pub fn tables(&self) -> &[TableName] {
        &self.tables
    }

    /// Creates the tables and enables each for capture.
    ///
    /// # Errors
    /// What the server refuses, for instance names that are taken.
    pub fn create(&self, database: &FakeDatabase) -> SqlResult<Vec<InstanceName>> {
        let mut instances = Vec::with_capacity(self.tables.len());
        for table in &self.tables {
            database.create_table(Self::definition(table))?;
            instances.push(database.enable_table(table, EnableOptions::default())?);
        }
        Ok(instances)
    }

    /// The columns of every table of the workload. `id` is the key.
    #[must_use]
    pub fn definition(table: &TableName) -> TableDefinition {
        let limited = |length| SqlType::NVarChar(Length::Limited(length));
        TableDefinition::named(table.clone())
            .column("id", SqlType::Int)
            .column("code", limited(20))
            .nullable("amount", SqlType::Decimal { precision: 12, scale: 2 })
            .nullable("seen", SqlType::DateTime)
            .nullable("exact", SqlType::DateTime2 { scale: 7 })
            .nullable("share", SqlType::Float)
            .nullable("flag", SqlType::Bit)
            .nullable("uid", SqlType::UniqueIdentifier)
            .nullable("raw", SqlType::VarBinary(Length::Limited(16)))
            .nullable("doc", SqlType::NVarChar(Length::Max))
            .nullable("memo", SqlType::NText)
            .with(ColumnDefinition::computed("twice", SqlType::BigInt, |row| {
                Value::Int(row.int("id").saturating_mul(2))
            }))
            .primary_key(&["id"])
    }

    /// Runs one transaction, or a few that are open at the same time. Some are rolled back.
    /// Returns the commits in their order.
    ///
    /// # Errors
    /// Nothing that belongs to a workload: duplicate keys and held rows are part of it.
    pub fn step(&mut self, database: &FakeDatabase) -> SqlResult<Vec<CommitInfo>> {
        let mut open = vec![database.begin()];
        if self.random.random_bool(0.2) {
            open.push(database.begin());
        }
        let statements = self.random.random_range(1..=self.shape.statements.max(1));
        for _ in 0..statements {
            let chosen = self.random.random_range(0..open.len());
            if let Some(transaction) = open.get_mut(chosen) {
                let outcome = self.statement(transaction);
                expected(outcome)?;
            }
        }
        let mut commits = Vec::with_capacity(open.len());
        while !open.is_empty() {
            let chosen = self.random.random_range(0..open.len());
            let transaction = open.swap_remove(chosen);
            if self.random.random_bool(0.1) {
                transaction.rollback();
            } else {
                commits.push(transaction.commit()?);
            }
        }
        Ok(commits)
    }

    /// Runs `steps` steps with random pauses up to `pause` between them, on the virtual clock.
    /// Returns the commits in their order.
    ///
    /// # Errors
    /// As for [`Workload::step`].
    pub fn run(
        &mut self,
        database: &FakeDatabase,
        steps: usize,
        pause: Duration,
    ) -> SqlResult<Vec<CommitInfo>> {
        let mut commits = Vec::with_capacity(steps);
        let longest = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        for _ in 0..steps {
            commits.extend(self.step(database)?);
            let pause = self.random.random_range(0..=longest);
            database.clock().advance(Duration::from_micros(pause));
        }
        Ok(commits)
    }

    fn statement(&mut self, transaction: &mut Transaction) -> SqlResult<usize> {
        let chosen = self.random.random_range(0..self.tables.len());
        let Some(table) = self.tables.get(chosen).cloned() else {
            return Ok(0);
        };
        let first = self.random.random_range(0..self.shape.keys.max(1));
        let rows = self.random.random_range(1..=self.shape.rows.max(1));
        let keys = first..first.saturating_add(rows);
        match self.random.random_range(0..10_u32) {
            0..=3 => {
                let rows = keys.map(|key| self.row(key)).collect();
                transaction.insert_many(&table, rows)
            }
            4 => transaction.update(&table, &[first.into()], &[("code", self.code())]),
            5 => {
                let amount = self.amount();
                let doc = self.doc();
                transaction.update_where(
                    &table,
                    |row| keys.contains(&row.int("id")),
                    |row| {
                        row.set("amount", amount.clone())?;
                        row.set("doc", doc.clone())
                    },
                )
            }
            6 => {
                // Keys move, mostly onto each other: a deferred update.
                let by = self.random.random_range(1..=self.shape.rows.max(1));
                transaction.update_where(
                    &table,
                    |row| keys.contains(&row.int("id")),
                    |row| row.set("id", row.view().int("id").saturating_add(by)),
                )
            }
            7 => {
                let code = self.code();
                transaction.merge_where(
                    &table,
                    |row| keys.contains(&row.int("id")),
                    |row| row.set("code", code.clone()),
                )
            }
            8 => {
                let row = self.row(first);
                transaction.delete(&table, &[first.into()])?;
                transaction.insert(&table, row).map(|()| 1)
            }
            _ => transaction.delete_where(&table, |row| keys.contains(&row.int("id"))),
        }
    }

    fn row(&mut self, key: i64) -> Vec<Value> {
        let random = &mut self.random;
        let exact = random.random_range(0..20_000_000_000_000_000_i64);
        let seen = random.random_range(0..40_000_000_i64) * 300;
        let uid: [u8; 16] = random.random();
        let flag = random.random_bool(0.5);
        let share = f64::from(random.random_range(-1000..1000_i32)) / 8.0;
        let raw = vec![random.random::<u8>(); random.random_range(0..=16)];
        vec![
            key.into(),
            self.code(),
            self.amount(),
            Value::DateTime(ServerTime::from_ticks(seen)),
            Value::DateTime2(exact),
            share.into(),
            flag.into(),
            Value::Uuid(uid),
            Value::bytes(&raw),
            self.doc(),
            self.doc(),
        ]
    }

    fn code(&mut self) -> Value {
        Value::text(&format!("c{}", self.random.random_range(0..100_000_u32)))
    }

    fn amount(&mut self) -> Value {
        if self.random.random_bool(0.1) {
            return Value::Null;
        }
        Value::decimal(self.random.random_range(-999_999_999_999..=999_999_999_999_i128))
    }

    fn doc(&mut self) -> Value {
        if self.random.random_bool(0.2) {
            return Value::Null;
        }
        let length = self.random.random_range(0..40);
        Value::text(&"\u{e9}".repeat(length))
    }
}

/// Refused statements leave nothing and are part of a workload; anything else is an error.
fn expected(outcome: SqlResult<usize>) -> SqlResult<()> {
    match outcome {
        Err(error) if !matches!(error.number, number::DUPLICATE_KEY | number::LOCK_TIMEOUT) => {
            Err(error)
        }
        _ => Ok(()),
    }
}
