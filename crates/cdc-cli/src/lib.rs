//! The parts of the binary `cdc`: arguments, configuration, signals, logs, metrics, progress, the
//! demonstration, and one report at the end. What copies tables lives in the libraries below it.

mod args;
pub mod clock;
mod config;
pub mod exit;
mod logging;
mod metrics;
mod progress;
mod report;
