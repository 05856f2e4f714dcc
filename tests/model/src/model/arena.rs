//! An arena as the model sees it: its generation, who holds it, and what it has refused.

use std::ops::Range;

use super::answer::{Answer, Holder};
use super::need::Need;

/// How many guards and exports an arena counts at a time.
pub const MAX_READERS: u32 = if cfg!(device_arena_small_limits) { 3 } else { (1 << 16) - 1 };

/// How many outputs one call can open.
pub const MAX_OUTPUTS: u32 = if cfg!(device_arena_small_limits) { 1 << 10 } else { (1 << 30) - 1 };

/// The generation that is never used. The arena goes on from 1 instead, before a call and its abandonment could
/// reach it.
pub const LAST_GENERATION: u64 = if cfg!(device_arena_small_limits) { 6 } else { (1 << 42) - 1 };

/// Who holds the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nobody.
    Idle,
    /// A call that has not ended.
    Running,
    /// The open outputs of a call that has.
    Ended,
    /// Deferred work.
    Deferred,
}

/// Where an arena's memory is, and which executor it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// Host pages, for every executor of the host.
    Host,
    /// Host pages that a device reaches too.
    Coherent { executor: usize },
    /// A device's own memory.
    Device { executor: usize, ordinal: u32 },
}

impl Home {
    /// The executor of a device that it serves.
    pub(crate) fn executor(self) -> Option<usize> {
        match self {
            Self::Host => None,
            Self::Coherent { executor } | Self::Device { executor, .. } => Some(executor),
        }
    }

    /// Refuses what the host can't reach.
    pub(crate) fn check_host(self) -> Result<(), Answer> {
        match self {
            Self::Device { ordinal, .. } => Err(Answer::Device { ordinal }),
            _ => Ok(()),
        }
    }

    pub(crate) fn is_on_device(self) -> bool {
        matches!(self, Self::Device { .. })
    }
}

/// What a device may have to do on bytes that the host reaches too.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeviceWork {
    /// The last call whose bytes they are.
    pub(crate) call: Option<usize>,
    /// The last works that were in the queue ahead of it.
    pub(crate) behind: Vec<usize>,
}

/// What an arena was made with, the defaults put in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) alignment: usize,
    /// A block's alignment, and the step of its size.
    pub(crate) block: usize,
    pub(crate) first_capacity: usize,
    pub(crate) byte_limit: usize,
    pub(crate) exact_growth: bool,
    /// What unwritten room shows, where it is known.
    pub(crate) scrub: Option<u8>,
}

/// An arena.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    pub(crate) settings: Settings,
    pub(crate) home: Home,
    /// The work that readers on other streams have left: its own stream waits for it at the next begin.
    pub(crate) readers_left: Vec<usize>,
    /// Of host-coherent pages, until the stream was waited for.
    pub(crate) device_work: Option<DeviceWork>,
    /// Whether its handle is there.
    pub(crate) alive: bool,
    pub(crate) generation: u64,
    /// How often the generations were used up.
    pub(crate) era: u32,
    /// The call whose views are current.
    pub(crate) current: Option<usize>,
    pub(crate) phase: Phase,
    /// The current call was deferred as it was.
    pub(crate) deferred_as_it_was: bool,
    pub(crate) readers: u32,
    pub(crate) rewinds: u64,
    pub(crate) refused_begins: u64,
    pub(crate) refused_stale_reads: u64,
    pub(crate) need: Need,
    /// Where the current call's outputs are, and whose they are.
    pub(crate) live: Vec<(Range<usize>, String)>,
    /// Where its open scratch is.
    pub(crate) scratch: Vec<Range<usize>>,
    /// Room that this call used and gave back: it shows what it held.
    pub(crate) used_before: Vec<Range<usize>>,
    /// Room was given back by work that the model does not follow byte by byte.
    pub(crate) used_anywhere: bool,
}

impl Arena {
    pub(crate) fn new(settings: Settings, home: Home) -> Self {
        Self {
            settings,
            home,
            readers_left: Vec::new(),
            device_work: None,
            alive: true,
            generation: 0,
            era: 0,
            current: None,
            phase: Phase::Idle,
            deferred_as_it_was: false,
            readers: 0,
            rewinds: 0,
            refused_begins: 0,
            refused_stale_reads: 0,
            need: Need::default(),
            live: Vec::new(),
            scratch: Vec::new(),
            used_before: Vec::new(),
            used_anywhere: false,
        }
    }

    /// Who keeps a begin away.
    pub(crate) fn holder(&self) -> Option<Holder> {
        match self.phase {
            Phase::Running => Some(Holder::Call),
            Phase::Ended => Some(Holder::Output),
            Phase::Deferred => Some(Holder::Deferred),
            Phase::Idle if self.readers != 0 => Some(Holder::Readers(self.readers)),
            Phase::Idle => None,
        }
    }

    /// Whether a begin, a reserve or a trim is refused, which is counted.
    pub(crate) fn refuse_contended(&mut self) -> Result<(), Answer> {
        match self.holder() {
            None => Ok(()),
            Some(holder) => {
                self.refused_begins += 1;
                Err(Answer::Contended(holder))
            }
        }
    }

    /// Whether the next begin or trim starts with the generations anew.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.generation + 2 >= LAST_GENERATION
    }

    /// Moves on to the next generation: of a begin or a trim.
    pub(crate) fn advance(&mut self) {
        if self.is_exhausted() {
            self.era += 1;
            self.generation = 1;
        } else {
            self.generation += 1;
        }
        self.forget_room();
        self.current = None;
        self.deferred_as_it_was = false;
    }

    fn forget_room(&mut self) {
        self.live.clear();
        self.scratch.clear();
        self.used_before.clear();
        self.used_anywhere = false;
    }

    /// Whether a begin now may give blocks back to the driver, which a device's stream is waited for.
    pub(crate) fn may_free_on_begin(&self) -> bool {
        let exhausted = self.is_exhausted();
        self.holder().is_none() && (exhausted || self.need.may_free_on_begin(&self.settings))
    }

    /// The blocks go once nobody owns them.
    pub(crate) fn free_if_ownerless(&mut self) {
        if !self.alive && self.phase == Phase::Idle && self.readers == 0 {
            self.forget_room();
        }
    }

    /// Whether the limit may forbid room for `asked` bytes.
    pub(crate) fn may_be_refused(&self, asked: usize) -> bool {
        let limited = self.settings.byte_limit != usize::MAX;
        // Without a handle, nobody says what the arena has.
        if self.alive { self.need.may_be_refused(&self.settings, asked) } else { limited }
    }

    /// What the byte at `address` shows before it is written, if that is known.
    pub(crate) fn unwritten(&self, address: usize) -> Option<u8> {
        let known = !self.used_anywhere && !self.used_before.iter().any(|range| range.contains(&address));
        self.settings.scrub.filter(|_| known)
    }
}
