//! Facts in the user metadata of a commit; see `cdc_fuzzing::facts`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::facts::run(data));
