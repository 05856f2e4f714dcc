//! How each vendor does it. Nothing in one vendor's folder knows another's; the contract is `src/backend.rs`.

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(device_arena_faults)]
pub mod faults;
/// What the GPU vendors share: everything above their drivers' functions.
#[cfg(gpu)]
pub(crate) mod gpu;
pub mod host;
/// The kernels' images, and how their arguments lie in memory.
#[cfg(gpu)]
pub(crate) mod kernels;
#[cfg(feature = "rocm")]
pub mod rocm;
