//! How a plan comes to be, and what it is checked for then.

use super::overlap::{Placed, first_clash};
use super::{MemoryPlan, NodeOrPlan, PlanFault, Slot, fingerprint};
use crate::error::Result;

/// Slots on their way to a [`MemoryPlan`]. They may come in any order.
#[derive(Debug, Clone, Default)]
pub struct PlanBuilder {
    slots: Vec<Slot>,
    alignment: Option<u64>,
    start_alignment: Option<u64>,
    total: Option<u64>,
}

impl PlanBuilder {
    /// Every slot is to be aligned to this many bytes at least, a power of two, and the arena as well.
    #[must_use]
    pub fn alignment(self, alignment: u64) -> Self {
        Self { alignment: Some(alignment), ..self }
    }

    /// The arena's start is to be aligned to this many bytes at least, a power of two, whatever its slots need.
    #[must_use]
    pub fn alignment_of_start(self, alignment: u64) -> Self {
        Self { start_alignment: Some(alignment), ..self }
    }

    /// The bytes of the arena. Without this call they end with the last slot.
    #[must_use]
    pub fn total(self, total: u64) -> Self {
        Self { total: Some(total), ..self }
    }

    /// Adds a slot.
    #[must_use]
    pub fn slot(mut self, slot: Slot) -> Self {
        self.slots.push(slot);
        self
    }

    /// Adds slots.
    #[must_use]
    pub fn slots(mut self, slots: impl IntoIterator<Item = Slot>) -> Self {
        self.slots.extend(slots);
        self
    }

    /// Checks what was collected, in O(n log n).
    ///
    /// # Errors
    ///
    /// [`Error::Plan`](crate::Error::Plan), with the first of these that holds: an alignment that is no power of two, a node
    /// that comes twice, a lifetime without a step, a slot that is not aligned, overflows or ends beyond the total, an alias
    /// of a node that does not exist, of itself or outside of its target, two nodes that share bytes while both are live
    /// and are not aliases of one node.
    pub fn build(self) -> Result<MemoryPlan> {
        let Self { mut slots, alignment, start_alignment, total } = self;
        let (alignment, start_alignment) = (alignment.unwrap_or(1), start_alignment.unwrap_or(1));
        for alignment in [alignment, start_alignment] {
            if !alignment.is_power_of_two() {
                return PlanFault::Alignment { node: NodeOrPlan::Plan, alignment }.refuse();
            }
        }
        slots.sort_by_key(|slot| slot.node);
        for pair in slots.windows(2) {
            if let [one, other] = pair
                && one.node == other.node
            {
                return PlanFault::Duplicate { node: one.node }.refuse();
            }
        }
        let mut end = 0;
        for slot in &slots {
            end = end.max(check_slot(slot, alignment, total)?);
        }
        let alignment =
            slots.iter().map(|slot| slot.alignment).fold(alignment.max(start_alignment), u64::max);
        let mut plan = MemoryPlan { slots, alignment, total: total.unwrap_or(end), fingerprint: 0 };
        plan.check_aliases()?;
        plan.check_overlaps()?;
        plan.fingerprint = fingerprint::of(&plan);
        Ok(plan)
    }
}

/// What a slot can be asked for alone. Answers its end.
fn check_slot(slot: &Slot, alignment: u64, total: Option<u64>) -> Result<u64> {
    if !slot.alignment.is_power_of_two() {
        let node = NodeOrPlan::Node(slot.node);
        return PlanFault::Alignment { node, alignment: slot.alignment }.refuse();
    }
    if let Some(lifetime) = slot.lifetime.clone().filter(std::ops::Range::is_empty) {
        return PlanFault::Lifetime { node: slot.node, lifetime }.refuse();
    }
    let alignment = slot.alignment.max(alignment);
    if !slot.offset.is_multiple_of(alignment) {
        return PlanFault::Misaligned { slot: slot.clone(), alignment }.refuse();
    }
    let Some(end) = slot.end() else { return PlanFault::Overflow { slot: slot.clone() }.refuse() };
    match total {
        Some(total) if end > total => PlanFault::OutOfBounds { slot: slot.clone(), total }.refuse(),
        _ => Ok(end),
    }
}

impl MemoryPlan {
    fn check_aliases(&self) -> Result<()> {
        for slot in &self.slots {
            let Some(alias_of) = slot.alias_of else { continue };
            let Some(target) = self.get(alias_of) else {
                return PlanFault::UnknownAlias { node: slot.node, alias_of }.refuse();
            };
            if slot.offset < target.offset || slot.checked_end() > target.checked_end() {
                let (alias, target) = (slot.clone(), target.clone());
                return PlanFault::AliasOutside { alias, target }.refuse();
            }
        }
        let targets = self.slots.iter().map(|slot| slot.alias_of.and_then(|target| self.position(target)));
        match roots(&targets.collect::<Vec<_>>()) {
            Ok(_) => Ok(()),
            Err(index) => {
                let node = self.slots.get(index).map_or(0, |slot| slot.node);
                PlanFault::AliasCycle { node }.refuse()
            }
        }
    }

    fn check_overlaps(&self) -> Result<()> {
        let groups = self.groups();
        let placed = |(slot, group): (&Slot, &usize)| Placed {
            bytes: slot.offset..slot.checked_end(),
            lifetime: slot.lifetime.clone(),
            group: *group as u32,
        };
        let placed: Vec<_> = self.slots.iter().zip(&groups).map(placed).collect();
        match first_clash(&placed).map(|(first, second)| (self.slots.get(first), self.slots.get(second))) {
            Some((Some(first), Some(second))) => {
                PlanFault::Overlap { first: first.clone(), second: second.clone() }.refuse()
            }
            _ => Ok(()),
        }
    }

    /// For each slot, the place of the slot at the end of its chain of aliases.
    pub(super) fn groups(&self) -> Vec<usize> {
        let targets = self.slots.iter().map(|slot| slot.alias_of.and_then(|target| self.position(target)));
        // A plan that was built has no cycle.
        roots(&targets.collect::<Vec<_>>()).unwrap_or_else(|_| (0..self.slots.len()).collect())
    }
}

/// Follows every chain of `targets` to its end, in O(n) for all of them; or answers a member of a cycle.
pub(super) fn roots(targets: &[Option<usize>]) -> std::result::Result<Vec<usize>, usize> {
    const UNKNOWN: usize = usize::MAX;
    let mut roots = vec![UNKNOWN; targets.len()];
    let mut chain = Vec::new();
    for start in 0..targets.len() {
        let mut at = start;
        let root = loop {
            match (roots.get(at).copied(), targets.get(at).copied().flatten()) {
                (Some(UNKNOWN), Some(target)) => {
                    // No chain without a cycle is longer.
                    if chain.len() > targets.len() {
                        return Err(start);
                    }
                    chain.push(at);
                    at = target;
                }
                (Some(root), _) if root != UNKNOWN => break root,
                _ => break at,
            }
        };
        if let Some(place) = roots.get_mut(start) {
            *place = root;
        }
        for member in chain.drain(..) {
            if let Some(place) = roots.get_mut(member) {
                *place = root;
            }
        }
    }
    Ok(roots)
}

impl PlanFault {
    pub(super) fn refuse<T>(self) -> Result<T> {
        Err(crate::error::Error::Plan(Box::new(self)))
    }
}
