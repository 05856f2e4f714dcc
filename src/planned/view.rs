//! What a run has left: views of its slots.

use std::sync::Arc;

use bytemuck::Pod;

use super::run::{elements, within_arena};
use crate::error::{Error, Result};
use crate::plan::MemoryPlan;
use crate::view::View;

/// A look at what a finished run has left, slot by slot. It holds nothing: the next run makes it stale, and only a guard
/// keeps that away.
#[derive(Debug, Clone)]
pub struct PlannedView {
    bytes: View<u8>,
    plan: Arc<MemoryPlan>,
}

impl PlannedView {
    pub(super) fn new(bytes: View<u8>, plan: Arc<MemoryPlan>) -> Self {
        Self { bytes, plan }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &MemoryPlan {
        &self.plan
    }

    /// All bytes: a view whose guard, on the host or on a device, has the arena's first address.
    #[must_use]
    pub fn bytes(&self) -> &View<u8> {
        &self.bytes
    }

    /// A slot's elements as a view: as many whole ones as it holds.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::Stale`]; [`Error::ElementOffset`] for a slot whose start is not aligned as `T` is.
    pub fn slot<T: Pod>(&self, node: u64) -> Result<View<T>> {
        let span = self.plan.span::<T>("slot", node, 0, usize::MAX)?;
        let bytes = self.bytes.slice(span.start..span.start.saturating_add(span.bytes))?;
        let offset = span.start as u64;
        bytes.cast().ok_or(Error::ElementOffset { node, offset, element: size_of::<T>() })
    }

    /// Copies elements from a slot's start on; returns how many the slot had. The rest of `values` stays as it is.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; as [`View::copy_to`].
    pub fn read<T: Pod>(&self, node: u64, values: &mut [T]) -> Result<usize> {
        self.read_from(node, 0, values)
    }

    /// Copies elements from element `first` of a slot on; returns how many the slot had.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); [`Error::OutOfSlot`] for a start beyond the slot.
    pub fn read_from<T: Pod>(&self, node: u64, first: usize, values: &mut [T]) -> Result<usize> {
        let span = self.plan.span::<T>("read", node, first, values.len())?;
        self.copy_out(span.start, span.bytes, values)
    }

    /// Copies elements from element `first` of the *arena* on, across slots; returns how many there were.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfArena`] for a start beyond the arena; as [`View::copy_to`].
    pub fn read_at<T: Pod>(&self, first: u64, values: &mut [T]) -> Result<usize> {
        let (start, bytes) = within_arena::<T>(&self.plan, first, values.len())?;
        self.copy_out(start, bytes, values)
    }

    fn copy_out<T: Pod>(&self, start: usize, bytes: usize, values: &mut [T]) -> Result<usize> {
        let places = bytemuck::cast_slice_mut(values).get_mut(..bytes).unwrap_or_default();
        self.bytes.slice(start..start.saturating_add(bytes))?.copy_to(places)?;
        Ok(elements::<T>(bytes))
    }

    /// Whether the arena is at the view's run still.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.bytes.is_current()
    }

    /// The run's number.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.bytes.generation()
    }
}
