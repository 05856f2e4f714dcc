//! Views and outputs as cust's device pointers.

use cust::memory::{DeviceCopy, DevicePointer};
use device_arena::{DeviceGuard, Output, Pod, Result};

use crate::sealed::Sealed;

/// What cust's launches take of a view.
pub trait CustGuard<T: DeviceCopy>: Sealed {
    /// The values' address. The guard is to be kept until the work is queued.
    fn cust_ptr(&self) -> DevicePointer<T>;
}

impl<T: Pod + DeviceCopy> CustGuard<T> for DeviceGuard<T> {
    fn cust_ptr(&self) -> DevicePointer<T> {
        DevicePointer::from_raw(self.device_ptr().expose_provenance() as u64)
    }
}

/// What cust's launches take of an output.
pub trait CustOutput<T: DeviceCopy>: Sealed {
    /// The room's address: see [`Output::device_ptr`].
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`](device_arena::Error::HostMemory) for host pages.
    fn cust_ptr(&mut self) -> Result<DevicePointer<T>>;
}

impl<T: Pod + DeviceCopy> CustOutput<T> for Output<T> {
    fn cust_ptr(&mut self) -> Result<DevicePointer<T>> {
        Ok(DevicePointer::from_raw(self.device_ptr()?.expose_provenance() as u64))
    }
}
