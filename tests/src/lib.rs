//! What the end-to-end tests share: a small world of a fake server, an engine and a target.

pub mod sample;
pub mod world;
