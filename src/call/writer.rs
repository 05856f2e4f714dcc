//! Outputs of a length that is known only once they are written.

use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use bytemuck::Pod;

use super::{Hold, size_overflow};
use crate::arena::{Access, Core, Cost, Room, round_up};
use crate::error::Result;
use crate::view::View;

/// An output that grows as it is written.
///
/// While it is the last that took room, it grows in place, as much as is asked for rounded up to the arena's
/// alignment. Otherwise, and at the end of a block, it moves: to twice its room in the first case, so that writers
/// which grow in turns copy little. Room that it leaves counts as taken until the arena is rewound; room past its
/// values is given back on publishing, where it is the last.
///
/// A writer may be on another thread than its call.
///
/// ```
/// use device_arena::Arena;
///
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let mut primes = call.writer::<u32>()?;
/// primes.extend((2u32..30).filter(|n| (2..*n).all(|d| n % d != 0)))?;
/// let view = primes.publish();
/// call.finish()?;
/// assert_eq!(*view.read()?, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a writer that is dropped leaves nothing to be read"]
pub struct Writer<T: Pod> {
    hold: ManuallyDrop<Hold>,
    address: NonNull<T>,
    len: usize,
    /// How many values the room holds.
    capacity: usize,
    /// The room in bytes, a multiple of the arena's alignment.
    room: usize,
    cost: Cost,
}

// SAFETY: a writer is the only way to its values, and takes the room's lock when it grows.
unsafe impl<T: Pod + Send> Send for Writer<T> {}
// SAFETY: as above; a shared writer offers shared values.
unsafe impl<T: Pod + Sync> Sync for Writer<T> {}

impl<T: Pod> Writer<T> {
    /// # Safety
    ///
    /// The caller is the call that holds the lease, and `hold` is of it.
    pub(super) unsafe fn new(hold: Hold) -> Self {
        // SAFETY: the caller is the call.
        unsafe { hold.core().room.open_writer() };
        let capacity = if size_of::<T>() == 0 { usize::MAX } else { 0 };
        Self {
            hold: ManuallyDrop::new(hold),
            address: NonNull::dangling(),
            len: 0,
            capacity,
            room: 0,
            cost: Cost::default(),
        }
    }

    /// How many values are written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many values there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The values written so far.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        // SAFETY: `len <= capacity` values of the room are written; this writer alone leads to them.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.len) }
    }

    /// The values written so far, to be changed.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), self.len) }
    }

    /// Makes sure that `additional` more values can be written without asking for room.
    ///
    /// # Errors
    ///
    /// [`SizeOverflow`](crate::Error::SizeOverflow), [`OverLimit`](crate::Error::OverLimit),
    /// [`OutOfMemory`](crate::Error::OutOfMemory); the writer is as it was.
    #[inline]
    pub fn reserve(&mut self, additional: usize) -> Result<()> {
        if additional <= self.capacity - self.len { Ok(()) } else { self.grow(additional) }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, additional: usize) -> Result<()> {
        // Room that a device used earlier in the call, as scratch, may be what it grows into.
        self.hold.host_access("reserve", Access::Room)?;
        let overflow = || size_overflow::<T>("reserve", self.len.saturating_add(additional));
        let wanted = self.len.checked_add(additional).ok_or_else(overflow)?;
        let bytes = wanted.checked_mul(size_of::<T>()).ok_or_else(overflow)?;
        let core = self.hold.core();
        let bytes = round_up(bytes, core.source.options.alignment).ok_or_else(overflow)?;
        // SAFETY: this writer is counted; `grow_room` calls no user's code and does not come back here.
        let (address, room, cost) =
            unsafe { core.room.with_writer(|room| self.grow_room(core, room, bytes)) }?;
        self.address = address.cast();
        self.room = room;
        self.cost = cost;
        self.capacity = room / size_of::<T>().max(1);
        Ok(())
    }

    /// Room for at least `bytes` bytes that holds what is written: its address, its size, and what it cost.
    fn grow_room(&self, core: &Core, room: &mut Room, bytes: usize) -> Result<(NonNull<u8>, usize, Cost)> {
        let old = self.address.cast::<u8>();
        let (source, counters, align) = (&core.source, &core.counters, align_of::<T>());
        if self.room == 0 {
            let address = room.take(source, counters, bytes, align)?;
            return Ok((address, bytes, room.last_cost()));
        }
        if room.extend(counters, self.end(), bytes - self.room) {
            return Ok((old, bytes, self.cost));
        }
        // At the end of a block it takes no more than it needs, so that in one large block, where it would have
        // stayed in place, the same calls never take more.
        let doubled = if room.is_last(self.end()) { bytes } else { bytes.max(self.room.saturating_mul(2)) };
        let (address, bytes) = match room.take_if_granted(source, counters, doubled, align) {
            Some(address) => (address, doubled),
            None => (room.take(source, counters, bytes, align)?, bytes),
        };
        // SAFETY: the old room holds `len` values, the new one is larger and was just taken.
        unsafe { address.copy_from_nonoverlapping(old, self.len * size_of::<T>()) };
        Ok((address, bytes, room.last_cost()))
    }

    /// One past the room.
    fn end(&self) -> NonNull<u8> {
        // SAFETY: the room is `room` bytes of one block.
        unsafe { self.address.cast::<u8>().add(self.room) }
    }

    /// Writes one value.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    #[inline]
    pub fn push(&mut self, value: T) -> Result<()> {
        self.reserve(1)?;
        // SAFETY: there is room for one more.
        unsafe { self.address.add(self.len).write(value) };
        self.len += 1;
        Ok(())
    }

    /// Writes all of `values`, or none.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve).
    pub fn extend_from_slice(&mut self, values: &[T]) -> Result<()> {
        self.reserve(values.len())?;
        let source = NonNull::from(values).cast::<T>();
        // SAFETY: there is room for as many; a caller's slice can't be of room that nothing else leads to.
        unsafe { self.address.add(self.len).copy_from_nonoverlapping(source, values.len()) };
        self.len += values.len();
        Ok(())
    }

    /// Writes what `values` yields. Room for the least that it promises is taken before it first runs.
    ///
    /// # Errors
    ///
    /// As [`reserve`](Self::reserve); what was written until then stays, the value that found no room is lost.
    pub fn extend(&mut self, values: impl IntoIterator<Item = T>) -> Result<()> {
        let values = values.into_iter();
        self.reserve(values.size_hint().0)?;
        for value in values {
            self.push(value)?;
        }
        Ok(())
    }

    /// Forgets all values past the first `len`. Their room stays.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Makes the values a view, which can be read once the call has finished.
    #[must_use]
    pub fn publish(self) -> View<T> {
        let mut this = ManuallyDrop::new(self);
        let len = this.len;
        let hold = this.close(len);
        let (core, stamp) = hold.publish();
        View::new(core, stamp, this.address, len)
    }

    /// Gives back the room past the first `keep` values and ends the writer's way to the room. To be called once.
    fn close(&mut self, keep: usize) -> Hold {
        // SAFETY: `close` is called once, by `publish` or by `drop`, and the hold is not used after it.
        let hold = unsafe { ManuallyDrop::take(&mut self.hold) };
        let core = hold.core();
        let kept = round_up(keep * size_of::<T>(), core.source.options.alignment);
        let spare = kept.and_then(|kept| self.room.checked_sub(kept)).unwrap_or(0);
        let cost = (spare == self.room).then_some(self.cost);
        if spare != 0 {
            // SAFETY: this writer is counted, and nothing of the user's runs here.
            unsafe { core.room.with_writer(|room| room.give_back(&core.counters, self.end(), spare, cost)) };
        }
        // SAFETY: this writer is counted, and does not come back.
        unsafe { core.room.close_writer() };
        hold
    }
}

/// Writes bytes, all or none. A refused write is an [`Error`](crate::Error) within the [`std::io::Error`].
impl std::io::Write for Writer<u8> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.extend_from_slice(bytes).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<T: Pod> Drop for Writer<T> {
    fn drop(&mut self) {
        drop(self.close(0));
    }
}
