//! Planned arenas: memory whose places were fixed ahead of time, by a [`MemoryPlan`].

mod batch;
#[cfg(gpu)]
mod capture;
mod clashes;
mod places;
mod rows;
mod run;
mod twin;
mod view;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytemuck::Pod;

pub use self::batch::{CopyBatch, PreparedBatch};
#[cfg(gpu)]
pub use self::capture::CapturedRun;
pub use self::rows::{RowOrder, Rows};
pub use self::run::Run;
pub use self::view::PlannedView;
use crate::arena::{Arena, ArenaDescription, ArenaOptions, ArenaStats, Growth, Placement};
use crate::backend::Vendor;
use crate::call::Call;
use crate::error::{Error, Holder, Result};
use crate::executor::Executor;
use crate::plan::MemoryPlan;
use crate::view::View;

/// An arena whose places are fixed by a plan: every node has its slot, in every run.
///
/// A [`run`](Self::begin) has it alone, as a call has its arena: a second one is refused as contended, and so is any while
/// somebody reads a view of the run before. It makes the views of earlier runs stale and *keeps* their bytes, since some,
/// such as a decoder's keys and values, are to survive it. The memory is one block, made by the first run and zeroed then, so
/// that padding never shows old bytes.
///
/// ```
/// use device_arena::PlannedArena;
/// use device_arena::plan::{MemoryPlan, Slot};
///
/// let plan = MemoryPlan::builder().alignment(64).slot(Slot::new(1, 0, 64)).slot(Slot::new(2, 64, 64)).build()?;
/// let arena = PlannedArena::host(plan)?;
/// let mut run = arena.begin()?;
/// assert_eq!(run.write(1, &[1.0f32, 2.0, 3.0])?, 3);
/// assert_eq!(run.copy_prefix::<f32>(2, 1, 2)?, 2);
/// let view = run.finish()?;
/// assert_eq!(*view.slot::<f32>(2)?.slice(..3)?.read()?, [1.0, 2.0, 0.0]);
///
/// // The next run has the bytes still, and the view is stale.
/// let mut values = [0.0f32; 3];
/// let run = arena.begin()?;
/// assert_eq!(run.read(1, &mut values)?, 3);
/// assert_eq!(values, [1.0, 2.0, 3.0]);
/// assert!(view.slot::<f32>(2).is_err());
/// # Ok::<(), device_arena::Error>(())
/// ```
#[derive(Debug)]
pub struct PlannedArena {
    arena: Arena,
    executor: Option<Executor>,
    /// How many blocks had been made when the last was zeroed: none, or one.
    zeroed: AtomicU64,
    shared: Arc<Shared>,
}

/// What an arena shares with its runs.
#[derive(Debug)]
pub(crate) struct Shared {
    plan: Arc<MemoryPlan>,
    /// All bytes, as the last run left them.
    last: Mutex<Option<View<u8>>>,
}

impl Shared {
    fn keep(&self, view: View<u8>) {
        // The one before goes outside of the lock.
        let _before = self.last.lock().unwrap_or_else(PoisonError::into_inner).replace(view);
    }
}

impl PlannedArena {
    /// An arena of host pages, for runs on the host. Nothing is allocated before the first run.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn host(plan: impl Into<Arc<MemoryPlan>>) -> Result<Self> {
        let plan = plan.into();
        Self::of(Self::options(&plan)?.build_host()?, None, plan)
    }

    /// An arena where the executor computes: on its device, or in host pages. Nothing is allocated before the first run.
    ///
    /// # Errors
    ///
    /// [`Error::Alignment`] where the plan asks for more than blocks have; [`Error::SizeOverflow`] for a plan beyond the
    /// address space.
    pub fn new(executor: &Executor, plan: impl Into<Arc<MemoryPlan>>) -> Result<Self> {
        let plan = plan.into();
        Self::of(Self::options(&plan)?.build(executor)?, Some(executor), plan)
    }

    /// An arena in a placement of the caller's choice.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new); [`Error::Option`] for device memory on a host executor.
    pub fn placed(
        executor: &Executor,
        placement: Placement,
        plan: impl Into<Arc<MemoryPlan>>,
    ) -> Result<Self> {
        let plan = plan.into();
        Self::of(Self::options(&plan)?.placement(placement).build(executor)?, Some(executor), plan)
    }

    fn options(plan: &MemoryPlan) -> Result<ArenaOptions> {
        let too_large =
            || Error::SizeOverflow { operation: "planned arena", elements: usize::MAX, element_bytes: 1 };
        let total = usize::try_from(plan.total()).ok().filter(|&total| total <= isize::MAX as usize);
        let total = total.ok_or_else(too_large)?;
        let alignment = usize::try_from(plan.alignment()).unwrap_or(usize::MAX);
        Ok(ArenaOptions::new().alignment(alignment).first_capacity(total.max(1)).growth(Growth::Exact))
    }

    fn of(arena: Arena, executor: Option<&Executor>, plan: Arc<MemoryPlan>) -> Result<Self> {
        let executor = executor.filter(|executor| executor.vendor() != Vendor::Host && arena.is_of_device());
        let shared = Arc::new(Shared { plan, last: Mutex::new(None) });
        Ok(Self { arena, executor: executor.cloned(), zeroed: AtomicU64::new(0), shared })
    }

    /// Begins a run: the arena is its own until it is finished. Earlier views are stale, and the bytes are as the last run
    /// left them.
    ///
    /// # Errors
    ///
    /// [`Error::Contended`] while a run, deferred work or a reader holds the arena; [`Error::OutOfMemory`] and what the
    /// driver says where the block can't be made or zeroed.
    pub fn begin(&self) -> Result<Run> {
        self.run_in(self.arena.begin()?)
    }

    /// Begins a run, and waits for the arena to be free for `timeout` at most.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin), once the time is up.
    pub fn begin_timeout(&self, timeout: Duration) -> Result<Run> {
        self.run_in(self.arena.begin_timeout(timeout)?)
    }

    fn run_in(&self, call: Call) -> Result<Run> {
        let room = self.room_of(&call)?;
        Ok(Run::new(Some(call), room, Arc::clone(&self.shared)))
    }

    /// All of the block. It is the same in every call: the first and only room of each.
    fn room_of(&self, call: &Call) -> Result<crate::call::Output<u8>> {
        // The plan's total was checked to fit.
        let total = self.shared.plan.total() as usize;
        let mut room = call.output::<u8>(total)?;
        let blocks = self.arena.stats().allocations;
        if self.zeroed.load(Ordering::Acquire) != blocks {
            room.fill_part("begin", 0, total, 0)?;
            self.zeroed.store(blocks, Ordering::Release);
        }
        Ok(room)
    }

    /// What the last finished run has left; none before the first.
    #[must_use]
    pub fn last(&self) -> Option<PlannedView> {
        let last = self.shared.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        last.map(|view| PlannedView::new(view, Arc::clone(&self.shared.plan)))
    }

    /// Writes elements from a slot's start on, in a run of its own; returns how many the slot took.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin) and [`Run::write`].
    pub fn write<T: Pod>(&self, node: u64, values: &[T]) -> Result<usize> {
        // An unknown node is no reason to make views stale.
        self.shared.plan.slot("write", node)?;
        let mut run = self.begin()?;
        let written = run.write(node, values)?;
        run.finish()?;
        Ok(written)
    }

    /// Reads elements from a slot's start on, as the last run has left them; returns how many the slot had. Where nothing
    /// has run yet, it begins and ends a run itself.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`]; [`Error::Contended`] during the first run; [`Error::Pending`] and [`Error::Stale`] while a run is under way, and after one that was
    /// abandoned.
    pub fn read<T: Pod>(&self, node: u64, values: &mut [T]) -> Result<usize> {
        let last = match self.last() {
            Some(last) => last,
            // Nothing has run: it is all zeros, once there is a block.
            None => self.begin()?.finish()?,
        };
        last.read(node, values)
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Arc<MemoryPlan> {
        &self.shared.plan
    }

    /// Whether the plan has the node.
    #[must_use]
    pub fn has(&self, node: u64) -> bool {
        self.shared.plan.has(node)
    }

    /// As [`MemoryPlan::byte_offset`].
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`].
    pub fn byte_offset(&self, node: u64) -> Result<u64> {
        self.shared.plan.byte_offset(node)
    }

    /// As [`MemoryPlan::elem_offset`].
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`], [`Error::ElementOffset`].
    pub fn elem_offset<T>(&self, node: u64) -> Result<u32> {
        self.shared.plan.elem_offset::<T>(node)
    }

    /// As [`MemoryPlan::elem_offset_64`].
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`], [`Error::ElementOffset`].
    pub fn elem_offset_64<T>(&self, node: u64) -> Result<u64> {
        self.shared.plan.elem_offset_64::<T>(node)
    }

    /// As [`MemoryPlan::slot_elems`].
    ///
    /// # Errors
    ///
    /// [`Error::UnknownNode`].
    pub fn slot_elems<T>(&self, node: u64) -> Result<u64> {
        self.shared.plan.slot_elems::<T>(node)
    }

    /// The plan's size in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.shared.plan.total()
    }

    /// Where the bytes are.
    #[must_use]
    pub fn describe(&self) -> ArenaDescription {
        self.arena.describe()
    }

    /// Counts the runs that were begun, the captured ones among them.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.arena.generation()
    }

    /// What holds the arena.
    #[must_use]
    pub fn holder(&self) -> Option<Holder> {
        self.arena.holder()
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> ArenaStats {
        self.arena.stats()
    }

    /// The executor whose device the bytes are of; none for host pages.
    #[must_use]
    pub fn executor(&self) -> Option<&Executor> {
        self.executor.as_ref()
    }
}
