//! Columns of capture instances of any shape; see `cdc_fuzzing::schema`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::schema::run(data));
