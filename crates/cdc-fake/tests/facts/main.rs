//! Facts observed on a real SQL Server, each a test of the fake that bears the fact's name.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_wrap
)]

mod cleanup;
mod field;
mod histories;
mod idle;
mod reads;
mod rig;
mod rights;
mod schema;
mod switch;
mod tables;
mod trouble;
mod watermark;
mod zone;
