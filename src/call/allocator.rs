//! The room of a call as an allocator, for collections that take one.

use std::alloc::Layout;
use std::ptr::NonNull;

use allocator_api2::alloc::{AllocError, Allocator};

use super::Call;
use crate::arena::{Access, Room, round_up};

/// Allocates from the front of a call's room, like outputs do. It borrows the call, so everything that it hands
/// out is gone before the call ends.
///
/// The last allocation grows in place and is given back when it is freed; others stay taken until the arena is
/// rewound. A collection's padding and spare capacity may be uninitialised: what was handed out is zeroed before
/// an output or another call can see it.
///
/// ```
/// use allocator_api2::vec::Vec;
/// # let arena = device_arena::Arena::host();
///
/// let call = arena.begin()?;
/// let mut pairs = Vec::new_in(call.host()?);
/// pairs.push((1u8, 2u64));
/// pairs.push((3, 4));
/// assert_eq!(pairs.len(), 2);
/// drop(pairs);
/// call.finish()?;
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct HostAllocator<'c> {
    call: &'c Call,
}

impl<'c> HostAllocator<'c> {
    pub(super) fn new(call: &'c Call) -> Self {
        Self { call }
    }

    /// The room of an allocation in bytes.
    fn room(self, layout: Layout) -> Option<usize> {
        round_up(layout.size(), self.call.core().source.options.alignment)
    }

    fn take(self, layout: Layout) -> Option<NonNull<u8>> {
        self.check()?;
        self.call.with_room(|core, room| {
            let taken = room.take(&core.source, &core.counters, layout.size(), layout.align()).ok()?;
            room.mark_uninit(taken, self.room(layout)?);
            Some(taken)
        })
    }

    /// Room that a device used earlier in the call, as scratch, may be what comes next.
    fn check(self) -> Option<()> {
        self.call.host_access("allocate", Access::Room).ok()
    }

    /// Gives room back, cleaned up, if it is the last taken.
    fn give_back(self, room: &mut Room, end: NonNull<u8>, bytes: usize) {
        if !room.is_last(end) {
            return;
        }
        // SAFETY: the `bytes` bytes before `end` are of an allocation that its user has freed.
        unsafe { end.sub(bytes).write_bytes(0, bytes) };
        room.give_back(&self.call.core().counters, end, bytes, None);
    }
}

fn slice(address: NonNull<u8>, layout: Layout) -> NonNull<[u8]> {
    NonNull::slice_from_raw_parts(address, layout.size())
}

// SAFETY: what is handed out stays valid until the call ends, which the borrow keeps it from; a copy of the
// allocator is the same one.
unsafe impl Allocator for HostAllocator<'_> {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        if layout.size() == 0 {
            let dangling = std::ptr::without_provenance_mut(layout.align());
            return NonNull::new(dangling).map(|address| slice(address, layout)).ok_or(AllocError);
        }
        self.take(layout).map(|address| slice(address, layout)).ok_or(AllocError)
    }

    unsafe fn deallocate(&self, address: NonNull<u8>, layout: Layout) {
        debug_assert!(address.as_ptr().addr().is_multiple_of(layout.align()));
        let Some(bytes) = self.room(layout).filter(|bytes| *bytes != 0) else { return };
        // SAFETY: the caller frees an allocation of this layout, whose room is `bytes` bytes of one block.
        let end = unsafe { address.add(bytes) };
        self.call.with_room(|_, room| self.give_back(room, end, bytes));
    }

    unsafe fn grow(
        &self,
        address: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        debug_assert!(new.size() >= old.size());
        let (had, wants) = (self.room(old).ok_or(AllocError)?, self.room(new).ok_or(AllocError)?);
        self.check().ok_or(AllocError)?;
        let in_place = had != 0 && address.as_ptr().addr().is_multiple_of(new.align());
        let extended = in_place
            && self.call.with_room(|core, room| {
                // SAFETY: the room of the old layout is `had` bytes of one block.
                let end = unsafe { address.add(had) };
                let extended = room.extend(&core.counters, end, wants - had);
                if extended {
                    room.mark_uninit(end, wants - had);
                }
                extended
            });
        if extended {
            return Ok(slice(address, new));
        }
        let moved = self.allocate(new)?;
        // SAFETY: the caller's allocation holds `old.size()` bytes, the new one is as large and apart from it.
        unsafe {
            moved.cast::<u8>().copy_from_nonoverlapping(address, old.size());
            self.deallocate(address, old);
        }
        Ok(moved)
    }

    unsafe fn shrink(
        &self,
        address: NonNull<u8>,
        old: Layout,
        new: Layout,
    ) -> Result<NonNull<[u8]>, AllocError> {
        debug_assert!(new.size() <= old.size());
        if !address.as_ptr().addr().is_multiple_of(new.align()) {
            let moved = self.allocate(new)?;
            // SAFETY: the caller's allocation holds more than `new.size()` bytes, the new one is apart from it.
            unsafe {
                moved.cast::<u8>().copy_from_nonoverlapping(address, new.size());
                self.deallocate(address, old);
            }
            return Ok(moved);
        }
        let (had, keeps) = (self.room(old).ok_or(AllocError)?, self.room(new).ok_or(AllocError)?);
        if had > keeps {
            // SAFETY: the room of the old layout is `had` bytes of one block, of which the user keeps `keeps`.
            let end = unsafe { address.add(had) };
            self.call.with_room(|_, room| self.give_back(room, end, had - keeps));
        }
        Ok(slice(address, new))
    }
}
