//! The driver's own functions, by the names that its library exports.

mod context;
mod copy;
mod device;
mod event;
mod graph;
mod memory;
mod module;
#[cfg(not(all(feature = "cuda", feature = "missing-symbols")))]
mod optional;
mod pointer;
mod sharing;
mod stream;
mod virtual_memory;

// The tests need every function, and HIP's are made of them.
#[cfg(any(
    not(feature = "cuda"),
    all(test, not(any(feature = "missing-symbols", feature = "missing-required")))
))]
#[cfg_attr(not(feature = "cuda"), allow(unused_imports))]
pub(crate) use self::{
    context::*, copy::*, device::*, event::*, graph::*, memory::*, module::*, optional::*, pointer::*,
    sharing::*, stream::*, virtual_memory::*,
};

use std::ffi::c_void;

use crate::core::status::{Result, Status};

/// An opaque handle as the caller sees it. It points nowhere.
pub(crate) type Handle = *mut c_void;

pub(crate) fn number(handle: Handle) -> u64 {
    handle.addr() as u64
}

pub(crate) fn handle(number: u64) -> Handle {
    std::ptr::without_provenance_mut(number as usize)
}

/// Writes through a pointer of the caller's, which may not be null.
///
/// # Safety
///
/// `place` is null or writable.
pub(crate) unsafe fn write<T>(place: *mut T, value: T) -> Result<()> {
    if place.is_null() {
        return Err(Status::INVALID_VALUE);
    }
    // SAFETY: by the caller's promise.
    unsafe { place.write_unaligned(value) };
    Ok(())
}
