//! What a planned arena is: bytes, and a plan that says where each node's are.

use device_arena::plan::{MemoryPlan, Slot};

/// The pure model. Starts and counts are in elements of `size` bytes; amounts are clamped, and none is a start beyond. Places
/// are counted from `base`, where the first slot begins at the earliest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
    plan: MemoryPlan,
}

impl Model {
    pub(crate) fn new(plan: &MemoryPlan) -> Self {
        Self::from(0, plan)
    }

    pub(crate) fn from(base: u64, plan: &MemoryPlan) -> Self {
        Self { base, bytes: vec![0; (plan.total() - base) as usize], plan: plan.clone() }
    }

    fn slot(&self, node: u64) -> Option<&Slot> {
        self.plan.slots().iter().find(|slot| slot.node == node)
    }

    fn start(&self, slot: &Slot) -> usize {
        (slot.offset - self.base) as usize
    }

    /// Where a part begins, and how many elements there are.
    fn part(&self, node: u64, first: usize, count: usize, size: usize) -> Option<(usize, usize)> {
        let slot = self.slot(node)?;
        let held = slot.size as usize / size;
        (first <= held).then(|| (self.start(slot) + first * size, count.min(held - first)))
    }

    pub(crate) fn write(&mut self, node: u64, first: usize, bytes: &[u8], size: usize) -> Option<usize> {
        let (start, count) = self.part(node, first, bytes.len() / size, size)?;
        self.bytes[start..start + count * size].copy_from_slice(&bytes[..count * size]);
        Some(count)
    }

    pub(crate) fn read(&self, node: u64, first: usize, count: usize, size: usize) -> Option<&[u8]> {
        let (start, count) = self.part(node, first, count, size)?;
        Some(&self.bytes[start..start + count * size])
    }

    pub(crate) fn read_at(&self, first: usize, count: usize, size: usize) -> Option<&[u8]> {
        let start = first * size;
        let left = self.bytes.len().checked_sub(start)? / size;
        Some(&self.bytes[start..start + count.min(left) * size])
    }

    /// As a place in bytes, where both parts are and what both hold.
    pub(crate) fn place(
        &self,
        (to, to_first): (u64, usize),
        (from, from_first): (u64, usize),
        count: usize,
        size: usize,
    ) -> Option<(usize, usize, usize)> {
        let (to, to_count) = self.part(to, to_first, count, size)?;
        let (from, from_count) = self.part(from, from_first, count, size)?;
        Some((to, from, to_count.min(from_count) * size))
    }

    pub(crate) fn copy(&mut self, (to, from, bytes): (usize, usize, usize)) {
        self.bytes.copy_within(from..from + bytes, to);
    }

    pub(crate) fn clear(&mut self, node: u64) -> Option<()> {
        let slot = self.slot(node)?;
        let (start, size) = (self.start(slot), slot.size as usize);
        self.bytes[start..start + size].fill(0);
        Some(())
    }
}
