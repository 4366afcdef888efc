//! Requests of a client: batches, transactions, and calls with arguments of every type.

/// Runs one input. An argument that is read is a value that a result can carry, unchanged.
pub fn run(data: &[u8]) {
    assert!(cdc_tds::fuzzing::requests(data));
}
