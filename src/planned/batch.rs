//! Many copies as one launch.

use std::any::Any;
use std::sync::Arc;

use bytemuck::Pod;

use super::rows::Rows;
use super::run::{elements, part};
use super::{Run, Shared, clashes};
use crate::backend::{CopyRange, CopyRows, PreparedCopies};
use crate::call::Output;
use crate::error::{Error, Result};
use crate::view::View;

/// Copies that are made as one launch: gathered first, checked, and then made at once. They have no order among themselves,
/// so none of them may write what another reads or writes; one that overlaps itself moves as if by way of a buffer, and one
/// whose ends are the same does nothing. Each set of rows in order is a launch of its own.
///
/// ```
/// use device_arena::PlannedArena;
/// use device_arena::plan::{MemoryPlan, Slot};
///
/// let slots = [Slot::new(0, 0, 64), Slot::new(1, 64, 64), Slot::new(2, 128, 64)];
/// let arena = PlannedArena::host(MemoryPlan::builder().slots(slots).build()?)?;
/// let mut run = arena.begin()?;
/// run.write(0, &[1u32, 2, 3, 4])?;
/// let mut copies = run.copies();
/// copies.copy::<u32>((1, 0), (0, 2), 2)?;
/// copies.copy::<u32>((2, 5), (0, 0), 1)?;
/// copies.launch()?;
/// let mut values = [0u32; 6];
/// run.read(2, &mut values)?;
/// assert_eq!(values, [0, 0, 0, 0, 0, 1]);
/// # Ok::<(), device_arena::Error>(())
/// ```
#[must_use = "a batch copies nothing before it is launched"]
pub struct CopyBatch<'r> {
    run: &'r mut Run,
    ranges: Vec<CopyRange>,
    /// Rows in order, with what they are spelt out.
    rows: Vec<CopyRows>,
    /// Held until the copies are queued.
    guards: Vec<Box<dyn Any>>,
    /// Whether there are ends beside the run's own slots.
    has_others: bool,
}

impl std::fmt::Debug for CopyBatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (ranges, rows) = (self.ranges.len(), self.rows.len());
        f.debug_struct("CopyBatch").field("ranges", &ranges).field("rows", &rows).finish_non_exhaustive()
    }
}

impl<'r> CopyBatch<'r> {
    pub(super) fn new(run: &'r mut Run) -> Self {
        Self { run, ranges: Vec::new(), rows: Vec::new(), guards: Vec::new(), has_others: false }
    }

    /// Adds a copy of `count` elements from an element of one slot to an element of another, each as its node and the
    /// element's number; returns how many both hold.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::OutOfSlot`].
    pub fn copy<T: Pod>(&mut self, to: (u64, usize), from: (u64, usize), count: usize) -> Result<usize> {
        let part = part::<T>(&self.run.shared.plan, "copy", to, from, count)?;
        let base = self.run.room.base();
        self.ranges.push(CopyRange {
            destination: base.wrapping_add(part.to),
            source: base.wrapping_add(part.from).cast_const(),
            bytes: part.bytes,
        });
        Ok(elements::<T>(part.bytes))
    }

    /// Adds rows.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::OutOfSlot`] for a start beyond its slot; [`Error::OutOfArena`] for a row that leaves
    /// the arena; [`Error::LengthMismatch`] for other than as many numbers as rows; [`Error::OutOfMemory`] where the host has
    /// none for the list.
    pub fn rows<T: Pod>(&mut self, rows: &Rows<'_>) -> Result<()> {
        let in_bytes = rows.in_bytes::<T>(&self.run.shared.plan)?;
        let base = self.run.room.base();
        if in_bytes.is_empty() {
            return Ok(());
        }
        if rows.are_in_order() {
            self.rows.push(in_bytes.as_rows(base));
        } else {
            let spelt = in_bytes.ranges(base);
            let out_of_memory = |_| clashes::out_of_memory::<CopyRange>("rows", spelt.len());
            self.ranges.try_reserve(spelt.len()).map_err(out_of_memory)?;
            self.ranges.extend(spelt);
        }
        Ok(())
    }

    /// Adds a copy of a view's values to an element of a slot; returns how many the slot took. The view is held until the
    /// copies are queued, and its arena's next call comes behind them.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::OutOfSlot`]; as [`View::read`] on the host and [`View::read_on`] on a device.
    pub fn copy_from_view<T: Pod>(&mut self, (node, first): (u64, usize), view: &View<T>) -> Result<usize> {
        let span = self.run.shared.plan.span::<T>("copy", node, first, view.len())?;
        let (source, guard): (*const u8, Box<dyn Any>) = match self.run.executor() {
            Some(executor) => {
                let guard = view.read_on(&executor)?;
                (guard.device_ptr().cast(), Box::new(guard))
            }
            None => {
                let guard = view.export()?;
                (guard.as_ptr().cast(), Box::new(guard))
            }
        };
        self.guards.push(guard);
        let destination = self.run.room.base().wrapping_add(span.start);
        self.add_other(CopyRange { destination, source, bytes: span.bytes });
        Ok(elements::<T>(span.bytes))
    }

    /// Adds a copy of as many elements of a slot, from element `first` on, as an open output has room for; returns how many
    /// both hold. The output is of a call on the same executor, or on the host as the run.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::OutOfSlot`]; [`Error::WrongExecutor`]; what [`Output::as_mut_slice`] says on the host.
    pub fn copy_to_output<T: Pod>(
        &mut self,
        output: &'r mut Output<T>,
        (node, first): (u64, usize),
    ) -> Result<usize> {
        let span = self.run.shared.plan.span::<T>("copy", node, first, output.len())?;
        let destination = self.end_of(output)?;
        let source = self.run.room.base().wrapping_add(span.start).cast_const();
        self.add_other(CopyRange { destination, source, bytes: span.bytes });
        Ok(elements::<T>(span.bytes))
    }

    /// Adds a copy of an open output's values to an element of a slot; returns how many the slot took: as
    /// [`copy_to_output`](Self::copy_to_output).
    ///
    /// # Errors
    ///
    /// As [`copy_to_output`](Self::copy_to_output).
    pub fn copy_from_output<T: Pod>(
        &mut self,
        (node, first): (u64, usize),
        output: &'r mut Output<T>,
    ) -> Result<usize> {
        let span = self.run.shared.plan.span::<T>("copy", node, first, output.len())?;
        let source = self.end_of(output)?.cast_const();
        let destination = self.run.room.base().wrapping_add(span.start);
        self.add_other(CopyRange { destination, source, bytes: span.bytes });
        Ok(elements::<T>(span.bytes))
    }

    /// Adds a copy between a slot and memory that only the caller knows, or between two such memories.
    ///
    /// # Safety
    ///
    /// Both ends are live for `bytes` bytes until the stream has passed, where the executor's device reaches them, or the host
    /// for an arena of host pages, and nobody else uses them meanwhile. The source was written before: slots are read as values,
    /// which bytes that nobody wrote are not. Clashes are looked for by address: memory that has two is the caller's to keep
    /// apart. Of a prepared batch this holds for every launch, and of a captured one for every launch of its graph.
    pub unsafe fn copy_raw(&mut self, to: *mut u8, from: *const u8, bytes: usize) {
        debug_assert!(bytes == 0 || !(to.is_null() || from.is_null()));
        self.ranges.push(CopyRange { destination: to, source: from, bytes });
    }

    fn add_other(&mut self, range: CopyRange) {
        self.has_others = true;
        self.ranges.push(range);
    }

    /// An output's address for whoever makes the copies.
    fn end_of<T: Pod>(&self, output: &mut Output<T>) -> Result<*mut u8> {
        match (self.run.executor(), output.executor()) {
            (None, None) => Ok(output.as_mut_slice()?.as_mut_ptr().cast()),
            (Some(own), Some(other)) if own == other => Ok(output.device_ptr()?.cast()),
            (own, other) => {
                let ordinal = |executor: &Option<crate::Executor>| {
                    executor.as_ref().map_or(0, crate::Executor::ordinal)
                };
                let vendor = |executor: &Option<crate::Executor>| {
                    executor.as_ref().map_or(crate::backend::Vendor::Host, crate::Executor::vendor)
                };
                Err(Error::WrongExecutor {
                    operation: "copy",
                    arena: vendor(&other),
                    arena_ordinal: ordinal(&other),
                    executor: vendor(&own),
                    ordinal: ordinal(&own),
                })
            }
        }
    }

    /// Makes the copies: at once on the host; on a device they are queued, as one launch, and one for each set of rows. A list
    /// that was not [prepared](Self::prepare) can take a few: of more than 128, or with long ones that overlap themselves.
    ///
    /// # Errors
    ///
    /// [`Error::ClashingCopies`], where rows in order count one each behind all else, and nothing is copied then;
    /// [`Error::OutOfMemory`] where the host has none to look for clashes; [`Error::Capturing`] within a capture for ends
    /// beside the run's own slots, which the graph would use again when they are gone; [`Error::Driver`], and some of them may
    /// be queued then.
    pub fn launch(self) -> Result<()> {
        clashes::check("copy", &self.ranges, &self.rows)?;
        if self.run.room.check_capture("copy")? && self.has_others {
            return Err(Error::Capturing { operation: "copy" });
        }
        // SAFETY: slots are the run's own room, views and outputs are held until the copies are queued, and what comes after
        // them comes behind; raw ends are the caller's promise. No copies clash, which was just checked.
        let queued = unsafe { self.run.room.copy_ranges(&self.ranges, &self.rows) };
        drop(self.guards);
        queued
    }

    /// Puts the list where the executor's device reads it, for any number of launches in this run and later ones, each of
    /// which uploads nothing. It waits for that. Views and outputs are of one call: they can't be a part of it.
    ///
    /// # Errors
    ///
    /// [`Error::ClashingCopies`]; [`Error::Option`] for views and outputs; [`Error::OutOfMemory`]; [`Error::Capturing`] within
    /// a capture; [`Error::Driver`].
    pub fn prepare(self) -> Result<PreparedBatch> {
        clashes::check("copy", &self.ranges, &self.rows)?;
        if self.has_others {
            let reason = "a prepared batch is for more than the call that views and outputs are of";
            return Err(Error::Option { option: "copies", reason });
        }
        let list = self.run.room.prepare_ranges(&self.ranges)?;
        let base = self.run.room.base();
        Ok(PreparedBatch(Arc::new(Prepared {
            list,
            rows: self.rows,
            base,
            shared: Arc::clone(&self.run.shared),
        })))
    }
}

/// Copies that were checked and laid out once, for any run of their arena. Clones are the same.
#[derive(Debug, Clone)]
pub struct PreparedBatch(Arc<Prepared>);

/// What a launch needs, and what a graph keeps.
#[derive(Debug)]
pub(super) struct Prepared {
    list: PreparedCopies,
    rows: Vec<CopyRows>,
    base: *mut u8,
    shared: Arc<Shared>,
}

// SAFETY: the addresses are of the arena's block, and are used by whoever has a run of it.
unsafe impl Send for Prepared {}
// SAFETY: as above.
unsafe impl Sync for Prepared {}

impl PreparedBatch {
    /// How many copies there are beside rows.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.list.count()
    }

    /// How many bytes a launch copies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let rows = self.0.rows.iter().map(|rows| (rows.bytes as u64).saturating_mul(rows.count as u64));
        rows.fold(self.0.list.bytes(), u64::saturating_add)
    }

    /// Makes the copies in a run of the arena that they were prepared for, as [`CopyBatch::launch`] does. Within a capture the
    /// graph keeps the list.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] for a run of another arena; [`Error::Capturing`] while the stream is being captured for another run;
    /// [`Error::Driver`].
    pub fn launch(&self, run: &mut Run) -> Result<()> {
        if !Arc::ptr_eq(&self.0.shared, &run.shared) || self.0.base != run.room.base() {
            let reason = "these copies were prepared for another arena";
            return Err(Error::Option { option: "prepared copies", reason });
        }
        if run.room.check_capture("copy")? {
            run.kept.push(Arc::clone(&self.0));
        }
        // SAFETY: the slots are the run's own room, at the addresses that the list has; raw ends are the promise of whoever
        // added them. The list goes once what is queued has passed, and a graph keeps it.
        unsafe { run.room.copy_prepared(&self.0.list, &self.0.rows) }
    }
}
