//! Holds a plan against what was to be planned. It knows nothing of how the plan was found.

use std::ops::Range;

use super::builder::roots;
use super::overlap::{Placed, first_clash};
use super::{Buffer, MemoryPlan, PlanFault, Slot};
use crate::error::Result;

impl MemoryPlan {
    /// Checks that this is a plan of these buffers, whoever made it: each buffer has a slot of its size or more, live and
    /// aligned as the buffer says, at its fixed offset or where the buffer begins whose bytes it shares; no slot is of no
    /// buffer; and no two buffers share a byte in a step in which both are live, by the lifetimes of the buffers, unless
    /// aliases say so. What shares bytes counts as one buffer, as large as the largest, which is live from the first step of
    /// any to the last of any. It takes O(n log n).
    ///
    /// # Errors
    ///
    /// [`Error::Plan`](crate::Error::Plan), with the first fault: rules that a buffer breaks alone in the order of ids, then
    /// shared bytes in the order of time.
    ///
    /// ```
    /// use device_arena::plan::{Buffer, MemoryPlan, Slot};
    ///
    /// let plan = MemoryPlan::builder().slot(Slot::new(1, 0, 64).live(0..2)).slot(Slot::new(2, 0, 64).live(2..4)).build()?;
    /// plan.verify(&[Buffer::new(1, 0..2, 64), Buffer::new(2, 2..4, 64)])?;
    /// let refused = plan.verify(&[Buffer::new(1, 0..3, 64), Buffer::new(2, 2..4, 64)]).unwrap_err();
    /// assert!(refused.to_string().contains("is not live in all of its buffer's steps, 0..3"), "{refused}");
    /// # Ok::<(), device_arena::Error>(())
    /// ```
    pub fn verify(&self, buffers: &[Buffer]) -> Result<()> {
        let mut sorted: Vec<&Buffer> = buffers.iter().collect();
        sorted.sort_by_key(|buffer| buffer.id);
        for pair in sorted.windows(2) {
            if let [one, other] = pair
                && one.id == other.id
            {
                return PlanFault::Duplicate { node: one.id }.refuse();
            }
        }
        let mut slots = Vec::with_capacity(sorted.len());
        for buffer in &sorted {
            let Some(slot) = self.get(buffer.id) else {
                return PlanFault::Missing { node: buffer.id }.refuse();
            };
            self.check_buffer(buffer, slot)?;
            slots.push(slot);
        }
        if self.len() > sorted.len() {
            let is_unasked =
                |slot: &&Slot| sorted.binary_search_by_key(&slot.node, |buffer| buffer.id).is_err();
            if let Some(slot) = self.iter().find(is_unasked) {
                return PlanFault::Unasked { slot: slot.clone() }.refuse();
            }
        }

        let position = |id: u64| sorted.binary_search_by_key(&id, |buffer| buffer.id).ok();
        let targets: Vec<_> = sorted.iter().map(|buffer| buffer.alias_of.and_then(position)).collect();
        let groups = match roots(&targets) {
            Ok(groups) => groups,
            Err(index) => {
                return PlanFault::AliasCycle { node: sorted.get(index).map_or(0, |buffer| buffer.id) }
                    .refuse();
            }
        };
        let mut placed: Vec<Placed> = sorted
            .iter()
            .zip(&slots)
            .zip(&groups)
            .map(|((buffer, slot), group)| Placed {
                bytes: slot.offset..slot.offset.saturating_add(buffer.size),
                lifetime: lifetime(buffer),
                group: *group as u32,
            })
            .collect();
        take_together(&mut placed, &groups);
        match first_clash(&placed).map(|(first, second)| (slots.get(first), slots.get(second))) {
            Some((Some(first), Some(second))) => {
                PlanFault::Overlap { first: (*first).clone(), second: (*second).clone() }.refuse()
            }
            _ => Ok(()),
        }
    }

    fn check_buffer(&self, buffer: &Buffer, slot: &Slot) -> Result<()> {
        let size = buffer.size;
        if buffer.lifetime.is_empty() {
            return PlanFault::Lifetime { node: buffer.id, lifetime: buffer.lifetime.clone() }.refuse();
        }
        if slot.size < size {
            return PlanFault::TooSmall { slot: slot.clone(), size }.refuse();
        }
        if slot.end().is_none_or(|end| end > self.total()) {
            return PlanFault::OutOfBounds { slot: slot.clone(), total: self.total() }.refuse();
        }
        if !buffer.alignment.is_power_of_two() || !slot.offset.is_multiple_of(buffer.alignment) {
            return PlanFault::Misaligned { slot: slot.clone(), alignment: buffer.alignment }.refuse();
        }
        if slot.alias_of != buffer.alias_of {
            return PlanFault::OtherAlias { slot: slot.clone(), alias_of: buffer.alias_of }.refuse();
        }
        if let Some(offset) = buffer.offset.filter(|offset| *offset != slot.offset) {
            return PlanFault::Moved { slot: slot.clone(), offset }.refuse();
        }
        let target = buffer.alias_of.and_then(|target| self.get(target));
        if let Some(target) = target.filter(|target| target.offset != slot.offset) {
            return PlanFault::Moved { slot: slot.clone(), offset: target.offset }.refuse();
        }
        let is_live = match (&slot.lifetime, lifetime(buffer)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(slot), Some(buffer)) => slot.start <= buffer.start && buffer.end <= slot.end,
        };
        if !is_live {
            return PlanFault::ShortLived { slot: slot.clone(), lifetime: lifetime(buffer) }.refuse();
        }
        Ok(())
    }
}

/// What shares bytes is one: as large as the largest, live from the first step of any to the last of any. It stands where
/// the end of the chain of aliases does.
fn take_together(placed: &mut [Placed], groups: &[usize]) {
    for (index, root) in groups.iter().enumerate().filter(|(index, root)| index != *root) {
        let Some(member) = placed.get(index).cloned() else { continue };
        let Some(whole) = placed.get_mut(*root) else { continue };
        whole.bytes.end = whole.bytes.end.max(member.bytes.end);
        whole.lifetime = match (whole.lifetime.take(), member.lifetime) {
            (Some(all), Some(own)) => Some(all.start.min(own.start)..all.end.max(own.end)),
            _ => None,
        };
        if let Some(member) = placed.get_mut(index) {
            member.bytes.end = member.bytes.start;
        }
    }
}

/// When a buffer is live; none: always.
fn lifetime(buffer: &Buffer) -> Option<Range<u64>> {
    (!buffer.pinned).then(|| buffer.lifetime.clone())
}
