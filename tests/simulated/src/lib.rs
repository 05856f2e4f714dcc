//! The CUDA driver's functions over host memory, for the suites of device-arena. The README says how to steer it.

// The names are the vendor's.
#![allow(non_snake_case)]
// What each function asks of its caller stands in the vendor's documentation.
#![allow(clippy::missing_safety_doc, clippy::too_many_arguments)]
// What is left out leaves parts of the core without a user.
#![cfg_attr(any(feature = "missing-symbols", feature = "missing-required"), allow(dead_code))]

mod core;
mod cuda;
mod steer;

#[cfg(all(test, not(any(feature = "missing-symbols", feature = "missing-required"))))]
mod tests;
