//! The configuration file; see `cdc_fuzzing::config`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::config::run(data));
