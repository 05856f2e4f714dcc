//! Vendor drivers' functions over host memory, for the suites of device-arena. The README says how to steer them.

// The names are the vendors'.
#![allow(non_snake_case)]
// What each function asks of its caller stands in the vendor's documentation.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// What is left out leaves parts of the core without a user.
#![cfg_attr(
    any(not(feature = "cuda"), feature = "missing-symbols", feature = "missing-required"),
    allow(dead_code)
)]

#[cfg(not(forward))]
mod core;
#[cfg(forward)]
mod core {
    //! What is left of it where the driver is real.
    pub(crate) mod status;
}
#[cfg(not(forward))]
mod cuda;
#[cfg(any(hip, rtc))]
mod hip;
#[cfg(not(forward))]
mod steer;
mod structures;

#[cfg(all(test, feature = "cuda", not(any(feature = "missing-symbols", feature = "missing-required"))))]
mod tests;
#[cfg(all(test, hip, not(forward), not(any(feature = "missing-symbols", feature = "missing-required"))))]
#[path = "tests/hip/mod.rs"]
mod tests;
