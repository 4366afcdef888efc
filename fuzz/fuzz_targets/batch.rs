//! Record batches of foreign shape as change batches; see `cdc_fuzzing::batch`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::batch::run(data));
