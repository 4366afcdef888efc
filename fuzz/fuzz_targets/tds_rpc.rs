//! Requests of a client of TDS; see `cdc_fuzzing::tds_rpc`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::tds_rpc::run(data));
