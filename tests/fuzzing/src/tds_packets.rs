//! A client's stream: packets, messages made of them, and what is in the messages.

/// Bytes of the longest message that is put together.
const LIMIT: usize = 4096;

/// Runs one input. No message grows beyond its limit, whatever its packets say.
pub fn run(data: &[u8]) {
    assert!(cdc_tds::fuzzing::packets(data, LIMIT) <= LIMIT);
}
