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
mod crash;
mod guard;
mod history;
mod private_server;
mod refusal;
mod support;
mod tls;
