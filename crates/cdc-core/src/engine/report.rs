//! What a run did, table by table.

use crate::{
    error::Error,
    mark::Mark,
    time::Timestamp,
    verdict::{self, Verdict},
};

/// What a run did for one table.
#[derive(Debug)]
pub struct TableReport {
    /// The table's name in the target.
    pub table: String,
    /// The last durable mark that the run knows of.
    pub mark: Option<Mark>,
    /// The last published verdict that the run knows of.
    pub verdict: Option<Verdict>,
    /// Change rows this run made durable.
    pub rows: u64,
    /// Batches with rows this run made durable.
    pub batches: u64,
    /// Why the table stopped; none when it ran to the end.
    pub error: Option<Error>,
}

/// What a run did.
#[derive(Debug, Default)]
pub struct RunReport {
    /// The tables, in the order they were given.
    pub tables: Vec<TableReport>,
}

impl RunReport {
    /// Up to when every table of the run is complete; none while one has no verdict.
    #[must_use]
    pub fn finalized_until(&self) -> Option<Timestamp> {
        verdict::group(
            self.tables
                .iter()
                .map(|table| table.verdict.and_then(|verdict| verdict.finalized_until)),
        )
    }

    /// The errors that stopped tables, in the order of the tables.
    pub fn errors(&self) -> impl Iterator<Item = &Error> {
        self.tables.iter().filter_map(|table| table.error.as_ref())
    }
}
