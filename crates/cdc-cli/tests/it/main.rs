//! The binary itself, run as a process: its exit codes, its one report, and what it leaves behind.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails says so by panicking"
)]

mod demo;
mod doctor;
mod fake;
mod guide;
mod metrics;
#[path = "../../../cdc-postgres/tests/it/private_server.rs"]
#[allow(dead_code, clippy::print_stderr, reason = "the tests of the sink use more of it")]
mod private_server;
mod refusals;
mod run;
mod secrets;
mod sqlserver;
mod status;
mod support;
mod targets;
