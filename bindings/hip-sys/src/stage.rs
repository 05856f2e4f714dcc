//! HIP's device pointers as inputs.

use device_arena::backend::Vendor;
use device_arena::{Call, Error, Offset, Result, StagedTape, TapeView};
use hip_sys::hiprt::hipDeviceptr_t;

use crate::sealed::Sealed;

/// What a call takes of HIP's.
pub trait HipCall: Sealed {
    /// Stages a tape of memory that HIP knows, with offsets in the host's memory: see [`Call::stage`].
    ///
    /// # Errors
    ///
    /// As [`Call::stage`] and [`TapeView::from_raw`]; [`Error::WrongVendor`] for a call on no AMD device.
    ///
    /// # Safety
    ///
    /// `bytes` is to `byte_len` bytes of live memory. Until the call's stream has passed what is queued by staging and by
    /// whoever uses the tape, nobody frees them, and nobody writes to them but by work that is ordered with that stream.
    unsafe fn stage_hip<'t, O: Offset>(
        &self,
        bytes: hipDeviceptr_t,
        byte_len: usize,
        offsets: &'t [O],
    ) -> Result<StagedTape<'t>>;
}

impl HipCall for Call {
    unsafe fn stage_hip<'t, O: Offset>(
        &self,
        bytes: hipDeviceptr_t,
        byte_len: usize,
        offsets: &'t [O],
    ) -> Result<StagedTape<'t>> {
        if self.executor().is_none_or(|executor| executor.vendor() != Vendor::Rocm) {
            return Err(Error::WrongVendor { operation: "stage_hip", what: "call", vendor: Vendor::Rocm });
        }
        // SAFETY: the bytes are the caller's promise, and the offsets are borrowed for `'t`.
        let tape = unsafe { TapeView::from_raw(bytes.cast(), byte_len, offsets.as_ptr(), offsets.len()) }?;
        self.stage(&tape)
    }
}
