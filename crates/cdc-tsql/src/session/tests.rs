//! Sessions as a front drives them: what is asked, and every reply in order.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_wrap
)]

mod anything;
mod batches;
mod calls;
mod capture;
mod changes;
mod definitions;
mod rig;
mod rights;
mod transactions;
