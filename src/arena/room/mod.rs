//! The room of an arena: a chain of blocks, and the cursors that hand it out. Outputs take from the front of the
//! current block, scratch from its back. Where the two would meet, the next block of the chain goes on, and no
//! address that was handed out ever moves.
//!
//! Everything here belongs to whoever holds the lease; [`shared`](super::shared) says how a call shares it with
//! the writers that it opened.

mod chain;
mod rewind;

pub(crate) use self::rewind::HalfDone;

use std::ops::Range;
use std::ptr::NonNull;

use crate::arena::seen::Seen;
use crate::arena::source::Source;
use crate::arena::stats::Counters;
use crate::backend::Block;
use crate::error::{Error, Result};
use crate::trace::Notes;

/// A block of the chain, and what the running call did to it. Positions are offsets in bytes.
#[derive(Debug)]
struct Link {
    block: Block,
    /// Outputs wrote below this.
    front_mark: usize,
    /// Scratch wrote from here on.
    back_mark: usize,
    /// Room of the host allocator, whose users may leave bytes uninitialised.
    uninit: Range<usize>,
}

impl Link {
    fn new(block: Block) -> Self {
        let bytes = block.bytes();
        Self { block, front_mark: 0, back_mark: bytes, uninit: 0..0 }
    }
}

/// Where a scratch scope began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScratchMark {
    entered: u64,
    back: usize,
    scratch: usize,
}

/// A chain of blocks and the cursors in it.
#[derive(Debug, Default)]
pub(crate) struct Room {
    chain: Vec<Link>,
    /// The block that is being filled, as an index into the chain.
    current: usize,
    /// Its address. While there is none, `capacity`, `front` and `back` are zero.
    base: Option<NonNull<u8>>,
    capacity: usize,
    front: usize,
    front_mark: usize,
    back: usize,
    back_mark: usize,
    /// What outputs have taken, as one block that held them all would count it.
    taken: usize,
    /// What open scratch scopes have taken, likewise.
    scratch: usize,
    /// The most that a call had taken at once.
    high_water: usize,
    reserved: usize,
    /// The length of the chain that the driver or the limit kept from being replaced.
    kept: usize,
    /// What a call wanted to have at once when the limit kept it from growing; zero if none was.
    refused: usize,
    /// Blocks that the driver did not take back. They are never used again, and tried again.
    stuck: Vec<Block>,
    last: Last,
    /// Something happened that the next begin may have to see to.
    attention: bool,
    /// How often a block was entered, so that a scratch scope knows its own.
    entered: u64,
    pub(crate) notes: Notes,
    /// The allocations that the running call has asked about.
    pub(crate) seen: Seen,
}

/// What a room cost beside its bytes, for whoever gives all of it back.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cost {
    padding: usize,
    allowance: usize,
}

/// The last room that was taken.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    start: usize,
    cost: Cost,
}

// SAFETY: `base` points into a block of the chain, which goes with it.
unsafe impl Send for Room {}

/// Rounds up to a multiple of `alignment`, a power of two.
#[inline]
pub(crate) fn round_up(bytes: usize, alignment: usize) -> Option<usize> {
    debug_assert!(alignment.is_power_of_two());
    Some(bytes.checked_add(alignment - 1)? & !(alignment - 1))
}

/// No arena's alignment is less: see `Backend::output_alignment`.
pub(super) const LEAST_ALIGNMENT: usize = 64;

/// What an output of this alignment may lose to it, beyond the arena's own alignment.
#[inline]
fn allowance(align: usize, source: &Source) -> usize {
    if align <= LEAST_ALIGNMENT { 0 } else { align.saturating_sub(source.options.alignment) }
}

impl Room {
    /// Takes room for an output from the front: aligned to `align` and to the arena's alignment.
    #[inline]
    pub(crate) fn take(
        &mut self,
        source: &Source,
        counters: &Counters,
        bytes: usize,
        align: usize,
    ) -> Result<NonNull<u8>> {
        self.take_or_grow(source, counters, bytes, align, Self::try_take)
    }

    /// Takes room that the caller can do without: what is refused leaves no mark.
    pub(crate) fn take_if_granted(
        &mut self,
        source: &Source,
        counters: &Counters,
        bytes: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        let refused = self.refused;
        let taken = self.take(source, counters, bytes, align).ok();
        if taken.is_none() {
            self.refused = refused;
        }
        taken
    }

    /// Takes room for scratch from the back, likewise.
    pub(crate) fn take_scratch(
        &mut self,
        source: &Source,
        counters: &Counters,
        bytes: usize,
        align: usize,
    ) -> Result<NonNull<u8>> {
        self.take_or_grow(source, counters, bytes, align, Self::try_take_scratch)
    }

    #[inline(always)]
    fn take_or_grow(
        &mut self,
        source: &Source,
        counters: &Counters,
        bytes: usize,
        align: usize,
        take: impl Fn(&mut Self, &Source, &Counters, usize, usize) -> Option<NonNull<u8>>,
    ) -> Result<NonNull<u8>> {
        source.check_alignment(align)?;
        if let Some(address) = take(self, source, counters, bytes, align) {
            return Ok(address);
        }
        self.grow(source, counters, bytes, align)?;
        take(self, source, counters, bytes, align).ok_or_else(|| overflow(bytes))
    }

    #[inline]
    fn try_take(
        &mut self,
        source: &Source,
        counters: &Counters,
        bytes: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        // Known when this is compiled for a type: `front` is a multiple of the arena's alignment already.
        let start = if align <= LEAST_ALIGNMENT { self.front } else { round_up(self.front, align)? };
        let bytes = round_up(bytes, source.options.alignment)?;
        let end = start.checked_add(bytes)?;
        if end > self.back {
            return None;
        }
        let base = self.base?;
        let allowance = allowance(align, source);
        self.last = Last { start, cost: Cost { padding: start - self.front, allowance } };
        self.front = end;
        self.taken += bytes + allowance;
        self.count(counters);
        // SAFETY: `start <= end <= back`, and `back` is at most the size of the block at `base`.
        Some(unsafe { base.add(start) })
    }

    /// Makes the room that ends at `end` larger by `bytes`, a multiple of the alignment, if it is the last taken
    /// and its block has as much.
    pub(crate) fn extend(&mut self, counters: &Counters, end: NonNull<u8>, bytes: usize) -> bool {
        let Some(front) = self.front.checked_add(bytes) else { return false };
        if !self.is_last(end) || front > self.back {
            return false;
        }
        self.front = front;
        self.taken += bytes;
        self.count(counters);
        true
    }

    /// What the room that was just taken cost beside its bytes.
    pub(crate) fn last_cost(&self) -> Cost {
        self.last.cost
    }

    /// Takes back the last `bytes` of the room that ends at `end`, if it is the last taken. With all of a room its
    /// owner gives back what it cost; without an owner who knows, that is known of the very last room alone.
    pub(crate) fn give_back(
        &mut self,
        counters: &Counters,
        end: NonNull<u8>,
        bytes: usize,
        cost: Option<Cost>,
    ) -> bool {
        if !self.is_last(end) || bytes > self.front {
            return false;
        }
        self.front_mark = self.front_mark.max(self.front);
        self.front -= bytes;
        self.taken = self.taken.saturating_sub(bytes);
        let last = (self.front == self.last.start).then_some(self.last.cost);
        if let Some(cost) = cost.or(last) {
            self.front = self.front.saturating_sub(cost.padding);
            self.taken = self.taken.saturating_sub(cost.allowance);
            self.last = Last::default();
        }
        self.count(counters);
        true
    }

    /// Whether the room that ends at `end` is the last taken.
    pub(crate) fn is_last(&self, end: NonNull<u8>) -> bool {
        // Where nothing was taken from the block, an address that equals its start is one past a neighbour.
        // SAFETY: `front` is within the block at `base`.
        self.front != 0 && self.base.is_some_and(|base| unsafe { base.add(self.front) } == end)
    }

    fn try_take_scratch(
        &mut self,
        source: &Source,
        counters: &Counters,
        bytes: usize,
        align: usize,
    ) -> Option<NonNull<u8>> {
        let bytes = round_up(bytes, source.options.alignment)?;
        let start = self.back.checked_sub(bytes)? & !(align - 1);
        if start < self.front {
            return None;
        }
        let base = self.base?;
        self.back = start;
        self.back_mark = self.back_mark.min(start);
        self.scratch += bytes + allowance(align, source);
        self.count(counters);
        // SAFETY: `start` is below the old `back`, which is at most the size of the block at `base`.
        Some(unsafe { base.add(start) })
    }

    /// Where a scratch scope begins.
    pub(crate) fn mark(&self) -> ScratchMark {
        ScratchMark { entered: self.entered, back: self.back, scratch: self.scratch }
    }

    /// Ends the scratch scope that began at `mark`.
    pub(crate) fn release(&mut self, counters: &Counters, mark: ScratchMark) {
        // Where the scope went on in another block, that block was fresh to scratch.
        self.back = if mark.entered == self.entered { mark.back } else { self.capacity };
        self.scratch = mark.scratch;
        self.count(counters);
    }

    /// Notes that the user of the host allocator may leave these bytes uninitialised.
    #[cfg_attr(not(feature = "allocator-api2"), allow(dead_code))]
    pub(crate) fn mark_uninit(&mut self, address: NonNull<u8>, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.attention = true;
        for link in self.chain.iter_mut().rev() {
            let Some(start) = address.as_ptr().addr().checked_sub(link.block.address().as_ptr().addr())
            else {
                continue;
            };
            if start < link.block.bytes() {
                let hull = &mut link.uninit;
                *hull = if hull.start >= hull.end {
                    start..start + bytes
                } else {
                    hull.start.min(start)..hull.end.max(start + bytes)
                };
                return;
            }
        }
    }

    #[inline]
    fn count(&mut self, counters: &Counters) {
        let used = self.used();
        counters.used(used);
        if used > self.high_water {
            self.high_water = used;
            self.attention |= used > self.capacity;
            counters.high_water(used);
        }
    }
}

#[cold]
fn overflow(bytes: usize) -> Error {
    Error::SizeOverflow { operation: "output", elements: bytes, element_bytes: 1 }
}
