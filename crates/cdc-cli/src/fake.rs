//! `cdc fake`: the simulated server on its own, for anybody's code that reads change data capture.

mod faults;
mod serve;

pub(crate) use serve::serve;

/// The command's name in reports.
pub(crate) const NAME: &str = "fake serve";
