//! What a descent tries first. No tactics are best for all problems; the search draws others for each descent.

use super::rows::Row;
use super::skyline::Block;

/// A generator of numbers that are the same everywhere: SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick<T: Copy + Default>(&mut self, from: &[T]) -> T {
        let place = self.next() % from.len().max(1) as u64;
        from.get(place as usize).copied().unwrap_or_default()
    }

    /// At least 0 and below 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[derive(Debug)]
pub(super) struct Tactics {
    /// A block's weight: the heaviest is tried first.
    pub(super) weights: Row<f64>,
    /// The factor for a block that ends flush with a wall.
    pub(super) flush: f64,
    /// Whether sections that ended branches come sooner.
    pub(super) weighs_blame: bool,
}

/// What a block is weighed by: its lifetime in sections, its size, the most bytes that are live beside it.
#[derive(Clone, Copy, Default)]
enum Weight {
    #[default]
    Lifetime,
    Size,
    Area,
    LongArea,
    CrowdedLifetime,
    CrowdedArea,
}

impl Weight {
    const ALL: [Self; 6] =
        [Self::Lifetime, Self::Size, Self::Area, Self::LongArea, Self::CrowdedLifetime, Self::CrowdedArea];

    /// Products and quotients alone, which every machine computes alike.
    fn of(self, sections: f64, size: f64, crowd: f64) -> f64 {
        match self {
            Self::Lifetime => sections + size,
            Self::Size => size,
            Self::Area => sections * size,
            Self::LongArea => sections * sections * size,
            Self::CrowdedLifetime => crowd * crowd * sections,
            Self::CrowdedArea => crowd * crowd * crowd * crowd * sections * size,
        }
    }
}

impl Tactics {
    /// `totals` are the bytes live by section.
    pub(super) fn draw(random: &mut Random, blocks: &Row<Block>, totals: &[u64]) -> Self {
        let weighs_blame = random.pick(&[false, true]);
        let weight = random.pick(&Weight::ALL);
        let noise = random.pick(&[0.0, 0.1, 0.3, 0.6]);
        let flush = random.pick(&[1.0, 3.0, 20.0]);
        let most = totals.iter().copied().max().unwrap_or(1).max(1) as f64;
        // A part of the largest size, so that it only decides between equal lifetimes.
        let largest = blocks.as_slice().iter().map(|block| block.size).max().unwrap_or(1).max(1) as f64;
        let weigh = |block: &Block| {
            let crowd = totals.get(block.sections()).unwrap_or_default().iter().copied().max().unwrap_or(0);
            let size = block.size as f64 / (largest * 1.001);
            let clean = weight.of((block.end - block.start) as f64, size, crowd as f64 / most);
            clean * (1.0 + 3.0 * noise * random.fraction()) / (1.0 + 3.0 * noise * random.fraction())
        };
        let weights: Vec<f64> = blocks.as_slice().iter().map(weigh).collect();
        Self { weights: weights.into(), flush, weighs_blame }
    }
}
