//! The Delta sink as its users and other readers of its tables see it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    missing_docs
)]

mod belief;
mod conformance;
mod cost;
mod crash;
mod interleave;
mod layout;
mod others;
#[cfg(feature = "planted-bugs")]
mod planted;
mod protocol;
mod refusal;
mod store;
mod support;
