//! Marks in txn entries, stored positions and directories of tables; see `cdc_fuzzing::mark`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cdc_fuzzing::mark::run(data));
