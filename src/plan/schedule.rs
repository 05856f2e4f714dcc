//! Holds what runs against the plan that it runs on.
//!
//! A plan can be right and a schedule on it wrong: a step that was moved, or fused with another, after the plan was made
//! reads bytes that by then are another node's.

use std::collections::BTreeMap;
use std::ops::Range;

use super::{Hazard, MemoryPlan, Slot};
use crate::error::{Error, Result};

/// What one step of a schedule, such as a kernel, reads and writes. It reads before it writes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct Step {
    /// The nodes whose bytes it reads, each of them whole.
    pub reads: Vec<u64>,
    /// The nodes whose bytes it writes, each of them whole.
    pub writes: Vec<u64>,
}

impl Step {
    /// A step.
    #[must_use]
    pub fn new(reads: impl IntoIterator<Item = u64>, writes: impl IntoIterator<Item = u64>) -> Self {
        Self { reads: reads.into_iter().collect(), writes: writes.into_iter().collect() }
    }
}

/// Bytes that a step wrote.
#[derive(Debug, Clone, Copy)]
struct Written {
    end: u64,
    step: usize,
    /// The place of the node, and of the one at the end of its chain of aliases.
    slot: usize,
    root: usize,
}

impl MemoryPlan {
    /// Checks that a schedule computes with the bytes that it means to: that every step reads each node as it was last
    /// written, and as it was before the first step where nobody has written it. The slots' lifetimes don't enter into it;
    /// their bytes do. Aliases of one node, and the node, are one storage: whoever of them writes, the others read that.
    ///
    /// It takes O(m log m) for m reads and writes, where what they name is not cut into many pieces by others.
    ///
    /// # Errors
    ///
    /// [`Error::Schedule`], with the first hazard. Within a step these come in this order: a node that the plan does not
    /// have; a read of what another node has overwritten; a write into bytes that the step reads as another node's; bytes
    /// that the step writes twice.
    ///
    /// ```
    /// use device_arena::plan::{Hazard, MemoryPlan, Slot, Step};
    /// use device_arena::Error;
    ///
    /// let slot = |node, offset, steps| Slot::new(node, offset, 64).live(steps);
    /// let plan = MemoryPlan::builder().slots([slot(1, 0, 0..2), slot(2, 64, 1..3), slot(3, 0, 2..4)]).build()?;
    /// plan.verify_schedule(&[Step::new([], [1]), Step::new([1], [2]), Step::new([2], [3])])?;
    ///
    /// // Node 1 is read once more, after node 3 was written over it.
    /// let late = [Step::new([], [1]), Step::new([1], [2]), Step::new([2], [3]), Step::new([1, 3], [2])];
    /// let Err(Error::Schedule(hazard)) = plan.verify_schedule(&late) else { panic!("a hazard") };
    /// assert!(matches!(*hazard, Hazard::Clobbered { step: 3, written: Some(0), overwritten: 2, .. }));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn verify_schedule(&self, steps: &[Step]) -> Result<()> {
        let mut memory = Memory { plan: self, roots: self.groups(), bytes: BTreeMap::new() };
        for (step, does) in steps.iter().enumerate() {
            let reads = memory.positions(step, &does.reads)?;
            let writes = memory.positions(step, &does.writes)?;
            for slot in &reads {
                memory.check_read(steps, step, *slot)?;
            }
            memory.check_in_place(step, &reads, &writes)?;
            for slot in writes {
                memory.write(step, slot);
            }
        }
        Ok(())
    }
}

/// Whose bytes are where, as far as they were written.
struct Memory<'p> {
    plan: &'p MemoryPlan,
    roots: Vec<usize>,
    /// By the first byte. None overlaps another.
    bytes: BTreeMap<u64, Written>,
}

impl Memory<'_> {
    /// The places of nodes in the plan, each once.
    fn positions(&self, step: usize, nodes: &[u64]) -> Result<Vec<usize>> {
        let position = |node: &u64| {
            let hazard = || Error::Schedule(Box::new(Hazard::Unknown { step, node: *node }));
            self.plan.position(*node).ok_or_else(hazard)
        };
        let mut positions = nodes.iter().map(position).collect::<Result<Vec<_>>>()?;
        positions.sort_unstable();
        positions.dedup();
        Ok(positions)
    }

    fn slot(&self, position: usize) -> Slot {
        self.plan.slots().get(position).cloned().unwrap_or_else(|| Slot::new(0, 0, 0))
    }

    fn range(&self, position: usize) -> Range<u64> {
        self.plan.slots().get(position).map_or(0..0, |slot| slot.offset..slot.checked_end())
    }

    fn root(&self, position: usize) -> usize {
        self.roots.get(position).copied().unwrap_or(position)
    }

    fn check_read(&self, steps: &[Step], step: usize, position: usize) -> Result<()> {
        let (range, root) = (self.range(position), self.root(position));
        let before = self.bytes.range(..range.start).next_back();
        let within = self.bytes.range(range.clone());
        let mut met = before.into_iter().chain(within).filter(|(_, written)| written.end > range.start);
        let Some((_, other)) = met.find(|(_, written)| !range.is_empty() && written.root != root) else {
            return Ok(());
        };
        let hazard = Hazard::Clobbered {
            step,
            slot: self.slot(position),
            written: self.last_write(steps, step, position),
            by: self.slot(other.slot),
            overwritten: other.step,
        };
        Err(Error::Schedule(Box::new(hazard)))
    }

    /// The last step before this one that wrote any of a node's bytes as its own, be it by another name.
    fn last_write(&self, steps: &[Step], step: usize, position: usize) -> Option<usize> {
        let (range, root) = (self.range(position), self.root(position));
        let is_own = |node: &u64| {
            self.plan.position(*node).is_some_and(|other| {
                let bytes = self.range(other);
                self.root(other) == root && bytes.start < range.end && range.start < bytes.end
            })
        };
        steps.get(..step)?.iter().rposition(|does| does.writes.iter().any(is_own))
    }

    fn check_in_place(&self, step: usize, reads: &[usize], writes: &[usize]) -> Result<()> {
        let mut writes: Vec<usize> =
            writes.iter().copied().filter(|slot| !self.range(*slot).is_empty()).collect();
        writes.sort_by_key(|slot| (self.range(*slot).start, *slot));
        // Of the writes up to each: where the furthest ends, and the furthest of another root than that one.
        let mut reach = Vec::with_capacity(writes.len());
        let (mut first, mut second) = ((0, usize::MAX), 0);
        for &write in &writes {
            let (end, root) = (self.range(write).end, self.root(write));
            if root == first.1 {
                first.0 = end.max(first.0);
            } else if end > first.0 {
                (first, second) = ((end, root), first.0);
            } else {
                second = end.max(second);
            }
            reach.push((first, second));
        }
        for &read in reads {
            let (range, root) = (self.range(read), self.root(read));
            let upto = writes.partition_point(|written| self.range(*written).start < range.end);
            let of_others = upto.checked_sub(1).and_then(|last| reach.get(last));
            let end = of_others.map_or(0, |(first, second)| if first.1 == root { *second } else { first.0 });
            if range.is_empty() || end <= range.start {
                continue;
            }
            let clash =
                |written: &&usize| self.root(**written) != root && self.range(**written).end > range.start;
            if let Some(written) = writes.iter().take(upto).find(clash) {
                let (read, written) = (self.slot(read), self.slot(*written));
                return Err(Error::Schedule(Box::new(Hazard::InPlace { step, read, written })));
            }
        }
        let twice = writes.windows(2).find_map(|pair| match pair {
            &[one, next] if self.range(next).start < self.range(one).end => Some((one, next)),
            _ => None,
        });
        match twice {
            Some((one, next)) => {
                let (first, second) = (self.slot(one), self.slot(next));
                Err(Error::Schedule(Box::new(Hazard::WrittenTwice { step, first, second })))
            }
            None => Ok(()),
        }
    }

    fn write(&mut self, step: usize, position: usize) {
        let (range, root) = (self.range(position), self.root(position));
        if range.is_empty() {
            return;
        }
        // What reaches in from before ends where this begins; what reaches out begins where this ends.
        if let Some((_, written)) = self.bytes.range_mut(..range.start).next_back()
            && written.end > range.start
        {
            let whole = *written;
            written.end = range.start;
            if whole.end > range.end {
                self.bytes.insert(range.end, whole);
            }
        }
        let within: Vec<u64> = self.bytes.range(range.clone()).map(|(start, _)| *start).collect();
        for start in within {
            if let Some(written) = self.bytes.remove(&start)
                && written.end > range.end
            {
                self.bytes.insert(range.end, written);
            }
        }
        self.bytes.insert(range.start, Written { end: range.end, step, slot: position, root });
    }
}
