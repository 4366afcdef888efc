//! Log positions as text and bytes; see `cdc_fuzzing::lsn`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::lsn::run(data));
