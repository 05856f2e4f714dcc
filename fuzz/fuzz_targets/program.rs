//! Bytes as programs, on the host and on the reference model.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| device_arena_model::fuzz_program(data));
