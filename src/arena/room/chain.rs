//! How the chain of blocks grows, and how blocks go back to the driver.

use super::{Last, Link, Room, allowance, overflow, round_up};
use crate::arena::options::{ArenaOptions, Growth};
use crate::arena::source::Source;
use crate::arena::stats::Counters;
use crate::backend::{Backend, Block, ScrubRange, fill_on_host};
use crate::error::{Error, Result};
use crate::trace::Note;

impl Room {
    /// Moves on to a block with room for `bytes` at `align`: the next of the chain that has it, or a new one.
    #[cold]
    #[inline(never)]
    pub(super) fn grow(
        &mut self,
        source: &Source,
        counters: &Counters,
        bytes: usize,
        align: usize,
    ) -> Result<()> {
        let asked = round_up(bytes, source.options.alignment).ok_or_else(|| overflow(bytes))?;
        let after = if self.base.is_none() { 0 } else { self.current + 1 };
        let fits = |link: &Link| link.block.bytes() >= asked;
        let next = self.chain.iter().skip(after).position(fits).map(|position| position + after);
        let next = match next {
            Some(next) => next,
            None => {
                // Within a capture the driver gives no block and takes none back.
                source.refuse_capture("output")?;
                let asked = asked.saturating_add(allowance(align, source));
                let fits_alone = !self.exceeds_alone(source, asked);
                if fits_alone && self.is_untouched() && self.exceeds(source, asked) {
                    // Nobody has room of this call in the blocks that are in the way.
                    let had = self.largest();
                    let _ = self.free_chain(source, counters);
                    let sizes = self.sizes(&source.options, asked);
                    if let Err(error) = self.allocate(source, counters, sizes) {
                        // What there was is asked for again, so that the refusal took nothing away.
                        let _ = self.allocate(source, counters, [had; 3]);
                        self.enter_block(0);
                        return Err(error);
                    }
                } else {
                    let sizes = self.sizes(&source.options, asked);
                    self.allocate(source, counters, sizes).inspect_err(|error| {
                        let wanted = self.used().saturating_add(asked);
                        if matches!(error, Error::OverLimit { .. }) && !self.exceeds_alone(source, wanted) {
                            self.refused = wanted;
                            self.attention = true;
                        }
                    })?;
                }
                self.chain.len() - 1
            }
        };
        if self.base.is_some() {
            self.leave_block();
        }
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

    pub(super) fn used(&self) -> usize {
        self.taken.saturating_add(self.scratch)
    }

    /// Frees every block. What fails is counted, and tried again the next time; the error is the first.
    pub(super) fn free_chain(&mut self, source: &Source, counters: &Counters) -> Result<()> {
        let mut outcome = Ok(());
        while !self.chain.is_empty() {
            outcome = outcome.and(self.free_last(source, counters));
        }
        self.kept = 0;
        self.enter_block(0);
        outcome
    }

    /// The sizes to try for a new block that must hold `asked` bytes, best first.
    pub(super) fn sizes(&self, options: &ArenaOptions, asked: usize) -> [usize; 3] {
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
    pub(super) fn step(&self, growth: Growth) -> usize {
        match growth {
            Growth::Exact => 0,
            Growth::Geometric { max_step } => {
                let largest = self.largest();
                largest.saturating_add(largest.min(max_step))
            }
        }
    }

    pub(super) fn largest(&self) -> usize {
        self.chain.iter().map(|link| link.block.bytes()).max().unwrap_or(0)
    }

    /// Allocates a block of the first of `sizes` that the limit and the driver grant, and puts it at the end of
    /// the chain. On failure the error is that of the last size, the least that would do.
    pub(super) fn allocate(&mut self, source: &Source, counters: &Counters, sizes: [usize; 3]) -> Result<()> {
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
        // SAFETY: whoever has the room is an owner.
        let stream = unsafe { source.stream() };
        source.backend.allocate(source.ordinal, stream, source.placement, bytes)
    }

    /// Fills a fresh block, so that zeros or poison is all that unwritten room ever shows. The system's pages are zeros
    /// already; a device's memory is what somebody else left there.
    fn fill_fresh(&self, source: &Source, block: &Block) -> Result<()> {
        let value = match source.options.scrub.value() {
            Some(value) if value != 0 => value,
            _ if source.is_on_device() => 0,
            _ => return Ok(()),
        };
        let range = ScrubRange { address: block.address().as_ptr(), bytes: block.bytes(), value };
        if source.is_shared_with_device() {
            // SAFETY: the block is fresh and held here alone, and the host reaches it.
            unsafe { fill_on_host(&[range]) };
            return Ok(());
        }
        // SAFETY: whoever has the room is an owner.
        let stream = unsafe { source.stream() };
        // SAFETY: the block is fresh and held here alone.
        unsafe { source.backend.rewind(stream, None, &[range]) }
    }

    pub(super) fn leave_block(&mut self) {
        if let Some(link) = self.chain.get_mut(self.current) {
            link.front_mark = link.front_mark.max(self.front_mark).max(self.front);
            link.back_mark = link.back_mark.min(self.back_mark);
        }
    }

    pub(super) fn enter_block(&mut self, index: usize) {
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
        self.attention |= self.capacity < self.high_water;
        self.back = self.capacity;
        self.back_mark = self.capacity;
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
        let stuck = self.free_stuck(source, counters);
        let outcome = stuck.and(self.free_chain(source, counters));
        self.rewind(counters);
        self.high_water = 0;
        counters.high_water(0);
        outcome.map(|()| before - self.reserved)
    }

    pub(super) fn free_last(&mut self, source: &Source, counters: &Counters) -> Result<()> {
        match self.chain.pop() {
            Some(link) => self.free(source, counters, link.block),
            None => Ok(()),
        }
    }

    /// The blocks that the driver has not taken back, for whoever tries again when the arena is gone.
    pub(crate) fn take_stuck(&mut self) -> Vec<Block> {
        std::mem::take(&mut self.stuck)
    }

    pub(super) fn free_stuck(&mut self, source: &Source, counters: &Counters) -> Result<()> {
        let mut outcome = Ok(());
        for _ in 0..self.stuck.len() {
            // One that sticks again goes to the end; the capacity for it is there.
            let block = self.stuck.remove(0);
            outcome = outcome.and(self.free(source, counters, block));
        }
        outcome
    }

    pub(super) fn free(&mut self, source: &Source, counters: &Counters, block: Block) -> Result<()> {
        let bytes = block.bytes();
        // SAFETY: whoever has the room is an owner.
        let stream = unsafe { source.stream() };
        // SAFETY: the block came from this backend. The lease's holder, who is alone, has made every view of it
        // stale, or it was never handed out; work that uses it is in the stream, readers on others before it.
        match unsafe { source.backend.free(stream, block) } {
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
