//! The Sink port on PostgreSQL: each table with one row a key, as the source has it now.
//!
//! A row carries the position of the change that wrote it. A change is applied only when its
//! position is greater, so a replay does nothing, an older change never overwrites a newer row, and
//! a deleted row stays as a marker that no late insert revives. `<table>_live` shows the rows that
//! exist, `<table>_soft` the deleted ones too; `cdc_control` holds the marks.
//!
//! A batch is reduced to one row a key, copied in the binary form into a temporary table, and
//! applied by one statement, in one transaction with its mark. The row of the mark is locked first:
//! it says who owns the table.

mod binary;
mod cells;
mod column_type;
mod config;
mod control;
mod fault;
mod layout;
#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a model for tests"
)]
mod model;
mod name;
mod piece;
mod record;
mod row;
mod server;
mod sink;
mod statement;
mod store;
mod table;
mod tls;

pub use cdc_core::Secret;
pub use config::{NulInText, PostgresConfig, Tls, Trust};
pub use name::{CONTROL, DELETED, EPOCH, LIVE_SUFFIX, POSITION, SOFT_SUFFIX};
pub use sink::PostgresSink;
