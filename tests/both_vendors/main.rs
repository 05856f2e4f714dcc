//! Both vendors' drivers in one process: whose device is whose, what a pointer is where two drivers are asked, and what
//! must not be mixed. It runs where both are found; `DEVICE_ARENA_REQUIRE=cuda,rocm` makes their absence a failure.

#![cfg(all(feature = "cuda", feature = "rocm"))]

mod drivers;
mod mixed;
mod ordinals;
mod pointers;
