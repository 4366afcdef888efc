//! A data file's statistics; see `cdc_fuzzing::stats`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::stats::run(data));
