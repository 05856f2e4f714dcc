//! When a plan holds the most bytes that are live, and whose they are.

use std::cmp::Reverse;
use std::ops::Range;

use super::{MemoryPlan, Slot};

/// When a plan holds the most bytes that are live.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Busiest {
    /// The first steps of which that holds.
    pub steps: Range<u64>,
    /// How many bytes are live in them. What shares bytes on purpose counts once.
    pub bytes: u64,
}

impl MemoryPlan {
    /// When the most bytes are live, by the slots' lifetimes; none where no slot has one. It takes O(n log n).
    #[must_use]
    pub fn busiest(&self) -> Option<Busiest> {
        let mut live = Cover::new(self.slots());
        let mut events: Vec<(u64, bool, usize)> = Vec::new();
        for (index, slot) in self.iter().enumerate() {
            match &slot.lifetime {
                Some(steps) => {
                    events.push((steps.start, true, index));
                    events.push((steps.end, false, index));
                }
                None => live.change(slot, true),
            }
        }
        // At the same step, what ends comes first.
        events.sort_unstable();
        let mut found: Option<Busiest> = None;
        let mut is_open = false;
        for events in events.chunk_by(|one, next| one.0 == next.0) {
            let mut step = 0;
            for (at, is_start, index) in events {
                step = *at;
                if let Some(slot) = self.slots().get(*index) {
                    live.change(slot, *is_start);
                }
            }
            let bytes = live.covered();
            match &mut found {
                Some(busiest) if bytes <= busiest.bytes => {
                    if is_open {
                        busiest.steps.end = step;
                    }
                    is_open &= bytes == busiest.bytes;
                }
                _ => {
                    found = Some(Busiest { steps: step..step, bytes });
                    is_open = true;
                }
            }
        }
        found
    }

    /// The slots that hold the bytes that are live at a step, in the order of their offsets; without a step, those of all
    /// slots. What lies within another that is live and shares its bytes is left out.
    pub(super) fn holders(&self, step: Option<u64>) -> Vec<&Slot> {
        let is_live = |slot: &Slot| match (&slot.lifetime, step) {
            (Some(steps), Some(step)) => steps.contains(&step),
            _ => true,
        };
        let groups = self.groups();
        let mut live: Vec<(usize, &Slot)> = groups.into_iter().zip(self).collect();
        live.retain(|(_, slot)| slot.size > 0 && is_live(slot));
        live.sort_by_key(|(group, slot)| {
            (*group, slot.offset, Reverse(slot.checked_end()), slot.alias_of.is_some(), slot.node)
        });
        let mut reach = (usize::MAX, 0);
        live.retain(|(group, slot)| {
            let is_within = *group == reach.0 && slot.checked_end() <= reach.1;
            if !is_within {
                reach = (*group, slot.checked_end());
            }
            !is_within
        });
        let mut slots: Vec<&Slot> = live.into_iter().map(|(_, slot)| slot).collect();
        slots.sort_by_key(|slot| (slot.offset, slot.node));
        slots
    }
}

/// How many bytes are covered by slots that come and go: a segment tree over the addresses.
struct Cover {
    addresses: Vec<u64>,
    width: usize,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Default)]
struct Node {
    bytes: u64,
    /// How many slots cover all of it and are noted here.
    covers: usize,
    covered: u64,
}

impl Cover {
    fn new(slots: &[Slot]) -> Self {
        let mut addresses: Vec<u64> =
            slots.iter().flat_map(|slot| [slot.offset, slot.checked_end()]).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let width = addresses.len().max(1).next_power_of_two();
        let mut nodes = vec![Node::default(); 2 * width];
        for (node, pair) in nodes.iter_mut().skip(width).zip(addresses.windows(2)) {
            if let [start, end] = pair {
                node.bytes = end - start;
            }
        }
        let mut cover = Self { addresses, width, nodes };
        for index in (1..width).rev() {
            let bytes = cover.node(2 * index).bytes + cover.node(2 * index + 1).bytes;
            if let Some(node) = cover.nodes.get_mut(index) {
                node.bytes = bytes;
            }
        }
        cover
    }

    fn node(&self, index: usize) -> Node {
        self.nodes.get(index).copied().unwrap_or_default()
    }

    fn covered(&self) -> u64 {
        self.node(1).covered
    }

    fn change(&mut self, slot: &Slot, is_added: bool) {
        let place = |address: u64| self.addresses.partition_point(|known| *known < address) + self.width;
        let (mut low, mut high) = (place(slot.offset), place(slot.checked_end()));
        while low < high {
            if low % 2 == 1 {
                self.note(low, is_added);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                self.note(high, is_added);
            }
            low /= 2;
            high /= 2;
        }
    }

    fn note(&mut self, index: usize, is_added: bool) {
        if let Some(node) = self.nodes.get_mut(index) {
            node.covers = if is_added { node.covers + 1 } else { node.covers.saturating_sub(1) };
        }
        let mut index = index;
        while index > 0 {
            let below = if index < self.width {
                self.node(2 * index).covered + self.node(2 * index + 1).covered
            } else {
                0
            };
            if let Some(node) = self.nodes.get_mut(index) {
                node.covered = if node.covers > 0 { node.bytes } else { below };
            }
            index /= 2;
        }
    }
}
