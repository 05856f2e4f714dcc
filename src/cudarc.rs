//! cudarc's streams as executors, its buffers as inputs, views and outputs as its device pointers.

use std::sync::Arc;

use ::cudarc::driver::sys::CUdeviceptr;
use ::cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, SyncOnDrop};
use bytemuck::Pod;

use crate::backend::{AnyBackend, Cuda};
use crate::call::Output;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::tape::{Offset, TapeView};
use crate::view::{DeviceGuard, View};

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
        let (raw, context) = (stream.cu_stream().cast(), stream.context().cu_ctx().cast());
        // SAFETY: cudarc's stream keeps itself and its context alive, and it is the keep-alive.
        let stream = unsafe { cuda.adopt_in_context(raw, context, Arc::clone(stream) as _) }?;
        Ok(Self::of_stream(AnyBackend::Cuda(cuda), stream))
    }
}

impl<'a> TapeView<'a> {
    /// A tape over one of cudarc's buffers, with offsets in the host's memory. The stream, on which the tape will be
    /// read, waits for what was written to the buffer; what comes with the tape is to be dropped once the work that reads
    /// it is queued, and makes later writers wait for that.
    ///
    /// # Errors
    ///
    /// As [`from_raw`](Self::from_raw).
    pub fn of_cudarc<O: Offset>(
        bytes: &'a impl DevicePtr<u8>,
        offsets: &'a [O],
        stream: &'a CudaStream,
    ) -> Result<(Self, SyncOnDrop<'a>)> {
        let (address, ordered) = bytes.device_ptr(stream);
        let pointer = std::ptr::with_exposed_provenance::<u8>(address as usize);
        // SAFETY: the buffer and the offsets are borrowed for `'a`.
        let tape = unsafe { TapeView::from_raw(pointer, bytes.len(), offsets.as_ptr(), offsets.len()) }?;
        Ok((tape, ordered))
    }
}

impl<T: Pod> View<T> {
    /// Holds the values for cudarc's work: copies take it as a source, and launches as an address.
    ///
    /// # Errors
    ///
    /// As [`read_on`](Self::read_on) says of an executor on that stream.
    pub fn read_on_cudarc(&self, stream: &Arc<CudaStream>) -> Result<CudarcGuard<T>> {
        let reader = Executor::from_cudarc(stream)?;
        Ok(CudarcGuard { guard: self.read_on(&reader)?, stream: Arc::clone(stream) })
    }
}

/// A [`DeviceGuard`] that cudarc takes for a buffer to be read.
#[derive(Debug)]
#[must_use = "the values are held only as long as the guard"]
pub struct CudarcGuard<T: Pod> {
    guard: DeviceGuard<T>,
    stream: Arc<CudaStream>,
}

impl<T: Pod> DeviceSlice<T> for CudarcGuard<T> {
    fn len(&self) -> usize {
        self.guard.view().len()
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl<T: Pod> DevicePtr<T> for CudarcGuard<T> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.guard.device_ptr().addr() as CUdeviceptr, ordered(&self.stream, stream))
    }
}

impl<T: Pod> Output<T> {
    /// The output as a buffer that cudarc's copies write to.
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`]; [`Error::WrongExecutor`] for another stream than that of the arena's executor.
    pub fn as_cudarc<'o>(&'o mut self, stream: &'o Arc<CudaStream>) -> Result<CudarcOutput<'o, T>> {
        let address = self.device_ptr()?.addr() as CUdeviceptr;
        let of_executor = |executor: &Executor| {
            executor.stream().is_ok_and(|raw| raw == stream.cu_stream().cast())
                && executor.context() == Some(stream.context().cu_ctx().cast())
        };
        if let Some(executor) = self.executor()
            && !of_executor(&executor)
        {
            let (vendor, ordinal) = (executor.vendor(), executor.ordinal());
            return Err(Error::WrongExecutor {
                operation: "as_cudarc",
                arena: vendor,
                arena_ordinal: ordinal,
                executor: vendor,
                ordinal: u32::try_from(stream.context().ordinal()).unwrap_or(u32::MAX),
            });
        }
        Ok(CudarcOutput { output: self, stream, address })
    }
}

/// An [`Output`] that cudarc takes for a buffer.
#[derive(Debug)]
pub struct CudarcOutput<'o, T: Pod> {
    output: &'o mut Output<T>,
    stream: &'o Arc<CudaStream>,
    address: CUdeviceptr,
}

impl<T: Pod> DeviceSlice<T> for CudarcOutput<'_, T> {
    fn len(&self) -> usize {
        self.output.len()
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.stream
    }
}

impl<T: Pod> DevicePtr<T> for CudarcOutput<'_, T> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.address, ordered(self.stream, stream))
    }
}

impl<T: Pod> DevicePtrMut<T> for CudarcOutput<'_, T> {
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (self.address, ordered(self.stream, stream))
    }
}

/// Work on the memory's own stream is in order. Another stream waits for that one, and the host for it in turn, before
/// the memory is used again.
fn ordered<'a>(own: &CudaStream, stream: &'a CudaStream) -> SyncOnDrop<'a> {
    // The default streams of two contexts have one handle.
    if own == stream {
        return SyncOnDrop::Sync(None);
    }
    // An error surfaces at the wait below, by cudarc's own word.
    let _ = stream.join(own);
    SyncOnDrop::sync_stream(stream)
}
