//! One descent: looks for a layout below a given height, deciding from the bottom up what lies on the floor.
//!
//! The floor of a section is the end of the highest block that was placed in it; what is still to come lies above. A valley
//! is a run of sections with one floor between higher floors, its walls. A block that fits between the walls can lie on the
//! valley's floor; one that reaches further has to lie above a wall. So in any layout that can't be pressed down, either some
//! block that fits lies on the floor, or the valley stays empty up to the lower wall.
//!
//! Decisions are made at one section of one valley, where the least room is left to waste: a branch for each block that
//! can lie there, and one for none of them. A section whose floor and bytes still to come exceed the height ends a branch.
//! Nothing else is cut off, so that a descent that has tried all of them has shown that there is no such layout.

use std::ops::Range;

use super::budget::Budget;
use super::rows::Row;
use super::skyline::{Block, DONE, Skyline, Valley};
use super::tactics::Tactics;
use crate::plan::problem::align_up;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Found,
    /// There is no layout of that height.
    Impossible,
    /// The descent's own limit or the whole budget was reached.
    Unknown,
}

/// No layout below the height begins like this.
struct DeadEnd;

/// A decision: which of the candidates lies on a valley's floor in `section`.
struct Choice {
    floor: u64,
    section: usize,
    /// Where that section's floor is if none of them does.
    raised: u64,
    candidates: Range<usize>,
    next: usize,
    placed: Option<usize>,
    mark: usize,
}

pub(super) struct Descent<'p> {
    skyline: Skyline<'p>,
    height: u64,
    /// The least height at which a branch that was ended for lack of room would have gone on.
    need: u64,
    tactics: &'p Tactics,
    /// How often each section ended a branch.
    blame: Row<f64>,
    /// The candidates of all choices that are open, the best of each first.
    candidates: Vec<usize>,
    keyed: Vec<(f64, usize)>,
    cover: Row<i64>,
}

impl<'p> Descent<'p> {
    pub(super) fn new(
        blocks: &'p Row<Block>,
        sections: usize,
        base: u64,
        height: u64,
        tactics: &'p Tactics,
    ) -> Self {
        Self {
            skyline: Skyline::new(blocks, sections, base),
            height,
            need: u64::MAX,
            tactics,
            blame: Row::new(1.0, sections),
            candidates: Vec::new(),
            keyed: Vec::new(),
            cover: Row::default(),
        }
    }

    /// The offsets of a layout that was found.
    pub(super) fn into_offsets(self) -> Vec<u64> {
        self.skyline.into_offsets()
    }

    /// After all was tried in vain: the least height of which that does not show that there is no such layout.
    pub(super) fn least_need(&self) -> u64 {
        self.need
    }

    /// Descends until a layout is found or all are tried, or until `limit` placements were tried.
    pub(super) fn run(&mut self, limit: u64, budget: &mut Budget<'_>) -> Outcome {
        let mut choices = Vec::new();
        match self.choose() {
            Ok(Some(choice)) => choices.push(choice),
            outcome => {
                // Without a decision it is paid for, too, so that no row of these goes on for ever.
                budget.spend(self.skyline.sections());
                return if outcome.is_ok() { Outcome::Found } else { Outcome::Impossible };
            }
        }
        let mut tried = 0;
        while let Some(choice) = choices.last_mut() {
            self.skyline.take_back(choice.mark, choice.placed.take());
            self.candidates.truncate(choice.candidates.end);
            if !self.decide(choice) {
                self.candidates.truncate(choice.candidates.start);
                choices.pop();
                continue;
            }
            tried += 1;
            if tried > limit || !budget.spend(self.skyline.sections()) {
                return Outcome::Unknown;
            }
            match self.choose() {
                Ok(Some(choice)) => choices.push(choice),
                Ok(None) => return Outcome::Found,
                Err(DeadEnd) => {}
            }
        }
        Outcome::Impossible
    }

    /// Makes the next decision of a choice. False: there is none left.
    fn decide(&mut self, choice: &mut Choice) -> bool {
        while choice.next < choice.candidates.end {
            let Some(&index) = self.candidates.get(choice.next) else { return false };
            choice.next += 1;
            let block = self.skyline.block(index);
            let offset = align_up(choice.floor, block.alignment);
            if self.has_room(block.sections(), offset).is_ok() {
                self.skyline.place(index, offset);
                choice.placed = Some(index);
                return true;
            }
        }
        if choice.next == choice.candidates.end {
            choice.next += 1;
            let (section, raised) = (choice.section, choice.raised);
            if self.has_room(section..section + 1, raised).is_ok() {
                self.skyline.set_floor(section, raised);
                return true;
            }
        }
        false
    }

    /// Whether what is still to come in these sections fits above a floor.
    fn has_room(&mut self, sections: Range<usize>, floor: u64) -> Result<(), DeadEnd> {
        for section in sections {
            if floor == DONE {
                return Err(self.blame(section));
            }
            let need = floor.saturating_add(self.skyline.rest(section));
            if need > self.height {
                self.need = need.min(self.need);
                return Err(self.blame(section));
            }
        }
        Ok(())
    }

    fn blame(&mut self, section: usize) -> DeadEnd {
        self.blame.put(section, self.blame.at(section) + 1.0);
        DeadEnd
    }

    /// The next decision; none where everything is placed.
    fn choose(&mut self) -> Result<Option<Choice>, DeadEnd> {
        match self.valley()? {
            Some(valley) if valley.ceiling == valley.floor => self.fixed_choice(&valley).map(Some),
            Some(valley) => Ok(Some(self.choice(&valley))),
            None => Ok(None),
        }
    }

    /// Fills every valley that no block fits into, and picks one of the others.
    fn valley(&mut self) -> Result<Option<Valley>, DeadEnd> {
        'fill: loop {
            let mut best: Option<((f64, u64), Valley)> = None;
            let (mut start, mut left) = (0, DONE);
            while start < self.skyline.sections() {
                let (end, floor) = self.skyline.level(start);
                let right = self.skyline.floor(end);
                if let Some(section) = self.skyline.above_fixed(start..end, floor) {
                    return Err(self.blame(section));
                }
                if left > floor && right > floor {
                    let ceiling = self.skyline.ceiling(start..end);
                    let valley = Valley { start, end, floor, left, right, ceiling };
                    let skyline = &self.skyline;
                    let mut starting = skyline.starting(valley.sections());
                    if ceiling > floor && !starting.any(|index| skyline.fits(index, &valley)) {
                        drop(starting);
                        self.fill(&valley)?;
                        continue 'fill;
                    }
                    drop(starting);
                    let urgency = self.urgency(&valley);
                    if best.as_ref().is_none_or(|(least, _)| urgency < *least) {
                        best = Some((urgency, valley));
                    }
                }
                (start, left) = (end, floor);
            }
            return Ok(best.map(|(_, valley)| valley));
        }
    }

    fn fill(&mut self, valley: &Valley) -> Result<(), DeadEnd> {
        let wall = valley.wall();
        self.has_room(valley.sections(), wall)?;
        valley.sections().for_each(|section| self.skyline.set_floor(section, wall));
        Ok(())
    }

    /// The bytes that a section may still waste.
    fn slack(&self, section: usize, floor: u64) -> f64 {
        self.height.saturating_sub(floor).saturating_sub(self.skyline.rest(section)) as f64
    }

    /// The less, the sooner a valley is looked at: the least slack first, and the lowest of those.
    fn urgency(&self, valley: &Valley) -> (f64, u64) {
        let keys = valley.sections().map(|section| {
            let slack = self.slack(section, valley.floor);
            if self.tactics.weighs_blame { (slack + 1.0) / self.blame.at(section) } else { slack }
        });
        (keys.fold(f64::INFINITY, f64::min), valley.floor)
    }

    /// The decision at the most urgent section of a valley that some block fits into.
    fn choice(&mut self, valley: &Valley) -> Choice {
        let (first, floor) = (self.candidates.len(), valley.floor);
        let cover = &mut self.cover;
        *cover = Row::new(0, valley.end - valley.start + 1);
        for index in self.skyline.starting(valley.sections()) {
            if self.skyline.fits(index, valley) {
                let block = self.skyline.block(index);
                let (start, end) = (block.start - valley.start, block.end - valley.start);
                cover.put(start, cover.at(start) + 1);
                cover.put(end, cover.at(end) - 1);
                self.candidates.push(index);
            }
        }
        let (mut section, mut least, mut covers) = (valley.start, f64::INFINITY, 0);
        for at in valley.sections() {
            covers += self.cover.at(at - valley.start);
            let key = (self.slack(at, floor) + 1.0) / self.blame.at(at);
            if covers > 0 && key < least {
                (section, least) = (at, key);
            }
        }

        let mut raised = valley.wall();
        self.keyed.clear();
        let mut last = None;
        for &index in self.candidates.get(first..).unwrap_or_default() {
            let block = self.skyline.block(index);
            let top = align_up(floor, block.alignment) + block.size;
            if !block.sections().contains(&section) {
                raised = raised.min(top);
            } else if last != Some(block) {
                // Of those that are alike, one.
                last = Some(block);
                let is_flush = (block.start == valley.start && top == valley.left)
                    || (block.end == valley.end && top == valley.right);
                let favour = if is_flush { self.tactics.flush } else { 1.0 };
                self.keyed.push((self.tactics.weights.at(index) * favour, index));
            }
        }
        self.keyed.sort_by(|a, b| b.0.total_cmp(&a.0));
        self.candidates.truncate(first);
        self.candidates.extend(self.keyed.iter().map(|(_, index)| *index));
        let candidates = first..self.candidates.len();
        Choice { floor, section, raised, next: first, candidates, placed: None, mark: self.skyline.mark() }
    }

    /// The floor has come to a fixed block, which has to lie there.
    fn fixed_choice(&mut self, valley: &Valley) -> Result<Choice, DeadEnd> {
        let first = self.candidates.len();
        for section in valley.sections() {
            let Some((offset, index)) = self.skyline.next_fixed(section) else { continue };
            if offset != valley.floor {
                continue;
            }
            let block = self.skyline.block(index);
            if block.start < valley.start || block.end > valley.end {
                return Err(self.blame(section));
            }
            self.candidates.push(index);
            let (floor, mark, candidates) = (valley.floor, self.skyline.mark(), first..first + 1);
            return Ok(Choice { floor, section, raised: DONE, next: first, candidates, placed: None, mark });
        }
        Err(DeadEnd)
    }
}
