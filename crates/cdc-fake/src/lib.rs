//! placeholder
pub mod memory_sink;
