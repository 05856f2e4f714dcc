//! The room of an arena: a chain of blocks, and the cursors that hand it out. Outputs take from the front of the
//! current block, scratch from its back. Where the two would meet, the next block of the chain goes on, and no
//! address that was handed out ever moves.
//!
//! Everything here belongs to whoever holds the lease; [`shared`](super::shared) says how a call shares it with
//! the writers that it opened.

use std::ops::Range;
use std::ptr::NonNull;

use crate::arena::options::{ArenaOptions, Growth};
use crate::arena::stats::Counters;
use crate::backend::{AnyBackend, Backend, Block, ScrubRange};
use crate::error::{Error, Result};
use crate::trace::{Note, Notes};

/// What the room needs from its arena to grow.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) backend: AnyBackend,
    pub(crate) ordinal: u32,
    pub(crate) options: ArenaOptions,
}

impl Source {
    /// Whether a block's own alignment is enough for `align`.
    #[inline]
    pub(crate) fn check_alignment(&self, align: usize) -> Result<()> {
        // The arena's own alignment was checked when it was made.
        if align <= LEAST_ALIGNMENT || align <= self.options.alignment {
            return Ok(());
        }
        let largest = self.backend.block_alignment();
        if align > largest { Err(Error::Alignment { alignment: align, largest }) } else { Ok(()) }
    }
}

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
    /// The last room that was taken, for whoever gives all of it back.
    last: Last,
    /// Something happened that the next begin may have to see to.
    attention: bool,
    /// How often a block was entered, so that a scratch scope knows its own.
    entered: u64,
    pub(crate) notes: Notes,
}

/// What the last room cost beside its bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    start: usize,
    padding: usize,
    allowance: usize,
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
const LEAST_ALIGNMENT: usize = 64;

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
        source.check_alignment(align)?;
        if let Some(address) = self.try_take(source, counters, bytes, align) {
            return Ok(address);
        }
        self.grow(source, counters, bytes, align)?;
        self.try_take(source, counters, bytes, align).ok_or_else(|| overflow(bytes))
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
        self.last = Last { start, padding: start - self.front, allowance };
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

    /// Takes back the last `bytes` of the room that ends at `end`, if it is the last taken.
    pub(crate) fn give_back(&mut self, counters: &Counters, end: NonNull<u8>, bytes: usize) -> bool {
        if !self.is_last(end) || bytes > self.front {
            return false;
        }
        self.front_mark = self.front_mark.max(self.front);
        self.front -= bytes;
        self.taken = self.taken.saturating_sub(bytes);
        if self.front == self.last.start {
            // All of the last room: what its alignment cost comes back as well.
            self.front -= self.last.padding;
            self.taken = self.taken.saturating_sub(self.last.allowance);
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

    /// Takes scratch room from the back.
    pub(crate) fn take_scratch(
        &mut self,
        source: &Source,
        counters: &Counters,
        bytes: usize,
        align: usize,
    ) -> Result<NonNull<u8>> {
        source.check_alignment(align)?;
        if let Some(address) = self.try_take_scratch(source, counters, bytes, align) {
            return Ok(address);
        }
        self.grow(source, counters, bytes, align)?;
        self.try_take_scratch(source, counters, bytes, align).ok_or_else(|| overflow(bytes))
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

    /// Moves on to a block with room for `bytes` at `align`: the next of the chain that has it, or a new one.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, source: &Source, counters: &Counters, bytes: usize, align: usize) -> Result<()> {
        let asked = round_up(bytes, source.options.alignment).ok_or_else(|| overflow(bytes))?;
        let after = if self.base.is_none() { 0 } else { self.current + 1 };
        let fits = |link: &Link| link.block.bytes() >= asked;
        let next = self.chain.iter().skip(after).position(fits).map(|position| position + after);
        let next = match next {
            Some(next) => next,
            None => {
                let asked = asked.saturating_add(allowance(align, source));
                let fits_alone = !self.exceeds_alone(source, asked);
                if fits_alone && self.is_untouched() && self.exceeds(source, asked) {
                    // Nobody has room of this call in the blocks that are in the way.
                    self.free_chain(source, counters);
                }
                let sizes = self.sizes(&source.options, asked);
                self.allocate(source, counters, sizes).inspect_err(|error| {
                    let wanted = self.used().saturating_add(asked);
                    if matches!(error, Error::OverLimit { .. }) && !self.exceeds_alone(source, wanted) {
                        self.refused = wanted;
                        self.attention = true;
                    }
                })?;
                self.chain.len() - 1
            }
        };
        self.leave_block();
        self.enter_block(next);
        Ok(())
    }

    /// Whether the running call has nothing from any block: neither taken, nor given back and shown.
    fn is_untouched(&self) -> bool {
        self.current == 0 && self.front == 0 && self.front_mark == 0 && self.back_mark == self.capacity
    }

    /// Whether the limit forbids `bytes` more.
    fn exceeds(&self, source: &Source, bytes: usize) -> bool {
        let total =
            round_up(bytes, source.backend.block_alignment()).and_then(|b| b.checked_add(self.reserved));
        total.is_none_or(|total| total > source.options.byte_limit)
    }

    /// Whether the limit forbids a lone block of `bytes`.
    fn exceeds_alone(&self, source: &Source, bytes: usize) -> bool {
        let block = round_up(bytes, source.backend.block_alignment());
        block.is_none_or(|block| block > source.options.byte_limit)
    }

    fn used(&self) -> usize {
        self.taken.saturating_add(self.scratch)
    }

    /// Frees every block. What fails is counted, and tried again the next time.
    fn free_chain(&mut self, source: &Source, counters: &Counters) {
        while !self.chain.is_empty() {
            let _ = self.free_last(source, counters);
        }
        self.kept = 0;
        self.enter_block(0);
    }

    /// The sizes to try for a new block that must hold `asked` bytes, best first.
    fn sizes(&self, options: &ArenaOptions, asked: usize) -> [usize; 3] {
        let best = match options.growth {
            Growth::Exact => asked,
            Growth::Geometric { .. } => self.used().saturating_add(asked).max(self.step(options.growth)),
        };
        if !self.chain.is_empty() {
            return [best, asked, asked];
        }
        // Where the chain was freed for the limit's sake, calls are known to need as much as the high-water mark.
        let known = best.max(self.high_water);
        [known.max(options.first_capacity), known, asked]
    }

    /// The least size of the next block, by the growth alone.
    fn step(&self, growth: Growth) -> usize {
        match growth {
            Growth::Exact => 0,
            Growth::Geometric { max_step } => {
                let largest = self.largest();
                largest.saturating_add(largest.min(max_step))
            }
        }
    }

    fn largest(&self) -> usize {
        self.chain.iter().map(|link| link.block.bytes()).max().unwrap_or(0)
    }

    /// Allocates a block of the first of `sizes` that the limit and the driver grant, and puts it at the end of
    /// the chain. On failure the error is that of the last size, the least that would do.
    fn allocate(&mut self, source: &Source, counters: &Counters, sizes: [usize; 3]) -> Result<()> {
        let (mut refused, mut tried) = (overflow(0), None);
        for bytes in sizes {
            if tried.replace(bytes) == Some(bytes) {
                continue;
            }
            match self.allocate_one(source, bytes) {
                Ok(block) => {
                    self.reserved += block.bytes();
                    counters.allocated(self.reserved);
                    self.notes.push(Note::Allocated { bytes: block.bytes(), reserved: self.reserved });
                    if let Err(error) = self.fill_fresh(source, &block) {
                        let _ = self.free(source, counters, block);
                        return Err(error);
                    }
                    self.chain.push(Link::new(block));
                    self.attention |= self.chain.len() > 1;
                    return Ok(());
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn allocate_one(&mut self, source: &Source, bytes: usize) -> Result<Block> {
        let exceeds = self.exceeds(source, bytes);
        let bytes = round_up(bytes, source.backend.block_alignment()).ok_or_else(|| overflow(bytes))?;
        if exceeds {
            let limit = source.options.byte_limit;
            return Err(Error::OverLimit { requested: bytes, reserved: self.reserved, limit });
        }
        if self.chain.try_reserve(1).and_then(|()| self.stuck.try_reserve(self.chain.len() + 1)).is_err() {
            let vendor = crate::backend::Vendor::Host;
            return Err(Error::OutOfMemory {
                vendor,
                operation: "chain",
                requested: bytes,
                free: None,
                total: None,
            });
        }
        source.backend.allocate(source.ordinal, bytes)
    }

    /// Poisons a fresh block, so that poison is all that unwritten room ever shows.
    fn fill_fresh(&self, source: &Source, block: &Block) -> Result<()> {
        let value = match source.options.scrub.value() {
            Some(value) if value != 0 => value,
            _ => return Ok(()),
        };
        let range = ScrubRange { address: block.address().as_ptr(), bytes: block.bytes(), value };
        // SAFETY: the block is fresh and held here alone.
        unsafe { source.backend.rewind(None, &[range]) }
    }

    fn leave_block(&mut self) {
        if let Some(link) = self.chain.get_mut(self.current) {
            link.front_mark = link.front_mark.max(self.front_mark).max(self.front);
            link.back_mark = link.back_mark.min(self.back_mark);
        }
    }

    fn enter_block(&mut self, index: usize) {
        self.current = index;
        self.attention |= self.chain.len() > 1;
        self.entered += 1;
        self.last = Last::default();
        self.front = 0;
        self.front_mark = 0;
        match self.chain.get(index) {
            Some(link) => {
                self.base = Some(link.block.address());
                self.capacity = link.block.bytes();
            }
            None => {
                self.base = None;
                self.capacity = 0;
            }
        }
        self.back = self.capacity;
        self.back_mark = self.capacity;
    }

    /// Whether the next begin has more to do than to count: a chain to replace, bytes to scrub.
    #[inline]
    pub(crate) fn needs_attention(&self, source: &Source) -> bool {
        (self.attention || source.options.scrub.value().is_some()) && self.is_in_need(source)
    }

    #[cold]
    fn is_in_need(&self, source: &Source) -> bool {
        self.is_outgrown()
            || self.refused != 0
            || !self.stuck.is_empty()
            || source.options.scrub.value().is_some() && self.wrote()
            || self.chain.iter().any(|link| !link.uninit.is_empty())
    }

    fn wrote(&self) -> bool {
        let marked = |link: &Link| link.front_mark != 0 || link.back_mark != link.block.bytes();
        self.front != 0
            || self.front_mark != 0
            || self.back_mark != self.capacity
            || self.chain.iter().any(marked)
    }

    /// Whether one block should take the chain's place: there are several, or the one there is would not hold the
    /// same outputs in another order, which may cost more padding.
    fn is_outgrown(&self) -> bool {
        (self.chain.len() > 1 || self.high_water > self.capacity)
            && self.chain.len() != self.kept
            && !self.chain.is_empty()
    }

    /// Makes every byte free again. The caller holds the lease alone.
    #[inline]
    pub(crate) fn rewind(&mut self, counters: &Counters) {
        if self.current == 0 {
            self.front = 0;
            self.front_mark = 0;
            self.back = self.capacity;
            self.back_mark = self.capacity;
        } else {
            self.enter_block(0);
        }
        self.taken = 0;
        self.scratch = 0;
        counters.used(0);
    }

    /// The first half of a rewind that has more to do than to count; it can fail, and changes nothing that a view
    /// can see unless it succeeds. Replaces an outgrown chain by one block that fits the high-water mark, where
    /// the limit and the driver grant one, and scrubs what the last call wrote in the block that stays.
    ///
    /// Returns the block that stays, as an index; none if all do.
    pub(crate) fn prepare_rewind(&mut self, source: &Source, counters: &Counters) -> Result<Option<usize>> {
        self.leave_block();
        let stays = if self.is_outgrown() { self.replacement(source, counters) } else { None };
        let ranges = self.scrub_ranges(source, stays);
        if !ranges.is_empty() {
            // SAFETY: the ranges lie within the chain's blocks, and the lease's holder has them alone.
            unsafe { source.backend.rewind(None, &ranges) }?;
        }
        for link in &mut self.chain {
            // What does not stay is freed, and never shown again.
            link.front_mark = 0;
            link.back_mark = link.block.bytes();
            link.uninit = 0..0;
        }
        Ok(stays)
    }

    /// One block that fits the high-water mark: the largest, or a new one.
    fn replacement(&mut self, source: &Source, counters: &Counters) -> Option<usize> {
        if self.largest() < self.high_water {
            let best = self.step(source.options.growth).max(self.high_water);
            let sizes = [best, self.high_water, self.high_water];
            if let Err(error) = self.allocate(source, counters, sizes) {
                self.notes.push(Note::ChainKept { blocks: self.chain.len(), error });
                self.kept = self.chain.len();
                return None;
            }
        }
        let largest = self.largest();
        self.chain.iter().position(|link| link.block.bytes() == largest)
    }

    fn scrub_ranges(&self, source: &Source, stays: Option<usize>) -> Vec<ScrubRange> {
        let mut ranges = Vec::new();
        let links = self.chain.iter().enumerate();
        for (_, link) in links.filter(|(index, _)| stays.is_none_or(|stays| stays == *index)) {
            let mut push = |range: Range<usize>, value| {
                if !range.is_empty() {
                    // SAFETY: the range's start is within the block.
                    let address = unsafe { link.block.address().add(range.start) }.as_ptr();
                    ranges.push(ScrubRange { address, bytes: range.len(), value });
                }
            };
            match source.options.scrub.value() {
                None => push(link.uninit.clone(), 0),
                Some(value) => {
                    push(0..link.front_mark, value);
                    push(link.back_mark.max(link.front_mark)..link.block.bytes(), value);
                }
            }
        }
        ranges
    }

    /// Whether there is nothing left that the next begin would have to see to.
    fn settle_attention(&mut self, source: &Source) {
        self.attention = self.is_in_need(source);
    }

    /// The second half, once the views are stale: frees all blocks but the one that stays.
    pub(crate) fn finish_rewind(&mut self, source: &Source, counters: &Counters, stays: Option<usize>) {
        // What fails is counted, and tried again the next time.
        let _ = self.free_stuck(source, counters);
        let wanted = std::mem::take(&mut self.refused);
        if wanted > self.largest() {
            // One block that holds what the limit refused, for which the others must go first. The next output
            // makes it: nothing is left to fall back to here, and nothing of the last call's is shown any more.
            self.free_chain(source, counters);
            self.high_water = self.high_water.max(wanted);
            counters.high_water(self.high_water);
        } else if let Some(stays) = stays {
            self.chain.swap(0, stays);
            while self.chain.len() > 1 {
                let _ = self.free_last(source, counters);
            }
            self.kept = 0;
        }
        self.enter_block(0);
        self.rewind(counters);
        self.settle_attention(source);
    }

    /// A block of at least `bytes` bytes for the next call. Everything else stays where it is.
    pub(crate) fn reserve(&mut self, source: &Source, counters: &Counters, bytes: usize) -> Result<()> {
        if bytes == 0 || self.largest() >= bytes {
            return Ok(());
        }
        let was_empty = self.chain.is_empty();
        let first = if was_empty { source.options.first_capacity } else { 0 };
        self.allocate(source, counters, [bytes.max(first), bytes, bytes])?;
        if was_empty {
            self.enter_block(0);
        }
        // The next begin keeps the largest block, and must not go on with less than was asked for.
        if bytes > self.high_water {
            self.high_water = bytes;
            counters.high_water(bytes);
        }
        Ok(())
    }

    /// Frees every block and forgets the high-water mark; returns the bytes that were freed.
    ///
    /// Blocks that the driver does not take back are kept apart, counted as reserved, and tried again at the
    /// next occasion; the error is the driver's.
    pub(crate) fn free_all(&mut self, source: &Source, counters: &Counters) -> Result<usize> {
        let before = self.reserved;
        self.refused = 0;
        let mut outcome = self.free_stuck(source, counters);
        while !self.chain.is_empty() {
            outcome = outcome.and(self.free_last(source, counters));
        }
        self.kept = 0;
        self.enter_block(0);
        self.rewind(counters);
        self.high_water = 0;
        counters.high_water(0);
        outcome.map(|()| before - self.reserved)
    }

    fn free_last(&mut self, source: &Source, counters: &Counters) -> Result<()> {
        match self.chain.pop() {
            Some(link) => self.free(source, counters, link.block),
            None => Ok(()),
        }
    }

    fn free_stuck(&mut self, source: &Source, counters: &Counters) -> Result<()> {
        let mut outcome = Ok(());
        for _ in 0..self.stuck.len() {
            // One that sticks again goes to the end; the capacity for it is there.
            let block = self.stuck.remove(0);
            outcome = outcome.and(self.free(source, counters, block));
        }
        outcome
    }

    fn free(&mut self, source: &Source, counters: &Counters, block: Block) -> Result<()> {
        let bytes = block.bytes();
        // SAFETY: the block came from this backend. The lease's holder, who is alone, has made every view of it
        // stale, or it was never handed out; work that used it is behind in the stream's order.
        match unsafe { source.backend.free(block) } {
            Ok(()) => {
                self.reserved -= bytes;
                counters.freed(self.reserved);
                Ok(())
            }
            Err(refused) => {
                self.notes.push(Note::NotFreed { bytes, error: refused.error.clone() });
                counters.failed_free();
                self.stuck.push(refused.value);
                self.attention = true;
                Err(refused.error)
            }
        }
    }
}

#[cold]
fn overflow(bytes: usize) -> Error {
    Error::SizeOverflow { operation: "output", elements: bytes, element_bytes: 1 }
}
