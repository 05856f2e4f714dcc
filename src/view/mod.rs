//! Views: typed, read-only, generation-stamped looks at published outputs.

mod copy;
mod device;
mod guard;
mod tape;

use std::ops::{Bound, RangeBounds};
use std::ptr::NonNull;

use bytemuck::Pod;

pub use self::device::DeviceGuard;
pub use self::guard::{Export, ReadGuard};
pub use self::tape::{PublishedTape, TapeGuard};
use crate::arena::{Access, ArenaDescription, Core, CoreRef, Patience, ReadRefusal, Stamp};
use crate::error::{Error, Result};

/// A look at a published output. Cheap to clone; it outlives its arena harmlessly.
///
/// Every use checks that the arena still is at the view's generation. A view of an earlier call is
/// [`Error::Stale`], whatever else is wrong with the use; one of a call that has not finished is
/// [`Error::Pending`]. A view holds nothing: a later `begin` is not kept away by it, only by a guard.
///
/// ```
/// use device_arena::{Arena, Error};
///
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let view = call.output_from_slice(&[1.0f32, 2.0, 3.0])?.publish();
/// call.finish()?;
///
/// assert_eq!(view.read()?.iter().sum::<f32>(), 6.0);
/// let kept = view.slice(1..)?.to_vec()?;
/// arena.begin()?.finish()?; // rewinds
/// assert_eq!(kept, [2.0, 3.0]);
/// assert!(matches!(view.to_vec(), Err(Error::Stale { .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct View<T: Pod> {
    core: CoreRef,
    stamp: Stamp,
    address: NonNull<T>,
    len: usize,
}

// SAFETY: a view offers shared values alone, and only while the state word counts its reader.
unsafe impl<T: Pod + Sync> Send for View<T> {}
// SAFETY: as above.
unsafe impl<T: Pod + Sync> Sync for View<T> {}

impl<T: Pod> Clone for View<T> {
    fn clone(&self) -> Self {
        Self::new(self.core.clone(), self.stamp, self.address, self.len)
    }
}

impl<T: Pod> View<T> {
    #[inline]
    pub(crate) fn new(core: CoreRef, stamp: Stamp, address: NonNull<T>, len: usize) -> Self {
        Self { core, stamp, address, len }
    }

    /// How many values there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The size of all values in bytes.
    #[must_use]
    pub fn byte_len(&self) -> usize {
        // An output of this size was made.
        self.len.wrapping_mul(size_of::<T>())
    }

    /// The generation of the call that published the view.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.stamp.generation()
    }

    /// Where the values are.
    #[must_use]
    pub fn describe(&self) -> ArenaDescription {
        self.core.description
    }

    /// Whether the arena is at the view's generation still. Another thread can change that at any time: only a
    /// guard keeps it.
    #[must_use]
    pub fn is_current(&self) -> bool {
        !matches!(self.core.state.load().readable(self.generation()), Err(ReadRefusal::Stale(_)))
    }

    /// Holds the values for reading on the host. No call can begin until the guard is dropped; a guard that is
    /// forgotten leaves the arena contended for good.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`], [`Error::Device`] for memory that the host does not reach, [`Error::Pending`],
    /// [`Error::TooManyReaders`], [`Error::Contended`] while another thread is about to begin.
    #[inline]
    pub fn read(&self) -> Result<ReadGuard<'_, T>> {
        self.read_as("read")
    }

    #[inline]
    fn read_as(&self, operation: &'static str) -> Result<ReadGuard<'_, T>> {
        self.hold(operation)?;
        // SAFETY: `hold` has counted a reader, which the guard uncounts.
        Ok(unsafe { ReadGuard::new(self) })
    }

    /// Holds the values as [`read`](Self::read) does, without borrowing the view: for whoever passes them on to
    /// code that knows no lifetimes.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn export(&self) -> Result<Export<T>> {
        self.hold("export")?;
        // SAFETY: `hold` has counted a reader, which the export uncounts.
        Ok(unsafe { Export::new(self.clone()) })
    }

    /// Holds the values for the running call that published them: see [`Call::export`](crate::Call::export).
    pub(crate) fn export_as_holder(&self) -> Result<Export<T>> {
        // What the call has queued so far is all that could be asked for: it may queue more.
        let access = if self.stamp.is_on_device() { Access::InUse } else { Access::Room };
        // SAFETY: the caller holds the lease, and is an owner.
        unsafe { self.core.host_access("export", self.generation(), access, Patience::Refuse) }?;
        let refused = |refusal| self.core.refused(refusal, self.generation(), "export");
        self.core.state.read_as_holder().map_err(refused)?;
        // SAFETY: a reader was just counted, which the export uncounts.
        Ok(unsafe { Export::new(self.clone()) })
    }

    /// The same values, as a later launch of the same captured call published them.
    ///
    /// # Safety
    ///
    /// The view is of a captured call, and `generation` is that of a launch of it.
    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a device captures"))]
    pub(crate) unsafe fn at_generation(&self, generation: u64) -> Self {
        Self::new(self.core.clone(), self.stamp.at(generation), self.address, self.len)
    }

    /// Whether the view was published by the call that holds this core's lease at `generation`.
    pub(crate) fn is_of(&self, core: NonNull<Core>, generation: u64) -> bool {
        self.core.as_non_null() == core && self.generation() == generation
    }

    /// Counts a reader that the host serves.
    #[inline]
    fn hold(&self, operation: &'static str) -> Result<()> {
        if self.core.source.is_on_device() {
            return self.hold_for_host(operation, Patience::Refuse);
        }
        self.core.read(self.generation(), operation)
    }

    /// Counts a reader on the host of memory that a device has.
    #[cold]
    fn hold_for_host(&self, operation: &'static str, patience: Patience) -> Result<()> {
        // Stale comes first, whatever else is wrong.
        self.check_current(operation)?;
        if !self.core.source.is_shared_with_device() {
            return Err(Error::Device { operation, ordinal: self.core.source.ordinal });
        }
        self.core.read(self.generation(), operation)?;
        let access = if self.stamp.is_on_device() { Access::Published } else { Access::Room };
        // SAFETY: a reader is an owner.
        unsafe { self.core.host_access(operation, self.generation(), access, patience) }.inspect_err(|_| {
            // SAFETY: the reader was just counted; the view has a reference.
            unsafe { Core::end_read(self.core.as_non_null()) };
        })
    }

    /// Stale, before anything else that is wrong with a use.
    fn check_current(&self, operation: &'static str) -> Result<()> {
        match self.core.state.load().readable(self.generation()) {
            Err(refusal @ ReadRefusal::Stale(_)) => {
                Err(self.core.refused(refusal, self.generation(), operation))
            }
            _ => Ok(()),
        }
    }

    /// The same bytes as values of another type, as many whole ones as there are; none where they are not aligned for it.
    pub(crate) fn cast<U: Pod>(&self) -> Option<View<U>> {
        let address = self.address.cast::<U>();
        let len = self.byte_len().checked_div(size_of::<U>()).unwrap_or(0);
        address.is_aligned().then(|| View::new(self.core.clone(), self.stamp, address, len))
    }

    /// A view of some of the values, by position.
    ///
    /// # Errors
    ///
    /// [`Error::Stale`], [`Error::OutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        self.check_current("slice")?;
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => self.len,
        };
        if start > end || end > self.len {
            return Err(Error::OutOfRange { operation: "slice", start, end, len: self.len });
        }
        // The block may be gone by now, and only the address is computed: no claim that it leads anywhere.
        let address = self.address.as_ptr().wrapping_add(start);
        // SAFETY: `start <= end <= len`, so it is the address of one of the output's values or one past: not null.
        let address = unsafe { NonNull::new_unchecked(address) };
        Ok(Self::new(self.core.clone(), self.stamp, address, end - start))
    }
}
