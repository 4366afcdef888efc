//! The binary `cdc`.

fn main() {}
