//! Calls: the exclusive use of an arena, and what a call makes room for.

#[cfg(feature = "allocator-api2")]
mod allocator;
mod device_room;
mod hold;
mod output;
mod parts;
mod pointers;
mod scratch;
mod stage;
mod tape_output;
mod writer;

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use bytemuck::Pod;

#[cfg(feature = "allocator-api2")]
pub use self::allocator::HostAllocator;
pub use self::device_room::DeviceRoom;
use self::hold::Hold;
pub use self::output::Output;
pub(crate) use self::parts::Part;
pub use self::scratch::{Scratch, ScratchScope};
pub use self::stage::StagedTape;
pub use self::tape_output::TapeOutput;
pub use self::writer::Writer;
use crate::arena::{Access, ArenaDescription, Core, MAX_OUTPUTS, Patience, Room, Stamp, round_up};
use crate::backend::{Event, Stream};
use crate::error::{Error, Result, StaleReason};
use crate::executor::Executor;
use crate::view::{Export, View};

/// The exclusive use of an arena, from `begin` to [`finish`](Self::finish). It may move to another thread, and is used
/// by one at a time; its outputs may be filled by several.
///
/// A call that is dropped unfinished is abandoned: its views are stale at once. Outputs may outlive their call;
/// the arena is contended until the last of them is published or dropped. A call that is forgotten leaves its
/// arena contended for good.
///
/// ```
/// use device_arena::{Arena, Error};
///
/// let arena = Arena::host();
/// let call = arena.begin()?;
/// let mut words = call.writer::<u32>()?;
/// for word in "three short words".split(' ') {
///     words.push(word.len() as u32)?; // how many there are is known only afterwards
/// }
/// let view = words.publish();
/// assert!(matches!(view.read(), Err(Error::Pending { .. })));
/// call.finish()?;
/// assert_eq!(*view.read()?, [5, 5, 5]);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "a call that is dropped unfinished is abandoned, and its views are stale"]
pub struct Call {
    core: NonNull<Core>,
    generation: u64,
    /// How many outputs were opened, each with a hold of the call's share.
    opened: Cell<u32>,
    /// How many scratch scopes were begun and not ended.
    scopes: Cell<u32>,
}

// SAFETY: the lease and the share of holds belong to the call, not to a thread. It is not Sync: `opened` and the
// room are used without a lock.
unsafe impl Send for Call {}

impl Call {
    /// # Safety
    ///
    /// The caller has just taken the core's lease for `generation`, and gives it to the call.
    #[inline]
    pub(crate) unsafe fn new(core: NonNull<Core>, generation: u64) -> Self {
        // SAFETY: the lease keeps the core.
        debug_assert_eq!(unsafe { core.as_ref() }.state.load().generation(), generation);
        Self { core, generation, opened: Cell::new(0), scopes: Cell::new(0) }
    }

    #[inline]
    fn core(&self) -> &Core {
        // SAFETY: the lease keeps the core.
        unsafe { self.core.as_ref() }
    }

    pub(crate) fn core_ptr(&self) -> NonNull<Core> {
        self.core
    }

    /// The arena's generation while this call runs, which its views carry.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Where the outputs are.
    #[must_use]
    pub fn describe(&self) -> ArenaDescription {
        self.core().description
    }

    /// The executor of a device's arena, which is where the call computes; none for host pages.
    #[must_use]
    pub fn executor(&self) -> Option<&Executor> {
        // SAFETY: the lease's holder is an owner for as long as the call is borrowed.
        unsafe { self.core().source.executor() }
    }

    pub(crate) fn check_executor(&self, operation: &'static str, executor: &Executor) -> Result<()> {
        self.core().source.check_executor(operation, executor)
    }

    /// Whether the host may use room of this call.
    #[inline]
    fn host_access(&self, operation: &'static str, access: Access) -> Result<()> {
        // SAFETY: the lease's holder is an owner.
        unsafe { self.core().host_access(operation, self.generation, access, Patience::Refuse) }
    }

    /// Ends the call: its published views can be read. Neither waits nor calls the driver: the stream orders a device's
    /// work before that of the next call. An error of queued work surfaces at the first wait for it.
    ///
    /// # Errors
    ///
    /// None today.
    #[inline]
    pub fn finish(self) -> Result<()> {
        self.end();
        Ok(())
    }

    /// Holds a view that this call published, past the call's end: no begin of another thread can come between the
    /// end of the call and the first read. This is how a verb gives its result to a caller who shares the arena with
    /// other threads, and how deferred work does.
    ///
    /// ```
    /// # use device_arena::{Arena, Error, Executor};
    /// # let executor = Executor::host()?;
    /// # let arena = Arena::new(&executor);
    /// let soon = executor.defer(&arena, |call| {
    ///     let view = call.output_from_slice(&[1u8, 2, 3])?.publish();
    ///     call.export(&view)
    /// })?;
    /// let values = soon.wait()?; // the arena is held from the begin of the call to the drop of the values
    /// assert!(matches!(arena.begin(), Err(Error::Contended { .. })));
    /// assert_eq!(*values, [1, 2, 3]);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] for a view of another call; [`Error::Device`] for memory that the host does not reach;
    /// [`Error::Pending`] for a host-coherent output whose device pointer was taken, until the stream has passed;
    /// [`Error::TooManyReaders`].
    pub fn export<T: Pod>(&self, view: &View<T>) -> Result<Export<T>> {
        if !view.is_of(self.core, self.generation) {
            return Err(Error::Stale { generation: view.generation(), reason: StaleReason::Rewound });
        }
        view.export_as_holder()
    }

    /// Copies all values of a view that this call published, before the call's end: for what the host has to see to go on,
    /// such as a count that a device wrote. From a device it waits for what the call has queued so far, and for the copy.
    ///
    /// ```
    /// # let arena = device_arena::Arena::host();
    /// let call = arena.begin()?;
    /// let count = call.output_from_slice(&[3u32])?.publish();
    /// let mut collected = [0];
    /// call.collect(&count, &mut collected)?; // count.to_vec() would be pending still
    /// let rows = call.output::<f32>(collected[0] as usize)?.publish();
    /// call.finish()?;
    /// assert_eq!(rows.len(), 3);
    /// # Ok::<(), device_arena::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Stale`] for a view of another call; [`Error::LengthMismatch`] for other than as many values;
    /// [`Error::TooManyReaders`]; from a device what its driver says, the errors of queued work among it, and
    /// [`Error::Capturing`].
    pub fn collect<T: Pod>(&self, view: &View<T>, values: &mut [T]) -> Result<()> {
        if !view.is_of(self.core, self.generation) {
            return Err(Error::Stale { generation: view.generation(), reason: StaleReason::Rewound });
        }
        view.copy_to_as_holder(values)
    }

    #[inline]
    pub(crate) fn end(self) {
        let this = ManuallyDrop::new(self);
        // SAFETY: this is the call that holds the lease, and it is gone now.
        unsafe { Core::end_call(this.core, this.opened.get(), false) };
    }

    /// The stream of a device's arena.
    fn stream(&self) -> Option<&Stream> {
        self.executor().map(Executor::as_stream)
    }

    pub(crate) fn defer(self, event: Event) {
        let core = self.core;
        // SAFETY: this is the call that holds the lease.
        unsafe { Core::defer(core, self, event) };
    }

    /// Whether every output of the call is published or dropped.
    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a device captures"))]
    pub(crate) fn is_settled(&self) -> bool {
        let is_settled = self.core().counts.try_settle(self.opened.get());
        if is_settled {
            self.opened.set(0);
        }
        is_settled
    }

    /// Marks the call as captured: its views are stale, and those of a launch can be read.
    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a device captures"))]
    pub(crate) fn mark_captured(&self) {
        let captured = |word: crate::arena::Word| {
            let phase = crate::arena::Phase::Captured;
            word.next_generation().with_phase(phase)
        };
        // SAFETY: the call is an owner and stays one.
        unsafe { Core::change(self.core, captured) };
    }

    /// Marks the call as deferred: others see whose hold it is.
    pub(crate) fn mark_deferred(&self) {
        // SAFETY: the call is an owner and stays one.
        unsafe { Core::change(self.core, |word| word.with_phase(crate::arena::Phase::Deferred)) };
    }

    #[inline]
    fn with_room<R>(&self, access: impl FnOnce(&Core, &mut Room) -> R) -> R {
        let core = self.core();
        // SAFETY: this is the call that holds the lease; the closures in this module call no user's code and do
        // not come back here.
        unsafe { core.room.with_call(|room| access(core, room)) }
    }

    /// Takes one hold of the call's share.
    #[inline]
    fn open(&self) -> Result<Hold> {
        let opened = self.opened.get();
        if opened >= MAX_OUTPUTS {
            return Err(Error::TooManyOutputs { limit: MAX_OUTPUTS });
        }
        self.opened.set(opened + 1);
        Ok(Hold {
            core: self.core,
            stamp: Stamp::new(self.generation),
            #[cfg(loom)]
            opened,
        })
    }

    /// Room for `len` values. Not initialised by the call: it shows zeros, what an earlier call left, or what the
    /// arena's scrub put there. Aligned to the arena's alignment, and to `T`'s.
    ///
    /// Zero bytes of room, for no values or values of no size, allocate nothing.
    ///
    /// # Errors
    ///
    /// [`Error::SizeOverflow`], [`Error::Alignment`] for a `T` aligned beyond a block, [`Error::OverLimit`],
    /// [`Error::OutOfMemory`], [`Error::TooManyOutputs`].
    #[inline]
    pub fn output<T: Pod>(&self, len: usize) -> Result<Output<T>> {
        let Some(bytes) = len.checked_mul(size_of::<T>()) else {
            return Err(size_overflow::<T>("output", len));
        };
        // First, so that one that is refused has taken no room.
        let hold = self.open()?;
        let address = if bytes == 0 {
            self.core().source.check_alignment(align_of::<T>())?;
            NonNull::dangling()
        } else {
            self.with_room(|core, room| room.take(&core.source, &core.counters, bytes, align_of::<T>()))?
                .cast()
        };
        Ok(Output::new(hold, address, len))
    }

    /// An output that holds a copy of `values`.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output), and as [`Output::copy_from_slice`].
    pub fn output_from_slice<T: Pod>(&self, values: &[T]) -> Result<Output<T>> {
        // First, so that what is refused has taken no room. To a device's memory the copy is another.
        match self.host_access("output_from_slice", Access::Room) {
            Ok(()) | Err(Error::Device { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut output = self.output(values.len())?;
        match output.copy_from_slice(values) {
            Ok(()) => Ok(output),
            Err(error) => {
                self.give_back(output);
                Err(error)
            }
        }
    }

    /// Gives an output's room back, where it is the last that was taken.
    fn give_back<T: Pod>(&self, output: Output<T>) {
        let bytes = output.len() * size_of::<T>();
        let end = output.address().cast::<u8>();
        drop(output);
        if let Some(rounded) = round_up(bytes, self.core().source.options.alignment)
            && bytes != 0
        {
            // SAFETY: the output was so many bytes of one block, rounded up.
            let end = unsafe { end.add(rounded) };
            self.with_room(|core, room| room.give_back(&core.counters, end, rounded, None));
        }
    }

    /// An output of `len` values, each made by `value` from its index. The room is taken before `value` first
    /// runs.
    ///
    /// # Errors
    ///
    /// As [`output`](Self::output), and as [`Output::as_mut_slice`].
    pub fn output_from_fn<T: Pod>(&self, len: usize, value: impl FnMut(usize) -> T) -> Result<Output<T>> {
        self.host_access("output_from_fn", Access::Room)?;
        let mut output = self.output(len)?;
        output.fill_with(value)?;
        Ok(output)
    }

    /// An output that holds what `values` yields. For an iterator that knows its length the room is taken at
    /// once, before it first runs; otherwise it grows.
    ///
    /// # Errors
    ///
    /// As [`writer`](Self::writer). What was yielded until then is lost with the iterator: use a
    /// [`Writer`] to keep it.
    pub fn writer_from_iter<T: Pod>(&self, values: impl IntoIterator<Item = T>) -> Result<Writer<T>> {
        let values = values.into_iter();
        let mut writer = self.writer_with_capacity(values.size_hint().0)?;
        writer.extend(values)?;
        Ok(writer)
    }

    /// An output whose length is known only once it is written. It takes room as it grows.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] where the host can't write, [`Error::Alignment`], [`Error::TooManyOutputs`].
    pub fn writer<T: Pod>(&self) -> Result<Writer<T>> {
        self.writer_with_capacity(0)
    }

    /// A writer with room for `capacity` values.
    ///
    /// # Errors
    ///
    /// As [`writer`](Self::writer), and as [`output`](Self::output).
    pub fn writer_with_capacity<T: Pod>(&self, capacity: usize) -> Result<Writer<T>> {
        self.host_access("writer", Access::Room)?;
        self.core().source.check_alignment(align_of::<T>())?;
        let hold = self.open()?;
        // SAFETY: this is the call that holds the lease, and the hold is of it.
        let mut writer = unsafe { Writer::new(hold) };
        writer.reserve(capacity)?;
        Ok(writer)
    }

    /// A tape that grows item by item, and is published as one: see [`TapeOutput`].
    ///
    /// # Errors
    ///
    /// As [`writer`](Self::writer).
    pub fn tape_output(&self) -> Result<TapeOutput> {
        self.tape_output_with_capacity(0, 0)
    }

    /// A tape output with room for so many items and bytes.
    ///
    /// # Errors
    ///
    /// As [`writer_with_capacity`](Self::writer_with_capacity).
    pub fn tape_output_with_capacity(&self, items: usize, bytes: usize) -> Result<TapeOutput> {
        let offsets = self.writer_with_capacity(items.saturating_add(1))?;
        TapeOutput::new(offsets, self.writer_with_capacity(bytes)?)
    }

    /// Runs `work` with scratch room that is free again when it returns, by a panic too. Scratch comes from the
    /// other end of the block than outputs, and can't be published.
    ///
    /// ```
    /// # let arena = device_arena::Arena::host();
    /// let mut call = arena.begin()?;
    /// let view = call.scratch(|scope| {
    ///     let counts = scope.take::<u32>(256)?;
    ///     counts.fill(0);
    ///     for byte in b"outputs are opened from the call" {
    ///         counts[usize::from(*byte)] += 1;
    ///     }
    ///     Ok::<_, device_arena::Error>(scope.call().output_from_slice(counts)?.publish())
    /// })?;
    /// call.finish()?;
    /// assert_eq!(view.read()?[usize::from(b'u')], 2);
    /// # Ok::<(), device_arena::Error>(())
    /// ```
    pub fn scratch<R>(&mut self, work: impl for<'s> FnOnce(&mut Scratch<'s>) -> R) -> R {
        scratch::scope(self, work)
    }

    /// An allocator of room in this call, for collections that take one. Only for memory that the host reaches.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] otherwise.
    #[cfg(feature = "allocator-api2")]
    pub fn host(&self) -> Result<HostAllocator<'_>> {
        self.host_access("host", Access::Room)?;
        Ok(HostAllocator::new(self))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        // SAFETY: this is the call that holds the lease, and it is gone now.
        unsafe { Core::end_call(self.core, self.opened.get(), true) };
    }
}

/// Whether a device knows the memory, where it does not share it with the host.
fn check_device(core: &Core, operation: &'static str) -> Result<()> {
    if core.source.is_on_device() { Ok(()) } else { Err(Error::HostMemory { operation }) }
}

#[cold]
fn size_overflow<T>(operation: &'static str, elements: usize) -> Error {
    Error::SizeOverflow { operation, elements, element_bytes: size_of::<T>() }
}
