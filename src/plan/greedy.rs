//! The first rung: buffers one after another, each in a gap that its neighbours in time leave.

use super::heights::{Heights, totals};
use super::problem::{Item, Problem};

/// In which order buffers are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// The largest first.
    Size,
    /// The largest product of size and lifetime first.
    Area,
    /// The longest lived first.
    Lifetime,
    /// The earliest first.
    Start,
    /// First what is live when the most bytes are.
    Contention,
}

/// Which gap is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The lowest.
    First,
    /// The smallest; the lowest of these.
    Best,
}

pub(super) const RULES: [(Order, Fit); 10] = [
    (Order::Size, Fit::First),
    (Order::Area, Fit::First),
    (Order::Lifetime, Fit::First),
    (Order::Start, Fit::First),
    (Order::Contention, Fit::First),
    (Order::Size, Fit::Best),
    (Order::Area, Fit::Best),
    (Order::Lifetime, Fit::Best),
    (Order::Start, Fit::Best),
    (Order::Contention, Fit::Best),
];

/// Offsets, one an item, and the end of the last byte.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) offsets: Vec<u64>,
    pub(super) peak: u64,
}

impl Layout {
    pub(super) fn new(items: &[Item], offsets: Vec<u64>) -> Self {
        let ends = items.iter().zip(&offsets).map(|(item, offset)| offset.saturating_add(item.size));
        let peak = ends.max().unwrap_or(0);
        Self { offsets, peak }
    }
}

/// How many neighbours all orders together may look at. Crowds of more than some five thousand buffers that all meet need
/// more; what is left of them by then is not fitted into gaps.
pub(super) const MOST_VISITS: usize = 1 << 27;
/// How many are looked at between two looks at the clock.
const VISITS_A_LOOK: usize = 1 << 16;

/// Places every item. Once `is_over` says so, or `visits` are used up, each item that is left goes on top of what it meets,
/// and the answer is a valid layout still.
pub(super) fn place(
    problem: &Problem,
    order: Order,
    fit: Fit,
    visits: &mut usize,
    mut is_over: impl FnMut() -> bool,
) -> Layout {
    let items = &problem.items;
    let mut offsets: Vec<u64> = items.iter().map(|item| item.fixed.unwrap_or(0)).collect();
    let mut neighbours = Neighbours::new(problem.sections);
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.fixed.is_some()) {
        neighbours.add(index, item);
    }
    let order = ordered(problem, order);
    let mut found = Vec::new();
    let (mut until_look, mut placed) = (0, 0);
    for (count, &index) in order.iter().enumerate() {
        let Some(item) = items.get(index) else { continue };
        if *visits == 0 {
            break;
        }
        if count % 64 == 63 || until_look == 0 {
            if is_over() {
                break;
            }
            until_look = VISITS_A_LOOK;
        }
        found.clear();
        neighbours.each(item, |other| {
            if let (Some(other), Some(offset)) = (items.get(other), offsets.get(other)) {
                found.push((*offset, offset.saturating_add(other.size)));
            }
        });
        *visits = visits.saturating_sub(found.len());
        until_look = until_look.saturating_sub(found.len());
        found.sort_unstable();
        neighbours.add(index, item);
        if let Some(place) = offsets.get_mut(index) {
            *place = gap(&found, item, fit);
        }
        placed = count + 1;
    }
    let (placed, left) = order.split_at(placed);
    if !left.is_empty() {
        stack(problem, placed, left, &mut offsets);
    }
    Layout::new(items, offsets)
}

/// Puts each of `left` on top of what it meets, in O(log n).
fn stack(problem: &Problem, placed: &[usize], left: &[usize], offsets: &mut [u64]) {
    let items = &problem.items;
    let mut tops = Heights::new(problem.sections);
    let fixed = (0..items.len()).filter(|index| items.get(*index).is_some_and(|item| item.fixed.is_some()));
    for index in fixed.chain(placed.iter().copied()) {
        if let (Some(item), Some(offset)) = (items.get(index), offsets.get(index)) {
            tops.raise(item.sections.clone(), offset.saturating_add(item.size));
        }
    }
    for &index in left {
        if let (Some(item), Some(place)) = (items.get(index), offsets.get_mut(index)) {
            *place = item.align(tops.highest(item.sections.clone()));
            tops.raise(item.sections.clone(), place.saturating_add(item.size));
        }
    }
}

/// What has bytes and no fixed offset, in the order to place it in.
fn ordered(problem: &Problem, order: Order) -> Vec<usize> {
    let mut crowds = Heights::new(if order == Order::Contention { problem.sections } else { 0 });
    if order == Order::Contention {
        let sizes = problem.items.iter().map(|item| (item.sections.clone(), item.size));
        for (section, total) in totals(problem.sections, sizes).into_iter().enumerate() {
            crowds.raise(section..section + 1, total);
        }
    }
    let key = |item: &Item| -> u128 {
        let (size, steps) = (u128::from(item.size), u128::from(item.lifetime.end - item.lifetime.start));
        match order {
            Order::Size => size,
            Order::Area => size * steps,
            Order::Lifetime => steps,
            Order::Start => u128::from(u64::MAX - item.lifetime.start),
            Order::Contention => u128::from(crowds.highest(item.sections.clone())),
        }
    };
    let mut keyed: Vec<_> = problem.items.iter().enumerate().collect();
    keyed.retain(|(_, item)| item.size > 0 && item.fixed.is_none());
    let mut keyed: Vec<_> = keyed.into_iter().map(|(index, item)| (key(item), item.size, index)).collect();
    keyed.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then(a.2.cmp(&b.2)));
    keyed.into_iter().map(|(_, _, index)| index).collect()
}

/// The offset at which `item` goes among neighbours, which come in the order of their offsets.
fn gap(neighbours: &[(u64, u64)], item: &Item, fit: Fit) -> u64 {
    let mut free_from = 0;
    let mut best: Option<(u64, u64)> = None;
    for (start, end) in neighbours {
        let offset = item.align(free_from);
        if offset.saturating_add(item.size) <= *start {
            if fit == Fit::First {
                return offset;
            }
            let left = start - free_from - item.size;
            if best.is_none_or(|(least, _)| left < least) {
                best = Some((left, offset));
            }
        }
        free_from = free_from.max(*end);
    }
    best.map_or_else(|| item.align(free_from), |(_, offset)| offset)
}

/// Which placed items meet another in time: those that start within its sections, and those that are live at its first.
struct Neighbours {
    starting: Vec<Vec<u32>>,
    /// A segment tree over the sections; each item is noted at the nodes that make up its sections.
    live: Vec<Vec<u32>>,
    width: usize,
}

impl Neighbours {
    fn new(sections: usize) -> Self {
        let width = sections.max(1).next_power_of_two();
        Self { starting: vec![Vec::new(); sections], live: vec![Vec::new(); 2 * width], width }
    }

    fn add(&mut self, index: usize, item: &Item) {
        if item.sections.is_empty() {
            return;
        }
        let name = index as u32;
        if let Some(starting) = self.starting.get_mut(item.sections.start) {
            starting.push(name);
        }
        let (mut low, mut high) = (item.sections.start + self.width, item.sections.end + self.width);
        while low < high {
            if low % 2 == 1 {
                self.note(low, name);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                self.note(high, name);
            }
            low /= 2;
            high /= 2;
        }
    }

    fn note(&mut self, node: usize, name: u32) {
        if let Some(live) = self.live.get_mut(node) {
            live.push(name);
        }
    }

    fn each(&self, item: &Item, mut visit: impl FnMut(usize)) {
        let mut node = item.sections.start + self.width;
        while node > 0 {
            self.live.get(node).into_iter().flatten().for_each(|name| visit(*name as usize));
            node /= 2;
        }
        let later = item.sections.start + 1..item.sections.end;
        let later = self.starting.get(later).unwrap_or_default();
        later.iter().flatten().for_each(|name| visit(*name as usize));
    }
}
