//! What has been placed so far, seen from above: a floor for each section, and what is still to come.

use std::ops::Range;

use super::rows::Row;
use crate::plan::problem::align_up;

/// An item within a part of the problem. Sizes are rounded up to the grain, so that what lies on a block of the least
/// alignment lies flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) size: u64,
    pub(super) alignment: u64,
    pub(super) fixed: Option<u64>,
}

impl Block {
    pub(super) fn sections(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// The floor of a section with nothing left to place: none that matters. It is a wall to its neighbours.
pub(super) const DONE: u64 = u64::MAX;

/// A run of sections with one floor, between higher ones.
pub(super) struct Valley {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) floor: u64,
    /// The floors on both sides.
    pub(super) left: u64,
    pub(super) right: u64,
    /// The offset of the lowest fixed block that is still to come in any of its sections.
    pub(super) ceiling: u64,
}

impl Valley {
    /// Where the floor is once nothing lies on it.
    pub(super) fn wall(&self) -> u64 {
        self.left.min(self.right).min(self.ceiling)
    }

    pub(super) fn sections(&self) -> Range<usize> {
        self.start..self.end
    }
}

pub(super) struct Skyline<'p> {
    /// In the order of first section, last section, size and alignment.
    blocks: &'p Row<Block>,
    floors: Row<u64>,
    /// Bytes still to come, by section.
    rest: Row<u64>,
    has_fixed: bool,
    /// The fixed blocks that are still to come by section, the highest first: offset, block.
    fixed: Row<Vec<(u64, usize)>>,
    /// The blocks still to come, as a ring in their order: behind the mark of each section come those that start there. Marks
    /// are numbered after the blocks.
    after: Row<usize>,
    before: Row<usize>,
    offsets: Row<u64>,
    /// Floors as they were before they changed.
    trail: Vec<(usize, u64)>,
}

impl<'p> Skyline<'p> {
    pub(super) fn new(blocks: &'p Row<Block>, sections: usize, base: u64) -> Self {
        let mut rest = Row::new(0, sections);
        let mut fixed = Row::new(Vec::new(), sections);
        for (index, block) in blocks.as_slice().iter().enumerate() {
            for section in block.sections() {
                rest.put(section, rest.at(section) + block.size);
                if let (Some(offset), Some(fixed)) = (block.fixed, fixed.get_mut(section)) {
                    fixed.push((offset, index));
                }
            }
        }
        for section in 0..sections {
            if let Some(fixed) = fixed.get_mut(section) {
                fixed.sort_unstable_by(|a, b| b.cmp(a));
            }
        }
        let floors: Vec<u64> = (0..sections).map(|at| if rest.at(at) == 0 { DONE } else { base }).collect();
        let (after, before) = ring(blocks, sections);
        Self {
            blocks,
            floors: floors.into(),
            rest,
            has_fixed: blocks.as_slice().iter().any(|block| block.fixed.is_some()),
            fixed,
            after,
            before,
            offsets: Row::new(base, blocks.len()),
            trail: Vec::new(),
        }
    }

    pub(super) fn into_offsets(self) -> Vec<u64> {
        self.offsets.into_vec()
    }

    pub(super) fn block(&self, index: usize) -> Block {
        self.blocks.at(index)
    }

    pub(super) fn sections(&self) -> usize {
        self.floors.len()
    }

    pub(super) fn rest(&self, section: usize) -> u64 {
        self.rest.at(section)
    }

    /// A mark to go back to.
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn set_floor(&mut self, section: usize, floor: u64) {
        self.trail.push((section, self.floors.at(section)));
        self.floors.put(section, floor);
    }

    pub(super) fn place(&mut self, index: usize, offset: u64) {
        let block = self.block(index);
        self.offsets.put(index, offset);
        let (before, after) = (self.before.at(index), self.after.at(index));
        self.after.put(before, after);
        self.before.put(after, before);
        for section in block.sections() {
            if let (true, Some(fixed)) = (block.fixed.is_some(), self.fixed.get_mut(section)) {
                fixed.pop();
            }
            let rest = self.rest.at(section) - block.size;
            self.rest.put(section, rest);
            self.set_floor(section, if rest == 0 { DONE } else { offset + block.size });
        }
    }

    /// Goes back to a mark. `placed` is the one block that was placed since.
    pub(super) fn take_back(&mut self, mark: usize, placed: Option<usize>) {
        while self.trail.len() > mark {
            let Some((section, floor)) = self.trail.pop() else { break };
            self.floors.put(section, floor);
        }
        let Some(index) = placed else { return };
        let block = self.block(index);
        for section in block.sections() {
            self.rest.put(section, self.rest.at(section) + block.size);
            if let (Some(offset), Some(fixed)) = (block.fixed, self.fixed.get_mut(section)) {
                fixed.push((offset, index));
            }
        }
        self.after.put(self.before.at(index), index);
        self.before.put(self.after.at(index), index);
    }

    /// The first run of sections with one floor that starts at `start`: its end, and the floor.
    pub(super) fn level(&self, start: usize) -> (usize, u64) {
        let floor = self.floors.at(start);
        let rest = self.floors.part(start..self.floors.len());
        let count = rest.iter().take_while(|other| **other == floor).count();
        (start + count.max(1), floor)
    }

    pub(super) fn floor(&self, section: usize) -> u64 {
        self.floors.get(section).copied().unwrap_or(DONE)
    }

    /// The first section whose floor is above a fixed block that is still to come.
    pub(super) fn above_fixed(&self, sections: Range<usize>, floor: u64) -> Option<usize> {
        if !self.has_fixed || floor == DONE {
            return None;
        }
        sections
            .into_iter()
            .find(|section| self.next_fixed(*section).is_some_and(|(offset, _)| offset < floor))
    }

    /// The lowest fixed block that is still to come in a section: offset, block.
    pub(super) fn next_fixed(&self, section: usize) -> Option<(u64, usize)> {
        self.fixed.get(section)?.last().copied()
    }

    /// The offset of the lowest fixed block that is still to come in any of these sections.
    pub(super) fn ceiling(&self, sections: Range<usize>) -> u64 {
        if !self.has_fixed {
            return DONE;
        }
        let fixed = self.fixed.part(sections).iter().filter_map(|fixed| fixed.last());
        fixed.map(|(offset, _)| *offset).min().unwrap_or(DONE)
    }

    /// The blocks still to come that start in these sections, in their order.
    pub(super) fn starting(&self, sections: Range<usize>) -> impl Iterator<Item = usize> {
        let marks = self.blocks.len();
        let mut at = self.after.at(marks + sections.start);
        let stop = marks + sections.end;
        std::iter::from_fn(move || {
            while at >= marks && at < stop {
                at = self.after.at(at);
            }
            let found = (at < marks).then_some(at)?;
            at = self.after.at(at);
            Some(found)
        })
    }

    /// Whether a block may lie on a valley's floor.
    pub(super) fn fits(&self, index: usize, valley: &Valley) -> bool {
        let block = self.block(index);
        if block.end > valley.end {
            return false;
        }
        let offset = align_up(valley.floor, block.alignment);
        // One that lies as high as a wall for its alignment is looked at again once the valley is filled to there.
        if offset >= valley.left.min(valley.right) || block.fixed.is_some() {
            return false;
        }
        !self.has_fixed || offset.saturating_add(block.size) <= self.ceiling(block.sections())
    }
}

/// The blocks in their order with the marks of the sections between: what comes after each, and what before.
fn ring(blocks: &Row<Block>, sections: usize) -> (Row<usize>, Row<usize>) {
    let mut order = Vec::with_capacity(blocks.len() + sections + 1);
    let mut in_order = blocks.as_slice().iter().enumerate().peekable();
    for section in 0..=sections {
        order.push(blocks.len() + section);
        while let Some((index, _)) = in_order.next_if(|(_, block)| block.start <= section) {
            order.push(index);
        }
    }
    let mut after = Row::new(0, order.len());
    let mut before = Row::new(0, order.len());
    for pair in order.windows(2) {
        if let &[one, next] = pair {
            after.put(one, next);
            before.put(next, one);
        }
    }
    (after, before)
}
