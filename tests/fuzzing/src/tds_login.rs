//! What a client sends before it is in: the pre-login's options and the login record.

/// Runs one input. A record that is read has to be as long as it says.
pub fn run(data: &[u8]) {
    if cdc_tds::fuzzing::login(data) {
        let length = data.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).unwrap();
        assert!(usize::try_from(length).unwrap() <= data.len());
    }
}
