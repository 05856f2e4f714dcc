//! The highest of what was raised in any of some sections: a segment tree over the sections.

use std::ops::Range;

/// A height for each section. Heights only rise, so that nothing has to be handed down the tree. Both operations take
/// O(log² n).
pub(super) struct Heights {
    width: usize,
    /// By node: the highest that all of it was raised to at once.
    all: Vec<u64>,
    /// By node: the highest in any of its sections, as far as it was raised at this node or below.
    any: Vec<u64>,
}

impl Heights {
    pub(super) fn new(sections: usize) -> Self {
        let width = sections.max(1).next_power_of_two();
        Self { width, all: vec![0; 2 * width], any: vec![0; 2 * width] }
    }

    /// The nodes that make up a range.
    fn parts(&self, range: Range<usize>, mut part: impl FnMut(usize)) {
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

    /// Raises all of these sections to a height, where they are lower.
    pub(super) fn raise(&mut self, sections: Range<usize>, height: u64) {
        let mut raised = [0; 2 * usize::BITS as usize];
        let mut count = 0;
        self.parts(sections, |node| {
            if let Some(place) = raised.get_mut(count) {
                *place = node;
                count += 1;
            }
        });
        for &node in raised.iter().take(count) {
            if let Some(all) = self.all.get_mut(node) {
                *all = height.max(*all);
            }
            let mut node = node;
            while let Some(any) = self.any.get_mut(node).filter(|_| node > 0) {
                *any = height.max(*any);
                node /= 2;
            }
        }
    }

    /// The highest of these sections.
    pub(super) fn highest(&self, sections: Range<usize>) -> u64 {
        let mut highest = 0;
        self.parts(sections, |node| {
            highest = self.any.get(node).copied().unwrap_or(0).max(highest);
            let mut above = node / 2;
            while let Some(all) = self.all.get(above).filter(|_| above > 0) {
                highest = highest.max(*all);
                above /= 2;
            }
        });
        highest
    }
}

/// The sum of the sizes by section, in O(n): what starts at a section is added there, and what ends is taken off.
pub(super) fn totals(sections: usize, sizes: impl Iterator<Item = (Range<usize>, u64)>) -> Vec<u64> {
    let mut changes = vec![0u64; sections + 1];
    for (range, size) in sizes.filter(|(range, _)| !range.is_empty()) {
        for (at, change) in [(range.start, size), (range.end, size.wrapping_neg())] {
            if let Some(place) = changes.get_mut(at) {
                *place = place.wrapping_add(change);
            }
        }
    }
    let mut sum = 0u64;
    changes.truncate(sections);
    changes
        .into_iter()
        .map(|change| {
            sum = sum.wrapping_add(change);
            sum
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_and_sums_are_those_of_a_list() {
        let mut state = 5u64;
        let mut draw = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for sections in 1..40 {
            let (mut tree, mut heights, mut sums) =
                (Heights::new(sections), vec![0; sections], vec![0; sections]);
            let mut sizes = Vec::new();
            for _ in 0..60 {
                let (one, other) = (draw(sections + 1), draw(sections + 1));
                let (range, height) = (one.min(other)..one.max(other), draw(1000) as u64);
                assert_eq!(
                    tree.highest(range.clone()),
                    heights[range.clone()].iter().copied().max().unwrap_or(0)
                );
                tree.raise(range.clone(), height);
                heights[range.clone()].iter_mut().for_each(|known| *known = height.max(*known));
                sums[range.clone()].iter_mut().for_each(|sum| *sum += height);
                sizes.push((range, height));
            }
            assert_eq!(totals(sections, sizes.into_iter()), sums);
        }
    }
}
