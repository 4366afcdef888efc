//! The suites that every source and every sink passes.
//!
//! A suite is a list of named cases. A case drives one adapter through its port, compares what a
//! reader sees with a pure model of what the port's contract promises, and answers with an
//! [`Outcome`] or a [`Failure`]; it never panics. The macros [`sink_suite!`] and
//! [`source_suite!`] turn each case into a test of its own, so that a test run shows every rule by
//! name.
//!
//! The crate knows no runtime: the adapter says how a future is run.

pub mod cell;
pub mod feed;
pub mod image;
pub mod model;
pub mod outcome;
pub mod rows;
pub mod sink;
pub mod source;
mod suite;

pub use cell::Cell;
pub use feed::Feed;
pub use model::Model;
pub use outcome::{CaseResult, Failure, Outcome};
pub use rows::{Lead, Row, Rows};
