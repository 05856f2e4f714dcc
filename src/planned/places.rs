//! Where a plan's nodes are, in bytes and in elements.

use crate::error::{Error, Result};
use crate::plan::{MemoryPlan, Slot};

/// A part of a slot: where it begins in the arena, and how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
}

/// A node's slot in the plan of an arena.
///
/// These are what offsets in push constants and kernel arguments are made of.
impl MemoryPlan {
    pub(crate) fn slot(&self, operation: &'static str, node: u64) -> Result<&Slot> {
        self.get(node).ok_or(Error::UnknownNode { operation, node })
    }

    /// Where the node begins, in bytes from the arena's start.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`].
    pub fn byte_offset(&self, node: u64) -> Result<u64> {
        Ok(self.slot("byte_offset", node)?.offset)
    }

    /// Where the node begins, in elements of `T` from the arena's start, in the 32 bits of a push constant.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::ElementOffset`] where it begins between two elements, or does not fit.
    pub fn elem_offset<T>(&self, node: u64) -> Result<u32> {
        let elements = self.elem_offset_64::<T>(node)?;
        u32::try_from(elements).map_err(|_| self.element_offset::<T>(node))
    }

    /// Where the node begins, in elements of `T` from the arena's start.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::ElementOffset`] where it begins between two elements.
    pub fn elem_offset_64<T>(&self, node: u64) -> Result<u64> {
        let slot = self.slot("elem_offset", node)?;
        let size = size_of::<T>() as u64;
        match slot.offset.checked_rem(size) {
            Some(0) => Ok(slot.offset / size),
            _ => Err(self.element_offset::<T>(node)),
        }
    }

    #[cold]
    fn element_offset<T>(&self, node: u64) -> Error {
        let offset = self.get(node).map_or(0, |slot| slot.offset);
        Error::ElementOffset { node, offset, element: size_of::<T>() }
    }

    /// How many elements of `T` the node's slot holds: whole ones, and none of a type without a size.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`].
    pub fn slot_elems<T>(&self, node: u64) -> Result<u64> {
        let slot = self.slot("slot_elems", node)?;
        Ok(slot.size.checked_div(size_of::<T>() as u64).unwrap_or(0))
    }

    /// As many of `count` elements from element `first` of a slot on as it holds.
    pub(crate) fn span<T>(
        &self,
        operation: &'static str,
        node: u64,
        first: usize,
        count: usize,
    ) -> Result<Span> {
        let slot = self.slot(operation, node)?;
        let size = size_of::<T>() as u64;
        let held = slot.size.checked_div(size).unwrap_or(0);
        let left = held.checked_sub(first as u64).ok_or(Error::OutOfSlot {
            operation,
            node,
            offset: slot.offset,
            size: slot.size,
            start: (first as u64).saturating_mul(size),
        })?;
        let elements = left.min(count as u64);
        // All of it is within the plan's total, which an arena has as one block.
        let start = slot.offset + first as u64 * size;
        Ok(Span { start: start as usize, bytes: (elements * size) as usize })
    }

    /// Refuses a plan that differs in anything.
    pub(crate) fn check_same(&self, operation: &'static str, other: &Self) -> Result<()> {
        let (own, other) = (self.fingerprint(), other.fingerprint());
        if own == other { Ok(()) } else { Err(Error::AnotherPlan { operation, own, other }) }
    }
}
