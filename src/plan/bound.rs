//! The least that any plan needs, and when a plan holds the most.

use std::collections::BTreeMap;
use std::ops::Range;

use super::problem::{Problem, align_up};
use super::{Buffer, MemoryPlan, Slot};
use crate::error::Result;

/// The bytes that no plan of these buffers can do without: the most that are live at once, each rounded up to the least
/// alignment of any where it has another above it, and the ends of fixed buffers. What shares bytes counts once. It takes
/// O(n log n).
///
/// # Errors
///
/// [`Error::Plan`](crate::Error::Plan), as [`Planner::plan`](super::Planner::plan).
///
/// ```
/// use device_arena::plan::{Buffer, lower_bound};
///
/// let buffers = [Buffer::new(1, 0..2, 100), Buffer::new(2, 1..3, 50), Buffer::new(3, 2..4, 100)];
/// assert_eq!(lower_bound(&buffers)?, 150);
/// let aligned = buffers.map(|buffer| buffer.aligned(64));
/// assert_eq!(lower_bound(&aligned)?, 128 + 50 - 14); // 64 and then 100, which is less than 128 and then 50
/// # Ok::<(), device_arena::Error>(())
/// ```
pub fn lower_bound(buffers: &[Buffer]) -> Result<u64> {
    Ok(of(&Problem::new(buffers, 1)?))
}

pub(super) fn of(problem: &Problem) -> u64 {
    let grain = problem.grain;
    let mut events: Vec<(u64, bool, u64)> = Vec::new();
    let mut bound = 0;
    for item in &problem.items {
        bound = bound.max(item.fixed.map_or(0, |offset| offset.saturating_add(item.size)));
        if item.size > 0 {
            events.push((item.lifetime.start, true, item.size));
            events.push((item.lifetime.end, false, item.size));
        }
    }
    // At the same step, what ends comes first.
    events.sort_unstable();
    // What lies on top is not rounded up. It may be the one that would be by the most.
    let mut padding: BTreeMap<u64, usize> = BTreeMap::new();
    let mut live: u64 = 0;
    for (_, is_start, size) in events {
        let rounded = align_up(size, grain);
        let of_this = rounded - size;
        if is_start {
            live = live.saturating_add(rounded);
            *padding.entry(of_this).or_default() += 1;
        } else {
            live = live.saturating_sub(rounded);
            if let Some(count) = padding.get_mut(&of_this) {
                *count -= 1;
                if *count == 0 {
                    padding.remove(&of_this);
                }
            }
        }
        let most = padding.last_key_value().map_or(0, |(padding, _)| *padding);
        bound = bound.max(live.saturating_sub(most));
    }
    bound
}

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
    /// When the most bytes are live, by the slots' lifetimes; none where no slot has one.
    #[must_use]
    pub fn busiest(&self) -> Option<Busiest> {
        let mut always: u64 = 0;
        let mut events: Vec<(u64, bool, u64)> = Vec::new();
        for (root, lifetime) in self.lives() {
            match lifetime {
                Some(steps) => {
                    events.push((steps.start, true, root.size));
                    events.push((steps.end, false, root.size));
                }
                None => always = always.saturating_add(root.size),
            }
        }
        events.sort_unstable();
        let mut live = always;
        let mut found: Option<Busiest> = None;
        let mut is_open = false;
        for (step, is_start, size) in events {
            if is_open
                && let Some(busiest) = &mut found
                && busiest.steps.start < step
            {
                busiest.steps.end = step;
                is_open = false;
            }
            live = if is_start { live.saturating_add(size) } else { live.saturating_sub(size) };
            if is_start && found.as_ref().is_none_or(|busiest| live > busiest.bytes) {
                found = Some(Busiest { steps: step..step.saturating_add(1), bytes: live });
                is_open = true;
            }
        }
        found
    }

    /// Each node that is no alias, with the steps in which it or an alias of it is live.
    pub(super) fn lives(&self) -> impl Iterator<Item = (&Slot, Option<Range<u64>>)> {
        let mut lives: Vec<Option<Range<u64>>> = self.iter().map(|slot| slot.lifetime.clone()).collect();
        let groups = self.groups();
        for (slot, root) in self.iter().zip(&groups) {
            let Some(of_root) = lives.get_mut(*root) else { continue };
            *of_root = match (&slot.lifetime, &of_root) {
                (Some(own), Some(all)) => Some(own.start.min(all.start)..own.end.max(all.end)),
                _ => None,
            };
        }
        let roots = self.iter().zip(lives).zip(groups).enumerate();
        roots.filter(|(index, (_, root))| index == root).map(|(_, (life, _))| life)
    }
}
