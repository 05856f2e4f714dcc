//! Outputs of a length that is known when they are opened, at the most.

use std::ptr::NonNull;

use bytemuck::Pod;

use super::{Call, Hold};
use crate::arena::Access;
use crate::backend::CopyRange;
use crate::error::{Error, Refused, Result};
use crate::executor::Executor;
use crate::view::View;

/// Room in an arena that the running call may write: `len` values, in one piece, aligned to the arena's alignment.
///
/// It holds no borrow of the call, so several can be open at once and be filled on several threads. Dropped
/// without being published, it leaves nothing to be read; its room stays taken until the arena is rewound.
///
/// ```
/// use device_arena::Arena;
///
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let (mut low, mut high) = (call.output::<u8>(4)?, call.output::<u8>(4)?);
/// std::thread::scope(|threads| {
///     threads.spawn(|| low.fill_with(|i| i as u8));
///     threads.spawn(|| high.fill_with(|i| 4 + i as u8));
/// });
/// let (low, high) = (low.publish(), high.publish_prefix(2)?);
/// call.finish()?;
/// assert_eq!((&*low.read()?, &*high.read()?), (&[0, 1, 2, 3][..], &[4, 5][..]));
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "an output that is dropped leaves nothing to be read"]
pub struct Output<T: Pod> {
    hold: Hold,
    address: NonNull<T>,
    len: usize,
}

// SAFETY: an output is the only way to its values.
unsafe impl<T: Pod + Send> Send for Output<T> {}
// SAFETY: as above; a shared output offers shared values.
unsafe impl<T: Pod + Sync> Sync for Output<T> {}

impl<T: Pod> Output<T> {
    #[inline]
    pub(super) fn new(hold: Hold, address: NonNull<T>, len: usize) -> Self {
        Self { hold, address, len }
    }

    pub(super) fn host_access(&self, operation: &'static str) -> Result<()> {
        let access = if self.hold.stamp.is_on_device() { Access::InUse } else { Access::Room };
        self.hold.host_access(operation, access)
    }

    /// The room's address for a device's kernels, which write it in the order of the executor's stream. Work that uses
    /// it is to be queued there before the call ends. Of a host-coherent output the host sees nothing from here on until
    /// the stream has passed.
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`] for host pages.
    pub fn device_ptr(&mut self) -> Result<*mut T> {
        self.hold.give_to_device("device_ptr")?;
        Ok(self.address.as_ptr())
    }

    /// How many values there is room for.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is room for none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The values. What is not written yet shows what the room held.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the host can't read; [`Error::Pending`] while a device may write.
    pub fn as_slice(&self) -> Result<&[T]> {
        self.host_access("as_slice")?;
        // SAFETY: the room is `len` values of `T: Pod`, initialised since its pages came from the system or its
        // host allocator's users were cleaned up after; the hold keeps it, and this output alone leads to it.
        Ok(unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) })
    }

    /// The values, to be written.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the host can't write; [`Error::Pending`] while a device may use the room, of which an
    /// earlier call may have made use too.
    #[inline]
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.host_access("as_mut_slice")?;
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.len) })
    }

    /// Sets every value.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the host can't write.
    #[inline]
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.as_mut_slice()?.fill(value);
        Ok(())
    }

    /// Sets every value to what `value` makes of its index.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the host can't write.
    pub fn fill_with(&mut self, mut value: impl FnMut(usize) -> T) -> Result<()> {
        for (index, place) in self.as_mut_slice()?.iter_mut().enumerate() {
            *place = value(index);
        }
        Ok(())
    }

    /// Sets values from the first on to what `values` yields, until either ends; returns how many.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the host can't write.
    pub fn fill_from_iter(&mut self, values: impl IntoIterator<Item = T>) -> Result<usize> {
        let mut written = 0;
        for (place, value) in self.as_mut_slice()?.iter_mut().zip(values) {
            *place = value;
            written += 1;
        }
        Ok(written)
    }

    /// Copies all of `values`, which must be as many as there is room for. To a device this is the explicit copy, in the
    /// stream's order, and it waits for that: the values are free when it returns.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`]; [`Error::Driver`]; [`Error::Capturing`]; [`Error::Pending`] as
    /// [`as_mut_slice`](Self::as_mut_slice).
    pub fn copy_from_slice(&mut self, values: &[T]) -> Result<()> {
        if self.len != values.len() {
            let (expected, actual) = (self.len, values.len());
            return Err(Error::LengthMismatch { operation: "copy_from_slice", expected, actual });
        }
        match self.host_access("copy_from_slice") {
            Ok(()) => {
                self.as_mut_slice()?.copy_from_slice(values);
                Ok(())
            }
            Err(Error::Device { .. }) if size_of_val(values) == 0 => Ok(()),
            Err(Error::Device { .. }) => {
                let (destination, source) = (self.address.as_ptr().cast(), values.as_ptr().cast());
                let range = CopyRange { destination, source, bytes: size_of_val(values) };
                // SAFETY: both ends are live and as long, and borrowed until this returns.
                unsafe { self.hold.transfer(range) }
            }
            Err(error) => Err(error),
        }
    }

    /// Copies all values of a view, which must be as many as there is room for: from any arena to any other, host or
    /// device, but not between two vendors' devices. Between devices it is queued in the order of this output's executor, and the view's arena is held until
    /// it has passed; where one end is the host's it has passed when this returns.
    ///
    /// # Errors
    ///
    /// [`Error::LengthMismatch`]; as [`View::read`] says of the view, but for [`Error::Device`];
    /// [`Error::WrongVendor`]; [`Error::Driver`]; [`Error::Capturing`].
    pub fn copy_from_view(&mut self, view: &View<T>) -> Result<()> {
        view.copy_to_output(self)
    }

    pub(super) fn address(&self) -> NonNull<T> {
        self.address
    }

    pub(super) fn give_to_device(&mut self, operation: &'static str) -> Result<()> {
        self.hold.give_to_device(operation)
    }

    pub(super) fn hold(&self) -> &Hold {
        &self.hold
    }

    pub(super) fn is_of(&self, call: &Call) -> bool {
        self.hold.core == call.core_ptr() && self.hold.generation() == call.generation()
    }

    pub(crate) fn is_shared_with_device(&self) -> bool {
        self.hold.core().source.is_shared_with_device()
    }

    /// Notes work of the crate's own on the room, once it is queued.
    pub(crate) fn note_queued(&self) {
        self.hold.note_queued();
    }

    /// A part of the room as values of another type.
    pub(super) fn into_part<U: Pod>(self, address: NonNull<U>, len: usize) -> Output<U> {
        debug_assert!(address.is_aligned());
        Output { hold: self.hold, address, len }
    }

    /// The executor of a device's arena; none for host pages.
    pub(crate) fn executor(&self) -> Option<Executor> {
        // SAFETY: the hold keeps the lease, whose holder is an owner.
        unsafe { self.hold.core().source.executor() }.cloned()
    }

    /// Makes the values a view, which can be read once the call has finished.
    #[inline]
    #[must_use]
    pub fn publish(self) -> View<T> {
        let (core, stamp) = self.hold.publish();
        View::new(core, stamp, self.address, self.len)
    }

    /// Makes the first `len` values a view. The rest of the room stays taken until the arena is rewound.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfRange`], and the output with it.
    pub fn publish_prefix(mut self, len: usize) -> Result<View<T>, Refused<Self>> {
        if len > self.len {
            let error = Error::OutOfRange { operation: "publish_prefix", start: 0, end: len, len: self.len };
            return Err(Refused::new(error, self));
        }
        self.len = len;
        Ok(self.publish())
    }
}
