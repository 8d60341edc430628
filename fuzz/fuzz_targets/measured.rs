#![no_main]
//! `cargo +nightly fuzz run measured`; what must hold stands in `src/bodies.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| shardscope_fuzz::bodies::measured(bytes));
