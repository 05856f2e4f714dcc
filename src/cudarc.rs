//! cudarc's streams as executors, its buffers as inputs, views and outputs as its device pointers.

use std::ffi::c_void;
use std::sync::Arc;

use ::cudarc::driver::sys::CUdeviceptr;
use ::cudarc::driver::{CudaSlice, CudaStream, CudaView, DevicePtr, SyncOnDrop};
use bytemuck::Pod;

use crate::backend::{AnyBackend, Cuda, Vendor};
use crate::call::{Call, Output, StagedTape};
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::tape::{Offset, TapeView};
use crate::view::DeviceGuard;

impl Executor {
    /// An executor on one of cudarc's streams, in its context. The stream lives as long as the executor and its arenas.
    ///
    /// A context's default stream is taken too: cudarc says whose it is. What is queued there waits for every other
    /// stream that is not made to be independent of it.
    ///
    /// # Errors
    ///
    /// What [`Cuda::load`] says; [`Error::WrongVendor`] for a per-thread stream, which is another on each thread.
    pub fn from_cudarc(stream: &Arc<CudaStream>) -> Result<Self> {
        let cuda = Cuda::load()?;
        let (raw, context) = handles(stream);
        let owner = Arc::new(Box::new(Arc::clone(stream)) as _);
        // SAFETY: cudarc's stream keeps itself and its context alive, and it is the keep-alive.
        let stream = unsafe { cuda.adopt_in_context(raw, context, owner) }?;
        Ok(Self::of_stream(AnyBackend::Cuda(cuda), stream))
    }

    /// Whether the executor works on that stream. The default streams of two contexts have one handle.
    fn is_on(&self, stream: &CudaStream) -> bool {
        let (raw, context) = handles(stream);
        self.context() == Some(context) && self.stream().is_ok_and(|own| own == raw)
    }
}

fn handles(stream: &CudaStream) -> (*mut c_void, *mut c_void) {
    (stream.cu_stream().cast(), stream.context().cu_ctx().cast())
}

mod sealed {
    pub trait Sealed {}
}

/// cudarc's own buffers of bytes. Its traits alone would not do: anybody can say of anything that it is a buffer.
pub trait CudarcBytes: DevicePtr<u8> + sealed::Sealed {}

impl sealed::Sealed for CudaSlice<u8> {}
impl CudarcBytes for CudaSlice<u8> {}
impl sealed::Sealed for CudaView<'_, u8> {}
impl CudarcBytes for CudaView<'_, u8> {}

impl Call {
    /// Stages a tape of one of cudarc's buffers, with offsets in the host's memory: see [`stage`](Self::stage). The stream
    /// is that of the call's executor, and waits for what was written to the buffer. What comes with the tape is to be
    /// dropped once the work that reads it is queued, and makes later writers wait for that.
    ///
    /// # Errors
    ///
    /// As [`stage`](Self::stage) and [`TapeView::from_raw`]; [`Error::WrongExecutor`] for another stream;
    /// [`Error::HostMemory`] for a call on the host.
    pub fn stage_cudarc<'b, O: Offset>(
        &self,
        bytes: &'b impl CudarcBytes,
        offsets: &'b [O],
        stream: &'b Arc<CudaStream>,
    ) -> Result<(StagedTape<'b>, SyncOnDrop<'b>)> {
        const OPERATION: &str = "stage_cudarc";
        let Some(executor) = self.executor() else { return Err(Error::HostMemory { operation: OPERATION }) };
        if !executor.is_on(stream) {
            return Err(Error::WrongExecutor {
                operation: OPERATION,
                arena: executor.vendor(),
                arena_ordinal: executor.ordinal(),
                executor: Vendor::Cuda,
                ordinal: u32::try_from(stream.context().ordinal()).unwrap_or(u32::MAX),
            });
        }
        let (address, ordered) = bytes.device_ptr(stream);
        let pointer = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: buffer and offsets are borrowed for `'b`, and the buffer is one of cudarc's own.
        let tape = unsafe { TapeView::from_raw(pointer, bytes.len(), offsets.as_ptr(), offsets.len()) }?;
        Ok((self.stage(&tape)?, ordered))
    }
}

impl<T: Pod> DeviceGuard<T> {
    /// The values' address, as cudarc's launches take it. The guard is to be kept until the work is queued.
    #[must_use]
    pub fn cu_device_ptr(&self) -> CUdeviceptr {
        self.device_ptr().addr() as CUdeviceptr
    }
}

impl<T: Pod> Output<T> {
    /// [`device_ptr`](Self::device_ptr), as cudarc's launches take it.
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`] for host pages.
    pub fn cu_device_ptr(&mut self) -> Result<CUdeviceptr> {
        Ok(self.device_ptr()?.addr() as CUdeviceptr)
    }
}
