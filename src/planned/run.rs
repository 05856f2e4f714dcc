//! A run: the exclusive use of a planned arena.

use std::sync::Arc;

use bytemuck::Pod;

use super::batch::Prepared;
use super::view::PlannedView;
use super::{CopyBatch, Shared};
use crate::call::{Call, Output, Part};
use crate::error::{Error, Refused, Result};
use crate::executor::{Deferred, Executor};
use crate::plan::MemoryPlan;

/// The exclusive use of a [`PlannedArena`](super::PlannedArena), from its begin to its finish. Dropped unfinished it is
/// abandoned: its views are stale, and the bytes are as they were left.
///
/// Amounts are clamped to what slots hold, and what was moved is returned; a start beyond a slot is an error. On a device,
/// writes and reads of the host's slices wait for the stream; copies and clears are queued in its order.
#[derive(Debug)]
#[must_use = "a run that is dropped unfinished is abandoned, and its views are stale"]
pub struct Run {
    pub(super) room: Output<u8>,
    /// After the room, which is a hold of the call's. None within a capture, where it is somebody else's.
    call: Option<Call>,
    pub(super) shared: Arc<Shared>,
    /// What the graph of a capture reads.
    pub(super) kept: Vec<Arc<Prepared>>,
}

impl Run {
    pub(super) fn new(call: Option<Call>, room: Output<u8>, shared: Arc<Shared>) -> Self {
        Self { room, call, shared, kept: Vec::new() }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &MemoryPlan {
        &self.shared.plan
    }

    /// The executor whose device the bytes are of; none for host pages.
    #[must_use]
    pub fn executor(&self) -> Option<Executor> {
        self.room.executor()
    }

    /// Writes elements from a slot's start on; returns how many the slot took.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::Capturing`] within a capture; [`Error::Driver`].
    pub fn write<T: Pod>(&mut self, node: u64, values: &[T]) -> Result<usize> {
        self.write_from(node, 0, values)
    }

    /// Writes elements from element `first` of a slot on; returns how many the slot took. Of `u8` these are raw bytes.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write); [`Error::OutOfSlot`] for a start beyond the slot.
    pub fn write_from<T: Pod>(&mut self, node: u64, first: usize, values: &[T]) -> Result<usize> {
        let span = self.shared.plan.span::<T>("write", node, first, values.len())?;
        let bytes = bytemuck::cast_slice(values).get(..span.bytes).unwrap_or_default();
        self.room.write_part("write", span.start, bytes)?;
        Ok(elements::<T>(span.bytes))
    }

    /// Reads elements from a slot's start on; returns how many the slot had. The rest of `values` stays as it is.
    ///
    /// # Errors
    ///
    /// As [`write`](Self::write).
    pub fn read<T: Pod>(&self, node: u64, values: &mut [T]) -> Result<usize> {
        self.read_from(node, 0, values)
    }

    /// Reads elements from element `first` of a slot on; returns how many the slot had.
    ///
    /// # Errors
    ///
    /// As [`write_from`](Self::write_from).
    pub fn read_from<T: Pod>(&self, node: u64, first: usize, values: &mut [T]) -> Result<usize> {
        let span = self.shared.plan.span::<T>("read", node, first, values.len())?;
        let bytes = bytemuck::cast_slice_mut(values).get_mut(..span.bytes).unwrap_or_default();
        self.room.read_part("read", span.start, bytes)?;
        Ok(elements::<T>(span.bytes))
    }

    /// Reads elements from element `first` of the *arena* on, across slots; returns how many there were.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfArena`] for a start beyond the arena; as [`read`](Self::read).
    pub fn read_at<T: Pod>(&self, first: u64, values: &mut [T]) -> Result<usize> {
        let (start, bytes) = within_arena::<T>(&self.shared.plan, first, values.len())?;
        let bytes = bytemuck::cast_slice_mut(values).get_mut(..bytes).unwrap_or_default();
        self.room.read_part("read_at", start, bytes)?;
        Ok(elements::<T>(bytes.len()))
    }

    /// Copies the first `count` elements of one slot to the start of another; returns how many both hold. Slots that start
    /// together are left as they are.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::Driver`].
    pub fn copy_prefix<T: Pod>(&mut self, to: u64, from: u64, count: usize) -> Result<usize> {
        self.copy_range::<T>(to, 0, from, 0, count)
    }

    /// Copies `count` elements from element `from_first` of one slot to element `to_first` of another; returns how many both
    /// hold. Where they overlap, it is as if by way of a buffer.
    ///
    /// # Errors
    ///
    /// As [`copy_prefix`](Self::copy_prefix); [`Error::OutOfSlot`] for a start beyond its slot.
    pub fn copy_range<T: Pod>(
        &mut self,
        to: u64,
        to_first: usize,
        from: u64,
        from_first: usize,
        count: usize,
    ) -> Result<usize> {
        let part = part::<T>(&self.shared.plan, "copy", (to, to_first), (from, from_first), count)?;
        // SAFETY: a single part clashes with none.
        unsafe { self.room.move_parts("copy", &[part]) }?;
        Ok(elements::<T>(part.bytes))
    }

    /// Many copies, as one launch.
    pub fn copies(&mut self) -> CopyBatch<'_> {
        CopyBatch::new(self)
    }

    /// Fills a slot with zeros.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::Driver`].
    pub fn clear(&mut self, node: u64) -> Result<()> {
        let span = self.shared.plan.span::<u8>("clear", node, 0, usize::MAX)?;
        self.room.fill_part("clear", span.start, span.bytes, 0)
    }

    /// A slot's address for a device's kernels, which use it in the order of the executor's stream. Work that uses it is to be
    /// queued there before the run ends.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::HostMemory`] for host pages.
    pub fn device_ptr(&mut self, node: u64) -> Result<*mut u8> {
        let span = self.shared.plan.span::<u8>("device_ptr", node, 0, 0)?;
        Ok(self.room.device_ptr()?.wrapping_add(span.start))
    }

    /// The arena's first address for a device's kernels, which add offsets of the plan to it: as
    /// [`device_ptr`](Self::device_ptr).
    ///
    /// # Errors
    ///
    /// [`Error::HostMemory`] for host pages.
    pub fn base_device_ptr(&mut self) -> Result<*mut u8> {
        self.room.device_ptr()
    }

    /// All bytes, where the host has them.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] for memory of a device; [`Error::Pending`] while a device may use it.
    pub fn bytes(&self) -> Result<&[u8]> {
        self.room.as_slice()
    }

    /// All bytes, to be written where the host has them.
    ///
    /// # Errors
    ///
    /// As [`bytes`](Self::bytes).
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        self.room.as_mut_slice()
    }

    /// Ends the run, and answers a view of what it has left. It waits for nothing: the stream orders the next run.
    ///
    /// # Errors
    ///
    /// None today.
    pub fn finish(self) -> Result<PlannedView> {
        let (view, call) = self.publish();
        if let Some(call) = call {
            call.finish()?;
        }
        Ok(view)
    }

    /// Leaves the run to the work that is queued on the executor now: the arena is held until that has passed.
    ///
    /// # Errors
    ///
    /// As [`Executor::defer_call`], and the run with it; [`Error::Capturing`] within a capture.
    #[expect(
        clippy::result_large_err,
        reason = "the run comes back as it was, and nothing is allocated for that"
    )]
    pub fn defer(mut self, executor: &Executor) -> Result<(PlannedView, Deferred<()>), Refused<Self>> {
        let Some(call) = self.call.take() else {
            return Err(Refused::new(Error::Capturing { operation: "defer" }, self));
        };
        // Publishing can't be taken back, so that what can fail comes first.
        let event = match executor.event_for(&call) {
            Ok(event) => event,
            Err(error) => {
                self.call = Some(call);
                return Err(Refused::new(error, self));
            }
        };
        let (view, _) = self.publish();
        Ok((view, executor.defer_behind(event, call)))
    }

    pub(super) fn publish(self) -> (PlannedView, Option<Call>) {
        let Self { room, call, shared, .. } = self;
        let view = room.publish();
        shared.keep(view.clone());
        (PlannedView::new(view, Arc::clone(&shared.plan)), call)
    }
}

/// How many elements so many bytes are; none of a type without a size.
pub(super) fn elements<T>(bytes: usize) -> usize {
    bytes.checked_div(size_of::<T>()).unwrap_or(0)
}

/// A part of the arena by elements: where it begins, and how many bytes of it there are, whole elements of at most `count`.
pub(super) fn within_arena<T>(plan: &MemoryPlan, first: u64, count: usize) -> Result<(usize, usize)> {
    let (size, total) = (size_of::<T>() as u64, plan.total());
    let start = first.saturating_mul(size);
    let Some(left) = total.checked_sub(start) else {
        return Err(Error::OutOfArena { operation: "read_at", size: total, start });
    };
    let held = left.checked_div(size).unwrap_or(0).min(count as u64);
    // Both are within the plan's total, which an arena has as one block.
    Ok((start as usize, (held * size) as usize))
}

/// A copy of as many elements as both slots hold.
pub(super) fn part<T>(
    plan: &MemoryPlan,
    operation: &'static str,
    (to, to_first): (u64, usize),
    (from, from_first): (u64, usize),
    count: usize,
) -> Result<Part> {
    let to = plan.span::<T>(operation, to, to_first, count)?;
    let from = plan.span::<T>(operation, from, from_first, count)?;
    Ok(Part { to: to.start, from: from.start, bytes: to.bytes.min(from.bytes) })
}
