//! The stream of a client of TDS; see `cdc_fuzzing::tds_packets`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::tds_packets::run(data));
