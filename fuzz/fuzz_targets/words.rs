//! Table names, quantities, periods and rows of sample files; see `cdc_fuzzing::words`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::words::run(data));
