//! The CUDA backend: what it promises, on the simulated driver (`tests/simulated`) and on a real one alike.
//!
//! There is one driver in a process, and tests take turns with it. Each says which one it ran on. What only the simulated
//! driver can do (failures on purpose, counting) is skipped by name on a real one, and what needs a second device where
//! there is one alone. Without a driver everything is skipped, unless `DEVICE_ARENA_REQUIRE` names `cuda`.

#![cfg(feature = "cuda")]

//MOD mod arenas;
//MOD mod capture;
//MOD mod capture_of_others;
mod classify;
mod classify_ranges;
//MOD mod coherent;
//MOD #[cfg(feature = "cudarc")]
//MOD mod cudarc;
//MOD mod deferred;
mod driver;
//MOD mod drops;
//MOD mod executors;
//MOD mod faults;
//MOD mod guards;
mod lab;
mod loading;
//MOD mod lost;
mod memory;
//MOD mod ordinals;
mod process;
//MOD mod rooms;
mod simulated;
mod stage;
mod tapes;
mod turn;
