//! The suite for sources.

mod catalog;
mod changes;
mod positions;
mod rows;
mod scene;
mod values;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use cdc_core::{Column, InstanceName, Position, SqlType, TableName, port::Source};
use futures_core::future::BoxFuture;

use crate::{
    cell::Cell,
    outcome::{CaseResult, Failure, Outcome},
};

/// One statement of a transaction. Every statement is about one row.
#[derive(Clone, Debug)]
pub enum Statement {
    /// Inserts a row: the values of the stored columns in the table's order. Columns behind the
    /// last value are NULL.
    Insert(TableName, Vec<Cell>),
    /// Updates the row with this key.
    Update {
        /// The table.
        table: TableName,
        /// The row's key, in the order of the key columns.
        key: Vec<Cell>,
        /// Columns and their new values.
        set: Vec<(String, Cell)>,
    },
    /// Deletes the row with this key.
    Delete(TableName, Vec<Cell>),
}

/// What a harness is able to bring about. Cases that need more are skipped by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abilities {
    /// [`SourceHarness::enable`] and transactions leave capture waiting until
    /// [`SourceHarness::capture`] is called.
    pub holds_capture: bool,
    /// [`SourceHarness::idle`].
    pub idles: bool,
    /// [`SourceHarness::pass`] moves the server's clock, by exactly the time given.
    pub passes_time: bool,
    /// [`SourceHarness::move_low`] and [`SourceHarness::delete_purged`].
    pub cleans_up: bool,
    /// [`SourceHarness::add_column`], [`SourceHarness::alter_column`] and
    /// [`SourceHarness::drop_column`].
    pub changes_columns: bool,
    /// [`SourceHarness::create_table`] takes computed columns.
    pub computes: bool,
    /// [`SourceHarness::revoke`].
    pub revokes: bool,
    /// [`SourceHarness::break_stream`].
    pub breaks_streams: bool,
}

impl Abilities {
    /// Everything.
    #[must_use]
    pub const fn all() -> Self {
        Self {
            holds_capture: true,
            idles: true,
            passes_time: true,
            cleans_up: true,
            changes_columns: true,
            computes: true,
            revokes: true,
            breaks_streams: true,
        }
    }
}

/// What a harness's own steps return.
pub type Step = Result<(), Failure>;

/// One empty database with change data capture, and the steps that move it.
///
/// The steps that [`SourceHarness::abilities`] does not declare are never called.
#[async_trait]
pub trait SourceHarness: Send + Sync {
    /// What the harness is able to bring about.
    fn abilities(&self) -> Abilities;

    /// The source under test, with every right on the database.
    async fn source(&self) -> Arc<dyn Source>;

    /// Creates a table with a primary key over `key`, or a heap when `key` is empty. A computed
    /// column is twice the column `id`.
    async fn create_table(&self, table: &TableName, columns: &[Column], key: &[&str]) -> Step;

    /// Enables the table for capture as `instance`: the columns named, or all.
    async fn enable(
        &self,
        table: &TableName,
        instance: &InstanceName,
        columns: Option<&[&str]>,
    ) -> Step;

    /// Commits one transaction of these statements, in this order.
    async fn transact(&self, statements: &[Statement]) -> Step;

    /// Returns when capture has processed everything committed so far.
    async fn capture(&self) -> Step;

    /// Lets capture write an entry of the mapping that no change belongs to.
    async fn idle(&self) -> Step {
        Err(undeclared("idle"))
    }

    /// Lets time pass on the server's clock.
    async fn pass(&self, _time: Duration) -> Step {
        Err(undeclared("pass"))
    }

    /// Moves the instance's low position to `low`, as the first step of a cleanup does; no row
    /// is gone yet.
    async fn move_low(&self, _instance: &InstanceName, _low: Position) -> Step {
        Err(undeclared("move_low"))
    }

    /// Removes everything below the low positions, as the second step of a cleanup does.
    async fn delete_purged(&self) -> Step {
        Err(undeclared("delete_purged"))
    }

    /// Adds a column to the table.
    async fn add_column(&self, _table: &TableName, _column: &Column) -> Step {
        Err(undeclared("add_column"))
    }

    /// Changes the type of a column.
    async fn alter_column(&self, _table: &TableName, _column: &str, _to: SqlType) -> Step {
        Err(undeclared("alter_column"))
    }

    /// Drops a column from the table.
    async fn drop_column(&self, _table: &TableName, _column: &str) -> Step {
        Err(undeclared("drop_column"))
    }

    /// A source that logs in without the right to read the instance's change table, and with
    /// every other right.
    async fn revoke(&self, _instance: &InstanceName) -> Result<Arc<dyn Source>, Failure> {
        Err(undeclared("revoke"))
    }

    /// Lets the next stream of changes fail after it has delivered `rows` rows or a few more.
    async fn break_stream(&self, _rows: u64) -> Step {
        Err(undeclared("break_stream"))
    }
}

fn undeclared(step: &str) -> Failure {
    Failure::new(format!("the harness declares {step} but does not have it"))
}

/// A case: a rule and the steps that show whether a source keeps it.
#[derive(Clone, Copy)]
pub struct Case {
    name: &'static str,
    group: &'static str,
    body: for<'a> fn(&'a dyn SourceHarness) -> BoxFuture<'a, CaseResult>,
}

impl Case {
    /// The rule, as a test's name spells it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What the rule is about.
    #[must_use]
    pub const fn group(&self) -> &'static str {
        self.group
    }

    /// Runs the case on an empty database.
    ///
    /// # Errors
    /// What the source did that its contract does not allow.
    pub async fn run(&self, harness: &dyn SourceHarness) -> CaseResult {
        (self.body)(harness).await
    }
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}::{}", self.group, self.name)
    }
}

/// Every case of the suite.
#[must_use]
pub fn cases() -> Vec<Case> {
    crate::__source_cases! { __source_table }
}

/// Runs the case of this name on an empty database.
///
/// # Errors
/// What the source did that its contract does not allow.
pub async fn run(name: &str, harness: &dyn SourceHarness) -> CaseResult {
    match cases().into_iter().find(|case| case.name == name) {
        Some(case) => case.run(harness).await,
        None => Err(Failure::new(format!("there is no case {name}"))),
    }
}

/// Passed, or what the harness would have to be able to do.
fn needs(able: bool, what: &str) -> Option<CaseResult> {
    (!able).then(|| Ok(Outcome::Skipped(format!("the harness cannot {what}"))))
}

/// The list of cases as values.
#[doc(hidden)]
#[macro_export]
macro_rules! __source_table {
    ($($group:ident { $($name:ident)* })*) => {
        vec![$($(Case {
            name: stringify!($name),
            group: stringify!($group),
            body: |harness| Box::pin($group::$name(harness)),
        },)*)*]
    };
}
