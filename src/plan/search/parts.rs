//! Cuts a problem into parts that know nothing of each other.
//!
//! Where no item is live across a moment, the items before it and those after it share no step: each part has all addresses
//! to itself. What is live for all of a part's time can lie at its bottom, and what is left may fall apart again.

use super::rows::Row;
use super::skyline::Block;
use crate::plan::heights::totals;
use crate::plan::problem::{Item, Problem, align_up, cut};

/// Items that are placed by themselves, above `base`.
pub(super) struct Part {
    /// The items, in the order of the blocks.
    pub(super) items: Vec<usize>,
    pub(super) blocks: Row<Block>,
    pub(super) sections: usize,
    /// The bytes live by section.
    pub(super) totals: Vec<u64>,
    pub(super) base: u64,
}

pub(super) struct Parts {
    pub(super) parts: Vec<Part>,
    /// Items that lie at the bottom of what they are live for, and where.
    pub(super) bottom: Vec<(usize, u64)>,
    /// Whether the best of the parts make up the best of all: where alignments differ, other items at the bottom may waste
    /// less.
    pub(super) is_exact: bool,
}

/// How often parts are cut again.
const ROUNDS: usize = 256;

/// None where `is_over` says so before it is done.
pub(super) fn split(problem: &Problem, mut is_over: impl FnMut() -> bool) -> Option<Parts> {
    let items = &problem.items;
    let is_alike = items.iter().all(|item| item.size == 0 || item.alignment == problem.grain);
    let is_fixed = items.iter().any(|item| item.fixed.is_some());
    let all = (0..items.len()).filter(|index| items.get(*index).is_some_and(|item| item.size > 0));
    let mut found = Parts { parts: Vec::new(), bottom: Vec::new(), is_exact: true };
    let mut open: Vec<(Vec<usize>, u64, usize)> = vec![(all.collect(), 0, 0)];
    while let Some((members, base, round)) = open.pop() {
        if is_over() {
            return None;
        }
        for group in apart(items, members) {
            let whole = span(items, &group);
            let lies_below = |index: &usize| {
                !is_fixed && round < ROUNDS && items.get(*index).is_some_and(|item| item.sections == whole)
            };
            let (mut below, rest): (Vec<usize>, Vec<usize>) = group.into_iter().partition(lies_below);
            if below.is_empty() {
                found.parts.push(Part::new(problem, rest, base));
                continue;
            }
            found.is_exact &= is_alike;
            below.sort_by_key(|index| {
                std::cmp::Reverse(items.get(*index).map(|item| (item.alignment, item.size)))
            });
            let mut top = base;
            for index in below {
                let Some(item) = items.get(index) else { continue };
                let offset = item.align(top);
                found.bottom.push((index, offset));
                top = align_up(offset.saturating_add(item.size), problem.grain);
            }
            if !rest.is_empty() {
                open.push((rest, top, round + 1));
            }
        }
    }
    Some(found)
}

/// The sections from the first to the last of any member.
fn span(items: &[Item], members: &[usize]) -> std::ops::Range<usize> {
    let sections = members.iter().filter_map(|index| items.get(*index)).map(|item| &item.sections);
    let start = sections.clone().map(|sections| sections.start).min().unwrap_or(0);
    start..sections.map(|sections| sections.end).max().unwrap_or(0)
}

/// Groups that share no section with each other, in the order of time.
fn apart(items: &[Item], mut members: Vec<usize>) -> Vec<Vec<usize>> {
    let sections = |index: &usize| items.get(*index).map_or(0..0, |item| item.sections.clone());
    members.sort_by_key(|index| (sections(index).start, *index));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut reach = 0;
    for index in members {
        let of_item = sections(&index);
        match groups.last_mut() {
            Some(group) if of_item.start < reach => group.push(index),
            _ => groups.push(vec![index]),
        }
        reach = reach.max(of_item.end);
    }
    groups
}

impl Part {
    fn new(problem: &Problem, members: Vec<usize>, base: u64) -> Self {
        let items = members.iter().filter_map(|index| problem.items.get(*index));
        let (sections, cuts) = cut(&items.clone().map(|item| item.sections.clone()).collect::<Vec<_>>());
        let block = |(item, cut): (&Item, std::ops::Range<usize>)| Block {
            start: cut.start,
            end: cut.end,
            size: align_up(item.size, problem.grain),
            alignment: item.alignment,
            fixed: item.fixed,
        };
        let mut blocks: Vec<(Block, usize)> =
            items.zip(cuts).map(block).zip(members.iter().copied()).collect();
        blocks.sort_by_key(|(block, index)| (block.start, block.end, block.size, block.alignment, *index));
        let totals = totals(sections, blocks.iter().map(|(block, _)| (block.sections(), block.size)));
        let (blocks, items): (Vec<Block>, Vec<usize>) = blocks.into_iter().unzip();
        Self { items, blocks: blocks.into(), sections, totals, base }
    }

    /// The height that no layout is below.
    pub(super) fn bound(&self) -> u64 {
        let ends = self.blocks.as_slice().iter().filter_map(|block| Some(block.fixed? + block.size));
        let live = self.totals.iter().copied().max().unwrap_or(0).saturating_add(self.base);
        ends.max().unwrap_or(0).max(live)
    }
}
