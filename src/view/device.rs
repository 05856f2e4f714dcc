//! What a reader on a device holds while its work reads.

use bytemuck::Pod;

use super::View;
use crate::arena::Core;
use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::trace::event;

impl<T: Pod> View<T> {
    /// Holds the values for work on a device, and orders the reader's stream after the work of the call, without the
    /// host. No call can begin until the guard is dropped; the next call's own work then waits for what the reader has
    /// queued by that time.
    ///
    /// Not on another stream while either is being captured: the order between two streams would be the graph's, and
    /// forgotten by the arena. On the arena's own stream it may be captured work that reads, and then the guard is to be
    /// kept as long as the graph.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`], [`Error::Pending`], [`Error::TooManyReaders`] as [`read`](Self::read); [`Error::HostMemory`] for
    /// host pages; [`Error::WrongVendor`] for a reader of another vendor; [`Error::Unreachable`] for a device that can't
    /// reach the memory of the arena's; [`Error::Capturing`]; [`Error::Driver`].
    pub fn read_on(&self, reader: &Executor) -> Result<DeviceGuard<T>> {
        self.hold_on(reader, "read_on", true)
    }

    /// As [`read_on`](Self::read_on), for kernels that `reach` the memory themselves or for the driver's own copies.
    pub(super) fn hold_on(
        &self,
        reader: &Executor,
        operation: &'static str,
        reaches: bool,
    ) -> Result<DeviceGuard<T>> {
        self.check_current(operation)?;
        if !self.core.source.is_on_device() {
            return Err(Error::HostMemory { operation });
        }
        if reader.vendor() != self.core.source.backend.vendor() {
            return Err(crate::backend::wrong_vendor(operation, "reader", self.core.source.backend.vendor()));
        }
        self.core.read(self.generation(), operation)?;
        let mut guard = DeviceGuard { view: self.clone(), reader: reader.clone(), is_ordered: false };
        // SAFETY: a reader is an owner.
        let Some(own) = (unsafe { self.core.source.executor() }) else { return Ok(guard) };
        if own == reader {
            return Ok(guard);
        }
        let backend = &self.core.source.backend;
        if backend.is_capturing(reader.as_stream())? {
            return Err(Error::Capturing { operation });
        }
        if reaches {
            reader.reach(own)?;
        }
        let event = backend.record(own.as_stream())?;
        backend.stream_wait(reader.as_stream(), &event)?;
        guard.is_ordered = true;
        Ok(guard)
    }
}

/// Holds a view's values for a device's work. It borrows nothing.
#[must_use = "the values are held only as long as the guard"]
pub struct DeviceGuard<T: Pod> {
    view: View<T>,
    reader: Executor,
    /// The reader's stream is another than the arena's, and may have work on the values.
    is_ordered: bool,
}

impl<T: Pod> DeviceGuard<T> {
    /// The values' address for kernels of the reader.
    #[must_use]
    pub fn device_ptr(&self) -> *const T {
        self.view.address.as_ptr()
    }

    /// The view that is held.
    #[must_use]
    pub fn view(&self) -> &View<T> {
        &self.view
    }

    /// Whose work reads.
    #[must_use]
    pub fn reader(&self) -> &Executor {
        &self.reader
    }
}

impl<T: Pod> std::fmt::Debug for DeviceGuard<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceGuard")
            .field("address", &self.view.address)
            .field("len", &self.view.len)
            .field("reader", &self.reader)
            .finish()
    }
}

impl<T: Pod> Drop for DeviceGuard<T> {
    fn drop(&mut self) {
        let core = &self.view.core;
        if self.is_ordered {
            let backend = &core.source.backend;
            let noted = backend.record(self.reader.as_stream()).and_then(|event| {
                // SAFETY: the guard's reader is an owner.
                unsafe { core.note_reader(event) }
            });
            if let Err(error) = noted.or_else(|_| backend.synchronize(self.reader.as_stream()))
                && !error.is_of_lost_device()
            {
                // What the reader's stream still reads can't be waited for: it is being captured, or this is a driver's
                // thread. The arena stays held, as by a guard that was forgotten.
                event!(error, error = error, "failure in drop");
                return;
            }
            core.fence.queued();
            // SAFETY: the guard's reader was counted once; the view has a reference.
            unsafe { Core::end_read_with_attention(core.as_non_null()) };
        } else {
            // The reader's work is in the arena's own stream.
            core.fence.queued();
            // SAFETY: as above.
            unsafe { Core::end_read(core.as_non_null()) };
        }
    }
}
