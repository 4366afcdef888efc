//! The seam below the sink: a database as the sink's decisions see it. The server implements it,
//! and so does the model that the simulation runs on.

use async_trait::async_trait;
use cdc_core::{Epoch, Result};

use crate::{
    layout::{Layout, TargetColumn},
    piece::Piece,
    record::Record,
};

/// A database with the tables of one schema.
#[async_trait]
pub(crate) trait Store: Send + Sync {
    /// A session of its own.
    async fn session(&self) -> Result<Box<dyn Session>>;
}

/// One session: at most one transaction at a time, and rows that are staged for it.
///
/// # Contract
/// After an error, or when a call's future was dropped, the session is dropped too: its
/// transaction is rolled back and what it staged is gone. Nothing that a transaction wrote is seen
/// before its commit returned; when a commit fails, either all of it happened or nothing.
#[async_trait]
pub(crate) trait Session: Send {
    /// Makes what every table of the schema needs.
    async fn prepare(&mut self) -> Result<()>;

    /// A table's record as it is durable now; none when there is no target. Locks nothing.
    async fn look(&mut self, table: &str) -> Result<Option<Record>>;

    /// Begins a transaction and locks the table's record until its end. With `creating` a record
    /// that is not there is locked too.
    async fn begin(&mut self, table: &str, creating: bool) -> Result<Option<Record>>;

    /// The target's columns, in its order; empty without a target.
    async fn columns(&mut self, table: &str) -> Result<Vec<TargetColumn>>;

    /// Makes a target. `Config` when something has its name.
    async fn create(&mut self, table: &str, layout: &Layout) -> Result<()>;

    /// Adds the last `added` columns of a layout to the target.
    async fn add(&mut self, table: &str, layout: &Layout, added: usize) -> Result<()>;

    /// Takes a piece, outside of a transaction. Nobody else sees it.
    async fn stage(&mut self, table: &str, layout: &Layout, piece: &Piece) -> Result<()>;

    /// Applies the staged pieces to the target, in their order: each row where its epoch and
    /// position are greater than those of the target's row of that key. The pieces are gone when
    /// the transaction has been committed.
    async fn merge(&mut self, table: &str, epoch: Epoch) -> Result<()>;

    /// Writes a table's record.
    async fn save(&mut self, table: &str, record: &Record) -> Result<()>;

    /// Ends the transaction; everything in it becomes visible in one step. Pieces that were not
    /// merged stay staged.
    async fn commit(&mut self) -> Result<()>;

    /// Ends the transaction without a trace. Staged pieces stay staged.
    async fn roll_back(&mut self) -> Result<()>;

    /// Forgets the staged pieces, outside of a transaction.
    async fn clear(&mut self) -> Result<()>;
}
