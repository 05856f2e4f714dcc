//! How each vendor does it. Nothing in one folder knows another; the contract is `src/backend.rs`.

#[cfg(device_arena_faults)]
pub mod faults;
pub mod host;
