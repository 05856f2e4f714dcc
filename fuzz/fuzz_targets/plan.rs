//! Bytes as tables, as buffers to plan and as schedules, against naive checks.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| device_arena_model::fuzz_plan(data));
