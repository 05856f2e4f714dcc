//! Explicit copies of a view's values: to the host from anywhere, and between arenas.

use bytemuck::Pod;

use super::View;
use crate::arena::{Access, Core, Patience};
use crate::backend::{Backend, CopyRange, Vendor};
use crate::call::Output;
use crate::error::{Error, Result};

impl<T: Pod> View<T> {
    /// A copy of the values in the host's own memory. From a device it waits for the work of the call, and for the copy.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read), but for [`Error::Device`]; [`Error::OutOfMemory`]; from a device what its driver says,
    /// the errors of queued work among it.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let held = self.hold_for_copy("to_vec")?;
        let mut copy = Vec::new();
        copy.try_reserve_exact(self.len).map_err(|_| Error::OutOfMemory {
            vendor: Vendor::Host,
            operation: "to_vec",
            requested: self.byte_len(),
            free: None,
            total: None,
        })?;
        // SAFETY: there is room for as many values, and nobody else knows it.
        unsafe { held.copy_out(copy.spare_capacity_mut().as_mut_ptr().cast()) }?;
        // SAFETY: all of them were just written.
        unsafe { copy.set_len(self.len) };
        Ok(copy)
    }

    /// Copies all values to `destination`, which must be as many.
    ///
    /// # Errors
    ///
    /// As [`to_vec`](Self::to_vec); [`Error::LengthMismatch`].
    pub fn copy_to(&self, destination: &mut [T]) -> Result<()> {
        self.check_current("copy_to")?;
        if destination.len() != self.len {
            let (expected, actual) = (self.len, destination.len());
            return Err(Error::LengthMismatch { operation: "copy_to", expected, actual });
        }
        let held = self.hold_for_copy("copy_to")?;
        // SAFETY: the destination is as many values, borrowed until this returns.
        unsafe { held.copy_out(destination.as_mut_ptr()) }
    }

    /// As [`copy_to`](Self::copy_to) for the running call that published the values: see
    /// [`Call::collect`](crate::Call::collect).
    pub(crate) fn copy_to_as_holder(&self, destination: &mut [T]) -> Result<()> {
        if destination.len() != self.len {
            let (expected, actual) = (self.len, destination.len());
            return Err(Error::LengthMismatch { operation: "collect", expected, actual });
        }
        let refused = |refusal| self.core.refused(refusal, self.generation(), "collect");
        self.core.state.read_as_holder().map_err(refused)?;
        let held = Held(self);
        if self.core.source.is_shared_with_device() {
            let access = if self.stamp.is_on_device() { Access::InUse } else { Access::Room };
            // SAFETY: a reader is counted, which is an owner.
            unsafe { self.core.host_access("collect", self.generation(), access, Patience::Wait) }?;
        }
        // SAFETY: the destination is as many values, borrowed until this returns.
        unsafe { held.copy_out(destination.as_mut_ptr()) }
    }

    /// Counts a reader for a copy that the host waits for.
    fn hold_for_copy(&self, operation: &'static str) -> Result<Held<'_, T>> {
        if self.core.source.is_shared_with_device() {
            self.hold_for_host(operation, Patience::Wait)?;
        } else {
            self.core.read(self.generation(), operation)?;
        }
        Ok(Held(self))
    }

    pub(crate) fn copy_to_output(&self, output: &mut Output<T>) -> Result<()> {
        self.check_current("copy_from_view")?;
        if output.len() != self.len {
            let (expected, actual) = (output.len(), self.len);
            return Err(Error::LengthMismatch { operation: "copy_from_view", expected, actual });
        }
        if self.byte_len() == 0 {
            return Ok(());
        }
        if !self.core.source.is_on_device() {
            // The values are free again when the copy returns.
            let held = self.hold_for_copy("copy_from_view")?;
            return output.copy_from_slice(held.values());
        }
        let Some(executor) = output.executor() else {
            let held = self.hold_for_copy("copy_from_view")?;
            let places = output.as_mut_slice()?;
            // SAFETY: the places are as many, and borrowed until this returns.
            return unsafe { held.copy_out(places.as_mut_ptr()) };
        };
        // The guard orders the output's stream after the view's work; dropped, it makes the next call of the view's
        // arena wait for what is queued here.
        let guard = self.hold_on(&executor, "copy_from_view", false)?;
        let destination = output.device_ptr()?;
        let range = CopyRange {
            destination: destination.cast(),
            source: guard.device_ptr().cast(),
            bytes: self.byte_len(),
        };
        let (backend, stream) = (executor.backend(), executor.as_stream());
        if self.core.source.is_shared_with_device() && output.is_shared_with_device() {
            if backend.is_capturing(stream)? {
                return Err(Error::Capturing { operation: "copy_from_view" });
            }
            // Between two places of the host's a driver's own copy makes the host wait; a kernel does not.
            // SAFETY: as below; the device reaches both.
            unsafe { backend.copy(Some(stream), &[range]) }?;
        } else {
            // SAFETY: both ends are live and as long, the guard keeps the one and the output the other, and both arenas'
            // next calls come behind this in the stream's order. An output and a view never overlap: the view's call is
            // another, or the output is of its own room.
            unsafe { backend.transfer(Some(stream), range) }?;
        }
        output.note_queued();
        Ok(())
    }
}

/// A counted reader.
struct Held<'v, T: Pod>(&'v View<T>);

impl<T: Pod> Held<'_, T> {
    /// The values of memory that the host reaches.
    fn values(&self) -> &[T] {
        debug_assert!(!self.0.core.source.is_on_device() || self.0.core.source.is_shared_with_device());
        // SAFETY: a reader is counted, and stays so as long as this is borrowed.
        unsafe { super::guard::values(self.0) }
    }

    /// # Safety
    ///
    /// There is room for all values at the destination, which is the caller's alone.
    unsafe fn copy_out(&self, destination: *mut T) -> Result<()> {
        debug_assert!(destination.is_aligned());
        let view = self.0;
        let source = &view.core.source;
        if !source.is_on_device() || source.is_shared_with_device() {
            // SAFETY: the caller's promise is the same; the values are of another allocation than the caller's.
            unsafe { destination.copy_from_nonoverlapping(self.values().as_ptr(), view.len) };
            return Ok(());
        }
        if view.byte_len() == 0 {
            return Ok(());
        }
        // SAFETY: a reader is an owner.
        let Some(stream) = (unsafe { source.stream() }) else { return Ok(()) };
        let range = CopyRange {
            destination: destination.cast(),
            source: view.address.as_ptr().cast(),
            bytes: view.byte_len(),
        };
        // SAFETY: both ends are live and as long until this returns, when the stream has passed.
        unsafe { source.backend.transfer_and_wait(Some(stream), range) }
    }
}

impl<T: Pod> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // SAFETY: the reader was counted once; the view has a reference.
        unsafe { Core::end_read(self.0.core.as_non_null()) };
    }
}
