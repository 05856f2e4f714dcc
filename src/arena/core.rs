//! What an arena's handle, its calls, outputs, views and guards share, and how each of them lets go of it.
//!
//! Three things keep a [`Core`] usable, and each type below has exactly one of them:
//!
//! - an *owner* (the arena's handle, the lease, a reader) is counted in the state word; the blocks live as long
//!   as there is one, and all owners together have one reference,
//! - a *hold* (a call's share, an open output) keeps the lease,
//! - a *reference* ([`CoreRef`]: a view, a waiter) keeps the core's own memory and nothing else.

use std::ptr::NonNull;
use std::sync::{Arc, Condvar};

use crate::arena::ArenaDescription;
use crate::arena::counts::Counts;
use crate::arena::fence::Fence;
use crate::arena::readers::free_later;
use crate::arena::room::Room;
use crate::arena::shared::SharedRoom;
use crate::arena::source::Source;
use crate::arena::state::{Phase, ReadRefusal, State, Word};
use crate::arena::stats::Counters;
use crate::arena::waiting::DeferredCall;
use crate::backend::{Backend, Event};
use crate::error::{Error, Result};
use crate::sync::{AtomicBool, AtomicU64, Mutex, UnsafeCell};

/// The shared part of an arena.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) state: State,
    pub(crate) counts: Counts,
    pub(crate) room: SharedRoom,
    pub(crate) source: Source,
    pub(crate) counters: Arc<Counters>,
    pub(crate) description: ArenaDescription,
    /// The device's work on bytes that the host reaches as well.
    pub(crate) fence: Fence,
    /// Behind the work of readers on other streams: the next begin lets its own stream wait for them.
    pub(super) readers: Mutex<Vec<Event>>,
    /// Whether there are any, for calls that end and want no lock.
    pub(super) has_readers: AtomicBool,
    /// The generation of a call whose work is being captured; zero for none.
    pub(crate) captured: AtomicU64,
    /// Behind the work of the last call that a host's worker was given: it knows who can't wait for it.
    pub(super) worked: Mutex<Option<Event>>,
    /// A call that was deferred as it was, until somebody sees that its event has passed.
    pub(super) deferred: Mutex<Option<DeferredCall>>,
    /// Held while that call is taken and ended, so that whoever finds it taken finds it ended. Taken before any other
    /// lock here.
    pub(super) settling: Mutex<()>,
    pub(super) freed: std::sync::Mutex<()>,
    pub(super) became_free: Condvar,
    /// The state that this one follows, whose generations are used up. A begin on another thread may still be
    /// looking at it, so it lives as long as the arena.
    previous: UnsafeCell<Option<CoreRef>>,
    #[cfg(loom)]
    pub(crate) shadow: crate::arena::shadow::Shadow,
}

// SAFETY: `previous` is written before the core is shared and taken by its last owner; everything else is Sync.
unsafe impl Sync for Core {}
// SAFETY: nothing in a core belongs to a thread.
unsafe impl Send for Core {}

impl Core {
    pub(crate) fn new(source: Source) -> NonNull<Self> {
        Self::place(State::new(), Room::default(), source, Arc::default(), None)
    }

    fn place(
        state: State,
        room: Room,
        source: Source,
        counters: Arc<Counters>,
        previous: Option<CoreRef>,
    ) -> NonNull<Self> {
        let description = source.describe();
        let core = Box::new(Self {
            state,
            counts: Counts::new(),
            room: SharedRoom::new(room),
            source,
            counters,
            description,
            fence: if previous.is_some() { Fence::following() } else { Fence::default() },
            readers: Mutex::new(Vec::new()),
            has_readers: AtomicBool::new(false),
            captured: AtomicU64::new(0),
            deferred: Mutex::new(None),
            worked: Mutex::new(None),
            settling: Mutex::new(()),
            freed: std::sync::Mutex::new(()),
            became_free: Condvar::new(),
            previous: UnsafeCell::new(previous),
            #[cfg(loom)]
            shadow: crate::arena::shadow::Shadow::new(),
        });
        NonNull::from(Box::leak(core))
    }

    /// The state that follows this one, already leased: same room, same counters, generations from the start.
    ///
    /// # Safety
    ///
    /// The caller holds this core's lease with every output closed, and is the arena's handle's user: it gives
    /// the owners' reference of this core to the new one.
    pub(crate) unsafe fn follow(core: NonNull<Self>) -> NonNull<Self> {
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        debug_assert_eq!(this.state.load().phase(), Phase::Starting);
        // SAFETY: the caller holds the lease with every output closed.
        let room = unsafe { this.room.with_call(std::mem::take) };
        let previous = CoreRef(core);
        let counters = Arc::clone(&this.counters);
        // SAFETY: the caller holds the lease, and moves the arena.
        let source = unsafe { this.source.follow() };
        Self::place(State::running(), room, source, counters, Some(previous))
    }

    /// Changes the word, and sees to what the change leaves behind: wakes who waits for a free arena, and frees
    /// the blocks if nobody owns them any more. Returns what freeing said, if this was the last owner.
    ///
    /// # Safety
    ///
    /// The caller is an owner. If `next` takes its ownership out of the word, it must not touch the core again.
    #[inline]
    pub(crate) unsafe fn change(core: NonNull<Self>, next: impl Fn(Word) -> Word) -> Option<Result<usize>> {
        // SAFETY: an owner keeps the core until the change below is made.
        let this = unsafe { core.as_ref() };
        let word = this.state.load();
        let after = next(word);
        // Where nobody waits and the arena is open, a change leaves nothing behind.
        if !word.has_waiters() && !after.is_closed() && this.state.change(word, after).is_ok() {
            return None;
        }
        // SAFETY: the change is not made, and the caller's promise is the same.
        unsafe { Self::change_slowly(core, next) }
    }

    /// # Safety
    ///
    /// As [`change`](Self::change).
    #[cold]
    #[inline(never)]
    unsafe fn change_slowly(core: NonNull<Self>, next: impl Fn(Word) -> Word) -> Option<Result<usize>> {
        // SAFETY: an owner keeps the core until the change below is made.
        let this = unsafe { core.as_ref() };
        let mut waker = None;
        let mut word = this.state.load();
        loop {
            let mut after = next(word);
            let wakes = word.has_waiters() && (after.is_free() || after.phase() == Phase::Retired);
            if wakes {
                after = after.without_waiters();
                // Once the change is made, only a reference keeps the core for the wake.
                // SAFETY: the caller is an owner still.
                waker.get_or_insert_with(|| unsafe { CoreRef::new(core) });
            }
            match this.state.change(word, after) {
                Ok(()) if after.is_ownerless() => {
                    // SAFETY: this change left no owner.
                    return Some(unsafe { Self::free(core) });
                }
                Ok(()) => {
                    if let Some(waker) = waker.filter(|_| wakes) {
                        waker.wake();
                    }
                    return None;
                }
                Err(seen) => word = seen,
            }
        }
    }

    /// Ends a call that opened `opened` outputs. The lease ends with it, or with the last of its outputs that is
    /// open.
    ///
    /// # Safety
    ///
    /// The caller is the call that holds the lease, and does not touch the core again.
    #[inline]
    pub(crate) unsafe fn end_call(core: NonNull<Self>, opened: u32, abandoned: bool) {
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        debug_assert!(matches!(
            this.state.load().phase(),
            Phase::Running | Phase::Deferred | Phase::Captured
        ));
        let ended = |word: Word| if abandoned { word.next_generation() } else { word };
        if this.counts.try_settle(opened) {
            // SAFETY: every output is closed, and the caller is the call.
            unsafe { Self::end_lease(core, ended) };
            return;
        }
        // SAFETY: the caller is an owner and stays one: the phase keeps the lease, and the share its hold.
        unsafe { Self::change(core, |word| ended(word).with_phase(Phase::Ended)) };
        if this.counts.give_up_share(opened) {
            // SAFETY: the last output closed meanwhile and left the lease to the caller.
            unsafe { Self::close_last_hold(core) };
        }
    }

    /// Ends the lease of a call that ended before its outputs did.
    ///
    /// # Safety
    ///
    /// The caller gave back the lease's last hold, and does not touch the core again.
    #[cold]
    pub(crate) unsafe fn close_last_hold(core: NonNull<Self>) {
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        debug_assert_eq!(this.state.load().phase(), Phase::Ended);
        this.counts.restore_share();
        // SAFETY: the caller had the last hold, so every output is closed.
        unsafe { Self::end_lease(core, |word| word) };
    }

    /// # Safety
    ///
    /// The caller holds the lease with every output closed, and does not touch the core again.
    #[inline]
    unsafe fn end_lease(core: NonNull<Self>, ended: impl Fn(Word) -> Word) {
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        // SAFETY: every output is closed, so the lease's holder has the room alone.
        let attention = unsafe { this.room.with_call(|room| room.needs_attention(&this.source)) };
        let attention = attention || this.has_readers();
        // A reader that went meanwhile has set the mark.
        let next = |word: Word| {
            let attention = attention || word.needs_attention();
            ended(word).with_phase(Phase::Idle).with_attention(attention)
        };
        // SAFETY: the lease's holder is an owner, and gives that up.
        unsafe { Self::change(core, next) };
    }

    /// Counts a reader of `generation`.
    #[inline]
    pub(crate) fn read(&self, generation: u64, operation: &'static str) -> Result<()> {
        match self.state.read(generation) {
            Ok(()) => Ok(()),
            Err(refusal) => self.read_refused(refusal, generation, operation),
        }
    }

    #[cold]
    fn read_refused(&self, refusal: ReadRefusal, generation: u64, operation: &'static str) -> Result<()> {
        if refusal == ReadRefusal::Deferred && self.settle()? {
            return self.read(generation, operation);
        }
        Err(self.refused(refusal, generation, operation))
    }

    /// The error for a refused read, counted.
    pub(crate) fn refused(&self, refusal: ReadRefusal, generation: u64, operation: &'static str) -> Error {
        match refusal {
            ReadRefusal::Stale(reason) => {
                self.counters.refused_stale_read();
                Error::Stale { generation, reason }
            }
            ReadRefusal::Pending | ReadRefusal::Deferred => Error::Pending { operation, generation },
            ReadRefusal::Contended(holder) => Error::Contended { operation, holder },
            ReadRefusal::TooMany => Error::TooManyReaders { limit: crate::arena::state::MAX_READERS },
        }
    }

    /// Uncounts a reader.
    ///
    /// # Safety
    ///
    /// The caller was counted by [`read`](Self::read), and does not touch the core again unless it has a
    /// reference as well.
    #[inline]
    pub(crate) unsafe fn end_read(core: NonNull<Self>) {
        // SAFETY: a reader is an owner, and owners keep the core.
        debug_assert_ne!(unsafe { core.as_ref() }.state.load().readers(), 0);
        // SAFETY: a reader is an owner, and gives that up.
        unsafe { Self::change(core, Word::without_reader) };
    }

    /// As [`end_read`](Self::end_read), for a reader whose work the next begin has to see to.
    ///
    /// # Safety
    ///
    /// As [`end_read`](Self::end_read).
    pub(crate) unsafe fn end_read_with_attention(core: NonNull<Self>) {
        // SAFETY: a reader is an owner, and gives that up.
        unsafe { Self::change(core, |word| word.without_reader().with_attention(true)) };
    }

    /// The arena's handle goes: its views are stale, and whoever is the last owner frees the blocks. Waits for
    /// the work of a deferred call, which is then the last owner. Returns what freeing said, if the handle was.
    ///
    /// # Safety
    ///
    /// The caller is the handle, and does not touch the core again.
    pub(crate) unsafe fn close(core: NonNull<Self>) -> Option<Result<usize>> {
        // SAFETY: the handle is an owner.
        let reference = unsafe { CoreRef::new(core) };
        // SAFETY: the handle gives its ownership up.
        let outcome = unsafe { Self::change(core, Word::closed) };
        // A thread that does a stream's work waits for no other's: two of them could wait for each other.
        let waited =
            outcome.is_some() || reference.source.backend.can_wait() && reference.wait_for_deferred().is_ok();
        if !waited {
            reference.settle_later();
        }
        outcome
    }

    /// Frees the blocks and lets go of the owners' reference.
    ///
    /// # Safety
    ///
    /// The caller made the change that left no owner.
    #[cold]
    unsafe fn free(core: NonNull<Self>) -> Result<usize> {
        // SAFETY: the owners' reference keeps the core.
        let this = unsafe { core.as_ref() };
        debug_assert!(this.state.load().is_ownerless());
        // SAFETY: nobody owns the blocks, nobody can become an owner of a closed arena: the caller is alone.
        let ordered = unsafe { this.wait_for_readers() };
        // What readers on other streams may still read is left to them.
        let outcome = ordered.inspect_err(|_| this.counters.failed_free()).and_then(|()| {
            // SAFETY: as above.
            unsafe { this.room.with_call(|room| room.free_all(&this.source, &this.counters)) }
        });
        // SAFETY: as above.
        let stuck = unsafe { this.room.with_call(Room::take_stuck) };
        // SAFETY: as above. It goes after the blocks, and after everything that is touched here.
        let executor = unsafe { this.source.release() };
        let backend = this.source.backend.clone();
        drop(CoreRef(core));
        match executor {
            Some(executor) if !stuck.is_empty() => free_later(backend, executor, stuck),
            executor => drop(executor),
        }
        outcome
    }
}

/// A reference to a core: keeps its memory, and neither its blocks nor its lease.
#[derive(Debug)]
pub(crate) struct CoreRef(NonNull<Core>);

// SAFETY: a core is Send and Sync, and references are counted atomically.
unsafe impl Send for CoreRef {}
// SAFETY: as above.
unsafe impl Sync for CoreRef {}

impl CoreRef {
    /// # Safety
    ///
    /// The caller is an owner, has a hold or a reference.
    #[inline]
    pub(crate) unsafe fn new(core: NonNull<Core>) -> Self {
        // SAFETY: one of these keeps the core.
        unsafe { core.as_ref() }.counts.refer();
        Self(core)
    }

    /// # Safety
    ///
    /// The caller has a reference that it gives away: the one that publishing takes.
    #[inline]
    pub(crate) unsafe fn from_counted(core: NonNull<Core>) -> Self {
        Self(core)
    }

    #[inline]
    pub(crate) fn as_non_null(&self) -> NonNull<Core> {
        self.0
    }
}

impl std::ops::Deref for CoreRef {
    type Target = Core;

    #[inline]
    fn deref(&self) -> &Core {
        // SAFETY: the reference keeps the core.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for CoreRef {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: this is a reference.
        unsafe { Self::new(self.0) }
    }
}

impl Drop for CoreRef {
    #[inline]
    fn drop(&mut self) {
        #[cfg(loom)]
        self.shadow.refer();
        if self.counts.release() {
            // SAFETY: that was the last reference.
            unsafe { delete(self.0) };
        }
    }
}

/// Deletes a core and, one by one, those before it that nothing else refers to.
///
/// # Safety
///
/// The caller let go of the last reference.
#[cold]
#[inline(never)]
unsafe fn delete(core: NonNull<Core>) {
    let mut next = Some(core);
    while let Some(core) = next {
        // SAFETY: nobody refers to the core, which `Core::place` leaked from a box.
        let core = unsafe { Box::from_raw(core.as_ptr()) };
        #[cfg(loom)]
        core.shadow.delete();
        // SAFETY: the box is the only way to the core.
        let previous = core.previous.with_mut(|previous| unsafe { (*previous).take() });
        next = previous.and_then(|previous| {
            let previous = std::mem::ManuallyDrop::new(previous);
            previous.counts.release().then_some(previous.0)
        });
    }
}
