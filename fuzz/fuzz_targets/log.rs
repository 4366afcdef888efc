//! Commits of others in the logs of a lake; see `cdc_fuzzing::log`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::log::run(data));
