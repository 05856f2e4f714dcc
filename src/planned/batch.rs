//! Many copies as one launch.

use std::marker::PhantomData;

use bytemuck::Pod;

use super::run::{elements, part};
use super::{Run, clashes};
use crate::backend::CopyRange;
use crate::call::Part;
use crate::error::Result;

/// Copies between a run's slots that are made as one launch: gathered first, checked, and then made at once. They have no
/// order among themselves, so none of them may write what another reads or writes; one that overlaps itself moves as if by
/// way of a buffer.
#[derive(Debug)]
#[must_use = "a batch copies nothing before it is launched"]
pub struct CopyBatch<'r> {
    run: &'r mut Run,
    parts: Vec<Part>,
}

/// Rows.
#[derive(Debug)]
pub struct Rows(PhantomData<()>);

/// Prepared.
#[derive(Debug)]
pub struct PreparedBatch(PhantomData<()>);

impl<'r> CopyBatch<'r> {
    pub(super) fn new(run: &'r mut Run) -> Self {
        Self { run, parts: Vec::new() }
    }

    /// Adds a copy of `count` elements from element `from_first` of one slot to element `to_first` of another; returns how
    /// many both hold.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`](crate::Error::UnknownNode); [`Error::OutOfSlot`](crate::Error::OutOfSlot).
    pub fn copy<T: Pod>(
        &mut self,
        (to, to_first): (u64, usize),
        (from, from_first): (u64, usize),
        count: usize,
    ) -> Result<usize> {
        let part = part::<T>(&self.run.shared.plan, "copy", (to, to_first), (from, from_first), count)?;
        self.parts.push(part);
        Ok(elements::<T>(part.bytes))
    }

    /// Queues all of them as one launch.
    ///
    /// # Errors
    ///
    /// [`Error::ClashingCopies`](crate::Error::ClashingCopies) where two copies clash, and nothing is copied then;
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn launch(self) -> Result<()> {
        let base = self.run.room.base();
        let range = |part: &Part| CopyRange {
            destination: base.wrapping_add(part.to),
            source: base.wrapping_add(part.from).cast_const(),
            bytes: part.bytes,
        };
        clashes::check("copy", &self.parts.iter().map(range).collect::<Vec<_>>())?;
        // SAFETY: no parts clash, which was just checked.
        unsafe { self.run.room.move_parts("copy", &self.parts) }
    }
}
