//! The port of whoever can tell how a source is.

use async_trait::async_trait;

use crate::{diagnosis::Diagnosis, error::Result, table::TableRef, time::Timestamp};

/// How a source is: jobs, rights, windows, settings, clocks.
///
/// # Contract
/// Read-only, and only what the login may look at. What it may not is a diagnosis of
/// [`crate::diagnosis::Outcome::Unknown`] that says what is needed, never one that says "fine".
/// Calls may run concurrently. Nothing that a diagnosis says holds a cell's value or a secret.
#[async_trait]
pub trait Diagnose: Send + Sync {
    /// Looks at the source and at these tables. `now` is the caller's clock.
    ///
    /// # Errors
    /// Those of the connection alone: `Unavailable`, `Unauthorized` for a login that is refused,
    /// `Config` for a connection that cannot be made as it is set up.
    async fn diagnose(&self, tables: &[TableRef], now: Timestamp) -> Result<Vec<Diagnosis>>;
}
