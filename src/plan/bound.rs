//! The least that any plan needs.

use std::collections::BTreeMap;

use super::Buffer;
use super::problem::{Problem, align_up};
use crate::error::Result;

/// The bytes that no plan of these buffers can do without: the most that are live at once, each rounded up to the least
/// alignment of any where it has another above it, and the ends of fixed buffers. What shares bytes counts once, as one
/// buffer that is live from the first step of any to the last of any. It takes O(n log n).
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
