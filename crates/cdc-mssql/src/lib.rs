//! The source on SQL Server: change data capture read over TDS, with the least rights that do.
//!
//! [`MssqlSource`] implements the source port. Below it stands one private seam, a statement with
//! its parameters in and record batches out. tiberius implements it; for results of many rows so
//! does `mssql-tds`, where it is built in. The texts of all statements are in `sql`, one function
//! each; names get into them through one quoting type, values as parameters. Nothing is ever
//! written to the server.
//!
//! What is assumed about a real server stands where it is assumed, and in `adr/0013`.

mod config;
mod driver;
mod fault;
mod name;
mod server;
mod source;
mod sql;
mod type_name;

pub use cdc_core::Secret;
pub use config::{BulkReader, Encryption, Login, MssqlConfig, RetryBudget, Trust};
pub use source::MssqlSource;
