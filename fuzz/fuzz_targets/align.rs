//! Record batches of foreign shape on their way into bronze; see `cdc_fuzzing::align`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::align::run(data));
