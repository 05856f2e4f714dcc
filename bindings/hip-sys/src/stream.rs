//! HIP's streams as executors, and back.

use std::any::Any;

use device_arena::backend::{AnyBackend, Rocm, Vendor};
use device_arena::{Error, Executor, Refused, Result};
use hip_sys::hiprt::hipStream_t;

use crate::sealed::Sealed;

/// An executor on a stream that somebody else made, on that stream's device. `keep_alive` is dropped with the last clone, and
/// with the last arena of the executor.
///
/// # Errors
///
/// What [`Rocm::load`] says, and as [`Executor::adopt`]; `keep_alive` comes back with it.
///
/// # Safety
///
/// `stream` is a live stream of the runtime that the crate has found, and lives as long as `keep_alive` does.
pub unsafe fn adopt(
    stream: hipStream_t,
    keep_alive: Box<dyn Any + Send + Sync>,
) -> Result<Executor, Refused<Box<dyn Any + Send + Sync>>> {
    match Rocm::load() {
        // SAFETY: the caller's promise is the same.
        Ok(rocm) => unsafe { Executor::adopt(AnyBackend::Rocm(rocm), stream.cast(), keep_alive) },
        Err(error) => Err(Refused { error, value: keep_alive }),
    }
}

/// What an executor is to HIP.
pub trait HipExecutor: Sealed {
    /// The executor's stream, for launches and libraries that take one. It is alive as long as the executor.
    ///
    /// # Errors
    ///
    /// [`Error::WrongVendor`] for an executor of no AMD device.
    fn hip_stream(&self) -> Result<hipStream_t>;
}

impl HipExecutor for Executor {
    fn hip_stream(&self) -> Result<hipStream_t> {
        if self.vendor() != Vendor::Rocm {
            return Err(Error::WrongVendor {
                operation: "hip_stream",
                what: "executor",
                vendor: Vendor::Rocm,
            });
        }
        Ok(self.stream()?.cast())
    }
}
