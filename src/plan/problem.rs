//! Buffers as a planner works with them: checked, what shares bytes taken together, time cut into sections.

use std::collections::HashMap;
use std::ops::Range;

use super::builder::roots;
use super::overlap::{Placed, first_clash};
use super::{Buffer, MemoryPlan, NodeOrPlan, PlanFault, Slot};
use crate::error::Result;

/// A buffer with all that share its bytes. Sizes and offsets are bytes.
#[derive(Debug, Clone)]
pub(super) struct Item {
    /// When any of them is live; all of the run for what is pinned.
    pub(super) lifetime: Range<u64>,
    pub(super) size: u64,
    pub(super) alignment: u64,
    pub(super) fixed: Option<u64>,
    /// The sections of the problem in which it is live. Two items meet where these do.
    pub(super) sections: Range<usize>,
}

impl Item {
    /// The first offset from `offset` on that the item may have. No plan reaches the end of 64 bits.
    pub(super) fn align(&self, offset: u64) -> u64 {
        align_up(offset, self.alignment)
    }
}

/// The next multiple of a power of two. What is planned keeps below 63 bits.
pub(super) fn align_up(offset: u64, alignment: u64) -> u64 {
    offset.saturating_add(alignment - 1) & !(alignment - 1)
}

/// Items in an order that depends on the buffers' ids alone, so that a plan does not depend on the order that they come in.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) items: Vec<Item>,
    /// A step of time is in none of these or one. In each there is a moment at which all that touch it are live, and none has
    /// only such as another has.
    pub(super) sections: usize,
    /// Every offset is a multiple of this power of two.
    pub(super) grain: u64,
    /// The least alignment that was asked for.
    alignment: u64,
    /// The buffers in the order of their ids, as places in the list that was given, and the item of each.
    order: Vec<(usize, usize)>,
    /// The first buffer of each item, as a place in that list.
    first: Vec<usize>,
}

impl Problem {
    pub(super) fn new(buffers: &[Buffer], alignment: u64) -> Result<Self> {
        if !alignment.is_power_of_two() {
            return PlanFault::Alignment { node: NodeOrPlan::Plan, alignment }.refuse();
        }
        let mut sorted: Vec<(usize, &Buffer)> = buffers.iter().enumerate().collect();
        sorted.sort_by_key(|(_, buffer)| buffer.id);
        for pair in sorted.windows(2) {
            if let [(_, one), (_, other)] = pair
                && one.id == other.id
            {
                return PlanFault::Duplicate { node: one.id }.refuse();
            }
        }
        let sorted_buffers: Vec<&Buffer> = sorted.iter().map(|(_, buffer)| *buffer).collect();
        let roots = check(&sorted_buffers)?;
        let start = buffers.iter().map(|buffer| buffer.lifetime.start).min().unwrap_or(0);
        let end = buffers.iter().map(|buffer| buffer.lifetime.end).max().unwrap_or(0);

        let mut items: Vec<Item> = Vec::new();
        let mut item_of_root = HashMap::new();
        let mut order = Vec::with_capacity(buffers.len());
        let mut first = Vec::new();
        for ((given, buffer), root) in sorted.iter().zip(&roots) {
            let item = *item_of_root.entry(*root).or_insert(items.len());
            order.push((*given, item));
            let lifetime = if buffer.pinned { start..end } else { buffer.lifetime.clone() };
            let alignment = buffer.alignment.max(alignment);
            let Some(known) = items.get_mut(item) else {
                let (size, fixed) = (buffer.size, buffer.offset);
                items.push(Item { lifetime, size, alignment, fixed, sections: 0..0 });
                first.push(*given);
                continue;
            };
            known.lifetime.start = known.lifetime.start.min(lifetime.start);
            known.lifetime.end = known.lifetime.end.max(lifetime.end);
            known.size = known.size.max(buffer.size);
            known.alignment = known.alignment.max(alignment);
            known.fixed = known.fixed.or(buffer.offset);
        }
        // What has no bytes meets nobody.
        let live = |item: &Item| if item.size > 0 { item.lifetime.clone() } else { 0..0 };
        let (sections, cuts) = cut(&items.iter().map(live).collect::<Vec<_>>());
        items.iter_mut().zip(cuts).for_each(|(item, cut)| item.sections = cut);
        let grain = items.iter().filter(|item| item.size > 0).map(|item| item.alignment).min().unwrap_or(1);
        let problem = Self { items, sections, grain, alignment, order, first };
        problem.check_room(buffers)?;
        problem.check_fixed(buffers)?;
        Ok(problem)
    }

    /// The node that an item is called by.
    fn node(&self, buffers: &[Buffer], item: usize) -> u64 {
        let buffer = self.first.get(item).and_then(|first| buffers.get(*first));
        buffer.map_or(0, |buffer| buffer.id)
    }

    /// Wherever items are put, one above another, no offset overflows.
    fn check_room(&self, buffers: &[Buffer]) -> Result<()> {
        let (mut highest, mut sum): (u64, u64) = (0, 0);
        for (index, item) in self.items.iter().enumerate() {
            let room = item.size.checked_add(item.alignment).and_then(|room| sum.checked_add(room));
            let end = item.fixed.map_or(Some(0), |offset| offset.checked_add(item.size));
            let end = end.map(|end| end.max(highest));
            match room.zip(end) {
                Some((room, end)) if room.checked_add(end).is_some_and(|all| all <= i64::MAX as u64) => {
                    (sum, highest) = (room, end);
                }
                _ => return PlanFault::TooLarge { node: self.node(buffers, index) }.refuse(),
            }
        }
        Ok(())
    }

    fn check_fixed(&self, buffers: &[Buffer]) -> Result<()> {
        let mut fixed = Vec::new();
        let mut placed = Vec::new();
        for (index, item) in self.items.iter().enumerate() {
            let Some(offset) = item.fixed else { continue };
            let slot = Slot::new(self.node(buffers, index), offset, item.size).live(item.lifetime.clone());
            if offset % item.alignment != 0 {
                return PlanFault::Misaligned { slot, alignment: item.alignment }.refuse();
            }
            let (bytes, lifetime) = (offset..slot.checked_end(), slot.lifetime.clone());
            placed.push(Placed { bytes, lifetime, group: index as u32 });
            fixed.push(slot);
        }
        match first_clash(&placed).map(|(first, second)| (fixed.get(first), fixed.get(second))) {
            Some((Some(first), Some(second))) => {
                PlanFault::Overlap { first: first.clone(), second: second.clone() }.refuse()
            }
            _ => Ok(()),
        }
    }

    /// The plan that puts each item at its offset.
    pub(super) fn plan(&self, buffers: &[Buffer], offsets: &[u64]) -> Result<MemoryPlan> {
        let slots = self.order.iter().filter_map(|(given, item)| {
            let (buffer, offset) = (buffers.get(*given)?, *offsets.get(*item)?);
            let slot = Slot::new(buffer.id, offset, buffer.size).aligned(buffer.alignment);
            Some(Slot {
                lifetime: (!buffer.pinned).then(|| buffer.lifetime.clone()),
                alias_of: buffer.alias_of,
                name: buffer.name.clone(),
                ..slot
            })
        });
        MemoryPlan::builder().alignment(self.alignment).slots(slots).build()
    }
}

/// Checks what can be said of buffers before they are planned. Answers the end of each one's chain of aliases.
fn check(buffers: &[&Buffer]) -> Result<Vec<usize>> {
    let position = |id: u64| buffers.binary_search_by_key(&id, |buffer| buffer.id).ok();
    let mut targets = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        let node = buffer.id;
        if !buffer.alignment.is_power_of_two() {
            let alignment = buffer.alignment;
            return PlanFault::Alignment { node: NodeOrPlan::Node(node), alignment }.refuse();
        }
        if buffer.lifetime.is_empty() {
            return PlanFault::Lifetime { node, lifetime: buffer.lifetime.clone() }.refuse();
        }
        let Some(alias_of) = buffer.alias_of else {
            targets.push(None);
            continue;
        };
        let Some((place, target)) = position(alias_of).and_then(|place| Some((place, *buffers.get(place)?)))
        else {
            return PlanFault::UnknownAlias { node, alias_of }.refuse();
        };
        if buffer.size > target.size {
            let (size, target_size) = (buffer.size, target.size);
            return PlanFault::AliasTooLarge { node, size, alias_of, target_size }.refuse();
        }
        targets.push(Some(place));
    }
    let roots = match roots(&targets) {
        Ok(roots) => roots,
        Err(index) => {
            let node = buffers.get(index).map_or(0, |buffer| buffer.id);
            return PlanFault::AliasCycle { node }.refuse();
        }
    };
    let mut fixed: HashMap<usize, &Buffer> = HashMap::new();
    for (buffer, root) in buffers.iter().zip(&roots) {
        let Some(offset) = buffer.offset else { continue };
        let other = *fixed.entry(*root).or_insert(*buffer);
        match other.offset {
            Some(other_offset) if other_offset != offset => {
                let (node, other) = (buffer.id, other.id);
                return PlanFault::FixedApart { node, offset, other, other_offset }.refuse();
            }
            _ => {}
        }
    }
    Ok(roots)
}

/// Cuts time so that each section stands for a moment with the most spans live: one that ends where a span ends, after
/// another has started. Answers how many there are, and those of each span. Two spans meet where their sections do.
pub(super) fn cut<T: Ord + Copy>(spans: &[Range<T>]) -> (usize, Vec<Range<usize>>) {
    // At the same step, what ends comes first.
    let mut events: Vec<(T, bool, usize)> = Vec::with_capacity(2 * spans.len());
    for (index, span) in spans.iter().enumerate().filter(|(_, span)| !span.is_empty()) {
        events.push((span.start, true, index));
        events.push((span.end, false, index));
    }
    events.sort_unstable();
    let mut cuts = vec![0..0; spans.len()];
    let (mut sections, mut has_started) = (0, false);
    for (_, is_start, index) in events {
        let Some(cut) = cuts.get_mut(index) else { continue };
        if is_start {
            cut.start = sections;
            has_started = true;
        } else {
            if has_started {
                sections += 1;
                has_started = false;
            }
            cut.end = sections;
        }
    }
    (sections, cuts)
}
