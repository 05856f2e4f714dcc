//! Finds two slots that share bytes while both are live, in O(n log n): a sweep over time, with the live slots in a
//! segment tree over the addresses.

use std::ops::Range;

/// What the sweep looks at: bytes, steps (none: always), and a group whose members may share bytes.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub(super) bytes: Range<u64>,
    pub(super) lifetime: Option<Range<u64>>,
    pub(super) group: u32,
}

impl Placed {
    fn start(&self) -> u64 {
        self.lifetime.as_ref().map_or(0, |steps| steps.start)
    }

    fn clashes_with(&self, other: &Self) -> bool {
        self.group != other.group && self.bytes.start < other.bytes.end && other.bytes.start < self.bytes.end
    }
}

/// The first clash in the order of time, as the places of the two in `slots`, the smaller first.
pub(super) fn first_clash(slots: &[Placed]) -> Option<(usize, usize)> {
    let mut addresses: Vec<u64> = slots
        .iter()
        .filter(|slot| !slot.bytes.is_empty())
        .flat_map(|slot| [slot.bytes.start, slot.bytes.end])
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    let position = |address: u64| addresses.partition_point(|known| *known < address);
    let mut live = Live::new(addresses.len());

    // What ends at a step has made room for what starts there.
    let mut starts: Vec<usize> = (0..slots.len()).collect();
    starts.retain(|index| slots.get(*index).is_some_and(|slot| !slot.bytes.is_empty()));
    let mut ends = starts.clone();
    let slot = |index: usize| slots.get(index);
    starts.sort_by_key(|index| (slot(*index).map(Placed::start), *index));
    let end = |index: usize| {
        slot(index).and_then(|slot| slot.lifetime.as_ref()).map_or(u64::MAX, |steps| steps.end)
    };
    ends.retain(|index| slot(*index).is_some_and(|slot| slot.lifetime.is_some()));
    ends.sort_by_key(|index| (end(*index), *index));

    let mut ends = ends.into_iter().peekable();
    for &index in &starts {
        let Some(new) = slot(index) else { continue };
        while let Some(over) = ends.next_if(|over| end(*over) <= new.start()) {
            let Some(over) = slot(over) else { continue };
            live.change(&(position(over.bytes.start)..position(over.bytes.end)), over.group, false);
        }
        let place = position(new.bytes.start)..position(new.bytes.end);
        if live.has_other_than(&place, new.group) {
            // Once, to name it.
            let is_live = |other: usize| end(other) > new.start();
            let earlier = starts.iter().copied().take_while(|other| *other != index);
            let clash = earlier
                .filter(|other| is_live(*other) && slot(*other).is_some_and(|other| other.clashes_with(new)));
            return clash.min().map(|other| (other.min(index), other.max(index)));
        }
        live.change(&place, new.group, true);
    }
    None
}

/// The groups of the live slots, by address: a segment tree whose inner nodes know the least and the greatest group that
/// is live anywhere below.
struct Live {
    width: usize,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
struct Node {
    /// How many slots cover all of this node and are noted at it. They are of one group, or there was a clash.
    covers: u32,
    group: u32,
    least: u32,
    greatest: u32,
}

impl Node {
    const EMPTY: Self = Self { covers: 0, group: 0, least: u32::MAX, greatest: 0 };

    fn has_other_than(&self, group: u32) -> bool {
        self.least <= self.greatest && (self.least != group || self.greatest != group)
    }
}

impl Live {
    fn new(places: usize) -> Self {
        let width = places.max(1).next_power_of_two();
        Self { width, nodes: vec![Node::EMPTY; 2 * width] }
    }

    fn node(&self, index: usize) -> Node {
        self.nodes.get(index).copied().unwrap_or(Node::EMPTY)
    }

    /// The nodes that make up a range, from the leaves up.
    fn parts(&self, range: &Range<usize>, mut part: impl FnMut(usize)) {
        let (mut low, mut high) = (range.start + self.width, range.end + self.width);
        while low < high {
            if low % 2 == 1 {
                part(low);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                part(high);
            }
            low /= 2;
            high /= 2;
        }
    }

    fn has_other_than(&self, range: &Range<usize>, group: u32) -> bool {
        let mut found = false;
        self.parts(range, |index| {
            found |= self.node(index).has_other_than(group);
            let mut above = index / 2;
            while above > 0 {
                let node = self.node(above);
                found |= node.covers > 0 && node.group != group;
                above /= 2;
            }
        });
        found
    }

    fn change(&mut self, range: &Range<usize>, group: u32, is_added: bool) {
        let mut changed = [0; 2 * usize::BITS as usize];
        let mut count = 0;
        self.parts(range, |index| {
            if let Some(place) = changed.get_mut(count) {
                *place = index;
                count += 1;
            }
        });
        for &index in changed.iter().take(count) {
            if let Some(node) = self.nodes.get_mut(index) {
                node.group = group;
                node.covers = if is_added { node.covers + 1 } else { node.covers.saturating_sub(1) };
            }
            let mut index = index;
            while index > 0 {
                self.update(index);
                index /= 2;
            }
        }
    }

    fn update(&mut self, index: usize) {
        let (mut least, mut greatest) = (u32::MAX, 0);
        if index < self.width {
            for below in [self.node(2 * index), self.node(2 * index + 1)] {
                least = least.min(below.least);
                greatest = greatest.max(below.greatest);
            }
        }
        if let Some(node) = self.nodes.get_mut(index) {
            if node.covers > 0 {
                least = least.min(node.group);
                greatest = greatest.max(node.group);
            }
            (node.least, node.greatest) = (least, greatest);
        }
    }
}
