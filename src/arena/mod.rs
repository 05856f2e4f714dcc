//! Arenas: the memory that one call's outputs land in.

mod core;
mod counts;
mod fence;
mod options;
mod readers;
mod room;
mod seen;
#[cfg(loom)]
mod shadow;
mod shared;
mod source;
mod stamp;
mod state;
mod stats;
mod waiting;

use std::ptr::NonNull;
use std::time::{Duration, Instant};

pub(crate) use self::core::{Core, CoreRef};
pub(crate) use self::counts::MAX_OUTPUTS;
pub(crate) use self::fence::{Access, Patience};
pub use self::options::{ArenaOptions, Growth, Placement, Scrub};
use self::room::HalfDone;
pub(crate) use self::room::{Cost, Room, ScratchMark, round_up};
pub(crate) use self::source::Source;
pub(crate) use self::stamp::Stamp;
pub(crate) use self::state::{Phase, ReadRefusal, Word};
pub use self::stats::ArenaStats;
use crate::backend::Backend;
use crate::call::Call;
use crate::error::{Error, Holder, Refused, Result};
use crate::executor::Executor;
use crate::sync::{AtomicPtr, Ordering};
use crate::trace::event;

/// Which memory an arena's bytes are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Residency {
    /// Host pages.
    Ram,
    /// Memory of one device.
    Vram,
}

/// Where an arena's outputs are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ArenaDescription {
    /// Which memory.
    pub residency: Residency,
    /// The device's ordinal, or -1 for host pages.
    pub device: i32,
}

impl ArenaDescription {
    const HOST: Self = Self { residency: Residency::Ram, device: -1 };
}

/// The memory that one call's outputs land in. Each call rewinds it, so that a steady loop allocates once.
///
/// Making one allocates nothing from the driver; the first output of the first call does. A call that outgrows
/// the arena's block chains another, and the next begin replaces the chain by one block that fits the high-water
/// mark.
///
/// Dropping an arena makes its views stale. A call, a guard or an export that is alive then goes on, and the last
/// of them frees the blocks. Dropping waits for the work of a call that was deferred with
/// [`Executor::defer_call`], unless it is dropped on the worker of a host executor, which leaves that work to be the
/// last owner; a failure of the driver in drop is counted and traced, and raised nowhere.
///
/// ```
/// use device_arena::{Arena, Error};
///
/// let arena = Arena::host();
/// let mut squares = None;
/// for round in 0..3u32 {
///     let call = arena.begin()?; // rewinds
///     let mut output = call.output::<u32>(4)?;
///     output.fill_with(|i| (i as u32 + round).pow(2))?;
///     let view = output.publish();
///     call.finish()?;
///     if let Some(earlier) = squares.replace(view) {
///         assert!(matches!(earlier.read(), Err(Error::Stale { .. })));
///     }
/// }
/// assert_eq!(*squares.unwrap().read()?, [4, 9, 16, 25]);
/// assert_eq!(arena.stats().allocations, 1);
/// # Ok::<(), Error>(())
/// ```
pub struct Arena {
    /// The core of the current state. Those before it live as long as the arena, so that whatever was loaded
    /// here stays valid while the arena is borrowed.
    core: AtomicPtr<Core>,
}

impl Arena {
    /// An arena of host pages for calls on the calling thread, and on any host executor. Nothing is allocated yet.
    #[must_use]
    pub fn host() -> Self {
        ArenaOptions::build_default(None)
    }

    /// An arena with its memory where `executor` computes. Nothing is allocated yet. The arena of a host executor
    /// may outlive it; the arena of a device's serves that executor alone, and keeps it alive.
    #[must_use]
    pub fn new(executor: &Executor) -> Self {
        ArenaOptions::build_default(Some(executor))
    }

    pub(crate) fn from_source(source: Source) -> Self {
        Self { core: AtomicPtr::new(Core::new(source).as_ptr()) }
    }

    #[inline]
    fn core_ptr(&self) -> NonNull<Core> {
        let core = self.core.load(Ordering::Acquire);
        // SAFETY: the pointer always comes from `Core::new` or `Core::follow`, which never answer null.
        unsafe { NonNull::new_unchecked(core) }
    }

    #[inline]
    fn core(&self) -> &Core {
        // SAFETY: the handle is an owner of the current core, and the cores before it live as long as that one.
        unsafe { self.core_ptr().as_ref() }
    }

    /// Begins a call on the calling thread: rewinds the arena, so that every view of the call before is stale.
    ///
    /// # Errors
    ///
    /// [`Error::Contended`] while a call, deferred work, a guard or an export holds the arena; the refusal
    /// changes nothing. [`Error::Driver`] where a scrub fails; the views of the call before are current then,
    /// unless it failed half way through more blocks than are scrubbed at once.
    /// [`Error::Capturing`] for a device's arena that has something to see to, while its stream is being captured by
    /// somebody else; a begin that has not asks no driver, and its work becomes the capture's.
    #[inline]
    pub fn begin(&self) -> Result<Call> {
        self.begin_as("begin")
    }

    /// Begins a call for the function that the error should name.
    #[inline]
    pub(crate) fn begin_as(&self, operation: &'static str) -> Result<Call> {
        self.try_begin(operation).inspect_err(|error| self.count_refusal(error))
    }

    /// Begins a call on the calling thread, and waits for the arena to be free for `timeout` at most.
    ///
    /// # Errors
    ///
    /// As [`begin`](Self::begin), once the time is up; [`Error::WouldDeadlock`] on the worker whose own work, or work queued
    /// behind it, holds the arena.
    pub fn begin_timeout(&self, timeout: Duration) -> Result<Call> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            let error = match self.try_begin("begin_timeout") {
                Err(error @ Error::Contended { .. }) => error,
                outcome => return outcome,
            };
            let left = match deadline {
                None => timeout,
                Some(deadline) => deadline.saturating_duration_since(Instant::now()),
            };
            if left.is_zero() {
                self.count_refusal(&error);
                return Err(error);
            }
            self.core().wait_until_free(left)?;
        }
    }

    /// Host arenas serve every host executor, and a device's arena serves the one that made it.
    #[inline]
    pub(crate) fn check_executor(&self, operation: &'static str, executor: &Executor) -> Result<()> {
        self.core().source.check_executor(operation, executor)
    }

    fn count_refusal(&self, error: &Error) {
        if matches!(error, Error::Contended { .. }) {
            self.core().counters.refused_begin();
            event!(debug, error = error, "refused");
        }
    }

    /// The core with its lease taken.
    #[inline]
    fn lease(&self, only_start: bool, operation: &'static str) -> Result<(NonNull<Core>, Word)> {
        loop {
            // Loaded once: another thread's begin may move the arena to a fresh state meanwhile.
            let core = self.core_ptr();
            // SAFETY: as in `core`.
            let this = unsafe { core.as_ref() };
            match this.state.lease(only_start) {
                Ok(word) => return Ok((core, word)),
                Err(word) => {
                    if !changes_soon(this, word)? {
                        return Err(Error::Contended { operation, holder: word.holder() });
                    }
                }
            }
        }
    }

    #[inline]
    fn try_begin(&self, operation: &'static str) -> Result<Call> {
        let (core, word) = self.lease(false, operation)?;
        if word.phase() == Phase::Starting {
            return self.begin_slowly(core);
        }
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        // SAFETY: the lease was just taken, so every output is closed.
        unsafe { this.room.with_call(|room| room.rewind(&this.counters)) };
        #[cfg(loom)]
        this.shadow.rewind();
        this.counters.rewound();
        // SAFETY: the lease was just taken, and goes to the call.
        Ok(unsafe { Call::new(core, word.generation()) })
    }

    #[cold]
    #[inline(never)]
    fn begin_slowly(&self, core: NonNull<Core>) -> Result<Call> {
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        let (source, counters) = (&this.source, &this.counters);
        // SAFETY: the lease was just taken.
        let ordered = unsafe { Self::prepare_stream(this, "begin") };
        // SAFETY: as above.
        let by_host = ordered.and_then(|()| unsafe { this.is_quiet() });
        // SAFETY: the lease was just taken, so every output is closed.
        let prepare =
            |by_host| unsafe { this.room.with_call(|room| room.prepare_rewind(source, counters, by_host)) };
        let by_stream = matches!(by_host, Ok(false));
        let prepared = by_host.map_err(HalfDone::from).and_then(prepare);
        if by_stream {
            // What the stream scrubs is work that the host waits for, too.
            this.fence.queued();
        }
        let stays = match prepared {
            Ok(stays) => stays,
            Err(HalfDone { error, changed }) => {
                // Views of bytes that may have changed are stale. The bytes are scrubbed by the next begin.
                let kept = |word: Word| if changed { word.next_generation() } else { word };
                // SAFETY: the lease's holder is an owner; the handle, which is another, keeps the core.
                unsafe { Core::change(core, |word| kept(word).with_phase(Phase::Idle)) };
                return Err(error);
            }
        };
        // SAFETY: the lease is started, and every output is closed.
        let core = unsafe { self.advance(core) };
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        // SAFETY: as above: no output has been opened yet.
        unsafe { this.room.with_call(|room| room.finish_rewind(&this.source, &this.counters, stays)) };
        #[cfg(loom)]
        this.shadow.rewind();
        this.counters.rewound();
        // SAFETY: the lease goes to the call.
        Ok(unsafe { Call::new(core, this.state.load().generation()) })
    }

    /// Ends a lease that was only started, with everything as it was.
    ///
    /// # Safety
    ///
    /// The caller holds `core`'s lease in [`Phase::Starting`], and does not touch the core again.
    unsafe fn give_up_start(core: NonNull<Core>) {
        // SAFETY: the lease's holder is an owner; the handle, which is another, keeps the core.
        unsafe { Core::change(core, |word| word.with_phase(Phase::Idle)) };
    }

    /// Sees to what a slow begin does to the device's stream: nothing while it is being captured.
    ///
    /// # Safety
    ///
    /// The caller holds `core`'s lease.
    unsafe fn prepare_stream(core: &Core, operation: &'static str) -> Result<()> {
        // SAFETY: the lease's holder is an owner.
        let Some(stream) = (unsafe { core.source.stream() }) else { return Ok(()) };
        if core.source.backend.is_capturing(stream)? {
            return Err(Error::Capturing { operation });
        }
        // SAFETY: as above.
        unsafe { core.order_after_readers() }?;
        Ok(())
    }

    /// Moves a started lease to the next generation and to [`Phase::Running`], in a fresh state where this one's
    /// generations are used up. Returns the core that is leased now.
    ///
    /// # Safety
    ///
    /// The caller holds `core`'s lease in [`Phase::Starting`], with every output closed.
    unsafe fn advance(&self, core: NonNull<Core>) -> NonNull<Core> {
        // SAFETY: the lease keeps the core.
        if unsafe { core.as_ref() }.state.is_exhausted() {
            // SAFETY: the caller holds the lease with every output closed, and is the handle's user.
            let next = unsafe { Core::follow(core) };
            self.core.store(next.as_ptr(), Ordering::Release);
            // SAFETY: the lease's holder is an owner, and `next` has a reference to the core.
            unsafe { Core::change(core, |word| word.with_phase(Phase::Retired)) };
            return next;
        }
        let running = |word: Word| word.next_generation().with_phase(Phase::Running).with_attention(false);
        // SAFETY: the lease's holder is an owner and stays one.
        unsafe { Core::change(core, running) };
        core
    }

    /// Makes sure that the next call can take `bytes` bytes without asking the driver: outputs rounded up to the
    /// alignment each, and scratch. Views of the last call stay current, so the blocks that there are stay too, and
    /// count against the byte limit; [`trim`](Self::trim) gives them back.
    ///
    /// # Errors
    ///
    /// [`Error::Contended`], [`Error::OverLimit`], [`Error::OutOfMemory`]; the arena is as it was then.
    pub fn reserve(&self, bytes: usize) -> Result<()> {
        let core = self.start("reserve")?;
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        // SAFETY: the lease was just taken, so every output is closed.
        let (outcome, attention) = unsafe {
            this.room.with_call(|room| {
                let outcome = room.reserve(&this.source, &this.counters, bytes);
                (outcome, room.needs_attention(&this.source))
            })
        };
        let attention = attention || this.has_readers();
        let next = |word: Word| word.with_phase(Phase::Idle).with_attention(attention);
        // SAFETY: the lease's holder is an owner; the handle, which is another, keeps the core.
        unsafe { Core::change(core, next) };
        outcome
    }

    /// Gives every block back to the driver, forgets the high-water mark and makes every view stale. Returns the
    /// bytes that were freed.
    ///
    /// # Errors
    ///
    /// [`Error::Contended`], and then nothing has changed. [`Error::Driver`] where the driver does not take a
    /// block back: it stays counted as reserved, is never used again, and is tried again at the next chance.
    pub fn trim(&self) -> Result<usize> {
        self.trim_as("trim")
    }

    fn trim_as(&self, operation: &'static str) -> Result<usize> {
        let core = self.start(operation)?;
        // SAFETY: the lease is started, and keeps the core.
        if let Err(error) = unsafe { Self::prepare_stream(core.as_ref(), operation) } {
            // SAFETY: the caller holds the lease, and does not touch the core again.
            unsafe { Self::give_up_start(core) };
            return Err(error);
        }
        // SAFETY: the lease is started, and every output is closed.
        let core = unsafe { self.advance(core) };
        // SAFETY: the lease keeps the core.
        let this = unsafe { core.as_ref() };
        // SAFETY: the lease's holder is alone, and every view is stale.
        let (outcome, attention) = unsafe {
            this.room.with_call(|room| {
                let outcome = room.free_all(&this.source, &this.counters);
                (outcome, room.needs_attention(&this.source))
            })
        };
        let attention = attention || this.has_readers();
        let next = |word: Word| word.with_phase(Phase::Idle).with_attention(attention);
        // SAFETY: the lease's holder is an owner; the handle, which is another, keeps the core.
        unsafe { Core::change(core, next) };
        outcome
    }

    fn start(&self, operation: &'static str) -> Result<NonNull<Core>> {
        let leased = self.lease(true, operation);
        leased.map(|(core, _)| core).inspect_err(|error| self.count_refusal(error))
    }

    /// Drops the arena and says how that went: waits for the work of a deferred call, frees every block and
    /// answers the bytes that were freed.
    ///
    /// # Errors
    ///
    /// [`Error::Contended`], and the arena with it, while a call, a guard or an export holds it, and on the worker of a
    /// host executor, which does not wait, while deferred work does; an error of the deferred work's wait, likewise. [`Error::Driver`] where the driver does not take a block back:
    /// the arena comes back with it, and can be closed again.
    pub fn close(self) -> Result<usize, Refused<Self>> {
        let waited = self.wait_for_deferred();
        match waited.and_then(|()| self.trim_as("close")) {
            Ok(bytes) => Ok(bytes),
            Err(error) => Err(Refused::new(error, self)),
        }
    }

    fn wait_for_deferred(&self) -> Result<()> {
        loop {
            let core = self.core();
            if !core.source.backend.can_wait() {
                // A thread that does a stream's work waits for no other's: two of them could wait for each other.
                return core.settle().map(drop);
            }
            core.wait_for_deferred()?;
            if core.state.load().phase() != Phase::Deferred {
                return Ok(());
            }
            // A deferred closure ends its call itself.
            core.wait_until_free(Duration::from_secs(1))?;
        }
    }

    /// Who would keep a begin away now; nobody, where it would go ahead. Another thread can change that at any
    /// time.
    #[must_use]
    pub fn holder(&self) -> Option<Holder> {
        let word = self.core().state.load();
        (!word.is_free()).then(|| word.holder())
    }

    /// The generation of the last call. It starts again where the generations of one state are used up.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.core().state.load().generation()
    }

    /// Where the outputs are.
    #[must_use]
    pub fn describe(&self) -> ArenaDescription {
        self.core().description
    }

    /// Whether its blocks come from a device's driver: host-coherent ones too.
    pub(crate) fn is_of_device(&self) -> bool {
        self.core().source.is_on_device()
    }

    /// The arena's alignment in bytes: every output's address is a multiple of it.
    #[must_use]
    pub fn alignment(&self) -> usize {
        self.core().source.options.alignment
    }

    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a capture asks"))]
    pub(crate) fn scrub(&self) -> Scrub {
        self.core().source.options.scrub
    }

    /// What the arena has done so far. Each number is exact for what happened before on this thread; the numbers
    /// are read one by one while other threads go on.
    #[must_use]
    pub fn stats(&self) -> ArenaStats {
        self.core().counters.read()
    }
}

/// As [`Arena::host`].
impl Default for Arena {
    fn default() -> Self {
        Self::host()
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Arena")
            .field("description", &self.describe())
            .field("generation", &self.generation())
            .field("holder", &self.holder())
            .field("stats", &self.stats())
            .finish()
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the handle goes, and does not touch the core again.
        if let Some(Err(error)) = unsafe { Core::close(self.core_ptr()) } {
            event!(error, error = error, "failure in drop");
        }
    }
}

/// Whether a begin that met `word` should look again at once.
#[cold]
fn changes_soon(core: &Core, word: Word) -> Result<bool> {
    match word.phase() {
        Phase::Retired => Ok(true),
        Phase::Deferred => core.settle(),
        _ => Ok(false),
    }
}
