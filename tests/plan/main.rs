//! Plans of memory, the planner, and the checks that know nothing of it.

mod buffers;
mod csv;
mod hazards;
mod minimalloc;
mod picture;
mod planner;
mod plans;
mod refused;
#[cfg(feature = "serde")]
mod serde;
mod verify;
