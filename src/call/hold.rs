//! What an open output has of its call: a hold on the lease.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::check_device;
use crate::arena::{Access, Core, CoreRef, Patience, Stamp};
use crate::backend::{Backend, CopyRange, Stream};
use crate::error::{Error, Result};
use crate::sync::Ordering;

/// One hold on the lease: what an open output has of its call.
#[derive(Debug)]
pub(super) struct Hold {
    pub(super) core: NonNull<Core>,
    pub(super) stamp: Stamp,
    #[cfg(loom)]
    pub(super) opened: u32,
}

// SAFETY: a hold belongs to no thread, and offers the core, which is Sync.
unsafe impl Send for Hold {}
// SAFETY: as above.
unsafe impl Sync for Hold {}

impl Hold {
    #[inline]
    pub(super) fn core(&self) -> &Core {
        // SAFETY: the hold keeps the lease, and that the core.
        unsafe { self.core.as_ref() }
    }

    /// Whether the host may use room of the hold's call.
    #[inline]
    pub(super) fn host_access(&self, operation: &'static str, access: Access) -> Result<()> {
        // SAFETY: the hold keeps the lease, whose holder is an owner.
        unsafe { self.core().host_access(operation, self.generation(), access, Patience::Refuse) }
    }

    /// The stream of a device's arena.
    pub(super) fn stream(&self) -> Option<&Stream> {
        // SAFETY: the hold keeps the lease, whose holder is an owner, for as long as it is borrowed.
        unsafe { self.core().source.stream() }
    }

    /// Makes room known to a device's work.
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`] for host pages, which no device has been told of.
    pub(super) fn give_to_device(&mut self, operation: &'static str) -> Result<()> {
        check_device(self.core(), operation)?;
        self.note_queued();
        self.stamp = self.stamp.on_device();
        Ok(())
    }

    /// Whether this very call is being captured.
    pub(super) fn is_captured(&self) -> bool {
        self.core().captured.load(Ordering::Relaxed) == self.generation()
    }

    /// Whether work on the call's room may go to the stream: a graph of another call would do it again when this one's room
    /// is gone. Answers whether it becomes a part of the call's own graph.
    ///
    /// # Errors
    ///
    /// [`Error::Capturing`] while the stream is being captured for anything but this very call.
    pub(super) fn check_capture(&self, operation: &'static str) -> Result<bool> {
        let core = self.core();
        if self.is_captured() {
            return Ok(true);
        }
        match self.stream() {
            Some(stream) if core.source.backend.is_capturing(stream)? => Err(Error::Capturing { operation }),
            _ => Ok(false),
        }
    }

    /// Notes work on room that the host shares with the device: the fence is to stand behind it.
    #[inline]
    pub(super) fn note_queued(&self) {
        if self.core().source.is_shared_with_device() {
            self.core().fence.take(self.generation());
        }
    }

    /// Notes, where a device knows the room, that whatever it was given for is queued by now.
    #[inline]
    fn note_end_of_use(&self) {
        if self.stamp.is_on_device() {
            self.note_queued();
        }
    }

    /// Moves bytes between room of the call and live memory of any kind, and is done with both when it returns.
    ///
    /// # Safety
    ///
    /// The range is live, nobody else uses it, and one end of it is room of this call.
    pub(super) unsafe fn transfer(&self, range: CopyRange) -> Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.core().source.backend.transfer_and_wait(self.stream(), range) }
    }

    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.stamp.generation()
    }

    /// Gives the hold back for a reference, and returns it with its stamp.
    #[inline]
    pub(super) fn publish(self) -> (CoreRef, Stamp) {
        let this = ManuallyDrop::new(self);
        this.note_end_of_use();
        #[cfg(loom)]
        this.core().shadow.write(this.opened);
        let last = this.core().counts.publish();
        // SAFETY: publishing has just counted this reference.
        let reference = unsafe { CoreRef::from_counted(this.core) };
        if last {
            // SAFETY: that was the lease's last hold.
            unsafe { Core::close_last_hold(this.core) };
        }
        (reference, this.stamp)
    }
}

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        self.note_end_of_use();
        #[cfg(loom)]
        self.core().shadow.write(self.opened);
        let last = self.core().counts.close_output();
        if last {
            // SAFETY: that was the lease's last hold.
            unsafe { Core::close_last_hold(self.core) };
        }
    }
}
