//! What a client of TDS sends before it is in; see `cdc_fuzzing::tds_login`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::tds_login::run(data));
