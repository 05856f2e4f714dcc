//! The count word: how many handles refer to an arena's core, and how many holds the running call has on it.
//!
//! References keep the core's memory; one of them stands for all owners of the blocks together (see
//! [`state`](super::state)), each view has one of its own. Holds keep the lease: the call has a large share of
//! them, each output that it opens takes one of that share without touching the word, and closing an output gives
//! it back. Publishing gives a hold back and takes a reference, in one step.
//!
//! ```text
//! 63            32 31             0
//! [ holds         | references      ]
//! ```

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence};

const HOLD: u64 = 1 << 32;

/// The share of holds that a fresh core's first lease starts with. It is there while nobody holds the lease, too. Each
/// call that ends with every output closed leaves the next one so many holds fewer as it has opened, which costs no
/// access to the word; below `LEAST_SHARE` the share is made whole again.
const SHARE: u32 = if cfg!(any(loom, device_arena_small_limits)) { (1 << 11) + 4 } else { 1 << 31 };
const LEAST_SHARE: u32 = if cfg!(any(loom, device_arena_small_limits)) { 1 << 11 } else { 1 << 30 };

/// How many outputs one call can open.
pub(crate) const MAX_OUTPUTS: u32 =
    if cfg!(any(loom, device_arena_small_limits)) { 1 << 10 } else { LEAST_SHARE - 1 };

/// From this many on, references are no longer counted and the core is never freed: views without end leak, they do
/// not overflow.
const SATURATED: u64 = if cfg!(loom) { 6 } else { 1 << 31 };

/// Where a saturated count stays. Each change of it puts it back here, so that threads which change it at once move
/// it by their number at the most: never below `SATURATED`, never past the last bit.
const PINNED: u64 = 3 << 30;

fn holds(word: u64) -> u32 {
    (word >> 32) as u32
}

fn references(word: u64) -> u64 {
    word & (HOLD - 1)
}

/// The count word.
#[derive(Debug)]
pub(crate) struct Counts {
    word: AtomicU64,
    /// The share of the running lease, or of the next. Written by whoever holds the lease.
    share: AtomicU32,
}

impl Counts {
    /// One reference, that of the owners.
    pub(crate) fn new() -> Self {
        Self { word: AtomicU64::new(u64::from(SHARE) * HOLD + 1), share: AtomicU32::new(SHARE) }
    }

    /// One more reference. The caller has one already, or a hold.
    #[inline]
    pub(crate) fn refer(&self) {
        if references(self.word.fetch_add(1, Ordering::Relaxed)) >= SATURATED {
            self.pin();
        }
    }

    /// One reference fewer. True if it was the last: then everything that the others did happened before.
    #[inline]
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        let before = self.word.fetch_sub(1, Ordering::Release);
        if references(before) >= SATURATED {
            self.pin();
            return false;
        }
        if references(before) == 1 {
            fence(Ordering::Acquire);
            return true;
        }
        false
    }

    /// Turns an output's hold into a view's reference. True if it was the lease's last hold.
    #[inline]
    #[must_use]
    pub(crate) fn publish(&self) -> bool {
        let before = self.word.fetch_add(1u64.wrapping_sub(HOLD), Ordering::AcqRel);
        if references(before) >= SATURATED {
            self.pin();
        }
        holds(before) == 1
    }

    /// Gives an output's hold back. True if it was the lease's last: the caller then holds the lease, and
    /// otherwise must not touch the core any more.
    #[inline]
    #[must_use]
    pub(crate) fn close_output(&self) -> bool {
        holds(self.word.fetch_sub(HOLD, Ordering::AcqRel)) == 1
    }

    /// Whether every one of the `opened` outputs is closed. Where it is, what they did happened before, and the share is
    /// the next lease's. The caller holds the lease.
    #[inline]
    #[must_use]
    pub(crate) fn try_settle(&self, opened: u32) -> bool {
        if opened == 0 {
            return true;
        }
        let left = self.share.load(Ordering::Relaxed) - opened;
        if holds(self.word.load(Ordering::Acquire)) != left {
            return false;
        }
        if left < LEAST_SHARE {
            self.word.fetch_add(u64::from(SHARE - left) * HOLD, Ordering::Relaxed);
            self.share.store(SHARE, Ordering::Relaxed);
        } else {
            self.share.store(left, Ordering::Relaxed);
        }
        true
    }

    /// Gives back what is left of the share of a call that opened `opened` outputs. True if no output is open:
    /// the caller then holds the lease, and otherwise must not touch the core any more.
    #[must_use]
    pub(crate) fn give_up_share(&self, opened: u32) -> bool {
        let left = self.share.load(Ordering::Relaxed) - opened;
        holds(self.word.fetch_sub(u64::from(left) * HOLD, Ordering::AcqRel)) == left
    }

    /// Makes the share whole again, by whoever had the last hold, and with it the lease.
    pub(crate) fn restore_share(&self) {
        self.word.fetch_add(u64::from(SHARE) * HOLD, Ordering::Relaxed);
        self.share.store(SHARE, Ordering::Relaxed);
    }

    #[cold]
    fn pin(&self) {
        let pinned = |word: u64| Some(word & !(HOLD - 1) | PINNED);
        // The closure never answers `None`, so this always succeeds.
        let _ = self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pinned);
    }
}
