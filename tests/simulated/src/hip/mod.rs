//! HIP's functions, over those of the CUDA driver: this crate's own, or with `forward` the machine's.
//!
//! HIP has no contexts. Every device's primary one is retained at its first use and for good, and that of the thread's
//! device is current while a call runs.

#[cfg(any(rtc, test))]
mod rtc;

mod code_object;
mod settings;
mod targets;

#[cfg(hip)]
mod bundle;
#[cfg(hip)]
mod copy;
#[cfg(hip)]
mod cu;
#[cfg(hip)]
mod device;
#[cfg(hip)]
mod error;
#[cfg(hip)]
mod event;
#[cfg(hip)]
mod graph;
#[cfg(hip)]
mod known;
#[cfg(hip)]
mod memory;
#[cfg(hip)]
mod module;
#[cfg(hip)]
mod names;
#[cfg(hip)]
mod optional;
#[cfg(hip)]
mod pointer;
#[cfg(hip)]
mod properties;
#[cfg(hip)]
mod sharing;
#[cfg(hip)]
mod stream;
#[cfg(hip)]
mod virtual_memory;

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::core::status::{Result, Status};

/// An opaque handle as the caller sees it, or an address.
type Handle = *mut c_void;

/// One call: counted, failed where that was planned, and never unwinding into the caller.
fn attempt(function: &'static str, body: impl FnOnce() -> Result<()>) -> u32 {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        count(function)?;
        body()
    }));
    match outcome.unwrap_or(Err(Status::UNKNOWN)) {
        Ok(()) => 0,
        Err(Status(number)) => number,
    }
}

#[cfg(not(forward))]
use crate::core::count;

#[cfg(forward)]
fn count(_function: &'static str) -> Result<()> {
    Ok(())
}

/// A call that needs a device, with the thread's one current.
#[cfg(hip)]
fn enter(function: &'static str, body: impl FnOnce() -> Result<()>) -> u32 {
    error::record(attempt(function, || device::with_current(body)))
}

/// A call that needs none.
#[cfg(hip)]
fn enter_without_device(function: &'static str, body: impl FnOnce() -> Result<()>) -> u32 {
    error::record(attempt(function, body))
}

/// What a function of the CUDA driver returned.
#[cfg(hip)]
fn done(status: u32) -> Result<()> {
    match Status(status) {
        Status(0) => Ok(()),
        // HIP has no number for text that is too new.
        Status::UNSUPPORTED_PTX_VERSION => Err(Status::NO_BINARY_FOR_GPU),
        failed => Err(failed),
    }
}

/// Writes through a pointer of the caller's, which may not be null.
///
/// # Safety
///
/// `place` is null or writable.
unsafe fn write<T>(place: *mut T, value: T) -> Result<()> {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: by the caller's promise.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Sets what an environment variable would have set. Whether there is such a setting.
#[cfg(not(forward))]
pub(crate) fn set(name: &str, value: &str) -> bool {
    settings::lock().set(name, value)
}

#[cfg(all(test, hip, not(forward), not(any(feature = "missing-symbols", feature = "missing-required"))))]
mod for_tests;
#[cfg(all(
    test,
    hip,
    not(forward),
    not(any(feature = "missing-symbols", feature = "missing-required"))
))]
pub(crate) use for_tests::*;
