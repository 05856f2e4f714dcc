//! cust's buffers as inputs.

use cust::memory::DeviceBuffer;
use device_arena::backend::Vendor;
use device_arena::{Call, Error, Executor, MemoryKind, Offset, Result, StagedTape, TapeView};

use crate::ContextStream;
use crate::sealed::Sealed;

/// What a call takes of cust's.
///
/// A buffer stays as long as its tape:
///
/// ```
/// # use cust::memory::DeviceBuffer;
/// # use device_arena::{Call, Result};
/// # use device_arena_cust::{ContextStream, CustCall};
/// fn address(call: &Call, buffer: DeviceBuffer<u8>, stream: &ContextStream) -> Result<*const u8> {
///     let tape = call.stage_cust(&buffer, &[0u32, 3], stream)?;
///     let address = tape.bytes_ptr();
///     drop(buffer);
///     Ok(address)
/// }
/// ```
///
/// ```compile_fail,E0505
/// # use cust::memory::DeviceBuffer;
/// # use device_arena::{Call, Result};
/// # use device_arena_cust::{ContextStream, CustCall};
/// fn address(call: &Call, buffer: DeviceBuffer<u8>, stream: &ContextStream) -> Result<*const u8> {
///     let tape = call.stage_cust(&buffer, &[0u32, 3], stream)?;
///     drop(buffer); // error: it is borrowed
///     let address = tape.bytes_ptr();
///     Ok(address)
/// }
/// ```
pub trait CustCall: Sealed {
    /// Stages a tape of one of cust's buffers, with offsets in the host's memory: see [`Call::stage`]. The stream is that of
    /// the call's executor. It waits for what cust's functions have queued that take no stream, as every stream of cust's
    /// does. What other streams write to the buffer is for the caller to order, by
    /// [`wait_event`](cust::stream::Stream::wait_event).
    ///
    /// The buffer is borrowed as long as what comes back, and read where it is. Work that reads it has to have passed
    /// before the buffer is dropped. Where the executor does not reach it, it is copied, and has been when this returns.
    ///
    /// # Errors
    ///
    /// As [`Call::stage`] and [`TapeView::from_raw`]; [`Error::WrongExecutor`] for another stream;
    /// [`Error::HostMemory`] for a call on the host; [`Error::Unmapped`] for a buffer that is no device's memory any more:
    /// it has outlived its context.
    fn stage_cust<'b, O: Offset>(
        &self,
        bytes: &'b DeviceBuffer<u8>,
        offsets: &'b [O],
        stream: &ContextStream,
    ) -> Result<StagedTape<'b>>;
}

impl CustCall for Call {
    fn stage_cust<'b, O: Offset>(
        &self,
        bytes: &'b DeviceBuffer<u8>,
        offsets: &'b [O],
        stream: &ContextStream,
    ) -> Result<StagedTape<'b>> {
        const OPERATION: &str = "stage_cust";
        let Some(executor) = self.executor() else { return Err(Error::HostMemory { operation: OPERATION }) };
        if !is_on(executor, stream)? {
            return Err(Error::WrongExecutor {
                operation: OPERATION,
                arena: executor.vendor(),
                arena_ordinal: executor.ordinal(),
                executor: Vendor::Cuda,
                ordinal: stream.executor()?.ordinal(),
            });
        }
        let pointer = std::ptr::with_exposed_provenance::<u8>(bytes.as_device_ptr().as_raw() as usize);
        // SAFETY: buffer and offsets are borrowed for `'b`. Parts of a buffer, which cust gives away without a borrow, can
        // still be written: by a device, so no reference of the host's is to what changes.
        let tape = unsafe { TapeView::from_raw(pointer, bytes.len(), offsets.as_ptr(), offsets.len()) }?;
        // What was freed is no driver's, and the host can't read there either.
        if !bytes.is_empty() && !matches!(tape.memory(), MemoryKind::Device { .. }) {
            return Err(Error::Unmapped { operation: OPERATION });
        }
        let staged = self.stage(&tape);
        let is_in_place = staged.as_ref().is_ok_and(|staged| staged.bytes_ptr() == pointer);
        if !bytes.is_empty() && !is_in_place {
            // A queued copy may still read the buffer, which is the caller's to drop from here on.
            let waited = executor.synchronize();
            return staged.and_then(|staged| waited.map(|()| staged));
        }
        staged
    }
}

/// Whether the executor works on that stream. No stream of cust's is a default stream, so handles tell them apart.
fn is_on(executor: &Executor, stream: &ContextStream) -> Result<bool> {
    Ok(executor.vendor() == Vendor::Cuda && executor.stream()? == stream.raw().cast())
}
