//! T-SQL over the in-memory SQL Server of `cdc-fake`: parsed, bound to its catalogue, evaluated
//! with SQL Server's types, and refused by name where it is not known. Nothing is matched as text.
//!
//! A front (the TDS server, a script runner) sees [`talk`] alone: it logs in, hands over batches
//! and procedure calls, and is told the replies in order.
//!
//! Inside, from the bottom up: [`kind`] says what a type is, `scalar` computes with values,
//! [`relation`] is where rows come from, `syntax` reads statements, `query` evaluates SELECT,
//! `model` is the catalogue over `cdc-fake`, `session` runs statements.

pub mod kind;
mod model;
mod query;
pub mod relation;
mod scalar;
mod session;
mod syntax;
pub mod talk;

pub use cdc_fake::{
    code_page,
    collation::{DEFAULT_COLLATION, of_wire as collation_of_wire},
};
pub use session::{Server, ServerSettings, Session, run_script};
