//! The state word: one atomic that carries an arena's generation, its readers and who holds the lease.
//!
//! ```text
//! 63                    22 21          6 5          4        3        2    0
//! [ generation            | readers     | attention| waiters| closed | phase ]
//! ```
//!
//! The word alone decides who owns an arena's blocks: the arena's handle until it is closed, whoever holds the
//! lease, and every reader. The change that leaves none of them is the one that frees.

use crate::error::{Holder, StaleReason};
use crate::sync::{AtomicU64, Ordering};

const CLOSED: u64 = 1 << 3;
const WAITERS: u64 = 1 << 4;
const ATTENTION: u64 = 1 << 5;
const READER_SHIFT: u32 = 6;
const READER: u64 = 1 << READER_SHIFT;
const GENERATION_SHIFT: u32 = 22;
const GENERATION: u64 = 1 << GENERATION_SHIFT;
const PHASE: u64 = 0b111;

/// How many guards and exports an arena counts at a time.
pub(crate) const MAX_READERS: u32 =
    if cfg!(any(loom, device_arena_small_limits)) { 3 } else { (1 << (GENERATION_SHIFT - READER_SHIFT)) - 1 };

/// The last generation of one state. It is never used: the arena moves to a fresh state before.
pub(crate) const MAX_GENERATION: u64 =
    if cfg!(any(loom, device_arena_small_limits)) { 6 } else { (1 << (64 - GENERATION_SHIFT)) - 1 };

/// Who holds the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Phase {
    /// Nobody: views of the generation can be read.
    Idle = 0,
    /// A begin, a reserve or a trim that has more to do than to count.
    Starting = 1,
    /// A call: views of the generation are pending.
    Running = 2,
    /// A call that ended with outputs open: views of the generation can be read, nobody can begin.
    Ended = 3,
    /// A call whose queued work has not passed: views of the generation are pending.
    Deferred = 4,
    /// The generations are used up, and the arena has moved to another state: every view is stale.
    Retired = 5,
    /// A captured call, which is launched again: views of the generation can be read, nobody can begin.
    Captured = 6,
}

/// One value of the state word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl std::fmt::Debug for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Word")
            .field("generation", &self.generation())
            .field("readers", &self.readers())
            .field("phase", &self.phase())
            .field("closed", &self.is_closed())
            .field("waiters", &self.has_waiters())
            .field("attention", &self.needs_attention())
            .finish()
    }
}

impl Word {
    #[inline]
    pub(crate) fn generation(self) -> u64 {
        self.0 >> GENERATION_SHIFT
    }

    #[inline]
    pub(crate) fn readers(self) -> u32 {
        ((self.0 & (GENERATION - 1)) >> READER_SHIFT) as u32
    }

    #[inline]
    pub(crate) fn phase(self) -> Phase {
        match self.0 & PHASE {
            0 => Phase::Idle,
            1 => Phase::Starting,
            2 => Phase::Running,
            3 => Phase::Ended,
            4 => Phase::Deferred,
            6 => Phase::Captured,
            _ => Phase::Retired,
        }
    }

    #[inline]
    pub(crate) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    #[inline]
    pub(crate) fn has_waiters(self) -> bool {
        self.0 & WAITERS != 0
    }

    #[inline]
    pub(crate) fn needs_attention(self) -> bool {
        self.0 & ATTENTION != 0
    }

    /// Nobody holds the lease and nobody reads.
    #[inline]
    pub(crate) fn is_free(self) -> bool {
        // Idle is zero, and so is no reader.
        self.0 & (PHASE | (GENERATION - READER)) == 0
    }

    /// Nobody owns the blocks.
    #[inline]
    pub(crate) fn is_ownerless(self) -> bool {
        self.is_closed() && self.is_free()
    }

    #[inline]
    pub(crate) fn with_phase(self, phase: Phase) -> Self {
        Self(self.0 & !PHASE | phase as u64)
    }

    #[inline]
    pub(crate) fn next_generation(self) -> Self {
        Self(self.0.wrapping_add(GENERATION))
    }

    pub(crate) fn closed(self) -> Self {
        Self(self.0 | CLOSED)
    }

    #[inline]
    pub(crate) fn without_waiters(self) -> Self {
        Self(self.0 & !WAITERS)
    }

    #[inline]
    pub(crate) fn with_attention(self, attention: bool) -> Self {
        Self(if attention { self.0 | ATTENTION } else { self.0 & !ATTENTION })
    }

    #[inline]
    pub(crate) fn with_reader(self) -> Self {
        Self(self.0 + READER)
    }

    #[inline]
    pub(crate) fn without_reader(self) -> Self {
        Self(self.0 - READER)
    }

    /// Whether the next call and its abandonment would reach the last generation.
    #[inline]
    fn is_exhausted(self) -> bool {
        self.generation() + 2 >= MAX_GENERATION
    }

    /// Who keeps a begin away.
    pub(crate) fn holder(self) -> Holder {
        match self.phase() {
            Phase::Running => Holder::Call,
            Phase::Ended => Holder::Output,
            Phase::Deferred => Holder::Deferred,
            Phase::Captured if self.readers() == 0 => Holder::Captured,
            Phase::Captured => Holder::Readers(self.readers()),
            Phase::Starting | Phase::Retired => Holder::Begin,
            Phase::Idle => Holder::Readers(self.readers()),
        }
    }
}

/// Why a read is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadRefusal {
    Stale(StaleReason),
    Pending,
    /// The call's queued work may have passed: ask its event, then read again.
    Deferred,
    Contended(Holder),
    TooMany,
}

/// The state word.
#[derive(Debug)]
pub(crate) struct State(AtomicU64);

impl State {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// A state whose first generation is already leased, for an arena that moves here.
    pub(crate) fn running() -> Self {
        Self(AtomicU64::new(GENERATION | Phase::Running as u64))
    }

    #[inline]
    pub(crate) fn load(&self) -> Word {
        Word(self.0.load(Ordering::Acquire))
    }

    /// Takes the lease. Where there is nothing to see to, the generation moves with it and the phase is
    /// [`Phase::Running`]; otherwise it is [`Phase::Starting`], and the generation stays.
    ///
    /// On success everything that earlier leases and readers did happened before.
    #[inline]
    pub(crate) fn lease(&self, only_start: bool) -> Result<Word, Word> {
        let mut word = self.load();
        loop {
            if !word.is_free() {
                return Err(word);
            }
            debug_assert!(!word.is_closed(), "only the handle's user begins");
            let next = if only_start || word.needs_attention() || word.is_exhausted() {
                word.with_phase(Phase::Starting)
            } else {
                word.next_generation().with_phase(Phase::Running)
            };
            match self.0.compare_exchange_weak(word.0, next.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(next),
                Err(seen) => word = Word(seen),
            }
        }
    }

    /// Takes a captured call's lease for a launch, once nobody reads.
    #[cfg_attr(not(gpu), allow(dead_code, reason = "only a device captures"))]
    pub(crate) fn start_launch(&self) -> Result<(), Word> {
        let mut word = self.load();
        while word.phase() == Phase::Captured && word.readers() == 0 {
            match self.change(word, word.with_phase(Phase::Starting)) {
                Ok(()) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
        Err(word)
    }

    /// Whether a started begin must move the arena to a fresh state.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.load().is_exhausted()
    }

    /// Changes the word from `seen`; on failure returns what is there.
    #[inline]
    pub(crate) fn change(&self, seen: Word, next: Word) -> Result<(), Word> {
        let changed = self.0.compare_exchange(seen.0, next.0, Ordering::AcqRel, Ordering::Acquire);
        changed.map(drop).map_err(Word)
    }

    /// Counts a reader of `generation`. Everything that the generation's call wrote happened before.
    #[inline]
    pub(crate) fn read(&self, generation: u64) -> Result<(), ReadRefusal> {
        let mut word = self.load();
        loop {
            word.readable(generation)?;
            if word.readers() == MAX_READERS {
                return Err(ReadRefusal::TooMany);
            }
            match self.change(word, word.with_reader()) {
                Ok(()) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
    }

    /// Counts a reader beside the lease's holder, who is the caller.
    pub(crate) fn read_as_holder(&self) -> Result<(), ReadRefusal> {
        let mut word = self.load();
        while word.readers() < MAX_READERS {
            match self.change(word, word.with_reader()) {
                Ok(()) => return Ok(()),
                Err(seen) => word = seen,
            }
        }
        Err(ReadRefusal::TooMany)
    }

    /// Marks that somebody waits for the word to be free, unless it is.
    pub(crate) fn announce_waiter(&self) -> Word {
        let mut word = self.load();
        while !word.is_free() && word.phase() != Phase::Retired && !word.has_waiters() {
            match self.change(word, Word(word.0 | WAITERS)) {
                Ok(()) => return Word(word.0 | WAITERS),
                Err(seen) => word = seen,
            }
        }
        word
    }
}

impl Word {
    /// Whether a view of `generation` can be read. Stale comes before every other refusal.
    #[inline]
    pub(crate) fn readable(self, generation: u64) -> Result<(), ReadRefusal> {
        if self.is_closed() {
            return Err(ReadRefusal::Stale(StaleReason::ArenaDropped));
        }
        if self.generation() != generation || self.phase() == Phase::Retired {
            return Err(ReadRefusal::Stale(StaleReason::Rewound));
        }
        match self.phase() {
            Phase::Idle | Phase::Ended | Phase::Captured => Ok(()),
            Phase::Running => Err(ReadRefusal::Pending),
            Phase::Deferred => Err(ReadRefusal::Deferred),
            Phase::Starting | Phase::Retired => Err(ReadRefusal::Contended(Holder::Begin)),
        }
    }
}
