//! Views and outputs as HIP's device pointers.

use device_arena::{DeviceGuard, Output, Pod, Result};
use hip_sys::hiprt::hipDeviceptr_t;

use crate::sealed::Sealed;

/// What HIP's launches take of a view.
pub trait HipGuard: Sealed {
    /// The values' address, to be read alone. The guard is to be kept until the work is queued.
    fn hip_ptr(&self) -> hipDeviceptr_t;
}

impl<T: Pod> HipGuard for DeviceGuard<T> {
    fn hip_ptr(&self) -> hipDeviceptr_t {
        self.device_ptr().cast_mut().cast()
    }
}

/// What HIP's launches take of an output.
pub trait HipOutput: Sealed {
    /// The room's address: see [`Output::device_ptr`].
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`](device_arena::Error::HostMemory) for host pages.
    fn hip_ptr(&mut self) -> Result<hipDeviceptr_t>;
}

impl<T: Pod> HipOutput for Output<T> {
    fn hip_ptr(&mut self) -> Result<hipDeviceptr_t> {
        Ok(self.device_ptr()?.cast())
    }
}
