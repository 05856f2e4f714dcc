//! Bytes as tapes of every offset width, against a naive check.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| device_arena_model::fuzz_tape(data));
