//! The server against clients, with a session that knows a handful of words in place of T-SQL.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod cached;
mod calls;
mod client;
mod encryption;
mod foreign;
mod limits;
mod real;
mod requests;
mod stub;
