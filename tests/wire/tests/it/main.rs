//! The source against the fake server, over TDS on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::large_futures
)]

#[path = "../../../../crates/cdc-fake/tests/fake_harness/mod.rs"]
mod fake_harness;

mod conformance;
mod diagnosis;
mod equality;
mod forge;
mod login;
mod oddity;
mod reading;
mod relay;
mod rig;
#[cfg(feature = "mssql-tds")]
mod strict;
mod tls;
mod trouble;
