//! Zones, readings of the server's clock and their moments; see `cdc_fuzzing::clock`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::clock::run(data));
