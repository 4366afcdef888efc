//! The sink on a PostgreSQL of its own, started from the machine's binaries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    missing_docs
)]

mod conformance;
mod private_server;
mod support;
