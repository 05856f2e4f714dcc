//! What a begin does to the room: it makes every byte free again, puts one block in the place of an outgrown chain, and
//! scrubs what the last call wrote.

use std::ops::Range;

use super::{Link, Room};
use crate::arena::source::Source;
use crate::arena::stats::Counters;
use crate::backend::{Backend, SCRUBS_AT_ONCE, ScrubRange, fill_on_host};
use crate::error::{Error, Result};
use crate::trace::Note;

/// Why a rewind was given up, and whether bytes that views show may have changed.
#[derive(Debug)]
pub(crate) struct HalfDone {
    pub(crate) error: Error,
    pub(crate) changed: bool,
}

impl From<Error> for HalfDone {
    fn from(error: Error) -> Self {
        Self { error, changed: false }
    }
}

impl Room {
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

    pub(super) fn wrote(&self) -> bool {
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
        self.seen.forget();
        counters.used(0);
    }

    /// The first half of a rewind that has more to do than to count; it can fail, and changes nothing that a view
    /// can see unless it succeeds. Replaces an outgrown chain by one block that fits the high-water mark, where
    /// the limit and the driver grant one, and scrubs what the last call wrote in the block that stays.
    ///
    /// Returns the block that stays, as an index; none if all do.
    /// `by_host`: the host may touch the bytes, and nothing of a device's work is ahead.
    pub(crate) fn prepare_rewind(
        &mut self,
        source: &Source,
        counters: &Counters,
        by_host: bool,
    ) -> Result<Option<usize>, HalfDone> {
        self.leave_block();
        // Where one block is to hold what the limit refused, the chain goes for it, and needs no other replacement.
        let stays = if self.is_outgrown() && self.refused <= self.largest() {
            self.replacement(source, counters)
        } else {
            None
        };
        let ranges = self.scrub_ranges(source, stays);
        if !ranges.is_empty() {
            // SAFETY: whoever has the room is an owner.
            let stream = unsafe { source.stream() };
            if by_host && stream.is_some() {
                // SAFETY: the ranges lie within the chain's blocks, the lease's holder has them alone, and the caller says
                // that the host may touch them.
                unsafe { fill_on_host(&ranges) };
            } else {
                // SAFETY: as above, in the stream's order.
                let rewound = unsafe { source.backend.rewind(stream, None, &ranges) };
                let changed = ranges.len() > SCRUBS_AT_ONCE;
                rewound.map_err(|error| HalfDone { error, changed })?;
            }
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
            // One block that holds what the limit refused, for which the others must go first: nothing of the last
            // call's is shown any more. Where the driver refuses it, the next output asks again for what it needs.
            let _ = self.free_chain(source, counters);
            self.high_water = self.high_water.max(wanted);
            counters.high_water(self.high_water);
            let _ = self.allocate(source, counters, [self.high_water, wanted, wanted]);
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
}
