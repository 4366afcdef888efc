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
mod refusals;
mod run;
mod secrets;
mod sqlserver;
mod status;
mod support;
