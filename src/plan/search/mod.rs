//! The second rung: descents, one after another, each for a layout that is lower than the best so far.
//!
//! How low a descent aims is what makes it short: the lower, the sooner branches end. The search begins with the lower bound
//! itself, which many problems have a layout for; after each failure it aims higher, up to just below the best, and after
//! a success lower again. Once it has failed everywhere, it begins anew with more patience.

mod budget;
mod descent;
mod parts;
mod rows;
mod skyline;
mod tactics;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) use self::budget::Budget;
use self::descent::{Descent, Outcome};
use self::parts::{Part, split};
use self::tactics::{Random, Tactics};
use super::greedy::Layout;
use super::problem::{Problem, align_up};

/// Parts of more items are left as they are: a descent keeps its candidates at every level.
const MOST_BLOCKS: usize = 16_384;

/// A part, and how far the search has come with it.
struct Attempted {
    part: Part,
    /// The offsets of its blocks in the lowest layout that was found, and the height to get below.
    offsets: Option<Vec<u64>>,
    height: u64,
    /// The height that none is below.
    bound: u64,
    /// Where between the two the next descent aims.
    aim: f64,
    /// How many placements it may try.
    patience: u64,
}

/// What the search has come to.
pub(super) struct Found {
    /// A layout that is lower than the one that was known.
    pub(super) layout: Option<Layout>,
    /// Whether no layout is lower, as far as sizes are multiples of the grain.
    pub(super) is_least: bool,
}

/// Looks for a layout that is lower than `known`.
pub(super) fn improve(problem: &Problem, known: &Layout, seed: u64, budget: &mut Budget<'_>) -> Found {
    let grain = problem.grain;
    let Some(split) = split(problem, || budget.is_over()) else {
        return Found { layout: None, is_least: false };
    };
    let is_whole = split.bottom.is_empty();
    let limit = align_up(known.peak, grain);
    let mut parts: Vec<Attempted> = split.parts.into_iter().map(|part| Attempted::new(part, limit)).collect();
    if is_whole {
        // Each part lies in the known layout by itself.
        parts.iter_mut().for_each(|part| part.take_from(known, grain));
    }
    let end = |(index, offset): &(usize, u64)| {
        align_up(problem.items.get(*index).map_or(0, |item| offset.saturating_add(item.size)), grain)
    };
    let bottom = split.bottom.iter().map(end).max().unwrap_or(0);
    let mut random = Random::new(seed);
    // Lower than this, a part gains nothing. It only rises.
    let mut enough = parts.iter().map(|part| part.bound).max().unwrap_or(0).max(bottom);
    // The highest comes first.
    let key =
        |(index, part): (usize, &Attempted)| (part.height, Reverse(part.part.items.first().copied()), index);
    let mut open: BinaryHeap<_> = parts.iter().enumerate().map(key).collect();
    while let Some((_, _, index)) = open.pop() {
        if limit <= enough {
            break;
        }
        let Some(part) = parts.get_mut(index).filter(|part| part.is_open(enough)) else { continue };
        if !budget.has_steps() {
            break;
        }
        part.descend(&mut random, enough, grain, budget);
        enough = enough.max(part.bound);
        open.push(key((index, part)));
    }
    let height = parts.iter().map(|part| part.height).max().unwrap_or(0).max(bottom);
    let bound = parts.iter().map(|part| part.bound).max().unwrap_or(0).max(bottom);
    let layout = collect(problem, &parts, &split.bottom).filter(|layout| layout.peak < known.peak);
    Found { layout, is_least: split.is_exact && height == bound }
}

/// The layout of all parts; none as long as one of them has none.
fn collect(problem: &Problem, parts: &[Attempted], bottom: &[(usize, u64)]) -> Option<Layout> {
    let mut offsets: Vec<u64> = problem.items.iter().map(|item| item.fixed.unwrap_or(0)).collect();
    for (index, offset) in bottom {
        *offsets.get_mut(*index)? = *offset;
    }
    for part in parts {
        for (index, offset) in part.part.items.iter().zip(part.offsets.as_ref()?) {
            *offsets.get_mut(*index)? = *offset;
        }
    }
    Some(Layout::new(&problem.items, offsets))
}

impl Attempted {
    fn new(part: Part, height: u64) -> Self {
        let bound = part.bound();
        Self { part, offsets: None, height, bound, aim: 0.0, patience: 2000 }
    }

    /// Whether there is something to be gained from a lower layout, and a way to look for it.
    fn is_open(&self, enough: u64) -> bool {
        let is_wanted = self.height > enough || self.offsets.is_none();
        is_wanted && self.height > self.bound && self.part.blocks.len() <= MOST_BLOCKS
    }

    fn take_from(&mut self, known: &Layout, grain: u64) {
        let offsets = self.part.items.iter().map(|index| known.offsets.get(*index).copied());
        self.offsets = offsets.collect();
        self.measure(grain);
    }

    /// The height of its layout, rounded up as the blocks are.
    fn measure(&mut self, grain: u64) {
        let Some(offsets) = &self.offsets else { return };
        let ends = self.part.blocks.as_slice().iter().zip(offsets).map(|(block, offset)| offset + block.size);
        self.height = align_up(ends.max().unwrap_or(0), grain);
    }

    fn descend(&mut self, random: &mut Random, enough: u64, grain: u64, budget: &mut Budget<'_>) {
        let least = enough.max(self.bound);
        let most = self.height.saturating_sub(grain).max(least);
        let target = least + ((most - least) as f64 * self.aim) as u64 / grain * grain;
        let tactics = Tactics::draw(random, &self.part.blocks, &self.part.totals);
        let part = &self.part;
        let mut descent = Descent::new(&part.blocks, part.sections, part.base, target, &tactics);
        match descent.run(self.patience, budget) {
            Outcome::Found => {
                self.offsets = Some(descent.into_offsets());
                self.measure(grain);
                self.aim *= 0.5;
            }
            // What ended its branches is the same for every height up to where the first of them would go on.
            Outcome::Impossible => self.bound = descent.least_need().min(self.height),
            Outcome::Unknown => self.aim_higher(),
        }
    }

    fn aim_higher(&mut self) {
        self.aim = if self.aim < 0.05 { 0.1 } else { self.aim + (1.0 - self.aim) * 0.3 };
        if self.aim > 0.97 {
            self.aim = 0.0;
            self.patience = self.patience.saturating_mul(2);
        }
    }
}
