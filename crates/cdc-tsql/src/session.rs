//! A session: batches, variables, control flow, transactions, statements that change things, and
//! the procedures of the protocol.

mod call;
mod columns;
mod conversation;
mod define;
mod describe;
mod failure;
mod flow;
mod frame;
mod functions;
mod insert;
mod merge;
mod options;
mod output;
mod prepared;
mod query_run;
mod rights;
mod runner;
mod scope;
mod script;
mod server;
mod target;
mod temporary;
mod told;
mod transactions;
mod update;
mod wait;

#[cfg(test)]
mod tests;

pub use conversation::Session;
pub use script::run_script;
pub use server::{Server, ServerSettings};
