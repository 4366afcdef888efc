//! The project's tasks: the rules of the source tree ([`tidy`]), the steps of the test command
//! ([`steps`]), the comparison of written tables with independent readers ([`readers`]),
//! independent clients of the SQL Server in memory ([`clients`]), the measurements ([`bench`]), the
//! simulator ([`simulation`]), and the fuzz targets ([`fuzz`]).
//!
//! It is a library so that tests can hand each rule a tree with a planted violation.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task's report is what it prints")]

pub mod bench;
pub mod clients;
pub mod failure;
pub mod finding;
pub mod fuzz;
pub mod openssl;
pub mod postgres;
pub mod readers;
pub mod require;
pub mod simulation;
pub mod source;
pub mod steps;
pub mod tidy;
pub mod tree;
pub mod workspace;

pub use failure::{Failure, Result};
pub use finding::Finding;
pub use tree::Tree;
