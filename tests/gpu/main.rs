//! The backends of GPUs: what they promise, on the simulated drivers (`tests/simulated`) and on real ones alike.
//!
//! A process runs on one vendor's driver, and tests take turns with it: on that which `DEVICE_ARENA_TEST_VENDOR` names, else
//! on the first that `DEVICE_ARENA_REQUIRE` names, else on the first that is here. Each test says which one it ran on. What
//! only the simulated driver can do (failures on purpose, counting) is skipped by name on a real one, and so are what needs a
//! second device where there is one alone and what is one vendor's own. Without a driver everything is skipped, unless
//! `DEVICE_ARENA_REQUIRE` names its vendor.

#![cfg(any(feature = "cuda", feature = "rocm"))]

#[cfg(feature = "rocm")]
mod amd;
#[cfg(feature = "rocm")]
mod amd_compile;
#[cfg(feature = "rocm")]
mod amd_errors;
#[cfg(feature = "rocm")]
mod amd_found;
#[cfg(feature = "rocm")]
mod amd_pointers;
mod arenas;
mod capture;
mod capture_of_others;
mod classify;
mod classify_ranges;
mod coherent;
#[cfg(feature = "cudarc")]
mod cudarc;
mod deferred;
mod driver;
mod drops;
mod executors;
mod failing;
mod faults;
mod found_captures;
mod found_coherent;
mod found_copies;
mod found_drops;
mod found_kernels;
mod functions;
mod guards;
mod hazards;
mod heap;
mod lab;
mod limits;
mod loading;
mod lost;
mod memory;
mod ordinals;
mod planned;
mod prepared;
mod process;
mod rooms;
mod simulated;
mod stage;
mod tapes;
mod threads;
mod turn;
mod vendor;
#[path = "../vendors/mod.rs"]
mod vendors;
