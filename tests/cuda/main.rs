//! The CUDA backend: what it promises, on the simulated driver (`tests/simulated`) and on a real one alike.
//!
//! There is one driver in a process, and tests take turns with it. Each says which one it ran on. What only the simulated
//! driver can do (failures on purpose, counting) is skipped by name on a real one, and what needs a second device where
//! there is one alone. Without a driver everything is skipped, unless `DEVICE_ARENA_REQUIRE` names `cuda`.

#![cfg(feature = "cuda")]

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
mod found_drops;
mod guards;
mod hazards;
mod heap;
mod lab;
mod limits;
mod loading;
mod lost;
mod memory;
mod ordinals;
mod process;
mod rooms;
mod simulated;
mod stage;
mod tapes;
mod threads;
mod turn;
