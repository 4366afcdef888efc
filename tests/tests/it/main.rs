//! End-to-end tests: the engine between the fake server and real or in-memory targets.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod bronze;
mod completeness;
mod faults;
mod history;
mod lake;
mod ledgers;
mod order;
mod refusal;
mod window;
