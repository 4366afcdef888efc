//! What each fuzz target does with an input: the parsers of foreign text, bytes and batches, and
//! what must hold for whatever they are given. The targets under `fuzz/` call these functions, and
//! the test beside them replays every kept input.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    reason = "a target panics when something does not hold"
)]

#[cfg(feature = "delta")]
pub mod align;
pub mod batch;
pub mod clock;
#[cfg(feature = "cli")]
pub mod config;
pub mod draw;
#[cfg(feature = "delta")]
pub mod facts;
#[cfg(feature = "delta")]
pub mod log;
pub mod lsn;
#[cfg(feature = "delta")]
pub mod mark;
pub mod schema;
#[cfg(feature = "delta")]
pub mod stats;
#[cfg(feature = "tds")]
pub mod tds_login;
#[cfg(feature = "tds")]
pub mod tds_packets;
#[cfg(feature = "tds")]
pub mod tds_rpc;
#[cfg(feature = "cli")]
pub mod words;

/// A target: what it does with an input. It panics when something does not hold.
pub type Target = fn(&[u8]);

/// Every target by its name, which is also the name of its directories of inputs.
pub const TARGETS: &[(&str, Target)] = &[
    ("lsn", lsn::run),
    ("clock", clock::run),
    ("schema", schema::run),
    ("batch", batch::run),
    #[cfg(feature = "cli")]
    ("words", words::run),
    #[cfg(feature = "cli")]
    ("config", config::run),
    #[cfg(feature = "delta")]
    ("mark", mark::run),
    #[cfg(feature = "delta")]
    ("facts", facts::run),
    #[cfg(feature = "delta")]
    ("align", align::run),
    #[cfg(feature = "delta")]
    ("stats", stats::run),
    #[cfg(feature = "delta")]
    ("log", log::run),
    #[cfg(feature = "tds")]
    ("tds_login", tds_login::run),
    #[cfg(feature = "tds")]
    ("tds_rpc", tds_rpc::run),
    #[cfg(feature = "tds")]
    ("tds_packets", tds_packets::run),
];
